//! The driver between clients and the guard. IO.

use std::borrow::Cow;
use std::error::Error;
use std::time::Duration;

use amber_driver::devices::roboclaw::{DriverMsg, MotorsSpeed, RoboclawDriver, RoboclawLink};
use amber_driver::{ClientId, Outcome, Reply, Request};
use amber_navigation::kinematics::Wheels;
use amber_values::WheelSpeeds;

use crate::desk::{Desk, finish};
use crate::moving::guard::Guard;
use crate::moving::options::Setup;
use crate::moving::pilot::{Input, Pilot};
use crate::moving::robot::Robot;
use crate::moving::waiting::Waiting;

/// A Roboclaw that avoids collisions.
pub(super) struct DriveSupport {
    /// `Some` until the start.
    setup: Option<Setup>,
    desk: Desk<ClientRequest>,
}

/// A request for the task that owns the wheels.
#[derive(Debug)]
enum ClientRequest {
    Drive(Outcome, WheelSpeeds),
    Ask(Reply<MotorsSpeed>),
    ClientGone(ClientId),
}

impl DriveSupport {
    pub(super) fn new(setup: Setup) -> Self {
        Self {
            setup: Some(setup),
            desk: Desk::default(),
        }
    }
}

impl RoboclawDriver for DriveSupport {
    async fn start(&mut self, link: RoboclawLink) -> Result<(), Box<dyn Error + Send + Sync>> {
        if let Some(setup) = self.setup.take() {
            let pilot = Guarded {
                guard: Guard::new(setup.collision),
                waiting: Waiting::default(),
            };
            self.desk.open(Robot::new(pilot, setup, &link), link);
        }
        Ok(())
    }

    /// If a message holds a request and a command, only the request takes effect, as with Roboclaw.
    fn received(&mut self, request: &mut Request<DriverMsg>) {
        if request.message.current_speed_request.is_some() {
            request.message.motors_command = None;
        }
    }

    async fn drive(&mut self, speeds: MotorsSpeed, outcome: Outcome) {
        self.desk
            .request(ClientRequest::Drive(outcome, speeds.into()))
            .await;
    }

    async fn speeds(&mut self, reply: Reply<MotorsSpeed>) {
        self.desk.request(ClientRequest::Ask(reply)).await;
    }

    async fn client_gone(&mut self, client: ClientId) {
        self.desk.request(ClientRequest::ClientGone(client)).await;
    }

    async fn shutdown(&mut self) {
        self.desk.close().await;
    }
}

/// The guard, with the requests that wait for its first measurement.
struct Guarded {
    guard: Guard,
    waiting: Waiting<Reply<MotorsSpeed>>,
}

impl Pilot for Guarded {
    type Request = ClientRequest;
    type Message = DriverMsg;
    type Link = RoboclawLink;

    fn request(&mut self, now: Duration, _link: &RoboclawLink, request: ClientRequest) {
        match request {
            ClientRequest::Drive(outcome, speeds) => {
                let done = self.guard.drive(now, outcome.client(), speeds);
                let refusal = done.err().map(|refusal| refusal.to_string());
                finish(outcome, refusal.as_deref());
            }
            ClientRequest::Ask(reply) => self.waiting.push(now, reply),
            ClientRequest::ClientGone(client) => self.guard.handle_client_gone(now, client),
        }
    }

    fn handle(&mut self, now: Duration, input: Input) {
        self.guard.handle(now, input);
    }

    fn step(&mut self, now: Duration) -> Wheels {
        self.guard.step(now)
    }

    fn tell(&mut self, now: Duration, _link: &RoboclawLink) {
        let speeds = self.guard.speeds(now);
        let late = self.waiting.answer(now, |reply| match speeds {
            Some(speeds) => {
                reply.send(speeds.into());
                Ok(())
            }
            None => Err(reply),
        });
        late.for_each(|reply| reply.refuse("there are no new wheel speeds"));
    }

    fn trouble(&self) -> Option<Cow<'_, str>> {
        self.guard.trouble().map(Cow::Owned)
    }

    fn counters(&self) -> String {
        let dropped = self.waiting.dropped();
        format!("{} unanswered: {dropped}", self.guard.counters())
    }
}

#[cfg(test)]
mod tests;
