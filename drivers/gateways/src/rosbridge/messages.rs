//! ROS messages from and to Amber's values. PURE.
//!
//! ROS has metres, radians and seconds, x ahead, y to the left, z up, and turns counter-clockwise
//! (<https://www.ros.org/reps/rep-0103.html>). Amber's messages differ per device; each function
//! says how. Times have the names of ROS 1 (`secs`, `nsecs`) and ROS 2 (`sec`, `nanosec`), because
//! pages for either run unchanged.

use std::time::Duration;

use amber_map::{Cell, Layout, Mounting, Occupancy, Point, Pose};
use amber_navigation::kinematics::Twist;
use amber_proto::camera::Picture;
use amber_proto::location::KnownPose;
use amber_robot::battery::RosBattery;
use amber_robot::here;
use amber_values::{
    CameraOptics, Hazard, ImuReading, Joy, LaserScan, MapPose, NavSatFix, OpticalFrame, Target,
};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::codec::Level;

/// The frame of the map.
pub const MAP: &str = "map";
/// The frame of the wheel odometry, which starts where the gateway started.
pub const ODOMETRY: &str = "odom";
/// The frame of the robot.
pub const ROBOT: &str = "base_link";
/// The frame of the laser.
pub const LASER: &str = "laser";
/// The optical frame of the camera: x to the right in the picture, y down, z into the scene.
pub const CAMERA: &str = "camera_optical_frame";

/// A text with this many cells has less than 1 MB.
const MAX_MAP_CELLS: usize = 250_000;

/// A target counts as reached within this distance, because a ROS goal has none.
const GOAL_RADIUS_M: f64 = 0.3;
/// The usual standard deviations of a pose on the map, and one of what is not measured.
const PLACE_M: f64 = 0.1;
const HEADING_RAD: f64 = 0.1;
const UNKNOWN: f64 = 1000.0;
/// "The covariance is not known" of `sensor_msgs/Imu`: the first element. ROS asks for it where a
/// value is absent.
const ABSENT: f64 = -1.0;

/// Reads a `geometry_msgs/Twist` or `TwistStamped`. An absent member is 0; a motion to the side,
/// which the wheels cannot do, is ignored.
///
/// # Errors
/// A member is not a number.
pub fn twist(msg: &Value) -> Result<Twist, String> {
    let twist = msg.get("twist").unwrap_or(msg);
    Ok(Twist {
        forward_m_s: number(twist, &["linear", "x"])?,
        turn_rad_s: number(twist, &["angular", "z"])?,
    })
}

/// Reads a `geometry_msgs/PoseStamped` in the frame of the map. The heading is ignored:
/// DriveToPoint has none.
///
/// # Errors
/// The frame is not that of the map, or a coordinate is not a number.
pub fn goal(msg: &Value) -> Result<Target, String> {
    check_frame(msg)?;
    if msg.pointer("/pose/position").is_none() {
        return Err("pose.position is missing".into());
    }
    Ok(Target {
        x_m: number(msg, &["pose", "position", "x"])?,
        // Down on Amber's maps.
        y_m: -number(msg, &["pose", "position", "y"])?,
        radius_m: GOAL_RADIUS_M,
    })
}

/// Reads a `geometry_msgs/PoseWithCovarianceStamped` in the frame of the map: where the robot is.
///
/// # Errors
/// The frame is not that of the map, or something is not a number.
pub fn here(msg: &Value) -> Result<KnownPose, String> {
    check_frame(msg)?;
    if msg.pointer("/pose/pose/position").is_none() {
        return Err("pose.pose.position is missing".into());
    }
    let member = |path: &[&str]| number(msg, &[&["pose", "pose"], path].concat());
    let turned = |name| member(&["orientation", name]);
    let [x, y, z, w] = ["x", "y", "z", "w"].map(turned);
    let (x, y, z, w) = (x?, y?, z?, w?);
    // The turn about z. Without an orientation it is 0.
    let heading = (2.0 * (w * z + x * y)).atan2(1.0 - 2.0 * (y * y + z * z));
    let mut covariance = [0.0; 36];
    if let Some(told) = msg.pointer("/pose/covariance") {
        let told = told.as_array().map(|told| told.iter().map(Value::as_f64));
        let told: Option<Vec<f64>> = told.and_then(Iterator::collect);
        let told = told.and_then(|told| told.try_into().ok());
        covariance = told.ok_or("pose.covariance is not a list of 36 numbers")?;
    }
    let place = [member(&["position", "x"])?, member(&["position", "y"])?];
    let pose = Pose::new(place[0], place[1], heading);
    here::known_pose(pose.into(), &covariance).map_err(|error| error.to_string())
}

fn check_frame(msg: &Value) -> Result<(), String> {
    let frame = msg.pointer("/header/frame_id").and_then(Value::as_str);
    match frame {
        Some(frame) if !["", MAP].contains(&frame.trim_start_matches('/')) => {
            Err(format!("frame \"{frame}\" is unknown, use \"{MAP}\""))
        }
        _ => Ok(()),
    }
}

/// A `sensor_msgs/LaserScan` that was complete at this time; its own time is that of the first ray.
/// Where the scanner saw nothing or reports an error, the range is `null`: JSON has no infinity.
pub fn laser_scan(scan: &LaserScan, ended_at: Duration) -> Value {
    let range = |range_m: &f64| range_m.is_finite().then_some(*range_m);
    json!({
        "header": header(ended_at.saturating_sub(scan.duration), LASER),
        "angle_min": scan.first_rad,
        "angle_max": scan.last_rad,
        "angle_increment": scan.step_rad,
        "time_increment": scan.step_s,
        "scan_time": scan.period_s,
        "range_min": scan.min_m,
        "range_max": scan.max_m,
        "ranges": scan.ranges_m.iter().map(range).collect::<Vec<_>>(),
        "intensities": [],
    })
}

/// A `nav_msgs/Odometry`: the pose in the frame of the odometry, and the motion of the robot.
pub fn odometry(pose: Pose, motion: Twist, time: Duration) -> Value {
    json!({
        "header": header(time, ODOMETRY),
        "child_frame_id": ROBOT,
        "pose": { "pose": pose_of(pose), "covariance": vec![0.0; 36] },
        "twist": {
            "twist": {
                "linear": vector(motion.forward_m_s, 0.0, 0.0),
                "angular": vector(0.0, 0.0, motion.turn_rad_s),
            },
            "covariance": vec![0.0; 36],
        },
    })
}

/// A `sensor_msgs/BatteryState`. What is not measured is `null`: JSON has no NaN.
pub fn battery(state: &RosBattery, time: Duration) -> Value {
    json!({
        "header": header(time, ROBOT),
        "voltage": state.voltage,
        "temperature": null,
        "current": state.current,
        "charge": null,
        "capacity": null,
        "design_capacity": null,
        "percentage": state.percentage,
        "power_supply_status": state.status,
        "power_supply_health": state.health,
        "power_supply_technology": state.technology,
        "present": state.present,
        "cell_voltage": [],
        "cell_temperature": [],
        "location": "",
        "serial_number": "",
    })
}

/// A `sensor_msgs/NavSatFix`. What is unknown is `null`: JSON has no NaN. Receivers use all systems of
/// satellites; the service is that of GPS.
pub fn nav_sat_fix(fix: &NavSatFix, time: Duration) -> Value {
    json!({
        "header": header(time, ROBOT),
        "status": { "status": fix.status, "service": 1 },
        "latitude": fix.latitude_deg,
        "longitude": fix.longitude_deg,
        "altitude": fix.altitude_m,
        "position_covariance": fix.covariance_m2,
        "position_covariance_type": fix.covariance_kind,
    })
}

/// A `sensor_msgs/Joy`.
pub fn joy(joy: &Joy, time: Duration) -> Value {
    json!({ "header": header(time, "joy"), "axes": joy.axes, "buttons": joy.buttons })
}

/// An `irobot_create_msgs/HazardDetectionVector`.
pub fn hazards(hazards: &[Hazard], time: Duration) -> Value {
    let detection =
        |hazard: &Hazard| json!({ "header": header(time, hazard.frame), "type": hazard.kind });
    json!({
        "header": header(time, ROBOT),
        "detections": hazards.iter().map(detection).collect::<Vec<_>>(),
    })
}

/// A `sensor_msgs/CompressedImage` with a JPEG file. As in all programs for rosbridge, its bytes are a
/// text in base64.
pub fn picture(picture: &Picture, time: Duration) -> Value {
    json!({
        "header": header(time, CAMERA),
        "format": "jpeg",
        "data": STANDARD.encode(picture.data()),
    })
}

/// A `sensor_msgs/CameraInfo`, with the names of ROS 1 (`D`, `K`, `R`, `P`) and ROS 2.
pub fn camera_info(optics: &CameraOptics, time: Duration) -> Value {
    let CameraOptics {
        distortion,
        camera,
        rectification,
        projection,
        ..
    } = optics;
    json!({
        "header": header(time, CAMERA),
        "height": optics.height_px,
        "width": optics.width_px,
        "distortion_model": optics.distortion_model,
        "d": distortion,
        "k": camera,
        "r": rectification,
        "p": projection,
        "D": distortion,
        "K": camera,
        "R": rectification,
        "P": projection,
        "binning_x": 0,
        "binning_y": 0,
        // The whole picture.
        "roi": { "x_offset": 0, "y_offset": 0, "height": 0, "width": 0, "do_rectify": false },
    })
}

/// A `sensor_msgs/Imu` without orientation.
pub fn imu(reading: &ImuReading, time: Duration) -> Value {
    let axes = |axes: Option<[f64; 3]>| {
        let [x, y, z] = axes.unwrap_or_default();
        vector(x, y, z)
    };
    let covariance = |is_known: bool| {
        let mut covariance = [0.0; 9];
        if !is_known {
            covariance[0] = ABSENT;
        }
        covariance
    };
    let (rate, acceleration) = (reading.rate_rad_s(), reading.acceleration_m_s2());
    json!({
        "header": header(time, ROBOT),
        "orientation": quaternion(0.0),
        "orientation_covariance": covariance(false),
        "angular_velocity": axes(rate),
        "angular_velocity_covariance": covariance(rate.is_some()),
        "linear_acceleration": axes(acceleration),
        "linear_acceleration_covariance": covariance(acceleration.is_some()),
    })
}

/// A `geometry_msgs/PoseStamped` on the map.
pub fn pose(pose: MapPose, time: Duration) -> Value {
    json!({ "header": header(time, MAP), "pose": bare_pose(pose) })
}

/// A `geometry_msgs/Pose` on the map.
pub fn bare_pose(pose: MapPose) -> Value {
    pose_of(Pose::from(pose))
}

/// A `geometry_msgs/PoseWithCovarianceStamped` on the map. Amber's poses have no covariance.
pub fn pose_with_covariance(pose: MapPose, time: Duration) -> Value {
    let mut covariance = [0.0; 36];
    for (axis, deviation) in [PLACE_M, PLACE_M, UNKNOWN, UNKNOWN, UNKNOWN, HEADING_RAD]
        .into_iter()
        .enumerate()
    {
        covariance[7 * axis] = deviation * deviation;
    }
    json!({
        "header": header(time, MAP),
        "pose": { "pose": bare_pose(pose), "covariance": covariance.to_vec() },
    })
}

/// The place of a frame in its parent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FramePlace {
    translation_m: [f64; 3],
    /// x, y, z and w.
    rotation: [f64; 4],
}

impl From<Mounting> for FramePlace {
    fn from(place: Mounting) -> Self {
        Self {
            translation_m: [place.pose.at.x, place.pose.at.y, 0.0],
            rotation: place.quaternion(),
        }
    }
}

impl From<Pose> for FramePlace {
    fn from(pose: Pose) -> Self {
        Mounting::from(pose).into()
    }
}

impl From<OpticalFrame> for FramePlace {
    fn from(frame: OpticalFrame) -> Self {
        Self {
            translation_m: frame.translation_m,
            rotation: frame.rotation,
        }
    }
}

/// A `tf2_msgs/TFMessage`: each parent, its child, and the place of the child in the parent.
pub fn transforms<'a>(
    frames: impl IntoIterator<Item = (&'a str, &'a str, FramePlace)>,
    time: Duration,
) -> Value {
    let frames = frames.into_iter().map(|(parent, child, place)| {
        let ([ahead, left, up], [x, y, z, w]) = (place.translation_m, place.rotation);
        json!({
            "header": header(time, parent),
            "child_frame_id": child,
            "transform": {
                "translation": vector(ahead, left, up),
                "rotation": { "x": x, "y": y, "z": z, "w": w },
            },
        })
    });
    json!({ "transforms": frames.collect::<Vec<_>>() })
}

/// A `rcl_interfaces/Log` of the gateway.
pub fn log(level: Level, text: &str, time: Duration) -> Value {
    let number = match level {
        Level::Info => 20,
        Level::Warning => 30,
        Level::Error | Level::None => 40,
    };
    json!({
        "stamp": stamp(time),
        "level": number,
        "name": "amber",
        "msg": text,
        "file": "",
        "function": "",
        "line": 0,
    })
}

/// A `nav_msgs/OccupancyGrid`: 100 is occupied, 0 free and -1 unknown. A large map gets larger cells.
pub fn map(grid: &Occupancy, time: Duration) -> Value {
    if grid.layout().cells() > MAX_MAP_CELLS {
        return map(&grid.coarser(), time);
    }
    let Layout {
        low,
        cell_m,
        columns,
        rows,
    } = *grid.layout();
    // From the lower left corner, as in Amber.
    let cells = (0..rows).flat_map(|row| (0..columns).map(move |column| (column, row)));
    let data = cells.map(|(column, row)| match grid.cell(column, row) {
        Cell::Unknown => -1,
        Cell::Free => 0,
        Cell::Occupied => 100,
    });
    json!({
        "header": header(time, MAP),
        "info": {
            "map_load_time": stamp(time),
            "resolution": cell_m,
            "width": columns,
            "height": rows,
            "origin": { "position": vector(low.x, low.y, 0.0), "orientation": quaternion(0.0) },
        },
        "data": data.collect::<Vec<i32>>(),
    })
}

fn header(time: Duration, frame: &str) -> Value {
    json!({ "stamp": stamp(time), "frame_id": frame })
}

/// A time since the Unix epoch, for ROS 1 and ROS 2.
pub fn stamp(time: Duration) -> Value {
    let (s, ns) = (time.as_secs(), time.subsec_nanos());
    json!({ "sec": s, "nanosec": ns, "secs": s, "nsecs": ns })
}

fn pose_of(pose: Pose) -> Value {
    let Point { x, y } = pose.at;
    json!({ "position": vector(x, y, 0.0), "orientation": quaternion(pose.heading) })
}

fn vector(x: f64, y: f64, z: f64) -> Value {
    json!({ "x": x, "y": y, "z": z })
}

/// A turn about z.
fn quaternion(heading_rad: f64) -> Value {
    let (z, w) = (heading_rad / 2.0).sin_cos();
    json!({ "x": 0.0, "y": 0.0, "z": z, "w": w })
}

/// The number at a path; 0 if it is absent.
fn number(msg: &Value, path: &[&str]) -> Result<f64, String> {
    let mut value = msg;
    for name in path {
        match value {
            Value::Object(members) => match members.get(*name) {
                Some(member) => value = member,
                None => return Ok(0.0),
            },
            _ => return Err(format!("{} is not an object", path[0])),
        }
    }
    // JSON texts have no other numbers than finite ones.
    value
        .as_f64()
        .ok_or_else(|| format!("{} is not a number", path.join(".")))
}

#[cfg(test)]
mod tests {
    use amber_values::{Laser, Scan, Vector};

    use super::*;

    const NOON: Duration = Duration::new(1_700_000_000, 250);

    #[test]
    fn a_twist_may_have_a_header_and_gaps() {
        let cases = [
            (json!({}), Ok((0.0, 0.0))),
            (
                json!({"linear": {"x": 0.2, "y": 9}, "angular": {"z": -1}}),
                Ok((0.2, -1.0)),
            ),
            (
                json!({"header": {}, "twist": {"linear": {"x": 0.2}}}),
                Ok((0.2, 0.0)),
            ),
            (
                json!({"linear": {"x": "1"}}),
                Err("linear.x is not a number"),
            ),
            (
                json!({"angular": {"z": null}}),
                Err("angular.z is not a number"),
            ),
            (json!({"linear": 3}), Err("linear is not an object")),
            (json!(7), Err("linear is not an object")),
        ];
        for (msg, expected) in cases {
            let read = twist(&msg).map(|twist| (twist.forward_m_s, twist.turn_rad_s));
            assert_eq!(read, expected.map_err(String::from), "{msg}");
        }
    }

    #[test]
    fn a_goal_is_on_the_map_with_y_down() {
        let msg = |frame: &str| json!({"header": {"frame_id": frame}, "pose": {"position": {"x": 1.5, "y": -2}}});
        for frame in ["", "map", "/map"] {
            let target = goal(&msg(frame)).unwrap();
            assert_eq!((target.x_m, target.y_m, target.radius_m), (1.5, 2.0, 0.3));
        }
        assert!(goal(&msg("odom")).unwrap_err().contains("use \"map\""));
        assert_eq!(goal(&json!({})).unwrap_err(), "pose.position is missing");
    }

    #[test]
    fn a_known_pose_is_on_the_map_with_y_down() {
        let msg = json!({"header": {"frame_id": "map"}, "pose": {
            "pose": {"position": {"x": 1.5, "y": -2}, "orientation": {"z": 1, "w": 0}},
            "covariance": vec![0.25; 36]}});
        let known = here(&msg).unwrap();
        assert_eq!((known.x, known.y, known.sigma), (1.5, 2.0, Some(0.5)));
        assert!((known.alfa.abs() - std::f64::consts::PI).abs() < 1e-9);
        let left =
            json!({"pose": {"pose": {"position": {}, "orientation": {"z": 0.5, "w": 0.866}}}});
        let left = here(&left).unwrap();
        assert!((left.alfa.to_degrees() + 60.0).abs() < 0.1, "{left:?}");
        assert_eq!((left.sigma, left.sigma_alfa), (None, None));
        for (msg, expected) in [
            (json!({}), "pose.pose.position is missing"),
            (
                json!({"header": {"frame_id": "odom"}}),
                "frame \"odom\" is unknown, use \"map\"",
            ),
            (
                json!({"pose": {"pose": {"position": {"x": "1"}}}}),
                "pose.pose.position.x is not a number",
            ),
            (
                json!({"pose": {"pose": {"position": {}}, "covariance": [1]}}),
                "pose.covariance is not a list of 36 numbers",
            ),
        ] {
            assert_eq!(here(&msg).unwrap_err(), expected);
        }
    }

    #[test]
    fn a_scan_turns_counter_clockwise() {
        let scan = Scan::new(&[-90.0, 0.0, 90.0], &[1000, 6, 3000], None).unwrap();
        let laser = Laser {
            max_m: 2.5,
            ..Laser::default()
        };
        let ended = NOON + Duration::from_millis(50);
        let msg = laser_scan(&laser.scan(&scan), ended);
        let half_pi = std::f64::consts::FRAC_PI_2;
        assert_eq!(msg["angle_min"], -half_pi);
        assert_eq!(msg["angle_max"], half_pi);
        assert_eq!(msg["angle_increment"], half_pi);
        assert_eq!(msg["time_increment"], 0.025);
        // The right side first, which is beyond the limit; 6 is the code for "too near".
        assert_eq!(msg["ranges"], json!([null, null, 1.0]));
        assert_eq!(
            (&msg["range_min"], &msg["range_max"]),
            (&json!(0.02), &json!(2.5))
        );
        // The first ray was measured half a turn before the last one.
        assert_eq!(
            msg["header"]["stamp"],
            json!({"sec": 1_700_000_000, "nanosec": 250, "secs": 1_700_000_000, "nsecs": 250})
        );
        let empty = laser.scan(&Scan::new(&[], &[], None).unwrap());
        let empty = laser_scan(&empty, NOON);
        assert_eq!(empty["ranges"], json!([]));
    }

    #[test]
    fn a_battery_tells_only_what_is_measured() {
        let state = RosBattery {
            voltage: Some(12.1),
            health: 1,
            present: true,
            ..RosBattery::default()
        };
        let msg = battery(&state, NOON);
        assert_eq!(
            (&msg["voltage"], &msg["present"]),
            (&json!(12.1), &json!(true))
        );
        assert_eq!(
            (&msg["percentage"], &msg["current"]),
            (&Value::Null, &Value::Null)
        );
        assert_eq!(msg["header"]["frame_id"], "base_link");
    }

    #[test]
    fn a_pose_has_y_up() {
        let msg = pose(MapPose::new(1.0, 2.0, -std::f64::consts::PI), NOON);
        assert_eq!(
            msg["pose"]["position"],
            json!({"x": 1.0, "y": -2.0, "z": 0.0})
        );
        assert_eq!(msg["pose"]["orientation"]["z"], 1.0);
        assert_eq!(msg["header"]["frame_id"], "map");
    }

    #[test]
    fn a_map_begins_at_its_lower_left_corner_and_has_a_bounded_size() {
        let layout = |cells: usize| Layout {
            low: Point::new(-1.0, -2.0),
            cell_m: 0.1,
            columns: cells,
            rows: 2,
        };
        let cells = vec![
            Cell::Occupied,
            Cell::Free,
            Cell::Free,
            Cell::Unknown,
            Cell::Free,
            Cell::Occupied,
        ];
        let grid = Occupancy::from_cells(layout(3), cells).unwrap();
        let msg = map(&grid, NOON);
        assert_eq!(msg["data"], json!([100, 0, 0, -1, 0, 100]));
        let info = &msg["info"];
        assert_eq!(
            (&info["width"], &info["height"], &info["resolution"]),
            (&json!(3), &json!(2), &json!(0.1))
        );
        assert_eq!(
            info["origin"]["position"],
            json!({"x": -1.0, "y": -2.0, "z": 0.0})
        );
        assert_eq!(msg["header"]["frame_id"], "map");

        let large = layout(MAX_MAP_CELLS);
        let grid = Occupancy::from_cells(large, vec![Cell::Free; large.cells()]).unwrap();
        let msg = map(&grid, NOON);
        assert_eq!(msg["info"]["resolution"], 0.2);
        let shown = msg["data"].as_array().unwrap();
        assert_eq!(shown.len(), MAX_MAP_CELLS / 2);
    }

    #[test]
    fn the_motion_of_odometry_is_that_of_the_robot() {
        let motion = Twist {
            forward_m_s: 0.3,
            turn_rad_s: 0.5,
        };
        let msg = odometry(Pose::new(1.0, 2.0, 0.0), motion, NOON);
        assert_eq!(msg["twist"]["twist"]["linear"]["x"], 0.3);
        assert_eq!(msg["twist"]["twist"]["angular"]["z"], 0.5);
        assert_eq!(
            msg["pose"]["pose"]["position"],
            json!({"x": 1.0, "y": 2.0, "z": 0.0})
        );
        assert_eq!(msg["pose"]["pose"]["orientation"]["w"], 1.0);
    }

    #[test]
    fn the_board_has_x_to_the_right() {
        let reading = ImuReading {
            acceleration_mg: Some(Vector {
                x: 100.0,
                y: 200.0,
                z: 1000.0,
            }),
            ..ImuReading::default()
        };
        let msg = imu(&reading, NOON);
        let acceleration = &msg["linear_acceleration"];
        let near = |name: &str, expected: f64| {
            (acceleration[name].as_f64().unwrap() - expected).abs() < 1e-9
        };
        assert!(near("x", 1.961_33) && near("y", -0.980_665) && near("z", 9.806_65));
        assert_eq!(msg["linear_acceleration_covariance"][0], 0.0);
        assert_eq!(msg["angular_velocity_covariance"][0], -1.0);
        assert_eq!(msg["orientation_covariance"][0], -1.0);
    }
}
