//! What a video device of Linux can do, for the driver and its tests. PURE.

use std::fmt;
use std::io;
use std::time::Duration;

use amber_proto::camera::Control;

/// The name of a format: four letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FourCc(pub(super) [u8; 4]);

/// JPEG files. Cameras use both names.
pub(super) const MJPG: FourCc = FourCc(*b"MJPG");
pub(super) const JPEG: FourCc = FourCc(*b"JPEG");
/// Pixels, of which two share their colours.
pub(super) const YUYV: FourCc = FourCc(*b"YUYV");

impl fmt::Display for FourCc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(String::from_utf8_lossy(&self.0).trim_end())
    }
}

/// What a node is for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Capability {
    /// The name of the camera.
    pub(super) name: String,
    pub(super) takes_pictures: bool,
    pub(super) streams: bool,
    /// It has data about pictures.
    pub(super) has_metadata: bool,
    /// Its pictures consist of several parts, as those of cameras on a board.
    pub(super) is_multi_planar: bool,
}

/// A picture, or what should be one.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Shot {
    pub(super) bytes: Vec<u8>,
    /// The system says that it is damaged.
    pub(super) is_bad: bool,
    /// How long ago it was taken, if the system says so.
    pub(super) age: Option<Duration>,
}

/// An open video device. The methods are in the order in which they are called.
pub(super) trait Video {
    fn capability(&mut self) -> io::Result<Capability>;

    fn formats(&mut self) -> io::Result<Vec<FourCc>>;

    fn sizes(&mut self, format: FourCc) -> io::Result<Vec<(u32, u32)>>;

    /// In seconds.
    fn intervals(&mut self, format: FourCc, size: (u32, u32)) -> io::Result<Vec<f64>>;

    /// Returns what the camera takes instead, which is the nearest that it has.
    fn set_format(&mut self, format: FourCc, size: (u32, u32)) -> io::Result<(FourCc, (u32, u32))>;

    /// In seconds. Returns what the camera takes instead, if it says so.
    fn set_interval(&mut self, seconds: f64) -> io::Result<Option<f64>>;

    fn controls(&mut self) -> io::Result<Vec<Control>>;

    fn set_control(&mut self, id: u32, value: i64) -> io::Result<()>;

    fn start(&mut self) -> io::Result<()>;

    /// The next picture; `None` if there is none within this time.
    fn next(&mut self, patience: Duration) -> io::Result<Option<Shot>>;

    fn stop(&mut self);
}
