//! `amber map make`: lets the driver Mapping make a map, shows it, and writes its files. IO.
//!
//! ```text
//!   driver Mapping <-- start, explore, stop, save -- this command --> drawing, progress, files
//!                  --- progress, grid, map --------->     |
//!   roboclaw <----------------------------- keys, with --drive
//! ```
//!
//! The loop that drives runs in the driver, on the robot.

use std::cell::{Cell, RefCell};
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use amber_client::error::Unavailability;
use amber_client::{Client, Error, MappingService, Roboclaw};
use amber_map::ros_map;
use amber_proto::mapping::progress::{Exploration, State};
use amber_proto::mapping::{Explore, Piece, Progress, SaveMap, SavedMap, StartMap, piece};
use amber_proto::{Device, DeviceType};
use amber_scene::{Ground, Growing, Scene, place_to_plane};
use amber_terminal::{Failure, note, print, show};
use tokio::time::{MissedTickBehavior, interval, sleep};

use self::files::Files;
pub(crate) use self::log::Measured;
pub(super) use self::log::run as of_log;
pub use self::log::{LogMapper, LoggedMap, NewLogMapper};
use self::screen::Screen;
use self::shown::{Made, Shown};
use crate::drive::{self, Hands};
use crate::end::End;
use crate::lease::{self, Hold};

mod carmen;
mod files;
mod log;
mod picture;
mod screen;
mod shown;

pub(super) const HELP: &str = "\
The driver `mapping` on the robot makes the map, and explores. This command shows the map, and
writes its files on this computer.

Drive the robot slowly through all rooms and back to its start: returning to known places improves
the map. --drive uses the keys of `amber drive`; without it, any other program can drive, such as
`amber drive` in another terminal. With --explore, the robot drives autonomously. --live draws the
map while it grows; red points are the laser scan.

With --drive, q ends the drive and writes the map. The wheels stop when no key is held.

The start of the robot is the origin of the map. The map is rotated so that most walls are parallel
to its axes.

Examples:
  amber map make -o flat --drive --live
  amber map make -o flat --explore --for 300
  amber map make -o flat --from drive.mcap
  amber driver location --laser-offset-mm 100 --map flat.roson";

/// Who drives, for people.
const NAME: &str = "amber map make";
/// The driver also answers in this time on a busy computer.
const DEADLINE: Duration = Duration::from_secs(2);
/// No progress for longer than this is reported.
const PATIENCE: Duration = Duration::from_secs(3);
/// The time between two looks whether the grid has changed.
const GRID_PERIOD: Duration = Duration::from_millis(500);
/// How often a lost piece of the map is asked for.
const ATTEMPTS: u32 = 5;
/// The range of a speed while exploring, as in the driver.
const SPEED_MM_S: (f64, f64) = (50.0, 1_000.0);
/// The usual speed.
const USUAL_MM_S: f64 = 300.0;

/// Options of `amber map make`.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Options {
    /// Write NAME.pgm and NAME.yaml, as for map_server of ROS, and NAME.roson
    #[arg(short, long, value_name = "NAME")]
    output: PathBuf,
    /// Replace existing files
    #[arg(long)]
    force: bool,
    /// Drive with the keys of this terminal: arrows or WASD
    #[arg(long, group = "driver")]
    drive: bool,
    /// Explore autonomously, then return to the start
    #[arg(long, group = "driver")]
    explore: bool,
    /// Take over from a program that drives the robot
    #[arg(long, requires = "driver")]
    take_over: bool,
    /// Make the map of a recorded drive instead: a recording by `amber record`, or a CARMEN log
    #[arg(long, value_name = "FILE", conflicts_with_all = ["driver", "live", "time", "mapping"])]
    from: Option<PathBuf>,
    /// Draw the map while it grows
    #[arg(long)]
    live: bool,
    /// End after this time
    #[arg(long = "for", value_name = "SECONDS", value_parser = amber_terminal::seconds)]
    time: Option<Duration>,
    /// The driver that makes the map
    #[arg(long, value_name = "DEVICE", default_value = "mapping:0")]
    mapping: Device,
    /// Laser scanner [default: that of the driver, as for all options below]
    #[arg(long, value_name = "DEVICE")]
    laser: Option<Device>,
    /// Position of the laser ahead of the centre between the wheels
    #[arg(long, value_name = "MM", allow_negative_numbers = true)]
    laser_offset_mm: Option<f64>,
    /// Position of the laser to the left of the centre
    #[arg(
        long,
        value_name = "MM",
        requires = "laser_offset_mm",
        allow_negative_numbers = true
    )]
    laser_left_mm: Option<f64>,
    /// Rotation of the laser to the right, relative to the front of the robot
    #[arg(
        long,
        value_name = "DEG",
        requires = "laser_offset_mm",
        allow_negative_numbers = true
    )]
    laser_angle_deg: Option<f64>,
    /// The laser is mounted upside down
    #[arg(long)]
    laser_mirrored: bool,
    /// Motor controllers; the keys drive roboclaw:0 by default
    #[arg(long, value_name = "DEVICE")]
    wheels: Option<Device>,
    /// Effective distance between left and right wheels in turns; 420 is that of the Capo robot
    #[arg(long, value_name = "MM")]
    track_mm: Option<f64>,
    /// Time of one turn of the laser
    #[arg(long, value_name = "MS")]
    scan_turn_ms: Option<f64>,
    /// Time from the end of a scan to its timestamp
    #[arg(long, value_name = "MS")]
    scan_delay_ms: Option<f64>,
    /// Ignore longer distances in scans
    #[arg(long, value_name = "MM")]
    max_range_mm: Option<f64>,
    /// Size of the cells of NAME.pgm
    #[arg(long, value_name = "MM", default_value_t = 25.0)]
    cell_mm: f64,
    /// Maximum speed while exploring; with --drive, the initial speed, which is 300 by default
    #[arg(long, value_name = "MM_S", requires = "driver")]
    speed_mm_s: Option<f64>,
    /// Length of the robot, for exploring
    #[arg(long, value_name = "MM", requires = "explore")]
    length_mm: Option<f64>,
    /// Width of the robot, for exploring
    #[arg(long, value_name = "MM", requires = "explore")]
    width_mm: Option<f64>,
}

impl Options {
    /// Checks the options before anything is sent.
    pub(super) fn checked(self, json: bool) -> Result<(Self, Files), Failure> {
        if self.drive && (json || !drive::has_keys()) {
            return Err(
                Failure::wrong("--drive needs a terminal: it reads keys and shows the speeds").hint(
                    "leave out --drive, and use `amber drive` in a terminal, or let the robot --explore",
                ),
            );
        }
        if self.live && (json || !io::stdout().is_terminal()) {
            return Err(Failure::wrong(
                "--live draws in a terminal: stdout must be one, and --json must be absent",
            )
            .hint("leave out --live"));
        }
        let types = [
            (
                Some(self.mapping),
                DeviceType::MAPPING,
                "mapping:0",
                "makes no maps",
            ),
            (
                self.laser,
                DeviceType::HOKUYO,
                "hokuyo:0",
                "is not a laser scanner",
            ),
            (
                self.wheels,
                DeviceType::ROBOCLAW,
                "roboclaw:0",
                "has no wheels",
            ),
        ];
        for (device, device_type, usual, problem) in types {
            if let Some(device) = device.filter(|device| device.device_type != device_type) {
                let hint = format!("try {usual}; `amber devices` lists all devices");
                return Err(Failure::wrong(format!("{device} {problem}")).hint(hint));
            }
        }
        for (name, value, least, most) in [
            ("laser-offset-mm", self.laser_offset_mm, -2_000.0, 2_000.0),
            ("laser-left-mm", self.laser_left_mm, -2_000.0, 2_000.0),
            ("laser-angle-deg", self.laser_angle_deg, -180.0, 180.0),
            ("track-mm", self.track_mm, 50.0, 5_000.0),
            ("scan-turn-ms", self.scan_turn_ms, 5.0, 1_000.0),
            ("scan-delay-ms", self.scan_delay_ms, 0.0, 1_000.0),
            ("max-range-mm", self.max_range_mm, 500.0, 60_000.0),
            ("cell-mm", Some(self.cell_mm), 5.0, 200.0),
            ("speed-mm-s", self.speed_mm_s, SPEED_MM_S.0, SPEED_MM_S.1),
            ("length-mm", self.length_mm, 50.0, 5_000.0),
            ("width-mm", self.width_mm, 50.0, 5_000.0),
        ] {
            if let Some(value) = value.filter(|value| !(least..=most).contains(value)) {
                return Err(Failure::wrong(format!(
                    "--{name} {value}: it must be within {least} to {most}"
                )));
            }
        }
        let files = Files::new(&self.output, self.force)?;
        Ok((self, files))
    }

    /// The recorded drive whose map is made; `None` if the robot drives now.
    pub(super) fn log(&self) -> Option<&Path> {
        self.from.as_deref()
    }

    /// The settings of the map.
    fn start(&self) -> StartMap {
        let device = |device: Option<Device>| device.map(|device| device.to_string());
        // A position of the laser is complete.
        let with_offset = |value: Option<f64>| self.laser_offset_mm.and(value.or(Some(0.0)));
        StartMap {
            ends_with_client: Some(true),
            laser: device(self.laser),
            wheels: device(self.wheels),
            laser_offset: self.laser_offset_mm,
            laser_left: with_offset(self.laser_left_mm),
            laser_angle: with_offset(self.laser_angle_deg),
            track: self.track_mm,
            scan_turn: self.scan_turn_ms,
            scan_delay: self.scan_delay_ms,
            max_range: self.max_range_mm,
            length: self.length_mm,
            width: self.width_mm,
            laser_mirrored: self.laser_mirrored.then_some(true),
        }
    }
}

/// The running command.
struct Making {
    options: Options,
    mapping: MappingService,
    started: Instant,
    /// The last progress, and when it came.
    progress: RefCell<Progress>,
    heard: Cell<Instant>,
    /// The grid, with --live.
    ground: RefCell<Option<Arc<Ground>>>,
    /// The speeds when driving with keys.
    keys: RefCell<String>,
}

pub(super) async fn run(
    client: &Client,
    (options, files): (Options, Files),
    json: bool,
) -> Result<(), Failure> {
    let device = options.mapping;
    let mapping = client.mapping(device.id.0);
    let before = mapping.clone().with_deadline(DEADLINE).progress().await;
    let before = before.map_err(|error| without_driver(error, device))?;
    if before.state() == State::Growing {
        return Err(
            Failure::new(format!("{device} makes a map already")).hint(format!(
                "wait until it is finished, or end it: `amber call {device} stop-map`"
            )),
        );
    }
    let wheels_device = options
        .wheels
        .unwrap_or(Device::new(DeviceType::ROBOCLAW, 0));
    let wheels = Roboclaw::new(client.device(wheels_device)).with_validity(drive::VALIDITY);
    if options.drive {
        // This shows whether the driver works.
        wheels.speeds().await?;
    }
    // From here on, signals end the map, and stop the robot first.
    let mut end = End::new()?;
    // For an exploration, the driver takes the lease of the wheels for this program.
    let leased = match (options.drive, options.explore) {
        (_, true) => Some(device),
        (true, _) => Some(wheels_device),
        (false, false) => None,
    };
    let lease = match leased {
        Some(device) => {
            let (device, by_force) = (client.device(device), options.take_over);
            Some(lease::take(&device, NAME, by_force, "amber map make --take-over").await?)
        }
        None => None,
    };
    let making = Making::start(options, mapping).await?;
    let mut hands = making.options.drive.then(Hands::new).transpose()?;
    if hands.is_some() && !making.options.live {
        print(format!("{}\r\n", drive::KEYS).as_bytes())?;
    }
    let mut screen = Screen::new(json, making.options.live)?;
    let mut is_taken = false;
    let ended = tokio::select! {
        ended = making.follow() => ended,
        failure = making.watch_grid() => Err(failure),
        failure = making.show(&mut screen) => Err(failure),
        driven = making.drive(hands.as_mut(), &wheels) => driven,
        failure = lost(lease.as_ref()) => {
            is_taken = true;
            Err(failure)
        }
        () = making.time_is_over() => Ok(()),
        () = end.wait() => Ok(()),
    };
    let time = making.started.elapsed();
    let has_keys = hands.is_some();
    let stopped = match has_keys {
        // The robot obeys each client that stops it: do not stop it for one that has taken over.
        _ if is_taken => Ok(()),
        true => drive::stop(&wheels).await,
        false => making.stop().await,
    };
    drop(hands);
    // The map is written even if the wheels do not answer or the terminal is closed.
    let screen_ended = screen.end();
    if making.options.explore || has_keys {
        for failure in [&ended, &stopped]
            .into_iter()
            .filter_map(|one| one.as_ref().err())
        {
            note(format!("warning: {}", failure.text()));
        }
    } else {
        screen_ended?;
    }
    tokio::select! {
        made = making.finish(&files, time) => show(&made?, json)?,
        () = end.wait() => return Err(Failure::new("interrupted; no map was written")),
    }
    ended
}

/// Explains that the mediator has no driver that makes maps.
fn without_driver(error: Error, device: Device) -> Failure {
    let is_missing = match &error {
        Error::NoSuchDevice { .. } => true,
        Error::Unavailable { reason, .. } => *reason == Unavailability::NoSuchDevice,
        _ => false,
    };
    let failure = Failure::from(error);
    match is_missing {
        true => failure.hint(format!(
            "maps are made by a driver on the robot. Add device = \"{device}\" with command = [\"amber\", \
             \"driver\", \"mapping\"] to its configuration",
        )),
        false => failure,
    }
}

/// Resolves when the lease is lost.
async fn lost(lease: Option<&Hold>) -> Failure {
    match lease {
        Some(lease) => lease.lost().await,
        None => std::future::pending().await,
    }
}

impl Making {
    /// Begins the map, and the exploration.
    async fn start(options: Options, mapping: MappingService) -> Result<Self, Failure> {
        mapping.start_map(options.start()).await?;
        let progress = mapping.clone().with_deadline(DEADLINE).progress().await?;
        if progress.state() != State::Growing {
            let device = options.mapping;
            return Err(Failure::new(format!("{device} has not begun the map"))
                .hint("the request may be lost: try again"));
        }
        let now = Instant::now();
        let new = Self {
            options,
            mapping,
            started: now,
            progress: RefCell::new(progress),
            heard: Cell::new(now),
            ground: RefCell::default(),
            keys: RefCell::default(),
        };
        if new.options.explore {
            let explore = Explore {
                on: Some(true),
                speed: new.options.speed_mm_s,
            };
            if let Err(error) = new.mapping.explore(explore).await {
                // The driver also ends the map when this client leaves.
                let _ = new.mapping.stop_map().await;
                return Err(error.into());
            }
        }
        Ok(new)
    }

    /// Follows the progress until the exploration is done, or another client ends the map.
    async fn follow(&self) -> Result<(), Failure> {
        let mut updates = self.mapping.progress_updates().await?;
        let mut has_begun = false;
        while let Some(update) = updates.next().await {
            let progress = update.message;
            let (state, exploration) = (progress.state(), progress.exploration());
            *self.progress.borrow_mut() = progress;
            self.heard.set(Instant::now());
            let device = self.options.mapping;
            if state != State::Growing {
                return Err(
                    Failure::new(format!("{device} no longer makes the map")).hint(
                        "another client has ended it, or the driver was restarted; `amber events` \
                     shows restarts",
                    ),
                );
            }
            match exploration {
                _ if !self.options.explore => {}
                Exploration::Finished | Exploration::NotReturned => return Ok(()),
                Exploration::StoppedEarly if has_begun => {
                    return Err(Failure::new("another client has stopped the exploration"));
                }
                Exploration::Never | Exploration::StoppedEarly => {}
                _ => has_begun = true,
            }
        }
        Err(Failure::new("the connection has ended"))
    }

    /// Fetches what has changed on the map, with --live.
    async fn watch_grid(&self) -> Failure {
        if !self.options.live {
            return std::future::pending().await;
        }
        let mut ticks = interval(GRID_PERIOD);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut growing = Growing::default();
        loop {
            ticks.tick().await;
            if !growing.is_outdated(&self.progress.borrow()) {
                continue;
            }
            match growing.follow(&self.mapping).await {
                Ok(()) | Err(Error::TimedOut { .. }) => {}
                Err(error) => return error.into(),
            }
            *self.ground.borrow_mut() = growing.ground();
        }
    }

    /// Drives with the keys, with `--drive`.
    async fn drive(&self, hands: Option<&mut Hands>, wheels: &Roboclaw) -> Result<(), Failure> {
        let Some(hands) = hands else {
            return std::future::pending().await;
        };
        let speed_mm_s = self.options.speed_mm_s.unwrap_or(USUAL_MM_S) as i32;
        hands
            .drive(wheels, speed_mm_s, |line| {
                line.clone_into(&mut self.keys.borrow_mut());
                Ok(())
            })
            .await
    }

    async fn time_is_over(&self) {
        match self.options.time {
            Some(time) => sleep(time).await,
            None => std::future::pending().await,
        }
    }

    /// Shows progress until that fails.
    async fn show(&self, screen: &mut Screen) -> Failure {
        let mut ticks = interval(screen.period());
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        ticks.tick().await;
        loop {
            ticks.tick().await;
            let is_silent = self.heard.get().elapsed() > PATIENCE;
            let silence = is_silent.then(|| format!("no progress from {}", self.options.mapping));
            let shown = Shown::new(self.started.elapsed(), &self.progress.borrow(), silence);
            let keys = match self.options.drive {
                true => vec![self.keys.borrow().clone(), drive::KEYS.to_owned()],
                false => Vec::new(),
            };
            if let Err(failure) = screen.show(&shown, keys, || self.scene()) {
                return failure;
            }
        }
    }

    fn scene(&self) -> Scene {
        let drives = match self.options.drive {
            true => "with the keys",
            false => "by others",
        };
        let ground = self.ground.borrow().clone();
        Scene::of_growing(ground, &self.progress.borrow(), drives)
    }

    /// Stops the robot if it explores.
    async fn stop(&self) -> Result<(), Failure> {
        if self.options.explore {
            let explore = Explore {
                on: Some(false),
                speed: None,
            };
            self.mapping.explore(explore).await?;
        }
        Ok(())
    }

    /// Finishes the map and writes its files.
    async fn finish(self, files: &Files, time: Duration) -> Result<Made, Failure> {
        let wanted = SaveMap {
            cell: Some(self.options.cell_mm),
            ..SaveMap::default()
        };
        let saved = self.mapping.save_map(wanted).await;
        // It also ends when this client leaves.
        let _ = self.mapping.stop_map().await;
        let saved = saved.map_err(|error| self.no_map(error))?;
        let number = saved.saved();
        let roson = self.piece(number, piece::File::Roson).await?;
        let png = self.piece(number, piece::File::Png).await?;
        let corner = place_to_plane((saved.x(), saved.y()));
        let grid = ros_map::from_png(&png, corner, saved.resolution());
        let grid = grid.map_err(|error| Failure::new(format!("the map is invalid: {error}")))?;
        files.write(&grid, &roson)?;
        if let Some(why) = not_returned(&saved) {
            note(format!("the robot did not return to its start: {why}"));
        }
        Ok(Made::new(files.all(), time, &saved))
    }

    fn no_map(&self, error: Error) -> Failure {
        let is_refused = matches!(error, Error::Refused { .. });
        let failure = Failure::from(error);
        match &self.progress.borrow().trouble {
            _ if !is_refused => failure,
            Some(trouble) => failure.hint(trouble),
            None => failure.hint("drive for a while, or use larger cells: --cell-mm"),
        }
    }

    /// A file of the saved map.
    async fn piece(&self, saved: u32, file: piece::File) -> Result<Vec<u8>, Failure> {
        let mut bytes = Vec::new();
        let mut attempts = 0;
        loop {
            let mut asked = Piece {
                saved: Some(saved),
                offset: u32::try_from(bytes.len()).ok(),
                ..Piece::default()
            };
            asked.set_file(file);
            let piece = match self.mapping.map_piece(asked).await {
                Err(Error::TimedOut { .. }) if attempts < ATTEMPTS => {
                    attempts += 1;
                    continue;
                }
                answer => answer?,
            };
            attempts = 0;
            if piece.data().is_empty() && bytes.len() < piece.length().max(1) as usize {
                return Err(Failure::new("the driver no longer has the map")
                    .hint("another client has saved one: try again"));
            }
            bytes.extend_from_slice(piece.data());
            if bytes.len() >= piece.length() as usize {
                return Ok(bytes);
            }
        }
    }
}

fn not_returned(saved: &SavedMap) -> Option<&str> {
    let progress = saved.progress.as_ref()?;
    let is_so = progress.exploration() == Exploration::NotReturned;
    is_so.then(|| progress.trouble())
}
