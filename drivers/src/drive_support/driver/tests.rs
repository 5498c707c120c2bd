//! Tests of the whole driver between a fake mediator and fake devices. Those of CollisionAvoidance
//! cover the rest: both share the guard and its task.

use std::time::Duration;

use amber_driver::devices::roboclaw;
use amber_proto::{Device, DeviceType};
use tokio::time::sleep;

use super::*;
use crate::moving::testing::run;
use crate::robot_options::RobotOptions;

#[tokio::test(start_paused = true)]
async fn it_answers_like_roboclaw_and_stops_before_a_wall() {
    let options = RobotOptions::with_central_laser();
    let wheels = Device::new(DeviceType::ROBOCLAW, 0);
    let driver = DriveSupport::new(options.stated_behind(wheels).unwrap());
    run(roboclaw::driver(driver), async |fake| {
        // Field 20 = { 300, 250, 300, 250 }.
        let command = b"\x10\x01\xa2\x01\x0c\x08\xac\x02\x10\xfa\x01\x18\xac\x02\x20\xfa\x01";
        while fake.world().speeds != WheelSpeeds::sides(300, 250) {
            fake.tell(command);
            sleep(Duration::from_millis(50)).await;
        }
        // The driver measures the speeds every 50 ms.
        for _ in 0..2 {
            fake.tell(command);
            sleep(Duration::from_millis(50)).await;
        }
        // Field 21 = true.
        let answer = fake.ask(b"\x10\x01\x18\x09\xa8\x01\x01").await;
        assert_eq!(
            answer,
            b"\x10\x01\x20\x09\xb2\x01\x0c\x08\xac\x02\x10\xfa\x01\x18\xac\x02\x20\xfa\x01"
        );
        fake.world().ahead_mm = 250;
        fake.tell(command);
        let took = fake
            .until("a stop", |world| world.speeds == WheelSpeeds::STOP)
            .await;
        assert!(took <= Duration::from_millis(150), "{took:?}");
    })
    .await;
}
