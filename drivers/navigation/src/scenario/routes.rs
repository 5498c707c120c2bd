//! The routes of the runs, in the map frame: metres, y down. PURE.

/// The example path "basic" of the fact sheet, through the lab map.
pub const BASIC: [(f64, f64); 4] = [(2.675, 3.61), (2.675, 4.43), (0.37, 4.43), (0.37, 0.2)];
/// The example path "unavailable": its second point is in a corner that is walled off.
pub const UNAVAILABLE: [(f64, f64); 2] = [(0.37, 0.2), (2.675, 0.2)];
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
