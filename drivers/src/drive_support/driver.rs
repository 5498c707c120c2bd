//! The messages of Roboclaw for wheels behind the guard. IO.

use std::error::Error;
use std::time::{Duration, Instant};

use amber_driver::devices::roboclaw::{
    DriverMsg, MotorsSpeed, RoboclawDriver, RoboclawLink, SpeedUpdatesData,
};
use amber_driver::{ClientId, Outcome, Reply, Request};
use amber_proto::battery_state::BatteryState;
use amber_values::{Scan, WheelSpeeds};

use crate::moving::guarded::{GuardedDevice, GuardedWheels};
use crate::robot_options::Stated;
use crate::stream::complain;

/// A Roboclaw that avoids collisions.
pub(super) struct DriveSupport {
    wheels: GuardedWheels<Self>,
}

impl DriveSupport {
    pub(super) fn new(stated: Stated) -> Self {
        Self {
            wheels: GuardedWheels::new(stated),
        }
    }
}

impl RoboclawDriver for DriveSupport {
    async fn start(&mut self, link: RoboclawLink) -> Result<(), Box<dyn Error + Send + Sync>> {
        self.wheels.open(link).await;
        Ok(())
    }

    /// If a message holds a request and a command, only the request takes effect, as with Roboclaw.
    fn received(&mut self, request: &mut Request<DriverMsg>) {
        if request.message.current_speed_request.is_some() {
            request.message.motors_command = None;
        }
    }

    async fn drive(&mut self, speeds: MotorsSpeed, outcome: Outcome) {
        self.wheels.drive(speeds.into(), outcome).await;
    }

    async fn speeds(&mut self, reply: Reply<MotorsSpeed>) {
        self.wheels.ask(reply).await;
    }

    async fn battery(&mut self, reply: Reply<BatteryState>) {
        reply.refuse("ask the controllers of the wheels for their battery");
    }

    fn wake_at(&self) -> Option<Instant> {
        self.wheels.look_at()
    }

    async fn wake(&mut self) {
        self.wheels.look().await;
    }

    fn handles_gone_clients(&self) -> bool {
        true
    }

    async fn client_gone(&mut self, client: ClientId) {
        self.wheels.client_gone(client).await;
    }

    async fn shutdown(&mut self) {
        self.wheels.close().await;
    }
}

impl GuardedDevice for DriveSupport {
    type Question = Reply<MotorsSpeed>;
    type Message = DriverMsg;
    type Link = RoboclawLink;

    fn answer(
        reply: Reply<MotorsSpeed>,
        speeds: Option<WheelSpeeds>,
        _scan: Option<&Scan>,
    ) -> Result<(), Reply<MotorsSpeed>> {
        match speeds {
            Some(speeds) => reply.send(speeds.into()),
            None => return Err(reply),
        }
        Ok(())
    }

    fn publish_speeds(link: &RoboclawLink, speeds: WheelSpeeds, age: Duration) {
        complain(link.speed_updates(SpeedUpdatesData {
            current_speed: speeds.into(),
            speed_age_us: Some(age.as_micros().try_into().unwrap_or(u32::MAX)),
            battery: None,
        }));
    }

    fn refuse(reply: Reply<MotorsSpeed>) {
        reply.refuse("no current wheel speeds are available");
    }
}

#[cfg(test)]
mod tests;
