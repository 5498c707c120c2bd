//! Driver for laser scanners of YDLIDAR: X2, X3, X4, X4 Pro, G2, G4 and T-mini. IO.
//!
//! They see all around. Some have one wire for data and send all the time; the others are asked what
//! they are, then started, and stopped at the end. `packet`, `product` and `logic` are pure; `scanner`
//! carries out the outputs of `logic`, and says what all laser scanners guarantee. Further guarantees
//! for clients:
//!
//! - All scans have the same number of points (option `points`), one in each equal part of the turn,
//!   at the angle at which it was measured.
//! - A part without a valid measurement has the code 1, which means that nothing is known. These
//!   scanners report an object that is dark or too near like no object.
//! - A scan is a turn from the rear to the rear, and its time is that of its last measurement.

use self::logic::YdlidarLogic;
pub use self::product::Product;
use crate::scanner::driver::LaserDriver;
use crate::scanner::options;

#[cfg(feature = "fuzz")]
pub mod fuzz;
pub mod logic;
pub mod packet;
pub(crate) mod probe;
mod product;
#[cfg(test)]
mod tests;

/// The driver of a YDLIDAR.
pub type Ydlidar<C> = LaserDriver<YdlidarLogic, C>;

/// Settings of the scanner.
pub type Settings = options::Settings<Product>;

/// Options of the driver.
pub type Options = options::Options<Product>;
