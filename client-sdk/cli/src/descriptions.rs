//! Where the description of a device comes from. IO.

use std::path::PathBuf;
use std::time::Duration;

use amber_client::{Announcement, Client};
use amber_proto::Device;
use amber_reflect::Schemas;
use amber_terminal::Failure;

/// The descriptions that need no mediator: those of users' files, and those of Amber.
///
/// # Errors
/// A file cannot be read, or breaks a rule.
pub(super) fn local(files: &[PathBuf]) -> Result<Schemas, Failure> {
    Ok(Schemas::with(files)?)
}

/// The mediator answers from memory, so a late answer means that it has ended.
const DEADLINE: Duration = Duration::from_millis(500);

/// Asks the mediator for the description of a device if there is no local one: its driver may have
/// handed it over.
///
/// # Errors
/// There is a description, and it is invalid.
pub(super) async fn complete(
    client: &Client,
    device: Device,
    schemas: &mut Schemas,
) -> Result<(), Failure> {
    let is_known = schemas.interface(device.device_type).is_some();
    if is_known || client.announcement() == Announcement::Silent {
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

/// Adds what a driver has handed over.
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
        let text = format!("the description that the driver of {device} has is of another device");
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
            (descriptors(202), "is of another device"),
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
