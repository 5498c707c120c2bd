//! Asks whether the device of a configured driver is there, and what it stores that explains a fault.
//! IO.
//!
//! Only questions of [`PROBES`](crate::probe::PROBES) and reads of stored values are sent, so nothing
//! moves and nothing changes.

use crate::BuiltIn;
use crate::connection::{Connect, Connection, Endpoint};
use crate::i2c::{Bus, BusLocation};
use crate::options::OptionsError;
use crate::probe::{self, Identity, Kind, NoAnswer, open};
use crate::stargazer::markers::MarkerFile;
use crate::{
    bus_servos, create2, diffdrive, firmata, gps, hokuyo, ldrobot, maestro, odrive, pca9685,
    roboclaw, rplidar, stargazer, vesc, ydlidar,
};

/// What a device has answered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Presence {
    /// What it is, and the values that it stores, for people.
    pub text: String,
    /// Why it may not work.
    pub remarks: Vec<Remark>,
}

/// A state or a stored value that explains a fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remark {
    /// What is wrong.
    pub text: String,
    /// What to do.
    pub hint: String,
}

impl From<Identity> for Presence {
    fn from(Identity { text, .. }: Identity) -> Self {
        let remarks = Vec::new();
        Self { text, remarks }
    }
}

/// The answer of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// What it is, or why there is no answer.
    pub answer: Result<Presence, NoAnswer>,
    /// What to check if it is silent.
    pub if_silent: &'static str,
}

impl BuiltIn {
    /// Asks the device of this driver. Takes up to five seconds, and blocks. `None` if the driver has
    /// no device, or nothing can be asked safely; a scanner on TCP accepts one program only.
    ///
    /// A device that another program uses is not asked if that program has locked the port.
    #[must_use]
    pub fn ask(self) -> Option<Asked> {
        let (kind, answer) = match self {
            Self::Hokuyo(options) => {
                let endpoint = options.complete().and_then(|it| it.settings());
                let endpoint = endpoint.map(|(_, endpoint)| endpoint);
                if matches!(endpoint, Ok(Endpoint::Tcp(_))) {
                    return None;
                }
                (Kind::Hokuyo, on_line(endpoint, hokuyo::probe::ask))
            }
            Self::Diffdrive(options) => {
                let endpoint = options.complete().and_then(|it| it.settings());
                let endpoint = endpoint.map(|(_, endpoint)| endpoint);
                (Kind::Diffdrive, on_line(endpoint, diffdrive::probe::ask))
            }
            Self::Firmata(options) => {
                let endpoint = options.complete().and_then(|it| it.settings());
                let endpoint = endpoint.map(|(_, endpoint)| endpoint);
                (Kind::Firmata, on_line(endpoint, firmata::probe::ask))
            }
            Self::Create2(options) => {
                let endpoint = options.complete().and_then(|it| it.settings());
                let endpoint = endpoint.map(|(_, endpoint)| endpoint);
                (Kind::Create2, on_line(endpoint, create2::probe::ask))
            }
            Self::Odrive(options) => {
                let endpoint = options.complete().and_then(|it| it.settings());
                let endpoint = endpoint.map(|(_, endpoint)| endpoint);
                (Kind::Odrive, on_line(endpoint, odrive::probe::ask))
            }
            Self::Vesc(options) => {
                let endpoint = options.complete().and_then(|it| it.settings());
                let endpoint = endpoint.map(|(_, endpoint, _)| endpoint);
                (Kind::Vesc, on_line(endpoint, vesc::probe::ask))
            }
            Self::Ldrobot(options) => {
                let endpoint = options.complete().and_then(|it| it.settings());
                let endpoint = endpoint.map(|(_, endpoint)| endpoint);
                (Kind::Ldrobot, on_line(endpoint, ldrobot::probe::listen))
            }
            Self::Rplidar(options) => {
                let port = options.complete().and_then(|it| it.settings());
                let port = port.map(|(_, port)| port);
                (Kind::Rplidar, on_line(port, rplidar::probe::ask))
            }
            Self::Feetech(options) => (Kind::Feetech, bus_servos::probe::look(*options)),
            Self::Dynamixel(options) => (Kind::Dynamixel, bus_servos::probe::look(*options)),
            Self::Ydlidar(options) => {
                let setup = options.complete().and_then(|it| it.settings());
                let answer = setup.map_err(wrong).and_then(|(settings, endpoint)| {
                    let ask = |port| ydlidar::probe::ask(port, settings.product);
                    open(endpoint, ask).map(Into::into)
                });
                (Kind::Ydlidar, answer)
            }
            Self::Gps(options) => {
                let port = options.complete().and_then(|it| it.settings());
                let port = port.map(|(_, port)| port);
                (Kind::Gps, on_line(port, gps::probe::listen))
            }
            Self::Maestro(options) => {
                let endpoint = options.complete().and_then(|it| it.settings());
                let endpoint = endpoint.map(|(.., endpoint)| endpoint);
                (Kind::Maestro, on_line(endpoint, maestro::probe::ask))
            }
            Self::Stargazer(options) => {
                let endpoint = options.complete();
                let endpoint = endpoint.and_then(|it| it.settings(MarkerFile::default()));
                let endpoint = endpoint.map(|(_, endpoint)| endpoint);
                (Kind::Stargazer, on_line(endpoint, stargazer::probe::listen))
            }
            Self::Roboclaw(options) => {
                let setup = options.complete().and_then(|it| it.setup());
                let answer = setup.map_err(wrong).and_then(|(setup, endpoint)| {
                    let layout = setup.settings.layout;
                    let units = layout.units().iter().rev();
                    let addresses: Vec<u8> = units.map(|unit| layout.address(*unit)).collect();
                    let place = endpoint.to_string();
                    let ask = |port| roboclaw::stored::read(port, place, &addresses);
                    open(endpoint, ask)
                });
                (Kind::Roboclaw, answer)
            }
            Self::Ninedof(options) => {
                on_bus(Kind::Ninedof, options.complete().and_then(|it| it.setup()))
            }
            Self::Mpu(options) => on_bus(Kind::Mpu, options.complete().and_then(|it| it.setup())),
            Self::Lsm6dsox(options) => {
                on_bus(Kind::Lsm6dsox, options.complete().and_then(|it| it.setup()))
            }
            Self::Icm20948(options) => {
                on_bus(Kind::Icm20948, options.complete().and_then(|it| it.setup()))
            }
            Self::Bno055(options) => {
                on_bus(Kind::Bno055, options.complete().and_then(|it| it.setup()))
            }
            Self::Pca9685(options) => {
                let settings = options.complete().and_then(|it| it.settings());
                let answer = settings.map_err(wrong).and_then(|(settings, _, bus)| {
                    let ask = |bus: &mut dyn Bus| pca9685::probe::ask_at(bus, &[settings.address]);
                    probe::on_bus(&bus, ask).map(Into::into)
                });
                (Kind::Pca9685, answer)
            }
            Self::Ina2xx(options) => {
                let settings = options.complete().and_then(|it| it.settings());
                on_bus(Kind::Ina2xx, settings.map(|(.., bus)| ((), bus)))
            }
            _ => return None,
        };
        let if_silent = kind.probe().if_silent;
        Some(Asked { answer, if_silent })
    }
}

fn on_line<F: Future<Output = Result<Identity, NoAnswer>>>(
    endpoint: Result<impl Connect, OptionsError>,
    ask: impl FnOnce(Box<dyn Connection>) -> F,
) -> Result<Presence, NoAnswer> {
    open(endpoint.map_err(wrong)?, ask).map(Into::into)
}

fn on_bus<S>(
    kind: Kind,
    setup: Result<(S, BusLocation), OptionsError>,
) -> (Kind, Result<Presence, NoAnswer>) {
    let bus = setup.map_err(wrong);
    let answer = bus.and_then(|(_, bus)| probe::i2c(kind, &bus));
    (kind, answer.map(Into::into))
}

fn wrong(error: OptionsError) -> NoAnswer {
    NoAnswer::Failed(error.to_string())
}
