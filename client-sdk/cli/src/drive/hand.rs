//! What a person drives with, whatever it is. PURE.

use std::time::Instant;

use amber_client::WheelSpeeds;

pub(crate) const SLOWEST_MM_S: i32 = 50;
/// Drivers refuse more than 1200 mm/s by default.
pub(crate) const FASTEST_MM_S: i32 = 1200;

/// Whether to continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    GoOn,
    Quit,
}

/// What a person drives with.
pub(super) trait Hand {
    /// What it reports.
    type Input;

    /// For people.
    const NAME: &'static str;

    /// Something was reported.
    fn press(&mut self, now: Instant, input: Self::Input) -> Wish;

    /// The wanted wheel speeds now.
    fn speeds(&self, now: Instant) -> WheelSpeeds;

    /// When the wanted speeds change if nothing is reported.
    fn next_timeout(&self, now: Instant) -> Option<Instant>;

    /// The speed ahead.
    fn speed_mm_s(&self) -> i32;
}
