//! What is plugged into this machine, by the files in `/sys` and `/dev`. No device is opened. IO.
//!
//! All paths are below a root, so that a test can describe a machine by files.

use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use amber_drivers::i2c::BusLocation;

/// What is plugged in.
#[derive(Clone, Debug, Default)]
pub(super) struct Machine {
    /// The serial ports, by name.
    pub(super) ports: Vec<Port>,
    /// The I2C buses on which a robot may have sensors.
    pub(super) buses: Vec<I2cBus>,
    /// USB devices without a serial port.
    pub(super) others: Vec<Usb>,
    /// The files of USB cameras, one of each camera.
    pub(super) cameras: Vec<Port>,
    /// Ports and buses that are left alone, with the reason.
    pub(super) left_alone: Vec<(String, &'static str)>,
}

/// A serial port, or the file of a camera.
#[derive(Clone, Debug)]
pub(super) struct Port {
    /// A path that stays the same when devices are plugged in elsewhere or later, if there is one.
    pub(super) path: PathBuf,
    /// The USB device that it belongs to.
    pub(super) usb: Option<Usb>,
}

/// An I2C bus.
#[derive(Clone, Debug)]
pub(super) struct I2cBus {
    pub(super) location: BusLocation,
    /// The name of its adapter.
    pub(super) adapter: String,
}

/// A USB device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Usb {
    pub(super) vendor: u16,
    pub(super) product: u16,
    /// Manufacturer and product, as the device says.
    pub(super) text: String,
    pub(super) serial_number: Option<String>,
    /// The number of the interface of a port.
    pub(super) interface: Option<u8>,
    pub(super) is_camera: bool,
    /// Its folder in `/sys`.
    pub(super) folder: PathBuf,
}

/// Adapters of displays and mainboards, by a part of their name in lower case. They have no sensors of a
/// robot, and some have chips that a stray read could disturb.
const FOREIGN_ADAPTERS: [&str; 10] = [
    "i915", "nvidia", "amdgpu", "radeon", "nouveau", "dpddc", "dpmst", "ddc", "hdmi", "smbus",
];

impl Machine {
    /// Reads the machine below this root.
    pub(super) fn read(root: &Path) -> Self {
        let mut machine = Self::default();
        machine.read_ports(root);
        machine.read_buses(root);
        machine.read_cameras(root);
        machine.read_others(root);
        machine
    }

    fn read_ports(&mut self, root: &Path) {
        let sys = root.join("sys");
        let consoles = text(&sys.join("class/tty/console/active")).unwrap_or_default();
        let mut found = Vec::new();
        for (name, folder) in entries(&sys.join("class/tty")) {
            let file = root.join("dev").join(&name);
            // Virtual terminals have no device.
            let Ok(device) = fs::canonicalize(folder.join("device")) else {
                continue;
            };
            // PCs have files for serial ports that they lack.
            let is_absent = text(&folder.join("type")).is_some_and(|kind| kind == "0");
            if is_absent || !file.exists() {
                continue;
            }
            if consoles.split_whitespace().any(|console| console == name) {
                let why = "the system uses it as its console";
                self.left_alone.push((file.display().to_string(), why));
                continue;
            }
            found.push((file, Usb::above(&device, &sys)));
        }
        self.ports = with_stable_names(found, &root.join("dev/serial"));
    }

    /// Cameras on a board have files, too, but the driver reads them by a program.
    fn read_cameras(&mut self, root: &Path) {
        let sys = root.join("sys");
        let mut found = Vec::new();
        for (name, folder) in entries(&sys.join("class/video4linux")) {
            let file = root.join("dev").join(&name);
            // The second file of a camera has data about its pictures.
            if text(&folder.join("index")).as_deref() != Some("0") || !file.exists() {
                continue;
            }
            let device = fs::canonicalize(folder.join("device")).ok();
            let usb = device.and_then(|device| Usb::above(&device, &sys));
            found.extend(usb.map(|usb| (file, Some(usb))));
        }
        self.cameras = with_stable_names(found, &root.join("dev/v4l"));
    }

    fn read_buses(&mut self, root: &Path) {
        for (name, folder) in entries(&root.join("sys/bus/i2c/devices")) {
            // The chips on a bus are in the same folder.
            if !name.starts_with("i2c-") {
                continue;
            }
            let path = root.join("dev").join(&name);
            let adapter = text(&folder.join("name")).unwrap_or_default();
            let lower = adapter.to_lowercase();
            let shown = path.display().to_string();
            let Ok(found) = fs::metadata(&path) else {
                let why = "it has no device file: load the module with `sudo modprobe i2c-dev`";
                self.left_alone.push((shown, why));
                continue;
            };
            if FOREIGN_ADAPTERS.iter().any(|name| lower.contains(name)) {
                let why = "a bus of a display or the mainboard";
                self.left_alone.push((shown, why));
                continue;
            }
            self.buses.push(I2cBus {
                location: match found.file_type().is_socket() {
                    true => BusLocation::Simulated(path),
                    false => BusLocation::System(path),
                },
                adapter,
            });
        }
    }

    fn read_others(&mut self, root: &Path) {
        let sys = root.join("sys");
        for (_, folder) in entries(&sys.join("bus/usb/devices")) {
            let Ok(folder) = fs::canonicalize(folder) else {
                continue;
            };
            // Interfaces are in the same folder as devices.
            let Some(usb) = Usb::at(&folder) else {
                continue;
            };
            let ports = self.ports.iter().chain(&self.cameras);
            let mut ports = ports.filter_map(|port| port.usb.as_ref());
            if !ports.any(|port| port.folder == usb.folder) {
                self.others.push(usb);
            }
        }
    }
}

impl Usb {
    /// The USB device that a device belongs to.
    fn above(device: &Path, sys: &Path) -> Option<Self> {
        let sys = fs::canonicalize(sys).ok()?;
        let mut interface = None;
        for folder in device.ancestors().take_while(|it| it.starts_with(&sys)) {
            let number = text(&folder.join("bInterfaceNumber"));
            let number = number.and_then(|number| u8::from_str_radix(&number, 16).ok());
            interface = interface.or(number);
            if let Some(usb) = Self::at(folder) {
                return Some(Self { interface, ..usb });
            }
        }
        None
    }

    /// The USB device in this folder.
    fn at(folder: &Path) -> Option<Self> {
        let id = |name: &str| u16::from_str_radix(&text(&folder.join(name))?, 16).ok();
        let words = ["manufacturer", "product"].map(|name| text(&folder.join(name)));
        let words: Vec<_> = words.into_iter().flatten().collect();
        let is_camera = entries(folder).iter().any(|(_, interface)| {
            // The class of video.
            text(&interface.join("bInterfaceClass")).is_some_and(|class| class == "0e")
        });
        Some(Self {
            vendor: id("idVendor")?,
            product: id("idProduct")?,
            text: words.join(" "),
            serial_number: text(&folder.join("serial")),
            interface: None,
            is_camera,
            folder: folder.to_owned(),
        })
    }
}

/// Files with the links of udev that stay the same when devices are plugged in elsewhere or later, as far
/// as there are some. `folder` has the folders of these links.
fn with_stable_names(found: Vec<(PathBuf, Option<Usb>)>, folder: &Path) -> Vec<Port> {
    let (by_id, by_path) = (links(&folder.join("by-id")), links(&folder.join("by-path")));
    let is_twin = |a: &Usb, b: &Usb| {
        a.folder != b.folder
            && (a.vendor, a.product, a.interface, &a.serial_number)
                == (b.vendor, b.product, b.interface, &b.serial_number)
    };
    let named = found.iter().map(|(file, usb)| {
        // udev has one link for two devices that it cannot tell apart.
        let has_twin = usb.as_ref().is_some_and(|usb| {
            let mut others = found.iter().filter_map(|(_, other)| other.as_ref());
            others.any(|other| is_twin(usb, other))
        });
        let names = match has_twin {
            true => &by_path,
            false => &by_id,
        };
        let target = fs::canonicalize(file).ok();
        let stable = names.iter().find(|(to, _)| Some(to) == target.as_ref());
        Port {
            path: stable.map_or(file, |(_, link)| link).clone(),
            usb: usb.clone(),
        }
    });
    named.collect()
}

/// Names and paths in a folder, by name. Numbers count as numbers: `i2c-2` is before `i2c-10`.
fn entries(folder: &Path) -> Vec<(String, PathBuf)> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut all: Vec<_> = entries
        .map(|entry| {
            (
                entry.file_name().to_string_lossy().into_owned(),
                entry.path(),
            )
        })
        .collect();
    all.sort_by(|(a, _), (b, _)| (a.len(), a).cmp(&(b.len(), b)));
    all
}

/// The links in a folder, each with the file that it leads to.
fn links(folder: &Path) -> Vec<(PathBuf, PathBuf)> {
    let paths = entries(folder).into_iter().map(|(_, path)| path);
    let found = paths.filter_map(|path| Some((fs::canonicalize(&path).ok()?, path)));
    found.collect()
}

/// The text of a small file, without spaces around it.
fn text(path: &Path) -> Option<String> {
    let text = String::from_utf8_lossy(&fs::read(path).ok()?)
        .trim()
        .to_owned();
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use tempfile::TempDir;

    use super::*;

    /// A machine that is described by files.
    struct Files(TempDir);

    impl Files {
        fn new() -> Self {
            Self(tempfile::tempdir().unwrap())
        }

        fn write(&self, path: &str, content: &str) {
            let path = self.0.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }

        fn link(&self, path: &str, target: &str) {
            let path = self.0.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            symlink(self.0.path().join(target), path).unwrap();
        }

        /// A port of a USB device.
        fn usb_port(&self, name: &str, place: &str, [vendor, product]: [&str; 2], text: &str) {
            let device = format!("sys/devices/usb1/{place}");
            self.write(&format!("{device}/idVendor"), &format!("{vendor}\n"));
            self.write(&format!("{device}/idProduct"), &format!("{product}\n"));
            self.write(&format!("{device}/product"), &format!("{text}\n"));
            let interface = format!("{device}/{place}:1.0");
            self.write(&format!("{interface}/bInterfaceNumber"), "00\n");
            self.link(&format!("sys/class/tty/{name}/device"), &interface);
            self.link(&format!("sys/bus/usb/devices/{place}"), &device);
            self.write(&format!("dev/{name}"), "");
        }

        fn machine(&self) -> Machine {
            Machine::read(self.0.path())
        }
    }

    #[test]
    fn a_usb_port_has_its_device_and_its_stable_name() {
        let files = Files::new();
        files.usb_port("ttyACM0", "1-1", ["15d1", "0000"], "URG");
        files.link("dev/serial/by-id/usb-Hokuyo-if00", "dev/ttyACM0");
        let machine = files.machine();
        let [port] = &machine.ports[..] else {
            panic!("{machine:?}");
        };
        assert!(port.path.ends_with("dev/serial/by-id/usb-Hokuyo-if00"));
        let usb = port.usb.as_ref().unwrap();
        assert_eq!((usb.vendor, usb.product), (0x15d1, 0));
        assert_eq!((usb.text.as_str(), usb.interface), ("URG", Some(0)));
        assert!(machine.others.is_empty(), "it is listed once");
    }

    #[test]
    fn two_devices_without_serial_numbers_have_the_names_of_their_places() {
        let files = Files::new();
        files.usb_port("ttyUSB0", "1-1", ["10c4", "ea60"], "CP2102");
        files.usb_port("ttyUSB1", "1-2", ["10c4", "ea60"], "CP2102");
        files.link("dev/serial/by-id/usb-CP2102", "dev/ttyUSB1");
        files.link("dev/serial/by-path/left", "dev/ttyUSB0");
        files.link("dev/serial/by-path/right", "dev/ttyUSB1");
        let ports = files.machine().ports;
        let names: Vec<_> = ports
            .iter()
            .map(|port| port.path.file_name().unwrap())
            .collect();
        assert_eq!(names, ["left", "right"]);
    }

    #[test]
    fn a_camera_has_one_file_and_those_of_the_board_are_left_out() {
        let files = Files::new();
        let device = "sys/devices/usb1/1-3";
        files.write(&format!("{device}/idVendor"), "046d\n");
        files.write(&format!("{device}/idProduct"), "0825\n");
        let interface = format!("{device}/1-3:1.0");
        files.write(&format!("{interface}/bInterfaceClass"), "0e\n");
        files.link("sys/bus/usb/devices/1-3", device);
        files.write("sys/devices/platform/isp/uevent", "");
        for (name, index, device) in [
            ("video0", "0\n", &*interface),
            ("video1", "1\n", &interface),
            ("video13", "0\n", "sys/devices/platform/isp"),
        ] {
            files.write(&format!("sys/class/video4linux/{name}/index"), index);
            files.link(&format!("sys/class/video4linux/{name}/device"), device);
            files.write(&format!("dev/{name}"), "");
        }
        files.link("dev/v4l/by-id/usb-046d_0825-video-index0", "dev/video0");
        let machine = files.machine();
        let [camera] = &machine.cameras[..] else {
            panic!("{machine:?}");
        };
        let link = "dev/v4l/by-id/usb-046d_0825-video-index0";
        assert!(camera.path.ends_with(link), "{camera:?}");
        assert!(machine.others.is_empty(), "it is listed once");
    }

    #[test]
    fn ports_that_are_no_ports_of_devices_are_left_out() {
        let files = Files::new();
        // A virtual terminal, a port that the PC lacks, a console, and a port of the board.
        files.write("sys/class/tty/tty1/dev", "4:1\n");
        for name in ["ttyS0", "ttyS1", "ttyAMA0"] {
            files.write(&format!("sys/devices/platform/{name}/uevent"), "");
            let device = format!("sys/devices/platform/{name}");
            files.link(&format!("sys/class/tty/{name}/device"), &device);
            files.write(&format!("dev/{name}"), "");
        }
        files.write("sys/class/tty/ttyS0/type", "0\n");
        files.write("sys/class/tty/console/active", "tty0 ttyS1\n");
        let machine = files.machine();
        let [port] = &machine.ports[..] else {
            panic!("{machine:?}");
        };
        assert!(port.path.ends_with("dev/ttyAMA0") && port.usb.is_none());
        assert_eq!(machine.left_alone.len(), 1, "the console is told");
    }

    #[test]
    fn buses_of_displays_are_left_alone_and_other_devices_are_listed() {
        let files = Files::new();
        for (name, adapter) in [
            ("i2c-1", "bcm2835 (i2c@7e804000)"),
            ("i2c-10", "i915 gmbus"),
        ] {
            files.write(&format!("sys/bus/i2c/devices/{name}/name"), adapter);
            files.write(&format!("dev/{name}"), "");
        }
        files.write("sys/bus/i2c/devices/1-0068/name", "ds3231");
        files.write("sys/bus/usb/devices/1-3/idVendor", "046d\n");
        files.write("sys/bus/usb/devices/1-3/idProduct", "082d\n");
        files.write("sys/bus/usb/devices/1-3/1-3:1.0/bInterfaceClass", "0e\n");
        let machine = files.machine();
        let [bus] = &machine.buses[..] else {
            panic!("{machine:?}");
        };
        assert!(matches!(&bus.location, BusLocation::System(path) if path.ends_with("dev/i2c-1")));
        assert_eq!(machine.left_alone.len(), 1);
        assert!(machine.others[0].is_camera);
    }
}
