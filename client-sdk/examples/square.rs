//! Drives a square of 30 cm by time and speed alone.

use std::time::Duration;

use amber_sdk::{Result, Robot, WheelSpeeds, sleep};

const AHEAD: Duration = Duration::from_millis(1200);
const CORNER: Duration = Duration::from_millis(1320);

#[amber_sdk::main]
async fn main(robot: Robot) -> Result<()> {
    let wheels = robot.roboclaw(0);
    for _ in 0..4 {
        wheels.drive(WheelSpeeds::all(250)).await?; // mm/s
        sleep(AHEAD).await;
        wheels.drive(WheelSpeeds::sides(250, -250)).await?; // to the right
        sleep(CORNER).await;
    }
    Ok(()) // the wheels stop
}
