//! The boards that are simulated, and what their pins can do. PURE.

/// A board.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    /// Arduino Uno: 20 pins, six analog inputs
    Uno,
    /// Arduino Mega 2560: 70 pins, sixteen analog inputs
    Mega,
}

impl Model {
    /// The number of pins.
    pub(super) fn pins(self) -> u8 {
        match self {
            Self::Uno => 20,
            Self::Mega => 70,
        }
    }

    /// The number of analog inputs.
    pub(super) fn channels(self) -> usize {
        match self {
            Self::Uno => 6,
            Self::Mega => 16,
        }
    }

    /// The most servos at a time.
    pub(super) fn servos(self) -> usize {
        match self {
            Self::Uno => 12,
            Self::Mega => 48,
        }
    }

    /// Pins 0 and 1 are the serial line.
    pub(super) fn is_digital(self, pin: u8) -> bool {
        (2..self.pins()).contains(&pin)
    }

    /// The analog input of a pin: the last pins have them.
    pub(super) fn channel(self, pin: u8) -> Option<u8> {
        let first = match self {
            Self::Uno => 14,
            Self::Mega => 54,
        };
        pin.checked_sub(first).filter(|_| pin < self.pins())
    }

    pub(super) fn is_pwm(self, pin: u8) -> bool {
        match self {
            Self::Uno => matches!(pin, 3 | 5 | 6 | 9..=11),
            Self::Mega => matches!(pin, 2..=13 | 44..=46),
        }
    }

    pub(super) fn is_i2c(self, pin: u8) -> bool {
        match self {
            Self::Uno => matches!(pin, 18 | 19),
            Self::Mega => matches!(pin, 20 | 21),
        }
    }
}
