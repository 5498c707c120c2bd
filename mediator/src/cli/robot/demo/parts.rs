//! The robots of the demo: which simulated parts they have. PURE, but for the file of a user's robot.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use amber_drivers::probe::PROBES;
use amber_sim::robot::{Device, UnknownDevice};
use amber_terminal::Failure;
use serde::Deserialize;

/// The robots that the program knows, with their files.
const BUILT_IN: [(&str, &str); 3] = [
    ("capo", include_str!("capo.toml")),
    ("lekiwi", include_str!("lekiwi.toml")),
    ("turtle", include_str!("turtle.toml")),
];

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
    #[serde(rename = "parts")]
    choices: BTreeMap<String, Choice>,
    /// Drivers that use these devices: what follows `amber driver`.
    #[serde(default)]
    drivers: BTreeMap<String, Vec<String>>,
    /// Where its shape differs from that of a Capo: values in `robot.toml`.
    #[serde(default)]
    pub(super) shape: BTreeMap<String, f64>,
    /// Files in the folder of the demo, which drivers need.
    #[serde(default)]
    pub(super) files: BTreeMap<String, String>,
    /// Further commands of `amber` that show what it does, and what they show.
    #[serde(default)]
    pub(super) commands: Vec<(String, String)>,
    /// The options of `amber sim` for them.
    #[serde(skip)]
    options: Vec<String>,
}

/// Which one of a device it has.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
enum Choice {
    /// The usual one.
    Usual(bool),
    /// A model, or the firmware: the value of the option of `amber sim`.
    Model(String),
    /// One whose driver cannot find out all that it must know.
    Told(Told),
}

/// A part whose driver has further options.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Told {
    model: Option<String>,
    driver_options: Vec<String>,
}

/// A part, with the name of its device among all of the same type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Part {
    /// Such as `hokuyo:0`. With commas between them, if its driver serves several.
    pub(super) device: String,
    /// What is simulated.
    pub(super) simulated: Device,
    /// Which one, if the robot says it.
    model: Option<String>,
    /// Further options of its driver.
    driver_options: Vec<String>,
}

impl Part {
    /// The command of its driver, for a device at this place of the simulation in this folder.
    pub(super) fn driver(&self, folder: &Path, place: &str) -> Vec<String> {
        let mut command = self.simulated.driver_in(folder, place);
        let model = self.model.iter();
        command.extend(model.flat_map(|model| self.simulated.told(model)));
        command.extend(self.driver_options.iter().cloned());
        command
    }
}

impl Choice {
    fn model(&self) -> Option<&str> {
        match self {
            Self::Usual(_) => None,
            Self::Model(model) => Some(model),
            Self::Told(told) => told.model.as_deref(),
        }
    }

    fn driver_options(&self) -> &[String] {
        match self {
            Self::Usual(_) | Self::Model(_) => &[],
            Self::Told(told) => &told.driver_options,
        }
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
        let names = BUILT_IN.map(|(name, _)| name).join(", ");
        let text = fs::read_to_string(path).map_err(|error| {
            let text = format!("cannot read the robot {name}: {error}");
            Failure::wrong(text).hint(format!(
                "built-in robots are {names}; others are TOML files"
            ))
        })?;
        Self::parse(&text).map_err(|problem| wrong(name, &problem))
    }

    fn parse(text: &str) -> Result<Self, String> {
        let mut robot: Self = toml::from_str(text).map_err(|error| error.to_string())?;
        for (name, choice) in &robot.choices {
            let device: Device = name
                .parse()
                .map_err(|error: UnknownDevice| error.to_string())?;
            if *choice != Choice::Usual(false) {
                let option = device.option(choice.model());
                robot
                    .options
                    .extend(option.map_err(|error| error.to_string())?);
            }
        }
        if let Some(name) = robot.files.keys().find(|name| name.contains('/')) {
            return Err(format!("{name} is not the name of a file"));
        }
        let parts = robot.parts().into_iter().map(|part| part.device);
        let all = parts.chain(robot.drivers.keys().cloned());
        match all.filter(|it| it.starts_with("roboclaw:")).count() {
            0 | 1 => Ok(robot),
            _ => Err("a robot has one device that drives its wheels".to_owned()),
        }
    }

    /// The drivers that use its parts, as `DEVICE=COMMAND`, with its files in this folder.
    pub(super) fn drivers(&self, folder: &Path) -> Vec<String> {
        let word = |word: &String| match self.files.contains_key(word) {
            true => folder.join(word).display().to_string(),
            false => word.clone(),
        };
        let drivers = self.drivers.iter().map(|(device, words)| {
            let words: Vec<_> = words.iter().map(word).collect();
            format!("{device}=amber driver {}", shell_words::join(words))
        });
        drivers.collect()
    }

    /// Its parts, in the order of the simulation.
    pub(super) fn parts(&self) -> Vec<Part> {
        let mut taken = BTreeMap::new();
        let chosen = Device::all().filter_map(|device| {
            let choice = self.choices.get(device.name())?;
            (*choice != Choice::Usual(false)).then_some((device, choice))
        });
        let parts = chosen.map(|(simulated, choice)| {
            let names = device_types(simulated).into_iter().map(|device_type| {
                let number = taken.entry(device_type).or_insert(0);
                let device = format!("{device_type}:{number}");
                *number += 1;
                device
            });
            Part {
                device: names.collect::<Vec<_>>().join(","),
                simulated,
                model: choice.model().map(str::to_owned),
                driver_options: choice.driver_options().to_vec(),
            }
        });
        parts.collect()
    }

    /// The options of `amber sim` for them.
    pub(super) fn options(&self) -> &[String] {
        &self.options
    }
}

/// The names of the device types that the driver of a simulated device serves.
fn device_types(device: Device) -> Vec<&'static str> {
    let probe = PROBES
        .iter()
        .find(|probe| probe.driver == device.driver_name());
    match probe {
        Some(probe) => [&[probe.device], probe.kind.besides()].concat(),
        None => vec![device.name()],
    }
}

fn wrong(name: &str, problem: &str) -> Failure {
    Failure::wrong(format!("the robot {name}: {problem}"))
        .hint("`[parts]` has lines such as `ldrobot = \"ld19\"` and `maestro = true`")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Its devices, the options for the simulation, and the commands of its drivers.
    const TURTLE: [(&str, &str, &str); 5] = [
        (
            "roboclaw:0",
            "--diffdrive=bridge",
            "amber driver diffdrive --port /dev/a --counts-per-turn 1865 --wheel-diameter-mm 120 \
             --reply-timeout-ms 1000",
        ),
        (
            "hokuyo:0",
            "--ldrobot=ld19",
            "amber driver ldrobot --port /dev/a --model ld19",
        ),
        (
            "ninedof:0",
            "--mpu=mpu6050",
            "amber driver mpu --bus sim:/dev/a",
        ),
        (
            "battery:0",
            "--ina2xx=ina226",
            "amber driver ina2xx --bus sim:/dev/a --shunt-mohm=2 --cells=3 --chemistry=li-ion",
        ),
        (
            "camera:0",
            "--camera",
            "amber driver camera --url http:///dev/a/stream --calibration /sim/camera.yaml \
             --idle-s 1",
        ),
    ];

    #[test]
    fn the_built_in_robots_have_their_parts() {
        let parts = |name: &str| {
            let robot = Robot::read(name).unwrap();
            let parts = robot.parts().into_iter();
            let devices: Vec<_> = parts.map(|part| part.device).collect();
            (devices, robot.options().to_vec())
        };
        let (devices, options) = parts("capo");
        let expected = Device::built_in().map(|device| format!("{device}:0"));
        let expected: Vec<_> = expected.chain(["camera:0".to_owned()]).collect();
        assert_eq!(devices, expected);
        assert_eq!(options, ["--camera"]);
        let (devices, options) = parts("turtle");
        assert_eq!(devices, TURTLE.map(|(device, ..)| device));
        let mut expected = TURTLE.map(|(_, option, _)| option);
        expected.sort_unstable();
        assert_eq!(options, expected);
        let parts = Robot::read("turtle").unwrap().parts();
        let command = |part: &Part| part.driver(Path::new("/sim"), "/dev/a").join(" ");
        let commands: Vec<_> = parts.iter().map(command).collect();
        assert_eq!(commands, TURTLE.map(|(.., command)| command));
    }

    #[test]
    fn drivers_that_use_the_parts_get_the_files_of_the_robot() {
        let robot = Robot::read("lekiwi").unwrap();
        let drivers = robot.drivers(Path::new("/a folder"));
        let arm = "arm:0=amber driver arm --model so101 --calibration '/a folder/arm.json'";
        assert!(drivers.iter().any(|it| it == arm), "{drivers:?}");
        let parts = robot.parts();
        let devices: Vec<_> = parts.iter().map(|it| it.device.as_str()).collect();
        assert_eq!(devices, ["hokuyo:0", "bus-servos:0", "camera:0"]);
        let servos = &parts[1];
        let command = servos.driver(Path::new("/sim"), "/dev/a").join(" ");
        let expected = "amber driver feetech --port /dev/a --reply-timeout-ms 500 --preset lekiwi \
                        --interval-ms=20";
        assert_eq!(command, expected);
    }

    #[test]
    fn two_devices_of_a_type_have_two_numbers() {
        let robot = Robot::parse(
            "name = \"two\"\n[parts]\nhokuyo = true\nrplidar = \"a1\"\nmaestro = false\n",
        )
        .unwrap();
        let devices: Vec<_> = robot.parts().into_iter().map(|it| it.device).collect();
        assert_eq!(devices, ["hokuyo:0", "hokuyo:1"]);
        let robot = Robot::parse("name = \"round\"\n[parts]\ncreate2 = true\n").unwrap();
        let devices: Vec<_> = robot.parts().into_iter().map(|it| it.device).collect();
        assert_eq!(devices, ["roboclaw:0,bumper:0"]);
    }

    #[test]
    fn wrong_files_are_explained() {
        for (text, words) in [
            ("name = \"a\"\n[parts]\nspoon = true\n", "no such device"),
            (
                "name = \"a\"\n[parts]\nldrobot = true\n",
                "ldrobot needs its model: one of ld06",
            ),
            (
                "name = \"a\"\n[parts]\nldrobot = \"x4\"\n",
                "no such model of ldrobot (ld06",
            ),
            (
                "name = \"a\"\n[parts]\nina2xx = { model = \"ina3\", driver_options = [] }\n",
                "no such model of ina2xx (ina219",
            ),
            (
                "name = \"a\"\nwheels = 3\n[parts]\n",
                "unknown field `wheels`",
            ),
            (
                "name = \"a\"\n[parts]\nroboclaw = true\ndiffdrive = \"bridge\"\n",
                "one device that drives",
            ),
            (
                "name = \"a\"\n[parts]\nroboclaw = true\n[drivers]\n\"roboclaw:1\" = [\"base_wheels\"]\n",
                "one device that drives",
            ),
            (
                "name = \"a\"\n[parts]\n[files]\n\"../a\" = \"\"\n",
                "../a is not the name of a file",
            ),
        ] {
            let error = Robot::parse(text).unwrap_err();
            assert!(error.contains(words), "{error}");
        }
        let error = format!("{:?}", Robot::read("/no/such/robot.toml").unwrap_err());
        assert!(error.contains("capo, lekiwi, turtle"), "{error}");
    }
}
