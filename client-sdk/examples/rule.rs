//! A rule: while the laser does not work, nobody drives.

use amber_sdk::proto::Device;
use amber_sdk::proto::mediator::event::Kind;
use amber_sdk::{Result, Robot};

#[amber_sdk::main]
async fn main(robot: Robot) -> Result<()> {
    let laser = robot.hokuyo(0).address();
    let mut lease = None;
    let mut events = robot.mediator().events().await?;
    while let Some(event) = events.next().await {
        let event = event.message;
        if event.device.map(Device::from) != Some(laser) {
            continue;
        }
        match (event.kind(), &lease) {
            (Kind::DeviceDown | Kind::DeviceFailed | Kind::DeviceTrouble, None) => {
                lease = Some(robot.take_wheels_by_force("no laser").await?);
                println!("no laser: the robot stands");
            }
            (Kind::DeviceUp | Kind::DeviceRecovered, Some(_)) => {
                lease = None;
                println!("the laser works: drive on");
            }
            _ => {}
        }
    }
    Ok(())
}
