//! Measurements of sensors. PURE.

use super::{Header, Quaternion, Vector3, message};

message! {
    /// A scan. Infinite: nothing in range. Not a number: no measurement.
    LaserScan = "sensor_msgs" "LaserScan" {
        /// The time of the first ray, and the frame of the laser.
        header: Header,
        /// The angle of the first ray.
        angle_min: f32,
        /// The angle of the last ray.
        angle_max: f32,
        /// The angle between two rays.
        angle_increment: f32,
        /// The time between two rays.
        time_increment: f32,
        /// The time between two scans.
        scan_time: f32,
        /// The shortest valid distance.
        range_min: f32,
        /// The longest valid distance.
        range_max: f32,
        /// The distances, counter-clockwise.
        ranges: Vec<f32>,
        /// How much light comes back; empty if the laser does not measure it.
        intensities: Vec<f32>,
    }
}

message! {
    /// Rotation and acceleration. A covariance that begins with -1 says that the value is not measured.
    Imu = "sensor_msgs" "Imu" {
        /// Time and frame.
        header: Header,
        orientation: Quaternion,
        /// Its covariance: three rows.
        orientation_covariance: [f64; 9],
        /// Radians per second.
        angular_velocity: Vector3,
        /// Its covariance: three rows.
        angular_velocity_covariance: [f64; 9],
        /// Metres per second squared, with gravity.
        linear_acceleration: Vector3,
        /// Its covariance: three rows.
        linear_acceleration_covariance: [f64; 9],
    }
}

message! {
    MagneticField = "sensor_msgs" "MagneticField" {
        /// Time and frame.
        header: Header,
        /// Tesla.
        magnetic_field: Vector3,
        /// Its covariance: three rows.
        magnetic_field_covariance: [f64; 9],
    }
}

message! {
    /// Joints: wheels and servos. A list is empty if nothing of it is known.
    JointState = "sensor_msgs" "JointState" {
        /// Time and frame.
        header: Header,
        /// The names of the joints.
        name: Vec<String>,
        /// Radians.
        position: Vec<f64>,
        /// Radians per second.
        velocity: Vec<f64>,
        /// Newton metres.
        effort: Vec<f64>,
    }
}

message! {
    /// A battery. What is not measured is not a number.
    BatteryState = "sensor_msgs" "BatteryState" {
        /// Time and frame.
        header: Header,
        /// Volts.
        voltage: f32,
        /// Degrees Celsius.
        temperature: f32,
        /// Amperes, negative while it discharges.
        current: f32,
        /// Ampere hours.
        charge: f32,
        /// Ampere hours, of the battery as it is.
        capacity: f32,
        /// Ampere hours, of the battery when it was new.
        design_capacity: f32,
        /// From 0 to 1.
        percentage: f32,
        /// 0 unknown, 1 charging, 2 discharging, 3 not charging, 4 full.
        power_supply_status: u8,
        /// 0 unknown, 1 good; others are faults.
        power_supply_health: u8,
        /// 0 unknown; others are kinds of cells.
        power_supply_technology: u8,
        /// Whether there is a battery.
        present: bool,
        /// Volts of each cell.
        cell_voltage: Vec<f32>,
        /// Degrees Celsius of each cell.
        cell_temperature: Vec<f32>,
        location: String,
        serial_number: String,
    }
}

message! {
    /// Whether a receiver of navigation satellites has a position.
    NavSatStatus = "sensor_msgs" "NavSatStatus" {
        /// -1 no position, 0 a position, 1 with corrections, 2 with those of a station.
        status: i8,
        /// The systems of satellites: 1 GPS, 2 GLONASS, 4 BeiDou, 8 Galileo.
        service: u16,
    }
}

message! {
    /// A position on Earth. What is unknown is not a number.
    NavSatFix = "sensor_msgs" "NavSatFix" {
        /// Time and frame of the receiver.
        header: Header,
        /// Whether there is a position.
        status: NavSatStatus,
        /// Degrees, positive in the north.
        latitude: f64,
        /// Degrees, positive in the east.
        longitude: f64,
        /// Metres above the ellipsoid WGS 84.
        altitude: f64,
        /// To the east, to the north and up, in square metres: three rows.
        position_covariance: [f64; 9],
        /// 0 unknown, 1 estimated, 2 its diagonal is known, 3 known.
        position_covariance_type: u8,
    }
}

message! {
    /// A gamepad, in the order of `game_controller_node`.
    Joy = "sensor_msgs" "Joy" {
        /// Time and frame.
        header: Header,
        /// From -1 to 1: the left and up are positive.
        axes: Vec<f32>,
        /// 1 while a button is held.
        buttons: Vec<i32>,
    }
}

message! {
    /// A picture as a file.
    #[derive(Eq)]
    CompressedImage = "sensor_msgs" "CompressedImage" {
        /// The time when it was taken, and the optical frame of the camera.
        header: Header,
        /// Such as `jpeg`.
        format: String,
        /// The file.
        data: Vec<u8>,
    }
}

message! {
    /// A part of a picture. If all numbers are 0, the whole picture.
    #[derive(Copy, Eq)]
    RegionOfInterest = "sensor_msgs" "RegionOfInterest" {
        /// The first column.
        x_offset: u32,
        /// The first row.
        y_offset: u32,
        height: u32,
        width: u32,
        /// Whether programs should cut the rectified picture as well.
        do_rectify: bool,
    }
}

message! {
    /// The optics of a camera. Lengths are in pixels. If the camera is not calibrated, all matrices
    /// are 0.
    CameraInfo = "sensor_msgs" "CameraInfo" {
        /// The time of the picture, and the optical frame of the camera.
        header: Header,
        /// Of the picture.
        height: u32,
        /// Of the picture.
        width: u32,
        /// Such as `plumb_bob`.
        distortion_model: String,
        /// The coefficients of the model.
        d: Vec<f64>,
        /// Focal lengths and centre: three rows.
        k: [f64; 9],
        /// The rotation to the rectified picture: three rows.
        r: [f64; 9],
        /// The projection of the rectified picture: three rows.
        p: [f64; 12],
        /// How many pixels of the camera are one in the picture; 0 counts as 1.
        binning_x: u32,
        /// The same downwards.
        binning_y: u32,
        /// The part of the picture.
        roi: RegionOfInterest,
    }
}

message! {
    /// Something that the robot feels.
    #[derive(Eq)]
    HazardDetection = "irobot_create_msgs" "HazardDetection" {
        /// Time and frame of the sensor.
        header: Header,
        /// 1 the robot has bumped, 2 there is a cliff, 4 a wheel hangs in the air.
        r#type: u8,
    }
}

message! {
    /// All that the robot feels, in the words of iRobot's robots for ROS 2.
    #[derive(Eq)]
    HazardDetectionVector = "irobot_create_msgs" "HazardDetectionVector" {
        /// Time and frame of the robot.
        header: Header,
        /// Nothing, or what it feels.
        detections: Vec<HazardDetection>,
    }
}
