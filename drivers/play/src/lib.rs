//! Plays recordings: serves their devices like drivers, so that clients see the recorded robot.
//!
//! ```text
//!  keys --> Console ==socket==> process of all devices <==pipes==> mediator <--> clients
//!                   <==status==   Player, Answers
//! ```
//!
//! `amber play` runs a mediator with one driver, `amber driver play`, that serves all devices of the
//! recording. [`amber_record::play`] selects the messages and the answers.
//!
//! - **Published messages** come at the recorded pace, to the current subscribers.
//! - **Requests** get the recorded answer to the same request that is nearest in time. A request
//!   without arguments gets the nearest value of its kind, even if it was published.
//! - **Commands** are refused: nothing moves in a recording.
//!
//! `message`, `requests`, `streams`, `keys` and `line` compute (PURE); `device`, `process` and
//! `console` do the rest (IO).

mod console;
mod control;
mod device;
mod keys;
mod limits;
mod line;
mod message;
mod process;
mod requests;
mod streams;

pub use console::{Console, Shown};
pub use control::{Command, Report, Status};
pub use process::{DriverOptions, Failure, Opened, Options, devices, open};
