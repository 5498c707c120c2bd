//! Converts between Galileo's paths and JSON and Amber's devices. PURE.
//!
//! The JSON follows ROS: x ahead, y to the left, z up; angles counter-clockwise; metres, radians
//! and seconds. Poses have y up, while Amber's messages have y down.

use amber_map::{Point, Pose};
use amber_navigation::kinematics::Twist;
use amber_proto::{Device, DeviceType};
use amber_values::scan::Point as ScanPoint;
use amber_values::{ImuReading, Laser, MapPose, Scan, Target};
use serde::Deserialize;
use serde_json::{Value, json};

use super::codec::HEADER;
use super::limits::{MAX_RANGES, MAX_TARGETS, MAX_TEXT_OUT, RADIUS_M};

/// The purpose of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Path {
    /// Takes motions of the body.
    CmdVel,
    /// Sends pose and motion.
    Odom,
    /// Sends the state of the navigation.
    Status,
    /// Sends scans.
    Scan,
    /// Sends acceleration and turn rate.
    Imu,
    /// Sends the pose on the map.
    Pose,
    /// Takes targets, and sends those that are left.
    Goal,
    /// Takes and sends messages of one device of Amber.
    Device(Device),
}

impl Path {
    /// Reads the path of an address; `None` if it is unknown.
    #[must_use]
    pub fn parse(path: &str) -> Option<Self> {
        Some(match path.trim_end_matches('/') {
            "cmd_vel" => Self::CmdVel,
            "odom" => Self::Odom,
            "galileo/status" => Self::Status,
            "scan" => Self::Scan,
            "imu" => Self::Imu,
            "pose" => Self::Pose,
            "goal" => Self::Goal,
            device => Self::Device(parse_device(device)?),
        })
    }
}

/// A device as `amber/2/0` or `roboclaw/0`. The mediator itself is not allowed.
fn parse_device(path: &str) -> Option<Device> {
    let path = path.strip_prefix("amber/").unwrap_or(path);
    let (device_type, id) = path.split_once('/')?;
    let device_type: DeviceType = device_type.parse().ok()?;
    let id: i32 = id.parse().ok()?;
    let is_legal = device_type != DeviceType::MEDIATOR && id >= 0;
    is_legal.then_some(Device::new(device_type, id))
}

/// A motion of the body, as `geometry_msgs/Twist`; missing members are 0. `None` if it is invalid.
#[must_use]
pub fn read_twist(text: &[u8]) -> Option<Twist> {
    #[derive(Deserialize)]
    struct Message {
        #[serde(default)]
        linear: Linear,
        #[serde(default)]
        angular: Angular,
    }
    #[derive(Default, Deserialize)]
    struct Linear {
        #[serde(default)]
        x: f64,
    }
    #[derive(Default, Deserialize)]
    struct Angular {
        #[serde(default)]
        z: f64,
    }
    let message: Message = serde_json::from_slice(text).ok()?;
    let twist = Twist::new(message.linear.x, message.angular.z);
    (twist.forward_m_s.is_finite() && twist.turn_rad_s.is_finite()).then_some(twist)
}

/// Writes a motion of the body.
#[must_use]
pub fn twist(twist: Twist) -> Vec<u8> {
    text(&json!({
        "linear": xyz(twist.forward_m_s, 0.0, 0.0),
        "angular": xyz(0.0, 0.0, twist.turn_rad_s),
    }))
}

/// The measured motion in the status of a foreign robot.
#[must_use]
pub fn read_status(text: &[u8]) -> Option<Twist> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Message {
        current_speed_x: f64,
        #[serde(default)]
        current_speed_theta: f64,
    }
    let message: Message = serde_json::from_slice(text).ok()?;
    let twist = Twist::new(message.current_speed_x, message.current_speed_theta);
    (twist.forward_m_s.is_finite() && twist.turn_rad_s.is_finite()).then_some(twist)
}

/// The pose of a foreign robot. Without a quality, it is exact.
#[must_use]
pub fn read_pose(text: &[u8]) -> Option<MapPose> {
    #[derive(Deserialize)]
    struct Message {
        x: f64,
        y: f64,
        theta: f64,
        #[serde(default = "exact")]
        p: f64,
        stamp: Option<i64>,
    }
    fn exact() -> f64 {
        1.0
    }
    let message: Message = serde_json::from_slice(text).ok()?;
    let numbers = [message.x, message.y, message.theta, message.p];
    if !numbers.iter().all(|number| number.is_finite()) {
        return None;
    }
    let mut pose = MapPose::from(Pose::new(message.x, message.y, message.theta));
    pose.quality = message.p.clamp(0.0, 1.0);
    pose.timestamp_ms = message.stamp.filter(|ms| *ms > 0);
    Some(pose)
}

/// The scan of a foreign robot, as `sensor_msgs/LaserScan`.
#[must_use]
pub fn read_scan(text: &[u8]) -> Option<Scan> {
    #[derive(Deserialize)]
    struct Message {
        angle_min: f64,
        angle_increment: f64,
        ranges: Vec<f64>,
    }
    let message: Message = serde_json::from_slice(text).ok()?;
    // Amber's angles are clockwise and ascending: from left to right.
    let point = |(index, range): (usize, &f64)| {
        let steps = f64::from(u32::try_from(index).unwrap_or(u32::MAX));
        let angle = message.angle_increment.mul_add(steps, message.angle_min);
        // A cast from floating point saturates, and NaN becomes 0.
        #[allow(clippy::cast_possible_truncation)]
        let distance = (range * 1000.0).round().clamp(0.0, 65_535.0) as i32;
        (-angle.to_degrees(), distance)
    };
    let points = message.ranges.iter().enumerate().rev().map(point);
    let (angles, distances): (Vec<_>, Vec<_>) = points.unzip();
    Scan::new(&angles, &distances, None).ok()
}

/// Targets as `{"targets":[{"x","y","radius"}]}`, or one as `geometry_msgs/PoseStamped`.
#[must_use]
pub fn read_targets(text: &[u8]) -> Option<Vec<Target>> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Message {
        Targets { targets: Vec<Place> },
        Pose { pose: PoseMember },
    }
    #[derive(Deserialize)]
    struct PoseMember {
        position: Place,
    }
    #[derive(Deserialize)]
    struct Place {
        x: f64,
        y: f64,
        #[serde(default = "usual_radius")]
        radius: f64,
    }
    fn usual_radius() -> f64 {
        RADIUS_M
    }
    let places = match serde_json::from_slice(text).ok()? {
        Message::Targets { targets } => targets,
        Message::Pose { pose } => vec![pose.position],
    };
    let is_legal = |it: &Place| {
        it.x.is_finite() && it.y.is_finite() && it.radius.is_finite() && it.radius > 0.0
    };
    if places.len() > MAX_TARGETS || !places.iter().all(is_legal) {
        return None;
    }
    let target = |place: &Place| {
        let at = MapPose::from(Pose::new(place.x, place.y, 0.0));
        Target {
            x_m: at.x_m,
            y_m: at.y_m,
            radius_m: place.radius,
        }
    };
    Some(places.iter().map(target).collect())
}

/// `nav_msgs/Odometry` without covariances. Without a known pose, it has no member `pose`.
#[must_use]
pub fn odometry(unix_ms: u64, pose: Option<MapPose>, twist: Twist) -> Vec<u8> {
    let mut message = json!({
        "header": header(unix_ms, "map"),
        "child_frame_id": "base_link",
        "twist": { "twist": {
            "linear": xyz(twist.forward_m_s, 0.0, 0.0),
            "angular": xyz(0.0, 0.0, twist.turn_rad_s),
        } },
    });
    if let Some(pose) = pose.filter(MapPose::is_known) {
        let Pose { at, heading } = pose.into();
        let (sin, cos) = (heading / 2.0).sin_cos();
        message["pose"] = json!({ "pose": {
            "position": xyz(at.x, at.y, 0.0),
            "orientation": { "x": 0.0, "y": 0.0, "z": rounded(sin), "w": rounded(cos) },
        } });
    }
    text(&message)
}

/// The activity of the robot, for `galileo/status`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Status {
    /// The commanded motion.
    pub commanded: Twist,
    /// The measured motion.
    pub measured: Twist,
    /// Whether the robot knows its pose.
    pub has_pose: bool,
    /// The number of targets visited, and of those that are left.
    pub visited: usize,
    /// Targets that are left.
    pub left: usize,
    /// The distance to the next target.
    pub distance_m: Option<f64>,
}

/// The report on `galileo/status`. Amber does not know battery and charger: they are 0.
#[must_use]
pub fn status(status: &Status) -> Vec<u8> {
    let driving = i32::from(status.left > 0);
    text(&json!({
        "navStatus": i32::from(status.has_pose),
        "visualStatus": i32::from(status.has_pose),
        "chargeStatus": 0,
        "loopStatus": 0,
        "power": 0.0,
        "targetNumID": if status.left > 0 { status.visited } else { 0 },
        "targetStatus": driving,
        "targetDistance": rounded(status.distance_m.unwrap_or_default()),
        "angleGoalStatus": 0,
        "controlSpeedX": rounded(status.commanded.forward_m_s),
        "controlSpeedTheta": rounded(status.commanded.turn_rad_s),
        "currentSpeedX": rounded(status.measured.forward_m_s),
        "currentSpeedTheta": rounded(status.measured.turn_rad_s),
    }))
}

/// `sensor_msgs/LaserScan`, with fewer points so that it fits into one frame: each is the nearest
/// of its neighbours. A range of 0 means that nothing is there; so does a distance beyond the limits
/// of the laser.
#[must_use]
pub fn scan(unix_ms: u64, scan: &Scan, laser: &Laser) -> Option<Vec<u8>> {
    let points = scan.points();
    let mut count = points.len().min(MAX_RANGES);
    while count >= 2 {
        let message = text(&scan_of(unix_ms, points, count, laser));
        if fits(&message) {
            return Some(message);
        }
        count -= count.div_ceil(16);
    }
    None
}

/// The scan with this many points, from right to left.
fn scan_of(unix_ms: u64, points: &[ScanPoint], count: usize, laser: &Laser) -> Value {
    let group = points.len().div_ceil(count);
    let groups: Vec<_> = points.chunks(group).collect();
    let angle = |points: &[ScanPoint]| match points {
        [first, .., last] => -f64::midpoint(first.angle_deg, last.angle_deg).to_radians(),
        [only] => -only.angle_deg.to_radians(),
        [] => 0.0,
    };
    let limits_m = laser.min_m..=laser.max_m;
    let range = |points: &&[ScanPoint]| {
        let valid = points.iter().filter(|point| point.is_valid());
        let distances_m = valid.map(|point| f64::from(point.distance_mm) / 1000.0);
        let near = distances_m.filter(|m| limits_m.contains(m));
        near.min_by(f64::total_cmp).map_or(0.0, |near_m| {
            let rounded_m = (near_m * 100.0).round() / 100.0;
            rounded_m.clamp(laser.min_m, laser.max_m)
        })
    };
    let min = groups.last().map_or(0.0, |last| angle(last));
    let max = groups.first().map_or(0.0, |first| angle(first));
    let ranges: Vec<f64> = groups.iter().rev().map(range).collect();
    let steps = u32::try_from(ranges.len().saturating_sub(1)).unwrap_or(u32::MAX);
    json!({
        "header": header(unix_ms, "laser"),
        "angle_min": rounded(min),
        "angle_max": rounded(max),
        "angle_increment": (max - min) / f64::from(steps.max(1)),
        "range_min": rounded(laser.min_m),
        "range_max": rounded(laser.max_m),
        "ranges": ranges,
    })
}

/// `sensor_msgs/Imu` without covariances and orientation.
#[must_use]
pub fn imu(unix_ms: u64, reading: &ImuReading) -> Vec<u8> {
    let axes = |axes: Option<[f64; 3]>| {
        let [x, y, z] = axes.unwrap_or_default();
        xyz(x, y, z)
    };
    text(&json!({
        "header": header(unix_ms, "imu"),
        "angular_velocity": axes(reading.rate_rad_s()),
        "linear_acceleration": axes(reading.acceleration_m_s2()),
    }))
}

/// The pose on the map. `p` is 0 while it is not known.
#[must_use]
pub fn pose(unix_ms: u64, pose: MapPose) -> Vec<u8> {
    let Pose { at, heading } = pose.into();
    let stamp = pose.timestamp_ms.and_then(|ms| u64::try_from(ms).ok());
    text(&json!({
        "x": rounded(at.x),
        "y": rounded(at.y),
        "theta": rounded(heading),
        "p": rounded(pose.quality),
        "stamp": stamp.unwrap_or(unix_ms),
    }))
}

/// The targets that are left, and those that the robot has visited: as many as fit, the newest of
/// the visited ones.
#[must_use]
pub fn targets(next: &[Target], visited: &[Target]) -> Vec<u8> {
    let place = |target: &Target| {
        let at: Point = Pose::from(MapPose::new(target.x_m, target.y_m, 0.0)).at;
        json!({ "x": rounded(at.x), "y": rounded(at.y), "radius": rounded(target.radius_m) })
    };
    let (mut next, mut visited) = (next, visited);
    loop {
        let message = text(&json!({
            "next": next.iter().map(place).collect::<Vec<_>>(),
            "visited": visited.iter().map(place).collect::<Vec<_>>(),
        }));
        match (visited, next) {
            _ if fits(&message) => return message,
            ([_, rest @ ..], _) => visited = rest,
            ([], [rest @ .., _]) => next = rest,
            ([], []) => return message,
        }
    }
}

/// Whether a text fits into one frame.
#[must_use]
pub fn fits(text: &[u8]) -> bool {
    text.len() + HEADER <= MAX_TEXT_OUT
}

/// Why the motion of a client is refused.
#[must_use]
pub fn refusal(why: &str) -> Vec<u8> {
    text(&json!({ "refused": why }))
}

fn text(message: &Value) -> Vec<u8> {
    message.to_string().into_bytes()
}

fn header(unix_ms: u64, frame: &str) -> Value {
    let stamp = json!({ "secs": unix_ms / 1000, "nsecs": unix_ms % 1000 * 1_000_000 });
    json!({ "stamp": stamp, "frame_id": frame })
}

fn xyz(x: f64, y: f64, z: f64) -> Value {
    json!({ "x": rounded(x), "y": rounded(y), "z": rounded(z) })
}

/// Four decimals, and no negative zero: 0.1 mm, and 0.006 degrees.
fn rounded(number: f64) -> f64 {
    (number * 10_000.0).round() / 10_000.0 + 0.0
}

#[cfg(test)]
mod tests;
