//! Who moves a device, as its driver reports it, and the events about it. PURE.
//!
//! A halt survives the process of the driver: the next one gets it in its environment.

use std::time::Instant;

use amber_proto::Device;
use amber_proto::mediator::log_line::Level;
use amber_proto::mediator::{self, event::Kind};
use amber_proto::motion::MotionReport;
use amber_proto::motion::motion_report::News;
use tracing::debug;

use super::{Core, Driver, control, device_notice};
use crate::address::DriverKey;
use crate::counters::DropReason;
use crate::limits;
use crate::rate::{Rate, RateLimit};
use crate::text::beginning;

/// Who moves a device.
#[derive(Debug, Default)]
pub(super) struct Motion {
    /// The holder of its lease.
    holder: Option<String>,
    waiting: u32,
    halted_by: Option<String>,
    events: RateLimit,
}

impl Motion {
    /// The driver has ended: leases end with it, halts do not.
    pub(super) fn forget_lease(&mut self) {
        self.holder = None;
        self.waiting = 0;
    }

    fn report(&mut self, report: &MotionReport) {
        let holder = report.holder.as_ref();
        self.holder = holder.map(|holder| line(holder.name()));
        self.waiting = report.waiting();
        let halt = report.halt.as_ref();
        self.halted_by = halt.map(|halt| line(halt.by()));
    }
}

impl Core {
    /// A driver reports who moves one of its devices, or all.
    pub(super) fn driver_moves(
        &mut self,
        now: Instant,
        key: DriverKey,
        about: Option<Device>,
        report: &MotionReport,
    ) {
        let Some(driver) = self.drivers.get_mut(&key) else {
            return;
        };
        let kind = match report.news.map(News::try_from) {
            Some(Ok(News::Lease)) => Some(Kind::DeviceLease),
            Some(Ok(News::Halted)) => Some(Kind::DeviceHalted),
            Some(Ok(News::HaltReleased)) => Some(Kind::DeviceHaltReleased),
            Some(Ok(News::Refused)) => Some(Kind::DeviceMotionRefused),
            Some(Ok(News::Stopped)) => Some(Kind::DeviceMotionStopped),
            // Of a later version.
            Some(Err(_)) | None => None,
        };
        let text = line(report.text());
        let mut notices = Vec::new();
        for (device, motion) in driver.config.devices.iter().zip(&mut driver.motions) {
            if about.is_some_and(|about| about != *device) {
                continue;
            }
            motion.report(report);
            let Some(kind) = kind else { continue };
            let rate = Rate::per_second(limits::MOTION_EVENTS_PER_SECOND);
            if motion.events.pass(now, rate) {
                notices.push((kind, *device));
            } else {
                self.router.counters.drop(DropReason::MotionEvents);
            }
        }
        for (kind, device) in notices {
            debug!(%device, "{kind:?}: {text}");
            self.log_about(now, key, Level::Info, &format!("{device}: {text}"));
            self.notify(device_notice(kind, device, Some(&text)));
        }
    }

    /// The halts of a driver's devices for its next process: a line `DEVICE=BY` for each. `None` if
    /// there are none.
    pub fn halts(&self, key: DriverKey) -> Option<String> {
        let driver = self.drivers.get(&key)?;
        let devices = driver.config.devices.iter().zip(&driver.motions);
        let lines = devices.filter_map(|(device, motion)| {
            let by = motion.halted_by.as_deref()?;
            Some(format!("{}:{}={by}", device.device_type.0, device.id.0))
        });
        let lines: Vec<_> = lines.collect();
        (!lines.is_empty()).then(|| lines.join("\n"))
    }
}

/// The devices of a driver that have a lease or a halt.
pub(super) fn list(driver: &Driver) -> Vec<mediator::DeviceMotion> {
    let devices = driver.config.devices.iter().zip(&driver.motions);
    let moved = devices.filter(|(_, it)| it.holder.is_some() || it.halted_by.is_some());
    let moved = moved.map(|(device, motion)| mediator::DeviceMotion {
        device: control::wire_device(*device),
        holder: motion.holder.clone(),
        halted_by: motion.halted_by.clone(),
        waiting: Some(motion.waiting),
    });
    moved.take(limits::TROUBLES).collect()
}

/// One line of bounded length.
fn line(text: &str) -> String {
    let words: Vec<_> = text.split(|c: char| c.is_control()).collect();
    beginning(words.join(" ").trim(), limits::MOTION_TEXT).to_owned()
}
