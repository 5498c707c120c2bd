//! Goes round the rooms of the demo's flat.

use amber_sdk::{Result, Robot, Target};

const ROOMS: [(&str, Target); 4] = [
    ("kitchen", Target::new(1.4, 1.0)), // metres on the map, y down
    ("bath", Target::new(3.35, 1.0)),
    ("bedroom", Target::new(5.5, 1.0)),
    ("hall", Target::new(3.5, 2.6)),
];

#[amber_sdk::main]
async fn main(robot: Robot) -> Result<()> {
    let drive = robot.drive_to_point(0);
    for (room, target) in ROOMS {
        let end = drive.drive_to(target).await?;
        println!("{room}: {end}"); // arrived, or why not
    }
    Ok(())
}
