//! Keeps a wall 60 cm away on the right-hand side, until Ctrl-C.

use std::time::Duration;

use amber_sdk::{Result, Robot, WheelSpeeds};

#[amber_sdk::main]
async fn main(robot: Robot) -> Result<()> {
    // Without new scans, the wheels stop after half a second.
    let wheels = robot.roboclaw(0).with_validity(Duration::from_millis(500));
    let mut scans = robot.hokuyo(0).scans().await?;
    while let Some(scan) = scans.next().await {
        let nearest_mm = |from_deg, to_deg| {
            let nearest = scan.message.nearest(from_deg..=to_deg);
            nearest.map_or(5000, |point| point.distance_mm)
        };
        let speeds = if nearest_mm(-25.0, 25.0) < 700 {
            WheelSpeeds::sides(-100, 100) // mm/s; turn left
        } else {
            // Far from the wall, the left wheels are faster: to the right.
            let turn = ((nearest_mm(40.0, 120.0) - 600) / 4).clamp(-100, 100);
            WheelSpeeds::sides(200 + turn, 200 - turn)
        };
        wheels.drive(speeds).await?;
    }
    Ok(())
}
