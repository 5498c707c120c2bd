//! Checks that the reported counters of a mediator add up. PURE.

use amber_core::counters::{Count, Counters, DropReason, Stage};
use amber_proto::Device;
use amber_proto::mediator::{Driver, DriverCounters, Statistics};

/// The counters in a reply of the mediator.
///
/// # Errors
/// A counter is missing or unknown.
pub fn counters(statistics: &Statistics) -> Result<Counters, String> {
    let mut counters = Counters::default();
    let mut taken = 0;
    for count in Count::ALL {
        let told = statistics.counters.iter().find(|c| c.name == count.name());
        let told = told.ok_or_else(|| format!("missing counter {}", count.name()))?;
        counters.count_many(*count, told.value);
        taken += 1;
    }
    for drop in DropReason::ALL {
        let told = statistics.dropped.iter().find(|c| c.name == drop.name());
        let told = told.ok_or_else(|| format!("missing counter {}", drop.name()))?;
        counters.drop_many(*drop, told.value);
        taken += 1;
    }
    match taken == statistics.counters.len() + statistics.dropped.len() {
        true => Ok(counters),
        false => Err("the reply has unknown counters".into()),
    }
}

/// The number of dropped messages, for all causes.
pub fn dropped(counters: &Counters) -> u64 {
    let stages = [Stage::Input, Stage::Copy, Stage::Queue, Stage::Socket];
    stages.map(|stage| counters.dropped_at(stage)).iter().sum()
}

/// The number of frames that did not reach a driver, for all causes.
pub fn dropped_for(counters: &DriverCounters) -> u64 {
    counters.dropped_full()
        + counters.dropped_down()
        + counters.dropped_client_gone()
        + counters.dropped_ended()
}

/// The number of requests for a driver without a reply for a reason that its own counters state:
/// the mediator dropped them, the driver had them when it ended, or the mediator dropped the reply
/// because the driver was being stopped. The driver writes one frame for each frame that it reads.
pub fn unanswered(counters: &DriverCounters) -> u64 {
    let answers = counters.frames_out() - counters.dropped_stopping();
    dropped_for(counters) + counters.frames_written().saturating_sub(answers)
}

/// Violations by drivers that must not be affected: they were restarted, or frames for them were
/// dropped.
pub fn unharmed(drivers: &[Driver], devices: &[Device]) -> Vec<String> {
    let harm = |device: &Device| {
        let Some(driver) = find(drivers, *device) else {
            return Some(format!("{device} is missing"));
        };
        let dropped = driver.counters.as_ref().map_or(0, dropped_for);
        let restarts = driver.restarts();
        (dropped > 0 || restarts > 0)
            .then(|| format!("{device}: {dropped} frames dropped, {restarts} restarts"))
    };
    devices.iter().filter_map(harm).collect()
}

/// The driver that serves a device.
pub fn find(drivers: &[Driver], device: Device) -> Option<&Driver> {
    drivers.iter().find(|driver| {
        (driver.devices.iter()).any(|d| (d.r#type, d.id) == (device.device_type.0, device.id.0))
    })
}

/// Checks that everything is accounted for: frames in = out + dropped by cause + waiting, in total
/// and for each driver.
///
/// # Errors
/// Describes the discrepancy.
pub fn check(statistics: &Statistics, drivers: &[Driver]) -> Result<(), String> {
    let counters = counters(statistics)?;
    let waiting = drivers.iter().filter_map(|driver| driver.counters.as_ref());
    counters.check(waiting.map(|counters| counters.queued()).sum())?;
    counters.check_sent()?;
    for driver in drivers {
        let Some(told) = &driver.counters else {
            return Err("a driver has no counters".into());
        };
        let went = told.frames_written()
            + told.queued()
            + told.dropped_full()
            + told.dropped_client_gone()
            + told.dropped_ended();
        if told.frames_in() != went {
            let device = driver.devices.first();
            return Err(format!("{device:?}: {} in, {went} out", told.frames_in()));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use amber_proto::mediator::{self, Counter};

    use super::*;

    fn reported(change: impl Fn(&mut Counters)) -> Statistics {
        let mut counters = Counters::default();
        change(&mut counters);
        let counter = |name: &str, value| Counter {
            name: name.into(),
            value,
        };
        Statistics {
            counters: (Count::ALL.iter())
                .map(|c| counter(c.name(), counters.counted(*c)))
                .collect(),
            dropped: (DropReason::ALL.iter())
                .map(|d| counter(d.name(), counters.dropped(*d)))
                .collect(),
            ..Statistics::default()
        }
    }

    fn driver(counters: DriverCounters) -> Driver {
        Driver {
            counters: Some(counters),
            ..Driver::default()
        }
    }

    #[test]
    fn missing_frames_are_found() {
        let in_and_out = |counters: &mut Counters| {
            counters.count_many(Count::Datagrams, 3);
            counters.count_many(Count::Requests, 2);
            counters.drop(DropReason::UnknownDevice);
            counters.count_many(Count::DriverFramesQueued, 2);
            counters.count(Count::DriverFramesWritten);
        };
        let waits = DriverCounters {
            frames_in: Some(2),
            frames_written: Some(1),
            queued: Some(1),
            ..DriverCounters::default()
        };
        let statistics = reported(in_and_out);
        assert_eq!(check(&statistics, &[driver(waits)]), Ok(()));
        assert!(check(&statistics, &[]).is_err(), "one frame is missing");
        let lost = DriverCounters {
            frames_in: Some(3),
            ..waits
        };
        assert!(check(&statistics, &[driver(lost)]).is_err());

        let mut statistics = reported(in_and_out);
        statistics.dropped.pop();
        assert!(check(&statistics, &[driver(waits)]).is_err());
    }

    #[test]
    fn a_reply_during_the_stop_of_its_driver_is_accounted_for() {
        let counters = DriverCounters {
            frames_in: Some(10),
            dropped_full: Some(1),
            frames_written: Some(9),
            frames_out: Some(7),
            dropped_stopping: Some(3),
            ..DriverCounters::default()
        };
        assert_eq!(unanswered(&counters), 1 + 2 + 3);
    }

    #[test]
    fn affected_drivers_are_found() {
        let device = Device::new(amber_proto::DeviceType(80), 1);
        let serves = mediator::Device { r#type: 80, id: 1 };
        let mut driver = driver(DriverCounters::default());
        assert_eq!(unharmed(&[driver.clone()], &[device]).len(), 1, "missing");
        driver.devices.push(serves);
        assert!(unharmed(&[driver.clone()], &[device]).is_empty());
        let mut restarted = driver.clone();
        restarted.restarts = Some(1);
        assert_eq!(unharmed(&[restarted], &[device]).len(), 1);
        driver.counters = Some(DriverCounters {
            dropped_down: Some(1),
            ..DriverCounters::default()
        });
        assert_eq!(unharmed(&[driver], &[device]).len(), 1);
    }
}
