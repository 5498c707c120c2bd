//! The driver between clients and the pilot. IO.

use std::error::Error;
use std::time::Instant;

use amber_driver::devices::pid_follow_trajectory::{
    Configuration, Follow, PidFollowTrajectoryDriver, PidFollowTrajectoryLink, Targets,
};
use amber_driver::proto::order::{Order, Orders};
use amber_driver::{ClientId, Outcome, Reply};

use super::Plan;
use super::pilot::ClientRequest;
use crate::described::Described;
use crate::device_task::DeviceTask;
use crate::moving::wheel_task::WheelTask;
use crate::robot_options::{Setup, Stated};

/// The driver of a robot that follows a trajectory.
pub(super) struct PidFollowTrajectory {
    robot: Described,
    plan: Plan,
    task: DeviceTask<ClientRequest>,
    /// `Some` after the start.
    link: Option<PidFollowTrajectoryLink>,
}

impl PidFollowTrajectory {
    pub(super) fn new(stated: Stated, plan: Plan) -> Self {
        Self {
            robot: Described::new(stated),
            plan,
            task: DeviceTask::default(),
            link: None,
        }
    }

    fn begin(&mut self, setup: Setup) {
        if let Some(link) = self.link.clone() {
            let (setup, pilot) = self.plan.pilot(setup);
            self.task.open(WheelTask::new(pilot, setup, &link), link);
        }
    }
}

impl PidFollowTrajectoryDriver for PidFollowTrajectory {
    async fn start_driver(
        &mut self,
        link: PidFollowTrajectoryLink,
    ) -> Result<(), Box<dyn Error + Send + Sync>> {
        let setup = self.robot.setup(&link).await;
        self.link = Some(link);
        self.begin(setup);
        Ok(())
    }

    fn wake_at(&self) -> Option<Instant> {
        self.robot.look_at()
    }

    /// If the robot has another shape, the trajectory ends and the driver begins again.
    async fn wake(&mut self) {
        if let Some(setup) = self.robot.changed() {
            self.task.close().await;
            self.begin(setup);
        }
    }

    async fn set_targets(
        &mut self,
        targets: Targets,
        configuration: Configuration,
        outcome: Outcome,
    ) {
        let request = ClientRequest::SetTargets(outcome, targets, configuration);
        self.task.request(request).await;
    }

    async fn follow(&mut self, follow: Follow, reply: Reply<Order>) {
        let request = ClientRequest::Follow(reply, follow);
        self.task.request(request).await;
    }

    async fn order(&mut self, id: u64, reply: Reply<Order>) {
        self.task.request(ClientRequest::Order(reply, id)).await;
    }

    async fn cancel_order(&mut self, id: u64, reply: Reply<Order>) {
        let request = ClientRequest::CancelOrder(reply, id);
        self.task.request(request).await;
    }

    async fn orders(&mut self, reply: Reply<Orders>) {
        self.task.request(ClientRequest::Orders(reply)).await;
    }

    async fn next_targets(&mut self, reply: Reply<Targets>) {
        self.task.request(ClientRequest::NextTargets(reply)).await;
    }

    async fn visited_targets(&mut self, reply: Reply<Targets>) {
        self.task
            .request(ClientRequest::VisitedTargets(reply))
            .await;
    }

    async fn start(&mut self, outcome: Outcome) {
        self.task.request(ClientRequest::Start(outcome)).await;
    }

    async fn stop(&mut self, outcome: Outcome) {
        self.task.request(ClientRequest::Stop(outcome)).await;
    }

    async fn step(&mut self, outcome: Outcome) {
        self.task.request(ClientRequest::Step(outcome)).await;
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
