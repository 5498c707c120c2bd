//! Names of users' devices: only their descriptions know them. IO.
//!
//! [`device`] reads a device of the command line. If a name is unknown, the program [`learn`]s the
//! names from files, recordings and the mediator, and reads the command line again.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

use amber_client::{Client, MediatorAddress};
use amber_proto::{Device, DeviceType};
use amber_reflect::Schemas;
use tokio::time::timeout;

use super::{descriptions, runtime};

/// The longest time that this waits for a mediator, including the connection.
const PATIENCE: Duration = Duration::from_millis(500);

static LEARNT: OnceLock<Names> = OnceLock::new();

/// The types of devices by their names.
pub type Names = BTreeMap<String, DeviceType>;

/// Where names come from.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// Descriptions.
    pub files: Vec<PathBuf>,
    /// Recordings.
    pub recordings: Vec<PathBuf>,
    /// The mediator, to which drivers send their descriptions.
    pub mediator: MediatorAddress,
}

/// Reads a device such as `hokuyo`, `hokuyo:0`, `4:0` or `lamp`.
///
/// # Errors
/// The name is unknown, or the id is no number.
pub fn device(text: &str) -> Result<Device, String> {
    text.parse::<Device>().or_else(|error| {
        let known = LEARNT.get().and_then(|names| device_in(names, text));
        known.ok_or_else(|| error.to_string())
    })
}

fn device_in(names: &Names, text: &str) -> Option<Device> {
    let (name, id) = text.split_once(':').unwrap_or((text, "0"));
    let device_type = names.get(&usual(name))?;
    Some(Device::new(*device_type, id.parse().ok()?))
}

/// Names of Amber's devices are also read in this way.
pub(super) fn usual(name: &str) -> String {
    name.to_ascii_lowercase().replace('_', "-")
}

/// Learns the names of users' devices for [`device`], once. Sources that cannot be read are skipped:
/// the command reports them, or that the name is unknown.
pub fn learn(sources: &Sources) {
    let _ = LEARNT.get_or_init(|| {
        let mut names = Names::new();
        for schemas in sources.files.iter().filter_map(|file| Schemas::with(&[file]).ok()) {
            names.extend(names_in(&schemas));
        }
        #[cfg(feature = "record")]
        for file in &sources.recordings {
            names.extend(super::record::info::devices_in(file));
        }
        names.extend(of_mediator(&sources.mediator).1);
        names
    });
}

pub(super) fn names_in(schemas: &Schemas) -> Names {
    let own = schemas.own_interfaces();
    own.map(|it| (usual(&it.name), DeviceType(it.device_type)))
        .collect()
}

/// The devices of a mediator, and the names of users' devices among them. Both are empty if it does not
/// answer.
pub(super) fn of_mediator(mediator: &MediatorAddress) -> (Vec<Device>, Names) {
    let Ok(runtime) = runtime() else {
        return Default::default();
    };
    let found = runtime.block_on(async { timeout(PATIENCE, ask(mediator)).await });
    // A pending host name lookup must not delay the end.
    runtime.shutdown_background();
    found.ok().flatten().unwrap_or_default()
}

async fn ask(mediator: &MediatorAddress) -> Option<(Vec<Device>, Names)> {
    let client = Client::connect(mediator).await.ok()?;
    let drivers = client.mediator().drivers().await.unwrap_or_default();
    let devices = drivers.iter().flat_map(|driver| &driver.devices);
    let devices: Vec<_> = devices
        .map(|it| Device::new(DeviceType(it.r#type), it.id))
        .collect();
    let mut names = Names::new();
    let built_in = Schemas::built_in();
    for device in &devices {
        if built_in.interface(device.device_type).is_some() {
            continue;
        }
        let mut schemas = Schemas::built_in();
        if descriptions::complete(&client, *device, &mut schemas).await.is_ok() {
            names.extend(names_in(&schemas));
        }
    }
    client.close().await;
    Some((devices, names))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_like_those_of_ambers_devices() {
        let names = Names::from([("ceiling-lamp".to_owned(), DeviceType(201))]);
        for (text, id) in [("ceiling-lamp", 0), ("Ceiling_Lamp:3", 3)] {
            let device = Device::new(DeviceType(201), id);
            assert_eq!(device_in(&names, text), Some(device), "{text}");
        }
        for text in ["lamp", "ceiling-lamp:x", "", ":1"] {
            assert_eq!(device_in(&names, text), None, "{text}");
        }
        assert_eq!(device("hokuyo:1"), Ok(Device::new(DeviceType::HOKUYO, 1)));
        assert!(device("spoon").unwrap_err().contains("unknown device type"));
    }
}
