//! A simulated network camera: requests and time in, pictures by HTTP out. PURE.
//!
//! Time is a [`Duration`] since the start of the simulation and never decreases. While
//! [`Camera::poll_shot`] returns a time, pass the view at that time to [`Camera::expose`]; then drain
//! [`Camera::poll_output`] and ask [`Camera::poll_hang_up`].
//!
//! It serves one program at a time, as an ESP32-CAM does, and draws only while somebody looks. The path
//! chooses the form of its answer: see [`Form`].
//!
//! In the upper left corner of each picture are 32 squares of 8 x 8 pixels, white for 1: 24 bits with
//! the simulated time in milliseconds, then 8 bits with the number of the picture.

mod form;
pub mod markers;
pub mod render;
#[cfg(test)]
mod tests;
mod twin;

use std::collections::VecDeque;
use std::str::FromStr;
use std::time::Duration;

use jpeg_encoder::{ColorType, Encoder, SamplingFactor};

pub use self::form::Form;
use self::render::{Optics, Picture};
pub use self::twin::{CALIBRATION_FILE, DEVICE, Options};

/// The height of the camera above the floor, and its distance ahead of the centre of the robot.
pub const HEIGHT_M: f64 = 0.25;
pub const AHEAD_M: f64 = 0.1;
/// The angle that it sees from left to right.
pub const VIEW_DEG: f64 = 70.0;

/// The world has forgotten where the robot was before.
const MEMORY: Duration = Duration::from_millis(500);
/// The longest request.
const MAX_REQUEST: usize = 8_192;
/// The quality of its JPEG files.
const QUALITY: u8 = 80;
/// With the fault [`PictureFault::Slow`].
const SLOW: Duration = Duration::from_millis(500);
/// How much darker pictures are in the dark.
const DARK: u8 = 12;

/// The size of pictures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// In pixels.
    pub width: u16,
    /// In pixels.
    pub height: u16,
}

impl Default for Size {
    fn default() -> Self {
        Self {
            width: 640,
            height: 480,
        }
    }
}

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let size = text.split_once('x').and_then(|(width, height)| {
            let (width, height) = (width.parse().ok()?, height.parse().ok()?);
            let is_valid = (64..=1_920).contains(&width) && (48..=1_080).contains(&height);
            is_valid.then_some(Self { width, height })
        });
        size.ok_or_else(|| "a size is needed from 64x48 to 1920x1080, as in 320x240".to_owned())
    }
}

/// What may be wrong with pictures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PictureFault {
    /// The same one comes again and again.
    Frozen,
    /// Somebody has switched off the light.
    Dark,
    /// The end is missing.
    Half,
    /// The Huffman tables are missing, as in AVI files.
    NoTables,
    /// Two per second come, as in dim light.
    Slow,
}

impl PictureFault {
    /// All, with their names.
    pub const ALL: [(Self, &'static str); 5] = [
        (Self::Frozen, "frozen-picture"),
        (Self::Dark, "dark-picture"),
        (Self::Half, "half-picture"),
        (Self::NoTables, "no-tables"),
        (Self::Slow, "slow-pictures"),
    ];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        let mut all = Self::ALL.iter();
        all.find(|(fault, _)| *fault == self)
            .map_or("", |(_, name)| name)
    }
}

/// A camera.
#[derive(Clone, Debug)]
pub struct Camera {
    optics: Optics,
    period: Duration,
    request: Vec<u8>,
    /// The form of the answer, while a program looks.
    watched: Option<Form>,
    next: Duration,
    sequence: u8,
    last: Option<Vec<u8>>,
    faults: Vec<PictureFault>,
    hangs_up: bool,
    outputs: VecDeque<Vec<u8>>,
}

impl Camera {
    /// Creates a camera with so many pictures per second.
    #[must_use]
    pub fn new(size: Size, rate_hz: f64) -> Self {
        Self {
            optics: Optics::new(size, VIEW_DEG),
            period: Duration::from_secs_f64(1.0 / rate_hz),
            request: Vec::new(),
            watched: None,
            next: Duration::ZERO,
            sequence: 0,
            last: None,
            faults: Vec::new(),
            hangs_up: false,
            outputs: VecDeque::new(),
        }
    }

    /// Its optics.
    #[must_use]
    pub fn optics(&self) -> Optics {
        self.optics
    }

    /// Bytes of a request.
    pub fn handle_bytes(&mut self, now: Duration, bytes: &[u8]) {
        if self.watched.is_some() || self.hangs_up {
            return;
        }
        self.request.extend_from_slice(bytes);
        let is_whole = self.request.windows(4).any(|window| window == b"\r\n\r\n");
        if !is_whole {
            self.hangs_up |= self.request.len() > MAX_REQUEST;
            return;
        }
        let request = String::from_utf8_lossy(&self.request).into_owned();
        let path = request
            .strip_prefix("GET ")
            .and_then(|rest| rest.split(' ').next());
        match path.map(Form::of) {
            Some(Some(form)) => {
                self.outputs.push_back(form.head().into_bytes());
                self.watched = Some(form);
                self.next = now;
            }
            Some(None) if path == Some("/") => self.refuse("200 OK", form::PAGE),
            Some(None) => self.refuse("404 Not Found", "no such path\n"),
            None => self.refuse("405 Method Not Allowed", "only GET\n"),
        }
    }

    /// The program has disconnected.
    pub fn handle_hang_up(&mut self) {
        self.request.clear();
        self.outputs.clear();
        self.watched = None;
        self.hangs_up = false;
    }

    /// The time of a picture that is due.
    pub fn poll_shot(&mut self, now: Duration) -> Option<Duration> {
        self.watched?;
        if self.next + MEMORY < now {
            self.next = now;
        }
        let due = self.next;
        (due <= now).then(|| {
            let slow = if self.has(PictureFault::Slow) {
                SLOW
            } else {
                self.period
            };
            self.next += slow.max(self.period);
            due
        })
    }

    /// When the next picture is due.
    #[must_use]
    pub fn next_shot(&self) -> Option<Duration> {
        self.watched.map(|_| self.next)
    }

    /// The code of the next picture: the time in milliseconds, and its number.
    #[must_use]
    pub fn code(&self, time: Duration) -> u32 {
        let ms = (time.as_millis() as u32) & 0xFF_FFFF;
        (ms << 8) | u32::from(self.sequence)
    }

    /// Takes a picture of the view at a time, and sends it.
    pub fn expose(&mut self, time: Duration, mut view: Picture) {
        let Some(form) = self.watched else { return };
        self.sequence = self.sequence.wrapping_add(1);
        if self.has(PictureFault::Dark) {
            for pixel in view.pixels.chunks_exact_mut(3) {
                pixel[0] /= DARK;
            }
        }
        let kept = self.last.take().filter(|_| self.has(PictureFault::Frozen));
        let file = kept.unwrap_or_else(|| encoded(&view));
        let mut sent = file.clone();
        self.last = Some(file);
        if self.has(PictureFault::NoTables) {
            sent = without_tables(&sent);
        }
        if self.has(PictureFault::Half) {
            sent.truncate(sent.len() / 2);
        }
        self.outputs.push_back(form.part(&sent, time));
        if form == Form::Snapshot {
            self.hangs_up = true;
            self.watched = None;
        }
    }

    /// The next bytes for the program.
    pub fn poll_output(&mut self) -> Option<Vec<u8>> {
        self.outputs.pop_front()
    }

    /// Whether it has closed the connection since the last call.
    pub fn poll_hang_up(&mut self) -> bool {
        std::mem::take(&mut self.hangs_up)
    }

    /// Starts or ends a fault.
    pub fn set_fault(&mut self, fault: PictureFault, is_on: bool) {
        self.faults.retain(|other| *other != fault);
        if is_on {
            self.faults.push(fault);
        }
    }

    fn has(&self, fault: PictureFault) -> bool {
        self.faults.contains(&fault)
    }

    fn refuse(&mut self, status: &str, text: &str) {
        let kind = if text.starts_with('<') {
            "text/html"
        } else {
            "text/plain"
        };
        let answer = format!(
            "HTTP/1.0 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n{text}",
            text.len()
        );
        self.outputs.push_back(answer.into_bytes());
        self.hangs_up = true;
    }
}

fn encoded(picture: &Picture) -> Vec<u8> {
    let Size { width, height } = picture.size;
    let mut file = Vec::new();
    let mut encoder = Encoder::new(&mut file, QUALITY);
    encoder.set_sampling_factor(SamplingFactor::R_4_2_0);
    // Writing to a vector does not fail, and the pixels are as many as they should be.
    let _ = encoder.encode(&picture.pixels, width, height, ColorType::Ycbcr);
    file
}

/// A file without the segments with its Huffman tables.
fn without_tables(file: &[u8]) -> Vec<u8> {
    let (mut kept, mut at) = (Vec::new(), 2);
    kept.extend_from_slice(&file[..at.min(file.len())]);
    while let Some([0xFF, marker, high, low]) = file.get(at..at + 4) {
        let end = at + 2 + usize::from(u16::from_be_bytes([*high, *low]));
        // The start of the scan.
        if *marker == 0xDA {
            break;
        }
        if *marker != 0xC4 {
            kept.extend_from_slice(&file[at..end.min(file.len())]);
        }
        at = end;
    }
    kept.extend_from_slice(&file[at.min(file.len())..]);
    kept
}
