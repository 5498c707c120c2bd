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
use crate::motion_sensor::bus::{Bus, BusError, BusLocation};
use crate::options::OptionsError;
use crate::stargazer::markers::MarkerFile;
use crate::{diffdrive, hokuyo, ldrobot, maestro, mpu, ninedof, roboclaw, rplidar, stargazer};

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
pub static PROBES: [Probe; 9] = [
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
                    baud, and the address 128 for one and 129 for the other",
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
        match self {
            Self::Hokuyo => &PROBES[0],
            Self::Roboclaw => &PROBES[1],
            Self::Maestro => &PROBES[2],
            Self::Stargazer => &PROBES[3],
            Self::Ninedof => &PROBES[4],
            Self::Ldrobot => &PROBES[5],
            Self::Mpu => &PROBES[6],
            Self::Diffdrive => &PROBES[7],
            Self::Rplidar => &PROBES[8],
        }
    }

    /// Whether it is on an I2C bus, and not at a serial port.
    #[must_use]
    pub fn is_on_i2c(self) -> bool {
        matches!(self, Self::Ninedof | Self::Mpu)
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
            Self::Rplidar | Self::Ninedof | Self::Mpu => return Ok(None),
        }))
    }
}

/// Asks whether this device is at a serial port. Takes up to four seconds, and blocks.
///
/// # Errors
/// It is not, or the port cannot be used.
pub fn serial(kind: Kind, path: &Path) -> Result<Identity, NoAnswer> {
    if kind == Kind::Rplidar {
        let port = Some(path.to_owned());
        let options = rplidar::Options {
            port,
            ..Default::default()
        };
        let settings = options.settings();
        let (_, port) = settings.map_err(|error| NoAnswer::Failed(error.to_string()))?;
        return open(port, rplidar::probe::ask);
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
        Kind::Rplidar | Kind::Ninedof | Kind::Mpu => Err(NoAnswer::Silent),
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

/// Asks whether this device is on a bus. Blocks for some milliseconds, or for seconds if the bus is
/// stuck.
///
/// # Errors
/// It is not, or the bus cannot be used.
pub fn i2c(kind: Kind, bus: &BusLocation) -> Result<Identity, NoAnswer> {
    let opened = bus.try_open();
    let mut opened = opened.map_err(|error| NoAnswer::of(&error, &bus.to_string()))?;
    match kind {
        Kind::Ninedof => ninedof::probe::ask(&mut *opened),
        Kind::Mpu => mpu::probe::ask(&mut *opened),
        _ => Err(NoAnswer::Silent),
    }
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
            assert_eq!(probe.kind.probe().driver, probe.driver);
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
