//! The messages of CollisionAvoidance for wheels behind the guard. IO.

use std::error::Error;
use std::time::Instant;

use amber_driver::devices::collision_avoidance::{
    CollisionAvoidanceDriver, CollisionAvoidanceLink, DriverMsg, MotorsSpeed, ReadingsData, Scan,
    SpeedsAndScanAnswer,
};
use amber_driver::{ClientId, Outcome, Reply, Request};
use amber_proto::roboclaw;
use amber_values::{self as values, WheelSpeeds};

use crate::moving::guarded::{GuardedDevice, GuardedWheels};
use crate::robot_options::Stated;
use crate::stream::complain;

/// The driver of a robot that avoids collisions.
pub(super) struct CollisionAvoidance {
    wheels: GuardedWheels<Self>,
}

/// A request with an answer.
#[derive(Debug)]
pub(super) enum Question {
    Speeds(Reply<MotorsSpeed>),
    SpeedsAsRoboclaw(Reply<roboclaw::MotorsSpeed>),
    Scan(Reply<Scan>),
    SpeedsAndScan(Reply<SpeedsAndScanAnswer>),
}

impl CollisionAvoidance {
    pub(super) fn new(stated: Stated) -> Self {
        Self {
            wheels: GuardedWheels::new(stated),
        }
    }
}

impl CollisionAvoidanceDriver for CollisionAvoidance {
    async fn start(
        &mut self,
        link: CollisionAvoidanceLink,
    ) -> Result<(), Box<dyn Error + Send + Sync>> {
        self.wheels.open(link).await;
        Ok(())
    }

    /// The original looks for both values before it looks for the scan.
    fn received(&mut self, request: &mut Request<DriverMsg>) {
        if request.message.get_speed_and_scan.is_some() {
            request.message.get_scan = None;
        }
    }

    async fn drive(&mut self, speeds: MotorsSpeed, outcome: Outcome) {
        self.wheels.drive(speeds.into(), outcome).await;
    }

    async fn speeds(&mut self, reply: Reply<MotorsSpeed>) {
        self.wheels.ask(Question::Speeds(reply)).await;
    }

    async fn scan(&mut self, reply: Reply<Scan>) {
        self.wheels.ask(Question::Scan(reply)).await;
    }

    async fn speeds_and_scan(&mut self, reply: Reply<SpeedsAndScanAnswer>) {
        self.wheels.ask(Question::SpeedsAndScan(reply)).await;
    }

    async fn drive_as_roboclaw(&mut self, speeds: roboclaw::MotorsSpeed, outcome: Outcome) {
        self.wheels.drive(speeds.into(), outcome).await;
    }

    async fn speeds_as_roboclaw(&mut self, reply: Reply<roboclaw::MotorsSpeed>) {
        self.wheels.ask(Question::SpeedsAsRoboclaw(reply)).await;
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

impl GuardedDevice for CollisionAvoidance {
    type Question = Question;
    type Message = DriverMsg;
    type Link = CollisionAvoidanceLink;

    fn answer(
        question: Question,
        speeds: Option<WheelSpeeds>,
        scan: Option<&values::Scan>,
    ) -> Result<(), Question> {
        match (question, speeds, scan) {
            (Question::Speeds(reply), Some(speeds), _) => reply.send(speeds.into()),
            (Question::SpeedsAsRoboclaw(reply), Some(speeds), _) => reply.send(speeds.into()),
            (Question::Scan(reply), _, Some(scan)) => reply.send(scan.into()),
            (Question::SpeedsAndScan(reply), Some(speeds), Some(scan)) => {
                reply.send(SpeedsAndScanAnswer {
                    motors_speed: speeds.into(),
                    scan: scan.into(),
                });
            }
            (question, ..) => return Err(question),
        }
        Ok(())
    }

    fn refuse(question: Question) {
        let no_speeds = "no current wheel speeds are available";
        match question {
            Question::Speeds(reply) => reply.refuse(no_speeds),
            Question::SpeedsAsRoboclaw(reply) => reply.refuse(no_speeds),
            Question::Scan(reply) => reply.refuse("no current scan is available"),
            Question::SpeedsAndScan(reply) => {
                reply.refuse("no current scan or wheel speeds are available");
            }
        }
    }

    fn publish(link: &CollisionAvoidanceLink, speeds: WheelSpeeds, scan: &values::Scan) {
        complain(link.readings(ReadingsData {
            motors_speed: speeds.into(),
            scan: scan.into(),
        }));
    }
}

#[cfg(test)]
mod tests;
