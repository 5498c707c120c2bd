//! The routes of the runs, in the map frame: metres, y down. PURE.

/// The example path "basic" of the fact sheet, through the lab map.
pub const BASIC: [(f64, f64); 4] = [(2.675, 3.61), (2.675, 4.43), (0.37, 4.43), (0.37, 0.2)];
/// The example path "unavailable": its second point is in a corner that is walled off.
pub const UNAVAILABLE: [(f64, f64); 2] = [(0.37, 0.2), (2.675, 0.2)];
/// More paths through the lab map. The fact sheet names them and their lengths, but not their points,
/// so these are points of our own, with about the same lengths.
pub const SIMPLE: [(f64, f64); 2] = [(0.37, 4.43), (0.46, 1.94)];
/// See [`SIMPLE`].
pub const SECOND: [(f64, f64); 2] = [(2.675, 3.9), (0.46, 2.88)];
/// See [`SIMPLE`].
pub const THIRD: [(f64, f64); 3] = [(0.37, 0.3), (0.46, 1.94), (2.0, 1.94)];
/// See [`SIMPLE`]. The third point is right behind the wall from the second one.
pub const LOCAL_MINIMUM: [(f64, f64); 4] = [(2.675, 3.61), (2.0, 3.7), (2.0, 2.9), (2.0, 1.6)];
/// See [`SIMPLE`].
pub const LONGER: [(f64, f64); 5] = [
    (2.675, 4.43),
    (0.37, 4.43),
    (0.46, 1.94),
    (0.37, 0.3),
    (2.0, 0.7),
];
/// See [`SIMPLE`]: there and back again.
pub const LONGEST: [(f64, f64); 9] = [
    (2.675, 4.43),
    (0.37, 4.43),
    (0.46, 1.94),
    (0.37, 0.3),
    (2.0, 0.7),
    (0.37, 0.3),
    (0.46, 1.94),
    (0.37, 4.43),
    (2.675, 4.43),
];
/// Through all rooms of the flat and back to the hall.
pub const FLAT: [(f64, f64); 7] = [
    (1.4, 1.0),
    (3.35, 1.0),
    (5.5, 1.0),
    (5.7, 4.4),
    (2.1, 4.3),
    (0.7, 2.6),
    (3.5, 2.6),
];
/// The corners of the small and the large rectangle of the Java client's example.
pub const SMALL: [(f64, f64); 5] = [
    (0.658, 3.621),
    (0.729, 1.622),
    (1.618, 1.63),
    (1.613, 3.646),
    (0.658, 3.621),
];
/// See [`SMALL`].
pub const LARGE: [(f64, f64); 5] = [
    (0.339, 4.417),
    (0.339, 1.19),
    (1.58, 1.19),
    (1.58, 4.417),
    (0.339, 4.417),
];
