//! Drives a square of 30 cm, which fits into the demo's corridor, by time and wheel speeds alone.
//!
//! ```sh
//! cargo run --release -- demo                     # in one terminal
//! cargo run --example drive_square                # in another; Ctrl-C stops
//! ```
//!
//! Without feedback from sensors the errors of the corners add up: compare with `amber sim state`.

#![allow(clippy::print_stdout, clippy::print_stderr)] // For people.

use std::env;
use std::f64::consts::FRAC_PI_2;
use std::process::ExitCode;
use std::time::Duration;

use amber_client::{Client, Result, Roboclaw, WheelSpeeds};
use tokio::time::{Instant, sleep};

const SIDE_MM: f64 = 300.0;
const SPEED_MM_S: i32 = 250;
/// The effective distance between the wheels of a four-wheeled robot in turns.
const TRACK_MM: f64 = 420.0;
/// Commands are repeated, because the wheels stop without them.
const REPEAT: Duration = Duration::from_millis(200);

const HELP: &str = "\
Drives a square of 30 cm by time and wheel speeds alone; Ctrl-C stops the robot.

Usage: drive_square [--help]

AMBER_MEDIATOR is the address of the mediator [default: 127.0.0.1:26233].";

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match env::args().nth(1).as_deref() {
        None => {}
        Some("-h" | "--help") => {
            println!("{HELP}");
            return ExitCode::SUCCESS;
        }
        Some(other) => {
            eprintln!("error: unexpected argument '{other}'\nhint: `--help` shows the usage");
            return ExitCode::from(2);
        }
    }
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
    let wheels = client.roboclaw(0);
    let driven = tokio::select! {
        driven = square(&wheels) => driven,
        _ = tokio::signal::ctrl_c() => Ok(()),
    };
    wheels.stop().await?;
    client.close().await;
    driven
}

async fn square(wheels: &Roboclaw) -> Result<()> {
    let (ahead, turn) = (
        WheelSpeeds::all(SPEED_MM_S),
        WheelSpeeds::sides(SPEED_MM_S, -SPEED_MM_S),
    );
    let quarter_mm = FRAC_PI_2 * TRACK_MM / 2.0;
    for _ in 0..4 {
        drive(wheels, ahead, SIDE_MM).await?;
        drive(wheels, turn, quarter_mm).await?;
    }
    Ok(())
}

/// Drives until each wheel has rolled this distance, and stops.
async fn drive(wheels: &Roboclaw, speeds: WheelSpeeds, distance_mm: f64) -> Result<()> {
    let end = Instant::now() + Duration::from_secs_f64(distance_mm / f64::from(SPEED_MM_S));
    while Instant::now() < end {
        wheels.drive(speeds).await?;
        sleep(REPEAT.min(end - Instant::now())).await;
    }
    wheels.stop().await?;
    sleep(Duration::from_millis(500)).await;
    Ok(())
}
