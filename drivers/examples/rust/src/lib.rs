//! The messages of the example devices, for their drivers and clients.

/// A thermometer: `thermometer.proto`.
pub mod thermometer {
    use amber_proto::{Device, DeviceType};

    amber_proto::include_messages!("thermometer");
    amber_driver::include_driver!("thermometer");

    /// The device: any type except those that have a name.
    pub const THERMOMETER: Device = Device::new(DeviceType(201), 0);
}

/// A wall follower: `follow_wall.proto`.
pub mod follow_wall {
    use amber_proto::{Device, DeviceType};

    amber_proto::include_messages!("follow_wall");
    amber_driver::include_driver!("follow_wall");

    /// The device: any type except those that have a name.
    pub const FOLLOW_WALL: Device = Device::new(DeviceType(202), 0);
}
