//! The limits of Galileo, each with its reason. PURE.

use std::time::Duration;

/// The port of the robots.
pub const PORT: u16 = 3547;

/// The port on which clients listen for announcements.
pub const DISCOVERY_PORT: u16 = 22_002;

/// The port of the robots' HTTP interface.
pub const HTTP_PORT: u16 = 3546;

/// The port of a proxy for robots outside of the local network.
pub const PROXY_PORT: u16 = 10_427;

/// The characters of a robot's id in the name that clients of a proxy use.
pub const PROXY_ID: usize = 8;

/// A session of a proxy ends if its robot does not answer the connect within this time: slow mobile
/// networks need half of it.
pub const PROXY_REPLY: Duration = Duration::from_secs(2);

/// The time between two announcements: a client that starts finds the robot within a second.
pub const DISCOVERY_PERIOD: Duration = Duration::from_secs(1);

/// The longest id in an announcement. Those of the robots have 64 digits.
pub const MAX_ID: usize = 128;

/// The longest address in a connect datagram. Those of the known clients have about 60 bytes.
pub const MAX_URL: usize = 1_024;

/// The longest path.
pub const MAX_PATH: usize = 128;

/// The longest TEXT datagram to a client, with its header: the documented size of a packet.
pub const MAX_TEXT_OUT: usize = 1_024;

/// The longest content of a TEXT frame from a client: eight times a packet, for long lists of
/// targets.
pub const MAX_TEXT_IN: usize = 8 * 1_024;

/// The data in one BINARY frame to a client, as the known clients split messages.
pub const CHUNK: usize = 512;

/// The longest data in a BINARY frame from a client: the documented maximum, a packet of 1024 bytes
/// less 8.
pub const MAX_CHUNK_IN: usize = 1_016;

/// A message of a client that comes in pieces. A frame of Amber has at most half of this.
pub const MAX_MESSAGE: usize = 64 * 1_024;

/// Maximum number of sessions: a classroom.
pub const MAX_SESSIONS: u32 = 128;

/// Sessions of one IP address: two programs with a session for each of eight topics. One machine
/// cannot take all sessions.
pub const MAX_SESSIONS_PER_IP: u32 = 16;

/// A session that has been silent for this time gives its place to a new one of the same IP address
/// if there is no other: its program has vanished. The known clients send 10 PINGs a second.
pub const VANISHED: Duration = Duration::from_secs(1);

/// The time between two PINGs to a client, as in the known clients.
pub const PING_PERIOD: Duration = Duration::from_millis(100);

/// A session ends when its client is silent for this time, as in the known clients.
pub const SILENCE: Duration = Duration::from_secs(10);

/// A session of an address outside the local network ends after this time if its client sends
/// nothing: the address may be forged.
pub const UNPROVEN: Duration = Duration::from_secs(1);

/// A client attaches its handler only after it has read the reply. Until then the server sends
/// nothing but the reply.
pub const QUIET: Duration = Duration::from_millis(200);

/// A repeated connect within this time is a copy made by the network.
pub const DUPLICATE: Duration = Duration::from_secs(1);

/// Datagrams and bytes per second to one session: 20 for PING and PONG, 180 of data; 1 Mbit/s.
pub const SESSION_RATE: u32 = 200;
/// The bytes of [`SESSION_RATE`].
pub const SESSION_BYTES: u32 = 125_000;

/// Answers per second to an address without a session, so that a forged address gets little.
pub const STRANGER_RATE: u32 = 10;

/// Wrong tokens per minute from one IP address, then silence of a minute.
pub const WRONG_TOKENS: u32 = 5;
/// The window and the silence of [`WRONG_TOKENS`].
pub const WRONG_TOKEN_SILENCE: Duration = Duration::from_secs(60);

/// Frames with a wrong session id per second from one IP address, then silence of ten seconds.
pub const WRONG_IDS: u32 = 100;
/// The window of [`WRONG_IDS`].
pub const WRONG_IDS_WINDOW: Duration = Duration::from_secs(1);
/// The silence after [`WRONG_IDS`].
pub const WRONG_IDS_SILENCE: Duration = Duration::from_secs(10);

/// The time between two reports of a session with a fixed rate.
pub const REPORT_PERIOD: Duration = Duration::from_millis(100);

/// The points in one scan: more do not fit into a TEXT frame.
pub const MAX_RANGES: usize = 160;

/// Targets in one command, as many as DriveToPoint accepts from other gateways.
pub const MAX_TARGETS: usize = 50;

/// The radius of a target that comes without one.
pub const RADIUS_M: f64 = 0.3;

/// The time between two attempts to connect to a foreign robot.
pub const CONNECT_PERIOD: Duration = Duration::from_secs(1);

/// Attempts before a new socket is used.
pub const CONNECT_TRIES: u32 = 5;

/// The longest time without an attempt: a robot that is switched on is found soon.
pub const MAX_BACKOFF: Duration = Duration::from_secs(30);
