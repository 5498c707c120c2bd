//! Where the names of users' devices come from (files, recordings, the mediator), and what a wrong name may
//! mean. IO.

use std::path::PathBuf;
use std::time::Duration;

use amber_client::{Client, MediatorAddress};
use amber_proto::{Device, DeviceType};
use amber_reflect::Schemas;
use amber_terminal::{Names, usual};
use tokio::time::timeout;

use super::{descriptions, runtime};

/// The longest time that a command waits for a mediator, including the connection.
pub const FOR_COMMANDS: Duration = Duration::from_secs(5);
/// The same for a person who waits for completion.
pub const FOR_COMPLETION: Duration = Duration::from_millis(500);

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

/// Learns the names of users' devices for all commands, once. Sources that cannot be read are skipped:
/// the command reports them, or that the name is unknown.
pub fn learn(sources: &Sources, patience: Duration) {
    amber_terminal::learn_names(|| {
        let mut names = Names::new();
        // A file that does not compile hides no other names.
        let files = sources.files.iter().cloned();
        let described = files.filter_map(|file| described(&[file]).ok());
        names.extend(described.flatten());
        names.extend(of_recordings(&sources.recordings));
        names.extend(of_mediator(&sources.mediator, patience).1);
        names
    });
}

/// The names of users' devices in these files.
///
/// # Errors
/// A file cannot be read, or a description breaks a rule; the error says where and why.
pub fn described(files: &[PathBuf]) -> Result<Names, String> {
    let schemas = Schemas::with(files).map_err(|error| error.to_string())?;
    Ok(names_in(&schemas))
}

pub(super) fn names_in(schemas: &Schemas) -> Names {
    let own = schemas.own_interfaces();
    own.map(|it| (usual(&it.name), DeviceType(it.device_type)))
        .collect()
}

/// The types of the devices in recordings by their names.
pub(super) fn of_recordings(files: &[PathBuf]) -> Names {
    #[cfg(feature = "record")]
    return (files.iter())
        .flat_map(|file| super::recordings::info::devices_in(file))
        .collect();
    #[cfg(not(feature = "record"))]
    return {
        let _ = files;
        Names::new()
    };
}

/// The devices of a mediator, and the names of users' devices among them. Both are empty if it does not
/// answer.
pub(super) fn of_mediator(mediator: &MediatorAddress, patience: Duration) -> (Vec<Device>, Names) {
    let Ok(runtime) = runtime() else {
        return Default::default();
    };
    let found = runtime.block_on(async { timeout(patience, ask(mediator)).await });
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
        if descriptions::complete(&client, *device, &mut schemas)
            .await
            .is_ok()
        {
            names.extend(names_in(&schemas));
        }
    }
    client.close().await;
    Some((devices, names))
}

/// The nearest name, and all of them.
pub(super) fn suggestion(wrong: &str, names: &[&str], what: &str) -> String {
    let distance = |name: &str| strsim::damerau_levenshtein(wrong, name);
    let nearest = names.iter().min_by_key(|name| distance(name));
    let all = names.join(", ");
    match nearest {
        Some(name) if distance(name) <= 1 + name.len() / 3 => {
            format!("did you mean '{name}'? its {what} are: {all}")
        }
        _ => format!("its {what} are: {all}"),
    }
}
