//! Every maximum of the RflySim gateway, each with its reason. PURE.

use std::ops::RangeInclusive;
use std::time::Duration;

/// After a disarm command, commands unlock the vehicle again only after a pause of this length: a
/// program that sends 30 commands a second must not undo the disarm command of a person.
pub const PAUSE: Duration = Duration::from_secs(1);

/// How often the state of Amber's robot may be sent, in Hz. Its sensors are read 10 to 20 times a
/// second.
pub const RATES_HZ: RangeInclusive<f64> = 1.0..=50.0;

/// A command with a higher speed is dropped, in m/s. Programs for drones may command more, but not
/// with a robot on wheels in mind.
pub const MAX_SPEED_M_S: f64 = 5.0;

/// A command with a higher turn rate is dropped, in rad/s.
pub const MAX_TURN_RAD_S: f64 = 10.0;

/// A command with a target farther away is dropped, in metres.
pub const MAX_DISTANCE_M: f64 = 1_000.0;

/// A measurement that is older is not used.
pub const MAX_AGE: Duration = Duration::from_secs(1);

/// The time between two commands to the simulator in the mode `UDP_Simple`, as in RflySim's own
/// programs (30 Hz).
pub const SIMPLE_PERIOD: Duration = Duration::from_millis(33);

/// The same in the mode `UDP_Full` (100 Hz).
pub const FULL_PERIOD: Duration = Duration::from_millis(10);

/// The time between two reports about the targets of a foreign vehicle, as those of DriveToPoint.
pub const PROGRESS_PERIOD: Duration = Duration::from_millis(200);

/// The heights at which a foreign vehicle may fly to its targets, in metres.
pub const HEIGHTS_M: RangeInclusive<f64> = -100.0..=1_000.0;

/// A target that moves by less is the same, in metres: programs repeat it up to 100 times a second.
pub const SAME_TARGET_M: f64 = 0.01;

/// The radius of targets, in metres.
pub const TARGET_RADIUS_M: f64 = 0.3;

/// Datagrams per second about one vehicle: its true state, its estimate and messages of the autopilot,
/// 100 times per second each, and a half more. A program may send those of all vehicles from one port.
pub const VEHICLE_RATE: u32 = 450;

/// The highest number of vehicles of one gateway, each with up to three sockets. The status of all fits into a frame.
pub const MAX_VEHICLES: usize = 32;
