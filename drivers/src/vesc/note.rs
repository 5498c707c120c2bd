//! Log messages that only VESCs have. PURE.

use std::fmt;

use super::protocol::Fault;
use super::units::Unit;
use crate::wheels::Special;

/// A log message about the VESCs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum VescNote {
    /// A VESC reports a fault.
    Fault(Unit, Fault),
    /// A switch at a VESC keeps its motor off.
    SwitchedOff(Unit),
    /// All faults are gone.
    Clean,
    /// A VESC is hot, or cool again.
    Temperature {
        /// The VESC.
        unit: Unit,
        /// Whether it is hot.
        is_hot: bool,
        /// Tenths of a degree Celsius.
        tenths: i16,
    },
    /// A speed is lower than the speed control holds.
    TooSlow {
        /// The lowest speed that it holds, in mm/s.
        slowest_mm_s: f64,
    },
}

impl Special for VescNote {
    fn is_warning(&self) -> bool {
        match self {
            Self::Clean | Self::Temperature { is_hot: false, .. } => false,
            Self::Fault(..)
            | Self::SwitchedOff(_)
            | Self::Temperature { is_hot: true, .. }
            | Self::TooSlow { .. } => true,
        }
    }
}

impl fmt::Display for VescNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fault(unit, fault) => write!(f, "the {} reports {fault}", unit.name()),
            Self::SwitchedOff(unit) => write!(
                f,
                "a switch at the {} keeps its motor off: check its kill switch",
                unit.name()
            ),
            Self::Clean => f.write_str("the VESCs report no more faults"),
            Self::Temperature {
                unit,
                is_hot,
                tenths,
            } => {
                let degrees = f64::from(*tenths) / 10.0;
                match is_hot {
                    true => write!(
                        f,
                        "the {} is hot: {degrees:.1} C; when it gets hotter it reduces the power of \
                         its motor",
                        unit.name()
                    ),
                    false => write!(f, "the {} is cool enough: {degrees:.1} C", unit.name()),
                }
            }
            Self::TooSlow { slowest_mm_s } => write!(
                f,
                "a wheel stands although it was commanded to turn: the speed control of the VESCs \
                 holds no speed below {slowest_mm_s:.0} mm/s. Lower Minimum ERPM in VESC Tool, and \
                 tell the driver by --min-erpm (logged once)"
            ),
        }
    }
}
