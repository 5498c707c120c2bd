//! Quantities, and how messages have them. PURE.

use amber_proto::ninedof::{AxisData, SensorData};

use super::calibration::Calibration;
use super::chip::Digits;
use super::sensors::Sensors;

/// A value for each axis: x to the right, y ahead, z up.
pub type Axes = [f64; 3];

/// The measured values; `None` for a sensor without data.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Measured {
    /// Acceleration in thousandths of g.
    pub accel_mg: Option<Axes>,
    /// Turn rate in degrees per second.
    pub gyro_deg_s: Option<Axes>,
    /// Magnetic field in thousandths of gauss.
    pub magnet_mgauss: Option<Axes>,
}

/// Of models that have no other numbers to send than these.
impl Digits for Measured {
    fn and(self, other: Self) -> Self {
        Self {
            accel_mg: self.accel_mg.or(other.accel_mg),
            gyro_deg_s: self.gyro_deg_s.or(other.gyro_deg_s),
            magnet_mgauss: self.magnet_mgauss.or(other.magnet_mgauss),
        }
    }
}

impl Measured {
    /// Only this field, in milligauss.
    pub(crate) fn field(magnet_mgauss: Axes) -> Self {
        Self {
            magnet_mgauss: Some(magnet_mgauss),
            ..Self::default()
        }
    }

    /// Subtracts the known errors.
    #[must_use]
    pub fn minus(self, calibration: &Calibration) -> Self {
        Self {
            accel_mg: self.accel_mg,
            gyro_deg_s: (self.gyro_deg_s).map(|rate| minus(rate, calibration.gyro_deg_s())),
            magnet_mgauss: (self.magnet_mgauss)
                .map(|field| minus(field, calibration.magnet_mgauss())),
        }
    }

    /// The requested groups that were measured.
    #[must_use]
    pub fn data(self, sensors: Sensors) -> SensorData {
        SensorData {
            accel: (self.accel_mg.filter(|_| sensors.accel)).map(nearest),
            gyro: (self.gyro_deg_s.filter(|_| sensors.gyro)).map(nearest),
            magnet: (self.magnet_mgauss.filter(|_| sensors.magnet)).map(nearest),
            ..SensorData::default()
        }
    }
}

fn minus(a: Axes, b: Axes) -> Axes {
    [a[0] - b[0], a[1] - b[1], a[2] - b[2]]
}

/// The turn rate in thousandths of a degree per second.
pub fn gyro_milli(measured: Measured) -> Option<AxisData> {
    let milli = |axes: Axes| nearest(axes.map(|rate| rate * 1000.0));
    measured.gyro_deg_s.map(milli)
}

fn nearest(axes: Axes) -> AxisData {
    axis_data(axes.map(|value| value.round() as i32))
}

pub(crate) fn axis_data([x_axis, y_axis, z_axis]: [i32; 3]) -> AxisData {
    AxisData {
        x_axis,
        y_axis,
        z_axis,
    }
}
