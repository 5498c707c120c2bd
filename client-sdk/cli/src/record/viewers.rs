//! The initial data for the messages for Foxglove and Lichtblick. IO.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use amber_client::Client;
use amber_foxglove::Converter;
use amber_proto::robot::Shape;
use amber_proto::{Device, DeviceType};
use amber_scene::mount;

/// A recording does not wait longer for the map. Drivers of the original system do not answer.
const DEADLINE: Duration = Duration::from_millis(500);

/// A converter with the shape of the robot and the map, because they may not be sent again.
/// `devices` are those that are recorded; all if there are none.
pub(super) async fn converter(
    client: &Client,
    devices: &[Device],
    shape: Option<&Shape>,
) -> Converter {
    let mut converter = Converter::new();
    if let Some(shape) = shape {
        converter.set_shape(shape);
    }
    let location = Device::new(DeviceType::LOCATION, 0);
    if devices.is_empty() || devices.contains(&location) {
        let location = client.location(0).with_deadline(DEADLINE);
        if let Ok(map) = location.map().await {
            let now = SystemTime::now().duration_since(UNIX_EPOCH);
            let now_ns = now.map_or(0, |now| now.as_nanos() as u64);
            converter.set_map(now_ns, location.address().id.0, &map);
        }
    }
    converter
}

/// The shape of the robot, if there is a robot device and it is recorded. The recorder asks for it
/// again when it records, so that the recording has the answer.
pub(super) async fn shape(client: &Client, devices: &[Device]) -> Option<Shape> {
    match devices.is_empty() || devices.contains(&Device::new(DeviceType::ROBOT, 0)) {
        true => mount::shape(client).await,
        false => None,
    }
}
