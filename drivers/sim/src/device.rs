//! The devices of a simulated robot: what is known of them before it is switched on. PURE.
//!
//! A kind of device is a struct with its options that implements [`Kind`], in the folder of the
//! device, and one line in the table in `lib.rs`. From there come the options on the command line,
//! the ports that programs open, the names for faults, and the demo.

use std::fmt;
use std::net::SocketAddr;
use std::path::Path;
use std::str::FromStr;

use clap::Args;

use crate::Devices;
use crate::twin::{Setup, Twin};

/// A device that programs can connect to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Device {
    /// The name on the command line.
    pub(crate) name: &'static str,
    /// How programs connect to it.
    pub(crate) connection: Connection,
    /// Whether only some robots have it: those that were given an option for it.
    pub(crate) is_extra: bool,
    /// The name of its driver.
    pub(crate) driver: &'static str,
    /// Further options of the driver.
    pub(crate) options: &'static [&'static str],
    /// Further options of the driver, each with the name of a file in the folder of the devices.
    pub(crate) files: &'static [(&'static str, &'static str)],
    /// The option that tells the driver the model, if the device does not say it itself.
    pub(crate) model_option: Option<&'static str>,
    /// Commands of `amber` that show what it does, and what they show.
    pub(crate) demonstrations: &'static [(&'static str, &'static str)],
}

/// How programs connect to a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connection {
    /// By a serial line or USB.
    Serial,
    /// By an I2C bus.
    I2c,
    /// By TCP.
    Tcp,
    /// By HTTP.
    Http,
}

/// The options of one kind of device.
pub(crate) trait Kind {
    /// The devices of this kind that a robot may have.
    const DEVICES: &'static [Device];

    /// These devices, just switched on.
    fn twins(&self, setup: &Setup<'_>) -> Vec<(Device, Box<dyn Twin>)>;

    /// Where a device listens that is connected by TCP; `None` if nobody can connect to it.
    fn address(&self, _device: Device) -> Option<SocketAddr> {
        None
    }
}

/// Defines [`Devices`] from the name and the options of each kind of device.
macro_rules! devices {
    ($($name:ident: $options:ty,)*) => {
        /// The options of all devices of a robot.
        #[derive(clap::Args, Clone, Debug, Default)]
        #[group(skip)]
        pub struct Devices {
            $(
                #[doc = concat!("The options of the kind `", stringify!($name), "`.")]
                #[command(flatten)]
                pub $name: $options,
            )*
        }

        impl Devices {
            /// All devices, by kind.
            const KINDS: &'static [&'static [$crate::device::Device]] =
                &[$(<$options as $crate::device::Kind>::DEVICES),*];

            /// All devices, just switched on.
            fn twins(
                &self,
                setup: &$crate::twin::Setup<'_>,
            ) -> Vec<($crate::device::Device, Box<dyn $crate::twin::Twin>)> {
                use $crate::device::Kind;
                let kinds = [$(self.$name.twins(setup)),*];
                kinds.into_iter().flatten().collect()
            }

            /// The devices that programs can connect to by TCP, and where.
            fn addresses(&self) -> Vec<($crate::device::Device, std::net::SocketAddr)> {
                use $crate::device::Kind;
                let address_of = |device: $crate::device::Device| {
                    None$(.or_else(|| self.$name.address(device)))*
                };
                let all = $crate::device::Device::all();
                all.filter_map(|device| Some((device, address_of(device)?))).collect()
            }
        }
    };
}
pub(crate) use devices;

/// Defines `DEVICE` and `Options` of a kind of which some robots have one: it is added by an option
/// of its name, whose value is the model. The name is also that of its driver. If the device does not
/// say its model, `told by` is the option that tells it to the driver, and `with` lists further options
/// of the driver. Commands that show what it does may follow.
macro_rules! extra {
    (
        $(#[$about:meta])*
        $name:literal by $connection:ident$(, told by $option:literal)?$(, with [$($word:literal),+])?: $model:ty => |$given:pat_param, $setup:pat_param| $twin:expr
        $(; $command:literal: $shows:literal)*
    ) => {
        /// The device.
        pub const DEVICE: $crate::device::Device = $crate::device::Device {
            name: $name,
            connection: $crate::device::Connection::$connection,
            is_extra: true,
            driver: $name,
            options: &[$($($word),+)?],
            files: &[],
            model_option: $crate::device::optional!($($option)?),
            demonstrations: &[$(($command, $shows)),*],
        };

        /// Its variants.
        #[derive(clap::Args, Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[group(skip)]
        pub struct Options {
            $(#[$about])*
            #[arg(id = $name, long, value_name = "MODEL", value_enum)]
            pub model: Option<$model>,
        }

        impl $crate::device::Kind for Options {
            const DEVICES: &'static [$crate::device::Device] = &[DEVICE];

            fn twins(
                &self,
                $setup: &$crate::twin::Setup<'_>,
            ) -> Vec<($crate::device::Device, Box<dyn $crate::twin::Twin>)> {
                let twin = |$given| Box::new($twin) as Box<dyn $crate::twin::Twin>;
                let twins = self.model.map(twin).into_iter();
                twins.map(|twin| (DEVICE, twin)).collect()
            }
        }
    };
}
pub(crate) use extra;

/// An optional piece of a macro as an [`Option`].
macro_rules! optional {
    () => {
        None
    };
    ($value:literal) => {
        Some($value)
    };
}
pub(crate) use optional;

impl Device {
    /// All devices.
    pub fn all() -> impl Iterator<Item = Self> {
        Devices::KINDS.iter().copied().flatten().copied()
    }

    /// The devices that every robot has; each has the name of its driver.
    pub fn built_in() -> impl Iterator<Item = Self> {
        Self::all().filter(|device| !device.is_extra)
    }

    /// The devices that programs connect to in this way.
    pub(crate) fn connected_by(connection: Connection) -> impl Iterator<Item = Self> {
        Self::all().filter(move |device| device.connection == connection)
    }

    /// The names of all devices.
    pub(crate) fn names() -> String {
        Self::all().map(Self::name).collect::<Vec<_>>().join(", ")
    }

    /// The name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.name
    }

    /// The name of its driver.
    #[must_use]
    pub fn driver_name(self) -> &'static str {
        self.driver
    }

    /// How programs connect to it.
    #[must_use]
    pub fn connection(self) -> Connection {
        self.connection
    }

    /// Commands of `amber` that show what it does, and what they show.
    #[must_use]
    pub fn demonstrations(self) -> &'static [(&'static str, &'static str)] {
        self.demonstrations
    }

    /// The option of `amber sim` for a robot that has it, with a model or the usual one. `None`: it
    /// needs no option.
    ///
    /// # Errors
    /// It has no such model, or it has several and none of them is the usual one.
    pub fn option(self, model: Option<&str>) -> Result<Option<String>, WrongModel> {
        let options = Devices::augment_args(clap::Command::new("sim"));
        let mut own = (options.get_arguments()).filter(|it| it.get_long() == Some(self.name));
        let own = own.next();
        let wrong = |models| WrongModel {
            device: self.name,
            given: model.map(str::to_owned),
            models,
        };
        let Some(option) = own.filter(|option| option.get_action().takes_values()) else {
            // A flag, or nothing to choose.
            return match model {
                Some(_) => Err(wrong(Vec::new())),
                None => Ok(own.map(|_| format!("--{}", self.name))),
            };
        };
        let models = option.get_possible_values().into_iter();
        let models: Vec<_> = models.map(|it| it.get_name().to_owned()).collect();
        let may_be_bare = (option.get_num_args()).is_some_and(|count| count.min_values() == 0);
        match (model, models.as_slice()) {
            (None, _) if !self.is_extra => Ok(None),
            (None, _) if may_be_bare => Ok(Some(format!("--{}", self.name))),
            (None, [only]) => Ok(Some(format!("--{}={only}", self.name))),
            (Some(model), known) if known.is_empty() || known.iter().any(|it| it == model) => {
                Ok(Some(format!("--{}={model}", self.name)))
            }
            (None | Some(_), _) => Err(wrong(models)),
        }
    }

    /// Further options of its driver for a model that the device does not say itself.
    #[must_use]
    pub fn told(self, model: &str) -> Vec<String> {
        let options = self.model_option.into_iter();
        options
            .flat_map(|option| [option.to_owned(), model.to_owned()])
            .collect()
    }

    /// The command of its driver, from `amber` on. `place` is the path of the device.
    #[must_use]
    pub fn driver(self, place: &str) -> Vec<String> {
        let folder = Path::new(place).parent();
        self.driver_in(folder.unwrap_or(Path::new("")), place)
    }

    /// The same for any place: that of a camera is an address. `folder` is that of the simulation.
    #[must_use]
    pub fn driver_in(self, folder: &Path, place: &str) -> Vec<String> {
        let [option, value] = match self.connection {
            Connection::Serial => ["--port", place].map(str::to_owned),
            Connection::I2c => ["--bus".to_owned(), format!("sim:{place}")],
            Connection::Tcp => ["--tcp", place].map(str::to_owned),
            Connection::Http => ["--url".to_owned(), format!("http://{place}/stream")],
        };
        let mut command = ["amber", "driver", self.driver].map(str::to_owned).to_vec();
        command.extend([option, value]);
        command.extend(self.options.iter().map(|word| (*word).to_owned()));
        for (option, file) in self.files {
            let file = folder.join(file).display().to_string();
            command.extend([(*option).to_owned(), file]);
        }
        command
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl FromStr for Device {
    type Err = UnknownDevice;

    fn from_str(name: &str) -> Result<Self, UnknownDevice> {
        let found = Self::all().find(|device| device.name == name);
        found.ok_or_else(|| UnknownDevice {
            name: name.to_owned(),
        })
    }
}

/// A device has no such model, or its model must be named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrongModel {
    device: &'static str,
    given: Option<String>,
    models: Vec<String>,
}

impl fmt::Display for WrongModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { device, models, .. } = self;
        let models = models.join(", ");
        match &self.given {
            Some(given) if models.is_empty() => {
                write!(f, "{device} has no models to choose from: {given:?}")
            }
            Some(given) => write!(f, "no such model of {device} ({models}): {given:?}"),
            None if models.is_empty() => {
                write!(f, "{device} needs a value: see `amber sim --help`")
            }
            None => write!(f, "{device} needs its model: one of {models}"),
        }
    }
}

impl std::error::Error for WrongModel {}

/// No device has this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no such device ({all}): {name:?}", all = Device::names())]
pub struct UnknownDevice {
    name: String,
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_device_has_its_own_name_and_its_twin() {
        let names: BTreeSet<_> = Device::all().map(Device::name).collect();
        assert_eq!(names.len(), Device::all().count());
        let ceiling = crate::ceiling::Ceiling::default();
        let setup = Setup {
            seed: 1,
            speed: 1.0,
            walls: &[],
            ceiling: &ceiling,
        };
        let made = |devices: Devices| -> Vec<_> {
            let twins = devices.twins(&setup).into_iter();
            twins.map(|(device, _)| device).collect()
        };
        let all = Devices {
            diffdrive: crate::diffdrive::Options {
                firmware: Some(crate::diffdrive::Firmware::Bridge),
            },
            create2: crate::create2::Options { is_fitted: true },
            vesc: crate::vesc::Options {
                firmware: Some(crate::vesc::Firmware::V6_02),
            },
            odrive: crate::odrive::Options {
                variant: Some(crate::odrive::Variant::Calibrated),
            },
            ldrobot: crate::ldrobot::Options {
                model: Some(crate::ldrobot::Model::Ld19),
            },
            rplidar: crate::rplidar::Options {
                model: Some(crate::rplidar::Model::A1),
            },
            ydlidar: crate::ydlidar::Options {
                model: Some(crate::ydlidar::Model::X4),
            },
            mpu: crate::mpu::Options {
                model: Some(crate::mpu::Model::Mpu9250),
            },
            ina2xx: crate::ina2xx::Options {
                model: Some(crate::ina2xx::Model::Ina219),
                ..Default::default()
            },
            firmata: crate::firmata::Options {
                model: Some(crate::firmata::Model::Uno),
            },
            feetech: crate::feetech::Options {
                model: Some(crate::feetech::Model::So101),
            },
            dynamixel: crate::dynamixel::Options {
                model: Some(crate::dynamixel::Model::Koch),
            },
            pca9685: crate::pca9685::Options { is_fitted: true },
            lsm6dsox: crate::lsm6dsox::Options {
                model: Some(crate::lsm6dsox::Model::Lsm6dsox),
            },
            icm20948: crate::icm20948::Options {
                model: Some(crate::icm20948::Model::Icm20948),
            },
            bno055: crate::bno055::Options {
                model: Some(crate::bno055::Model::Bno055),
            },
            gps: crate::gps::Options {
                model: Some(crate::gps::Model::NeoM8),
                ..Default::default()
            },
            gamepad: crate::gamepad::Options {
                model: Some(crate::gamepad::Model::Xbox),
            },
            camera: crate::camera::Options {
                address: Some(([127, 0, 0, 1], 0).into()),
                ..Default::default()
            },
            ..Devices::default()
        };
        assert_eq!(made(all), Device::all().collect::<Vec<_>>());
        let usual = made(Devices::default());
        assert!(Device::built_in().all(|device| usual.contains(&device)));
        for extra in [
            crate::diffdrive::DEVICE,
            crate::create2::DEVICE,
            crate::vesc::DEVICE,
            crate::odrive::DEVICE,
            crate::ldrobot::DEVICE,
            crate::rplidar::DEVICE,
            crate::ydlidar::DEVICE,
            crate::mpu::DEVICE,
            crate::ina2xx::DEVICE,
            crate::firmata::DEVICE,
            crate::feetech::DEVICE,
            crate::dynamixel::DEVICE,
            crate::pca9685::DEVICE,
            crate::lsm6dsox::DEVICE,
            crate::icm20948::DEVICE,
            crate::bno055::DEVICE,
            crate::gps::DEVICE,
            crate::gamepad::DEVICE,
            crate::camera::DEVICE,
        ] {
            assert!(!usual.contains(&extra));
        }
    }

    #[test]
    fn a_driver_gets_the_place_of_its_device_and_the_files_beside_it() {
        let device = Device {
            name: "sonar",
            connection: Connection::Serial,
            is_extra: false,
            driver: "sonar",
            options: &["--slow"],
            files: &[("--echoes", "echoes.txt")],
            model_option: Some("--model"),
            demonstrations: &[],
        };
        let expected = "amber driver sonar --port /sim/sonar --slow --echoes /sim/echoes.txt";
        assert_eq!(device.driver("/sim/sonar").join(" "), expected);
        assert_eq!(device.told("x2"), ["--model", "x2"]);
        let bus = Device {
            connection: Connection::I2c,
            options: &[],
            files: &[],
            model_option: None,
            ..device
        };
        assert_eq!(bus.driver("/sonar")[3..], ["--bus", "sim:/sonar"]);
        assert_eq!(bus.told("x2"), [""; 0]);
        let tcp = Device {
            connection: Connection::Tcp,
            ..bus
        };
        assert_eq!(tcp.driver("[::1]:5")[3..], ["--tcp", "[::1]:5"]);
        let http = Device {
            connection: Connection::Http,
            files: device.files,
            ..bus
        };
        let expected = [
            "--url",
            "http://[::1]:5/stream",
            "--echoes",
            "/sim/echoes.txt",
        ];
        assert_eq!(http.driver_in(Path::new("/sim"), "[::1]:5")[3..], expected);
    }

    #[test]
    fn an_option_adds_a_device_to_the_robot() {
        let option = |name: &str, model: Option<&str>| {
            let device: Device = name.parse().unwrap();
            device.option(model).map_err(|error| error.to_string())
        };
        // Every robot has it, and a flag, a choice, a device with one model.
        assert_eq!(option("maestro", None), Ok(None));
        assert_eq!(option("hokuyo", None), Ok(None));
        let given = |text: &str| Ok(Some(text.to_owned()));
        assert_eq!(option("pca9685", None), given("--pca9685"));
        assert_eq!(option("ldrobot", Some("ld06")), given("--ldrobot=ld06"));
        assert_eq!(
            option("roboclaw", Some("legacy")),
            given("--roboclaw=legacy")
        );
        assert_eq!(option("bno055", None), given("--bno055=bno055"));
        assert_eq!(option("camera", None), given("--camera"));
        let address = "[::1]:5";
        assert_eq!(
            option("hokuyo-tcp", Some(address)),
            given("--hokuyo-tcp=[::1]:5")
        );
        for (name, model, words) in [
            ("ldrobot", None, "needs its model: one of ld06, ld19"),
            ("ldrobot", Some("x4"), "no such model of ldrobot (ld06"),
            ("hokuyo", Some("x4"), "no such model of hokuyo ("),
            ("pca9685", Some("x4"), "no models to choose from"),
            ("maestro", Some("x4"), "no models to choose from"),
            ("hokuyo-tcp", None, "needs a value"),
        ] {
            let error = option(name, model).unwrap_err();
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn a_device_has_a_name() {
        for device in Device::all() {
            assert_eq!(device.name().parse(), Ok(device));
        }
        let unknown = "sonar".parse::<Device>().unwrap_err().to_string();
        let expected = format!("no such device ({}): \"sonar\"", Device::names());
        assert_eq!(unknown, expected);
    }
}
