//! Log messages that only these controllers have. PURE.

use std::fmt;

use crate::roboclaw::protocol::Fault;
use crate::roboclaw::units::Unit;
use crate::wheels::Special;

/// A log message about the controllers.
#[derive(Clone, Debug, PartialEq)]
pub enum ControllerNote {
    /// A controller reports an error or a warning.
    Fault(Unit, Fault),
    /// No controller reports errors any more.
    Clean,
    /// The controllers are reset because of errors.
    ResetForErrors,
    /// Too hot to drive, or cool again.
    Temperature {
        /// Whether it is too hot.
        hot: bool,
        /// Tenths of a degree Celsius.
        tenths: i32,
    },
    /// The battery voltages, in tenths of a volt.
    Battery {
        /// The battery of the motors.
        main_dv: i32,
        /// The battery of the electronics.
        logic_dv: i32,
    },
    /// A value cannot be measured, with this firmware or at the moment.
    Unknown(&'static str),
}

impl Special for ControllerNote {
    fn is_warning(&self) -> bool {
        match self {
            Self::Clean | Self::Battery { .. } | Self::Temperature { hot: false, .. } => false,
            Self::Fault(..)
            | Self::ResetForErrors
            | Self::Temperature { hot: true, .. }
            | Self::Unknown(_) => true,
        }
    }
}

impl fmt::Display for ControllerNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fault(unit, fault) => match fault {
                Fault::BatteryLow => write!(
                    f,
                    "{}: battery low; driving is disabled until the battery is charged and this \
                     driver is restarted",
                    unit.name()
                ),
                Fault::Error(text) => write!(f, "{}: {text}", unit.name()),
                Fault::Warning(text) => write!(f, "{}: warning: {text}", unit.name()),
            },
            Self::Clean => write!(f, "the controllers report no more errors"),
            Self::ResetForErrors => write!(f, "resetting the controllers"),
            Self::Temperature { hot, tenths } => {
                let word = if *hot {
                    "too hot to drive"
                } else {
                    "cool enough"
                };
                write!(f, "{word}: {}.{} C", tenths / 10, tenths % 10)
            }
            Self::Battery { main_dv, logic_dv } => write!(
                f,
                "main battery {}.{} V, logic battery {}.{} V",
                main_dv / 10,
                main_dv % 10,
                logic_dv / 10,
                logic_dv % 10
            ),
            Self::Unknown(what) => write!(f, "the controllers do not report the {what}"),
        }
    }
}
