//! Drives a square of 30 cm, which fits into the demo's corridor, by time and wheel speeds alone.
//!
//! ```sh
//! cargo run --release -- demo                     # in one terminal
//! cargo run --example drive_square                # in another; Ctrl-C stops
//! ```
//!
//! Without feedback from sensors the errors of the corners add up: compare with `amber sim state`.

use std::f64::consts::FRAC_PI_2;
use std::time::{Duration, Instant};

use amber_sdk::devices::Roboclaw;
use amber_sdk::{Result, Robot, WheelSpeeds, sleep};

const SIDE_MM: f64 = 300.0;
const SPEED_MM_S: i32 = 250;
/// The effective distance between the wheels of a four-wheeled robot in turns.
const TRACK_MM: f64 = 420.0;
/// Commands are repeated, because the wheels stop without them.
const REPEAT: Duration = Duration::from_millis(200);

#[amber_sdk::main]
async fn main(robot: Robot) -> Result<()> {
    square(&robot.roboclaw(0)).await
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
