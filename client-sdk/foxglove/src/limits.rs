//! Every maximum of these messages, each with its reason. PURE.

/// The largest difference between the time that a device reports and the time at which its message
/// was received. With more, its clock differs, or the recording is an old one.
pub(crate) const MAX_AGE_NS: u64 = 5_000_000_000;

/// How far in the future the time of a device may be: its clock ticks in milliseconds.
pub(crate) const MAX_EARLY_NS: u64 = 5_000_000;

/// The cells of a grid: 100 m by 100 m with cells of 50 mm. They are 8 MB.
pub(crate) const MAX_GRID_CELLS: usize = 4_000_000;

/// How often the constant parts are repeated, for viewers that start in the middle.
pub(crate) const REPEAT_NS: u64 = 1_000_000_000;
