//! Maps, paths and odometry. PURE.

use super::{
    Header, Pose, PoseStamped, PoseWithCovariance, Time, TwistWithCovariance, message, typed,
};

message! {
    /// Odometry: the pose and motion of the robot, according to its wheels.
    Odometry = "nav_msgs" "Odometry" {
        /// Time and the frame of the pose.
        header: Header,
        /// The frame of the motion: that of the robot.
        child_frame_id: String,
        pose: PoseWithCovariance,
        /// The motion.
        twist: TwistWithCovariance,
    }
}

message! {
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

message! {
    /// The request of `nav2_msgs/srv/SaveMap`.
    SaveMapRequest = "nav2_msgs/srv/SaveMap_Request" {
        map_topic: String,
        /// The file, without its ending.
        map_url: String,
        /// Such as `pgm`.
        image_format: String,
        /// Such as `trinary`.
        map_mode: String,
        /// Below it, cells are free.
        free_thresh: f32,
        /// Above it, cells are occupied.
        occupied_thresh: f32,
    }
}

message! {
    /// The reply of `nav2_msgs/srv/SaveMap`.
    #[derive(Copy, Eq)]
    SaveMapResponse = "nav2_msgs/srv/SaveMap_Response" {
        /// Whether the map is saved.
        result: bool,
    }
}

// Computed from its definition, which is the same in Jazzy, Kilted and Lyrical.
typed! {
    Service "nav2_msgs" "SaveMap" "fd31bfe2c69b4e15bf86155148940d27d762296b058bda8d450a7f38b6c557e7":
    SaveMapRequest SaveMapResponse
}
