//! `amber map make --from FILE`: makes the map of a recorded drive, faster than it took. IO.
//!
//! The file is read twice: first for the shape of the robot, and then for its measurements.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use amber_client::{Scan, WheelSpeeds};
use amber_map::{Occupancy, Pose};
use amber_proto::mapping::{Progress, SavedMap, StartMap};
use amber_proto::robot::{Place, Shape};
use amber_scene::Scene;
use amber_terminal::{Failure, note, show};

use super::Options;
use super::carmen;
use super::files::Files;
use super::screen::Screen;
use super::shown::{Made, Shown};

/// The first bytes of a recording.
const MCAP: &[u8] = b"\x89MCAP0\r\n";
/// A longer line is none of a log.
const MAX_LINE_BYTES: u64 = 1024 * 1024;
/// A laser farther away from the centre is on no robot: the log has another meaning.
const MAX_MOUNT_M: f64 = 2.0;

/// A measurement of a recorded drive, with its time.
#[derive(Clone, Debug)]
pub(crate) enum Measured {
    /// A scan, when it arrived.
    Scan(SystemTime, Scan),
    /// Wheel speeds, of recordings only.
    #[cfg_attr(not(feature = "record"), allow(dead_code))]
    Wheels(SystemTime, WheelSpeeds),
    /// Where the robot is by its wheels.
    Odometry(SystemTime, Pose),
    /// What the robot says of itself.
    Shape(Box<Shape>),
}

/// Makes a map from a recorded drive. The drivers know how; the program that has them hands it in.
pub trait LogMapper {
    /// A scan that arrived at this time of the log.
    fn handle_scan(&mut self, arrived: SystemTime, scan: &Scan);
    /// Wheel speeds that were measured at this time of the log.
    fn handle_wheels(&mut self, measured: SystemTime, speeds: WheelSpeeds);
    /// Where the robot was at this time of the log, by its wheels alone.
    fn handle_odometry(&mut self, measured: SystemTime, pose: Pose);
    /// How far the map is.
    fn progress(&self) -> Progress;
    /// Finishes the map.
    ///
    /// # Errors
    /// There are no usable scans, or the area is too large for cells of this size.
    fn finish(self: Box<Self>, name: &str, cell_m: f64) -> Result<LoggedMap, Failure>;
}

/// A map that a [`LogMapper`] has made.
#[derive(Clone, Debug)]
pub struct LoggedMap {
    /// What was made.
    pub saved: SavedMap,
    pub grid: Occupancy,
    /// The `.roson` file.
    pub roson: String,
}

/// Makes a [`LogMapper`] with these settings, and with what the robot says of itself in the log.
pub type NewLogMapper = fn(&StartMap, Option<&Shape>) -> Result<Box<dyn LogMapper>, Failure>;

/// Makes the map of a recorded drive.
pub(in crate::map) fn run(
    options: &Options,
    files: &Files,
    path: &Path,
    json: bool,
    new_mapper: NewLogMapper,
) -> Result<(), Failure> {
    let began = Instant::now();
    let (mut shape, mut scans, mut motions) = (None, 0_u64, 0_u64);
    read(options, path, |measured, _| {
        match measured {
            Measured::Scan(..) => scans += 1,
            Measured::Wheels(..) | Measured::Odometry(..) => motions += 1,
            Measured::Shape(found) => shape = shape.take().or(Some(found)),
        }
        Ok(())
    })?;
    let lacks = match (scans, motions) {
        (0, _) => Some("scans"),
        (_, 0) => Some("wheel speeds"),
        _ => None,
    };
    if let Some(what) = lacks {
        let text = format!("{} has no {what}", path.display());
        return Err(Failure::new(text).hint(
            "a log is a recording of hokuyo and roboclaw by `amber record`, or a CARMEN log; choose \
             other devices with --laser and --wheels",
        ));
    }
    let mut mapper = new_mapper(&options.start(), shape.as_deref())?;
    let mut screen = Screen::new(json, false)?;
    let period = screen.period();
    let mut due = began + period;
    let done = read(options, path, |measured, part| {
        match measured {
            Measured::Scan(at, scan) => mapper.handle_scan(at, &scan),
            Measured::Wheels(at, speeds) => mapper.handle_wheels(at, speeds),
            Measured::Odometry(at, pose) => mapper.handle_odometry(at, pose),
            Measured::Shape(_) => {}
        }
        if Instant::now() < due {
            return Ok(());
        }
        due = Instant::now() + period;
        let progress = mapper.progress();
        screen.show(&Shown::of_log(&progress, part), Vec::new(), || {
            Scene::of_growing(None, &progress, "in the log")
        })
    });
    screen.end()?;
    let damaged = done?;
    if damaged > 0 {
        let path = path.display();
        note(format_args!(
            "{path}: {damaged} parts or lines cannot be read, and were left out"
        ));
    }
    let made = mapper.finish(&files.name, options.cell_mm / 1000.0)?;
    files.write(&made.grid, made.roson.as_bytes())?;
    let progress = made.saved.progress.as_ref();
    let time = Duration::from_millis(progress.map_or(0, Progress::time));
    show(&Made::new(files.all(), time, &made.saved), json)
}

/// Hands over all measurements of a log, with the part of it that was read, 0 to 1. Returns how many
/// parts cannot be read.
fn read(
    options: &Options,
    path: &Path,
    each: impl FnMut(Measured, f64) -> Result<(), Failure>,
) -> Result<u64, Failure> {
    let unreadable = |error: io::Error| {
        let path = path.display();
        Failure::wrong(format!("cannot read {path}: {error}"))
    };
    let mut start = Vec::new();
    let file = File::open(path).map_err(unreadable)?;
    if !file.metadata().map_err(unreadable)?.is_file() {
        let text = format!("{} is not a regular file", path.display());
        return Err(Failure::wrong(text).hint("a log is read twice: store it in a file first"));
    }
    (&file)
        .take(MCAP.len() as u64)
        .read_to_end(&mut start)
        .map_err(unreadable)?;
    match start == MCAP {
        true => recording(options, path, each),
        false => lines(path, each),
    }
}

#[cfg(feature = "record")]
fn recording(
    options: &Options,
    path: &Path,
    each: impl FnMut(Measured, f64) -> Result<(), Failure>,
) -> Result<u64, Failure> {
    crate::recordings::drive::read(path, (options.laser, options.wheels), each)
}

#[cfg(not(feature = "record"))]
fn recording(
    _: &Options,
    path: &Path,
    _: impl FnMut(Measured, f64) -> Result<(), Failure>,
) -> Result<u64, Failure> {
    let path = path.display();
    Err(Failure::new(format!(
        "{path} is a recording, which this amber cannot read"
    ))
    .hint("build it with the feature `record`"))
}

/// A CARMEN log.
fn lines(
    path: &Path,
    mut each: impl FnMut(Measured, f64) -> Result<(), Failure>,
) -> Result<u64, Failure> {
    let unreadable = |error: io::Error| {
        let path = path.display();
        Failure::wrong(format!("cannot read {path}: {error}"))
    };
    let file = File::open(path).map_err(unreadable)?;
    let length = file.metadata().map_err(unreadable)?.len().max(1);
    let mut file = BufReader::new(file);
    let (mut line, mut at, mut damaged, mut found) = (Vec::new(), 0, 0, 0_u64);
    let mut has_mount = false;
    loop {
        line.clear();
        let taken = (&mut file)
            .take(MAX_LINE_BYTES)
            .read_until(b'\n', &mut line);
        let taken = taken.map_err(unreadable)? as u64;
        if taken == 0 {
            break;
        }
        at += taken;
        let text = std::str::from_utf8(&line).ok();
        let Some(carmen::Line { measured, mount }) = text.and_then(carmen::read) else {
            damaged += 1;
            continue;
        };
        let part = at as f64 / length as f64;
        if let Some(mount) = mount.filter(|mount| !has_mount && mount.at.length() < MAX_MOUNT_M) {
            has_mount = true;
            each(Measured::Shape(Box::new(shape(mount))), part)?;
        }
        found += measured.len() as u64;
        for measured in measured {
            each(measured, part)?;
        }
    }
    if found == 0 {
        let text = format!("{} is no log of a drive", path.display());
        return Err(Failure::wrong(text)
            .hint("a log is a recording by `amber record` (MCAP), or a CARMEN log (text)"));
    }
    Ok(damaged)
}

/// What a log says of the robot.
fn shape(mount: Pose) -> Shape {
    Shape {
        laser: Some(Place {
            x: Some(mount.at.x),
            y: Some(mount.at.y),
            yaw: Some(mount.heading),
            ..Place::default()
        }),
        ..Shape::default()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn measured(text: &[u8]) -> Result<(Vec<Measured>, u64), Failure> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("drive.log");
        fs::write(&path, text).unwrap();
        let mut all = Vec::new();
        let damaged = lines(&path, |measured, part| {
            assert!((0.0..=1.0).contains(&part));
            all.push(measured);
            Ok(())
        });
        Ok((all, damaged?))
    }

    #[test]
    fn a_carmen_log_has_the_place_of_the_laser_once() {
        let text = b"# a drive\n\
            ODOM 0 0 0 0 0 0 1.0 host 1\n\
            FLASER 2 1 1 0.2 0 0 0 0 0 1.1 host 1\n\
            ODOM broken\n\xff\n\
            FLASER 2 1 1 0.2 0 0 0 0 0 1.2 host 1\n";
        let (all, damaged) = measured(text).unwrap();
        assert_eq!((all.len(), damaged), (6, 2));
        let Measured::Shape(shape) = &all[1] else {
            panic!("{all:?}");
        };
        assert_eq!(shape.laser.as_ref().unwrap().x(), 0.2);
    }

    #[test]
    fn another_text_is_refused() {
        let error = format!("{:?}", measured(b"hello\nworld\n").unwrap_err());
        assert!(error.contains("is no log of a drive"), "{error}");
    }
}
