//! The limits of all gateways, each with its reason. PURE.

use std::time::Duration;

use amber_robot::limits::MOTION_LIFE;

/// Datagrams per second that one source may send: five times a busy session (50 commands, 20 PINGs
/// and PONGs, 30 messages).
pub const SOURCE_RATE: u32 = 500;

/// Datagrams per second that one listener accepts from sources without a session. Reading them
/// costs less than 2 % of a core.
pub const LISTENER_RATE: u32 = 2_000;

/// The time between two log lines for one reason.
pub const LOG_PERIOD: Duration = Duration::from_secs(1);

/// A motion command that the network has delayed by more is not carried out: the life of a command.
pub const MOTION_LAG: Duration = MOTION_LIFE;

/// Events that may wait for the gateway: a second of all devices of a robot. Then new ones are
/// dropped.
pub const MAX_EVENTS: usize = 256;

/// The time between two attempts to bind an address that is in use.
pub const BIND_RETRY: Duration = Duration::from_secs(1);

/// The longest UDP datagram.
pub const MAX_DATAGRAM: usize = 65_507;

/// The receive buffer of a UDP socket: the fragments of a whole image may arrive while the gateway
/// is busy.
pub const RECEIVE_BUFFER: usize = 4 * 1024 * 1024;

/// Peers in the answer to a status request, so that it fits into a frame.
pub const MAX_PEERS: usize = 64;

/// Measurements of a foreign robot that are older than this are no longer shown.
pub const MAX_AGE: Duration = Duration::from_secs(1);

/// Addresses whose offences are remembered.
pub const MAX_OFFENDERS: usize = 1_024;

/// WebSocket connections of a listener.
pub const MAX_CONNECTIONS: usize = 64;

/// WebSocket connections from one IP address. Browsers open several for several pages.
pub const MAX_CONNECTIONS_PER_IP: usize = 16;

/// How long a connection may take for its HTTP request.
pub const HANDSHAKE_TIME: Duration = Duration::from_secs(5);

/// A WebSocket peer that does not even answer pings for this time is gone. Its motion has ended
/// long before: [`MOTION_LIFE`].
pub const SILENT_PEER: Duration = Duration::from_secs(15);

/// A WebSocket peer that usually answers pings, and sends nothing for this time, may have frozen: its
/// targets end. Five pings are sent per second.
pub const ERRAND_SILENCE: Duration = MOTION_LIFE;

/// The send buffer of a WebSocket: pictures in it are too late to be replaced by newer ones. The system
/// would make it as large as some dozens of them.
pub const SEND_BUFFER: usize = 256 * 1024;

/// How long a WebSocket peer may take to make room for a text.
pub const WRITE_TIME: Duration = Duration::from_secs(10);
