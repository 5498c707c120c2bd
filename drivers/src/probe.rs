//! Recognizes devices: asks what is connected to a port or a bus, and changes nothing. IO.
//!
//! [`PROBES`] is the table of all probes: what each one sends, and why that is safe. Only those bytes
//! are ever sent. `probe.rs` in the folder of a driver has the rest.
//!
//! A port that another program uses is not touched: drivers lock their ports, and so does a probe.

use std::io;
use std::path::Path;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use crate::connection::{Connect, Connection, Endpoint, in_words};
use crate::i2c::{Bus, BusError, BusLocation};
use crate::options::OptionsError;
use crate::stargazer::markers::MarkerFile;
use crate::{
    bno055, create2, diffdrive, firmata, gps, hokuyo, icm20948, ina2xx, ldrobot, lsm6dsox, maestro,
    mpu, ninedof, odrive, pca9685, roboclaw, rplidar, stargazer, vesc, ydlidar,
};

/// A device that has a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A laser scanner.
    Hokuyo,
    /// Motor controllers.
    Roboclaw,
    /// A servo controller.
    Maestro,
    /// A sensor for markers on the ceiling.
    Stargazer,
    /// Motion sensors of three chips.
    Ninedof,
    /// A laser scanner that turns all the time.
    Ldrobot,
    /// A motion sensor of one chip.
    Mpu,
    /// A base with two wheels and an Arduino.
    Diffdrive,
    /// A laser scanner that says which one it is.
    Rplidar,
    /// A servo controller of one chip.
    Pca9685,
    /// A laser scanner that may say which one it is.
    Ydlidar,
    /// A sensor for the voltage and the current of the battery.
    Ina2xx,
    /// A motion sensor, with a magnetometer beside it.
    Lsm6dsox,
    /// A motion sensor with a magnetometer behind it.
    Icm20948,
    /// A motion sensor that computes its attitude.
    Bno055,
    /// An Arduino whose pins programs use.
    Firmata,
    /// A GPS receiver.
    Gps,
    /// A base that is a robot for cleaning, or was one.
    Create2,
    /// Motor controllers of two wheels.
    Vesc,
    /// A motor controller of two wheels.
    Odrive,
}

/// How a device is recognized.
#[derive(Clone, Copy, Debug)]
pub struct Probe {
    /// The device.
    pub kind: Kind,
    /// The name of its driver.
    pub driver: &'static str,
    /// The name of its device type.
    pub device: &'static str,
    /// What it is, for people.
    pub about: &'static str,
    /// What the probe sends, for people.
    pub sends: &'static str,
    /// Why that is safe.
    pub is_safe: &'static str,
    /// What to check if it does not answer.
    pub if_silent: &'static str,
}

/// All probes. docs/init.md has the same table.
pub static PROBES: [Probe; 20] = [
    Probe {
        kind: Kind::Hokuyo,
        driver: "hokuyo",
        device: "hokuyo",
        about: "Hokuyo laser scanner",
        sends: "`VV`: the question for its version",
        is_safe: "it only reads; the laser and its motor stay as they are",
        if_silent: "it needs some seconds after it was switched on",
    },
    Probe {
        kind: Kind::Roboclaw,
        driver: "roboclaw",
        device: "roboclaw",
        about: "RoboClaw motor controller",
        sends: "command 21, the question for the firmware, to the addresses 128 to 135",
        is_safe: "it only reads, and a RoboClaw answers it without a change of its motors; a port is \
                  asked only if USB says that it is a RoboClaw, or you do",
        if_silent: "a controller needs its main battery, and in Motion Studio: Packet Serial, 38400 \
                    baud, and the address 128; with two, 129 for the one of the front wheels",
    },
    Probe {
        kind: Kind::Maestro,
        driver: "maestro",
        device: "maestro",
        about: "Pololu Maestro servo controller",
        sends: "command 90 00, the question for the position of servo 0",
        is_safe: "it only reads; no servo gets a target",
        if_silent: "its serial mode must be USB Dual Port, in the Maestro Control Center",
    },
    Probe {
        kind: Kind::Stargazer,
        driver: "stargazer",
        device: "stargazer",
        about: "Hagisonic StarGazer",
        sends: "nothing: it listens for two seconds",
        is_safe: "the device reports by itself; a port is opened only if you say that it is a StarGazer",
        if_silent: "it must be switched on and send at 115200 baud",
    },
    Probe {
        kind: Kind::Ninedof,
        driver: "ninedof",
        device: "ninedof",
        about: "motion sensors LSM303DLHC and L3GD20",
        sends: "I2C reads of the identity registers at the addresses 1e, 19, 6b and 6a (and 69 and 68 \
                beside a chip at 1e)",
        is_safe: "a read of a register changes no setting of these chips; other addresses are not used, \
                  nor the buses of graphics cards and mainboards",
        if_silent: "the sensors need power, and the wires SDA and SCL",
    },
    Probe {
        kind: Kind::Ldrobot,
        driver: "ldrobot",
        device: "hokuyo",
        about: "LDROBOT laser scanner",
        sends: "nothing: it listens for a second, at 230400 baud",
        is_safe: "the scanner reports by itself; a port is opened only if you say that it is such a scanner",
        if_silent: "it must turn, and send at 230400 baud: check its 5 V, and the wire to TX. An STL-27L \
                    sends at 921600 baud: configure it by hand, with --model",
    },
    Probe {
        kind: Kind::Mpu,
        driver: "mpu",
        device: "ninedof",
        about: "motion sensor MPU",
        sends: "I2C reads of the registers 75 and 6b at the addresses 68 and 69",
        is_safe: "a read of these registers changes no setting of the sensors, nor of the clocks that \
                  have the same address",
        if_silent: "the sensor needs power, and the wires SDA and SCL",
    },
    Probe {
        kind: Kind::Diffdrive,
        driver: "diffdrive",
        device: "roboclaw",
        about: "Arduino base with two wheels",
        sends: "an empty line, at 57600 baud, after 2.5 seconds",
        is_safe: "the firmware of ros_arduino_bridge and that of Andino answer it with an error; opening \
                  the port restarts the Arduino, which stops its motors; a port is opened only if you \
                  say that it is such a base",
        if_silent: "the Arduino needs the firmware of ros_arduino_bridge or of Andino, at 57600 baud. If \
                    yours has another speed, configure it by hand, with --baud",
    },
    Probe {
        kind: Kind::Rplidar,
        driver: "rplidar",
        device: "hokuyo",
        about: "RPLIDAR laser scanner",
        sends: "A5 25 to end a scan, and A5 50, the question for its model, at 115200, 256000, 460800 \
                and 1000000 baud until it answers",
        is_safe: "it only reads; the motor of some models turns while a program has the port open; a \
                  port is opened only if you say that it is such a scanner",
        if_silent: "check its 5 V, which must give 1.5 A, and whether TX and RX are exchanged",
    },
    Probe {
        kind: Kind::Pca9685,
        driver: "pca9685",
        device: "maestro",
        about: "servo controller PCA9685",
        sends: "I2C reads of the registers 02 to 05 at the addresses 40 to 47 and 60",
        is_safe: "a read of a register changes no setting of this chip, nor of the sensors of current and \
                  of temperature that have the same addresses",
        if_silent: "the board needs 3.3 V or 5 V at VCC beside the supply of the servos, and the wires SDA \
                    and SCL; its address is 40 without solder",
    },
    Probe {
        kind: Kind::Ydlidar,
        driver: "ydlidar",
        device: "hokuyo",
        about: "YDLIDAR laser scanner",
        sends: "A5 00 and A5 65 to end a scan, and A5 90, the question for its model, at 115200, 128000 \
                and 230400 baud until it answers or sends packets by itself",
        is_safe: "it only reads; the motor of some models turns while a program has the port open; a \
                  port is opened only if you say that it is such a scanner",
        if_silent: "check its 5 V, which must give 1 A, and its wires. One that takes no commands must \
                    turn",
    },
    Probe {
        kind: Kind::Ina2xx,
        driver: "ina2xx",
        device: "battery",
        about: "battery sensor",
        sends: "I2C reads of the register 00 at the addresses 40 to 4f, and, where a chip answers, of fe, \
                ff and 01 to 05",
        is_safe: "a read of these registers changes no setting of the chips that have these addresses: \
                  servo controllers, thermometers, converters",
        if_silent: "the sensor needs 3.3 V, even if the battery is connected to it, and the wires SDA and \
                    SCL",
    },
    Probe {
        kind: Kind::Lsm6dsox,
        driver: "lsm6dsox",
        device: "ninedof",
        about: "motion sensor LSM6DSOX or a relative",
        sends: "I2C reads of the register 0f at the addresses 6a and 6b",
        is_safe: "a read of this register changes no setting of the sensors, nor of the gyroscopes that \
                  have the same address",
        if_silent: "the sensor needs power, and the wires SDA and SCL",
    },
    Probe {
        kind: Kind::Icm20948,
        driver: "icm20948",
        device: "ninedof",
        about: "motion sensor ICM-20948",
        sends: "I2C reads of the registers 00 and 06 at the addresses 69 and 68",
        is_safe: "a read of these registers changes no setting of the sensor, nor of the sensors and clocks \
                  that have the same address",
        if_silent: "the sensor needs power, and the wires SDA and SCL; if another program has used it, \
                    switch its power off and on",
    },
    Probe {
        kind: Kind::Bno055,
        driver: "bno055",
        device: "ninedof",
        about: "motion sensor BNO055",
        sends: "I2C reads of the registers 00 to 05 at the addresses 28 and 29",
        is_safe: "a read of these registers changes no setting of the sensor, nor of the range finders that \
                  have the same address",
        if_silent: "the sensor needs power, and a second to start; check the wires SDA and SCL",
    },
    Probe {
        kind: Kind::Firmata,
        driver: "firmata",
        device: "board",
        about: "Arduino with Firmata",
        sends: "F9, the question for the version, at 57600 baud, after 2.5 seconds, and F0 79 F7, that for \
                the program, if it answers",
        is_safe: "it only reads; opening the port restarts the Arduino, whose program then makes most \
                  pins outputs that are low; a port is opened only if you say that it is such a board",
        if_silent: "the Arduino needs a program such as StandardFirmata, at 57600 baud. If yours has another \
                    speed, configure it by hand, with --baud",
    },
    Probe {
        kind: Kind::Gps,
        driver: "gps",
        device: "gps",
        about: "GPS receiver",
        sends: "nothing: it listens for a second, at 9600, 38400 and 115200 baud until a sentence arrives",
        is_safe: "the receiver reports by itself; a port is opened only if USB says that it is a receiver of \
                  u-blox, or you say that it is one",
        if_silent: "it needs its supply, and a wire from its TX; some send at another speed, or UBX instead \
                    of NMEA: configure it by hand, with --baud",
    },
    Probe {
        kind: Kind::Create2,
        driver: "create2",
        device: "roboclaw",
        about: "iRobot Create 2 or Roomba",
        sends: "80 to start its interface and 96 00 to end a stream, twice, and 8E 23, the question for its \
                mode, at 115200 baud",
        is_safe: "no motor starts, and a robot that cleans stops; a port is opened only if you say that it \
                  is such a robot",
        if_silent: "it sleeps after five minutes: press its CLEAN button. Check its battery and its cable",
    },
    Probe {
        kind: Kind::Vesc,
        driver: "vesc",
        device: "roboclaw",
        about: "VESC motor controller",
        sends: "command 0, the question for the firmware, at 115200 baud",
        is_safe: "it only reads, and a VESC answers it without a change of its motor; a port is opened only \
                  if you say that it is a VESC",
        if_silent: "a VESC needs its battery. At a UART, choose it in VESC Tool: App Settings, General, App \
                    to Use; its speed there must be 115200 baud",
    },
    Probe {
        kind: Kind::Odrive,
        driver: "odrive",
        device: "roboclaw",
        about: "ODrive motor controller",
        sends: "an empty line, and `i`, the question for its firmware, at 115200 baud",
        is_safe: "it only reads, and an ODrive answers it without a change of its motors; a port is asked \
                  only if USB says that it is an ODrive, or you do",
        if_silent: "an ODrive needs its supply, and firmware 0.5. At a UART, its speed must be 115200 baud",
    },
];

/// What a probe has found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// What it is, for people.
    pub text: String,
    /// Options that its driver needs beside its port.
    pub options: Vec<String>,
    /// Why its driver cannot use it as it is; `None` if it can.
    pub unusable: Option<String>,
}

impl Identity {
    /// A device that its driver can use without further options.
    pub(crate) fn usable(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            options: Vec::new(),
            unusable: None,
        }
    }
}

/// Why a probe has found nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoAnswer {
    /// Another program has locked the port.
    #[error("another program uses it")]
    Busy,
    /// This user may not open it.
    #[error("this user may not open it")]
    Denied,
    /// Nothing answered, or something else did.
    #[error("no answer")]
    Silent,
    /// The port or the bus has failed.
    #[error("{0}")]
    Failed(String),
}

impl NoAnswer {
    fn of(error: &io::Error, place: &str) -> Self {
        match error.kind() {
            io::ErrorKind::ResourceBusy => Self::Busy,
            io::ErrorKind::PermissionDenied => Self::Denied,
            _ => Self::Failed(in_words(error, place)),
        }
    }
}

impl Kind {
    /// Its row in the table.
    #[must_use]
    pub fn probe(self) -> &'static Probe {
        // In the same order: a test compares them.
        &PROBES[self as usize]
    }

    /// The types of the devices that its driver serves besides, in the same process.
    #[must_use]
    pub fn besides(self) -> &'static [&'static str] {
        match self {
            Self::Create2 => &["bumper"],
            _ => &[],
        }
    }

    /// Whether it is on an I2C bus, and not at a serial port.
    #[must_use]
    pub fn is_on_i2c(self) -> bool {
        matches!(
            self,
            Self::Ninedof
                | Self::Mpu
                | Self::Pca9685
                | Self::Ina2xx
                | Self::Lsm6dsox
                | Self::Icm20948
                | Self::Bno055
        )
    }

    /// The port as the driver opens it unless it is configured otherwise; `None` for a bus, and if the
    /// driver tries several speeds.
    fn endpoint(self, path: &Path) -> Result<Option<Endpoint>, OptionsError> {
        let port = Some(path.to_owned());
        Ok(Some(match self {
            Self::Hokuyo => {
                let options = hokuyo::Options {
                    port,
                    ..Default::default()
                };
                options.settings()?.1
            }
            Self::Roboclaw => {
                let options = roboclaw::Options {
                    port,
                    ..Default::default()
                };
                options.setup()?.1
            }
            Self::Maestro => {
                let options = maestro::Options {
                    port,
                    ..Default::default()
                };
                options.settings()?.2
            }
            Self::Stargazer => {
                let options = stargazer::Options {
                    port,
                    ..Default::default()
                };
                options.settings(MarkerFile::default())?.1
            }
            Self::Ldrobot => {
                let options = ldrobot::Options {
                    port,
                    ..Default::default()
                };
                options.settings()?.1
            }
            Self::Diffdrive => {
                let options = diffdrive::Options {
                    port,
                    // Only the driver needs the real ones.
                    counts_per_turn: Some(1.0),
                    wheel_diameter_mm: Some(1.0),
                    ..Default::default()
                };
                options.settings()?.1
            }
            Self::Firmata => {
                let options = firmata::Options {
                    port,
                    ..Default::default()
                };
                options.settings()?.1
            }
            Self::Create2 => {
                let options = create2::Options {
                    port,
                    ..Default::default()
                };
                options.settings()?.1
            }
            Self::Vesc => {
                let options = vesc::Options {
                    port,
                    // Only the driver needs the real ones.
                    can_id: Some(0),
                    pole_pairs: Some(1),
                    wheel_diameter_mm: Some(1.0),
                    ..Default::default()
                };
                options.settings()?.1
            }
            Self::Odrive => {
                let options = odrive::Options {
                    port,
                    // Only the driver needs the real one.
                    wheel_diameter_mm: Some(1.0),
                    ..Default::default()
                };
                options.settings()?.1
            }
            Self::Rplidar
            | Self::Ydlidar
            | Self::Gps
            | Self::Ninedof
            | Self::Mpu
            | Self::Pca9685
            | Self::Ina2xx
            | Self::Lsm6dsox
            | Self::Icm20948
            | Self::Bno055 => return Ok(None),
        }))
    }
}

/// Asks whether this device is at a serial port. Takes up to five seconds, and blocks.
///
/// # Errors
/// It is not, or the port cannot be used.
pub fn serial(kind: Kind, path: &Path) -> Result<Identity, NoAnswer> {
    // Those that are tried at several speeds.
    let port = Some(path.to_owned());
    match kind {
        Kind::Ydlidar => return ydlidar::probe::find(path),
        Kind::Rplidar => {
            let options = rplidar::Options {
                port,
                ..Default::default()
            };
            return open_with(options.settings(), rplidar::probe::ask);
        }
        Kind::Gps => {
            let options = gps::Options {
                port,
                ..Default::default()
            };
            return open_with(options.settings(), gps::probe::listen);
        }
        _ => {}
    }
    let endpoint = kind.endpoint(path);
    let endpoint = endpoint.map_err(|error| NoAnswer::Failed(error.to_string()))?;
    let Some(endpoint) = endpoint else {
        return Err(NoAnswer::Silent);
    };
    let place = endpoint.place();
    open(endpoint, async move |port| match kind {
        Kind::Hokuyo => hokuyo::probe::ask(port).await,
        Kind::Roboclaw => roboclaw::probe::ask(port, place).await,
        Kind::Maestro => maestro::probe::ask(port).await,
        Kind::Stargazer => stargazer::probe::listen(port).await,
        Kind::Ldrobot => ldrobot::probe::listen(port).await,
        Kind::Diffdrive => diffdrive::probe::ask(port).await,
        Kind::Firmata => firmata::probe::ask(port).await,
        Kind::Create2 => create2::probe::ask(port).await,
        Kind::Vesc => vesc::probe::ask(port).await,
        Kind::Odrive => odrive::probe::ask(port).await,
        // Buses, and those above that try several speeds.
        _ => Err(NoAnswer::Silent),
    })
}

/// Opens a port and asks there. Blocks.
pub(crate) fn open<T, F: Future<Output = Result<T, NoAnswer>>>(
    mut endpoint: impl Connect,
    ask: impl FnOnce(Box<dyn Connection>) -> F,
) -> Result<T, NoAnswer> {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_all().build();
    let runtime = runtime.map_err(|error| NoAnswer::Failed(format!("cannot start: {error}")))?;
    runtime.block_on(async {
        let opened = endpoint.connect().await;
        let port = opened.map_err(|error| NoAnswer::of(&error, &endpoint.place()))?;
        ask(port).await
    })
}

/// The same with the port of these settings.
fn open_with<S, T, F: Future<Output = Result<T, NoAnswer>>>(
    settings: Result<(S, impl Connect), OptionsError>,
    ask: impl FnOnce(Box<dyn Connection>) -> F,
) -> Result<T, NoAnswer> {
    let (_, port) = settings.map_err(|error| NoAnswer::Failed(error.to_string()))?;
    open(port, ask)
}

/// Asks whether this device is on a bus. Blocks for some milliseconds, or for seconds if the bus is
/// stuck.
///
/// # Errors
/// It is not, or the bus cannot be used.
pub fn i2c(kind: Kind, bus: &BusLocation) -> Result<Identity, NoAnswer> {
    on_bus(bus, |bus| match kind {
        Kind::Ninedof => ninedof::probe::ask(bus),
        Kind::Mpu => mpu::probe::ask(bus),
        Kind::Pca9685 => pca9685::probe::ask(bus),
        Kind::Ina2xx => ina2xx::probe::ask(bus),
        Kind::Lsm6dsox => lsm6dsox::probe::ask(bus),
        Kind::Icm20948 => icm20948::probe::ask(bus),
        Kind::Bno055 => bno055::probe::ask(bus),
        _ => Err(NoAnswer::Silent),
    })
}

/// Opens a bus and asks there. Blocks.
pub(crate) fn on_bus(
    bus: &BusLocation,
    ask: impl FnOnce(&mut dyn Bus) -> Result<Identity, NoAnswer>,
) -> Result<Identity, NoAnswer> {
    let opened = bus.try_open();
    let mut opened = opened.map_err(|error| NoAnswer::of(&error, &bus.to_string()))?;
    ask(&mut *opened)
}

/// Reads a register and those behind it; `None` without a chip.
pub(crate) fn read_registers<const N: usize>(
    bus: &mut dyn Bus,
    address: u8,
    register: u8,
) -> Result<Option<[u8; N]>, NoAnswer> {
    let mut bytes = [0; N];
    match bus.transfer(address, &[register], &mut bytes) {
        Ok(()) => Ok(Some(bytes)),
        Err(BusError::Nak) => Ok(None),
        Err(BusError::Broken(text)) => Err(NoAnswer::Failed(text)),
    }
}

/// Sends a request, twice if the first one gets no answer, and gives all received bytes to `read`
/// until that has understood them.
pub(crate) async fn exchange<T>(
    port: &mut dyn Connection,
    request: &[u8],
    patience: Duration,
    mut read: impl FnMut(&[u8]) -> Option<T>,
) -> Result<T, NoAnswer> {
    for _ in 0..2 {
        let write = async {
            port.write_all(request).await?;
            port.flush().await
        };
        match timeout(patience, write).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => return Err(broken(&error)),
            // The port takes no bytes.
            Err(_) => return Err(NoAnswer::Silent),
        }
        if let Some(answer) = hear(port, patience, &mut read).await? {
            return Ok(answer);
        }
    }
    Err(NoAnswer::Silent)
}

/// Gives all received bytes to `read` until that has understood them; `None` if the time is up.
pub(crate) async fn hear<T>(
    port: &mut dyn Connection,
    patience: Duration,
    mut read: impl FnMut(&[u8]) -> Option<T>,
) -> Result<Option<T>, NoAnswer> {
    let hearing = async {
        let mut bytes = [0; 256];
        loop {
            let length = port.read(&mut bytes).await?;
            if length == 0 {
                return Err::<T, io::Error>(io::ErrorKind::UnexpectedEof.into());
            }
            if let Some(answer) = read(&bytes[..length]) {
                return Ok(answer);
            }
        }
    };
    match timeout(patience, hearing).await {
        Ok(Ok(answer)) => Ok(Some(answer)),
        Ok(Err(error)) => Err(broken(&error)),
        Err(_) => Ok(None),
    }
}

fn broken(error: &io::Error) -> NoAnswer {
    NoAnswer::Failed(format!("it was unplugged or has failed: {error}"))
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::{Arc, Mutex};

    use tokio::io::duplex;

    use super::*;

    /// A device that answers each of these requests with these bytes, and what it was sent.
    pub(crate) fn device(
        answer: impl Fn(&[u8]) -> Vec<u8> + Send + 'static,
    ) -> (Box<dyn Connection>, Arc<Mutex<Vec<u8>>>) {
        let (ours, mut theirs) = duplex(1024);
        let heard = Arc::new(Mutex::new(Vec::new()));
        let log = heard.clone();
        tokio::spawn(async move {
            let mut bytes = [0; 64];
            while let Ok(length @ 1..) = theirs.read(&mut bytes).await {
                let request = &bytes[..length];
                log.lock().unwrap().extend(request);
                if theirs.write_all(&answer(request)).await.is_err() {
                    return;
                }
            }
        });
        (Box::new(ours), heard)
    }

    #[test]
    fn every_kind_has_its_row() {
        for probe in &PROBES {
            assert_eq!(
                probe.kind.probe().driver,
                probe.driver,
                "the order of the kinds"
            );
            assert!(!probe.is_safe.is_empty() && !probe.sends.is_empty());
        }
    }

    #[test]
    fn a_port_is_opened_as_its_driver_opens_it() {
        let path = Path::new("/dev/ttyUSB0");
        for (kind, endpoint) in [
            (Kind::Hokuyo, "/dev/ttyUSB0 at 19200 baud"),
            (Kind::Roboclaw, "/dev/ttyUSB0 at 38400 baud"),
            (Kind::Maestro, "/dev/ttyUSB0 at 38400 baud"),
            (Kind::Stargazer, "/dev/ttyUSB0 at 115200 baud"),
            (Kind::Ldrobot, "/dev/ttyUSB0 at 230400 baud"),
            (Kind::Diffdrive, "/dev/ttyUSB0 at 57600 baud"),
            (Kind::Firmata, "/dev/ttyUSB0 at 57600 baud"),
            (Kind::Create2, "/dev/ttyUSB0 at 115200 baud"),
            (Kind::Vesc, "/dev/ttyUSB0 at 115200 baud"),
            (Kind::Odrive, "/dev/ttyUSB0 at 115200 baud"),
        ] {
            let found = kind.endpoint(path).unwrap().unwrap();
            assert_eq!(found.to_string(), endpoint);
        }
    }

    #[test]
    fn a_port_that_does_not_exist_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("none");
        let expected = NoAnswer::Failed(format!("{} does not exist", path.display()));
        assert_eq!(serial(Kind::Hokuyo, &path), Err(expected));
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_is_repeated_once() {
        let (mut port, heard) = device(|_| Vec::new());
        let found = exchange(&mut *port, b"?", Duration::from_secs(1), |_| Some(()));
        assert_eq!(found.await, Err(NoAnswer::Silent));
        assert_eq!(*heard.lock().unwrap(), b"??");
    }
}
