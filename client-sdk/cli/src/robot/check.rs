//! `amber robot check`: whether the configured geometry of the robot is right. IO.
//!
//! The location driver measures it whenever the robot drives. This command begins anew, says how the
//! robot must move, and shows the result. With `--drive`, it moves the robot itself.

use std::io::{self, IsTerminal};
use std::time::Duration;

use amber_client::{Client, Error, LocationService, Roboclaw, WheelSpeeds};
use amber_proto::location::Geometry;
use amber_proto::{Device, DeviceType};
use amber_terminal::{Failure, note, print, print_over, show};
use tokio::time::{Instant, sleep, sleep_until};

use super::checked::Checked;
use crate::drive;
use crate::end::End;
use crate::lease;

pub(super) const HELP: &str = "\
The robot must turn to both sides, and drive straight ahead, where the laser sees walls. Drive it by
hand, with `amber drive` in another terminal or with --drive, which needs one metre of free floor on
all sides: it turns on the spot, and drives 0.5 m ahead and back, slowly.

The result has the lines for robot.toml. Without a gyroscope, a laser that is mounted upside down and
swapped wheels look alike: watch to which side the robot turns. Exit code 1: something is wrong, or not
everything could be measured.

Examples:
  amber robot check
  amber robot check --drive
  amber robot check --json --for 60";

/// The time between two looks at the result.
const LOOK: Duration = Duration::from_millis(500);
/// Who drives, for people.
const NAME: &str = "amber robot check";
/// The speed of the wheels with --drive.
const SPEED_MM_S: i32 = 150;
/// The motions with --drive: speeds of both sides as parts of that one, and for how long. At the end
/// of each, the robot stands.
const MOTIONS: [(i32, i32, Duration); 5] = [
    (-1, 1, Duration::from_millis(2_500)),
    (1, -1, Duration::from_millis(5_000)),
    (-1, 1, Duration::from_millis(2_500)),
    (1, 1, Duration::from_millis(3_300)),
    (-1, -1, Duration::from_millis(3_300)),
];
const STAND: Duration = Duration::from_millis(1_500);
/// How often a motion is tried again that the driver of the wheels has refused.
const REFUSALS: u32 = 5;
/// How often the motions are repeated at most.
const ROUNDS: usize = 6;

/// Options of `amber robot check`.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Check {
    /// The driver that measures
    #[arg(default_value = "location:0")]
    device: Device,
    /// Drive the robot: turn on the spot, and go 0.5 m ahead and back
    #[arg(long)]
    drive: bool,
    /// Wheels for --drive
    #[arg(
        long,
        value_name = "DEVICE",
        requires = "drive",
        default_value = "collision-avoidance:0"
    )]
    wheels: Device,
    /// Take over from a program that drives the robot
    #[arg(long, requires = "drive")]
    take_over: bool,
    /// End after this time, even if something is unknown
    #[arg(long = "for", value_name = "SECONDS", default_value = "300", value_parser = amber_terminal::seconds)]
    time: Duration,
}

impl Check {
    /// Checks the options before anything is sent.
    pub(super) fn checked(&self) -> Result<(), Failure> {
        if self.device.device_type != DeviceType::LOCATION {
            let text = format!("{} does not measure the geometry", self.device);
            return Err(Failure::wrong(text)
                .hint("leave the device out; `amber devices` lists all devices"));
        }
        let has_wheels = [DeviceType::COLLISION_AVOIDANCE, DeviceType::ROBOCLAW];
        if !has_wheels.contains(&self.wheels.device_type) {
            let text = format!("{} has no wheels", self.wheels);
            return Err(Failure::wrong(text)
                .hint("try --wheels collision-avoidance:0; `amber devices` lists all devices"));
        }
        Ok(())
    }
}

pub(super) async fn run(client: &Client, check: &Check, json: bool) -> Result<(), Failure> {
    let location = client.location(check.device.id.0);
    // From here on, signals end the check, and stop the robot first.
    let mut end = End::new()?;
    // Without an answer, the robot does not drive.
    let first = location.geometry(Some(true));
    let mut last = first.await.map_err(|error| {
        Failure::from(error).hint(format!(
            "{} measures the geometry: is its driver of this version, and running? See `amber status`",
            check.device
        ))
    })?;
    let until = Instant::now() + check.time;
    let ended = {
        let looking = look(&location, &mut last, json);
        tokio::select! {
            ended = looking => ended,
            driven = driving(client, check) => driven,
            () = sleep_until(until) => Ok(()),
            () = end.wait() => Ok(()),
        }
    };
    if check.drive {
        let stopped = drive::stop(&wheels(client, check)).await;
        ended.and(stopped)?;
    } else {
        ended?;
    }
    if is_shown(json) {
        print(b"\n")?;
    }
    // What the last motion has told.
    if let Ok(geometry) = location.geometry(None).await {
        last = geometry;
    }
    let checked = Checked::new(&last);
    show(&checked, json)?;
    match checked.failure() {
        Some(failure) => Err(failure),
        None => Ok(()),
    }
}

/// Shows how far the check is, until everything is known. Ignores lost answers.
async fn look(location: &LocationService, last: &mut Geometry, json: bool) -> Result<(), Failure> {
    let mut told = String::new();
    loop {
        let wanted = last.missing.join("; ");
        if wanted.is_empty() {
            return Ok(());
        }
        if is_shown(json) {
            print_over(drive::fit(&super::checked::progress(last)))?;
        } else if wanted != told {
            note(format!("needed: {wanted}"));
            told = wanted;
        }
        sleep(LOOK).await;
        match location.geometry(None).await {
            Ok(geometry) => *last = geometry,
            Err(Error::TimedOut { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Whether a line in the terminal shows the progress.
fn is_shown(json: bool) -> bool {
    !json && io::stdout().is_terminal()
}

fn wheels(client: &Client, check: &Check) -> Roboclaw {
    Roboclaw::new(client.device(check.wheels)).with_validity(drive::VALIDITY)
}

/// Moves the robot, if it should. Then it waits for the last result.
async fn driving(client: &Client, check: &Check) -> Result<(), Failure> {
    if !check.drive {
        return std::future::pending().await;
    }
    let wheels = wheels(client, check);
    // This shows whether the driver works.
    wheels.speeds().await?;
    let device = client.device(check.wheels);
    let command = "amber robot check --drive --take-over";
    let lease = lease::take(&device, NAME, check.take_over, command).await?;
    let moving = async {
        for (left, right, time) in MOTIONS.repeat(ROUNDS) {
            let speeds = WheelSpeeds::sides(left * SPEED_MM_S, right * SPEED_MM_S);
            let mut refused = 0;
            loop {
                let driven = drive::keep(&wheels, speeds, Instant::now() + time).await;
                drive::stop(&wheels).await?;
                sleep(STAND).await;
                match driven {
                    // For example, the laser has just started.
                    Err(Error::Refused { .. }) if refused < REFUSALS => refused += 1,
                    driven => break driven?,
                }
            }
        }
        Ok(())
    };
    tokio::select! {
        moved = moving => moved,
        failure = lease.lost() => Err(failure),
    }
}
