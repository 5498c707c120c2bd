//! `amber describe`: the interface of a device, from its `.proto`. IO.

use std::path::PathBuf;

use amber_client::MediatorAddress;
use amber_proto::{Device, DeviceType};
use amber_reflect::Schemas;
use amber_schema::Interface;
use amber_terminal::{Failure, Human, print_text, show, table};
use serde::Serialize;

use super::descriptions;

/// Options of `amber describe`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  amber describe
  amber describe hokuyo
  amber describe --proto battery.proto
  amber describe maestro --json
  amber describe roboclaw --as proto > roboclaw.proto

A mediator is required only for your own device without `--proto`: its driver may have sent its
description to the mediator. `--proto FILE` is input: it checks the description in your file.
`--as proto` is output: the interface as a .proto file that compiles.")]
pub struct Options {
    /// Device or device type, e.g. hokuyo, hokuyo:0 or 4; without it, list all
    #[arg(value_name = "DEVICE|TYPE", value_parser = amber_terminal::device)]
    device: Option<Device>,
    /// Description of your own device (may be given several times)
    #[arg(long, value_name = "FILE")]
    proto: Vec<PathBuf>,
    /// Output format; proto is the source text of its .proto file
    #[arg(long = "as", value_name = "FORM", conflicts_with = "markdown")]
    form: Option<Form>,
    /// Same as --as markdown; without a device, describe all devices
    #[arg(long)]
    markdown: bool,
}

/// An output format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Form {
    Text,
    Proto,
    Json,
    Markdown,
}

/// All described devices.
#[derive(Debug, Serialize)]
struct All {
    devices: Vec<Interface>,
}

/// One device.
#[derive(Debug, Serialize)]
#[serde(transparent)]
struct One(Interface);

impl Options {
    /// Runs the command.
    ///
    /// # Errors
    /// A file breaks a rule, or no description has the device type.
    pub fn run(self, options: &super::Options) -> Result<(), Failure> {
        let (schemas, found) = self.found(&options.mediator)?;
        let form = match self.form {
            Some(form) => form,
            None if options.json => Form::Json,
            None if self.markdown => Form::Markdown,
            None => Form::Text,
        };
        match form {
            Form::Proto => print_text(&source(&schemas, &found)?),
            Form::Markdown => print_text(&amber_schema::markdown(&found)),
            Form::Text | Form::Json => {
                let json = form == Form::Json;
                match <[Interface; 1]>::try_from(found) {
                    Ok([one]) => show(&One(one), json),
                    Err(devices) => show(&All { devices }, json),
                }
            }
        }
    }

    fn found(&self, mediator: &MediatorAddress) -> Result<(Schemas, Vec<Interface>), Failure> {
        let Some(device) = self.device else {
            let schemas = Schemas::with(&self.proto)?;
            let found = match &self.proto[..] {
                [] => amber_reflect::built_in().to_vec(),
                _ => schemas.own_interfaces().cloned().collect(),
            };
            let hint = "see proto/interface.proto for the options of a service";
            return match found.is_empty() {
                true => Err(Failure::wrong("these files describe no device").hint(hint)),
                false => Ok((schemas, found)),
            };
        };
        let known = descriptions::for_help(device, &self.proto, mediator)?;
        match known.schemas.interface(device.device_type).cloned() {
            Some(one) => Ok((known.schemas, vec![one])),
            None => Err(unknown(device.device_type).hint(known.hint)),
        }
    }
}

/// The file that describes the devices.
fn source(schemas: &Schemas, found: &[Interface]) -> Result<String, Failure> {
    let file = found.first().map(|interface| interface.file.as_str());
    let (Some(first), true) = (
        found.first(),
        found.iter().all(|it| Some(&*it.file) == file),
    ) else {
        return Err(Failure::wrong("--as proto needs a device")
            .hint("each device has its own file, e.g. `amber describe hokuyo --as proto`"));
    };
    let schemas = schemas.for_device(Some(DeviceType(first.device_type)));
    let file = schemas.pool().get_file_by_name(&first.file);
    file.map(|file| amber_reflect::source(&file))
        .ok_or_else(|| unknown(DeviceType(first.device_type)))
}

fn unknown(device_type: DeviceType) -> Failure {
    Failure::wrong(format!("no description of device type {device_type}"))
}

impl Human for All {
    fn human(&self) -> String {
        let rows = self.devices.iter().map(|device| {
            // The first sentence is the summary.
            let about = device
                .docs
                .split_once(". ")
                .map_or(&*device.docs, |(first, _)| first);
            let about = about.lines().next().unwrap_or_default();
            let about = about.trim_end_matches('.').to_owned();
            let names: Vec<_> = device.names().collect();
            [device.device_type.to_string(), names.join(", "), about]
        });
        table(["TYPE", "DEVICE", "WHAT IT IS"], &rows.collect::<Vec<_>>())
    }
}

impl Human for One {
    fn human(&self) -> String {
        amber_schema::text(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const BATTERY: &str = r#"syntax = "proto2";
package battery;
import "drivermsg.proto";
import "interface.proto";
extend amber.DriverMsg {
  optional bool get_charge = 110;
  optional double charge = 111 [(amber.unit) = "%"];
}
// A battery gauge.
service Battery {
  option (amber.device) = { type: 211 name: "gauge" };
  // How full the battery is.
  rpc Charge(amber.DriverMsg) returns (amber.DriverMsg) {
    option (amber.ask) = { flag: "get_charge" answer: "charge" };
  }
}
"#;

    fn options(device: Option<&str>, proto: &[PathBuf]) -> Options {
        Options {
            device: device.map(|device| device.parse().unwrap()),
            proto: proto.to_vec(),
            form: None,
            markdown: false,
        }
    }

    fn found(device: Option<&str>, proto: &[PathBuf]) -> Result<Vec<Interface>, Failure> {
        // Nothing listens there.
        let nowhere = "127.0.0.1:1".parse().unwrap();
        let (_, found) = options(device, proto).found(&nowhere)?;
        Ok(found)
    }

    #[test]
    fn devices_of_amber_and_of_users_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("battery.proto");
        fs::write(&file, BATTERY).unwrap();
        let names = |device, proto: &[PathBuf]| {
            let found = found(device, proto).unwrap();
            found.into_iter().map(|it| it.name).collect::<Vec<_>>()
        };
        assert_eq!(names(Some("hokuyo:1"), &[]), ["hokuyo"]);
        assert_eq!(names(Some("laser"), &[]), ["hokuyo"]);
        assert_eq!(names(Some("4"), std::slice::from_ref(&file)), ["hokuyo"]);
        assert_eq!(names(Some("211:3"), std::slice::from_ref(&file)), ["gauge"]);
        assert_eq!(names(None, std::slice::from_ref(&file)), ["gauge"]);
        assert_eq!(names(None, &[]).len(), DeviceType::NAMES.len());

        let battery = found(None, &[file]).unwrap().remove(0);
        let shown = One(battery).human();
        for words in [
            "gauge (device type 211)",
            "A battery gauge.",
            "charge  double  %",
        ] {
            assert!(shown.contains(words), "no {words:?} in\n{shown}");
        }
        assert!(found(Some("211"), &[]).is_err());
    }

    #[test]
    fn the_file_of_a_device_is_its_source() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("battery.proto");
        fs::write(&file, BATTERY).unwrap();
        let schemas = Schemas::with(std::slice::from_ref(&file)).unwrap();
        let own = found(None, std::slice::from_ref(&file)).unwrap();
        let text = source(&schemas, &own).unwrap();
        // It is a description, too.
        fs::write(&file, &text).unwrap();
        assert_eq!(found(None, &[file]).unwrap(), own, "{text}");
        let scan = source(&schemas, &found(Some("hokuyo"), &[]).unwrap()).unwrap();
        assert!(scan.contains("\nservice Hokuyo {\n"), "{scan}");
        assert!(source(&schemas, &found(None, &[]).unwrap()).is_err());
    }

    #[test]
    fn a_broken_rule_is_named_with_file_and_line() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("battery.proto");
        fs::write(&file, BATTERY.replace(" answer: \"charge\"", "")).unwrap();
        let failure = format!(
            "{:?}",
            found(None, std::slice::from_ref(&file)).unwrap_err()
        );
        let expected = format!(
            "{}:13: method Charge: ask needs an answer field",
            file.display()
        );
        assert!(failure.contains(&expected), "{failure}");
    }
}
