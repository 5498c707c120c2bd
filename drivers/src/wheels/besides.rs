//! What a base brings besides its wheels, as devices of their own in the same process. IO.
//!
//! ```text
//!  the task that owns the base --> wheels (device type 2)
//!                |
//!                +-- Besides --> bumper (22), battery (13)
//! ```

use std::time::{Duration, Instant};

use amber_driver::devices::battery_state::{self, BatteryLink};
use amber_driver::devices::bumper::{self, BumperDriver, BumperLink};
use amber_driver::{Devices, Driver, Reply, now};
use amber_proto::battery_state::BatteryState;
use amber_proto::bumper::{Contact, Contacts};
use amber_proto::{Device, DeviceType};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::driver::{battery_state, unix_us};
use super::{BatteryReading, Model};
use crate::battery::PACE;
use crate::gauge::cells::Pack;
use crate::gauge::driver::{GaugeDriver, Source};
use crate::options::OptionsError;
use crate::stream::complain;

/// The time between two publications of contacts that do not change.
const REPEAT: Duration = Duration::from_millis(250);
/// Older contacts are unknown. Bases measure many times per second.
const MAX_AGE: Duration = Duration::from_millis(500);

/// What the base says besides its wheels, and when.
#[derive(Clone, Debug)]
pub(crate) struct Besides {
    at: Instant,
    contacts: Result<Felt, String>,
    battery: Result<BatteryReading, String>,
}

/// What a base feels.
#[derive(Clone, Debug, PartialEq)]
pub struct Felt {
    /// All its contacts.
    pub contacts: Vec<Contact>,
    /// The time since the measurement.
    pub age: Duration,
}

impl Besides {
    fn new(at: Instant) -> Self {
        let unknown = || "the base has not said anything yet".to_owned();
        Self {
            at,
            contacts: Err(unknown()),
            battery: Err(unknown()),
        }
    }

    /// What a model says now.
    pub(crate) fn of(model: &impl Model, at: Instant) -> Self {
        Self {
            at,
            contacts: model.contacts(at).map_err(Into::into),
            battery: model.battery(at).map_err(Into::into),
        }
    }

    /// Whether another contact is pressed, or whether it became unknown or known.
    pub(crate) fn feels_like(&self, other: &Self) -> bool {
        match (&self.contacts, &other.contacts) {
            (Ok(own), Ok(other)) => own.contacts == other.contacts,
            (Err(_), Err(_)) => true,
            _ => false,
        }
    }

    /// What the base feels.
    ///
    /// # Errors
    /// It is unknown: the reason.
    fn felt(&self, now: Instant) -> Result<Felt, &str> {
        let Felt { contacts, age } = self.contacts.as_ref().map_err(String::as_str)?;
        let age = *age + now.saturating_duration_since(self.at);
        if age > MAX_AGE {
            return Err("the base says nothing now");
        }
        let contacts = contacts.clone();
        Ok(Felt { contacts, age })
    }

    /// The battery.
    ///
    /// # Errors
    /// It is unknown: the reason.
    fn battery(&self, now: Instant) -> Result<BatteryReading, &str> {
        let reading = *self.battery.as_ref().map_err(String::as_str)?;
        let age = reading.age + now.saturating_duration_since(self.at);
        Ok(BatteryReading { age, ..reading })
    }
}

/// The devices of a base that the mediator names for this process. `make` makes the driver of the
/// wheels, which says the rest, too.
///
/// # Errors
/// The base has no such device, or the wheels are missing.
pub(crate) fn devices<D: Driver + 'static>(
    named: &[Device],
    make: impl FnOnce(watch::Sender<Besides>) -> D,
) -> Result<Devices, OptionsError> {
    let invalid = |problem| OptionsError::Value {
        name: "devices",
        problem,
    };
    let (sender, besides) = watch::channel(Besides::new(now()));
    let mut wheels = Some(make(sender));
    let mut devices = Devices::new();
    for &device in named {
        let own = match device.device_type {
            DeviceType::ROBOCLAW => wheels.take(),
            _ => None,
        };
        devices = match (device.device_type, own) {
            (_, Some(wheels)) => devices.add(device, wheels),
            (DeviceType::BUMPER, None) => {
                let driver = BaseBumper::new(besides.clone());
                devices.add(device, bumper::driver(driver))
            }
            (DeviceType::BATTERY, None) => {
                let source = BaseBattery(besides.clone());
                let driver = GaugeDriver::new(Pack::of(None, None, None)?, PACE, source);
                devices.add(device, battery_state::driver(driver))
            }
            _ => {
                let problem = format!(
                    "{device} is no part of this base: name one roboclaw, and bumper and battery"
                );
                return Err(invalid(problem));
            }
        };
    }
    match wheels {
        None => Ok(devices),
        Some(_) => Err(invalid("the wheels are missing: name a roboclaw".into())),
    }
}

/// The driver of the bumper of a base.
struct BaseBumper {
    besides: watch::Receiver<Besides>,
    /// `Some` after the start.
    task: Option<JoinHandle<()>>,
}

impl BaseBumper {
    fn new(besides: watch::Receiver<Besides>) -> Self {
        Self {
            besides,
            task: None,
        }
    }
}

impl BumperDriver for BaseBumper {
    async fn start(
        &mut self,
        link: BumperLink,
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        self.task = Some(tokio::spawn(publish(link, self.besides.clone())));
        Ok(())
    }

    async fn contacts(&mut self, reply: Reply<Contacts>) {
        match self.besides.borrow().felt(now()) {
            Ok(felt) => reply.send(message(felt)),
            Err(why) => reply.refuse(why),
        }
    }

    async fn shutdown(&mut self) {
        if let Some(task) = self.task.take() {
            task.abort();
        }
    }
}

/// Publishes each change, and repeats what does not change.
async fn publish(link: BumperLink, mut besides: watch::Receiver<Besides>) {
    loop {
        match besides.borrow_and_update().felt(now()) {
            Ok(felt) => {
                complain(link.contact_updates(message(felt)));
                link.recovered();
            }
            Err(why) => link.trouble(why),
        }
        if let Ok(Err(_)) = timeout(REPEAT, besides.changed()).await {
            // The base is shut down.
            return;
        }
    }
}

fn message(felt: Felt) -> Contacts {
    Contacts {
        contacts: felt.contacts,
        time: unix_us(felt.age),
    }
}

/// The battery, as the base measures it.
struct BaseBattery(watch::Receiver<Besides>);

impl Source for BaseBattery {
    async fn measure(&mut self, _link: &BatteryLink) -> Result<BatteryState, String> {
        let reading = self.0.borrow().battery(now())?;
        Ok(battery_state(reading))
    }
}

#[cfg(test)]
mod tests {
    use amber_driver::Request;
    use amber_proto::bumper::contact::Kind;
    use amber_proto::roboclaw::DriverMsg;

    use super::*;

    fn after(at: Instant, ms: u64) -> Instant {
        at + Duration::from_millis(ms)
    }

    fn besides(at: Instant, pressed: bool) -> Besides {
        let contact = Contact {
            kind: Some(Kind::Bumper.into()),
            angle: Some(0.0),
            arc: Some(60.0),
            pressed: Some(pressed),
        };
        let age = Duration::from_millis(15);
        Besides {
            at,
            contacts: Ok(Felt {
                contacts: vec![contact],
                age,
            }),
            battery: Ok(BatteryReading {
                mv: 15_000,
                is_low: false,
                age,
            }),
        }
    }

    /// It does nothing.
    struct Wheels;

    impl Driver for Wheels {
        type Message = DriverMsg;

        async fn request(&mut self, _request: Request<DriverMsg>) -> Option<DriverMsg> {
            None
        }
    }

    #[test]
    fn contacts_are_as_old_as_they_are_and_old_ones_are_unknown() {
        let at = Instant::now();
        let besides = besides(at, true);
        let felt = besides.felt(after(at, 485)).unwrap();
        assert_eq!(felt.age, Duration::from_millis(500));
        assert_eq!(felt.contacts[0].pressed, Some(true));
        assert_eq!(
            besides.felt(after(at, 486)),
            Err("the base says nothing now")
        );
        // A battery changes slowly: its reader decides.
        let age = besides.battery(after(at, 985)).unwrap().age;
        assert_eq!(age, Duration::from_secs(1));
        let unknown = Besides::new(at);
        assert!(unknown.felt(at).is_err() && unknown.battery(at).is_err());
    }

    #[test]
    fn only_changes_are_news() {
        let at = Instant::now();
        let (free, pressed, unknown) = (besides(at, false), besides(at, true), Besides::new(at));
        assert!(free.feels_like(&besides(after(at, 15), false)));
        assert!(!free.feels_like(&pressed) && !pressed.feels_like(&unknown));
        assert!(unknown.feels_like(&Besides::new(after(at, 15))));
    }

    #[test]
    fn a_base_serves_its_wheels_and_what_it_brings_and_nothing_else() {
        let of = |named: &str| {
            let named: Vec<Device> = named.split(',').map(|it| it.parse().unwrap()).collect();
            devices(&named, |_| Wheels).map_err(|error| error.to_string())
        };
        let made = of("roboclaw:1,bumper:0,battery:2").unwrap();
        assert_eq!(format!("{made:?}").matches("device_type").count(), 3);
        for (named, problem) in [
            ("bumper:0,battery:0", "devices: the wheels are missing"),
            (
                "roboclaw:0,hokuyo:0",
                "devices: hokuyo:0 is no part of this base",
            ),
            (
                "roboclaw:0,roboclaw:1",
                "devices: roboclaw:1 is no part of this base",
            ),
        ] {
            let error = of(named).unwrap_err();
            assert!(error.contains(problem), "{named}: {error}");
        }
    }
}
