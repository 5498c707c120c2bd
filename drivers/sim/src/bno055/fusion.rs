//! What the chip computes: its attitude, and its calibration. PURE.
//!
//! The algorithm of the real chip is secret; this one behaves about like it. The gyroscope is calibrated
//! while the robot stands still, and the magnetometer while it turns. A profile that was written
//! makes this faster. The accelerometer is never calibrated: a robot on the ground does not tilt.

use std::time::Duration;

use crate::motion_sensor::Senses;
use crate::ninedof::Axes;

/// Standing still for this time calibrates the gyroscope.
const STILL_S: f64 = 1.0;
/// Turns by so many degrees are one, two and three levels of the magnetometer.
const TURNS_DEG: [f64; 3] = [60.0, 180.0, 360.0];
/// With a profile, much less is enough.
const WITH_PROFILE: f64 = 0.05;
/// A gyroscope that turns less may stand still.
const MOST_AT_REST_DEG_S: f64 = 3.0;

/// A sample follows the field by this part of the difference, and the gyroscope by the rest. From a
/// larger difference on it jumps: somebody has put the robot elsewhere.
const FOLLOWS: f64 = 0.02;
const JUMPS_FROM_DEG: f64 = 10.0;
/// The same for gravity.
const TILTS: f64 = 0.1;

/// Digits of the profile per gauss, and per degree per second.
const PER_GAUSS: f64 = 1_600.0;
const PER_DEG_S: f64 = 16.0;
/// The places of the offsets in the profile.
const MAGNET: usize = 6;
const GYRO: usize = 12;

/// What a chip knows of its errors: three offsets of x y z, and two radii.
#[derive(Clone, Debug)]
pub(super) struct Profile {
    bytes: [u8; 22],
    /// Whether it was written.
    is_given: bool,
}

impl Default for Profile {
    fn default() -> Self {
        let mut bytes = [0; 22];
        // The radii.
        bytes[18..].copy_from_slice(&[0xE8, 0x03, 0xE0, 0x01]);
        Self {
            bytes,
            is_given: false,
        }
    }
}

impl Profile {
    pub(super) fn read(&self, place: u8) -> u8 {
        self.bytes[usize::from(place)]
    }

    pub(super) fn write(&mut self, place: u8, value: u8) {
        self.bytes[usize::from(place)] = value;
        self.is_given = true;
    }

    fn offset(&self, first: usize, per_unit: f64) -> Axes {
        [0, 2, 4].map(|axis| {
            let place = first + axis;
            f64::from(i16::from_le_bytes([
                self.bytes[place],
                self.bytes[place + 1],
            ])) / per_unit
        })
    }

    fn set_offset(&mut self, first: usize, per_unit: f64, offset: Axes) {
        for (axis, value) in offset.into_iter().enumerate() {
            let place = first + 2 * axis;
            let bytes = ((value * per_unit).round() as i16).to_le_bytes();
            self.bytes[place..place + 2].copy_from_slice(&bytes);
        }
    }
}

/// A sample.
#[derive(Clone, Debug)]
pub(super) struct Sample {
    pub(super) accel_g: Axes,
    pub(super) field_gauss: Axes,
    pub(super) gyro_deg_s: Axes,
    /// Heading, roll, pitch.
    pub(super) euler_deg: Axes,
    /// From the axes of the chip to east, north and up.
    pub(super) quaternion: [f64; 4],
    pub(super) linear_g: Axes,
    pub(super) gravity_g: Axes,
    /// As in CALIB_STAT.
    pub(super) levels: u8,
}

/// The state of the computation, which begins anew with each change of the mode.
#[derive(Clone, Debug, Default)]
pub(super) struct Fusion {
    last: Option<Duration>,
    up: Option<Axes>,
    /// Of y, clockwise from north.
    heading_deg: Option<f64>,
    still_s: f64,
    turned_deg: f64,
}

impl Fusion {
    pub(super) fn take(
        &mut self,
        time: Duration,
        senses: &mut Senses<'_>,
        profile: &mut Profile,
    ) -> Sample {
        let passed_s = self.last.map_or(0.0, |last| (time - last).as_secs_f64());
        self.last = Some(time);
        let (accel_g, gyro_deg_s) = senses.inertia(time);
        let gyro_deg_s = minus(gyro_deg_s, profile.offset(GYRO, PER_DEG_S));
        let field_gauss = minus(senses.field_gauss(time), profile.offset(MAGNET, PER_GAUSS));

        let up = match self.up {
            None => accel_g,
            Some(up) => [0, 1, 2].map(|k| up[k] + TILTS * (accel_g[k] - up[k])),
        };
        let up = unit(up);
        self.up = Some(up);
        let heading_deg = self.turn(passed_s, gyro_deg_s, measured_heading(field_gauss, up));
        let levels = self.calibrate(passed_s, gyro_deg_s, senses, profile);
        let roll_deg = (-up[0]).atan2(up[2]).to_degrees();
        let pitch_deg = up[1].atan2(up[0].hypot(up[2])).to_degrees();
        Sample {
            accel_g,
            field_gauss,
            gyro_deg_s,
            euler_deg: [heading_deg, roll_deg, pitch_deg],
            quaternion: quaternion(up, heading_deg),
            linear_g: minus(accel_g, up),
            gravity_g: up,
            levels,
        }
    }

    /// The heading after a turn.
    fn turn(&mut self, passed_s: f64, gyro_deg_s: Axes, measured_deg: f64) -> f64 {
        let heading_deg = match self.heading_deg {
            None => measured_deg,
            Some(before) => {
                let turned = before - gyro_deg_s[2] * passed_s;
                let off = (measured_deg - turned + 180.0).rem_euclid(360.0) - 180.0;
                let follows = if off.abs() > JUMPS_FROM_DEG {
                    1.0
                } else {
                    FOLLOWS
                };
                turned + follows * off
            }
        };
        let heading_deg = heading_deg.rem_euclid(360.0);
        self.heading_deg = Some(heading_deg);
        heading_deg
    }

    /// The levels of the calibration, after what the chip has learned from this sample.
    fn calibrate(
        &mut self,
        passed_s: f64,
        gyro_deg_s: Axes,
        senses: &Senses<'_>,
        profile: &mut Profile,
    ) -> u8 {
        let is_still = (gyro_deg_s.iter()).all(|rate| rate.abs() < MOST_AT_REST_DEG_S);
        let knows_gyro = self.still_s >= STILL_S;
        if is_still {
            self.still_s += passed_s;
        } else {
            self.turned_deg += gyro_deg_s[2].abs() * passed_s;
        }
        if !knows_gyro && self.still_s >= STILL_S {
            profile.set_offset(GYRO, PER_DEG_S, senses.gyro_bias_deg_s());
        }
        let factor = if profile.is_given { WITH_PROFILE } else { 1.0 };
        let magnet = TURNS_DEG.map(|turn| self.turned_deg >= turn * factor);
        let magnet = magnet.into_iter().map(u8::from).sum::<u8>();
        if magnet == 3 {
            profile.set_offset(MAGNET, PER_GAUSS, senses.hard_iron_gauss());
        }
        let gyro = if self.still_s >= STILL_S { 3 } else { 0 };
        let system = magnet.min(gyro);
        system << 6 | gyro << 4 | magnet
    }
}

/// The heading of y that the field shows, in degrees clockwise from north.
fn measured_heading(field: Axes, up: Axes) -> f64 {
    let east = unit(cross(field, up));
    let north = cross(up, east);
    east[1].atan2(north[1]).to_degrees()
}

fn quaternion(up: Axes, heading_deg: f64) -> [f64; 4] {
    let (sin, cos) = heading_deg.to_radians().sin_cos();
    let left = unit(cross(up, [0.0, 1.0, 0.0]));
    let ahead = cross(left, up);
    let north = [0, 1, 2].map(|k| cos * ahead[k] + sin * left[k]);
    let east = cross(north, up);
    let root = |square: f64| square.max(0.0).sqrt() / 2.0;
    [
        root(1.0 + east[0] + north[1] + up[2]),
        root(1.0 + east[0] - north[1] - up[2]).copysign(up[1] - north[2]),
        root(1.0 - east[0] + north[1] - up[2]).copysign(east[2] - up[0]),
        root(1.0 - east[0] - north[1] + up[2]).copysign(north[0] - east[1]),
    ]
}

fn minus(a: Axes, b: Axes) -> Axes {
    [a[0] - b[0], a[1] - b[1], a[2] - b[2]]
}

fn cross(a: Axes, b: Axes) -> Axes {
    [
        a[1] * b[2] - a[2] * b[1],
        a[2] * b[0] - a[0] * b[2],
        a[0] * b[1] - a[1] * b[0],
    ]
}

/// The direction; up if there is none.
fn unit(axes: Axes) -> Axes {
    let length = axes.iter().map(|axis| axis * axis).sum::<f64>().sqrt();
    match length > 1e-6 {
        true => axes.map(|axis| axis / length),
        false => [0.0, 0.0, 1.0],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_quaternion_is_that_of_the_hardware_sheet() {
        let digits = |heading_deg| {
            let turned = quaternion([0.0, 0.0, 1.0], heading_deg);
            turned.map(|it| (it * 16_384.0).round() as i16)
        };
        assert_eq!(digits(0.0), [16_384, 0, 0, 0]);
        assert_eq!(digits(90.0), [0x2D41, 0, 0, -0x2D41]);
    }
}
