//! The driver between clients and the servos, of which it is a client. IO.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::error::Error;
use std::time::Duration;

use amber_driver::client::proxy::BusServos;
use amber_driver::client::{Error as ClientError, Result as ClientResult};
use amber_driver::devices::arm::{
    ArmDescription, ArmDriver, ArmLink, ArmOutcome, ArmState, ArmTorque, DriverMsg, JointPositions,
    MoveArm,
};
use amber_driver::{Outcome, Reply, now};
use amber_proto::bus_servos::ServoStates;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::Settings;
use super::joints::Arm;
use super::logic::{ArmLogic, Ended, Output};
use crate::device_task::{DeviceTask, Next, Owner, finish, until};
use crate::followed::forward;
use crate::moving::lease::{Kept, follow_lease};
use crate::stream::{complain, say};

/// Servos answer from memory.
const DEADLINE: Duration = Duration::from_millis(500);
/// A command that cannot be sent in this time is outdated.
const SEND_DEADLINE: Duration = Duration::from_millis(100);
/// How long a set point holds at the servos: fifteen of them, so that they survive a busy computer. If
/// this driver or the mediator freezes, the servos hold their places then.
const VALIDITY: Duration = Duration::from_millis(300);
/// More measurements than this never wait.
const MAX_WAITING: usize = 16;

/// The driver of an arm.
pub(super) struct ArmOfServos {
    /// `Some` until the start.
    start: Option<(Settings, Arm)>,
    task: DeviceTask<ArmRequest>,
    /// Follows the servos.
    feeds: JoinSet<()>,
}

/// A request for the task that owns the arm.
#[derive(Debug)]
pub(super) enum ArmRequest {
    State(Reply<ArmState>),
    Description(Reply<ArmDescription>),
    Follow(Outcome, JointPositions),
    MoveTo(Reply<ArmOutcome>, MoveArm),
    Stop(Outcome),
    Torque(Reply<ArmState>, ArmTorque),
}

impl ArmOfServos {
    pub(super) fn new(settings: Settings, arm: Arm) -> Self {
        Self {
            start: Some((settings, arm)),
            task: DeviceTask::default(),
            feeds: JoinSet::new(),
        }
    }
}

impl ArmDriver for ArmOfServos {
    async fn start(&mut self, link: ArmLink) -> Result<(), Box<dyn Error + Send + Sync>> {
        if let Some((settings, arm)) = self.start.take() {
            let servos = BusServos::new(link.devices().device(settings.servos));
            let (feed, feeds) = mpsc::channel(MAX_WAITING);
            let asked = servos.clone().with_deadline(DEADLINE);
            self.feeds.spawn(follow_servos(asked, feed));
            let told = servos.with_deadline(SEND_DEADLINE);
            let task = ArmTask {
                logic: ArmLogic::new(arm, settings.rules, now()),
                lease: follow_lease(&link, settings.servos),
                feeds,
                streamed: told.clone().with_validity(VALIDITY),
                told,
                moves: VecDeque::new(),
                torques: VecDeque::new(),
                is_ending: false,
            };
            self.task.open(task, link);
        }
        Ok(())
    }

    async fn state(&mut self, reply: Reply<ArmState>) {
        self.task.request(ArmRequest::State(reply)).await;
    }

    async fn description(&mut self, reply: Reply<ArmDescription>) {
        self.task.request(ArmRequest::Description(reply)).await;
    }

    async fn follow(&mut self, command: JointPositions, outcome: Outcome) {
        let request = ArmRequest::Follow(outcome, command);
        self.task.request(request).await;
    }

    async fn move_to(&mut self, command: MoveArm, reply: Reply<ArmOutcome>) {
        self.task.request(ArmRequest::MoveTo(reply, command)).await;
    }

    async fn stop(&mut self, outcome: Outcome) {
        self.task.request(ArmRequest::Stop(outcome)).await;
    }

    async fn set_torque(&mut self, command: ArmTorque, reply: Reply<ArmState>) {
        self.task.request(ArmRequest::Torque(reply, command)).await;
    }

    async fn shutdown(&mut self) {
        self.task.close().await;
        self.feeds.shutdown().await;
    }
}

/// The arm, moved as the logic decides.
struct ArmTask {
    logic: ArmLogic,
    /// The lease of the servos.
    lease: Kept,
    feeds: mpsc::Receiver<Result<ServoStates, String>>,
    /// The servos, for commands that are repeated ...
    streamed: BusServos,
    /// ... and for those that hold.
    told: BusServos,
    /// Clients that wait for the end of a motion, ...
    moves: VecDeque<Reply<ArmOutcome>>,
    /// ... and for the torque.
    torques: VecDeque<Reply<ArmState>>,
    is_ending: bool,
}

impl ArmTask {
    /// Sends what clients wait for.
    fn answer(&mut self) {
        while let Some(ended) = self.logic.poll_end() {
            match ended {
                Ended::Move(outcome) => {
                    if let Some(reply) = self.moves.pop_front() {
                        reply.send(outcome);
                    }
                }
                Ended::Torque(how) => {
                    if let Some(reply) = self.torques.pop_front() {
                        match how.and_then(|()| self.logic.state()) {
                            Ok(state) => reply.send(state),
                            Err(why) => reply.refuse(&why),
                        }
                    }
                }
            }
        }
    }
}

impl Owner for ArmTask {
    type Request = ArmRequest;
    type Message = DriverMsg;
    type Link = ArmLink;
    type Action = Output;

    fn request(&mut self, _link: &ArmLink, request: ArmRequest) {
        let now = now();
        match request {
            ArmRequest::State(reply) => match self.logic.state() {
                Ok(state) => reply.send(state),
                Err(why) => reply.refuse(&why),
            },
            ArmRequest::Description(reply) => reply.send(self.logic.description()),
            ArmRequest::Follow(outcome, command) => {
                let (client, until) = (outcome.client(), outcome.origin().valid_until);
                let done = self.logic.follow(now, client, until, &command);
                finish(outcome, done.err().as_deref());
            }
            ArmRequest::MoveTo(reply, command) => {
                match self.logic.move_to(now, reply.client(), &command) {
                    Ok(()) => self.moves.push_back(reply),
                    Err(why) => reply.refuse(&why),
                }
            }
            ArmRequest::Stop(outcome) => {
                self.logic.stop(outcome.origin().stop_cause.as_ref());
                outcome.done();
            }
            ArmRequest::Torque(reply, command) => {
                match self.logic.set_torque(now, reply.client(), &command) {
                    Ok(()) => self.torques.push_back(reply),
                    Err(why) => reply.refuse(&why),
                }
            }
        }
    }

    fn shut_down(&mut self) {
        self.logic.shut_down();
        self.is_ending = true;
    }

    fn next(&mut self, link: &ArmLink) -> Next<Output> {
        self.logic.handle_timeout(now());
        self.answer();
        while let Some(note) = self.logic.poll_note() {
            say(&note, note.is_warning());
        }
        if self.logic.take_fresh()
            && link.subscriptions() > 0
            && let Ok(state) = self.logic.state()
        {
            complain(link.state_updates(state));
        }
        match self.logic.poll_output() {
            Some(output) => Next::Perform(output),
            None if self.is_ending => Next::End,
            None => Next::Wait,
        }
    }

    async fn perform(&mut self, output: Output) {
        // Another client moves the servos.
        if self.lease.is_refused() {
            return;
        }
        let client = self.logic.client();
        let told = self.told.clone().for_client(client);
        let sent = match output {
            Output::Move { targets, is_last } => {
                let servos = match is_last {
                    true => told,
                    false => self.streamed.clone().for_client(client),
                };
                servos.move_to(&targets, None).await
            }
            Output::Stop => told.stop().await,
            Output::Torque { on, ids } => told.set_torque(on, &ids).await,
        };
        if let Err(error) = sent {
            // What the servos say next shows it.
            tracing::debug!("a command was not sent: {error}");
        }
    }

    async fn wait(&mut self) {
        tokio::select! {
            Some(feed) = self.feeds.recv() => match feed {
                Ok(servos) => self.logic.handle_servos(now(), &servos),
                Err(why) => self.logic.handle_absence(now(), why),
            },
            () = until(self.logic.wake_at()) => {}
        }
    }

    fn trouble(&self) -> Option<Cow<'_, str>> {
        self.logic.trouble().map(Cow::Borrowed)
    }

    fn log_counters(&self) {
        tracing::debug!(counters = ?self.logic.counters(), "ended");
    }
}

/// Passes on what the servos publish, or why they do not.
async fn follow_servos(servos: BusServos, feed: mpsc::Sender<Result<ServoStates, String>>) {
    let device = servos.address();
    let news = |states: ClientResult<ServoStates>| {
        states.map_err(|error| match error {
            ClientError::Refused { message, .. } => format!("{device}: {message}"),
            error => format!("{device} does not say where the servos are: {error}"),
        })
    };
    forward(servos.servo_updates().await, || servos.servos(), feed, news).await;
}
