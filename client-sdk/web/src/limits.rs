//! The limits of every server, each with its reason. PURE.

use std::time::Duration;

/// The largest head of a request. Those of browsers have less than 2 kB, most of it cookies of
/// other programs of the same host.
pub const MAX_HEAD: usize = 16 * 1024;

/// How long a connection may take for its request. Idle connections also end after this time.
pub const HELLO_TIME: Duration = Duration::from_secs(5);

/// The time until connections are accepted again when the system has no file descriptors left.
pub const ACCEPT_RETRY: Duration = Duration::from_secs(1);

/// Extra time for an answer beyond the time limit of the device.
pub const ANSWER_MARGIN: Duration = Duration::from_secs(2);

/// The mediator answers from memory, so without an answer in this time it has ended.
pub const MEDIATOR_DEADLINE: Duration = Duration::from_millis(500);

/// The time between two lines about refused requests: a program that retries constantly must not
/// fill the terminal. Refusals between them are counted in the next line.
pub const NOTE_PERIOD: Duration = Duration::from_secs(1);
