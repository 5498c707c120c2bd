//! The driver between clients and the pilot. IO.

use std::error::Error;

use amber_driver::devices::pid_follow_trajectory::{
    Configuration, Follow, PidFollowTrajectoryDriver, PidFollowTrajectoryLink, Targets,
};
use amber_driver::proto::order::{Order, Orders};
use amber_driver::{ClientId, Outcome, Reply};

use super::pilot::{ClientRequest, Following};
use crate::desk::Desk;
use crate::moving::robot::Robot;
use crate::robot_options::Setup;

/// The driver of a robot that follows a trajectory.
pub(super) struct PidFollowTrajectory {
    /// `Some` until the start.
    parts: Option<(Setup, Following)>,
    desk: Desk<ClientRequest>,
}

impl PidFollowTrajectory {
    pub(super) fn new(setup: Setup, pilot: Following) -> Self {
        Self {
            parts: Some((setup, pilot)),
            desk: Desk::default(),
        }
    }
}

impl PidFollowTrajectoryDriver for PidFollowTrajectory {
    async fn start_driver(
        &mut self,
        link: PidFollowTrajectoryLink,
    ) -> Result<(), Box<dyn Error + Send + Sync>> {
        if let Some((setup, pilot)) = self.parts.take() {
            self.desk.open(Robot::new(pilot, setup, &link), link);
        }
        Ok(())
    }

    async fn set_targets(
        &mut self,
        targets: Targets,
        configuration: Configuration,
        outcome: Outcome,
    ) {
        let request = ClientRequest::SetTargets(outcome, targets, configuration);
        self.desk.request(request).await;
    }

    async fn follow(&mut self, follow: Follow, reply: Reply<Order>) {
        let request = ClientRequest::Follow(reply, follow);
        self.desk.request(request).await;
    }

    async fn order(&mut self, id: u64, reply: Reply<Order>) {
        self.desk.request(ClientRequest::Order(reply, id)).await;
    }

    async fn cancel_order(&mut self, id: u64, reply: Reply<Order>) {
        let request = ClientRequest::CancelOrder(reply, id);
        self.desk.request(request).await;
    }

    async fn orders(&mut self, reply: Reply<Orders>) {
        self.desk.request(ClientRequest::Orders(reply)).await;
    }

    async fn next_targets(&mut self, reply: Reply<Targets>) {
        self.desk.request(ClientRequest::NextTargets(reply)).await;
    }

    async fn visited_targets(&mut self, reply: Reply<Targets>) {
        self.desk
            .request(ClientRequest::VisitedTargets(reply))
            .await;
    }

    async fn start(&mut self, outcome: Outcome) {
        self.desk.request(ClientRequest::Start(outcome)).await;
    }

    async fn stop(&mut self, outcome: Outcome) {
        self.desk.request(ClientRequest::Stop(outcome)).await;
    }

    async fn step(&mut self, outcome: Outcome) {
        self.desk.request(ClientRequest::Step(outcome)).await;
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
