//! Finds the description of a device. IO.

use std::path::PathBuf;
use std::time::Duration;

use amber_client::{Announcement, Client, MediatorAddress};
use amber_proto::Device;
use amber_reflect::Schemas;
use amber_terminal::Failure;

use super::runtime;
use super::session::Session;

/// The mediator answers from memory. Without an answer in this time, it has ended or is unreachable.
const DEADLINE: Duration = Duration::from_secs(3);

/// The longest time that help and completion wait for the first sign of a mediator.
const PATIENCE: Duration = Duration::from_millis(500);

/// The descriptions for a command that concerns a device: those of users' files and of Amber, and
/// the one from the mediator if no other one describes the device.
///
/// # Errors
/// A file cannot be read, a description breaks a rule, or a required mediator is unavailable.
pub(super) async fn of(
    device: Device,
    files: &[PathBuf],
    session: &mut Session<'_>,
) -> Result<Schemas, Failure> {
    let mut schemas = Schemas::with(files)?;
    if schemas.interface(device.device_type).is_none() {
        complete(session.client().await?, device, &mut schemas).await?;
    }
    Ok(schemas)
}

/// Descriptions for help and completion.
pub(super) struct Known {
    pub(super) schemas: Schemas,
    /// The advice if the device has no description.
    pub(super) hint: String,
}

/// The same for help and completion, which work without a mediator.
///
/// # Errors
/// A file cannot be read, or a description breaks a rule.
pub(super) fn for_help(
    device: Device,
    files: &[PathBuf],
    mediator: &MediatorAddress,
) -> Result<Known, Failure> {
    let mut schemas = Schemas::with(files)?;
    let mut hint = String::new();
    if schemas.interface(device.device_type).is_none() {
        let runtime = runtime()?;
        // Without an answer, the local descriptions remain.
        let is_reached = runtime.block_on(ask(mediator, device, &mut schemas));
        // A pending host name lookup must not delay the end.
        runtime.shutdown_background();
        let why = match is_reached? {
            true => "its driver has not sent a description to the mediator".to_owned(),
            false => format!("the mediator at {mediator} does not answer"),
        };
        hint = format!("{why}; `--proto FILE` reads the description of your own device");
    }
    Ok(Known { schemas, hint })
}

/// Returns whether the mediator has answered.
async fn ask(
    mediator: &MediatorAddress,
    device: Device,
    schemas: &mut Schemas,
) -> Result<bool, Failure> {
    let connected = tokio::time::timeout(PATIENCE, Client::connect(mediator)).await;
    let Ok(Ok(client)) = connected else {
        return Ok(false);
    };
    let done = complete(&client, device, schemas).await;
    let is_reached = client.announcement() == Announcement::Answered;
    client.close().await;
    done.map(|()| is_reached)
}

/// Asks the mediator for the description of a device: its driver may have sent one.
///
/// # Errors
/// The description is invalid.
pub(super) async fn complete(
    client: &Client,
    device: Device,
    schemas: &mut Schemas,
) -> Result<(), Failure> {
    if client.announcement() == Announcement::Silent {
        return Ok(());
    }
    let mediator = client.mediator().with_deadline(DEADLINE);
    // Older mediators refuse the request, and most devices have no description. The command then
    // fails because it needs one.
    let found = mediator.get_description(device.device_type.0, device.id.0);
    match found.await {
        Ok(found) => add(device, &found.files, schemas),
        Err(_) => Ok(()),
    }
}

/// Adds a description that a driver has sent.
fn add(device: Device, files: &[u8], schemas: &mut Schemas) -> Result<(), Failure> {
    let served = Schemas::from_descriptors(files).map_err(|error| {
        let text = format!("the driver of {device} has an invalid description: {error}");
        let failure = Failure::new(text);
        match error.hint {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    })?;
    let is_of_device = (served.own_interfaces()).any(|it| it.device_type == device.device_type.0);
    if !is_of_device {
        let text = format!("the driver of {device} has a description of another device");
        return Err(Failure::new(text));
    }
    schemas.add(served);
    Ok(())
}

#[cfg(test)]
mod tests {
    use amber_proto::DeviceType;

    use super::*;

    /// The description of a lamp, as its driver hands it over.
    fn descriptors(device_type: i32) -> Vec<u8> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("lamp.proto");
        let text = format!(
            "syntax = \"proto2\"; package lamp;\n\
             import \"drivermsg.proto\"; import \"interface.proto\";\n\
             extend amber.DriverMsg {{ optional uint32 brightness = 110; }}\n\
             service Lamp {{ option (amber.device) = {{ type: {device_type} name: \"lamp\" }};\n\
             rpc Dim(amber.DriverMsg) returns (amber.Nothing) {{\n\
             option (amber.tell) = {{ request: \"brightness\" }}; }} }}\n"
        );
        std::fs::write(&file, text).unwrap();
        let schemas = Schemas::with(&[file]).unwrap();
        let lamp = schemas.for_device(Some(DeviceType(device_type)));
        let file = lamp.pool().get_file_by_name("lamp.proto").unwrap();
        // A set with one file: field 1.
        let bytes = file.encode_to_vec();
        let mut set = vec![0x0a];
        prost::encoding::encode_varint(bytes.len() as u64, &mut set);
        set.extend(bytes);
        set
    }

    #[test]
    fn a_device_is_known_by_what_its_driver_handed_over() {
        let device = Device::new(DeviceType(201), 0);
        let mut schemas = Schemas::built_in();
        add(device, &descriptors(201), &mut schemas).unwrap();
        let interface = schemas.interface(DeviceType(201)).unwrap();
        assert_eq!(interface.name, "lamp");
        for (files, why) in [
            (descriptors(202), "has a description of another device"),
            (b"hello".to_vec(), "has an invalid description"),
        ] {
            let failure = format!(
                "{:?}",
                add(device, &files, &mut Schemas::built_in()).unwrap_err()
            );
            assert!(failure.contains(why), "{failure}");
        }
    }
}
