use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::*;
use crate::cdr::{decode, encode};
use crate::types::RosMessage;

/// The type of a field, as the type descriptions of ROS have it.
#[derive(Clone, Debug)]
pub(crate) struct FieldType {
    id: u32,
    capacity: usize,
    nested: String,
}

/// All types of which a message consists, by name.
#[derive(Default)]
pub(crate) struct Definitions(BTreeMap<String, Vec<(String, FieldType)>>);

pub(crate) trait Described {
    fn describe(all: &mut Definitions) -> FieldType;
}

const NESTED: u32 = 1;
const ARRAY: u32 = 48;
const BOUNDED: u32 = 96;
const SEQUENCE: u32 = 144;
const INT64: u32 = 8;

impl Definitions {
    pub(crate) fn add(&mut self, name: &str, fields: Vec<(String, FieldType)>) -> FieldType {
        self.0.insert(name.to_owned(), fields);
        FieldType {
            id: NESTED,
            capacity: 0,
            nested: name.to_owned(),
        }
    }

    /// The hash of a type as ROS computes it (REP 2016): of its description in JSON.
    fn hash(&self, name: &str) -> String {
        let others = self.0.keys().filter(|other| *other != name);
        let referenced: Vec<_> = others.map(|other| self.described(other)).collect();
        let text = format!(
            "{{\"type_description\": {}, \"referenced_type_descriptions\": [{}]}}",
            self.described(name),
            referenced.join(", ")
        );
        let hash = Sha256::digest(text.as_bytes());
        hash.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    fn described(&self, name: &str) -> String {
        let fields = self.0[name].iter().map(|(field, it)| {
            format!(
                "{{\"name\": \"{field}\", \"type\": {{\"type_id\": {}, \"capacity\": {}, \
                 \"string_capacity\": 0, \"nested_type_name\": \"{}\"}}}}",
                it.id, it.capacity, it.nested
            )
        });
        let fields: Vec<_> = fields.collect();
        format!(
            "{{\"type_name\": \"{name}\", \"fields\": [{}]}}",
            fields.join(", ")
        )
    }
}

macro_rules! plain {
    ($($type:ty = $id:literal;)*) => {
        $(
            impl Described for $type {
                fn describe(_: &mut Definitions) -> FieldType {
                    FieldType {
                        id: $id,
                        capacity: 0,
                        nested: String::new(),
                    }
                }
            }
        )*
    };
}

plain! {
    i8 = 2;
    u8 = 3;
    i16 = 4;
    u16 = 5;
    i32 = 6;
    u32 = 7;
    f32 = 10;
    f64 = 11;
    bool = 15;
    // A `byte`.
    Level = 16;
    String = 17;
}

impl<T: Described> Described for Vec<T> {
    fn describe(all: &mut Definitions) -> FieldType {
        let element = T::describe(all);
        FieldType {
            id: element.id + SEQUENCE,
            ..element
        }
    }
}

/// An array of arrays is one long array.
impl<T: Described, const N: usize> Described for [T; N] {
    fn describe(all: &mut Definitions) -> FieldType {
        let element = T::describe(all);
        match element.id {
            0..=ARRAY => FieldType {
                id: element.id + ARRAY,
                capacity: N,
                ..element
            },
            _ => FieldType {
                capacity: element.capacity * N,
                ..element
            },
        }
    }
}

#[track_caller]
fn check_hash<M: RosMessage + Described>() {
    let mut all = Definitions::default();
    let name = M::describe(&mut all).nested;
    assert_eq!(name, M::TYPE.to_string());
    assert_eq!(all.hash(&name), M::TYPE.hash, "{name}");
}

/// A service consists of its halves, and of an event for those who watch it.
#[track_caller]
fn check_service<Q: RosMessage + Described, R: RosMessage + Described>() {
    let mut all = Definitions::default();
    let name = Q::TYPE.to_string();
    assert_eq!((&R::TYPE, R::TYPE.hash), (&Q::TYPE, Q::TYPE.hash));
    let (request, response) = (Q::describe(&mut all), R::describe(&mut all));
    assert_eq!(request.nested, format!("{name}_Request"));
    assert_eq!(response.nested, format!("{name}_Response"));
    let number = |id| FieldType {
        id,
        capacity: 0,
        nested: String::new(),
    };
    let event_info = vec![
        ("event_type".to_owned(), u8::describe(&mut all)),
        ("stamp".to_owned(), Time::describe(&mut all)),
        ("client_gid".to_owned(), <[u8; 16]>::describe(&mut all)),
        ("sequence_number".to_owned(), number(INT64)),
    ];
    let event_info = all.add("service_msgs/msg/ServiceEventInfo", event_info);
    let at_most_one = |it: &FieldType| FieldType {
        id: it.id + BOUNDED,
        capacity: 1,
        nested: it.nested.clone(),
    };
    let event = vec![
        ("info".to_owned(), event_info),
        ("request".to_owned(), at_most_one(&request)),
        ("response".to_owned(), at_most_one(&response)),
    ];
    let event = all.add(&format!("{name}_Event"), event);
    let parts = vec![
        ("request_message".to_owned(), request),
        ("response_message".to_owned(), response),
        ("event_message".to_owned(), event),
    ];
    all.add(&name, parts);
    assert_eq!(all.hash(&name), Q::TYPE.hash, "{name}");
}

#[test]
fn the_fields_of_services_and_actions_are_those_of_ros() {
    check_service::<TriggerRequest, TriggerResponse>();
    check_service::<SaveMapRequest, SaveMapResponse>();
    check_service::<CancelGoalRequest, CancelGoalResponse>();
    check_service::<SendGoalRequest, SendGoalResponse>();
    check_service::<GetResultRequest, GetResultResponse>();
    check_hash::<GoalStatusArray>();
    check_hash::<NavigateFeedbackMessage>();
    check_hash::<TrackedFeedbackMessage>();
    let dds_name = SendGoalRequest::TYPE.dds_name();
    assert_eq!(
        dds_name,
        "nav2_msgs::action::dds_::NavigateToPose_SendGoal_"
    );
}

#[test]
fn the_fields_are_those_of_ros() {
    check_hash::<LaserScan>();
    check_hash::<Imu>();
    check_hash::<MagneticField>();
    check_hash::<JointState>();
    check_hash::<BatteryState>();
    check_hash::<NavSatFix>();
    check_hash::<Joy>();
    check_hash::<CompressedImage>();
    check_hash::<CameraInfo>();
    check_hash::<HazardDetectionVector>();
    check_hash::<Twist>();
    check_hash::<TwistStamped>();
    check_hash::<PoseStamped>();
    check_hash::<PoseWithCovarianceStamped>();
    check_hash::<Odometry>();
    check_hash::<Path>();
    check_hash::<OccupancyGrid>();
    check_hash::<TfMessage>();
    check_hash::<Text>();
    check_hash::<DiagnosticArray>();
}

#[test]
fn a_scan_has_the_bytes_of_a_real_node() {
    let scan = LaserScan {
        header: Header::new(1_000_000_002, "laser"),
        angle_min: -1.0,
        angle_max: 1.0,
        angle_increment: 1.0,
        time_increment: 0.0,
        scan_time: 0.1,
        range_min: 0.02,
        range_max: 5.6,
        ranges: vec![1.0, 2.0, f32::INFINITY],
        intensities: Vec::new(),
    };
    let expected = "00 01 00 00 01 00 00 00 02 00 00 00 06 00 00 00 6c 61 73 65 72 00 00 00 \
        00 00 80 bf 00 00 80 3f 00 00 80 3f 00 00 00 00 cd cc cc 3d 0a d7 a3 3c 33 33 b3 40 \
        03 00 00 00 00 00 80 3f 00 00 00 40 00 00 80 7f 00 00 00 00";
    assert_eq!(encode(&scan), unhex(expected));
    assert_eq!(decode(&unhex(expected)), Ok(scan));
}

#[test]
fn services_have_the_bytes_of_a_real_node() {
    let response = TriggerResponse {
        success: true,
        message: "ok".into(),
    };
    let expected = "00 01 00 00 01 00 00 00 03 00 00 00 6f 6b 00";
    assert_eq!(encode(&response), unhex(expected));
    // The padding of others is anything.
    let other = "00 01 00 00 01 aa bb cc 03 00 00 00 6f 6b 00";
    assert_eq!(decode(&unhex(other)), Ok(response));
    let request = TriggerRequest::default();
    assert_eq!(encode(&request), unhex("00 01 00 00 00"));
    assert_eq!(decode(&unhex("00 01 00 00 00")), Ok(request));
}

/// Where fields begin and how long messages are, as measured with nodes of ROS 2.
#[test]
fn fields_are_where_real_nodes_have_them() {
    let twist = Twist {
        linear: Vector3 {
            x: 0.5,
            ..Vector3::default()
        },
        angular: Vector3 {
            z: -0.25,
            ..Vector3::default()
        },
    };
    let bytes = encode(&twist);
    assert_eq!(bytes.len(), 52);
    assert_eq!(f64_at(&bytes, 4), 0.5);
    assert_eq!(f64_at(&bytes, 28 + 16), -0.25);

    let full = LaserScan {
        header: Header::new(0, "laser"),
        ranges: vec![1.0; 682],
        ..LaserScan::default()
    };
    assert_eq!(encode(&full).len(), 2788);

    let mut odometry = Odometry {
        header: Header::new(0, "odom"),
        child_frame_id: "base_link".into(),
        ..Odometry::default()
    };
    odometry.pose.pose.position.x = 1.5;
    odometry.pose.covariance[0][0] = 2.5;
    odometry.twist.twist.linear.x = 3.5;
    odometry.twist.covariance[0][0] = 4.5;
    let bytes = encode(&odometry);
    assert_eq!(bytes.len(), 724);
    let found = [44, 100, 388, 436].map(|at| f64_at(&bytes, at));
    assert_eq!(found, [1.5, 2.5, 3.5, 4.5]);

    let imu = Imu {
        header: Header::new(0, "imu"),
        ..Imu::default()
    };
    assert_eq!(encode(&imu).len(), 316);

    let transform = TransformStamped {
        header: Header::new(0, "odom"),
        child_frame_id: "base_link".into(),
        transform: Transform {
            rotation: Quaternion::from_yaw(0.0),
            ..Transform::default()
        },
    };
    let bytes = encode(&TfMessage {
        transforms: vec![transform],
    });
    assert_eq!(bytes.len(), 100);
    assert_eq!(f64_at(&bytes, 68 + 24), 1.0);

    let goal = PoseStamped {
        header: Header::new(0, "map"),
        pose: Pose::flat(1.0, 2.0, 0.0),
    };
    let bytes = encode(&goal);
    assert_eq!(bytes.len(), 76);
    assert_eq!([20, 28].map(|at| f64_at(&bytes, at)), [1.0, 2.0]);
}

#[test]
fn turns_survive() {
    for yaw in [-3.1, -1.0, 0.0, 0.3, 3.1] {
        assert!((Quaternion::from_yaw(yaw).yaw() - yaw).abs() < 1e-9);
    }
}

#[test]
fn times_survive() {
    let time = Time::from_ns(1_700_000_000_000_000_007);
    assert_eq!((time.sec, time.nanosec), (1_700_000_000, 7));
    assert_eq!(time.as_ns(), Some(1_700_000_000_000_000_007));
    assert_eq!(time.to_string(), "1700000000.000000007");
    assert_eq!(
        Time {
            sec: -1,
            nanosec: 0
        }
        .as_ns(),
        None
    );
}

/// Programs of others read our bytes: `rosbags` from PyPI. The test says so if it is missing.
#[test]
fn a_foreign_reader_reads_our_messages() {
    let samples = samples();
    let input: Vec<Value> = samples
        .iter()
        .map(|(name, bytes, _)| json!({ "type": name, "hex": hex(bytes) }))
        .collect();
    let Some(read) = foreign::read(&Value::from(input)) else {
        return;
    };
    for ((name, _, expected), found) in samples.iter().zip(read.as_array().unwrap()) {
        assert_eq!(found, expected, "{name}");
    }
}

/// Messages, and some values that a reader must find in them.
fn samples() -> Vec<(String, Vec<u8>, Value)> {
    fn sample<M: RosMessage>(message: &M, expected: Value) -> (String, Vec<u8>, Value) {
        (M::TYPE.to_string(), encode(message), expected)
    }
    let header = Header::new(5_000_000_006, "base_link");
    let scan = LaserScan {
        header: header.clone(),
        angle_min: -0.5,
        ranges: vec![1.5, 2.5],
        intensities: vec![7.0],
        ..LaserScan::default()
    };
    let battery = BatteryState {
        voltage: 12.5,
        present: true,
        cell_voltage: vec![4.0, 4.25],
        location: "rear".into(),
        serial_number: "7".into(),
        ..BatteryState::default()
    };
    let fix = NavSatFix {
        header: header.clone(),
        status: NavSatStatus {
            status: -1,
            service: 1,
        },
        latitude: -33.5,
        position_covariance: [2.0, 0.0, 0.0, 0.0, 2.0, 0.0, 0.0, 0.0, 9.0],
        position_covariance_type: 2,
        ..NavSatFix::default()
    };
    let joy = Joy {
        header: header.clone(),
        axes: vec![0.5, -1.0],
        buttons: vec![0, 1],
    };
    let image = CompressedImage {
        header: header.clone(),
        format: "jpeg".into(),
        data: vec![0xff, 0xd8, 0, 0xff, 0xd9],
    };
    let camera = CameraInfo {
        header: header.clone(),
        height: 240,
        width: 320,
        distortion_model: "plumb_bob".into(),
        d: vec![0.5, -0.25],
        k: [300.0, 0.0, 159.5, 0.0, 301.0, 119.5, 0.0, 0.0, 1.0],
        p: [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 7.0],
        ..CameraInfo::default()
    };
    let joints = JointState {
        header: header.clone(),
        name: vec!["left".into(), "right wheel".into()],
        position: vec![1.0, 2.0],
        velocity: vec![0.5],
        effort: Vec::new(),
    };
    let diagnostics = DiagnosticArray {
        header: header.clone(),
        status: vec![DiagnosticStatus {
            level: Level::ERROR,
            name: "robot1: hokuyo:0".into(),
            message: "no such file".into(),
            hardware_id: "hokuyo:0".into(),
            values: vec![KeyValue {
                key: "restarts".into(),
                value: "3".into(),
            }],
        }],
    };
    let grid = OccupancyGrid {
        header: header.clone(),
        info: MapMetaData {
            resolution: 0.5,
            width: 3,
            height: 1,
            origin: Pose::flat(1.0, 2.0, 0.0),
            ..MapMetaData::default()
        },
        data: vec![-1, 0, 100],
    };
    let path = Path {
        header: header.clone(),
        poses: vec![PoseStamped {
            header: header.clone(),
            pose: Pose::flat(3.0, 4.0, 0.0),
        }],
    };
    let mut imu = Imu {
        header: header.clone(),
        ..Imu::default()
    };
    imu.orientation_covariance[0] = -1.0;
    imu.linear_acceleration.z = 9.75;
    let mut odometry = Odometry {
        header: header.clone(),
        child_frame_id: "base_link".into(),
        ..Odometry::default()
    };
    odometry.pose.covariance[5][5] = 0.25;
    odometry.twist.twist.angular.z = 0.125;
    let stamped = TwistStamped {
        header,
        twist: odometry.twist.twist,
    };
    vec![
        sample(&scan, json!(["base_link", -0.5, [1.5, 2.5], [7.0]])),
        sample(&battery, json!([12.5, true, [4.0, 4.25], "7"])),
        sample(&fix, json!([-1, 1, -33.5, 9.0, 2])),
        sample(&joy, json!(["base_link", [0.5, -1.0], [0, 1]])),
        sample(
            &image,
            json!([5, 6, "base_link", "jpeg", [255, 216, 0, 255, 217]]),
        ),
        sample(
            &camera,
            json!([240, 320, "plumb_bob", [0.5, -0.25], 301.0, 7.0, 0]),
        ),
        sample(
            &joints,
            json!([["left", "right wheel"], [1.0, 2.0], [0.5], []]),
        ),
        sample(
            &diagnostics,
            json!([2, "robot1: hokuyo:0", "no such file", "restarts", "3"]),
        ),
        sample(&grid, json!([0.5, 3, 1, [-1, 0, 100], 2.0])),
        sample(&path, json!([5, 6, 3.0, 4.0, 1.0])),
        sample(&imu, json!([-1.0, 9.75])),
        sample(&odometry, json!(["base_link", 0.25, 0.125])),
        sample(&stamped, json!([5, 6, "base_link", 0.125])),
    ]
}

mod foreign {
    use std::io::Write;
    use std::process::{Command, Stdio};

    use super::Value;

    /// What the script beside the tests reads; `None`, with a remark, if Python or `rosbags` is
    /// missing.
    pub(super) fn read(input: &Value) -> Option<Value> {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/read_with_rosbags.py");
        let mut python = Command::new("python3");
        python.arg(script).stdin(Stdio::piped());
        let child = python.stdout(Stdio::piped()).spawn();
        let Ok(mut child) = child else {
            return skipped("python3 is missing");
        };
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(input.to_string().as_bytes()).unwrap();
        drop(stdin);
        let output = child.wait_with_output().unwrap();
        if output.status.code() == Some(77) {
            return skipped("the Python package rosbags is missing");
        }
        assert!(output.status.success());
        Some(serde_json::from_slice(&output.stdout).unwrap())
    }

    #[allow(clippy::print_stderr)]
    fn skipped(why: &str) -> Option<Value> {
        // Past the capture of the test harness, so that it is seen.
        let _ = writeln!(std::io::stderr(), "SKIP rosbags: {why}");
        None
    }
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(payload in prop::collection::vec(any::<u8>(), 0..300)) {
        let mut framed = vec![0, 1, 0, 0];
        framed.extend(&payload);
        for payload in [&payload, &framed] {
            if let Ok(scan) = decode::<LaserScan>(payload) {
                prop_assert!(scan.ranges.len() * 4 <= payload.len());
            }
            let _ = decode::<Odometry>(payload);
            let _ = decode::<TfMessage>(payload);
            let _ = decode::<JointState>(payload);
            let _ = decode::<DiagnosticArray>(payload);
            let _ = decode::<OccupancyGrid>(payload);
            let _ = decode::<TwistStamped>(payload);
            let _ = decode::<BatteryState>(payload);
            let _ = decode::<NavSatFix>(payload);
            let _ = decode::<Joy>(payload);
            let _ = decode::<CompressedImage>(payload);
            let _ = decode::<CameraInfo>(payload);
            let _ = decode::<SendGoalRequest>(payload);
            let _ = decode::<CancelGoalRequest>(payload);
            let _ = decode::<SaveMapRequest>(payload);
        }
    }

    #[test]
    fn what_is_written_is_read(
        stamp_ns in 0u64..4_000_000_000_000_000_000,
        frame in "[a-z_/]{0,20}",
        names in prop::collection::vec("[a-z]{0,9}", 0..6),
        numbers in prop::collection::vec(-1e6..1e6f64, 0..6),
    ) {
        let joints = JointState {
            header: Header::new(stamp_ns, frame),
            name: names,
            position: numbers.clone(),
            velocity: Vec::new(),
            effort: numbers,
        };
        prop_assert_eq!(decode::<JointState>(&encode(&joints)), Ok(joints));
    }
}

fn f64_at(bytes: &[u8], at: usize) -> f64 {
    f64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

fn unhex(text: &str) -> Vec<u8> {
    let bytes = text.split_whitespace();
    bytes
        .map(|it| u8::from_str_radix(it, 16).unwrap())
        .collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
