//! `amber map make`: makes a map from scans and wheel speeds. IO.
//!
//! ```text
//!   hokuyo ---> sources --+--> mapper: two threads --> progress, drawing, files
//!   roboclaw -> sources --+         |
//!                         +--> pilot, with --explore --> roboclaw
//!   keys, with --drive ---------------------------------> roboclaw
//! ```

use std::cell::{Cell, RefCell};
use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

use amber_client::sources::{self, RobotClock};
use amber_client::{Client, Hokuyo, Roboclaw};
use amber_map::{Outline, Pose};
use amber_navigation::collision;
use amber_navigation::drive_to_point;
use amber_navigation::kinematics::SkidSteer;
use amber_navigation::pursuit;
use amber_navigation::scan::Scan;
use amber_navigation::slam::Config;
use amber_proto::{Device, DeviceType};
use amber_scene::Scene;
use amber_terminal::{Failure, note, print, show};
use tokio::time::{MissedTickBehavior, interval, sleep};

use self::files::Files;
use self::mapper::{Mapper, Report};
use self::picture::LastScans;
use self::pilot::Pilot;
use self::screen::Screen;
use self::shown::{Made, Shown};
use super::laser::LaserOptions;
use crate::drive::{self, Hands};
use crate::end::End;
use crate::lease::{self, Hold};
use crate::scan;

mod files;
mod mapper;
mod picture;
mod pilot;
mod screen;
mod shown;

pub(super) const HELP: &str = "\
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
  amber driver location --laser-offset-mm 100 --map flat.roson";

/// The interval between requests for the wheel speeds.
const WHEELS_PERIOD: Duration = Duration::from_millis(50);
/// Later answers are ignored.
const WHEELS_DEADLINE: Duration = Duration::from_millis(100);
/// Larger wheel speeds are invalid; the original driver also ignored them.
const MAX_SPEED_MM_S: u32 = 5_000;
/// Who drives, for people.
const NAME: &str = "amber map make";
/// Data missing for longer than this is reported.
const PATIENCE: Duration = Duration::from_secs(2);

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
    /// Draw the map while it grows
    #[arg(long)]
    live: bool,
    /// End after this time
    #[arg(long = "for", value_name = "SECONDS", value_parser = amber_terminal::seconds)]
    time: Option<Duration>,
    #[command(flatten)]
    laser: LaserOptions,
    /// Motor controllers
    #[arg(long, value_name = "DEVICE", default_value = "roboclaw:0")]
    wheels: Device,
    /// Effective distance between left and right wheels in turns; 420 is that of the Capo robot
    #[arg(long, value_name = "MM", default_value_t = 420.0)]
    track_mm: f64,
    /// Time of one turn of the laser
    #[arg(long, value_name = "MS", default_value_t = 100)]
    scan_turn_ms: u64,
    /// Time from the end of a scan to its timestamp
    #[arg(long, value_name = "MS", default_value_t = 0)]
    scan_delay_ms: u64,
    /// Ignore longer distances in scans
    #[arg(long, value_name = "MM", default_value_t = 5_600.0)]
    max_range_mm: f64,
    /// Size of the cells of NAME.pgm
    #[arg(long, value_name = "MM", default_value_t = 25.0)]
    cell_mm: f64,
    /// Maximum speed while exploring; with --drive, the initial speed
    #[arg(
        long,
        value_name = "MM_S",
        default_value_t = 300.0,
        requires = "driver"
    )]
    speed_mm_s: f64,
    /// Length of the robot, for exploring
    #[arg(long, value_name = "MM", default_value_t = 370.0, requires = "explore")]
    length_mm: f64,
    /// Width of the robot, for exploring
    #[arg(long, value_name = "MM", default_value_t = 330.0, requires = "explore")]
    width_mm: f64,
}

impl Options {
    /// Checks the options before anything is sent.
    pub(super) fn checked(self, json: bool) -> Result<(Self, Files), Failure> {
        self.laser.check()?;
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
        if self.wheels.device_type != DeviceType::ROBOCLAW {
            return Err(Failure::wrong(format!("{} has no wheels", self.wheels))
                .hint("try --wheels roboclaw:0; `amber devices` lists all devices"));
        }
        for (name, value, least, most) in [
            ("track-mm", self.track_mm, 50.0, 5_000.0),
            ("scan-turn-ms", self.scan_turn_ms as f64, 5.0, 1_000.0),
            ("scan-delay-ms", self.scan_delay_ms as f64, 0.0, 1_000.0),
            ("max-range-mm", self.max_range_mm, 500.0, 60_000.0),
            ("cell-mm", self.cell_mm, 5.0, 200.0),
            ("speed-mm-s", self.speed_mm_s, 50.0, 1_000.0),
            ("length-mm", self.length_mm, 10.0, 5_000.0),
            ("width-mm", self.width_mm, 10.0, 5_000.0),
        ] {
            if !(least..=most).contains(&value) {
                return Err(Failure::wrong(format!(
                    "--{name} {value}: it must be within {least} to {most}"
                )));
            }
        }
        let files = Files::new(&self.output, self.force)?;
        Ok((self, files))
    }

    fn slam(&self, mount: Pose) -> Config {
        Config {
            track_m: self.track_mm / 1000.0,
            max_range_m: self.max_range_mm / 1000.0,
            ..Config::new(mount)
        }
    }

    fn driving(&self, mount: Pose) -> drive_to_point::Config {
        let defaults = drive_to_point::Config::new(mount);
        let half_width_m = self.width_mm / 2000.0;
        // The same margin on both sides of the robot as in the defaults.
        let margin_m = defaults.planner.clearance_m - defaults.collision.outline.half_width_m;
        drive_to_point::Config {
            collision: collision::Config {
                drive: SkidSteer {
                    track_m: self.track_mm / 1000.0,
                    ..SkidSteer::default()
                },
                outline: Outline {
                    half_length_m: self.length_mm / 2000.0,
                    half_width_m,
                },
                ..defaults.collision
            },
            planner: amber_navigation::planner::Config {
                clearance_m: half_width_m + margin_m,
                ..defaults.planner
            },
            pursuit: pursuit::Config {
                max_m_s: self.speed_mm_s / 1000.0,
                ..defaults.pursuit
            },
            ..defaults
        }
    }
}

/// The running command and its devices.
struct Making {
    options: Options,
    mapper: Mapper,
    pilot: Option<Pilot>,
    started: Instant,
    scans: Feed,
    wheels: Feed,
    invalid_speeds: Cell<u64>,
    /// Scans for the drawing.
    last_scans: RefCell<LastScans>,
    mount: Pose,
    /// The speeds when driving with keys.
    keys: RefCell<String>,
}

/// Data of one device.
struct Feed {
    device: Device,
    what: &'static str,
    heard: Cell<Option<Instant>>,
    /// The reason why there is no data.
    error: RefCell<String>,
}

impl Feed {
    fn new(device: Device, what: &'static str) -> Self {
        Self {
            device,
            what,
            heard: Cell::default(),
            error: RefCell::default(),
        }
    }

    fn heard(&self) {
        self.heard.set(Some(Instant::now()));
        self.error.borrow_mut().clear();
    }

    fn failed(&self, error: &amber_client::Error) {
        *self.error.borrow_mut() = error.to_string();
    }

    /// A description of the missing data, if any.
    fn trouble(&self, started: Instant) -> Option<String> {
        let since = self.heard.get().unwrap_or(started);
        if since.elapsed() < PATIENCE {
            return None;
        }
        let (device, what, error) = (self.device, self.what, self.error.borrow());
        Some(match error.is_empty() {
            true => format!("no {what} from {device}"),
            false => format!("no {what} from {device}: {error}"),
        })
    }
}

pub(super) async fn run(
    client: &Client,
    (options, files): (Options, Files),
    json: bool,
) -> Result<(), Failure> {
    let mount = options.laser.mount(client).await?;
    let laser = scan::scanner(client, options.laser.laser);
    let wheels = Roboclaw::new(client.device(options.wheels)).with_validity(drive::VALIDITY);
    // These show whether the drivers work.
    wheels.speeds().await?;
    laser.scan().await?;
    let lease = match options.drive || options.explore {
        true => {
            let (device, by_force) = (client.device(options.wheels), options.take_over);
            Some(lease::take(&device, NAME, by_force, "amber map make --take-over").await?)
        }
        false => None,
    };
    // From here on, signals end the recording, and stop the wheels first.
    let mut end = End::new()?;
    let driving = options.driving(mount);
    let pilot = options.explore.then(|| Pilot::new(driving)).transpose()?;
    let survey = pilot.as_ref().map(|_| driving.planner);
    let mapper = Mapper::start(options.slam(mount), survey)
        .map_err(|error| Failure::new(format!("cannot start a thread: {error}")))?;
    let making = Making {
        scans: Feed::new(options.laser.laser, "scans"),
        wheels: Feed::new(options.wheels, "wheel speeds"),
        invalid_speeds: Cell::new(0),
        mapper,
        last_scans: RefCell::default(),
        mount,
        keys: RefCell::default(),
        pilot,
        started: Instant::now(),
        options,
    };
    let mut hands = making.options.drive.then(Hands::new).transpose()?;
    if hands.is_some() && !making.options.live {
        print(format!("{}\r\n", drive::KEYS).as_bytes())?;
    }
    let mut screen = Screen::new(json, making.options.live)?;
    let mut is_taken = false;
    let ended = tokio::select! {
        () = making.follow(laser, wheels.clone()) => Err(Failure::new("the connection has ended")),
        failure = making.show(&mut screen) => Err(failure),
        driven = making.explore(&wheels) => driven,
        driven = making.drive(hands.as_mut(), &wheels) => driven,
        failure = lost(lease.as_ref()) => {
            is_taken = true;
            Err(failure)
        }
        () = making.time_is_over() => Ok(()),
        () = end.wait() => Ok(()),
    };
    let time = making.started.elapsed();
    if making.pilot.is_some() || hands.is_some() {
        // The map is written even if the wheels do not answer or the terminal is closed.
        let stopped = match is_taken {
            // The wheels obey everybody who stops them: do not stop them for who has taken over.
            true => Ok(()),
            false => drive::stop(&wheels).await,
        };
        drop(hands);
        let _ = screen.end();
        for failure in [&ended, &stopped]
            .into_iter()
            .filter_map(|one| one.as_ref().err())
        {
            note(format!("warning: {}", failure.text()));
        }
    } else {
        screen.end()?;
    }
    tokio::select! {
        made = making.finish(&files, time) => show(&made?, json)?,
        () = end.wait() => return Err(Failure::new("interrupted; no map was written")),
    }
    ended
}

async fn lost(lease: Option<&Hold>) -> Failure {
    match lease {
        Some(lease) => lease.lost().await,
        None => std::future::pending().await,
    }
}

impl Making {
    /// Forwards the measurements of the devices.
    async fn follow(&self, laser: Hokuyo, wheels: Roboclaw) {
        let turn = Duration::from_millis(self.options.scan_turn_ms);
        let delay = Duration::from_millis(self.options.scan_delay_ms);
        let mut clock = RobotClock::default();
        let scans = sources::watch_scans(laser, |received| match received {
            Ok(scan) => {
                self.scans.heard();
                let age = clock.age(scan.timestamp_ms(), SystemTime::now()) + delay;
                let end = self.mapper.since_start(Instant::now()).saturating_sub(age);
                let scan = Scan::from_values(&scan, end, turn);
                if let Some(pilot) = &self.pilot {
                    pilot.handle_scan(&scan);
                }
                self.last_scans.borrow_mut().add(&scan, self.mount);
                self.mapper.scan(scan);
            }
            Err(error) => self.scans.failed(&error),
        });
        let wheels = wheels.with_deadline(WHEELS_DEADLINE);
        let speeds = sources::watch_wheels(wheels, WHEELS_PERIOD, |received| match received {
            Ok((time, speeds)) if speeds.fastest_mm_s() <= MAX_SPEED_MM_S => {
                self.wheels.heard();
                let (time, speeds) = (self.mapper.since_start(time), speeds.into());
                if let Some(pilot) = &self.pilot {
                    pilot.handle_wheels(time, speeds);
                }
                self.mapper.wheels(time, speeds);
            }
            Ok(_) => self.invalid_speeds.set(self.invalid_speeds.get() + 1),
            Err(error) => self.wheels.failed(&error),
        });
        tokio::join!(scans, speeds);
    }

    /// Drives autonomously, with `--explore`.
    async fn explore(&self, wheels: &Roboclaw) -> Result<(), Failure> {
        let Some(pilot) = &self.pilot else {
            return std::future::pending().await;
        };
        let reports = self.mapper.reports();
        let since_start = |time| self.mapper.since_start(time);
        pilot.run(wheels, reports, since_start).await
    }

    /// Drives with the keys, with `--drive`.
    async fn drive(&self, hands: Option<&mut Hands>, wheels: &Roboclaw) -> Result<(), Failure> {
        let Some(hands) = hands else {
            return std::future::pending().await;
        };
        let speed_mm_s = self.options.speed_mm_s as i32;
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
        let reports = self.mapper.reports();
        loop {
            ticks.tick().await;
            let troubles = [&self.scans, &self.wheels].map(|feed| feed.trouble(self.started));
            let shown = Shown::new(
                self.started.elapsed(),
                &reports.borrow().progress,
                self.pilot.as_ref().map(Pilot::state),
                troubles.into_iter().flatten().next(),
            );
            let keys = match self.options.drive {
                true => vec![self.keys.borrow().clone(), drive::KEYS.to_owned()],
                false => Vec::new(),
            };
            let scene = || self.scene(&reports.borrow());
            if let Err(failure) = screen.show(&shown, keys, scene) {
                return failure;
            }
        }
    }

    fn scene(&self, report: &Report) -> Scene {
        let drive = match &self.pilot {
            Some(pilot) => pilot.drive(),
            None if self.options.drive => picture::drive("with the keys", None),
            None => picture::drive("by others", None),
        };
        picture::scene(report, &self.last_scans.borrow(), drive)
    }

    /// Finishes the map and writes its files.
    async fn finish(self, files: &Files, time: Duration) -> Result<Made, Failure> {
        let (dropped, invalid) = (self.mapper.dropped(), self.invalid_speeds.get());
        let skipped = self.pilot.as_ref().map_or(0, Pilot::skipped);
        let not_returned = self.pilot.as_ref().and_then(Pilot::not_returned);
        let cell_m = self.options.cell_mm / 1000.0;
        let troubles = [&self.scans, &self.wheels].map(|feed| feed.trouble(self.started));
        let finished = self.mapper.finish(files.name.clone(), cell_m).await?;
        let finished = finished.map_err(|error| {
            let failure = Failure::new(format!("there is no map: {error}"));
            match troubles.into_iter().flatten().next() {
                Some(trouble) => failure.hint(trouble),
                None => failure.hint("drive for a while, or use larger cells: --cell-mm"),
            }
        })?;
        files.write(&finished)?;
        let mut missing = shown::missing(&finished.progress, dropped, invalid);
        if skipped > 0 {
            missing.push(format!("{skipped} places that the robot could not reach"));
        }
        if let Some(why) = not_returned {
            note(format!("the robot did not return to its start: {why}"));
        }
        Ok(Made::new(files.all(), time, &finished, missing))
    }
}
