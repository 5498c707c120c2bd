//! Messages, attachments, keys and tokens of ROS 2. PURE.

use amber_ros2::messages::{
    BatteryState, CameraInfo, CompressedImage, DiagnosticArray, HazardDetectionVector, Imu,
    JointState, Joy, LaserScan, MagneticField, NavSatFix, OccupancyGrid, Odometry, Path,
    PoseStamped, PoseWithCovarianceStamped, Text, TfMessage, TriggerRequest, TriggerResponse,
    Twist, TwistStamped,
};
use amber_ros2::{Attachment, BridgeToken, DataKey, RosMessage, Token, decode, encode, ros2dds};

/// A message of each type: what is read is written again as the same message.
pub(super) fn messages(data: &[u8]) {
    let read: [fn(&[u8]); 22] = [
        again::<BatteryState>,
        again::<CameraInfo>,
        again::<CompressedImage>,
        again::<DiagnosticArray>,
        again::<Imu>,
        again::<JointState>,
        again::<Joy>,
        again::<LaserScan>,
        again::<MagneticField>,
        again::<NavSatFix>,
        again::<HazardDetectionVector>,
        again::<OccupancyGrid>,
        again::<Odometry>,
        again::<Path>,
        again::<PoseStamped>,
        again::<PoseWithCovarianceStamped>,
        again::<Text>,
        again::<TfMessage>,
        again::<TriggerRequest>,
        again::<TriggerResponse>,
        again::<Twist>,
        again::<TwistStamped>,
    ];
    for read in read {
        read(data);
    }
}

fn again<M: RosMessage>(payload: &[u8]) {
    if let Ok(message) = decode::<M>(payload) {
        let written = encode(&message);
        let read: M = decode(&written).expect("a message that was written");
        // As bytes: a NaN is not equal to itself.
        assert_eq!(encode(&read), written);
    }
}

/// An attachment, keys and tokens: what is read is written again as the same.
pub(super) fn names(data: &[u8]) {
    if let Ok(attachment) = Attachment::decode(data) {
        assert_eq!(attachment.encode(), data);
    }
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    if let Ok(key) = DataKey::parse(text) {
        assert_eq!(DataKey::parse(&key.to_string()), Ok(key));
    }
    if let Ok(token) = text.parse::<Token>() {
        assert_eq!(token.to_string().parse(), Ok(token));
    }
    if let Ok(token) = text.parse::<BridgeToken>() {
        assert_eq!(token.to_string(), text);
    }
    if let Ok(name) = ros2dds::name_of(text) {
        assert_eq!(ros2dds::data_key(&name), text);
    }
}
