//! What the same options of several drivers mean. PURE.

use std::time::Duration;

use super::{Rules, StopFor, Wiring};
use crate::options::{OptionsError, check, millis};

impl Rules {
    /// The rules for these options, with their defaults.
    ///
    /// # Errors
    /// A value is invalid.
    pub(crate) fn of(
        max_speed_mm_s: Option<u32>,
        idle_stop_ms: Option<u64>,
        stop_for: Option<StopFor>,
        speeds_interval_ms: Option<u64>,
    ) -> Result<Self, OptionsError> {
        let interval_ms = speeds_interval_ms.unwrap_or(50);
        let interval_ms = check("speeds_interval_ms", interval_ms, 20..=1_000)?;
        Ok(Self {
            max_speed_mm_s: Some(max_speed_mm_s.unwrap_or(1_200)).filter(|max| *max > 0),
            idle_stop: millis(idle_stop_ms, 4_000),
            stop_for: stop_for.unwrap_or_default(),
            speeds_interval: Duration::from_millis(interval_ms),
        })
    }
}

impl Wiring {
    /// The wiring for these options, with their defaults.
    pub(crate) fn of(
        swap_sides: Option<bool>,
        reverse_left: Option<bool>,
        reverse_right: Option<bool>,
    ) -> Self {
        Self {
            swaps_sides: swap_sides.unwrap_or(false),
            reverses_left: reverse_left.unwrap_or(false),
            reverses_right: reverse_right.unwrap_or(false),
        }
    }
}
