//! Recognizes devices: asks what is connected to a port or a bus, and changes nothing. IO.
//!
//! [`PROBES`] in `table` says what each probe sends, and why that is safe. Only those bytes are ever
//! sent. `probe.rs` in the folder of a driver has the rest.
//!
//! A port that another program uses is not touched: drivers lock their ports, and so does a probe.

use std::io;
use std::path::Path;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

pub use self::table::{Kind, PROBES, Probe};
use crate::connection::{Connect, Connection, Endpoint, in_words};
use crate::i2c::{Bus, BusError, BusLocation};
use crate::options::OptionsError;
use crate::stargazer::markers::MarkerFile;
use crate::{
    bno055, bus_servos, camera, create2, diffdrive, dynamixel, feetech, firmata, gps, hokuyo,
    icm20948, ina2xx, ldrobot, lsm6dsox, maestro, mpu, ninedof, odrive, pca9685, roboclaw, rplidar,
    stargazer, vesc, ydlidar,
};

mod table;

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
    pub(crate) fn of(error: &io::Error, place: &str) -> Self {
        match error.kind() {
            io::ErrorKind::ResourceBusy => Self::Busy,
            io::ErrorKind::PermissionDenied => Self::Denied,
            _ => Self::Failed(in_words(error, place)),
        }
    }
}

impl Kind {
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
            | Self::Bno055
            | Self::Feetech
            | Self::Dynamixel
            | Self::Camera => return Ok(None),
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
        Kind::Feetech => return bus_servos::probe::find::<feetech::Robot>(path),
        Kind::Dynamixel => return bus_servos::probe::find::<dynamixel::Robot>(path),
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

/// Looks which camera this file of a USB camera belongs to, and what it offers. The camera stays off.
/// Blocks; some cameras take a second to wake up.
///
/// # Errors
/// The camera cannot be opened, or it does not answer.
pub fn camera(path: &Path) -> Result<Identity, NoAnswer> {
    #[cfg(target_os = "linux")]
    return camera::source::v4l2::identity(path);
    #[cfg(not(target_os = "linux"))]
    Err(NoAnswer::Failed(format!(
        "{} cannot be used: USB cameras need Linux",
        path.display()
    )))
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
