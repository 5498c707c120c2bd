//! What the drivers of the battery share. IO.
//!
//! A driver says how it measures: it is a `Source`. Everything else stands here:
//!
//! ```text
//! driver (IO)   asks the source all the time; answers, publishes, reports
//!    +--- logic (PURE)   how full is it? is it low?
//!           +--- cells (PURE)   the voltages of each chemistry
//! ```
//!
//! Guarantees for clients of every source:
//!
//! - A state says only what is measured or configured. Without the cells and their chemistry, nobody
//!   is told how full the battery is.
//! - While nothing is measured, requests are refused with the reason, and nothing is published.
//! - A low battery is reported as a problem of the driver: `amber status battery` shows it, and
//!   `amber events` when it began. A voltage that dips while the wheels start is not low.

pub mod cells;
pub(crate) mod driver;
pub mod logic;
