//! A USB camera, by V4L2 of Linux. IO.
//!
//! A thread of its own talks to the camera, because calls of the system wait for seconds when a camera
//! hangs. What happens in which case is decided here, over the trait `Video`; `linux` has the calls.
//!
//! JPEG files of the camera are passed through; pixels are encoded.

#[cfg(test)]
mod fake;
mod linux;
#[cfg(test)]
mod tests;
mod video;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, TryRecvError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

use amber_proto::camera::{Control, Mode};
use nix::errno::Errno;

use self::linux::LinuxVideo;
use self::video::{Capability, FourCc, JPEG, MJPG, Video, YUYV};
use super::{Event, Events, Running, Source, seconds};
use crate::camera::jpeg::Jpeg;
use crate::camera::logic::Facts;
use crate::camera::pixels::encode_yuyv;
use crate::probe::{Identity, NoAnswer};

/// How long the thread waits for a picture before it looks for orders.
const TURN: Duration = Duration::from_millis(100);
/// So many pictures in succession that are none: then it is not by chance.
const MAX_BAD: u32 = 30;
/// A picture is not older than this; a time that says so is wrong.
const MAX_AGE: Duration = Duration::from_secs(2);
/// The most sizes that are told of a camera, and the most controls.
const MAX_FACTS: usize = 64;
/// Cameras have up to so many nodes, and robots several cameras.
const MAX_NODES: usize = 64;

/// How to take pictures.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wanted {
    /// The size in pixels; the camera takes the nearest that it has.
    pub size: (u32, u32),
    /// Pictures per second.
    pub rate: f64,
    /// The quality of JPEG, for cameras that send pixels.
    pub quality: u8,
    /// The longest time without a picture.
    pub timeout: Duration,
}

/// A USB camera.
#[derive(Debug)]
pub struct UsbCamera {
    /// `None`: the first one.
    path: Option<PathBuf>,
    wanted: Wanted,
    /// The thread of the last run: it may still close the camera.
    thread: Option<JoinHandle<()>>,
}

impl UsbCamera {
    /// The camera at this path, or the first that takes pictures.
    #[must_use]
    pub fn new(path: Option<PathBuf>, wanted: Wanted) -> Self {
        Self {
            path,
            wanted,
            thread: None,
        }
    }
}

impl Source for UsbCamera {
    fn start(&mut self, events: Events) -> Running {
        let (orders, received) = std::sync::mpsc::channel();
        let (path, wanted, before) = (self.path.clone(), self.wanted, self.thread.take());
        let run = move || {
            if let Some(before) = before {
                let _ = before.join();
            }
            let why = match open(path.as_deref()) {
                Ok((path, mut video)) => Run {
                    video: &mut video,
                    path: &path.display().to_string(),
                    wanted,
                    events: &events,
                }
                .until_failure(&received),
                Err(why) => Some(why),
            };
            if let Some(why) = why {
                events.tell_blocking(Event::Failed(why));
            }
        };
        let started = std::thread::Builder::new().name("camera".into()).spawn(run);
        // Without a thread, nothing comes, and the driver tries again.
        self.thread = started.ok();
        Running::thread(orders)
    }

    fn place(&self) -> String {
        match &self.path {
            Some(path) => path.display().to_string(),
            None => "the first USB camera".into(),
        }
    }
}

/// Opens a camera.
fn open(path: Option<&Path>) -> Result<(PathBuf, LinuxVideo), String> {
    let Some(path) = path else {
        return first_camera(Path::new("/dev"));
    };
    let shown = path.display().to_string();
    let mut video = LinuxVideo::open(path).map_err(|error| in_words(&error, &shown))?;
    let capability = video
        .capability()
        .map_err(|error| not_video(&error, &shown))?;
    check(&capability, &shown)?;
    Ok((path.to_owned(), video))
}

/// What the camera at this path is, and the largest pictures that it offers.
///
/// # Errors
/// It cannot be opened, or does not answer.
pub fn identity(path: &Path) -> Result<Identity, NoAnswer> {
    let shown = path.display().to_string();
    let mut video = LinuxVideo::open(path).map_err(|error| NoAnswer::of(&error, &shown))?;
    identity_of(&mut video, &shown)
}

fn identity_of(video: &mut impl Video, path: &str) -> Result<Identity, NoAnswer> {
    let failed = |error: io::Error| NoAnswer::Failed(in_words(&error, path));
    let capability = video.capability().map_err(failed)?;
    let formats = video.formats().unwrap_or_default();
    let format = check(&capability, path).and_then(|()| best_format(&formats, path));
    Ok(match format {
        Err(why) => Identity {
            text: capability.name,
            options: Vec::new(),
            unusable: Some(why),
        },
        Ok(format) => {
            let sizes = video.sizes(format).unwrap_or_default();
            let largest = sizes
                .into_iter()
                .max_by_key(|(width, height)| width * height);
            Identity::usable(match largest {
                Some((width, height)) => {
                    format!("{}, {format} up to {width} x {height}", capability.name)
                }
                None => format!("{}, {format}", capability.name),
            })
        }
    })
}

/// The format that the driver reads, of those that a camera has.
fn best_format(formats: &[FourCc], path: &str) -> Result<FourCc, String> {
    let mut known = [MJPG, JPEG, YUYV].into_iter();
    known.find(|it| formats.contains(it)).ok_or_else(|| {
        let names: Vec<_> = formats.iter().map(FourCc::to_string).collect();
        format!(
            "{path} sends {}, but this driver reads MJPG and YUYV only: use ffmpeg with --command",
            names.join(", ")
        )
    })
}

/// The first camera in the order of numbers.
fn first_camera(folder: &Path) -> Result<(PathBuf, LinuxVideo), String> {
    let mut trouble =
        "no camera is plugged in: there is no /dev/video* that takes pictures".to_owned();
    for number in 0..MAX_NODES {
        let path = folder.join(format!("video{number}"));
        if !path.exists() {
            continue;
        }
        match open(Some(&path)) {
            Ok(found) => return Ok(found),
            // Why the last one is none may be the reason.
            Err(why) => trouble = why,
        }
    }
    Err(trouble)
}

/// Whether a node takes pictures that can be used.
fn check(capability: &Capability, path: &str) -> Result<(), String> {
    if capability.takes_pictures && capability.streams {
        return Ok(());
    }
    Err(match capability {
        Capability {
            has_metadata: true, ..
        } => format!("{path} has only the data of pictures: the node before it has the pictures"),
        Capability {
            is_multi_planar: true,
            ..
        } => format!(
            "{path} is a camera of a Raspberry Pi, or of another board: use --pi or --command"
        ),
        _ => format!(
            "{path} takes no pictures: {:?} is something else",
            capability.name
        ),
    })
}

/// One run of an open camera.
struct Run<'a, V> {
    video: &'a mut V,
    path: &'a str,
    wanted: Wanted,
    events: &'a Events,
}

/// What the camera sends.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Picked {
    format: FourCc,
    size: (u32, u32),
    /// Seconds between pictures, if the camera says it.
    interval_s: Option<f64>,
}

impl<V: Video> Run<'_, V> {
    /// Takes pictures until there is a reason not to, or the orders end.
    fn until_failure(&mut self, orders: &Receiver<(u32, i64)>) -> Option<String> {
        let picked = match self.begin() {
            Ok(picked) => picked,
            Err(why) => return Some(why),
        };
        let why = self.take_pictures(picked, orders);
        self.video.stop();
        why
    }

    /// Chooses format, size and rate, and switches the camera on.
    fn begin(&mut self) -> Result<Picked, String> {
        let path = self.path;
        let formats = (self.video.formats()).map_err(|error| in_words(&error, path))?;
        let format = best_format(&formats, path)?;
        let set = self.video.set_format(format, self.wanted.size);
        let (got, size) = set.map_err(|error| in_words(&error, path))?;
        if got != format {
            return Err(format!("{path} sends {got} instead of {format}"));
        }
        let set = self.video.set_interval(1.0 / self.wanted.rate);
        // Some cameras have one rate only, and say so by an error.
        let interval_s = set.ok().flatten();
        let facts = Facts {
            modes: self.modes(&formats),
            controls: self.controls(),
        };
        self.video.start().map_err(|error| in_words(&error, path))?;
        if !self.events.tell_blocking(Event::Opened(facts)) {
            return Err(String::new());
        }
        tracing::debug!(path, %format, ?size, ?interval_s, "camera on");
        Ok(Picked {
            format,
            size,
            interval_s,
        })
    }

    fn take_pictures(&mut self, picked: Picked, orders: &Receiver<(u32, i64)>) -> Option<String> {
        let (mut heard, mut bad, mut pictures) = (Instant::now(), 0, 0_u64);
        loop {
            match orders.try_recv() {
                Ok((id, value)) => {
                    let done = self.set_control(id, value);
                    self.events.tell_blocking(Event::ControlSet(done));
                }
                Err(TryRecvError::Empty) => {}
                Err(TryRecvError::Disconnected) => return None,
            }
            if self.events.is_closed() {
                return None;
            }
            let path = self.path;
            let shot = match self.video.next(TURN) {
                Ok(Some(shot)) => shot,
                Ok(None) if heard.elapsed() >= self.wanted.timeout => {
                    let time = seconds(self.wanted.timeout);
                    return Some(match pictures {
                        0 => format!(
                            "{path} has sent no picture within {time}: unplug it for a moment"
                        ),
                        _ => format!("{path} has sent no picture for {time}: check its cable"),
                    });
                }
                Ok(None) => continue,
                Err(error) => return Some(in_words(&error, path)),
            };
            heard = Instant::now();
            let (now, late) = (SystemTime::now(), shot.age);
            let jpeg = match shot.is_bad {
                true => Err("the system says that it is damaged".to_owned()),
                false => self.read(picked, &shot.bytes),
            };
            match jpeg {
                Ok(jpeg) => {
                    (bad, pictures) = (0, pictures + 1);
                    let captured = now - age(late, picked.interval_s);
                    self.events.frame(jpeg, captured);
                }
                // The first ones are often damaged.
                Err(why) => {
                    bad += 1;
                    tracing::debug!(path, why, "a picture was dropped");
                    if bad >= MAX_BAD {
                        return Some(format!("{path} sends damaged pictures only: {why}"));
                    }
                }
            }
        }
    }

    fn read(&self, picked: Picked, bytes: &[u8]) -> Result<Jpeg, String> {
        let read = |file: &[u8]| Jpeg::read(file).map_err(|why| why.to_string());
        match picked.format {
            YUYV => read(&encode_yuyv(bytes, picked.size, self.wanted.quality)?),
            _ => read(bytes),
        }
    }

    /// Sets a control; returns it and all others.
    fn set_control(&mut self, id: u32, value: i64) -> Result<(Control, Vec<Control>), String> {
        let set = self.video.set_control(id, value);
        set.map_err(|error| match errno(&error) {
            Some(Errno::ERANGE | Errno::EINVAL) => format!("the camera does not take {value}"),
            Some(Errno::EBUSY | Errno::EACCES) => {
                "an automatic mode of the camera sets it".to_owned()
            }
            _ => format!("the camera does not take it: {error}"),
        })?;
        let all = self.controls();
        let changed = all.iter().find(|control| control.id() == id).cloned();
        Ok((changed.unwrap_or_default(), all))
    }

    fn controls(&mut self) -> Vec<Control> {
        // A camera without controls says so by an error.
        let mut controls = self.video.controls().unwrap_or_default();
        controls.truncate(MAX_FACTS);
        controls
    }

    fn modes(&mut self, formats: &[FourCc]) -> Vec<Mode> {
        let mut modes = Vec::new();
        for format in formats.iter().filter(|it| [MJPG, JPEG, YUYV].contains(it)) {
            for size in self.video.sizes(*format).unwrap_or_default() {
                let intervals = self.video.intervals(*format, size).unwrap_or_default();
                let shortest = intervals.into_iter().min_by(f64::total_cmp);
                modes.push(Mode {
                    format: Some(format.to_string()),
                    width: Some(size.0),
                    height: Some(size.1),
                    max_rate: shortest.filter(|it| *it > 0.0).map(|it| 1.0 / it),
                });
            }
        }
        modes.truncate(MAX_FACTS);
        modes
    }
}

/// How long ago a picture was taken, from what the system says. Some cameras say nonsense: then it was
/// one period ago.
fn age(said: Option<Duration>, interval_s: Option<f64>) -> Duration {
    let period = interval_s.and_then(|it| Duration::try_from_secs_f64(it).ok());
    let usual = period.unwrap_or_default().min(MAX_AGE);
    said.filter(|age| *age <= MAX_AGE).unwrap_or(usual)
}

fn not_video(error: &io::Error, path: &str) -> String {
    match errno(error) {
        Some(Errno::ENOTTY | Errno::EINVAL) => format!("{path} is not a camera"),
        _ => in_words(error, path),
    }
}

/// What to check.
fn in_words(error: &io::Error, path: &str) -> String {
    match errno(error) {
        Some(Errno::ENOENT | Errno::ENODEV | Errno::ENXIO) => {
            format!("{path} does not exist: plug the camera in")
        }
        Some(Errno::EACCES | Errno::EPERM) => {
            format!("no permission to open {path}: this user must be in the group video")
        }
        Some(Errno::EBUSY) => format!("another program uses {path}: close it"),
        Some(Errno::ENOSPC) => format!(
            "the USB bus has no room for the pictures of {path}: choose a smaller size or a lower rate, or \
             another USB port"
        ),
        Some(Errno::EIO | Errno::EPIPE | Errno::EPROTO) => {
            format!(
                "the transfer from {path} has failed: check its cable, and the supply of the USB hub"
            )
        }
        _ => format!("{path} has failed: {error}"),
    }
}

fn errno(error: &io::Error) -> Option<Errno> {
    error.raw_os_error().map(Errno::from_raw)
}
