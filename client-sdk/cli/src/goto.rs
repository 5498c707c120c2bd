//! `amber goto`: to a place on the map. IO.
//!
//! The driver DriveToPoint forgets the target when the client that has set it leaves. So the command
//! stays until the robot is there, and a killed command stops the robot, too.

use std::io::IsTerminal;

use amber_client::proxy::DriveToPointProgressUpdates;
use amber_client::values::Target;
use amber_client::{Client, DriveToPoint};
use amber_proto::drive_to_point::Progress;
use amber_proto::drive_to_point::progress::State;
use amber_proto::{Device, DeviceType};
use amber_terminal::{Failure, Human, print, show};
use serde::Serialize;

use super::end::End;
use super::{reason, watch};

pub(super) const HELP: &str = "\
The map has y down; `amber call location pose` shows where the robot is. Ctrl-C stops the robot.

Examples:
  amber goto 3.5 1
  amber goto 3.5 1 --radius 0.1 --json";

/// Options of `amber goto`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// To the right on the map, in metres
    #[arg(allow_negative_numbers = true)]
    x: f64,
    /// Down on the map, in metres
    #[arg(allow_negative_numbers = true)]
    y: f64,
    /// The robot has arrived when it is nearer than this
    #[arg(long, value_name = "METRES", default_value_t = Target::RADIUS_M)]
    radius: f64,
    /// The driver that finds the way
    #[arg(long, default_value = "drive_to_point:0")]
    device: Device,
}

impl Options {
    /// Checks the options before anything is sent.
    pub(super) fn checked(self) -> Result<Self, Failure> {
        if self.device.device_type != DeviceType::DRIVE_TO_POINT {
            let device = self.device;
            return Err(
                Failure::wrong(format!("{device} does not drive to targets"))
                    .hint("try --device drive_to_point:0; `amber devices` lists all devices"),
            );
        }
        if !(self.x.is_finite() && self.y.is_finite()) {
            return Err(Failure::wrong("X and Y must be numbers"));
        }
        if !(self.radius > 0.0 && self.radius.is_finite()) {
            return Err(Failure::wrong(format!(
                "--radius {}: it must be above 0",
                self.radius
            )));
        }
        Ok(self)
    }
}

pub(super) async fn run(client: &Client, options: Options, json: bool) -> Result<(), Failure> {
    let drive = client.drive_to_point(options.device.id.0);
    // From here on, signals stop the robot before this process ends.
    let mut end = End::new()?;
    let target = Target {
        x_m: options.x,
        y_m: options.y,
        radius_m: options.radius,
    };
    let mut screen = Screen::new(json);
    let driven = tokio::select! {
        driven = drive_there(&drive, options.device, target, &mut screen) => driven,
        () = end.wait() => Err(Failure::new("interrupted; the robot was stopped")),
    };
    screen.end()?;
    if driven.is_err() {
        // Only the reason for the end matters. The driver also stops when this client leaves.
        let _ = drive.set_targets(&[]).await;
    }
    let at = driven?;
    show(&at, json)
}

/// Waits until the robot is at the target.
async fn drive_there(
    drive: &DriveToPoint,
    device: Device,
    target: Target,
    screen: &mut Screen,
) -> Result<Arrival, Failure> {
    // This shows whether the driver works: commands have no answer.
    drive.configuration().await?;
    let mut updates = drive.progress_updates().await?;
    drive.set_targets(&[target]).await?;
    loop {
        let update = watch::next(&mut updates, device).await?.message;
        screen.show(&update)?;
        if update.progress.state() != State::Idle {
            continue;
        }
        // The driver may have published this before it read the command.
        if !drive.next_targets().await?.targets.is_empty() {
            continue;
        }
        let now = drive.visited_targets().await?;
        if now.targets.iter().any(|visited| same(*visited, target)) {
            let location = now.location;
            return Ok(Arrival {
                arrived: true,
                x_m: location.x_m,
                y_m: location.y_m,
            });
        }
        let (x_m, y_m) = (target.x_m, target.y_m);
        return Err(match skipped(&update.progress, target) {
            true => Failure::new(format!("the robot cannot reach ({x_m} m, {y_m} m)"))
                .hint(reason::hint(device)),
            false => Failure::new(format!("{device} no longer has the target")).hint(
                "another client has replaced it, or the driver was restarted; `amber events` shows \
                 restarts",
            ),
        });
    }
}

fn skipped(progress: &Progress, target: Target) -> bool {
    let Some(skipped) = &progress.skipped else {
        return false;
    };
    let mut places = skipped.longitudes.iter().zip(&skipped.latitudes);
    places.any(|(&x_m, &y_m)| same(Target::new(x_m, y_m), target))
}

/// The driver computes in another frame, and so may round.
fn same(one: Target, other: Target) -> bool {
    const ROUNDING_M: f64 = 1e-6;
    (one.x_m - other.x_m).hypot(one.y_m - other.y_m) < ROUNDING_M
}

/// Where the progress is shown.
struct Screen {
    json: bool,
    is_terminal: bool,
    /// The last line.
    line: String,
}

impl Screen {
    fn new(json: bool) -> Self {
        Self {
            json,
            is_terminal: !json && std::io::stdout().is_terminal(),
            line: String::new(),
        }
    }

    /// Shows where the robot is: in one line of a terminal, else each new state in a line of its own.
    fn show(&mut self, update: &DriveToPointProgressUpdates) -> Result<(), Failure> {
        let shown = Shown::of(update);
        if self.json {
            return show(&shown, true);
        }
        if self.is_terminal {
            self.line = shown.human();
            return print(format!("\r{}\x1b[K", self.line).as_bytes());
        }
        if self.line == shown.state {
            return Ok(());
        }
        self.line.clone_from(&shown.state);
        print(format!("{}\n", shown.human()).as_bytes())
    }

    fn end(&self) -> Result<(), Failure> {
        match self.is_terminal && !self.line.is_empty() {
            true => print(b"\n"),
            false => Ok(()),
        }
    }
}

/// The progress of a moment.
#[derive(Debug, Serialize)]
struct Shown {
    state: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    remaining_m: Option<f64>,
    x_m: f64,
    y_m: f64,
    quality: f64,
}

impl Shown {
    fn of(update: &DriveToPointProgressUpdates) -> Self {
        let (progress, at) = (&update.progress, update.location);
        let state = progress.state();
        Self {
            state: state.as_str_name().to_lowercase().replace('_', " "),
            reason: progress.reason.clone(),
            remaining_m: progress.remaining.filter(|_| state != State::Idle),
            x_m: at.x_m,
            y_m: at.y_m,
            quality: at.quality,
        }
    }
}

impl Human for Shown {
    fn human(&self) -> String {
        let Self {
            state, x_m, y_m, ..
        } = self;
        let mut line = format!("at {x_m:.2} m, {y_m:.2} m: {state}");
        if let Some(remaining_m) = self.remaining_m {
            line.push_str(&format!(", {remaining_m:.2} m left"));
        }
        if let Some(reason) = self.reason.as_deref().filter(|reason| !reason.is_empty()) {
            line.push_str(&format!(" ({reason})"));
        }
        line
    }
}

#[derive(Debug, Serialize)]
struct Arrival {
    arrived: bool,
    x_m: f64,
    y_m: f64,
}

impl Human for Arrival {
    fn human(&self) -> String {
        format!("arrived: at {:.2} m, {:.2} m\n", self.x_m, self.y_m)
    }
}
