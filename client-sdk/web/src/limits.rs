//! The limits of every server, each with its reason. PURE.

use std::time::Duration;

/// The largest head of a request. Those of browsers have less than 2 kB, most of it cookies of
/// other programs of the same host.
pub const MAX_HEAD: usize = 16 * 1024;

/// How long a connection may take for its request. Idle connections also end after this time.
pub const HELLO_TIME: Duration = Duration::from_secs(5);

/// How long a connection may ask for pages. All files of a page take a second; browsers and scrapers
/// connect again for the next ones.
pub const CONNECTION_LIFE: Duration = Duration::from_secs(20);

/// How long the last answer of a connection may take.
pub const LAST_ANSWER: Duration = Duration::from_secs(4);

/// How long a peer may take to receive the answer to its close frame.
pub const CLOSE_TIME: Duration = Duration::from_secs(1);

/// The size of a read of a WebSocket. The library clears such a buffer before each read, and 128 KB
/// by default: with that, each command of a hundred bytes costs more time for clearing than for all
/// the rest.
pub const READ_BUFFER: usize = 4 * 1024;

/// The time until connections are accepted again when the system has no file descriptors left.
pub const ACCEPT_RETRY: Duration = Duration::from_secs(1);

/// Extra time for an answer beyond the time limit of the device: `ninedof` takes up to 5 s more to get
/// enough readings on a busy machine.
pub const ANSWER_MARGIN: Duration = Duration::from_secs(6);

/// The mediator answers from memory. Without an answer in this time, it has ended or is unreachable.
pub const MEDIATOR_DEADLINE: Duration = Duration::from_secs(3);

/// The time between two lines about refused requests: a program that retries constantly must not
/// fill the terminal. Refusals between them are counted in the next line.
pub const NOTE_PERIOD: Duration = Duration::from_secs(1);

/// The lease of what a request moves ends if this program gives no sign of life for this time.
pub const LEASE_PERIOD: Duration = Duration::from_millis(500);

/// How long the lease is kept after a request that moves something once, such as a servo.
pub const LEASE_HOLD: Duration = Duration::from_secs(1);

/// Requests of one page or viewer that wait for a lease.
pub const MAX_CLAIMS: usize = 8;
