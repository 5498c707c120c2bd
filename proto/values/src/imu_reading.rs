//! A reading of the sensors of a NineDof. PURE.

use amber_proto::ninedof::SensorData;

use crate::attitude::Attitude;
use crate::vector::Vector;

/// The requested values, as far as they could be read.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ImuReading {
    /// Proper acceleration in thousandths of g: 1000 upwards at rest.
    pub acceleration_mg: Option<Vector>,
    /// Turn rate in degrees per second, counter-clockwise about each axis.
    /// Drivers of the original system send whole degrees only.
    pub rate_deg_s: Option<Vector>,
    /// Magnetic field in thousandths of gauss, of which 1 is 0.1 uT.
    pub field_mgauss: Option<Vector>,
    /// Heading and tilt, if you requested acceleration and field. Drivers of
    /// the original system do not send it.
    pub attitude: Option<Attitude>,
    /// Milliseconds since the driver started. Drivers of the original system do
    /// not send it.
    pub timestamp_ms: Option<u32>,
}

/// Standard gravity, in m/s²: readings have thousandths of it. Defined by the 3rd General
/// Conference on Weights and Measures, 1901.
pub const STANDARD_GRAVITY_M_S2: f64 = 9.806_65;

impl ImuReading {
    /// The acceleration ahead, to the left and up, in m/s²: the axes and units of
    /// [REP 103](https://www.ros.org/reps/rep-0103.html).
    #[must_use]
    pub fn acceleration_m_s2(&self) -> Option<[f64; 3]> {
        let axes = self.acceleration_mg?.ahead_left_up();
        Some(axes.map(|mg| mg * STANDARD_GRAVITY_M_S2 / 1000.0))
    }

    /// The turn rates about the axes ahead, to the left and up, in rad/s.
    #[must_use]
    pub fn rate_rad_s(&self) -> Option<[f64; 3]> {
        Some(self.rate_deg_s?.ahead_left_up().map(f64::to_radians))
    }
}

/// Takes the finer turn rate if the message has both.
impl From<SensorData> for ImuReading {
    fn from(data: SensorData) -> Self {
        let fine = (data.gyro_milli).map(|milli| Vector::from(milli).divided_by(1000.0));
        Self {
            acceleration_mg: data.accel.map(Vector::from),
            rate_deg_s: fine.or(data.gyro.map(Vector::from)),
            field_mgauss: data.magnet.map(Vector::from),
            attitude: data.attitude.map(Attitude::from),
            timestamp_ms: data.timestamp,
        }
    }
}

/// Has the turn rate in both precisions, for old and new clients.
impl From<ImuReading> for SensorData {
    fn from(reading: ImuReading) -> Self {
        let milli = |rate: Vector| rate.divided_by(0.001);
        Self {
            accel: reading.acceleration_mg.map(Into::into),
            gyro: reading.rate_deg_s.map(Into::into),
            magnet: reading.field_mgauss.map(Into::into),
            timestamp: reading.timestamp_ms,
            gyro_milli: reading.rate_deg_s.map(|rate| milli(rate).into()),
            attitude: reading.attitude.map(Into::into),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_systems_have_x_ahead() {
        let vector = |x, y, z| Some(Vector { x, y, z });
        let reading = ImuReading {
            acceleration_mg: vector(100.0, 200.0, 1000.0),
            rate_deg_s: vector(0.0, 90.0, 180.0),
            ..ImuReading::default()
        };
        let [ahead, left, up] = reading.acceleration_m_s2().unwrap();
        let near = |a: f64, b: f64| (a - b).abs() < 1e-9;
        assert!(near(ahead, 1.961_33) && near(left, -0.980_665) && near(up, 9.806_65));
        let pi = std::f64::consts::PI;
        assert_eq!(reading.rate_rad_s(), Some([pi / 2.0, 0.0, pi]));
        assert_eq!(ImuReading::default().acceleration_m_s2(), None);
    }

    #[test]
    fn a_message_keeps_each_field() {
        let reading = ImuReading {
            acceleration_mg: Some(Vector {
                x: -125.0,
                y: 62.0,
                z: 1000.0,
            }),
            rate_deg_s: Some(Vector {
                x: 0.018,
                y: 0.735,
                z: -40.25,
            }),
            field_mgauss: None,
            attitude: None,
            timestamp_ms: Some(7),
        };
        let message = SensorData::from(reading);
        assert_eq!(message.gyro.as_ref().map(|rate| rate.z_axis), Some(-40));
        assert_eq!(ImuReading::from(message), reading);
        let nothing = ImuReading::default();
        assert_eq!(ImuReading::from(SensorData::from(nothing)), nothing);
    }
}
