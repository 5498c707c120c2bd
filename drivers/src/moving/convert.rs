//! The values of messages in the plane frame of navigation, and back. PURE.
//!
//! Messages have millimetres, degrees to the right, and times since 1970. Navigation has metres,
//! radians to the left, and the time since the start of the driver.

use std::f64::consts::TAU;
use std::time::Duration;

use amber_map::Pose;
use amber_navigation::collision::Imu;
use amber_navigation::kinematics::Wheels;
use amber_navigation::pose_tracker::PoseReading;
use amber_navigation::scan::{self, Beam, Echo};
use amber_values::scan::VALID_MM;
use amber_values::{ImuReading, MapPose, Scan, WheelSpeeds};

/// The scanner reports this distance for an object that is too near; 0 is nothing within range, and
/// the other codes below the shortest distance are errors.
const TOO_NEAR_MM: i32 = 6;
/// Standard gravity, of which the sensors report thousandths.
const GRAVITY_M_S2: f64 = 9.806_65;

/// How to read the scans of a scanner.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scanner {
    /// The time of one turn.
    pub turn: Duration,
}

impl Scanner {
    /// A scan whose last beam was measured at a time.
    ///
    /// Messages list beams from left to right. The scanner turns to the left, so the last one was
    /// measured first.
    pub(crate) fn read(self, scan: &Scan, finished: Duration) -> scan::Scan {
        let points = scan.points();
        let beams = points.iter().rev().map(|point| Beam {
            angle_rad: -point.angle_deg.to_radians(),
            echo: match point.distance_mm {
                0 => Echo::Nothing,
                TOO_NEAR_MM => Echo::TooNear,
                mm if VALID_MM.contains(&mm) => Echo::At(f64::from(mm) / 1000.0),
                _ => Echo::Invalid,
            },
        });
        let beams: Vec<Beam> = beams.collect();
        let gaps = beams.len().saturating_sub(1).max(1) as u32;
        let spread = match (beams.first(), beams.last()) {
            (Some(first), Some(last)) => (last.angle_rad - first.angle_rad).abs().min(TAU),
            _ => 0.0,
        };
        let beam_time = self.turn.mul_f64(spread / TAU) / gaps;
        scan::Scan {
            start: finished.saturating_sub(beam_time * gaps),
            beam_time,
            beams,
        }
    }
}

/// Wheel speeds in metres per second.
pub(crate) fn wheels(speeds: WheelSpeeds) -> Wheels {
    let metres = |mm_s: i32| f64::from(mm_s) / 1000.0;
    Wheels {
        front_left_m_s: metres(speeds.front_left_mm_s),
        front_right_m_s: metres(speeds.front_right_mm_s),
        rear_left_m_s: metres(speeds.rear_left_mm_s),
        rear_right_m_s: metres(speeds.rear_right_mm_s),
    }
}

/// Wheel speeds for a message.
pub(crate) fn wheel_speeds(wheels: Wheels) -> WheelSpeeds {
    // Finite, and far below the range of the type.
    let millimetres = |m_s: f64| (m_s * 1000.0).round() as i32;
    let [front_left, front_right, rear_left, rear_right] = wheels.all_m_s().map(millimetres);
    WheelSpeeds {
        front_left_mm_s: front_left,
        front_right_mm_s: front_right,
        rear_left_mm_s: rear_left,
        rear_right_mm_s: rear_right,
    }
}

/// A reading of the motion sensors; `None` if it lacks acceleration or turn rate.
pub(crate) fn imu(reading: &ImuReading) -> Option<Imu> {
    let (acceleration, rate) = (reading.acceleration_mg?, reading.rate_deg_s?);
    let m_s2 = |mg: f64| mg / 1000.0 * GRAVITY_M_S2;
    Some(Imu {
        turn_rad_s: rate.z.to_radians(),
        ahead_m_s2: m_s2(acceleration.y),
        // The sensor has x to the right.
        left_m_s2: -m_s2(acceleration.x),
    })
}

/// A pose of the location driver; `None` if it does not know the pose.
pub(crate) fn pose(pose: MapPose, time: Duration) -> Option<PoseReading> {
    pose.is_known().then(|| PoseReading {
        time,
        pose: Pose::from(pose),
        quality: pose.quality,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scan_is_reversed_and_its_codes_have_names() {
        let scan = Scan::new(&[-90.0, -30.0, 30.0, 90.0], &[1500, 0, 6, 7], None);
        let scanner = Scanner {
            turn: Duration::from_millis(120),
        };
        let read = scanner.read(&scan.unwrap(), Duration::from_secs(1));
        let angles: Vec<_> = read
            .beams
            .iter()
            .map(|beam| beam.angle_rad.to_degrees())
            .collect();
        assert_eq!(angles.len(), 4);
        assert!((angles[0] + 90.0).abs() < 1e-9 && (angles[3] - 90.0).abs() < 1e-9);
        let echoes: Vec<_> = read.beams.iter().map(|beam| beam.echo).collect();
        assert_eq!(
            echoes,
            [Echo::Invalid, Echo::TooNear, Echo::Nothing, Echo::At(1.5)]
        );
        // Half a turn takes 60 ms.
        assert_eq!(read.start, Duration::from_millis(940));
        assert_eq!(read.end(), Duration::from_secs(1));
    }

    #[test]
    fn scans_of_one_beam_or_none_are_harmless() {
        let scanner = Scanner {
            turn: Duration::from_millis(100),
        };
        for count in [0, 1] {
            let scan = Scan::new(&vec![0.0; count], &vec![500; count], None).unwrap();
            let read = scanner.read(&scan, Duration::from_secs(1));
            assert_eq!((read.beams.len(), read.beam_time), (count, Duration::ZERO));
        }
    }

    #[test]
    fn speeds_survive_the_way_there_and_back() {
        let speeds = WheelSpeeds {
            front_left_mm_s: 1,
            front_right_mm_s: -250,
            rear_left_mm_s: 333,
            rear_right_mm_s: 1200,
        };
        assert_eq!(wheel_speeds(wheels(speeds)), speeds);
        assert_eq!(
            wheel_speeds(Wheels::sides(0.0996, -0.0994)),
            WheelSpeeds::sides(100, -99)
        );
    }

    #[test]
    fn a_pose_has_y_up_and_zeros_are_no_pose() {
        let time = Duration::from_secs(1);
        let read = pose(MapPose::new(1.0, 2.0, 0.5), time).unwrap();
        assert_eq!(read.pose, Pose::new(1.0, -2.0, -0.5));
        assert_eq!(pose(MapPose::default(), time), None);
    }

    #[test]
    fn the_sensors_have_x_to_the_right() {
        use amber_values::Vector;
        let reading = ImuReading {
            acceleration_mg: Some(Vector {
                x: 100.0,
                y: 200.0,
                z: 1000.0,
            }),
            rate_deg_s: Some(Vector {
                x: 0.0,
                y: 0.0,
                z: 90.0,
            }),
            ..ImuReading::default()
        };
        let imu = super::imu(&reading).unwrap();
        assert!((imu.left_m_s2 + 0.980_665).abs() < 1e-9, "{imu:?}");
        assert!((imu.ahead_m_s2 - 1.961_33).abs() < 1e-9);
        assert!((imu.turn_rad_s - TAU / 4.0).abs() < 1e-9);
    }
}
