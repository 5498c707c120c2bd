//! `amber describe`: the interface of a device, from its `.proto`. IO.

use std::path::PathBuf;

use amber_proto::{Device, DeviceType};
use amber_schema::Interface;
use serde::Serialize;

use super::output::{self, Human};
use super::{Failure, print};
use amber_reflect::Schemas;

/// Options of `amber describe`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  amber describe
  amber describe hokuyo
  amber describe --proto battery.proto
  amber describe maestro --json

No mediator needs to run. `--proto` checks the description in your file, and `--markdown` makes
documentation of it.")]
pub struct Options {
    /// Device or device type, e.g. hokuyo, hokuyo:0 or 4; without it, list all
    #[arg(value_name = "DEVICE|TYPE")]
    device: Option<Device>,
    /// Description of your own device (may be given several times)
    #[arg(long, value_name = "FILE")]
    proto: Vec<PathBuf>,
    /// Print Markdown; without a device, for all of them
    #[arg(long)]
    markdown: bool,
}

/// All devices that are described.
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
    pub fn run(self, json: bool) -> Result<(), Failure> {
        let found = self.found()?;
        if self.markdown && !json {
            return print(amber_schema::markdown(&found).as_bytes());
        }
        match <[Interface; 1]>::try_from(found) {
            Ok([one]) => output::show(&One(one), json),
            Err(devices) => output::show(&All { devices }, json),
        }
    }

    fn found(&self) -> Result<Vec<Interface>, Failure> {
        let schemas = Schemas::with(&self.proto)?;
        let own: Vec<_> = schemas.own_interfaces().cloned().collect();
        let Some(Device { device_type, .. }) = self.device else {
            if self.proto.is_empty() {
                return Ok(amber_reflect::built_in().to_vec());
            }
            let hint = "see proto/interface.proto for the options of a service";
            return match own.is_empty() {
                true => Err(Failure::wrong("these files describe no device").hint(hint)),
                false => Ok(own),
            };
        };
        let mut all = own
            .into_iter()
            .chain(amber_reflect::built_in().iter().cloned());
        let one = all.find(|interface| interface.device_type == device_type.0);
        one.map(|one| vec![one]).ok_or_else(|| unknown(device_type))
    }
}

fn unknown(device_type: DeviceType) -> Failure {
    Failure::wrong(format!("no description of device type {device_type}"))
        .hint("`--proto FILE` reads the description of your own device")
}

impl Human for All {
    fn human(&self) -> String {
        let rows = self.devices.iter().map(|device| {
            // The first sentence says what it is.
            let about = device
                .docs
                .split_once(". ")
                .map_or(&*device.docs, |(first, _)| first);
            let about = about.lines().next().unwrap_or_default();
            let about = about.trim_end_matches('.').to_owned();
            [device.device_type.to_string(), device.name.clone(), about]
        });
        output::table(["TYPE", "DEVICE", "WHAT IT IS"], &rows.collect::<Vec<_>>())
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
  option (amber.device) = { type: 211 name: "battery" };
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
            markdown: false,
        }
    }

    #[test]
    fn devices_of_amber_and_of_users_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("battery.proto");
        fs::write(&file, BATTERY).unwrap();
        let names = |device, proto: &[PathBuf]| {
            let found = options(device, proto).found().unwrap();
            found.into_iter().map(|it| it.name).collect::<Vec<_>>()
        };
        assert_eq!(names(Some("hokuyo:1"), &[]), ["hokuyo"]);
        assert_eq!(names(Some("4"), std::slice::from_ref(&file)), ["hokuyo"]);
        assert_eq!(
            names(Some("211:3"), std::slice::from_ref(&file)),
            ["battery"]
        );
        assert_eq!(names(None, std::slice::from_ref(&file)), ["battery"]);
        assert_eq!(names(None, &[]).len(), 11);

        let battery = options(None, &[file]).found().unwrap().remove(0);
        let shown = One(battery).human();
        for words in [
            "battery (device type 211)",
            "A battery gauge.",
            "charge  double  %",
        ] {
            assert!(shown.contains(words), "no {words:?} in\n{shown}");
        }
        assert!(options(Some("211"), &[]).found().is_err());
    }

    #[test]
    fn a_broken_rule_is_named_with_file_and_line() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("battery.proto");
        fs::write(&file, BATTERY.replace(" answer: \"charge\"", "")).unwrap();
        let failure = format!(
            "{:?}",
            options(None, std::slice::from_ref(&file))
                .found()
                .unwrap_err()
        );
        let expected = format!(
            "{}:13: method Charge: ask needs an answer field",
            file.display()
        );
        assert!(failure.contains(&expected), "{failure}");
    }
}
