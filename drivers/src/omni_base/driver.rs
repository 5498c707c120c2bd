//! The driver between clients of the base and the servos, of which it is a client. IO.

use std::borrow::Cow;
use std::error::Error;
use std::time::Duration;

use amber_driver::client::Error as ClientError;
use amber_driver::client::proxy::BusServos;
use amber_driver::devices::base::{self, BaseDriver, BaseLink, BaseState, DriverMsg, Odometry};
use amber_driver::{Outcome, Reply, now};
use amber_navigation::omni::Velocity;
use amber_proto::Device;
use amber_proto::bus_servos::ServoStates;
use amber_proto::motion::MotionState;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use super::logic::{BaseLogic, Order, Rules, State};
use crate::device_task::{DeviceTask, Next, Owner, finish, until};
use crate::followed::{forward, forward_motion};
use crate::moving::repeating::VALIDITY;
use crate::stream::{complain, say};

/// A command that cannot be sent in this time is outdated.
const SEND_DEADLINE: Duration = Duration::from_millis(100);
/// Later answers are ignored.
const DEADLINE: Duration = Duration::from_millis(200);
/// The number of events that may wait: a second of measurements.
const MAX_WAITING: usize = 32;

/// The driver.
pub(super) struct OmniBaseDriver {
    servos: Device,
    rules: Rules,
    task: DeviceTask<BaseRequest>,
}

/// A request for the task that owns the logic.
#[derive(Debug)]
pub(super) enum BaseRequest {
    Drive(Outcome, base::Velocity),
    State(Reply<BaseState>),
}

/// What the driver learns of the servos.
#[derive(Debug)]
enum Event {
    Measured(ServoStates),
    Failed(String),
    Motion(MotionState),
}

impl OmniBaseDriver {
    pub(super) fn new(servos: Device, rules: Rules) -> Self {
        Self {
            servos,
            rules,
            task: DeviceTask::default(),
        }
    }
}

impl BaseDriver for OmniBaseDriver {
    async fn start(&mut self, link: BaseLink) -> Result<(), Box<dyn Error + Send + Sync>> {
        let owner = BaseTask::new(self.servos, self.rules.clone(), &link);
        self.task.open(owner, link);
        Ok(())
    }

    async fn drive(&mut self, velocity: base::Velocity, outcome: Outcome) {
        self.task
            .request(BaseRequest::Drive(outcome, velocity))
            .await;
    }

    async fn state(&mut self, reply: Reply<BaseState>) {
        if reply.is_possible() {
            self.task.request(BaseRequest::State(reply)).await;
        }
    }

    async fn shutdown(&mut self) {
        self.task.close().await;
    }
}

/// The task that owns the logic.
struct BaseTask {
    logic: BaseLogic,
    servos: BusServos,
    events: mpsc::Receiver<Event>,
    /// Whether to ask who moves the servos.
    asks_who: watch::Sender<bool>,
    ending: Ending,
    /// They end with this.
    _tasks: JoinSet<()>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    No,
    Stopping,
    Stopped,
}

impl BaseTask {
    fn new(servos: Device, rules: Rules, link: &BaseLink) -> Self {
        let proxy = || link.devices().device(servos);
        let (sender, events) = mpsc::channel(MAX_WAITING);
        let (asks_who, asked) = watch::channel(false);
        let mut tasks = JoinSet::new();
        let measured = BusServos::new(proxy().with_deadline(DEADLINE));
        tasks.spawn(follow(measured, sender.clone()));
        let moved = proxy().with_deadline(DEADLINE);
        tasks.spawn(forward_motion(moved, asked, sender, Event::Motion));
        Self {
            logic: BaseLogic::new(rules, servos, now()),
            servos: BusServos::new(proxy().with_deadline(SEND_DEADLINE)).with_validity(VALIDITY),
            events,
            asks_who,
            ending: Ending::No,
            _tasks: tasks,
        }
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Measured(states) => self.logic.handle(now(), &states),
            Event::Failed(problem) => self.logic.failed(now(), problem),
            Event::Motion(state) => self.logic.handle_motion(now(), &state),
        }
    }

    fn message(&self) -> Result<BaseState, String> {
        let state = self.logic.state(now())?;
        Ok(message(state, self.logic.limits()))
    }
}

impl Owner for BaseTask {
    type Request = BaseRequest;
    type Message = DriverMsg;
    type Link = BaseLink;
    type Action = Order;

    fn request(&mut self, _link: &BaseLink, request: BaseRequest) {
        match request {
            BaseRequest::Drive(outcome, velocity) => {
                let clients = outcome.origin().clients.clone();
                let done = self.logic.drive(now(), &clients, read(&velocity));
                finish(outcome, done.err().as_deref());
            }
            BaseRequest::State(reply) => match self.message() {
                Ok(state) => reply.send(state),
                Err(why) => reply.refuse(&why),
            },
        }
    }

    fn shut_down(&mut self) {
        self.ending = Ending::Stopping;
    }

    fn next(&mut self, link: &BaseLink) -> Next<Order> {
        let now = now();
        self.logic.handle_timeout(now);
        while let Some(note) = self.logic.poll_note() {
            say(&note, note.is_warning());
        }
        if self.logic.take_fresh()
            && link.subscriptions() > 0
            && let Ok(state) = self.message()
        {
            complain(link.state_updates(state));
        }
        let asks_who = self.logic.wants_motion_state();
        self.asks_who.send_if_modified(|before| {
            let changes = *before != asks_who;
            *before = asks_who;
            changes
        });
        let order = match self.ending {
            Ending::No => self.logic.poll_order(now),
            Ending::Stopping => {
                self.ending = Ending::Stopped;
                self.logic.last_order()
            }
            Ending::Stopped => return Next::End,
        };
        match (order, self.ending) {
            (Some(order), _) => Next::Perform(order),
            (None, Ending::No) => Next::Wait,
            (None, Ending::Stopping | Ending::Stopped) => Next::End,
        }
    }

    async fn perform(&mut self, order: Order) {
        let servos = self.servos.clone().for_client(order.client);
        for speeds in order.commands() {
            if let Err(error) = servos.turn(speeds).await {
                self.logic.failed(now(), error.to_string());
            }
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

/// Forwards what the servos measure.
async fn follow(servos: BusServos, events: mpsc::Sender<Event>) {
    let event = |states: Result<ServoStates, _>| match states {
        Ok(states) => Event::Measured(states),
        Err(error) => Event::Failed(ClientError::to_string(&error)),
    };
    forward(
        servos.servo_updates().await,
        || servos.servos(),
        events,
        event,
    )
    .await;
}

fn read(velocity: &base::Velocity) -> Velocity {
    Velocity::new(
        velocity.forward() / 1_000.0,
        velocity.left() / 1_000.0,
        velocity.turn().to_radians(),
    )
}

fn write(velocity: Velocity) -> base::Velocity {
    base::Velocity {
        forward: Some(velocity.forward_m_s * 1_000.0),
        left: Some(velocity.left_m_s * 1_000.0),
        turn: Some(velocity.turn_rad_s.to_degrees()),
    }
}

fn message(state: State, limits: Velocity) -> BaseState {
    let State { pose, .. } = state;
    BaseState {
        measured: Some(write(state.measured)),
        told: Some(write(state.told)),
        limits: Some(write(limits)),
        odometry: Some(Odometry {
            x: Some(pose.at.x * 1_000.0),
            y: Some(pose.at.y * 1_000.0),
            heading: Some(pose.heading.to_degrees()),
        }),
        time: Some(state.time_us),
    }
}
