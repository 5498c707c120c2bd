//! `amber map show`: the map, and the robot on it. IO.
//!
//! `amber_scene` provides the scene. `plot` is the drawing for the terminal, and `picture` the PNG
//! file; they are pure. `file_map` reads a map.

use std::cell::RefCell;
use std::future::pending;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use amber_map::Mounting;
use amber_proto::{Device, DeviceType};
use amber_scene::{Devices, Ground, Part, Scene, State};
use amber_terminal::{Failure, print};
use tokio::time::{Instant, MissedTickBehavior, interval, interval_at, sleep};

use self::json::Shown;
use super::laser::LaserOptions;
use crate::end::End;
use crate::file;
use crate::screen::{self, Quit, Screen};
use crate::session::Session;

mod file_map;
mod json;
mod picture;
pub(super) mod plot;

pub(super) const HELP: &str = "\
Red points are the laser scan; they are on the walls if the pose is right. Yellow points are the
hypotheses of the location driver. Green is the path to the targets. The y axis points down.
With --live, press q or Ctrl-C to quit.

Examples:
  amber map show --live
  amber map show --png map.png
  amber map show --map lab.yaml";

/// Options of `amber map show`.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Options {
    /// Update the drawing continuously, until q or Ctrl-C
    #[arg(long)]
    live: bool,
    /// Write a PNG picture to this file, or to stdout for `-`; with --live, once a second
    #[arg(long, value_name = "FILE")]
    png: Option<PathBuf>,
    /// Map: .roson, or YAML of ROS map_server [default: the map that the location driver uses]
    #[arg(long, value_name = "FILE")]
    map: Option<PathBuf>,
    /// Driver that provides the pose
    #[arg(long, value_name = "DEVICE", default_value = "location:0")]
    location: Device,
    /// Driver that provides the path
    #[arg(long, value_name = "DEVICE", default_value = "drive_to_point:0")]
    drive: Device,
    #[command(flatten)]
    laser: LaserOptions,
}

/// Update interval of the drawing.
const FRAME: Duration = Duration::from_millis(200);
/// The time by which most parts have been answered.
const FIRST: Duration = Duration::from_millis(400);
/// The interval between PNG files.
const PICTURE: Duration = Duration::from_secs(1);
/// The interval between requests for each part. Poses and scans come ten times per second.
const POSE: Duration = Duration::from_millis(100);
const SCAN: Duration = Duration::from_millis(200);
const SLOW: Duration = Duration::from_millis(400);
/// The number of poses requested to draw a single scan at its pose.
const POSES_AFTER_SCAN: u32 = 3;
/// Maps change rarely: only when one is uploaded.
const MAP: Duration = Duration::from_secs(3);
impl Options {
    /// Checks the options before anything is sent.
    pub(super) fn checked(self, json: bool) -> Result<Self, Failure> {
        for (option, device, wanted) in [
            ("location", self.location, DeviceType::LOCATION),
            ("drive", self.drive, DeviceType::DRIVE_TO_POINT),
        ] {
            if device.device_type != wanted {
                return Err(Failure::wrong(format!(
                    "--{option}: {device} is not a {wanted} device"
                ))
                .hint("`amber devices` lists all devices"));
            }
        }
        self.laser.check()?;
        if let Some(path) = &self.png {
            file::check("--png", path)?;
            if json {
                return Err(Failure::wrong("--png and --json cannot be combined")
                    .hint("leave out one of them: --png is for people, --json for programs"));
            }
            if file::is_stdout(path) && self.live {
                return Err(Failure::wrong("--png - writes only one picture to stdout")
                    .hint("leave out --live, or name a file"));
            }
        } else if self.live && !json && !io::stdout().is_terminal() {
            return Err(
                Failure::wrong("--live draws in a terminal, but stdout is not a terminal")
                    .hint("leave out --live, or use `--live --png FILE` or `--live --json`"),
            );
        }
        Ok(self)
    }
}

pub(super) async fn run(
    session: &mut Session<'_>,
    options: Options,
    json: bool,
) -> Result<(), Failure> {
    let fixed = options.map.as_deref().map(file_map::read).transpose()?;
    let client = match session.client().await {
        Ok(client) => client,
        Err(failure) => return without_mediator(fixed, &options, failure, json),
    };
    let devices = Devices::new(
        client.location(options.location.id.0),
        crate::scan::scanner(client, options.laser.laser),
        client.drive_to_point(options.drive.id.0),
    );
    // The laser is drawn at its exact position, or not at all.
    let mount = options.laser.mount(client).await;
    let mount = mount.map_err(|_| {
        format!(
            "the position of the laser on the robot is unknown: use --laser-offset-mm, or {}",
            amber_scene::mount::HINT
        )
    });
    let source = Source {
        devices,
        fixed,
        mount,
    };
    match options.live {
        true => live(&source, &options, json).await,
        false => once(&source, &options, json).await,
    }
}

/// The sources of the parts.
struct Source {
    devices: Devices,
    /// The map of a file.
    fixed: Option<Arc<Ground>>,
    mount: Part<Mounting>,
}

async fn once(source: &Source, options: &Options, json: bool) -> Result<(), Failure> {
    let devices = &source.devices;
    let map = async {
        match &source.fixed {
            Some(map) => Ok(map.clone()),
            None => devices.map().await,
        }
    };
    let mut state = State::default();
    let (map, located, particles, drive) =
        tokio::join!(map, devices.located(), devices.particles(), devices.drive(),);
    state.map.set(map);
    state.particles.set(particles);
    state.drive.set(drive);
    let mut is_known = located.is_ok();
    state.take_located(located);
    state.take_scan(devices.scan().await);
    // The pose of a scan is known a moment later.
    for _ in 0..POSES_AFTER_SCAN {
        if !is_known || state.has_pose_of_scan() {
            break;
        }
        sleep(POSE).await;
        let located = devices.located().await;
        is_known = located.is_ok();
        state.take_located(located);
    }
    show(&state.scene(&source.mount), options, json)
}

/// The map of a file needs no mediator.
fn without_mediator(
    map: Option<Arc<Ground>>,
    options: &Options,
    failure: Failure,
    json: bool,
) -> Result<(), Failure> {
    let Some(map) = map.filter(|_| !options.live) else {
        return Err(failure);
    };
    let missing = || failure.text().to_owned();
    let scene = Scene {
        map: Ok(map),
        located: Err(missing()),
        scan: Err(missing()),
        particles: Err(missing()),
        drive: Err(missing()),
    };
    show(&scene, options, json)
}

fn show(scene: &Scene, options: &Options, json: bool) -> Result<(), Failure> {
    if scene.bounds().is_none() {
        return Err(nothing(scene));
    }
    if json {
        return amber_terminal::show(&Shown::of(scene, true), true);
    }
    if let Some(path) = &options.png {
        write_picture(scene, path)?;
        file::wrote(path);
        return Ok(());
    }
    let (columns, rows) = screen::size();
    // One row is for the prompt.
    let rows = rows.saturating_sub(1);
    print(plot::draw(scene, columns, rows, amber_terminal::has_colours()).as_bytes())
}

/// Nothing can be drawn.
fn nothing(scene: &Scene) -> Failure {
    let mut reasons = Vec::new();
    for (_, why) in scene.missing() {
        if !reasons.contains(&why) {
            reasons.push(why);
        }
    }
    Failure::new(format!("there is nothing to show: {}", reasons.join("; "))).hint(
        "`amber devices` shows which drivers run; `amber demo` starts all; --map FILE shows a file",
    )
}

async fn live(source: &Source, options: &Options, json: bool) -> Result<(), Failure> {
    // From here on, signals restore the terminal before this process ends.
    let mut end = End::new()?;
    let draws = options.png.is_none() && !json;
    let mut screen = draws.then(Screen::open).transpose()?;
    let mut quit = Quit::new(draws)?;
    let state = RefCell::new(State::default());
    let period = if options.png.is_some() {
        PICTURE
    } else {
        FRAME
    };
    let mut frames = interval_at(Instant::now() + FIRST, period);
    frames.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut is_first = true;
    let draw = async {
        loop {
            frames.tick().await;
            let scene = state.borrow().scene(&source.mount);
            if json {
                amber_terminal::show(&Shown::of(&scene, is_first), true)?;
            } else if let Some(path) = &options.png {
                write_picture(&scene, path)?;
            } else if let Some(screen) = &mut screen {
                let (columns, rows) = screen::size();
                screen.draw(&plot::draw(
                    &scene,
                    columns,
                    rows,
                    amber_terminal::has_colours(),
                ))?;
            }
            is_first = false;
        }
    };
    tokio::select! {
        done = draw => done,
        () = refresh(source, &state) => Ok(()),
        () = quit.pressed() => Ok(()),
        () = end.wait() => Ok(()),
    }
}

/// Requests all parts in an endless loop.
async fn refresh(source: &Source, state: &RefCell<State>) {
    let devices = &source.devices;
    let map = async {
        match &source.fixed {
            Some(map) => {
                state.borrow_mut().map.set(Ok(map.clone()));
                pending().await
            }
            None => {
                repeat(MAP, async || {
                    let map = devices.map().await;
                    state.borrow_mut().map.set(map);
                })
                .await
            }
        }
    };
    let poses = repeat(POSE, async || {
        let pose = devices.pose().await;
        state.borrow_mut().take_pose(pose);
    });
    let located = repeat(SLOW, async || {
        let located = devices.located().await;
        state.borrow_mut().take_located(located);
    });
    let scans = repeat(SCAN, async || {
        let scan = devices.scan().await;
        state.borrow_mut().take_scan(scan);
    });
    let particles = repeat(SLOW, async || {
        let particles = devices.particles().await;
        state.borrow_mut().particles.set(particles);
    });
    let drive = repeat(SLOW, async || {
        let drive = devices.drive().await;
        state.borrow_mut().drive.set(drive);
    });
    tokio::join!(map, poses, located, scans, particles, drive);
}

async fn repeat(period: Duration, action: impl AsyncFn()) {
    let mut ticks = interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        action().await;
    }
}

fn write_picture(scene: &Scene, path: &Path) -> Result<(), Failure> {
    let Some(bounds) = scene.bounds() else {
        return Err(nothing(scene));
    };
    let picture = picture::png(scene, bounds)
        .map_err(|error| Failure::new(format!("cannot make the picture: {error}")))?;
    file::write(path, &picture)
}
