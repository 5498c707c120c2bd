//! The devices of a simulated robot: what is known of them before it is switched on. PURE.
//!
//! A kind of device is a struct with its options that implements [`Kind`], in the folder of the
//! device, and one line in the table in `lib.rs`. From there come the options on the command line,
//! the ports that programs open, the names for faults, and the demo.

use std::fmt;
use std::net::SocketAddr;
use std::path::Path;
use std::str::FromStr;

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
/// of its name, whose value is the model. The name is also that of its driver. Commands that show what
/// it does may follow.
macro_rules! extra {
    (
        $(#[$about:meta])*
        $name:literal by $connection:ident: $model:ty => |$given:pat_param, $setup:pat_param| $twin:expr
        $(; $command:literal: $shows:literal)*
    ) => {
        /// The device.
        pub const DEVICE: $crate::device::Device = $crate::device::Device {
            name: $name,
            connection: $crate::device::Connection::$connection,
            is_extra: true,
            driver: $name,
            options: &[],
            files: &[],
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

    /// The command of its driver, from `amber` on. `place` is the path of the device.
    #[must_use]
    pub fn driver(self, place: &str) -> Vec<String> {
        let [option, value] = match self.connection {
            Connection::Serial => ["--port", place].map(str::to_owned),
            Connection::I2c => ["--bus".to_owned(), format!("sim:{place}")],
            Connection::Tcp => ["--tcp", place].map(str::to_owned),
        };
        let mut command = ["amber", "driver", self.driver].map(str::to_owned).to_vec();
        command.extend([option, value]);
        command.extend(self.options.iter().map(|word| (*word).to_owned()));
        for (option, file) in self.files {
            let file = Path::new(place).with_file_name(file);
            command.extend([(*option).to_owned(), file.display().to_string()]);
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
            ..Devices::default()
        };
        assert_eq!(made(all), Device::all().collect::<Vec<_>>());
        let usual = made(Devices::default());
        assert!(Device::built_in().all(|device| usual.contains(&device)));
        for extra in [
            crate::diffdrive::DEVICE,
            crate::ldrobot::DEVICE,
            crate::rplidar::DEVICE,
            crate::ydlidar::DEVICE,
            crate::mpu::DEVICE,
            crate::ina2xx::DEVICE,
            crate::pca9685::DEVICE,
            crate::lsm6dsox::DEVICE,
            crate::icm20948::DEVICE,
            crate::bno055::DEVICE,
        ] {
            assert!(!usual.contains(&extra));
        }
    }

    #[test]
    fn a_driver_gets_the_place_of_its_device_and_the_files_beside_it() {
        let device = Device {
            name: "gps",
            connection: Connection::Serial,
            is_extra: false,
            driver: "nmea",
            options: &["--slow"],
            files: &[("--almanac", "almanac.txt")],
            demonstrations: &[],
        };
        let expected = "amber driver nmea --port /sim/gps --slow --almanac /sim/almanac.txt";
        assert_eq!(device.driver("/sim/gps").join(" "), expected);
        let bus = Device {
            connection: Connection::I2c,
            options: &[],
            files: &[],
            ..device
        };
        assert_eq!(bus.driver("/gps")[3..], ["--bus", "sim:/gps"]);
        let tcp = Device {
            connection: Connection::Tcp,
            ..bus
        };
        assert_eq!(tcp.driver("[::1]:5")[3..], ["--tcp", "[::1]:5"]);
    }

    #[test]
    fn a_device_has_a_name() {
        for device in Device::all() {
            assert_eq!(device.name().parse(), Ok(device));
        }
        let unknown = "gps".parse::<Device>().unwrap_err().to_string();
        let expected = format!("no such device ({}): \"gps\"", Device::names());
        assert_eq!(unknown, expected);
    }
}
