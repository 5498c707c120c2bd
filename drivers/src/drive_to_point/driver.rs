//! The driver between clients and the pilot. IO.

use std::error::Error;
use std::time::{Duration, Instant};

use amber_driver::devices::drive_to_point::{
    Configuration, DriveToPointDriver, DriveToPointLink, Go, NextTargetAnswer, NextTargetsAnswer,
    ProgressAnswer, Targets, VisitedTargetAnswer, VisitedTargetsAnswer,
};
use amber_driver::proto::order::{Order, Orders};
use amber_driver::{ClientId, Outcome, Reply};
use tokio::time::sleep;

use super::pilot::{ClientRequest, Question, ToPoint};
use super::{NoPilot, Plan};
use crate::described::Described;
use crate::device_task::DeviceTask;
use crate::moving::wheel_task::WheelTask;
use crate::robot_options::{Setup, Stated};

/// The time between two attempts to read a map that is missing or invalid.
const AGAIN: Duration = Duration::from_secs(2);

/// The driver of a robot that drives to targets.
pub(super) struct DriveToPoint {
    robot: Described,
    plan: Plan,
    /// `Some` until the start, if the options say enough.
    ready: Option<(Setup, ToPoint)>,
    task: DeviceTask<ClientRequest>,
    /// `Some` after the start.
    link: Option<DriveToPointLink>,
}

impl DriveToPoint {
    pub(super) fn new(stated: Stated, plan: Plan, ready: Option<(Setup, ToPoint)>) -> Self {
        Self {
            robot: Described::new(stated),
            plan,
            ready,
            task: DeviceTask::default(),
            link: None,
        }
    }

    /// The pilot of this robot. Waits for the map, and says what is wrong with it.
    async fn pilot(
        &self,
        setup: Setup,
        link: &DriveToPointLink,
    ) -> Result<(Setup, ToPoint), NoPilot> {
        let mut said = String::new();
        loop {
            match self.plan.pilot(setup.clone()) {
                Err(NoPilot::Map(error)) => {
                    let why = error.to_string();
                    link.trouble(&why);
                    if said != why {
                        tracing::error!("{why}; hint: {}", error.hint());
                        said = why;
                    }
                    sleep(AGAIN).await;
                }
                ready => {
                    link.recovered();
                    return ready;
                }
            }
        }
    }

    fn begin(&mut self, (setup, pilot): (Setup, ToPoint)) {
        if let Some(link) = self.link.clone() {
            self.task.open(WheelTask::new(pilot, setup, &link), link);
        }
    }

    async fn ask(&self, question: Question) {
        self.task.request(ClientRequest::Ask(question)).await;
    }
}

impl DriveToPointDriver for DriveToPoint {
    async fn start(&mut self, link: DriveToPointLink) -> Result<(), Box<dyn Error + Send + Sync>> {
        let ready = match self.ready.take() {
            Some(ready) => ready,
            None => {
                let setup = self.robot.setup(&link).await;
                self.pilot(setup, &link).await?
            }
        };
        self.link = Some(link);
        self.begin(ready);
        Ok(())
    }

    fn wake_at(&self) -> Option<Instant> {
        self.robot.look_at()
    }

    /// If the robot has another shape, the targets end and the driver begins again.
    async fn wake(&mut self) {
        let Some(setup) = self.robot.changed() else {
            return;
        };
        match self.plan.pilot(setup) {
            Ok(ready) => {
                self.task.close().await;
                self.begin(ready);
            }
            Err(error) => tracing::error!("{error}; the shape before counts"),
        }
    }

    async fn set_targets(&mut self, targets: Targets, outcome: Outcome) {
        self.task
            .request(ClientRequest::SetTargets(outcome, targets))
            .await;
    }

    async fn go(&mut self, go: Go, reply: Reply<Order>) {
        self.task.request(ClientRequest::Go(reply, go)).await;
    }

    async fn order(&mut self, id: u64, reply: Reply<Order>) {
        self.ask(Question::Order(reply, id)).await;
    }

    async fn cancel_order(&mut self, id: u64, reply: Reply<Order>) {
        self.task
            .request(ClientRequest::CancelOrder(reply, id))
            .await;
    }

    async fn orders(&mut self, reply: Reply<Orders>) {
        self.ask(Question::Orders(reply)).await;
    }

    async fn next_target(&mut self, reply: Reply<NextTargetAnswer>) {
        self.ask(Question::NextTarget(reply)).await;
    }

    async fn next_targets(&mut self, reply: Reply<NextTargetsAnswer>) {
        self.ask(Question::NextTargets(reply)).await;
    }

    async fn visited_target(&mut self, reply: Reply<VisitedTargetAnswer>) {
        self.ask(Question::VisitedTarget(reply)).await;
    }

    async fn visited_targets(&mut self, reply: Reply<VisitedTargetsAnswer>) {
        self.ask(Question::VisitedTargets(reply)).await;
    }

    async fn configuration(&mut self, reply: Reply<Configuration>) {
        self.ask(Question::Configuration(reply)).await;
    }

    async fn progress(&mut self, reply: Reply<ProgressAnswer>) {
        self.ask(Question::Progress(reply)).await;
    }

    fn handles_gone_clients(&self) -> bool {
        true
    }

    async fn client_gone(&mut self, client: ClientId) {
        self.task.request(ClientRequest::ClientGone(client)).await;
    }

    async fn shutdown(&mut self) {
        self.task.close().await;
    }
}

#[cfg(test)]
mod tests;
