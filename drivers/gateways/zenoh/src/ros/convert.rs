//! Measurements of Amber as messages of ROS 2, and orders of ROS 2 for Amber. PURE.
//!
//! Frames and signs are those of REP 103 and REP 105: `map` -> `odom` -> `base_link`, in it `laser`,
//! `imu` and `camera_optical_frame`; x ahead, y to the left, angles counter-clockwise.

use std::time::Duration;

use amber_map::{Cell, Mounting, Occupancy, Pose};
use amber_navigation::kinematics::{SkidSteer, Twist as Motion, Wheels};
use amber_navigation::odometry::Odometry as WheelOdometry;
use amber_proto::location::{Covariance, KnownPose, Quality};
use amber_robot::here;
use amber_ros2::messages::{
    Header, Imu, JointState, LaserScan, MagneticField, MapMetaData, OccupancyGrid, Odometry, Path,
    Pose as RosPose, PoseStamped, PoseWithCovariance, PoseWithCovarianceStamped, Quaternion, Time,
    Transform, TransformStamped, Twist, TwistStamped, TwistWithCovariance, Vector3,
};
use amber_values::{ImuReading, Laser, MapPose, Scan, Target, WheelSpeeds};

/// The frames of one robot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frames {
    pub map: String,
    /// The start of the robot, according to the wheels.
    pub odom: String,
    /// The robot: the centre between its wheels.
    pub base: String,
    /// The laser scanner.
    pub laser: String,
    /// The motion sensors.
    pub imu: String,
    /// The camera: x to the right in the picture, y down, z into the scene.
    pub camera: String,
}

/// The standard deviations of a pose whose driver does not report them, in metres and radians.
const USUAL_PLACE_M: f64 = 0.1;
const USUAL_HEADING_RAD: f64 = 0.1;
/// The variance of unmeasured values, such as the height.
const UNKNOWN: f64 = 1e6;
/// The standard deviations of motion sensors of this kind on a robot that moves: their noise, and the
/// shaking of the floor. Filters take 0 for a perfect sensor.
const ACCELERATION_M_S2: f64 = 0.3;
const RATE_RAD_S: f64 = 0.02;
const FIELD_T: f64 = 2e-6;
/// Tesla in a thousandth of a gauss.
const TESLA_PER_MGAUSS: f64 = 1e-7;

impl Frames {
    /// The frames `map`, `odom` and so on, with a prefix such as `r1/`. The map has none: robots share
    /// it.
    #[must_use]
    pub fn with_prefix(prefix: &str) -> Self {
        let name = |name: &str| format!("{prefix}{name}");
        Self {
            map: "map".to_owned(),
            odom: name("odom"),
            base: name("base_link"),
            laser: name("laser"),
            imu: name("imu"),
            camera: name("camera_optical_frame"),
        }
    }
}

/// A scan. `ended_ns` is when it was complete; its time stamp is that of the first ray.
#[must_use]
pub fn scan(scan: &Scan, laser: &Laser, frames: &Frames, ended_ns: u64) -> LaserScan {
    let even = laser.scan(scan);
    let first_ns = u64::try_from(even.duration.as_nanos()).unwrap_or_default();
    LaserScan {
        header: Header::new(ended_ns.saturating_sub(first_ns), &frames.laser),
        angle_min: even.first_rad as f32,
        angle_max: even.last_rad as f32,
        angle_increment: even.step_rad as f32,
        time_increment: even.step_s as f32,
        scan_time: even.period_s as f32,
        range_min: even.min_m as f32,
        range_max: even.max_m as f32,
        ranges: even.ranges_m.iter().map(|it| *it as f32).collect(),
        intensities: Vec::new(),
    }
}

/// Acceleration and turn rates. The orientation is marked as not measured.
#[must_use]
pub fn imu(reading: &ImuReading, frames: &Frames, stamp_ns: u64) -> Option<Imu> {
    let acceleration = reading.acceleration_m_s2()?;
    let rate = reading.rate_rad_s()?;
    let mut message = Imu {
        header: Header::new(stamp_ns, &frames.imu),
        angular_velocity: vector(rate),
        linear_acceleration: vector(acceleration),
        ..Imu::default()
    };
    message.orientation_covariance[0] = -1.0;
    message.angular_velocity_covariance = diagonal(RATE_RAD_S * RATE_RAD_S);
    message.linear_acceleration_covariance = diagonal(ACCELERATION_M_S2 * ACCELERATION_M_S2);
    Some(message)
}

#[must_use]
pub fn magnetic_field(
    reading: &ImuReading,
    frames: &Frames,
    stamp_ns: u64,
) -> Option<MagneticField> {
    let field = reading.field_mgauss?;
    // Amber has x to the right and y ahead.
    let ahead_left_up = [field.y, 0.0 - field.x, field.z];
    Some(MagneticField {
        header: Header::new(stamp_ns, &frames.imu),
        magnetic_field: vector(ahead_left_up.map(|mgauss| mgauss * TESLA_PER_MGAUSS)),
        magnetic_field_covariance: diagonal(FIELD_T * FIELD_T),
    })
}

/// The covariance of three values that are equally uncertain.
fn diagonal(variance: f64) -> [f64; 9] {
    let mut covariance = [0.0; 9];
    (covariance[0], covariance[4], covariance[8]) = (variance, variance, variance);
    covariance
}

/// The way to a target: points on the map of Amber, which has y down.
#[must_use]
pub fn plan(points: impl Iterator<Item = (f64, f64)>, frames: &Frames, stamp_ns: u64) -> Path {
    let header = Header::new(stamp_ns, &frames.map);
    let points: Vec<_> = points.map(|(x, y)| (x, 0.0 - y)).collect();
    // Each pose looks to the next one, and the last one as that before it.
    let mut heading = 0.0;
    let poses = points.iter().enumerate().map(|(index, (x, y))| {
        if let Some((next_x, next_y)) = points.get(index + 1) {
            heading = (next_y - y).atan2(next_x - x);
        }
        PoseStamped {
            header: header.clone(),
            pose: RosPose::flat(*x, *y, heading),
        }
    });
    let poses = poses.collect();
    Path { header, poses }
}

/// The pose of the robot, according to the wheels.
#[derive(Clone, Debug)]
pub struct WheelState {
    drive: SkidSteer,
    wheel_radius_m: f64,
    odometry: WheelOdometry,
    last: Option<Duration>,
    /// The angles of the wheels in the order of [`JOINTS`].
    turned_rad: [f64; 4],
}

/// The names of the wheels in joint states, in the order of [`Wheels::all_m_s`].
pub const JOINTS: [&str; 4] = [
    "front_left_wheel",
    "front_right_wheel",
    "rear_left_wheel",
    "rear_right_wheel",
];

/// The messages made from wheel speeds.
#[derive(Clone, Debug, PartialEq)]
pub struct Moved {
    /// For the topic `odom`.
    pub odometry: Odometry,
    /// For the topic `tf`.
    pub transform: TransformStamped,
    /// For the topic `joint_states`.
    pub joints: JointState,
}

impl WheelState {
    /// At the origin.
    #[must_use]
    pub fn new(drive: SkidSteer, wheel_radius_m: f64) -> Self {
        Self {
            drive,
            wheel_radius_m,
            odometry: WheelOdometry::new(drive),
            last: None,
            turned_rad: [0.0; 4],
        }
    }

    /// New speeds, measured at `time`: any clock that never goes back. `stamp_ns` is the same time by
    /// the clock of the robot. `None` if the speeds came out of order.
    pub fn handle(
        &mut self,
        time: Duration,
        stamp_ns: u64,
        speeds: WheelSpeeds,
        frames: &Frames,
    ) -> Option<Moved> {
        let wheels = Wheels::from(speeds);
        let is_late = self.last.is_some_and(|last| time <= last);
        if is_late || !self.odometry.handle_wheels(time, wheels) {
            return None;
        }
        let passed_s = self.last.map_or(0.0, |last| (time - last).as_secs_f64());
        self.last = Some(time);
        let rates = wheels.all_m_s().map(|speed| speed / self.wheel_radius_m);
        for (angle, rate) in self.turned_rad.iter_mut().zip(rates) {
            *angle += rate * passed_s;
        }
        let place = self.odometry.pose_at(time);
        let pose = ros_pose(place);
        let twist = self.drive.twist(wheels);
        let odometry = Odometry {
            header: Header::new(stamp_ns, &frames.odom),
            child_frame_id: frames.base.clone(),
            pose: PoseWithCovariance {
                pose,
                // It drifts: only differences are certain.
                covariance: flat_covariance(0.05, 0.1),
            },
            twist: TwistWithCovariance {
                twist: Twist {
                    linear: vector([twist.forward_m_s, 0.0, 0.0]),
                    angular: vector([0.0, 0.0, twist.turn_rad_s]),
                },
                covariance: flat_covariance(0.02, 0.05),
            },
        };
        let transform = transform(place, &frames.odom, &frames.base, stamp_ns);
        let joints = JointState {
            header: Header::new(stamp_ns, ""),
            name: JOINTS.map(str::to_owned).to_vec(),
            position: self.turned_rad.to_vec(),
            velocity: rates.to_vec(),
            effort: Vec::new(),
        };
        Some(Moved {
            odometry,
            transform,
            joints,
        })
    }

    /// The pose of the frame `odom` on the map, if the robot was there at this time. `None` while
    /// the robot does not know its pose.
    #[must_use]
    pub fn map_to_odom(&self, time: Duration, found: &MapPose) -> Option<Pose> {
        let start = self.odometry.pose_at(time).local_pose(Pose::default());
        is_usable(found).then(|| Pose::from(*found).global_pose(start))
    }
}

/// The frame `odom` on the map, for the topic `tf`.
#[must_use]
pub fn odom_frame(place: Pose, frames: &Frames, stamp_ns: u64) -> TransformStamped {
    transform(place, &frames.map, &frames.odom, stamp_ns)
}

/// A pose on the map; `None` while the robot does not know it. Drivers of the original system do not
/// tell the quality.
#[must_use]
pub fn pose(
    found: &MapPose,
    quality: Option<&Quality>,
    frames: &Frames,
    stamp_ns: u64,
) -> Option<PoseWithCovarianceStamped> {
    let told = quality.and_then(|quality| quality.covariance.as_ref());
    is_usable(found).then(|| PoseWithCovarianceStamped {
        header: Header::new(stamp_ns, &frames.map),
        pose: PoseWithCovariance {
            pose: ros_pose(Pose::from(*found)),
            covariance: told
                .and_then(covariance)
                .unwrap_or_else(|| flat_covariance(USUAL_PLACE_M, USUAL_HEADING_RAD)),
        },
    })
}

fn is_usable(found: &MapPose) -> bool {
    let numbers = [found.x_m, found.y_m, found.heading_rad];
    found.is_known() && numbers.iter().all(|number| number.is_finite())
}

/// That of a driver, whose y is down and whose angles are clockwise. `None` if it is invalid.
fn covariance(told: &Covariance) -> Option<[[f64; 6]; 6]> {
    let (x_alfa, y_alfa) = (0.0 - told.x_alfa(), told.y_alfa());
    let xy = 0.0 - told.xy();
    let numbers = [told.xx(), told.yy(), told.alfa_alfa(), xy, x_alfa, y_alfa];
    let is_valid = numbers.iter().all(|number| number.is_finite());
    let mut all = flat_covariance(0.0, 0.0);
    (all[0][0], all[1][1], all[5][5]) = (told.xx(), told.yy(), told.alfa_alfa());
    for (row, column, value) in [(0, 1, xy), (0, 5, x_alfa), (1, 5, y_alfa)] {
        all[row][column] = value;
        all[column][row] = value;
    }
    is_valid.then_some(all)
}

/// A map of cells; `None` if it has more rows or columns than ROS can say.
#[must_use]
pub fn map(cells: &Occupancy, frames: &Frames, stamp_ns: u64) -> Option<OccupancyGrid> {
    let layout = cells.layout();
    let all = (0..layout.rows).flat_map(|row| (0..layout.columns).map(move |column| (column, row)));
    let data = all.map(|(column, row)| match cells.cell(column, row) {
        Cell::Occupied => 100,
        Cell::Free => 0,
        Cell::Unknown => -1,
    });
    Some(OccupancyGrid {
        header: Header::new(stamp_ns, &frames.map),
        info: MapMetaData {
            map_load_time: Time::from_ns(stamp_ns),
            resolution: layout.cell_m as f32,
            width: u32::try_from(layout.columns).ok()?,
            height: u32::try_from(layout.rows).ok()?,
            origin: RosPose::flat(layout.low.x, layout.low.y, 0.0),
        },
        data: data.collect(),
    })
}

/// The reason why an order of ROS is not carried out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// NaN or infinite.
    #[error("a number is NaN or infinite")]
    NotFinite,
    /// It is older than the life of a command.
    #[error("the command is too old")]
    Old,
    /// Its time has not come yet.
    #[error("the command comes from the future: the clocks do not agree")]
    Future,
    /// It is in another frame than the map.
    #[error("the pose must be in the frame {expected}, not in '{found}'")]
    Frame {
        /// That of the map.
        expected: String,
        /// That of the goal.
        found: String,
    },
}

/// The motion of a `cmd_vel`. Only the components that the robot has are used.
///
/// # Errors
/// A number is not finite.
pub fn motion(twist: &Twist) -> Result<Motion, Refusal> {
    let Twist { linear, angular } = twist;
    let numbers = [
        linear.x, linear.y, linear.z, angular.x, angular.y, angular.z,
    ];
    match numbers.iter().all(|number| number.is_finite()) {
        true => Ok(Motion::new(linear.x, angular.z)),
        false => Err(Refusal::NotFinite),
    }
}

/// The time of a command with a header; `None` if it names none.
#[must_use]
pub fn stamp_ns(command: &TwistStamped) -> Option<u64> {
    let stamp = command.header.stamp.as_ns();
    stamp.filter(|stamp_ns| *stamp_ns > 0)
}

/// The position of a goal. Its direction is lost: Amber drives to points.
///
/// # Errors
/// It is in another frame than the map, or a number is not finite.
pub fn goal(goal: &PoseStamped, frames: &Frames) -> Result<Target, Refusal> {
    check_frame(&goal.header, frames)?;
    let place = goal.pose.position;
    match place.x.is_finite() && place.y.is_finite() {
        // The map of Amber has y down.
        true => Ok(Target::new(place.x, 0.0 - place.y)),
        false => Err(Refusal::NotFinite),
    }
}

/// The pose of the robot as a node knows it, for the location driver.
///
/// # Errors
/// It is in another frame than the map, or a number is not finite.
pub fn here(known: &PoseWithCovarianceStamped, frames: &Frames) -> Result<KnownPose, Refusal> {
    check_frame(&known.header, frames)?;
    let PoseWithCovariance { pose, covariance } = known.pose;
    let place = Pose::new(pose.position.x, pose.position.y, pose.orientation.yaw());
    let mut all = [0.0; 36];
    all.copy_from_slice(covariance.as_flattened());
    here::known_pose(place.into(), &all).map_err(|_| Refusal::NotFinite)
}

fn check_frame(header: &Header, frames: &Frames) -> Result<(), Refusal> {
    match header.frame_id.trim_start_matches('/') {
        found if found == frames.map => Ok(()),
        found => Err(Refusal::Frame {
            expected: frames.map.clone(),
            found: found.to_owned(),
        }),
    }
}

/// The position of a part on the robot, for `tf_static`.
#[must_use]
pub fn mount(child: &str, place: Mounting, frames: &Frames, stamp_ns: u64) -> TransformStamped {
    transform(place, &frames.base, child, stamp_ns)
}

fn transform(
    place: impl Into<Mounting>,
    parent: &str,
    child: &str,
    stamp_ns: u64,
) -> TransformStamped {
    let place = place.into();
    let [x, y, z, w] = place.quaternion();
    TransformStamped {
        header: Header::new(stamp_ns, parent),
        child_frame_id: child.to_owned(),
        transform: Transform {
            translation: vector([place.pose.at.x, place.pose.at.y, 0.0]),
            rotation: Quaternion { x, y, z, w },
        },
    }
}

/// A pose on the floor.
#[must_use]
pub fn ros_pose(pose: Pose) -> RosPose {
    RosPose::flat(pose.at.x, pose.at.y, pose.heading)
}

fn vector([x, y, z]: [f64; 3]) -> Vector3 {
    Vector3 { x, y, z }
}

/// Rows and columns: x, y, z, and the rotations around them, from standard deviations.
fn flat_covariance(place_m: f64, heading_rad: f64) -> [[f64; 6]; 6] {
    let place = place_m * place_m;
    let variances = [
        place,
        place,
        UNKNOWN,
        UNKNOWN,
        UNKNOWN,
        heading_rad * heading_rad,
    ];
    let mut covariance = [[0.0; 6]; 6];
    for (index, variance) in variances.into_iter().enumerate() {
        covariance[index][index] = variance;
    }
    covariance
}

#[cfg(test)]
mod tests;
