//! The data of `amber top`: two samples of the mediator, and the rates between them. PURE.

use std::collections::BTreeMap;
use std::time::Duration;

use amber_proto::mediator::{ClientInfo, Counter, Driver, DriverState, ProcessUsage};
use serde::Serialize;

use crate::devices::{motion, name, state_name};
use crate::overview::Overview;

/// One sample of the mediator.
#[derive(Clone, Debug, Default)]
pub(super) struct Look {
    /// The time since the program started.
    pub(super) at: Duration,
    pub(super) overview: Overview,
    pub(super) clients: Vec<ClientInfo>,
    /// The round-trip time to the mediator itself.
    pub(super) round_trip: Option<Duration>,
    /// The round-trip times to the devices whose drivers answer PINGs, by name.
    pub(super) round_trips: BTreeMap<String, Duration>,
}

/// The state of everything, with rates since the last sample.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct View {
    pub(super) mediator: MediatorRow,
    pub(super) devices: Vec<DeviceRow>,
    pub(super) clients: Vec<ClientRow>,
    /// Drop reasons with a nonzero counter, highest rate first.
    pub(super) drops: Vec<DropRow>,
}

/// The mediator itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct MediatorRow {
    pub(super) version: String,
    pub(super) uptime_ms: u64,
    pub(super) clients: u32,
    pub(super) received_per_s: f64,
    pub(super) sent_per_s: f64,
    pub(super) drops_per_s: f64,
    pub(super) cpu_percent: Option<f64>,
    pub(super) memory_bytes: Option<u64>,
    pub(super) round_trip_ms: Option<f64>,
}

/// One driver, named after its first device.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct DeviceRow {
    pub(super) device: String,
    /// Number of further devices that the same driver serves.
    pub(super) others: usize,
    pub(super) state: &'static str,
    /// The problem of the device, if there is one.
    pub(super) problem: Option<String>,
    pub(super) state_ms: u64,
    pub(super) restarts: u32,
    pub(super) in_per_s: f64,
    pub(super) out_per_s: f64,
    pub(super) out_bytes_per_s: f64,
    pub(super) drops_per_s: f64,
    pub(super) dropped: u64,
    pub(super) waiting: u64,
    pub(super) cpu_percent: Option<f64>,
    pub(super) memory_bytes: Option<u64>,
    pub(super) round_trip_ms: Option<f64>,
}

/// One client.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct ClientRow {
    pub(super) id: i32,
    pub(super) address: String,
    pub(super) devices: Vec<String>,
    pub(super) sends_per_s: f64,
    pub(super) gets_per_s: f64,
    pub(super) silent_ms: u64,
}

/// A reason for drops.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct DropRow {
    pub(super) reason: String,
    pub(super) per_s: f64,
    pub(super) total: u64,
}

impl View {
    /// The changes between two samples. Without an older one, rates are 0.
    pub(super) fn between(old: Option<&Look>, new: &Look) -> Self {
        let nothing = Look {
            at: new.at,
            ..new.clone()
        };
        let old = old.unwrap_or(&nothing);
        let rates = Rates {
            seconds: new.at.saturating_sub(old.at).as_secs_f64(),
        };
        Self {
            mediator: mediator(rates, old, new),
            devices: devices(rates, old, new),
            clients: clients(rates, old, new),
            drops: drops(rates, old, new),
        }
    }
}

#[derive(Clone, Copy)]
struct Rates {
    seconds: f64,
}

impl Rates {
    /// The increase per second. A counter that was reset counts from 0.
    fn per_s(self, old: u64, new: u64) -> f64 {
        let added = if new >= old { new - old } else { new };
        if self.seconds > 0.0 {
            added as f64 / self.seconds
        } else {
            0.0
        }
    }

    /// CPU use as a share of one core. `None` for a process that did not exist before.
    fn cpu_percent(self, old: Option<&ProcessUsage>, new: Option<&ProcessUsage>) -> Option<f64> {
        let (old, new) = (old?, new?);
        let is_same = old.pid == new.pid && self.seconds > 0.0;
        is_same.then_some(self.per_s(old.cpu_ms?, new.cpu_ms?) / 10.0)
    }
}

fn mediator(rates: Rates, old: &Look, new: &Look) -> MediatorRow {
    let (before, now) = (&old.overview, &new.overview);
    let counter = |name| {
        let (before, now) = (&before.statistics.counters, &now.statistics.counters);
        rates.per_s(value(before, name), value(now, name))
    };
    let sum = |counters: &[Counter]| counters.iter().map(|it| it.value).sum();
    let process = now.own_process();
    MediatorRow {
        version: now.statistics.version().to_owned(),
        uptime_ms: now.statistics.uptime_ms(),
        clients: now.statistics.clients(),
        received_per_s: counter("datagrams_received"),
        sent_per_s: counter("datagrams_sent"),
        drops_per_s: rates.per_s(
            sum(&before.statistics.dropped),
            sum(&now.statistics.dropped),
        ),
        cpu_percent: rates.cpu_percent(before.own_process(), process),
        memory_bytes: process.and_then(|it| it.memory_bytes),
        round_trip_ms: new.round_trip.map(in_ms),
    }
}

fn devices(rates: Rates, old: &Look, new: &Look) -> Vec<DeviceRow> {
    let row = |driver: &Driver| {
        let first = driver.devices.first()?;
        let before = (old.overview.drivers.iter()).find(|it| it.devices.first() == Some(first));
        let counted = |driver: Option<&Driver>| driver.and_then(|it| it.counters);
        let (was, is) = (
            counted(before).unwrap_or_default(),
            counted(Some(driver)).unwrap_or_default(),
        );
        let dropped = |it: &amber_proto::mediator::DriverCounters| {
            it.dropped_full()
                + it.dropped_down()
                + it.dropped_client_gone()
                + it.dropped_ended()
                + it.dropped_stopping()
        };
        let process = new.overview.process_of(driver);
        let process_before = before.and_then(|it| old.overview.process_of(it));
        let device = name(first);
        Some(DeviceRow {
            others: driver.devices.len() - 1,
            state: state_name(driver.state()),
            problem: problem(driver),
            state_ms: driver.state_ms(),
            restarts: driver.restarts(),
            in_per_s: rates.per_s(was.frames_in(), is.frames_in()),
            out_per_s: rates.per_s(was.frames_out(), is.frames_out()),
            out_bytes_per_s: rates.per_s(was.bytes_out(), is.bytes_out()),
            drops_per_s: rates.per_s(dropped(&was), dropped(&is)),
            dropped: dropped(&is),
            waiting: is.queued(),
            cpu_percent: rates.cpu_percent(process_before, process),
            memory_bytes: process.and_then(|it| it.memory_bytes),
            round_trip_ms: new.round_trips.get(&device).copied().map(in_ms),
            device,
        })
    };
    new.overview.drivers.iter().filter_map(row).collect()
}

/// The reason why a driver is not up; the problem of a driver that is up, or who drives it.
fn problem(driver: &Driver) -> Option<String> {
    match driver.state() {
        DriverState::Backoff | DriverState::Failed => driver.reason.clone(),
        DriverState::Up => {
            let trouble = driver.troubles.first().map(|trouble| trouble.text.clone());
            trouble.or_else(|| {
                let of = driver.motions.first()?;
                motion(of.holder.as_deref(), of.halted_by.as_deref())
            })
        }
        DriverState::Down | DriverState::Starting | DriverState::Stopping => None,
    }
}

fn clients(rates: Rates, old: &Look, new: &Look) -> Vec<ClientRow> {
    let before = |client: &ClientInfo| {
        let mut clients = old.clients.iter();
        clients.find(|it| it.id == client.id).cloned()
    };
    let row = |client: &ClientInfo| {
        let before = before(client).unwrap_or_default();
        ClientRow {
            id: client.id,
            address: client.address.clone(),
            devices: client.devices.iter().map(name).collect(),
            sends_per_s: rates.per_s(before.frames_received(), client.frames_received()),
            gets_per_s: rates.per_s(before.frames_sent(), client.frames_sent()),
            silent_ms: client.silent_ms(),
        }
    };
    let mut rows: Vec<_> = new.clients.iter().map(row).collect();
    let traffic = |row: &ClientRow| row.sends_per_s + row.gets_per_s;
    rows.sort_by(|a, b| traffic(b).total_cmp(&traffic(a)).then(a.id.cmp(&b.id)));
    rows
}

fn drops(rates: Rates, old: &Look, new: &Look) -> Vec<DropRow> {
    let before = &old.overview.statistics.dropped;
    let happened = (new.overview.statistics.dropped.iter()).filter(|it| it.value > 0);
    let row = |counter: &Counter| DropRow {
        reason: counter.name.clone(),
        per_s: rates.per_s(value(before, &counter.name), counter.value),
        total: counter.value,
    };
    let mut rows: Vec<_> = happened.map(row).collect();
    rows.sort_by(|a, b| b.per_s.total_cmp(&a.per_s).then(b.total.cmp(&a.total)));
    rows
}

fn value(counters: &[Counter], name: &str) -> u64 {
    let found = counters.iter().find(|it| it.name == name);
    found.map_or(0, |it| it.value)
}

fn in_ms(time: Duration) -> f64 {
    time.as_micros() as f64 / 1000.0
}

#[cfg(test)]
pub(super) mod tests {
    use amber_proto::mediator::{Device, DriverCounters, Statistics};

    use super::*;

    fn counter(name: &str, value: u64) -> Counter {
        Counter {
            name: name.into(),
            value,
        }
    }

    /// A sample, taken after this many seconds, of a mediator with two drivers and a client.
    pub(in super::super) fn look(seconds: u64) -> Look {
        let device = |r#type| Device { r#type, id: 0 };
        let driver = |of: Device, pid, each: u64| Driver {
            devices: vec![of],
            state: DriverState::Up.into(),
            state_ms: Some(seconds * 1000),
            pid: Some(pid),
            counters: Some(DriverCounters {
                frames_in: Some(each * seconds),
                frames_out: Some(10 * each * seconds),
                bytes_out: Some(1000 * each * seconds),
                dropped_full: Some(seconds),
                ..DriverCounters::default()
            }),
            ..Driver::default()
        };
        let mut scanner = driver(device(4), 11, 10);
        scanner.devices.push(Device { r#type: 4, id: 1 });
        let mut wheels = driver(device(2), 12, 20);
        wheels.state = DriverState::Backoff.into();
        wheels.reason = Some("it exited with code 1".into());
        wheels.restarts = Some(3);
        let process = |pid, device, cpu_ms: u64| ProcessUsage {
            pid,
            device,
            cpu_ms: Some(cpu_ms * seconds),
            memory_bytes: Some(3_000_000),
        };
        Look {
            at: Duration::from_secs(seconds),
            overview: Overview {
                statistics: Statistics {
                    version: Some("0.1.0".into()),
                    uptime_ms: Some(seconds * 1000),
                    clients: Some(1),
                    counters: vec![
                        counter("datagrams_received", 300 * seconds),
                        counter("datagrams_sent", 250 * seconds),
                    ],
                    dropped: vec![
                        counter("unknown_client", 4),
                        counter("unknown_device", 0),
                        counter("driver_queue_full", 2 * seconds),
                    ],
                    ..Statistics::default()
                },
                drivers: vec![scanner, wheels],
                processes: vec![
                    process(10, None, 30),
                    process(11, Some(device(4)), 200),
                    process(12 + u32::try_from(seconds).unwrap(), Some(device(2)), 5),
                ],
            },
            clients: vec![ClientInfo {
                id: 7,
                address: "127.0.0.1:5000".into(),
                frames_received: Some(100 * seconds),
                frames_sent: Some(50 * seconds),
                devices: vec![device(4)],
                ..ClientInfo::default()
            }],
            round_trip: Some(Duration::from_micros(150)),
            round_trips: [("hokuyo:0".to_owned(), Duration::from_micros(420))].into(),
        }
    }

    #[test]
    fn rates_are_those_between_two_looks() {
        let view = View::between(Some(&look(1)), &look(3));
        let of = &view.mediator;
        assert_eq!(
            (of.received_per_s, of.sent_per_s, of.drops_per_s),
            (300.0, 250.0, 2.0)
        );
        assert_eq!((of.cpu_percent, of.round_trip_ms), (Some(3.0), Some(0.15)));
        let scanner = &view.devices[0];
        assert_eq!((&*scanner.device, scanner.others), ("hokuyo:0", 1));
        assert_eq!((scanner.in_per_s, scanner.out_per_s), (10.0, 100.0));
        assert_eq!(scanner.out_bytes_per_s, 10_000.0);
        assert_eq!((scanner.drops_per_s, scanner.dropped), (1.0, 3));
        assert_eq!(scanner.cpu_percent, Some(20.0));
        assert_eq!(scanner.round_trip_ms, Some(0.42));
        let wheels = &view.devices[1];
        assert_eq!(wheels.problem.as_deref(), Some("it exited with code 1"));
        // Its process is another one now, which the list does not name.
        assert_eq!((wheels.cpu_percent, wheels.memory_bytes), (None, None));
        let client = &view.clients[0];
        assert_eq!((client.sends_per_s, client.gets_per_s), (100.0, 50.0));
        let drops: Vec<_> = (view.drops.iter())
            .map(|it| (&*it.reason, it.per_s, it.total))
            .collect();
        let expected = [("driver_queue_full", 2.0, 6), ("unknown_client", 0.0, 4)];
        assert_eq!(drops, expected);
    }

    #[test]
    fn a_first_look_has_no_rates_and_a_restart_no_negative_ones() {
        let first = View::between(None, &look(5));
        assert_eq!(first.mediator.received_per_s, 0.0);
        assert_eq!(first.mediator.cpu_percent, None);
        assert_eq!(first.devices[0].in_per_s, 0.0);
        let mut restarted = look(1);
        restarted.at = Duration::from_secs(7);
        let after = View::between(Some(&look(5)), &restarted);
        assert_eq!(after.mediator.received_per_s, 150.0);
        assert!(after.devices[0].in_per_s >= 0.0);
    }
}
