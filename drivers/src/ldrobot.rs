//! Driver for laser scanners of LDROBOT: LD06, LD19 (also sold as STL-19P), STL-27L and LD14P. IO.
//!
//! They see all around and send all the time; an LD14P can be started and stopped. `packet`, `product`
//! and `logic` are pure; `scanner` carries out the outputs of `logic`, and says what all laser
//! scanners guarantee. Further guarantees for clients:
//!
//! - All scans have the same number of points (option `points`), one in each equal part of the turn,
//!   at the angle at which it was measured.
//! - A part without a valid measurement has the code 1, which means that nothing is known. A point is
//!   0 only if the scanner looked there and got no echo.
//! - A scan is a turn from the rear to the rear, and its time is that of its last measurement.

use self::logic::LdrobotLogic;
pub use self::product::Product;
use crate::scanner::driver::LaserDriver;
use crate::scanner::options;

#[cfg(feature = "fuzz")]
pub mod fuzz;
pub mod logic;
pub mod packet;
pub(crate) mod probe;
mod product;

/// The driver of an LDROBOT laser scanner.
pub type Ldrobot<C> = LaserDriver<LdrobotLogic, C>;

/// Settings of the scanner: its packets do not say which one it is.
pub type Settings = options::Settings<Product>;

/// Options of the driver.
pub type Options = options::Options<Product>;

#[cfg(test)]
mod tests;
