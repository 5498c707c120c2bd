//! The limits of all gateways, each with its reason. PURE.

use std::time::Duration;

/// Datagrams per second that one source may send: five times a busy session (50 commands, 20 PINGs
/// and PONGs, 30 messages).
pub const SOURCE_RATE: u32 = 500;

/// Datagrams per second that one listener accepts from sources without a session. Reading them
/// costs less than 2 % of a core.
pub const LISTENER_RATE: u32 = 2_000;

/// Sources whose rates are remembered. A burst of forged addresses cannot take more memory than
/// this: about 64 bytes each.
pub const MAX_SOURCES: usize = 1_024;

/// The time between two clean-ups of a full table of sources. A flood cannot cause one for each
/// datagram.
pub const SWEEP_PERIOD: Duration = Duration::from_millis(100);

/// The time between two log lines for one reason.
pub const LOG_PERIOD: Duration = Duration::from_secs(1);

/// Messages per second from one session to Amber's devices: a joystick sends fifty.
pub const ORDER_RATE: u32 = 50;

/// The shortest time between two motion commands of one session: that of [`ORDER_RATE`].
pub const MOTION_PERIOD: Duration = Duration::from_millis(20);

/// How long a motion command is valid if it is not repeated. Programs for these robots send at
/// least ten commands per second.
pub const MOTION_LIFE: Duration = Duration::from_millis(500);

/// A motion command that the network has delayed by more is not carried out: the life of a command.
pub const MOTION_LAG: Duration = MOTION_LIFE;

/// How long a session keeps the controls after its last command other than a stop.
pub const SEAT_HOLD: Duration = Duration::from_secs(1);

/// The lease of what a session moves ends if the gateway gives no sign of life for this time, for
/// example because it has frozen. Then errands stop, too.
pub const LEASE_PERIOD: Duration = MOTION_LIFE;

/// The time between two reports of the same refusal to a peer.
pub const TELL_AGAIN: Duration = Duration::from_secs(1);

/// Orders of one session that may wait for the mediator: a second at [`ORDER_RATE`].
pub const MAX_ORDERS: usize = ORDER_RATE as usize;

/// Events that may wait for the gateway: a second of all devices of a robot. Then new ones are
/// dropped.
pub const MAX_EVENTS: usize = 256;

/// The time between two attempts to bind an address that is in use.
pub const BIND_RETRY: Duration = Duration::from_secs(1);

/// The time between attempts to connect to the mediator.
pub const MEDIATOR_RETRY: Duration = Duration::from_secs(1);

/// A motion command that cannot be sent in this time is outdated.
pub const MOTION_DEADLINE: Duration = Duration::from_millis(100);

/// How long to wait for sessions to leave the mediator when the gateway stops: less than the
/// second after which the mediator kills a driver.
pub const LAST_WORDS: Duration = Duration::from_millis(700);

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

/// How long a WebSocket peer may take to make room for a text.
pub const WRITE_TIME: Duration = Duration::from_secs(10);
