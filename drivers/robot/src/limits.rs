//! Times and rates of all programs that drive a robot, each with its reason. PURE.

use std::time::Duration;

/// Sources whose rates are remembered. A burst of forged addresses cannot take more memory than
/// this: about 64 bytes each.
pub const MAX_SOURCES: usize = 1_024;

/// The time between two clean-ups of a full table of sources. A flood cannot cause one for each
/// datagram.
pub const SWEEP_PERIOD: Duration = Duration::from_millis(100);

/// Messages per second from one session to Amber's devices: a joystick sends fifty.
pub const ORDER_RATE: u32 = 50;

/// The shortest time between two motion commands of one session: that of [`ORDER_RATE`].
pub const MOTION_PERIOD: Duration = Duration::from_millis(20);

/// How long a motion command is valid if it is not repeated. Programs for these robots send at
/// least ten commands per second.
pub const MOTION_LIFE: Duration = Duration::from_millis(500);

/// How long a session keeps the controls after its last command other than a stop.
pub const SEAT_HOLD: Duration = Duration::from_secs(1);

/// The lease of what a session moves ends if the gateway gives no sign of life for this time, for
/// example because it has frozen. Then errands stop, too.
pub const LEASE_PERIOD: Duration = MOTION_LIFE;

/// The time between two reports of the same refusal to a peer.
pub const TELL_AGAIN: Duration = Duration::from_secs(1);

/// Orders of one session that may wait for the mediator: a second at [`ORDER_RATE`].
pub const MAX_ORDERS: usize = ORDER_RATE as usize;

/// The time between attempts to connect to the mediator.
pub const MEDIATOR_RETRY: Duration = Duration::from_secs(1);

/// A motion command that cannot be sent in this time is outdated.
pub const MOTION_DEADLINE: Duration = Duration::from_millis(100);

/// How long to wait for sessions to leave the mediator when the gateway stops: less than the
/// second after which the mediator kills a driver.
pub const LAST_WORDS: Duration = Duration::from_millis(700);
