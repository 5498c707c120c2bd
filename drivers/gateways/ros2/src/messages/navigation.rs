//! Maps, paths and odometry. PURE.

use super::{Header, Pose, PoseStamped, PoseWithCovariance, Time, TwistWithCovariance, message};

message! {
    /// Odometry: the pose and motion of the robot, according to its wheels.
    Odometry = "nav_msgs" "Odometry" {
        /// Time and the frame of the pose.
        header: Header,
        /// The frame of the motion: that of the robot.
        child_frame_id: String,
        /// The pose.
        pose: PoseWithCovariance,
        /// The motion.
        twist: TwistWithCovariance,
    }
}

message! {
    /// A path.
    Path = "nav_msgs" "Path" {
        /// Time and frame.
        header: Header,
        /// Its poses in their order.
        poses: Vec<PoseStamped>,
    }
}

message! {
    /// The size and the place of a map.
    #[derive(Copy)]
    MapMetaData = "nav_msgs" "MapMetaData" {
        /// When the map was loaded.
        map_load_time: Time,
        /// Metres per cell.
        resolution: f32,
        /// Cells in a row.
        width: u32,
        /// Rows.
        height: u32,
        /// The corner of the first cell.
        origin: Pose,
    }
}

message! {
    /// A map of cells.
    OccupancyGrid = "nav_msgs" "OccupancyGrid" {
        /// Time and frame.
        header: Header,
        /// Size and place.
        info: MapMetaData,
        /// Row by row from the first cell: 0 free to 100 occupied, -1 unknown.
        data: Vec<i8>,
    }
}
