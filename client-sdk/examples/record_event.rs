//! Keeps what happened before and after the robot came close to something.

use std::error::Error;
use std::process::Command;
use std::time::Duration;

use amber_sdk::{Robot, sleep};

#[amber_sdk::main]
async fn main(robot: Robot) -> Result<(), Box<dyn Error>> {
    let mut scans = robot.hokuyo(0).scans().await?;
    while let Some(scan) = scans.next().await {
        if let Some(near) = scan.message.nearest(-30.0..=30.0)
            && near.distance_mm < 400
        {
            println!("{} mm ahead", near.distance_mm);
            sleep(Duration::from_secs(2)).await; // record what happens next
            Command::new("amber").args(["snapshot", "close"]).status()?;
            break;
        }
    }
    Ok(())
}
