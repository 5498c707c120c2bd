//! What waits for one page: a mailbox with the newest frame of each [`Subject`]. PURE.

pub use amber_web::backlog::{Frame, Room};

use crate::limits::{MAX_LINE_BYTES, MAX_LINES};

/// The frames that wait for one page.
pub(crate) type Mailbox = amber_web::mailbox::Mailbox<Subject>;

/// How many lines may wait for one page.
pub(crate) const ROOM: Room = Room {
    lines: MAX_LINES,
    line_bytes: MAX_LINE_BYTES,
};

/// The subject of a frame: of each subject, only the newest frame waits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// The mediator and its drivers.
    Drivers,
    /// The page that drives.
    Seat,
    /// The shape of the robot.
    Shape,
    Map,
    Pose,
    Scan,
    /// The hypotheses of the location driver.
    Particles,
    /// The path and the targets.
    Path,
    /// The state of the map that is being made.
    Mapping,
}
