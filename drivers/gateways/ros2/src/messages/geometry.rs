//! Points, motions and frames. PURE.

use super::{Header, message};

message! {
    /// A direction, speed or distance.
    #[derive(Copy)]
    Vector3 = "geometry_msgs" "Vector3" {
        /// Ahead.
        x: f64,
        /// To the left.
        y: f64,
        /// Up.
        z: f64,
    }
}

message! {
    /// A point, in metres.
    #[derive(Copy)]
    Point = "geometry_msgs" "Point" {
        /// Ahead, or on a map to the right.
        x: f64,
        /// To the left, or on a map up.
        y: f64,
        /// Above the floor.
        z: f64,
    }
}

message! {
    /// A rotation.
    #[derive(Copy)]
    Quaternion = "geometry_msgs" "Quaternion" {
        /// The part around x.
        x: f64,
        /// The part around y.
        y: f64,
        /// The part around z.
        z: f64,
        /// The real part.
        w: f64,
    }
}

message! {
    /// A point and a direction.
    #[derive(Copy)]
    Pose = "geometry_msgs" "Pose" {
        position: Point,
        /// The direction.
        orientation: Quaternion,
    }
}

message! {
    #[derive(Copy)]
    PoseWithCovariance = "geometry_msgs" "PoseWithCovariance" {
        pose: Pose,
        /// Rows and columns: x, y, z, and the rotations around them.
        covariance: [[f64; 6]; 6],
    }
}

message! {
    /// A pose at a time, in a frame.
    PoseStamped = "geometry_msgs" "PoseStamped" {
        /// Time and frame.
        header: Header,
        pose: Pose,
    }
}

message! {
    /// A pose at a time, in a frame, with its covariance.
    PoseWithCovarianceStamped = "geometry_msgs" "PoseWithCovarianceStamped" {
        /// Time and frame.
        header: Header,
        pose: PoseWithCovariance,
    }
}

message! {
    /// A motion.
    #[derive(Copy)]
    Twist = "geometry_msgs" "Twist" {
        /// Metres per second.
        linear: Vector3,
        /// Radians per second, counter-clockwise.
        angular: Vector3,
    }
}

message! {
    /// A motion at a time, in a frame.
    TwistStamped = "geometry_msgs" "TwistStamped" {
        /// Time and frame.
        header: Header,
        /// The motion.
        twist: Twist,
    }
}

message! {
    /// A motion with its covariance.
    #[derive(Copy)]
    TwistWithCovariance = "geometry_msgs" "TwistWithCovariance" {
        /// The motion.
        twist: Twist,
        /// Rows and columns: x, y, z, and the rotations around them.
        covariance: [[f64; 6]; 6],
    }
}

message! {
    /// The pose of one frame in another.
    #[derive(Copy)]
    Transform = "geometry_msgs" "Transform" {
        /// The origin of the child frame in the parent frame.
        translation: Vector3,
        /// The rotation of the child frame.
        rotation: Quaternion,
    }
}

message! {
    /// The pose of one frame in another, at a time.
    TransformStamped = "geometry_msgs" "TransformStamped" {
        /// The time, and the parent frame.
        header: Header,
        child_frame_id: String,
        /// Its location.
        transform: Transform,
    }
}

message! {
    /// The poses of frames: the topics `tf` and `tf_static`.
    TfMessage = "tf2_msgs" "TFMessage" {
        /// One entry for each child frame.
        transforms: Vec<TransformStamped>,
    }
}

impl Quaternion {
    /// A turn around z, counter-clockwise.
    #[must_use]
    pub fn from_yaw(yaw_rad: f64) -> Self {
        let (sin, cos) = (yaw_rad / 2.0).sin_cos();
        Self {
            x: 0.0,
            y: 0.0,
            z: sin,
            w: cos,
        }
    }

    /// The turn around z, counter-clockwise.
    #[must_use]
    pub fn yaw(self) -> f64 {
        let Self { x, y, z, w } = self;
        (2.0 * (w * z + x * y)).atan2(1.0 - 2.0 * (y * y + z * z))
    }
}

impl Pose {
    /// A pose on the floor.
    #[must_use]
    pub fn flat(x: f64, y: f64, yaw_rad: f64) -> Self {
        Self {
            position: Point { x, y, z: 0.0 },
            orientation: Quaternion::from_yaw(yaw_rad),
        }
    }
}
