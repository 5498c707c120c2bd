//! The messages of the devices here, for their drivers and their clients.

/// A thermometer: `thermometer.proto`.
pub mod thermometer {
    use amber_proto::{Device, DeviceType};

    amber_proto::include_messages!("thermometer");

    /// Its number: any but those that have a name.
    pub const THERMOMETER: Device = Device::new(DeviceType(201), 0);
}

/// Whoever keeps a wall at the robot's right hand: `follow_wall.proto`.
pub mod follow_wall {
    use amber_proto::{Device, DeviceType};

    amber_proto::include_messages!("follow_wall");

    /// Its number: any but those that have a name.
    pub const FOLLOW_WALL: Device = Device::new(DeviceType(202), 0);
}
