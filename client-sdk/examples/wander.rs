//! Drives about for ever without touching a wall.
//!
//! ```sh
//! cargo run --release -- demo                      # in one terminal
//! cargo run --example wander                       # in another; Ctrl-C stops
//! ```
//!
//! The rule is simple: go on while the way ahead is free, slower the less room
//! there is, and keep off what is beside; where it is not free, turn in place
//! to the side with more room.

#![allow(clippy::print_stdout, clippy::print_stderr)] // For people.

use std::env;
use std::process::ExitCode;
use std::time::Duration;

use amber_client::{Client, Result, Scan, WheelSpeeds};
use tokio::time::timeout;

/// Half of the way that has to be free, from the middle of the robot.
const HALF_WIDTH_MM: f64 = 260.0;
/// Nearer than this ahead, the robot turns.
const TURN_AT_MM: f64 = 500.0;
/// It turns until so much is free.
const FREE_MM: f64 = 900.0;
const FASTEST_MM_S: f64 = 300.0;
const TURN_MM_S: i32 = 120;
/// Scans come ten times a second; after so long without any, it stands still.
const BLIND: Duration = Duration::from_millis(500);

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{}", error.explained());
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<()> {
    let mediator = env::var("AMBER_MEDIATOR").unwrap_or_else(|_| "127.0.0.1".into());
    let client = Client::connect(mediator).await?;
    let mut seen = Seen::default();
    let wandered = tokio::select! {
        wandered = wander(&client, &mut seen) => wandered,
        _ = tokio::signal::ctrl_c() => Ok(()),
    };
    client.roboclaw(0).stop().await?;
    client.close().await;
    println!("{} scans, {} more were missed", seen.scans, seen.missed);
    wandered
}

/// What has come so far.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) scans: u64,
    /// So many scans came faster than they were looked at.
    pub(crate) missed: u64,
}

/// Drives about until the client ends. Who drops this must stop the wheels.
pub(crate) async fn wander(client: &Client, seen: &mut Seen) -> Result<()> {
    let (wheels, laser) = (client.roboclaw(0), client.hokuyo(0));
    let mut scans = laser.subscribe().await?;
    let mut mood = Mood::Ahead;
    loop {
        match timeout(BLIND, scans.next()).await {
            Ok(Some(scan)) => {
                seen.scans += 1;
                seen.missed += scan.missed;
                mood = mood.next(&scan.message);
                wheels.drive(mood.speeds(&scan.message)).await?;
            }
            Ok(None) => return Ok(()),
            Err(_) => wheels.stop().await?,
        }
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Mood {
    Ahead,
    TurnLeft,
    TurnRight,
}

impl Mood {
    fn next(self, scan: &Scan) -> Self {
        let ahead = ahead_mm(scan);
        match self {
            Self::Ahead if ahead < TURN_AT_MM => {
                // The side with more room; kept until there is a way, so that
                // corners do not make it waver.
                if room_mm(scan, -110.0, -20.0) > room_mm(scan, 20.0, 110.0) {
                    Self::TurnLeft
                } else {
                    Self::TurnRight
                }
            }
            Self::TurnLeft | Self::TurnRight if ahead > FREE_MM => Self::Ahead,
            mood => mood,
        }
    }

    fn speeds(self, scan: &Scan) -> WheelSpeeds {
        match self {
            Self::TurnLeft => WheelSpeeds::sides(-TURN_MM_S, TURN_MM_S),
            Self::TurnRight => WheelSpeeds::sides(TURN_MM_S, -TURN_MM_S),
            Self::Ahead => {
                let speed = ((ahead_mm(scan) - TURN_AT_MM) * 0.6 + 60.0).min(FASTEST_MM_S);
                // Away from what is near beside.
                let left = nearest_mm(scan, -100.0, -25.0).min(600.0);
                let right = nearest_mm(scan, 25.0, 100.0).min(600.0);
                let turn = ((left - right) * 0.25).clamp(-0.4 * speed, 0.4 * speed);
                // More room on the left: the right wheels go faster.
                WheelSpeeds::sides((speed - turn) as i32, (speed + turn) as i32)
            }
        }
    }
}

/// How far the robot could go straight on.
fn ahead_mm(scan: &Scan) -> f64 {
    let ahead = scan.valid_points().filter_map(|point| {
        let (angle, distance) = (point.angle_deg.to_radians(), f64::from(point.distance_mm));
        let (forward, aside) = (distance * angle.cos(), distance * angle.sin());
        (forward > 0.0 && aside.abs() < HALF_WIDTH_MM).then_some(forward)
    });
    ahead.fold(5_000.0, f64::min)
}

fn nearest_mm(scan: &Scan, from_deg: f64, to_deg: f64) -> f64 {
    let nearest = scan.nearest(from_deg..=to_deg);
    nearest.map_or(5_000.0, |point| f64::from(point.distance_mm))
}

/// The mean distance in a sector.
fn room_mm(scan: &Scan, from_deg: f64, to_deg: f64) -> f64 {
    let sector = scan
        .valid_points()
        .filter(|point| (from_deg..=to_deg).contains(&point.angle_deg));
    let (sum, count) = sector.fold((0.0, 0.0), |(sum, count), point| {
        (sum + f64::from(point.distance_mm), count + 1.0)
    });
    if count > 0.0 { sum / count } else { 0.0 }
}
