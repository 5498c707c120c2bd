//! Messages in binary forms: CBOR as rosbridge uses it, and CDR as ROS 2 uses it. PURE.
//!
//! A client asks for them by `compression`. Arrays of numbers are blocks of bytes, so a scan takes a
//! third of its JSON text. Where JSON has `null` for a number, these have NaN.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::definitions::{Field, Length, fields};

/// The types of CBOR items (RFC 8949, section 3.1).
mod major {
    pub(super) const UNSIGNED: u8 = 0;
    pub(super) const NEGATIVE: u8 = 1;
    pub(super) const BYTES: u8 = 2;
    pub(super) const TEXT: u8 = 3;
    pub(super) const ARRAY: u8 = 4;
    pub(super) const MAP: u8 = 5;
    pub(super) const TAG: u8 = 6;
}

/// Before a CDR message in little-endian order.
const LITTLE_ENDIAN: [u8; 4] = [0, 1, 0, 0];

/// The number of bytes of a number or bool.
pub(super) fn width(kind: &str) -> Option<usize> {
    Some(match kind {
        "bool" | "uint8" | "int8" => 1,
        "uint16" => 2,
        "int32" | "uint32" | "float32" => 4,
        "float64" => 8,
        _ => return None,
    })
}

/// The tag of an array of these numbers in little-endian order (RFC 8746).
fn array_tag(kind: &str) -> Option<u64> {
    Some(match kind {
        "uint32" => 70,
        "int8" => 72,
        "int32" => 78,
        "float32" => 85,
        "float64" => 86,
        _ => return None,
    })
}

/// A `publish` with a message in CBOR.
pub(super) fn cbor_publish(topic: &str, message: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(message.len() + topic.len() + 32);
    head(&mut bytes, major::MAP, 3);
    text(&mut bytes, "op");
    text(&mut bytes, "publish");
    text(&mut bytes, "topic");
    text(&mut bytes, topic);
    text(&mut bytes, "msg");
    bytes.extend_from_slice(message);
    bytes
}

/// A message of this type in CBOR.
pub(super) fn cbor(kind: &str, message: &Value) -> Vec<u8> {
    let mut bytes = Vec::new();
    put(&mut bytes, kind, message);
    bytes
}

/// A message of this type in CDR, in CBOR with the time of its arrival.
pub(super) fn cbor_raw(kind: &str, message: &Value, arrived: Duration) -> Vec<u8> {
    let mut bytes = Vec::new();
    head(&mut bytes, major::MAP, 3);
    text(&mut bytes, "secs");
    head(&mut bytes, major::UNSIGNED, arrived.as_secs());
    text(&mut bytes, "nsecs");
    head(
        &mut bytes,
        major::UNSIGNED,
        u64::from(arrived.subsec_nanos()),
    );
    text(&mut bytes, "bytes");
    let message = cdr(kind, message);
    head(&mut bytes, major::BYTES, message.len() as u64);
    bytes.extend(message);
    bytes
}

fn put(bytes: &mut Vec<u8>, kind: &str, value: &Value) {
    let (Value::Object(members), Some(known)) = (value, fields(kind)) else {
        return put_any(bytes, value);
    };
    let known: Vec<Field> = known.collect();
    head(bytes, major::MAP, members.len() as u64);
    for (name, value) in members {
        text(bytes, name);
        match (known.iter().find(|field| field.name == name), value) {
            (Some(field), Value::Array(items)) => put_array(bytes, field.kind, items),
            (Some(field), Value::String(base64)) if is_block(*field) => {
                let block = block(base64);
                head(bytes, major::BYTES, block.len() as u64);
                bytes.extend(block);
            }
            (Some(field), _) => put(bytes, field.kind, value),
            // The other names of a time.
            (None, _) => put_any(bytes, value),
        }
    }
}

fn put_array(bytes: &mut Vec<u8>, kind: &str, items: &[Value]) {
    match (array_tag(kind), width(kind)) {
        (Some(tag), Some(width)) => {
            head(bytes, major::TAG, tag);
            head(bytes, major::BYTES, (items.len() * width) as u64);
            for item in items {
                put_number(bytes, kind, item);
            }
        }
        _ => {
            head(bytes, major::ARRAY, items.len() as u64);
            for item in items {
                put(bytes, kind, item);
            }
        }
    }
}

fn put_any(bytes: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Null => bytes.push(0xf6),
        Value::Bool(is_true) => bytes.push(0xf4 + u8::from(*is_true)),
        Value::String(string) => text(bytes, string),
        Value::Number(number) => match (number.as_u64(), number.as_i64()) {
            (Some(number), _) => head(bytes, major::UNSIGNED, number),
            // -1 is 0, -2 is 1, and so on: all bits turned.
            (None, Some(number)) => head(bytes, major::NEGATIVE, !number as u64),
            (None, None) => {
                bytes.push(0xfb);
                bytes.extend(float(value).to_be_bytes());
            }
        },
        Value::Array(items) => {
            head(bytes, major::ARRAY, items.len() as u64);
            for item in items {
                put_any(bytes, item);
            }
        }
        Value::Object(members) => {
            head(bytes, major::MAP, members.len() as u64);
            for (name, value) in members {
                text(bytes, name);
                put_any(bytes, value);
            }
        }
    }
}

fn text(bytes: &mut Vec<u8>, text: &str) {
    head(bytes, major::TEXT, text.len() as u64);
    bytes.extend_from_slice(text.as_bytes());
}

/// The head of an item: its type, and a number or length.
fn head(bytes: &mut Vec<u8>, major: u8, number: u64) {
    let major = major << 5;
    match number {
        0..=23 => bytes.push(major | number as u8),
        24..=0xff => bytes.extend([major | 24, number as u8]),
        0x100..=0xffff => {
            bytes.push(major | 25);
            bytes.extend((number as u16).to_be_bytes());
        }
        0x1_0000..=0xffff_ffff => {
            bytes.push(major | 26);
            bytes.extend((number as u32).to_be_bytes());
        }
        _ => {
            bytes.push(major | 27);
            bytes.extend(number.to_be_bytes());
        }
    }
}

/// A message of this type in CDR, as the crate `amber-ros2` has it. An absent member is 0, NaN or
/// empty.
pub(super) fn cdr(kind: &str, message: &Value) -> Vec<u8> {
    let mut bytes = LITTLE_ENDIAN.to_vec();
    write(&mut bytes, kind, message);
    bytes
}

fn write(bytes: &mut Vec<u8>, kind: &str, value: &Value) {
    if let Some(members) = fields(kind) {
        for field in members {
            write_field(bytes, field, value.get(field.name).unwrap_or(&Value::Null));
        }
    } else if kind == "string" {
        let text = value.as_str().unwrap_or_default();
        // A NUL ends the text for all readers.
        let text = text.split('\0').next().unwrap_or_default();
        write_length(bytes, text.len() + 1);
        bytes.extend_from_slice(text.as_bytes());
        bytes.push(0);
    } else {
        align(bytes, width(kind).unwrap_or(1));
        put_number(bytes, kind, value);
    }
}

/// Whether its values are bytes, which JSON has as a text in base64.
fn is_block(field: Field) -> bool {
    field.kind == "uint8" && field.length == Length::Any
}

/// The bytes in a text that the gateway has made.
fn block(base64: &str) -> Vec<u8> {
    STANDARD.decode(base64).unwrap_or_default()
}

fn write_field(bytes: &mut Vec<u8>, field: Field, value: &Value) {
    if let (Value::String(base64), true) = (value, is_block(field)) {
        let block = block(base64);
        write_length(bytes, block.len());
        bytes.extend(block);
        return;
    }
    let items = value.as_array().map_or(&[][..], Vec::as_slice);
    match field.length {
        Length::One => write(bytes, field.kind, value),
        Length::Any => {
            write_length(bytes, items.len());
            for item in items {
                write(bytes, field.kind, item);
            }
        }
        Length::Fixed(number) => {
            for index in 0..number {
                write(bytes, field.kind, items.get(index).unwrap_or(&Value::Null));
            }
        }
    }
}

fn write_length(bytes: &mut Vec<u8>, length: usize) {
    align(bytes, 4);
    // Messages of the gateway are far shorter.
    let length = u32::try_from(length).unwrap_or(u32::MAX);
    bytes.extend(length.to_le_bytes());
}

/// A number begins at a multiple of its size, counted from the end of the first four bytes.
fn align(bytes: &mut Vec<u8>, width: usize) {
    let body = bytes.len() - LITTLE_ENDIAN.len();
    bytes.resize(body.next_multiple_of(width) + LITTLE_ENDIAN.len(), 0);
}

/// A number of this type in little-endian order. Casts from floating point saturate.
fn put_number(bytes: &mut Vec<u8>, kind: &str, value: &Value) {
    let whole = || value.as_i64().unwrap_or_default();
    match kind {
        "bool" => bytes.push(u8::from(value.as_bool().unwrap_or_default())),
        "uint8" | "int8" => bytes.push(whole() as u8),
        "uint16" => bytes.extend((whole() as u16).to_le_bytes()),
        "int32" | "uint32" => bytes.extend((whole() as u32).to_le_bytes()),
        "float32" => bytes.extend((float(value) as f32).to_le_bytes()),
        _ => bytes.extend(float(value).to_le_bytes()),
    }
}

fn float(value: &Value) -> f64 {
    value.as_f64().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use amber_ros2::messages as ros;
    use serde_json::json;

    use super::*;
    use crate::rosbridge::messages;

    const NOON: Duration = Duration::new(1_700_000_000, 250);

    #[test]
    fn plain_items_are_those_of_the_standard() {
        // From RFC 8949, appendix A.
        let cases = [
            (json!(0), "00"),
            (json!(23), "17"),
            (json!(24), "1818"),
            (json!(1000), "1903e8"),
            (json!(1_000_000), "1a000f4240"),
            (json!(1_000_000_000_000_u64), "1b000000e8d4a51000"),
            (json!(-1), "20"),
            (json!(-1000), "3903e7"),
            (json!(1.1), "fb3ff199999999999a"),
            (json!(false), "f4"),
            (json!(true), "f5"),
            (json!(null), "f6"),
            (json!("IETF"), "6449455446"),
            (json!([1, [2, 3]]), "8201820203"),
            (json!({"a": 1, "b": [2, 3]}), "a26161016162820203"),
        ];
        for (value, expected) in cases {
            let hex: String = cbor("", &value)
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect();
            assert_eq!(hex, expected, "{value}");
        }
    }

    #[test]
    fn arrays_of_numbers_are_blocks() {
        let bytes = cbor("sensor_msgs/LaserScan", &json!({"ranges": [1.5, null]}));
        let mut expected = b"\xa1\x66ranges\xd8\x55\x48".to_vec();
        expected.extend(1.5_f32.to_le_bytes());
        expected.extend(f32::NAN.to_le_bytes());
        assert_eq!(bytes, expected);
        let picture = json!({"data": "/9g="});
        let bytes = cbor("sensor_msgs/msg/CompressedImage", &picture);
        assert_eq!(bytes, b"\xa1\x64data\x42\xff\xd8");
        let bytes = cbor("nav_msgs/OccupancyGrid", &json!({"data": [-1, 100]}));
        assert_eq!(bytes, b"\xa1\x64data\xd8\x48\x42\xff\x64");
    }

    #[test]
    fn a_publish_in_cbor_is_no_text() {
        let bytes = cbor_publish("/scan", &cbor("", &json!(7)));
        assert_eq!(bytes, b"\xa3\x62op\x67publish\x65topic\x65/scan\x63msg\x07");
        assert!(std::str::from_utf8(&bytes).is_err());
    }

    #[test]
    fn cdr_is_that_of_ros() {
        let scan = amber_values::Scan::new(&[-90.0, 0.0, 90.0], &[1000, 6, 3000], None).unwrap();
        let scan = amber_values::Laser::default().scan(&scan);
        let message = messages::laser_scan(&scan, NOON + scan.duration);
        let bytes = cdr("sensor_msgs/msg/LaserScan", &message);
        let read: ros::LaserScan = amber_ros2::decode(&bytes).unwrap();
        assert_eq!(read.header.stamp.sec, 1_700_000_000);
        assert_eq!(read.header.stamp.nanosec, 250);
        assert_eq!(read.header.frame_id, "laser");
        assert_eq!((read.ranges[0], read.ranges[2]), (3.0, 1.0));
        assert!(read.ranges[1].is_nan() && read.intensities.is_empty());

        let pose = amber_map::Pose::new(1.0, 2.0, 0.5);
        let motion = amber_navigation::kinematics::Twist::new(0.25, 0.5);
        let bytes = cdr("nav_msgs/Odometry", &messages::odometry(pose, motion, NOON));
        let read: ros::Odometry = amber_ros2::decode(&bytes).unwrap();
        assert_eq!(read.child_frame_id, "base_link");
        assert_eq!(read.pose.pose, ros::Pose::flat(1.0, 2.0, 0.5));
        assert_eq!(read.twist.twist.angular.z, 0.5);

        let map_pose = amber_values::MapPose::new(1.0, 2.0, 0.5);
        let stamped = messages::pose_with_covariance(map_pose, NOON);
        let bytes = cdr("geometry_msgs/PoseWithCovarianceStamped", &stamped);
        let read: ros::PoseWithCovarianceStamped = amber_ros2::decode(&bytes).unwrap();
        assert_eq!(read.pose.pose.position.y, -2.0);
        assert!(read.pose.covariance[5][5] > 0.0);

        let frames = messages::transforms([(messages::MAP, messages::ODOMETRY, pose.into())], NOON);
        let bytes = cdr("tf2_msgs/TFMessage", &frames);
        let read: ros::TfMessage = amber_ros2::decode(&bytes).unwrap();
        assert_eq!(read.transforms[0].header.frame_id, "map");
        assert_eq!(read.transforms[0].child_frame_id, "odom");
        assert_eq!(read.transforms[0].transform.translation.x, 1.0);

        let state = amber_robot::battery::RosBattery {
            voltage: Some(12.5),
            technology: 3,
            present: true,
            ..amber_robot::battery::RosBattery::default()
        };
        let bytes = cdr("sensor_msgs/BatteryState", &messages::battery(&state, NOON));
        let read: ros::BatteryState = amber_ros2::decode(&bytes).unwrap();
        assert_eq!((read.voltage, read.power_supply_technology), (12.5, 3));
        assert!(read.percentage.is_nan() && read.present);

        let fix = amber_proto::gps::Fix {
            kind: Some(3),
            latitude: Some(-33.5),
            longitude: Some(-70.25),
            horizontal_accuracy: Some(2.0),
            ..amber_proto::gps::Fix::default()
        };
        let bytes = cdr(
            "sensor_msgs/NavSatFix",
            &messages::nav_sat_fix(&(&fix).into(), NOON),
        );
        let read: ros::NavSatFix = amber_ros2::decode(&bytes).unwrap();
        assert_eq!((read.status.status, read.status.service), (0, 1));
        assert_eq!((read.latitude, read.longitude), (-33.5, -70.25));
        assert!(read.altitude.is_nan() && read.position_covariance_type == 2);

        let joy = amber_values::Joy {
            axes: [0.5, -1.0, 0.0, 0.0, 0.0, 0.25],
            buttons: std::array::from_fn(|index| i32::from(index == 9)),
        };
        let bytes = cdr("sensor_msgs/Joy", &messages::joy(&joy, NOON));
        let read: ros::Joy = amber_ros2::decode(&bytes).unwrap();
        assert_eq!(read.axes, [0.5, -1.0, 0.0, 0.0, 0.0, 0.25]);
        assert_eq!((read.buttons.len(), read.buttons[9]), (15, 1));

        let hazard = amber_values::Hazard {
            kind: 2,
            frame: "cliff_front_left",
        };
        let bytes = cdr(
            "irobot_create_msgs/HazardDetectionVector",
            &messages::hazards(&[hazard], NOON),
        );
        let read: ros::HazardDetectionVector = amber_ros2::decode(&bytes).unwrap();
        assert_eq!(read.detections[0].r#type, 2);
        assert_eq!(read.detections[0].header.frame_id, "cliff_front_left");

        let seen = amber_proto::camera::Picture {
            data: Some(bytes::Bytes::from_static(b"\xff\xd8\xff\xd9")),
            ..amber_proto::camera::Picture::default()
        };
        let bytes = cdr(
            "sensor_msgs/CompressedImage",
            &messages::picture(&seen, NOON),
        );
        let read: ros::CompressedImage = amber_ros2::decode(&bytes).unwrap();
        assert_eq!((&*read.format, read.data), ("jpeg", seen.data().to_vec()));
        assert_eq!(read.header.frame_id, "camera_optical_frame");

        let mut optics = amber_values::CameraOptics::uncalibrated(640, 480);
        optics.distortion = vec![0.1, 0.2];
        (optics.camera[0], optics.projection[11]) = (600.0, 1.0);
        let bytes = cdr(
            "sensor_msgs/CameraInfo",
            &messages::camera_info(&optics, NOON),
        );
        let read: ros::CameraInfo = amber_ros2::decode(&bytes).unwrap();
        assert_eq!((read.width, read.height), (640, 480));
        assert_eq!(
            (read.d, read.k[0], read.p[11]),
            (vec![0.1, 0.2], 600.0, 1.0)
        );

        let reading = amber_values::ImuReading::default();
        let bytes = cdr("sensor_msgs/Imu", &messages::imu(&reading, NOON));
        let read: ros::Imu = amber_ros2::decode(&bytes).unwrap();
        assert_eq!(read.orientation_covariance[0], -1.0);
    }

    #[test]
    fn a_raw_message_is_cdr_in_cbor() {
        let bytes = cbor_raw("geometry_msgs/Pose", &json!({}), Duration::new(1, 2));
        assert!(bytes.starts_with(b"\xa3\x64secs\x01\x65nsecs\x02\x65bytes\x58\x3c\x00\x01"));
        assert_eq!(bytes.len(), 22 + 4 + 7 * 8);
    }
}
