//! The three sensors, and sets of them. PURE.

/// One of the three sensors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sensor {
    /// Acceleration.
    Accel,
    /// Turn rate.
    Gyro,
    /// Magnetic field.
    Magnet,
}

/// A set of sensors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sensors {
    /// Acceleration.
    pub accel: bool,
    /// Turn rate.
    pub gyro: bool,
    /// Magnetic field.
    pub magnet: bool,
}

impl Sensor {
    /// All three.
    pub const ALL: [Self; 3] = [Self::Accel, Self::Gyro, Self::Magnet];

    /// The name used in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Accel => "accel",
            Self::Gyro => "gyro",
            Self::Magnet => "magnet",
        }
    }

    /// The name for people.
    pub fn full_name(self) -> &'static str {
        match self {
            Self::Accel => "accelerometer",
            Self::Gyro => "gyroscope",
            Self::Magnet => "magnetometer",
        }
    }
}

impl std::fmt::Display for Sensor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.full_name())
    }
}

impl Sensors {
    /// All three.
    pub const ALL: Self = Self {
        accel: true,
        gyro: true,
        magnet: true,
    };

    /// Accelerometer and gyroscope, which often are one chip.
    pub(crate) const INERTIAL: Self = Self {
        accel: true,
        gyro: true,
        magnet: false,
    };
    /// The magnetometer.
    pub(crate) const MAGNET: Self = Self {
        accel: false,
        gyro: false,
        magnet: true,
    };

    /// The set of one sensor.
    pub fn only(sensor: Sensor) -> Self {
        Self {
            accel: sensor == Sensor::Accel,
            gyro: sensor == Sensor::Gyro,
            magnet: sensor == Sensor::Magnet,
        }
    }

    /// Whether the set contains a sensor.
    pub fn has(self, sensor: Sensor) -> bool {
        match sensor {
            Sensor::Accel => self.accel,
            Sensor::Gyro => self.gyro,
            Sensor::Magnet => self.magnet,
        }
    }

    /// Whether the set is empty.
    pub fn is_empty(self) -> bool {
        self == Self::default()
    }

    /// Whether the two sets share a sensor.
    pub fn meet(self, other: Self) -> bool {
        (self.accel && other.accel) || (self.gyro && other.gyro) || (self.magnet && other.magnet)
    }

    /// The union of both sets.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            accel: self.accel || other.accel,
            gyro: self.gyro || other.gyro,
            magnet: self.magnet || other.magnet,
        }
    }
}
