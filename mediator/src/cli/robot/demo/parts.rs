//! The robots of the demo: which simulated parts they have. PURE, but for the file of a user's robot.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use amber_drivers::probe::PROBES;
use amber_sim::robot::Device;
use amber_terminal::Failure;
use serde::Deserialize;

/// The robots that the program knows, with their files.
const BUILT_IN: [(&str, &str); 2] = [
    ("capo", include_str!("capo.toml")),
    ("turtle", include_str!("turtle.toml")),
];

/// The devices whose drivers must be told the model: the device does not say it.
const TOLD: [&str; 2] = ["ldrobot", "ydlidar"];

/// A simulated robot.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Robot {
    /// Its name.
    pub(super) name: String,
    /// What it has, for people.
    #[serde(default)]
    pub(super) about: String,
    /// Its devices by their names in the simulation.
    parts: BTreeMap<String, Choice>,
}

/// Which one of a device it has.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
enum Choice {
    /// The usual one.
    Usual(bool),
    /// A model, or the firmware: the value of the option of `amber sim`.
    Model(String),
}

/// A part, with the name of its device among all of the same type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Part {
    /// Such as `hokuyo:0`.
    pub(super) device: String,
    /// What is simulated.
    pub(super) simulated: Device,
    /// Further options of the driver.
    options: Vec<String>,
}

impl Part {
    /// The command of its driver, for a device at this place.
    pub(super) fn driver(&self, place: &str) -> Vec<String> {
        let mut command = self.simulated.driver(place);
        command.extend(self.options.iter().cloned());
        command
    }
}

impl Robot {
    /// A built-in robot, or that of a file.
    ///
    /// # Errors
    /// There is no such robot, or its file is wrong.
    pub(super) fn read(name: &str) -> Result<Self, Failure> {
        if let Some((_, text)) = BUILT_IN.iter().find(|(known, _)| *known == name) {
            return Self::parse(text).map_err(|problem| wrong(name, &problem));
        }
        let path = Path::new(name);
        let names = BUILT_IN.map(|(name, _)| name).join(" and ");
        let text = fs::read_to_string(path).map_err(|error| {
            let text = format!("cannot read the robot {name}: {error}");
            Failure::wrong(text).hint(format!(
                "built-in robots are {names}; others are TOML files"
            ))
        })?;
        Self::parse(&text).map_err(|problem| wrong(name, &problem))
    }

    fn parse(text: &str) -> Result<Self, String> {
        let robot: Self = toml::from_str(text).map_err(|error| error.to_string())?;
        for name in robot.parts.keys() {
            name.parse::<Device>().map_err(|error| error.to_string())?;
        }
        let types = robot.parts();
        let wheels = types
            .iter()
            .filter(|part| part.device.starts_with("roboclaw:"));
        match wheels.count() {
            0 | 1 => Ok(robot),
            _ => Err("a robot has one device that drives its wheels".to_owned()),
        }
    }

    /// Its parts, in the order of the simulation.
    pub(super) fn parts(&self) -> Vec<Part> {
        let mut taken = BTreeMap::new();
        let own = Device::all().filter(|device| match self.parts.get(device.name()) {
            None | Some(Choice::Usual(false)) => false,
            Some(Choice::Usual(true) | Choice::Model(_)) => true,
        });
        own.map(|simulated| {
            let device_type = device_type(simulated);
            let number = taken.entry(device_type).or_insert(0);
            let device = format!("{device_type}:{number}");
            *number += 1;
            let model = self.parts.get(simulated.name());
            let options = match model {
                Some(Choice::Model(model)) if TOLD.contains(&simulated.name()) => {
                    vec![format!("--model={model}")]
                }
                _ => Vec::new(),
            };
            Part {
                device,
                simulated,
                options,
            }
        })
        .collect()
    }

    /// The options of `amber sim` for them.
    pub(super) fn options(&self) -> Vec<String> {
        let models = self.parts.iter().filter_map(|(name, choice)| match choice {
            Choice::Model(model) => Some(format!("--{name}={model}")),
            Choice::Usual(_) => None,
        });
        models.collect()
    }
}

/// The name of the device type that the driver of a simulated device serves.
fn device_type(device: Device) -> &'static str {
    let probe = PROBES
        .iter()
        .find(|probe| probe.driver == device.driver_name());
    probe.map_or(device.name(), |probe| probe.device)
}

fn wrong(name: &str, problem: &str) -> Failure {
    Failure::wrong(format!("the robot {name}: {problem}"))
        .hint("`[parts]` has lines such as `ldrobot = \"ld19\"` and `maestro = true`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_robots_have_their_parts() {
        let parts = |name: &str| {
            let robot = Robot::read(name).unwrap();
            let parts = robot.parts().into_iter();
            let devices: Vec<_> = parts.map(|part| part.device).collect();
            (devices, robot.options())
        };
        let (devices, options) = parts("capo");
        let expected: Vec<_> = Device::built_in()
            .map(|device| format!("{device}:0"))
            .collect();
        assert_eq!(devices, expected);
        assert_eq!(options, [""; 0]);
        let (devices, options) = parts("turtle");
        assert_eq!(devices, ["roboclaw:0", "hokuyo:0", "ninedof:0"]);
        let expected = ["--diffdrive=bridge", "--ldrobot=ld19", "--mpu=mpu6050"];
        assert_eq!(options, expected);
        let laser = &Robot::read("turtle").unwrap().parts()[1];
        let command = laser.driver("/sim/ldrobot").join(" ");
        assert_eq!(
            command,
            "amber driver ldrobot --port /sim/ldrobot --model=ld19"
        );
    }

    #[test]
    fn two_devices_of_a_type_have_two_numbers() {
        let robot = Robot::parse(
            "name = \"two\"\n[parts]\nhokuyo = true\nrplidar = \"a1\"\nmaestro = false\n",
        )
        .unwrap();
        let devices: Vec<_> = robot.parts().into_iter().map(|it| it.device).collect();
        assert_eq!(devices, ["hokuyo:0", "hokuyo:1"]);
    }

    #[test]
    fn wrong_files_are_explained() {
        for (text, words) in [
            ("name = \"a\"\n[parts]\nspoon = true\n", "no such device"),
            (
                "name = \"a\"\nwheels = 3\n[parts]\n",
                "unknown field `wheels`",
            ),
            (
                "name = \"a\"\n[parts]\nroboclaw = true\ndiffdrive = \"bridge\"\n",
                "one device that drives",
            ),
        ] {
            let error = Robot::parse(text).unwrap_err();
            assert!(error.contains(words), "{error}");
        }
        let error = format!("{:?}", Robot::read("/no/such/robot.toml").unwrap_err());
        assert!(error.contains("capo and turtle"), "{error}");
    }
}
