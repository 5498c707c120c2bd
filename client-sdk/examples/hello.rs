//! Says what is nearest to the robot, and how fast its wheels turn.

use amber_sdk::{Result, Robot};

#[amber_sdk::main]
async fn main(robot: Robot) -> Result<()> {
    let scan = robot.hokuyo(0).scan().await?;
    if let Some(nearest) = scan.nearest(-180.0..=180.0) {
        let (mm, degrees) = (nearest.distance_mm, nearest.angle_deg);
        println!("an object is {mm} mm away, at {degrees:.0} degrees");
    }
    println!("{:?}", robot.roboclaw(0).speeds().await?);
    Ok(())
}
