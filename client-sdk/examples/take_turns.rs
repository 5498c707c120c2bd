//! Turns the robot once nobody else drives it. Start it twice.

use std::time::Duration;

use amber_sdk::{Result, Robot, WheelSpeeds, sleep};

#[amber_sdk::main]
async fn main(robot: Robot) -> Result<()> {
    println!("waiting");
    let lease = robot.wait_for_wheels("take_turns").await?;
    println!("driving");
    robot
        .roboclaw(0)
        .drive(WheelSpeeds::sides(150, -150))
        .await?; // mm/s
    sleep(Duration::from_secs(2)).await;
    println!("done");
    lease.release().await // the wheels stop
}
