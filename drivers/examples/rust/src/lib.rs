//! The messages of the example devices, their clients, and the traits of their drivers.

/// A thermometer: `thermometer.proto`.
pub mod thermometer {
    amber_proto::include_messages!("thermometer");
    amber_client::include_client!("thermometer");
    amber_driver::include_driver!("thermometer");
}

/// A wall follower: `follow_wall.proto`.
pub mod follow_wall {
    amber_proto::include_messages!("follow_wall");
    amber_client::include_client!("follow_wall");
    amber_driver::include_driver!("follow_wall");
}
