//! The gateway's own device: its status and its images. It also owns the task of the gateway. IO.

use std::error::Error;
use std::time::Duration;

use amber_driver::devices::gateway::{GatewayDriver, GatewayLink};
use amber_driver::{Outcome, Reply};
use amber_proto::DeviceMessage;
use amber_proto::gateway::{DriverMsg, GatewayStatus, RelayImage};
use amber_robot::limits::LAST_WORDS;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::event::Event;
use super::machine::Machine;
use super::runner::{Runner, Setup};

/// The time between two publications of the status.
const PERIOD: Duration = Duration::from_secs(1);
/// The machine answers immediately; a longer time means that it has ended.
const DEADLINE: Duration = Duration::from_millis(500);

/// Asks the task of the gateway for the status.
pub(super) type Question = oneshot::Sender<GatewayStatus>;

/// The driver of the gateway's own device.
pub(super) struct Status<M> {
    /// `Some` until the start.
    setup: Option<Setup<M>>,
    takes_images: bool,
    events: mpsc::Sender<Event>,
    questions: mpsc::Sender<Question>,
    stop: Option<oneshot::Sender<()>>,
    task: Option<JoinHandle<()>>,
}

impl<M: Machine> Status<M> {
    pub(super) fn new(
        setup: Setup<M>,
        events: mpsc::Sender<Event>,
        questions: mpsc::Sender<Question>,
    ) -> Self {
        Self {
            takes_images: setup.machine.takes_images(),
            setup: Some(setup),
            events,
            questions,
            stop: None,
            task: None,
        }
    }

    async fn ask(&self) -> Option<GatewayStatus> {
        let (question, answer) = oneshot::channel();
        self.questions.try_send(question).ok()?;
        timeout(DEADLINE, answer).await.ok()?.ok()
    }
}

impl<M: Machine> GatewayDriver for Status<M> {
    async fn start(&mut self, link: GatewayLink) -> Result<(), Box<dyn Error + Send + Sync>> {
        if let Some(setup) = self.setup.take() {
            let (stop, stopped) = oneshot::channel();
            let runner = Runner::new(setup, link);
            self.task = Some(tokio::spawn(runner.run(stopped)));
            self.stop = Some(stop);
        }
        Ok(())
    }

    async fn status(&mut self, reply: Reply<GatewayStatus>) {
        match self.ask().await {
            Some(status) => reply.send(status),
            None => reply.refuse("the gateway is busy"),
        }
    }

    async fn send_image(&mut self, image: RelayImage, outcome: Outcome) {
        if !self.takes_images {
            return outcome.refuse("this protocol has no images");
        }
        match self.events.try_send(Event::Image(image)) {
            Ok(()) => outcome.done(),
            Err(_) => outcome.refuse("the gateway is busy"),
        }
    }

    fn period(&self) -> Option<Duration> {
        Some(PERIOD)
    }

    async fn publish(&mut self) -> Option<DriverMsg> {
        let mut message = DriverMsg::data();
        message.gateway_status = Some(self.ask().await?);
        Some(message)
    }

    async fn shutdown(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        // The users have the same time to leave.
        if let Some(task) = &mut self.task
            && timeout(LAST_WORDS + DEADLINE / 4, task).await.is_err()
        {
            tracing::warn!("the gateway takes too long to stop");
        }
    }
}
