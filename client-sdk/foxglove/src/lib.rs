//! The view of a robot in Foxglove and Lichtblick.
//!
//! These programs draw messages that they know by name, such as `foxglove.LaserScan`. A
//! [`Converter`] makes them from the messages of the devices, for recordings and for live viewers:
//!
//! | device | message | topic |
//! |---|---|---|
//! | `hokuyo` | `foxglove.LaserScan` | `/foxglove/hokuyo/0/scan` |
//! | `camera` | `foxglove.CompressedImage` | `/foxglove/camera/0/picture` |
//! | | `foxglove.CameraCalibration` | `/foxglove/camera/0/calibration` |
//! | `location` | `foxglove.PoseInFrame` | `/foxglove/location/0/pose` |
//! | | `foxglove.PosesInFrame` | `/foxglove/location/0/particles` |
//! | | `foxglove.SceneUpdate` | `/foxglove/location/0/walls` |
//! | | `foxglove.Grid` | `/foxglove/location/0/grid` |
//! | `gps` | `foxglove.LocationFix` | `/foxglove/gps/0/fix` |
//! | `bumper` | `foxglove.SceneUpdate` | `/foxglove/bumper/0/contacts` |
//! | `drive-to-point` | `foxglove.SceneUpdate` | `/foxglove/drive-to-point/0/path` and `targets` |
//! | all of these | `foxglove.FrameTransforms` | `/foxglove/tf` |
//! | | `foxglove.SceneUpdate` | `/foxglove/robot` |
//! | the mediator | `foxglove.Log` | `/foxglove/log` |
//!
//! **Frames** are those of REP 103 and REP 105: `map`, in it `base_link` (the robot), in it `laser`
//! (that of `hokuyo:0`; `laser_1` is that of `hokuyo:1`). They have x to the front or to the right,
//! y to the left or **up**, and angles counter-clockwise. So y and all angles of Amber change their
//! sign; see the frames of [`amber_map`]. Pictures are in `camera_optical_frame` (that of `camera:0`): x to
//! the right in the picture, y down, z into the scene.
//!
//! **Pictures** are in a recording only once, as `foxglove.CompressedImage`; see
//! [`Carrier`](amber_record::Carrier).
//!
//! **Times** in these messages are the times of the measurements, if the device reports them and
//! its clock agrees with that of the mediator. So a scan is drawn at the pose of that time.
//! Otherwise they are the times at which the messages were received.
//!
//! The first lines of each module contain PURE or IO. PURE code only computes; IO code talks to the
//! outside.

mod camera;
mod converter;
mod events;
mod frames;
mod limits;
#[cfg(feature = "live")]
pub mod live;
mod scan;
mod schema;
mod shapes;

pub use converter::{Converter, Published};
pub use schema::Schema;

/// The messages, by the public schemas.
#[allow(unreachable_pub)]
pub mod messages {
    include!(concat!(env!("OUT_DIR"), "/foxglove.rs"));
}
