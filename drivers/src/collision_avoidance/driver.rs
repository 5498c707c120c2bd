//! The driver between clients and the guard. IO.

use std::borrow::Cow;
use std::error::Error;
use std::time::Duration;

use amber_driver::devices::collision_avoidance::{
    CollisionAvoidanceDriver, CollisionAvoidanceLink, DriverMsg, MotorsSpeed, ReadingsData, Scan,
    SpeedsAndScanAnswer,
};
use amber_driver::{ClientId, Outcome, Reply, Request};
use amber_navigation::kinematics::Wheels;
use amber_proto::roboclaw;
use amber_values::WheelSpeeds;

use crate::desk::{Desk, finish};
use crate::moving::guard::Guard;
use crate::moving::options::Setup;
use crate::moving::pilot::{Input, Pilot};
use crate::moving::robot::Robot;
use crate::moving::waiting::Waiting;
use crate::stream::complain;

/// The driver of a robot that avoids collisions.
pub(super) struct CollisionAvoidance {
    /// `Some` until the start.
    setup: Option<Setup>,
    desk: Desk<ClientRequest>,
}

/// A request for the task that owns the wheels.
#[derive(Debug)]
enum ClientRequest {
    Drive(Outcome, WheelSpeeds),
    Ask(Question),
    ClientGone(ClientId),
}

/// A request with an answer.
#[derive(Debug)]
enum Question {
    Speeds(Reply<MotorsSpeed>),
    SpeedsAsRoboclaw(Reply<roboclaw::MotorsSpeed>),
    Scan(Reply<Scan>),
    SpeedsAndScan(Reply<SpeedsAndScanAnswer>),
}

impl Question {
    fn refuse(self) {
        let no_speeds = "there are no new wheel speeds";
        match self {
            Self::Speeds(reply) => reply.refuse(no_speeds),
            Self::SpeedsAsRoboclaw(reply) => reply.refuse(no_speeds),
            Self::Scan(reply) => reply.refuse("there is no new scan"),
            Self::SpeedsAndScan(reply) => reply.refuse("there is no new scan or wheel speed"),
        }
    }
}

impl CollisionAvoidance {
    pub(super) fn new(setup: Setup) -> Self {
        Self {
            setup: Some(setup),
            desk: Desk::default(),
        }
    }
}

impl CollisionAvoidanceDriver for CollisionAvoidance {
    async fn start(
        &mut self,
        link: CollisionAvoidanceLink,
    ) -> Result<(), Box<dyn Error + Send + Sync>> {
        if let Some(setup) = self.setup.take() {
            let pilot = Guarded {
                guard: Guard::new(setup.collision),
                waiting: Waiting::default(),
                has_new_scan: false,
            };
            self.desk.open(Robot::new(pilot, setup, &link), link);
        }
        Ok(())
    }

    /// The original looks for both values before it looks for the scan.
    fn received(&mut self, request: &mut Request<DriverMsg>) {
        if request.message.get_speed_and_scan.is_some() {
            request.message.get_scan = None;
        }
    }

    async fn drive(&mut self, speeds: MotorsSpeed, outcome: Outcome) {
        self.desk
            .request(ClientRequest::Drive(outcome, speeds.into()))
            .await;
    }

    async fn speeds(&mut self, reply: Reply<MotorsSpeed>) {
        self.desk
            .request(ClientRequest::Ask(Question::Speeds(reply)))
            .await;
    }

    async fn scan(&mut self, reply: Reply<Scan>) {
        self.desk
            .request(ClientRequest::Ask(Question::Scan(reply)))
            .await;
    }

    async fn speeds_and_scan(&mut self, reply: Reply<SpeedsAndScanAnswer>) {
        let question = Question::SpeedsAndScan(reply);
        self.desk.request(ClientRequest::Ask(question)).await;
    }

    async fn drive_as_roboclaw(&mut self, speeds: roboclaw::MotorsSpeed, outcome: Outcome) {
        self.desk
            .request(ClientRequest::Drive(outcome, speeds.into()))
            .await;
    }

    async fn speeds_as_roboclaw(&mut self, reply: Reply<roboclaw::MotorsSpeed>) {
        let question = Question::SpeedsAsRoboclaw(reply);
        self.desk.request(ClientRequest::Ask(question)).await;
    }

    async fn client_gone(&mut self, client: ClientId) {
        self.desk.request(ClientRequest::ClientGone(client)).await;
    }

    async fn shutdown(&mut self) {
        self.desk.close().await;
    }
}

/// The guard, with the requests that wait for its first measurements.
struct Guarded {
    guard: Guard,
    waiting: Waiting<Question>,
    has_new_scan: bool,
}

impl Pilot for Guarded {
    type Request = ClientRequest;
    type Message = DriverMsg;
    type Link = CollisionAvoidanceLink;

    fn request(&mut self, now: Duration, _link: &CollisionAvoidanceLink, request: ClientRequest) {
        match request {
            ClientRequest::Drive(outcome, speeds) => {
                let done = self.guard.drive(now, outcome.client(), speeds);
                let refusal = done.err().map(|refusal| refusal.to_string());
                finish(outcome, refusal.as_deref());
            }
            ClientRequest::Ask(question) => self.waiting.push(now, question),
            ClientRequest::ClientGone(client) => self.guard.handle_client_gone(now, client),
        }
    }

    fn handle(&mut self, now: Duration, input: Input) {
        self.has_new_scan |= matches!(input, Input::Scan(..));
        self.guard.handle(now, input);
    }

    fn step(&mut self, now: Duration) -> Wheels {
        self.guard.step(now)
    }

    fn tell(&mut self, now: Duration, link: &CollisionAvoidanceLink) {
        let (speeds, scan) = (self.guard.speeds(now), self.guard.scan(now));
        let late = self
            .waiting
            .answer(now, |question| match (question, speeds, scan) {
                (Question::Speeds(reply), Some(speeds), _) => {
                    reply.send(speeds.into());
                    Ok(())
                }
                (Question::SpeedsAsRoboclaw(reply), Some(speeds), _) => {
                    reply.send(speeds.into());
                    Ok(())
                }
                (Question::Scan(reply), _, Some(scan)) => {
                    reply.send(scan.into());
                    Ok(())
                }
                (Question::SpeedsAndScan(reply), Some(speeds), Some(scan)) => {
                    reply.send(SpeedsAndScanAnswer {
                        motors_speed: speeds.into(),
                        scan: scan.into(),
                    });
                    Ok(())
                }
                (question, ..) => Err(question),
            });
        late.for_each(Question::refuse);
        if std::mem::take(&mut self.has_new_scan)
            && link.subscriptions() > 0
            && let (Some(speeds), Some(scan)) = (speeds, scan)
        {
            let readings = ReadingsData {
                motors_speed: speeds.into(),
                scan: scan.into(),
            };
            complain(link.readings(readings));
        }
    }

    fn trouble(&self) -> Option<Cow<'_, str>> {
        self.guard.trouble().map(Cow::Owned)
    }

    fn counters(&self) -> String {
        format!(
            "{} unanswered: {}",
            self.guard.counters(),
            self.waiting.dropped()
        )
    }
}

#[cfg(test)]
mod tests;
