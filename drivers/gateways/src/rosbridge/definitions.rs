//! The definitions of the messages and services, in the words of ROS. PURE.
//!
//! They serve clients that ask for definitions, and they say how a message is encoded: see
//! [`encoding`](super::encoding). Types have the names of ROS 1, without `msg/`.

use serde_json::{Value, json};

/// The types of all messages, and of what they consist of. A line is a type and a name.
const MESSAGES: [(&str, &str); 30] = [
    ("builtin_interfaces/Time", "int32 sec\nuint32 nanosec\n"),
    (
        "std_msgs/Header",
        "builtin_interfaces/Time stamp\nstring frame_id\n",
    ),
    ("geometry_msgs/Vector3", "float64 x\nfloat64 y\nfloat64 z\n"),
    ("geometry_msgs/Point", "float64 x\nfloat64 y\nfloat64 z\n"),
    (
        "geometry_msgs/Quaternion",
        "float64 x\nfloat64 y\nfloat64 z\nfloat64 w\n",
    ),
    (
        "geometry_msgs/Pose",
        "geometry_msgs/Point position\ngeometry_msgs/Quaternion orientation\n",
    ),
    (
        "geometry_msgs/PoseStamped",
        "std_msgs/Header header\ngeometry_msgs/Pose pose\n",
    ),
    (
        "geometry_msgs/PoseWithCovariance",
        "geometry_msgs/Pose pose\nfloat64[36] covariance\n",
    ),
    (
        "geometry_msgs/PoseWithCovarianceStamped",
        "std_msgs/Header header\ngeometry_msgs/PoseWithCovariance pose\n",
    ),
    (
        "geometry_msgs/Twist",
        "geometry_msgs/Vector3 linear\ngeometry_msgs/Vector3 angular\n",
    ),
    (
        "geometry_msgs/TwistWithCovariance",
        "geometry_msgs/Twist twist\nfloat64[36] covariance\n",
    ),
    (
        "geometry_msgs/Transform",
        "geometry_msgs/Vector3 translation\ngeometry_msgs/Quaternion rotation\n",
    ),
    (
        "geometry_msgs/TransformStamped",
        "std_msgs/Header header\nstring child_frame_id\ngeometry_msgs/Transform transform\n",
    ),
    (
        "tf2_msgs/TFMessage",
        "geometry_msgs/TransformStamped[] transforms\n",
    ),
    (
        "sensor_msgs/LaserScan",
        "std_msgs/Header header\nfloat32 angle_min\nfloat32 angle_max\nfloat32 angle_increment\n\
         float32 time_increment\nfloat32 scan_time\nfloat32 range_min\nfloat32 range_max\n\
         float32[] ranges\nfloat32[] intensities\n",
    ),
    (
        "sensor_msgs/Imu",
        "std_msgs/Header header\ngeometry_msgs/Quaternion orientation\n\
         float64[9] orientation_covariance\ngeometry_msgs/Vector3 angular_velocity\n\
         float64[9] angular_velocity_covariance\ngeometry_msgs/Vector3 linear_acceleration\n\
         float64[9] linear_acceleration_covariance\n",
    ),
    (
        "sensor_msgs/BatteryState",
        "std_msgs/Header header\nfloat32 voltage\nfloat32 temperature\nfloat32 current\n\
         float32 charge\nfloat32 capacity\nfloat32 design_capacity\nfloat32 percentage\n\
         uint8 power_supply_status\nuint8 power_supply_health\nuint8 power_supply_technology\n\
         bool present\nfloat32[] cell_voltage\nfloat32[] cell_temperature\nstring location\n\
         string serial_number\n",
    ),
    ("sensor_msgs/NavSatStatus", "int8 status\nuint16 service\n"),
    (
        "sensor_msgs/NavSatFix",
        "std_msgs/Header header\nsensor_msgs/NavSatStatus status\nfloat64 latitude\n\
         float64 longitude\nfloat64 altitude\nfloat64[9] position_covariance\n\
         uint8 position_covariance_type\n",
    ),
    (
        "sensor_msgs/Joy",
        "std_msgs/Header header\nfloat32[] axes\nint32[] buttons\n",
    ),
    (
        "irobot_create_msgs/HazardDetection",
        "std_msgs/Header header\nuint8 type\n",
    ),
    (
        "irobot_create_msgs/HazardDetectionVector",
        "std_msgs/Header header\nirobot_create_msgs/HazardDetection[] detections\n",
    ),
    (
        "sensor_msgs/CompressedImage",
        "std_msgs/Header header\nstring format\nuint8[] data\n",
    ),
    (
        "sensor_msgs/RegionOfInterest",
        "uint32 x_offset\nuint32 y_offset\nuint32 height\nuint32 width\nbool do_rectify\n",
    ),
    (
        "sensor_msgs/CameraInfo",
        "std_msgs/Header header\nuint32 height\nuint32 width\nstring distortion_model\n\
         float64[] d\nfloat64[9] k\nfloat64[9] r\nfloat64[12] p\nuint32 binning_x\n\
         uint32 binning_y\nsensor_msgs/RegionOfInterest roi\n",
    ),
    (
        "nav_msgs/Odometry",
        "std_msgs/Header header\nstring child_frame_id\ngeometry_msgs/PoseWithCovariance pose\n\
         geometry_msgs/TwistWithCovariance twist\n",
    ),
    (
        "nav_msgs/MapMetaData",
        "builtin_interfaces/Time map_load_time\nfloat32 resolution\nuint32 width\nuint32 height\n\
         geometry_msgs/Pose origin\n",
    ),
    (
        "nav_msgs/OccupancyGrid",
        "std_msgs/Header header\nnav_msgs/MapMetaData info\nint8[] data\n",
    ),
    (
        "rcl_interfaces/Log",
        "builtin_interfaces/Time stamp\nuint8 level\nstring name\nstring msg\nstring file\n\
         string function\nuint32 line\n",
    ),
    (
        "rosapi_msgs/TypeDef",
        "string type\nstring[] fieldnames\nstring[] fieldtypes\nint32[] fieldarraylen\n\
         string[] examples\nstring[] constnames\nstring[] constvalues\n",
    ),
];

/// Between the definitions of two types in one text.
const LINE: &str =
    "================================================================================";

/// A member of a message.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Field {
    pub(super) name: &'static str,
    /// The type of the member, or of its elements.
    pub(super) kind: &'static str,
    /// How many elements it has.
    pub(super) length: Length,
}

/// The number of elements of a member.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Length {
    /// It is no array.
    One,
    /// Any number.
    Any,
    /// Always this number.
    Fixed(usize),
}

/// A type as ROS 1 writes it: without `msg/` and `srv/`.
pub(super) fn short(kind: &str) -> String {
    kind.replace("/msg/", "/").replace("/srv/", "/")
}

/// The members of a type. `None` if it is unknown or plain, such as `float64`.
pub(super) fn fields(kind: &str) -> Option<impl Iterator<Item = Field> + use<>> {
    definition(kind).map(fields_of)
}

/// The members in a definition.
pub(super) fn fields_of(definition: &'static str) -> impl Iterator<Item = Field> {
    definition.lines().filter_map(|line| {
        let (kind, name) = line.split_once(' ')?;
        let Some((kind, rest)) = kind.split_once('[') else {
            return Some(Field {
                name,
                kind,
                length: Length::One,
            });
        };
        let number = rest.trim_end_matches(']').parse();
        Some(Field {
            name,
            kind,
            length: number.map_or(Length::Any, Length::Fixed),
        })
    })
}

fn definition(kind: &str) -> Option<&'static str> {
    let kind = short(kind);
    let found = MESSAGES.iter().find(|(name, _)| *name == kind);
    found.map(|(_, definition)| *definition)
}

/// The definition of a type, followed by those of all types of which it consists.
pub(super) fn full_text(kind: &str) -> String {
    let kind = short(kind);
    let mut text = definition(&kind).unwrap_or_default().to_owned();
    for part in parts_of(definition(&kind).unwrap_or_default()) {
        let definition = definition(part).unwrap_or_default();
        text.push_str(&format!("{LINE}\nMSG: {part}\n{definition}"));
    }
    text
}

/// The types of which a definition consists, each once.
fn parts_of(text: &'static str) -> Vec<&'static str> {
    let mut parts: Vec<&str> = Vec::new();
    let mut open: Vec<Field> = fields_of(text).collect();
    while let Some(field) = open.pop() {
        if let Some(inner) = fields(field.kind)
            && !parts.contains(&field.kind)
        {
            parts.push(field.kind);
            open.extend(inner);
        }
    }
    parts
}

/// The definition of a message for the services `message_details` and the like: itself and all types
/// of which it consists. Empty if it is unknown.
pub(super) fn details(kind: &str) -> Vec<Value> {
    let kind = short(kind);
    definition(&kind).map_or_else(Vec::new, |text| details_of(&kind, text))
}

/// The same for the definition of a request or response.
pub(super) fn details_of(name: &str, definition_text: &'static str) -> Vec<Value> {
    let parts = parts_of(definition_text).into_iter();
    let parts = parts.map(|part| type_of(part, definition(part).unwrap_or_default()));
    std::iter::once(type_of(name, definition_text))
        .chain(parts)
        .collect()
}

fn type_of(name: &str, definition: &'static str) -> Value {
    let fields: Vec<Field> = fields_of(definition).collect();
    let each = |value: fn(&Field) -> Value| fields.iter().map(value).collect::<Vec<_>>();
    json!({
        "type": name,
        "fieldnames": each(|field| field.name.into()),
        "fieldtypes": each(|field| field.kind.into()),
        "fieldarraylen": each(|field| match field.length {
            Length::One => (-1).into(),
            Length::Any => 0.into(),
            Length::Fixed(number) => number.into(),
        }),
        "examples": each(|field| example(field).into()),
        "constnames": [],
        "constvalues": [],
    })
}

fn example(field: &Field) -> &'static str {
    match (field.length, field.kind) {
        (Length::Any | Length::Fixed(_), _) => "[]",
        (Length::One, "string") => "",
        (Length::One, "bool") => "false",
        (Length::One, "float32" | "float64") => "0.0",
        (Length::One, kind) if kind.contains('/') => "{}",
        (Length::One, _) => "0",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_is_defined() {
        for (name, definition) in MESSAGES {
            for field in fields_of(definition) {
                let is_number = crate::rosbridge::encoding::width(field.kind).is_some();
                let is_plain = is_number || field.kind == "string";
                let is_known = is_plain || fields(field.kind).is_some();
                assert!(is_known, "{name}: {field:?}");
            }
            assert_eq!(fields_of(definition).count(), definition.lines().count());
        }
    }

    #[test]
    fn a_full_text_has_each_type_once() {
        let text = full_text("nav_msgs/msg/Odometry");
        assert!(text.starts_with("std_msgs/Header header\nstring child_frame_id\n"));
        for part in [
            "std_msgs/Header",
            "builtin_interfaces/Time",
            "geometry_msgs/Vector3",
            "geometry_msgs/Point",
        ] {
            let head = format!("{LINE}\nMSG: {part}\n");
            assert_eq!(text.matches(&head).count(), 1, "{part}: {text}");
        }
        assert_eq!(full_text("nav_msgs/msg/Path"), "");
    }

    #[test]
    fn details_have_the_lengths_of_arrays() {
        let all = details("sensor_msgs/LaserScan");
        assert_eq!(all.len(), 3);
        assert_eq!(all[0]["type"], "sensor_msgs/LaserScan");
        assert_eq!(all[0]["fieldnames"][8], "ranges");
        assert_eq!(all[0]["fieldtypes"][8], "float32");
        assert_eq!(all[0]["fieldarraylen"][8], 0);
        assert_eq!(all[0]["fieldarraylen"][0], -1);
        let covariance = &details("geometry_msgs/msg/PoseWithCovariance")[0];
        assert_eq!(covariance["fieldarraylen"], json!([-1, 36]));
        assert_eq!(covariance["examples"], json!(["{}", "[]"]));
    }
}
