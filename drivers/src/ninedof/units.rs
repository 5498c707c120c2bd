//! Converts digits of the chips to quantities, and quantities to messages. PURE.
//!
//! The original's numbers ([`Numbers::Compatible`]) are wrong: its turn rates are an eighth too
//! low, and its magnetic fields use a wrong byte order. They exist for clients that depend on them.

use amber_proto::ninedof::{AxisData, SensorData};

use super::registers::{Gain, Raw};
use crate::motion_sensor::calibration::Calibration;
use crate::motion_sensor::sensors::Sensors;
use crate::motion_sensor::units::{Axes, Measured, axis_data};

/// The kind of numbers to send.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Numbers {
    /// As the data sheets define them, with the known chip errors subtracted, rounded to nearest.
    #[default]
    Right,
    /// As the original sent them, truncated towards zero.
    Compatible,
}

impl Measured {
    /// Converts digits to units and subtracts the known errors.
    pub fn of(raw: Raw, gain: Gain, calibration: &Calibration) -> Self {
        let uncalibrated = Self {
            accel_mg: raw.accel.map(accel_mg),
            gyro_deg_s: raw.gyro.map(gyro_deg_s),
            magnet_mgauss: raw.magnet.map(|raw| magnet_mgauss(raw, gain)),
        };
        uncalibrated.minus(calibration)
    }
}

/// Two milli-g per digit at ±4 g.
fn accel_mg(raw: [i16; 3]) -> Axes {
    raw.map(|digits| f64::from(digits >> 4) * 2.0)
}

fn gyro_deg_s(raw: [i16; 3]) -> Axes {
    raw.map(|digits| f64::from(digits) * 0.017_5)
}

fn magnet_mgauss([x, y, z]: [i16; 3], gain: Gain) -> Axes {
    let (xy_per_gauss, z_per_gauss) = match gain {
        Gain::Fine => (670.0, 600.0),
        Gain::Coarse => (230.0, 205.0),
    };
    let in_mgauss = |digits: i16, per_gauss: f64| f64::from(digits) * 1000.0 / per_gauss;
    [
        in_mgauss(x, xy_per_gauss),
        in_mgauss(y, xy_per_gauss),
        in_mgauss(z, z_per_gauss),
    ]
}

/// The requested groups that were measured.
pub fn sensor_data(sensors: Sensors, numbers: Numbers, raw: Raw, measured: Measured) -> SensorData {
    match numbers {
        Numbers::Right => measured.data(sensors),
        Numbers::Compatible => SensorData {
            accel: (raw.accel.filter(|_| sensors.accel)).map(|raw| cut_off(raw, 8.192)),
            gyro: (raw.gyro.filter(|_| sensors.gyro)).map(|raw| cut_off(raw, 65.536)),
            magnet: (raw.magnet.filter(|_| sensors.magnet)).map(|raw| cut_off(misread(raw), 0.23)),
            ..SensorData::default()
        },
    }
}

fn cut_off(raw: [i16; 3], divisor: f64) -> AxisData {
    axis_data(raw.map(|digits| (f64::from(digits) / divisor) as i32))
}

/// The bytes X Z Y in big-endian order, misread as X Y Z in little-endian order.
fn misread([x, y, z]: [i16; 3]) -> [i16; 3] {
    [x, z, y].map(i16::swap_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::motion_sensor::units::gyro_milli;

    /// The digits that the hardware sheet reads from the chips.
    const RAW: Raw = Raw {
        accel: Some([-1024, 512, 8192]),
        gyro: Some([571, -571, 5714]),
        magnet: Some([46, -23, -82]),
    };

    fn all(numbers: Numbers) -> [[i32; 3]; 3] {
        let measured = Measured::of(RAW, Gain::Coarse, &Calibration::default());
        let data = sensor_data(Sensors::ALL, numbers, RAW, measured);
        [data.accel, data.gyro, data.magnet].map(|group| {
            let AxisData {
                x_axis,
                y_axis,
                z_axis,
            } = group.unwrap();
            [x_axis, y_axis, z_axis]
        })
    }

    #[test]
    fn the_numbers_are_correct() {
        assert_eq!(
            all(Numbers::Right),
            [[-128, 64, 1024], [10, -10, 100], [200, -100, -400]]
        );
    }

    #[test]
    fn the_numbers_of_the_original_are_available() {
        assert_eq!(
            all(Numbers::Compatible),
            [[-125, 62, 1000], [8, -8, 87], [51200, -90160, -24491]]
        );
    }

    #[test]
    fn only_requested_and_measured_values_are_sent() {
        let wants = Sensors {
            accel: true,
            gyro: true,
            magnet: false,
        };
        let raw = Raw { gyro: None, ..RAW };
        for numbers in [Numbers::Right, Numbers::Compatible] {
            let measured = Measured::of(raw, Gain::Coarse, &Calibration::default());
            let data = sensor_data(wants, numbers, raw, measured);
            assert!(data.accel.is_some());
            assert_eq!((data.gyro, data.magnet), (None, None));
        }
    }

    #[test]
    fn the_finer_gain_gives_the_same_field() {
        let fine = magnet_mgauss([134, -67, -240], Gain::Fine).map(f64::round);
        assert_eq!(fine, [200.0, -100.0, -400.0]);
    }

    #[test]
    fn known_errors_are_subtracted() {
        let calibration = Calibration::new(Some([1.0, 2.0, -3.5]), Some([10.0, 0.0, -20.0]));
        let measured = Measured::of(RAW, Gain::Coarse, &calibration);
        assert_eq!(gyro_milli(measured).unwrap().z_axis, 103_495);
        assert_eq!(
            measured.magnet_mgauss.unwrap().map(f64::round),
            [190.0, -100.0, -380.0]
        );
    }
}
