//! The messages of ROS 2 that a robot of Amber sends and receives. PURE.
//!
//! Fields have the names and the order of the `.msg` files, and a test proves it: it computes the
//! hash of each type from these fields. Metres, radians and seconds; x ahead, y to the left, z up;
//! angles counter-clockwise (REP 103).

use std::fmt;

mod actions;
mod diagnostics;
mod geometry;
mod navigation;
mod sensors;
#[cfg(test)]
mod tests;

pub use actions::{
    CancelGoalRequest, CancelGoalResponse, GetResultRequest, GetResultResponse, GoalId, GoalInfo,
    GoalStatus, GoalStatusArray, NavigateFeedback, NavigateFeedbackMessage, NavigateGoal,
    NavigateResult, SendGoalRequest, SendGoalResponse, TimeSpan, TrackedFeedback,
    TrackedFeedbackMessage,
};
pub use diagnostics::{DiagnosticArray, DiagnosticStatus, KeyValue, Level};
pub use geometry::{
    Point, Pose, PoseStamped, PoseWithCovariance, PoseWithCovarianceStamped, Quaternion, TfMessage,
    Transform, TransformStamped, Twist, TwistStamped, TwistWithCovariance, Vector3,
};
pub use navigation::{MapMetaData, OccupancyGrid, Odometry, Path, SaveMapRequest, SaveMapResponse};
pub use sensors::{
    BatteryState, CameraInfo, CompressedImage, HazardDetection, HazardDetectionVector, Imu,
    JointState, Joy, LaserScan, MagneticField, NavSatFix, NavSatStatus, RegionOfInterest,
};

/// Defines a message: its fields, how CDR carries them, and in tests what ROS calls it.
macro_rules! message {
    (
        $(#[$docs:meta])*
        $name:ident = $package:literal $ros_name:literal { $($fields:tt)* }
    ) => {
        $crate::messages::message! {
            @ (concat!($package, "/msg/", $ros_name)) $(#[$docs])* $name { $($fields)* }
        }
    };
    // A part of an action or service, such as "nav2_msgs/action/NavigateToPose_Goal".
    (
        $(#[$docs:meta])*
        $name:ident = $full_name:literal { $($fields:tt)* }
    ) => {
        $crate::messages::message! {
            @ ($full_name) $(#[$docs])* $name { $($fields)* }
        }
    };
    (
        @ ($full_name:expr)
        $(#[$docs:meta])*
        $name:ident {
            $($(#[$field_docs:meta])* $field:ident: $type:ty,)*
        }
    ) => {
        $(#[$docs])*
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct $name {
            $($(#[$field_docs])* pub $field: $type,)*
        }

        impl $crate::cdr::Cdr for $name {
            const MIN_BYTES: usize = 0 $(+ <$type as $crate::cdr::Cdr>::MIN_BYTES)*;

            fn write(&self, to: &mut $crate::cdr::Writer) {
                $(self.$field.write(to);)*
            }

            fn read(from: &mut $crate::cdr::Reader<'_>) -> Result<Self, $crate::cdr::CdrError> {
                Ok(Self { $($field: $crate::cdr::Cdr::read(from)?,)* })
            }
        }

        #[cfg(test)]
        impl $crate::messages::tests::Described for $name {
            fn describe(all: &mut $crate::messages::tests::Definitions) -> $crate::messages::tests::FieldType {
                let fields = vec![
                    $((
                        stringify!($field).trim_start_matches("r#").to_owned(),
                        <$type as $crate::messages::tests::Described>::describe(all),
                    ),)*
                ];
                all.add($full_name, fields)
            }
        }
    };
}

/// Makes messages those of topics, with the hashes of their definitions.
macro_rules! topics {
    ($($name:ident = $package:literal $ros_name:literal $hash:literal;)*) => {
        $($crate::messages::typed! { Message $package $ros_name $hash: $name })*
    };
}

/// Gives messages a type: both halves of a service have the same.
macro_rules! typed {
    ($kind:ident $package:literal $ros_name:literal $hash:literal: $($name:ident)*) => {
        $(
            impl $crate::types::RosMessage for $name {
                const TYPE: $crate::types::RosType = $crate::types::RosType {
                    package: $package,
                    kind: $crate::types::Kind::$kind,
                    name: $ros_name,
                    hash: $hash,
                };
            }
        )*
    };
}

use {message, typed};

// Those of Jazzy and Kilted.
topics! {
    LaserScan = "sensor_msgs" "LaserScan"
        "64c191398013af96509d518dac71d5164f9382553fce5c1f8cca5be7924bd828";
    Imu = "sensor_msgs" "Imu"
        "7d9a00ff131080897a5ec7e26e315954b8eae3353c3f995c55faf71574000b5b";
    MagneticField = "sensor_msgs" "MagneticField"
        "e80f32f56a20486c9923008fc1a1db07bbb273cbbf6a5b3bfa00835ee00e4dff";
    JointState = "sensor_msgs" "JointState"
        "a13ee3a330e346c9d87b5aa18d24e11690752bd33a0350f11c5882bc9179260e";
    BatteryState = "sensor_msgs" "BatteryState"
        "4bee5dfce981c98faa6828b868307a0a73f992ed0789f374ee96c8f840e69741";
    NavSatFix = "sensor_msgs" "NavSatFix"
        "62223ab3fe210a15976021da7afddc9e200dc9ec75231c1b6a557fc598a65404";
    Joy = "sensor_msgs" "Joy"
        "0d356c79cad3401e35ffeb75a96a96e08be3ef896b8b83841d73e890989372c5";
    CompressedImage = "sensor_msgs" "CompressedImage"
        "15640771531571185e2efc8a100baf923961a4d15d5569652e6cb6691e8e371a";
    CameraInfo = "sensor_msgs" "CameraInfo"
        "b3dfd68ff46c9d56c80fd3bd4ed22c7a4ddce8c8348f2f59c299e73118e7e275";
    HazardDetectionVector = "irobot_create_msgs" "HazardDetectionVector"
        "90913822b0a9155a64b12352ba73b2ca9248d73874ebf7700ed277b2dca57edd";
    Twist = "geometry_msgs" "Twist"
        "9c45bf16fe0983d80e3cfe750d6835843d265a9a6c46bd2e609fcddde6fb8d2a";
    TwistStamped = "geometry_msgs" "TwistStamped"
        "5f0fcd4f81d5d06ad9b4c4c63e3ea51b82d6ae4d0558f1d475229b1121db6f64";
    PoseStamped = "geometry_msgs" "PoseStamped"
        "10f3786d7d40fd2b54367835614bff85d4ad3b5dab62bf8bca0cc232d73b4cd8";
    PoseWithCovarianceStamped = "geometry_msgs" "PoseWithCovarianceStamped"
        "26432f9803e43727d3c8f668d1fdb3c630f548af631e2f4e31382371bfea3b6e";
    Odometry = "nav_msgs" "Odometry"
        "3cc97dc7fb7502f8714462c526d369e35b603cfc34d946e3f2eda2766dfec6e0";
    Path = "nav_msgs" "Path"
        "1957a5bb3cee5da65c4e52e52b65a93df227efce4c20f8458b36e73066ca334b";
    OccupancyGrid = "nav_msgs" "OccupancyGrid"
        "8d348150c12913a31ee0ec170fbf25089e4745d17035792a1ba94d6f0bc0cfc7";
    TfMessage = "tf2_msgs" "TFMessage"
        "e369d0f05a23ae52508854b66f6aa0437f3449d652e8cbf22d5abe85d020f087";
    Text = "std_msgs" "String"
        "df668c740482bbd48fb39d76a70dfd4bd59db1288021743503259e948f6b1a18";
    DiagnosticArray = "diagnostic_msgs" "DiagnosticArray"
        "5a8a36efb05fb25070fa0fb3810290c0e6cd4862b54a8fb975a1ee8dc55a333e";
}

typed! {
    Service "std_srvs" "Trigger" "eeff2cd6fa5ad9d27cdf4dec64818317839b62f212a91e6b5304b634b2062c5f":
    TriggerRequest TriggerResponse
}

message! {
    #[derive(Copy, Eq, PartialOrd, Ord)]
    Time = "builtin_interfaces" "Time" {
        /// Seconds since 1970.
        sec: i32,
        /// Nanoseconds in this second.
        nanosec: u32,
    }
}

message! {
    /// The time and frame of a measurement.
    #[derive(Eq)]
    Header = "std_msgs" "Header" {
        /// The time of the measurement.
        stamp: Time,
        /// The frame of the numbers, such as `laser`.
        frame_id: String,
    }
}

message! {
    #[derive(Eq)]
    Text = "std_msgs" "String" {
        /// The text.
        data: String,
    }
}

impl Time {
    /// A time in nanoseconds since 1970, until the year 2038.
    #[must_use]
    pub fn from_ns(since_1970_ns: u64) -> Self {
        Self {
            sec: i32::try_from(since_1970_ns / 1_000_000_000).unwrap_or(i32::MAX),
            nanosec: (since_1970_ns % 1_000_000_000) as u32,
        }
    }

    /// Nanoseconds since 1970; `None` for a time before it.
    #[must_use]
    pub fn as_ns(self) -> Option<u64> {
        let seconds = u64::try_from(self.sec).ok()?;
        Some(seconds * 1_000_000_000 + u64::from(self.nanosec))
    }
}

impl Header {
    /// A time in nanoseconds since 1970, and a frame.
    #[must_use]
    pub fn new(stamp_ns: u64, frame_id: impl Into<String>) -> Self {
        Self {
            stamp: Time::from_ns(stamp_ns),
            frame_id: frame_id.into(),
        }
    }
}

message! {
    /// The request of `std_srvs/srv/Trigger`. CDR has no empty messages: this is one byte.
    #[derive(Copy, Eq)]
    TriggerRequest = "std_srvs/srv/Trigger_Request" {
        /// Nothing.
        structure_needs_at_least_one_member: u8,
    }
}

message! {
    /// The reply of `std_srvs/srv/Trigger`.
    #[derive(Eq)]
    TriggerResponse = "std_srvs/srv/Trigger_Response" {
        /// Whether it was done.
        success: bool,
        /// The result, for people.
        message: String,
    }
}

/// As ROS prints it: seconds and nanoseconds.
impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:09}", self.sec, self.nanosec)
    }
}
