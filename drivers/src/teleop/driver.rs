//! The driver between clients and both arms, of which it is a client. IO.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::error::Error;
use std::time::{Duration, SystemTime};

use amber_driver::client::proxy::Arm;
use amber_driver::client::{Client, Error as ClientError, Result as ClientResult};
use amber_driver::devices::teleop::{
    DriverMsg, FollowLeader, TeleopDriver, TeleopLink, TeleopOutcome, TeleopState,
};
use amber_driver::{Outcome, Reply, now};
use amber_proto::Device;
use amber_proto::arm::ArmState;
use amber_proto::motion::MotionState;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use super::Settings;
use super::logic::{Output, TeleopLogic};
use crate::device_task::{DeviceTask, Next, Owner, finish, until};
use crate::followed::{forward, forward_motion};
use crate::moving::lease::{Kept, follow_lease};
use crate::sources::{self, RobotClock};
use crate::stream::{Said, complain};

/// Arms answer from memory.
const DEADLINE: Duration = Duration::from_millis(500);
/// A command that cannot be sent in this time is outdated.
const SEND_DEADLINE: Duration = Duration::from_millis(100);
/// How long the follower obeys: several of the measurements of the leader, twenty to fifty a second.
const VALIDITY: Duration = Duration::from_millis(150);
/// The number of events that may wait.
const MAX_WAITING: usize = 32;

/// The driver.
pub(super) struct ArmsTeleop {
    settings: Settings,
    task: DeviceTask<TeleopRequest>,
}

/// A request for the task that owns the logic.
#[derive(Debug)]
pub(super) enum TeleopRequest {
    State(Reply<TeleopState>),
    Follow(Reply<TeleopOutcome>, FollowLeader),
    Stop(Outcome),
}

/// What the driver learns of an arm.
type News = Result<ArmState, String>;

/// What the driver learns of both arms.
#[derive(Debug)]
enum Event {
    /// With the age of what was measured.
    Leader(Duration, News),
    Follower(News),
    Motion(MotionState),
}

impl ArmsTeleop {
    pub(super) fn new(settings: Settings) -> Self {
        Self {
            settings,
            task: DeviceTask::default(),
        }
    }
}

impl TeleopDriver for ArmsTeleop {
    async fn start(&mut self, link: TeleopLink) -> Result<(), Box<dyn Error + Send + Sync>> {
        self.task.open(TeleopTask::new(&self.settings, &link), link);
        Ok(())
    }

    async fn state(&mut self, reply: Reply<TeleopState>) {
        if reply.is_possible() {
            self.task.request(TeleopRequest::State(reply)).await;
        }
    }

    async fn follow(&mut self, command: FollowLeader, reply: Reply<TeleopOutcome>) {
        let request = TeleopRequest::Follow(reply, command);
        self.task.request(request).await;
    }

    async fn stop(&mut self, outcome: Outcome) {
        self.task.request(TeleopRequest::Stop(outcome)).await;
    }

    async fn shutdown(&mut self) {
        self.task.close().await;
    }
}

/// The task that owns the logic.
struct TeleopTask {
    logic: TeleopLogic,
    follower: Arm,
    /// The lease of the follower.
    lease: Kept,
    events: mpsc::Receiver<Event>,
    /// Whether to ask who moves the follower.
    asks_who: watch::Sender<bool>,
    /// Clients that wait for the end.
    waiting: VecDeque<Reply<TeleopOutcome>>,
    said: Said,
    is_ending: bool,
    /// They end with this.
    _tasks: JoinSet<()>,
}

impl TeleopTask {
    fn new(settings: &Settings, link: &TeleopLink) -> Self {
        let Settings {
            leader, follower, ..
        } = *settings;
        let (sender, events) = mpsc::channel(MAX_WAITING);
        let mut tasks = JoinSet::new();
        let own = link.devices();
        let leading = follow_leader(
            own.clone(),
            settings.leader_of.clone(),
            leader,
            sender.clone(),
        );
        tasks.spawn(leading);
        let followed = Arm::new(own.device(follower)).with_deadline(DEADLINE);
        tasks.spawn(follow_follower(followed, sender.clone()));
        let (asks_who, asked) = watch::channel(false);
        let moved = own.device(follower).with_deadline(DEADLINE);
        tasks.spawn(forward_motion(moved, asked, sender, Event::Motion));
        let told = Arm::new(own.device(follower)).with_deadline(SEND_DEADLINE);
        Self {
            logic: TeleopLogic::new(leader, follower, settings.pairs.clone(), now()),
            follower: told,
            lease: follow_lease(link, follower),
            events,
            asks_who,
            waiting: VecDeque::new(),
            said: Said::default(),
            is_ending: false,
            _tasks: tasks,
        }
    }

    fn handle(&mut self, event: Event) {
        let now = now();
        match event {
            Event::Leader(delay, Ok(state)) => self.logic.handle_leader(now, delay, state),
            Event::Leader(_, Err(why)) => self.logic.leader_failed(now, why),
            Event::Follower(Ok(state)) => self.logic.handle_follower(now, state),
            Event::Follower(Err(why)) => self.logic.follower_failed(now, why),
            Event::Motion(state) => self.logic.handle_motion(&state),
        }
    }
}

impl Owner for TeleopTask {
    type Request = TeleopRequest;
    type Message = DriverMsg;
    type Link = TeleopLink;
    type Action = Output;

    fn request(&mut self, _link: &TeleopLink, request: TeleopRequest) {
        match request {
            TeleopRequest::State(reply) => match self.logic.state(now()) {
                Ok(state) => reply.send(state),
                Err(why) => reply.refuse(&why),
            },
            TeleopRequest::Follow(reply, command) => {
                match self.logic.follow(now(), reply.client(), command) {
                    Ok(()) => self.waiting.push_back(reply),
                    Err(why) => reply.refuse(&why),
                }
            }
            TeleopRequest::Stop(outcome) => {
                self.logic.stop(outcome.origin().stop_cause.as_ref());
                finish(outcome, None);
            }
        }
    }

    fn shut_down(&mut self) {
        self.logic.shut_down();
        self.is_ending = true;
    }

    fn next(&mut self, link: &TeleopLink) -> Next<Output> {
        self.logic.handle_timeout(now());
        while let Some(outcome) = self.logic.poll_end() {
            if let Some(reply) = self.waiting.pop_front() {
                reply.send(outcome);
            }
        }
        self.said.say(self.logic.trouble(), "both arms can be used");
        if self.logic.take_fresh()
            && link.subscriptions() > 0
            && let Ok(state) = self.logic.state(now())
        {
            complain(link.state_updates(state));
        }
        self.asks_who.send_if_modified(|before| {
            let is_wanted = self.logic.wants_motion_state();
            std::mem::replace(before, is_wanted) != is_wanted
        });
        match self.logic.poll_output() {
            Some(output) => Next::Perform(output),
            None if self.is_ending => Next::End,
            None => Next::Wait,
        }
    }

    async fn perform(&mut self, output: Output) {
        // Another client moves the follower.
        if self.lease.is_refused() {
            return;
        }
        let follower = self.follower.clone().for_client(self.logic.client());
        let sent = match output {
            Output::Follow(positions) => {
                let streamed = follower.with_validity(VALIDITY);
                streamed.follow(&positions).await
            }
            Output::Stop => follower.stop().await,
        };
        if let Err(error) = sent {
            // What the follower says next shows it.
            tracing::debug!("a command was not sent: {error}");
        }
    }

    async fn wait(&mut self) {
        tokio::select! {
            Some(event) = self.events.recv() => self.handle(event),
            () = until(Some(self.logic.wake_at())) => {}
        }
    }

    fn trouble(&self) -> Option<Cow<'_, str>> {
        self.logic.trouble().map(Cow::Borrowed)
    }

    fn log_counters(&self) {
        tracing::debug!(counters = ?self.logic.counters, "ended");
    }
}

/// Passes on what the leader publishes, of this mediator or another one.
async fn follow_leader(
    own: Client,
    mediator: Option<String>,
    leader: Device,
    events: mpsc::Sender<Event>,
) {
    let failed = |error: ClientError| {
        // If this is lost, there is another one soon.
        let _ = events.try_send(Event::Leader(Duration::ZERO, Err(error.to_string())));
    };
    let client = sources::client(&own, mediator.as_deref(), failed).await;
    let leader = Arm::new(client.device(leader)).with_deadline(DEADLINE);
    let mut clock = RobotClock::default();
    let event = |state: ClientResult<ArmState>| {
        let measured_ms = state.as_ref().ok().and_then(|it| Some(it.time? / 1_000));
        let delay = clock.age(measured_ms, SystemTime::now());
        Event::Leader(delay, news(state))
    };
    let published = leader.state_updates().await;
    forward(published, || leader.state(), events.clone(), event).await;
}

/// Passes on what the follower publishes.
async fn follow_follower(follower: Arm, events: mpsc::Sender<Event>) {
    let published = follower.state_updates().await;
    let event = |state| Event::Follower(news(state));
    forward(published, || follower.state(), events, event).await;
}

fn news(state: ClientResult<ArmState>) -> News {
    state.map_err(|error| match error {
        ClientError::Refused { message, .. } => message,
        error => error.to_string(),
    })
}
