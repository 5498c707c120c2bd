//! The main battery, as the controllers measured it last. PURE.

use std::borrow::Cow;
use std::time::{Duration, Instant};

use super::WheelLogic;
use crate::wheels::BatteryReading;

/// How late a measurement may be before the last one is too old.
const SLACK: Duration = Duration::from_secs(2);

/// The last measurement.
#[derive(Debug, Default)]
pub(super) struct MainBattery {
    measured: Option<(Instant, u32)>,
}

impl MainBattery {
    /// The controllers measured this voltage, in tenths of a volt.
    pub(super) fn read(&mut self, now: Instant, tenths: i32) {
        let mv = u32::try_from(tenths)
            .ok()
            .and_then(|it| it.checked_mul(100));
        self.measured = mv.map(|mv| (now, mv));
    }

    pub(super) fn reading(&self, now: Instant, is_low: bool) -> Option<BatteryReading> {
        let (then, mv) = self.measured?;
        let age = now.saturating_duration_since(then);
        Some(BatteryReading { mv, is_low, age })
    }
}

impl WheelLogic {
    pub(super) fn newest_battery(&self, now: Instant) -> Result<BatteryReading, Cow<'_, str>> {
        let Some(interval) = self.settings.battery_interval else {
            return Err("the battery is not measured: battery_interval_ms is 0".into());
        };
        if let Some(trouble) = self.service.trouble() {
            return Err(trouble.into());
        }
        let newest = self.monitors.main_battery(now);
        newest
            .filter(|reading| reading.age <= interval * 2 + SLACK)
            .ok_or_else(|| "the controllers have not reported the battery".into())
    }
}
