//! Converts between the frames and units of RflySim and those of Amber. PURE.
//!
//! RflySim: north, east, down in metres; yaw in radians clockwise from north; body axes forward,
//! right, down. Amber's robot is shown with east along x of the map and north along y (up).

use std::f64::consts::{FRAC_PI_2, TAU};

use amber_map::{Pose, wrap};
use amber_navigation::kinematics::{SkidSteer, Twist, Wheels};
use amber_values::{ImuReading, MapPose, STANDARD_GRAVITY_M_S2, Target, Vector, WheelSpeeds};

use super::limits::TARGET_RADIUS_M;

const EARTH_RADIUS_M: f64 = 6_378_137.0;
/// The wheels of the robot.
const WHEEL_RADIUS_MM: f64 = 60.0;

/// Position and direction on the ground in the frame of RflySim.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct NedPose {
    /// Metres to the north.
    pub north_m: f64,
    /// Metres to the east.
    pub east_m: f64,
    /// Radians clockwise from north.
    pub yaw_rad: f64,
}

/// The presentation of a foreign vehicle on a map of Amber.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum MapFrame {
    /// x is east, y (up) is north.
    #[default]
    Enu,
    /// x is north, y (down) is east.
    Ned,
}

/// The position of a map on the earth.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GpsOrigin {
    /// Degrees.
    pub latitude_deg: f64,
    /// Degrees.
    pub longitude_deg: f64,
    /// Metres.
    pub altitude_m: f64,
}

impl Default for GpsOrigin {
    /// In Kraków, where Amber comes from. Clients take a position of 0, 0 for an absent one.
    fn default() -> Self {
        Self {
            latitude_deg: 50.0680,
            longitude_deg: 19.9125,
            altitude_m: 220.0,
        }
    }
}

impl NedPose {
    /// From a pose of Amber.
    pub fn from_map(pose: MapPose) -> Self {
        let pose = Pose::from(pose);
        Self {
            north_m: pose.at.y,
            east_m: pose.at.x,
            yaw_rad: wrap(FRAC_PI_2 - pose.heading),
        }
    }

    /// On a map of Amber, as exact as possible.
    pub fn to_map(self, frame: MapFrame) -> MapPose {
        match frame {
            MapFrame::Enu => {
                let heading = wrap(FRAC_PI_2 - self.yaw_rad);
                MapPose::from(Pose::new(self.east_m, self.north_m, heading))
            }
            // Clockwise angles and y down in both.
            MapFrame::Ned => MapPose::new(self.north_m, self.east_m, wrap(self.yaw_rad)),
        }
    }

    /// The place of a target on a map of Amber, with the direction from here to there.
    pub fn towards(self, target: Target, frame: MapFrame) -> Self {
        let (north_m, east_m) = match frame {
            MapFrame::Enu => (-target.y_m, target.x_m),
            MapFrame::Ned => (target.x_m, target.y_m),
        };
        let (north, east) = (north_m - self.north_m, east_m - self.east_m);
        Self {
            north_m,
            east_m,
            yaw_rad: east.atan2(north),
        }
    }

    /// Velocity to the north and east of a robot that drives forward.
    pub fn velocity_m_s(self, forward_m_s: f64) -> [f64; 2] {
        let (sin, cos) = self.yaw_rad.sin_cos();
        [forward_m_s * cos, forward_m_s * sin]
    }

    /// The forward part of a velocity to the north and east.
    pub fn forward_m_s(self, north_m_s: f64, east_m_s: f64) -> f64 {
        let (sin, cos) = self.yaw_rad.sin_cos();
        north_m_s * cos + east_m_s * sin
    }

    /// The target at a position to the north and east.
    pub fn target(north_m: f64, east_m: f64) -> Target {
        let place = MapPose::from(Pose::new(east_m, north_m, 0.0));
        Target {
            x_m: place.x_m,
            y_m: place.y_m,
            radius_m: TARGET_RADIUS_M,
        }
    }

    /// The target at a position forward and right of here.
    pub fn target_from_here(self, forward_m: f64, right_m: f64) -> Target {
        let (sin, cos) = self.yaw_rad.sin_cos();
        let north_m = self.north_m + forward_m * cos - right_m * sin;
        Self::target(north_m, self.east_m + forward_m * sin + right_m * cos)
    }
}

impl GpsOrigin {
    /// Latitude and longitude in degrees and altitude in metres of a place near the origin.
    pub fn position(self, pose: NedPose) -> [f64; 3] {
        let north = (pose.north_m / EARTH_RADIUS_M).to_degrees();
        let parallel_m = EARTH_RADIUS_M * self.latitude_deg.to_radians().cos();
        let east = (pose.east_m / parallel_m).to_degrees();
        [
            self.latitude_deg + north,
            self.longitude_deg + east,
            self.altitude_m,
        ]
    }

    /// The same in 1e-7 degrees and millimetres.
    pub fn whole_position(self, pose: NedPose) -> [i32; 3] {
        let [latitude, longitude, altitude] = self.position(pose);
        // Casts from floating point saturate.
        [
            (latitude * 1e7).round() as i32,
            (longitude * 1e7).round() as i32,
            (altitude * 1e3) as i32,
        ]
    }
}

/// Acceleration in m/s² and turn rates in rad/s along forward, right, down.
pub fn body_axes(reading: &ImuReading) -> Option<([f64; 3], [f64; 3])> {
    let turned = |[ahead, left, up]: [f64; 3]| [ahead, -left, -up];
    let (acceleration, rates) = (reading.acceleration_m_s2()?, reading.rate_rad_s()?);
    Some((turned(acceleration), turned(rates)))
}

/// The reverse of [`body_axes`].
pub fn imu_reading(acceleration_m_s2: [f64; 3], rates_rad_s: [f64; 3], time_s: f64) -> ImuReading {
    let turned = |[forward, right, down]: [f64; 3]| Vector {
        x: right,
        y: forward,
        z: -down,
    };
    ImuReading {
        acceleration_mg: Some(turned(
            acceleration_m_s2.map(|a| a / STANDARD_GRAVITY_M_S2 * 1000.0),
        )),
        rate_deg_s: Some(turned(rates_rad_s.map(f64::to_degrees))),
        field_mgauss: None,
        attitude: None,
        // Casts from floating point saturate.
        timestamp_ms: Some((time_s * 1000.0) as u32),
    }
}

/// Acceleration along forward, right, down of a robot at rest, in m/s².
pub const AT_REST_M_S2: [f64; 3] = [0.0, 0.0, -STANDARD_GRAVITY_M_S2];

/// The wheel speeds for this motion of a robot with this drive, without a speed limit.
pub fn wheel_speeds(drive: SkidSteer, forward_m_s: f64, turn_rad_s: f64) -> WheelSpeeds {
    let half = turn_rad_s * drive.track_m / 2.0;
    Wheels::sides(forward_m_s - half, forward_m_s + half).into()
}

/// The motion of the body at these wheel speeds.
pub fn twist(drive: SkidSteer, speeds: WheelSpeeds) -> Twist {
    drive.twist(Wheels::from(speeds))
}

/// The speeds of the wheels in rpm: front left, front right, rear left, rear right.
pub fn wheels_rpm(speeds: WheelSpeeds) -> [f32; 8] {
    let rpm = |mm_s: i32| (f64::from(mm_s) / (TAU * WHEEL_RADIUS_MM) * 60.0) as f32;
    let (left, right) = (rpm(speeds.front_left_mm_s), rpm(speeds.front_right_mm_s));
    let rear = (rpm(speeds.rear_left_mm_s), rpm(speeds.rear_right_mm_s));
    [left, right, rear.0, rear.1, 0.0, 0.0, 0.0, 0.0]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-9
    }

    #[test]
    fn poses_of_amber_in_the_frame_of_rflysim() {
        // Heading along x of the map, which is east; y of messages points down, so -3 is north.
        let pose = NedPose::from_map(MapPose::new(2.0, -3.0, 0.0));
        assert!(close(pose.north_m, 3.0) && close(pose.east_m, 2.0));
        assert!(close(pose.yaw_rad, FRAC_PI_2));
        let [north, east] = pose.velocity_m_s(0.5);
        assert!(close(north, 0.0) && close(east, 0.5));
        assert!(close(pose.forward_m_s(1.0, 0.5), 0.5));
        let target = pose.target_from_here(1.0, 2.0);
        assert!(
            close(target.x_m, 3.0) && close(target.y_m, -1.0),
            "{target:?}"
        );
    }

    #[test]
    fn poses_of_rflysim_on_maps_of_amber() {
        let north = NedPose {
            north_m: 1.0,
            east_m: 2.0,
            yaw_rad: 0.0,
        };
        let map = north.to_map(MapFrame::Enu);
        assert!(close(map.x_m, 2.0) && close(map.y_m, -1.0));
        // Clockwise from x: north is up.
        assert!(close(map.heading_rad, -FRAC_PI_2));
        let map = north.to_map(MapFrame::Ned);
        assert!(close(map.x_m, 1.0) && close(map.y_m, 2.0) && close(map.heading_rad, 0.0));
    }

    #[test]
    fn targets_on_maps_of_amber() {
        let here = NedPose {
            north_m: 1.0,
            east_m: 2.0,
            yaw_rad: 0.3,
        };
        // 3 m to the east of here; y of messages points down.
        let there = here.towards(Target::new(5.0, -1.0), MapFrame::Enu);
        assert!(close(there.north_m, 1.0) && close(there.east_m, 5.0));
        assert!(close(there.yaw_rad, FRAC_PI_2));
        let there = here.towards(Target::new(4.0, 2.0), MapFrame::Ned);
        assert!(close(there.north_m, 4.0) && close(there.yaw_rad, 0.0));
    }

    #[test]
    fn gps_positions() {
        let origin = GpsOrigin {
            latitude_deg: 60.0,
            longitude_deg: 20.0,
            altitude_m: 50.0,
        };
        let pose = NedPose {
            north_m: 111.319_49,
            east_m: 111.319_49,
            yaw_rad: 0.0,
        };
        let [latitude, longitude, altitude] = origin.position(pose);
        assert!((latitude - 60.001).abs() < 1e-8 && (longitude - 20.002).abs() < 1e-8);
        assert!(close(altitude, 50.0));
        assert_eq!(
            origin.whole_position(pose),
            [600_010_000, 200_020_000, 50_000]
        );
    }

    #[test]
    fn a_robot_at_rest_that_turns_left() {
        let reading = ImuReading {
            acceleration_mg: Some(Vector {
                x: 0.0,
                y: 0.0,
                z: 1000.0,
            }),
            rate_deg_s: Some(Vector {
                x: 0.0,
                y: 0.0,
                z: 90.0,
            }),
            ..ImuReading::default()
        };
        let (acceleration, rates) = body_axes(&reading).unwrap();
        assert_eq!(acceleration, AT_REST_M_S2);
        // Left is negative about the axis down.
        assert!(close(rates[2], -FRAC_PI_2));
    }

    #[test]
    fn wheel_speeds_in_rpm() {
        // 60 mm radius: 377 mm a turn.
        let rpm = wheels_rpm(WheelSpeeds::sides(377, -377));
        assert!(
            (rpm[0] - 60.0).abs() < 0.01 && (rpm[1] + 60.0).abs() < 0.01,
            "{rpm:?}"
        );
    }

    proptest! {
        #[test]
        fn poses_return(x in -50.0..50.0_f64, y in -50.0..50.0_f64, heading in -3.1..3.1_f64) {
            let pose = MapPose::new(x, y, heading);
            let again = NedPose::from_map(pose).to_map(MapFrame::Enu);
            prop_assert!(close(again.x_m, x) && close(again.y_m, y));
            prop_assert!(close(wrap(again.heading_rad - heading), 0.0));
        }

        #[test]
        fn readings_return(a in prop::array::uniform3(-20.0..20.0_f64), r in prop::array::uniform3(-5.0..5.0_f64)) {
            let (acceleration, rates) = body_axes(&imu_reading(a, r, 1.5)).unwrap();
            for i in 0..3 {
                prop_assert!(close(acceleration[i], a[i]) && close(rates[i], r[i]));
            }
        }
    }
}
