//! The driver between clients and the pilot. IO.

use std::error::Error;

use amber_driver::devices::drive_to_point::{
    Configuration, DriveToPointDriver, DriveToPointLink, Go, NextTargetAnswer, NextTargetsAnswer,
    ProgressAnswer, Targets, VisitedTargetAnswer, VisitedTargetsAnswer,
};
use amber_driver::proto::order::{Order, Orders};
use amber_driver::{ClientId, Outcome, Reply};

use super::pilot::{ClientRequest, Question, ToPoint};
use crate::desk::Desk;
use crate::moving::robot::Robot;
use crate::robot_options::Setup;

/// The driver of a robot that drives to targets.
pub(super) struct DriveToPoint {
    /// `Some` until the start.
    parts: Option<(Setup, ToPoint)>,
    desk: Desk<ClientRequest>,
}

impl DriveToPoint {
    pub(super) fn new(setup: Setup, pilot: ToPoint) -> Self {
        Self {
            parts: Some((setup, pilot)),
            desk: Desk::default(),
        }
    }

    async fn ask(&self, question: Question) {
        self.desk.request(ClientRequest::Ask(question)).await;
    }
}

impl DriveToPointDriver for DriveToPoint {
    async fn start(&mut self, link: DriveToPointLink) -> Result<(), Box<dyn Error + Send + Sync>> {
        if let Some((setup, pilot)) = self.parts.take() {
            self.desk.open(Robot::new(pilot, setup, &link), link);
        }
        Ok(())
    }

    async fn set_targets(&mut self, targets: Targets, outcome: Outcome) {
        self.desk
            .request(ClientRequest::SetTargets(outcome, targets))
            .await;
    }

    async fn go(&mut self, go: Go, reply: Reply<Order>) {
        self.desk.request(ClientRequest::Go(reply, go)).await;
    }

    async fn order(&mut self, id: u64, reply: Reply<Order>) {
        self.ask(Question::Order(reply, id)).await;
    }

    async fn cancel_order(&mut self, id: u64, reply: Reply<Order>) {
        self.desk
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
        self.desk.request(ClientRequest::ClientGone(client)).await;
    }

    async fn shutdown(&mut self) {
        self.desk.close().await;
    }
}

#[cfg(test)]
mod tests;
