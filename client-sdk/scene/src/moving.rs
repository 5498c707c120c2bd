//! The devices that move, by their descriptions, and a halt of all of them. IO.

use std::time::Duration;

use amber_client::{Client, Error, Proxy};
use amber_proto::mediator::{Driver, DriverState};
use amber_proto::{Device, DeviceType};
use amber_reflect::Schemas;
use tokio::task::JoinSet;

/// A driver answers within milliseconds. One of several attempts may get lost.
const DEADLINE: Duration = Duration::from_millis(300);
const ATTEMPTS: usize = 3;
/// The mediator answers from memory.
const MEDIATOR_DEADLINE: Duration = Duration::from_millis(500);

/// The devices of running drivers that have something that moves.
///
/// # Errors
/// The mediator does not answer.
pub async fn devices(client: &Client) -> Result<Vec<Device>, Error> {
    let drivers = client.mediator().drivers().await?;
    let is_running =
        |driver: &&Driver| matches!(driver.state(), DriverState::Up | DriverState::Starting);
    let devices = drivers.iter().filter(is_running).flat_map(|it| &it.devices);
    let mut moving = Vec::new();
    for device in devices {
        let device = Device::new(DeviceType(device.r#type), device.id);
        if moves(client, device).await {
            moving.push(device);
        }
    }
    Ok(moving)
}

/// Whether a device has something that moves. One without a description has not.
async fn moves(client: &Client, device: Device) -> bool {
    let built_in = amber_reflect::built_in().iter();
    let mut of_type = built_in.filter(|it| it.device_type == device.device_type.0);
    if let Some(interface) = of_type.next() {
        return interface.moves();
    }
    let mediator = client.mediator().with_deadline(MEDIATOR_DEADLINE);
    let found = mediator.get_description(device.device_type.0, device.id.0);
    // Older mediators refuse the request, and most devices have no description.
    let Ok(found) = found.await else {
        return false;
    };
    let Ok(schemas) = Schemas::from_descriptors(&found.files) else {
        return false;
    };
    let mut own = schemas.own_interfaces();
    own.any(|it| it.device_type == device.device_type.0 && it.moves())
}

/// Halts these devices, or releases their halt, all at the same time. `name` says to people who does.
pub async fn change_halts(
    client: &Client,
    devices: Vec<Device>,
    is_halted: bool,
    name: &str,
) -> Vec<(Device, Result<(), Error>)> {
    let mut asked = JoinSet::new();
    for device in devices {
        let (proxy, name) = (client.device(device), name.to_owned());
        let proxy = proxy.with_deadline(DEADLINE);
        asked.spawn(async move { (device, change_halt(&proxy, is_halted, &name).await) });
    }
    let mut done = asked.join_all().await;
    done.sort_by_key(|(device, _)| *device);
    done
}

async fn change_halt(proxy: &Proxy, is_halted: bool, name: &str) -> Result<(), Error> {
    let mut last = Ok(());
    for _ in 0..ATTEMPTS {
        let done = match is_halted {
            true => proxy.halt(name).await,
            false => proxy.release_halt(name).await,
        };
        last = done.map(drop);
        if !matches!(last, Err(Error::TimedOut { .. })) {
            break;
        }
    }
    last
}
