//! Heading and tilt, from the directions of gravity and magnetic north. PURE.

use amber_proto::ninedof::Attitude;

use super::calibration::Calibration;
use super::units::{Axes, Measured};

/// Heading and tilt of a robot that stands still or moves steadily. `None` if a sensor is missing,
/// in free fall, or at a magnetic pole.
pub fn attitude(measured: Measured, calibration: &Calibration) -> Option<Attitude> {
    let up = unit(measured.accel_mg?)?;
    let east = unit(cross(measured.magnet_mgauss?, up))?;
    let north = cross(up, east);
    let heading = east[1].atan2(north[1]).to_degrees().rem_euclid(360.0) as f32;
    Some(Attitude {
        // A heading that rounds up to a full turn becomes 0.
        heading_deg: Some(if heading < 360.0 { heading } else { 0.0 }),
        pitch_deg: Some(up[1].atan2(up[0].hypot(up[2])).to_degrees() as f32),
        roll_deg: Some((-up[0]).atan2(up[2]).to_degrees() as f32),
        heading_calibrated: Some(calibration.knows_magnet()),
    })
}

fn cross(a: Axes, b: Axes) -> Axes {
    [
        a[1] * b[2] - a[2] * b[1],
        a[2] * b[0] - a[0] * b[2],
        a[0] * b[1] - a[1] * b[0],
    ]
}

fn unit(axes: Axes) -> Option<Axes> {
    /// Units are thousandths: a shorter vector counts as zero.
    const NOTHING: f64 = 1.0;
    let length = axes.iter().map(|axis| axis * axis).sum::<f64>().sqrt();
    (length > NOTHING).then(|| axes.map(|axis| axis / length))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn felt(accel_mg: Axes, magnet_mgauss: Axes) -> Option<(f32, f32, f32)> {
        let measured = Measured {
            accel_mg: Some(accel_mg),
            gyro_deg_s: None,
            magnet_mgauss: Some(magnet_mgauss),
        };
        let attitude = attitude(measured, &Calibration::default())?;
        Some((
            attitude.heading_deg?,
            attitude.pitch_deg?,
            attitude.roll_deg?,
        ))
    }

    /// The readings of a robot with this heading, pitch and roll, applied in this order.
    fn sensed(heading_deg: f64, pitch_deg: f64, roll_deg: f64) -> (Axes, Axes) {
        let (h, p, r) = (
            heading_deg.to_radians(),
            pitch_deg.to_radians(),
            roll_deg.to_radians(),
        );
        // From east, north, up to the robot's right, ahead, up.
        let turned = |[e, n, u]: Axes| {
            let (x, y) = (e * h.cos() - n * h.sin(), e * h.sin() + n * h.cos());
            let (y, z) = (y * p.cos() + u * p.sin(), u * p.cos() - y * p.sin());
            [x * r.cos() - z * r.sin(), y, z * r.cos() + x * r.sin()]
        };
        (turned([0.0, 0.0, 1000.0]), turned([0.0, 200.0, -450.0]))
    }

    #[test]
    fn level_headings_are_clockwise_from_north() {
        for (field, heading) in [
            ([0.0, 200.0, -450.0], 0.0),
            ([-200.0, 0.0, -450.0], 90.0),
            ([0.0, -200.0, -450.0], 180.0),
            ([200.0, 0.0, -450.0], 270.0),
        ] {
            let (seen, pitch, roll) = felt([0.0, 0.0, 1000.0], field).unwrap();
            assert!((seen - heading).abs() < 1e-3, "{field:?}: {seen}");
            assert_eq!((pitch, roll), (0.0, 0.0));
        }
    }

    #[test]
    fn a_tilt_does_not_change_the_heading() {
        for heading in [0.5, 80.0, 200.0, 359.5] {
            for pitch in [-30.0, 0.0, 20.0] {
                for roll in [-25.0, 0.0, 15.0] {
                    let (accel, field) = sensed(heading, pitch, roll);
                    let (h, p, r) = felt(accel, field).unwrap();
                    let close = |a: f32, b: f64| (f64::from(a) - b).abs() < 1e-3;
                    assert!(
                        close(h, heading) && close(p, pitch) && close(r, roll),
                        "{heading} {pitch} {roll}: {h} {p} {r}"
                    );
                }
            }
        }
    }

    #[test]
    fn without_gravity_or_north_there_is_no_attitude() {
        assert_eq!(felt([0.0; 3], [0.0, 200.0, -450.0]), None);
        assert_eq!(felt([0.0, 0.0, 1000.0], [0.0, 0.0, -450.0]), None);
        let uncalibrated = Calibration::default();
        let calibrated = Calibration::default().with_magnet([80.0, -60.0, 0.0]);
        for (calibration, is_calibrated) in [(uncalibrated, false), (calibrated, true)] {
            let level = Measured {
                accel_mg: Some([0.0, 0.0, 1000.0]),
                gyro_deg_s: None,
                magnet_mgauss: Some([0.0, 200.0, -450.0]),
            };
            let attitude = attitude(level, &calibration).unwrap();
            assert_eq!(attitude.heading_calibrated, Some(is_calibrated));
        }
        assert_eq!(attitude(Measured::default(), &Calibration::default()), None);
    }
}
