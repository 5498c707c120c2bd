//! The driver between clients that know only wheels and the base, of which it is a client. IO.

use std::borrow::Cow;
use std::error::Error;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use amber_driver::client::Error as ClientError;
use amber_driver::client::proxy::{Base, Robot};
use amber_driver::devices::roboclaw::{
    DriverMsg, MotorsSpeed, RoboclawDriver, RoboclawLink, SpeedUpdatesData,
};
use amber_driver::{ClientId, Outcome, Reply, Request, now};
use amber_proto::base::{BaseState, Velocity};
use amber_proto::battery_state::BatteryState;
use amber_proto::robot::Shape;
use amber_values::WheelSpeeds;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use super::Settings;
use super::logic::WheelsLogic;
use crate::device_task::{DeviceTask, Next, Owner, finish, until};
use crate::followed::{follow_shape, forward};
use crate::moving::lease::{Kept, follow_lease};
use crate::moving::repeating::VALIDITY;
use crate::stream::{Said, complain};

/// A command that cannot be sent in this time is outdated.
const SEND_DEADLINE: Duration = Duration::from_millis(100);
/// Later answers are ignored.
const DEADLINE: Duration = Duration::from_millis(200);
/// The number of events that may wait: a second of measurements.
const MAX_WAITING: usize = 32;

/// The driver.
pub(super) struct BaseWheels {
    settings: Settings,
    task: DeviceTask<WheelRequest>,
}

/// A request for the task that owns the logic.
#[derive(Debug)]
pub(super) enum WheelRequest {
    Drive(Outcome, WheelSpeeds),
    Speeds(Reply<MotorsSpeed>),
}

/// What the driver learns of others.
#[derive(Debug)]
enum Event {
    State(BaseState),
    Failed(String),
}

impl BaseWheels {
    pub(super) fn new(settings: Settings) -> Self {
        Self {
            settings,
            task: DeviceTask::default(),
        }
    }
}

impl RoboclawDriver for BaseWheels {
    async fn start(&mut self, link: RoboclawLink) -> Result<(), Box<dyn Error + Send + Sync>> {
        self.task.open(WheelsTask::new(self.settings, &link), link);
        Ok(())
    }

    /// If a message holds a request and a command, only the request takes effect, as with Roboclaw.
    fn received(&mut self, request: &mut Request<DriverMsg>) {
        if request.message.current_speed_request.is_some() {
            request.message.motors_command = None;
        }
    }

    async fn drive(&mut self, speeds: MotorsSpeed, outcome: Outcome) {
        self.task
            .request(WheelRequest::Drive(outcome, speeds.into()))
            .await;
    }

    async fn speeds(&mut self, reply: Reply<MotorsSpeed>) {
        if reply.is_possible() {
            self.task.request(WheelRequest::Speeds(reply)).await;
        }
    }

    async fn battery(&mut self, reply: Reply<BatteryState>) {
        reply.refuse("the base does not measure its battery");
    }

    async fn shutdown(&mut self) {
        self.task.close().await;
    }
}

/// The task that owns the logic.
struct WheelsTask {
    logic: WheelsLogic,
    base: Base,
    /// The lease of the base.
    lease: Kept,
    events: mpsc::Receiver<Event>,
    /// The track that the robot device says.
    track_m: watch::Receiver<Option<f64>>,
    /// The state of the base that was not published yet.
    fresh: Option<BaseState>,
    said: Said,
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

impl WheelsTask {
    fn new(settings: Settings, link: &RoboclawLink) -> Self {
        let devices = link.devices();
        let base = || devices.device(settings.base);
        let mut logic = WheelsLogic::new(settings.base, now());
        let (sender, events) = mpsc::channel(MAX_WAITING);
        let mut tasks = JoinSet::new();
        let (tell, track_m) = watch::channel(None);
        match settings.track_m {
            Some(track_m) => logic.set_track(track_m),
            None => {
                let robot = Robot::new(devices.device(settings.robot));
                tasks.spawn(async move {
                    let learn = |shape: Result<Shape, _>| {
                        let track_m = shape.ok().and_then(|shape| shape.track);
                        if track_m.is_some_and(|track_m| track_m > 0.0) {
                            tell.send_replace(track_m);
                        }
                    };
                    follow_shape(&robot, learn).await;
                });
            }
        }
        tasks.spawn(follow(Base::new(base().with_deadline(DEADLINE)), sender));
        let commanded = Base::new(base().with_deadline(SEND_DEADLINE));
        Self {
            logic,
            base: commanded.with_validity(VALIDITY),
            lease: follow_lease(link, settings.base),
            events,
            track_m,
            fresh: None,
            said: Said::default(),
            ending: Ending::No,
            _tasks: tasks,
        }
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::State(state) => {
                self.logic.handle(now(), &state);
                self.fresh = Some(state);
            }
            Event::Failed(problem) => self.logic.failed(now(), problem),
        }
    }

    fn publish(&mut self, link: &RoboclawLink) {
        let Some(state) = self.fresh.take() else {
            return;
        };
        if link.subscriptions() > 0
            && let Ok(speeds) = self.logic.speeds(now())
        {
            complain(link.speed_updates(SpeedUpdatesData {
                current_speed: speeds.into(),
                speed_age_us: age_us(state.time()),
                battery: None,
            }));
        }
    }
}

impl Owner for WheelsTask {
    type Request = WheelRequest;
    type Message = DriverMsg;
    type Link = RoboclawLink;
    type Action = (Velocity, Option<ClientId>);

    fn request(&mut self, _link: &RoboclawLink, request: WheelRequest) {
        match request {
            WheelRequest::Drive(outcome, speeds) => {
                let clients = outcome.origin().clients.clone();
                let done = self.logic.drive(now(), &clients, speeds);
                finish(outcome, done.err().as_deref());
            }
            WheelRequest::Speeds(reply) => match self.logic.speeds(now()) {
                Ok(speeds) => reply.send(speeds.into()),
                Err(why) => reply.refuse(&why),
            },
        }
    }

    fn shut_down(&mut self) {
        self.ending = Ending::Stopping;
    }

    fn next(&mut self, link: &RoboclawLink) -> Next<Self::Action> {
        let now = now();
        self.logic.handle_timeout(now);
        let trouble = self.logic.trouble();
        self.said.say(trouble, "the base can be used again");
        self.publish(link);
        if self.lease.is_refused() {
            self.logic.give_way();
        }
        let order = match self.ending {
            Ending::No => match self.logic.poll(now) {
                Some(order) => order,
                None => return Next::Wait,
            },
            Ending::Stopping => match self.logic.last() {
                Some(order) => order,
                None => return Next::End,
            },
            Ending::Stopped => return Next::End,
        };
        if self.ending == Ending::Stopping {
            self.ending = Ending::Stopped;
        }
        Next::Perform(order)
    }

    async fn perform(&mut self, (velocity, client): Self::Action) {
        let base = self.base.clone().for_client(client);
        if let Err(error) = base.drive(velocity).await {
            self.logic.failed(now(), error.to_string());
        }
    }

    async fn wait(&mut self) {
        tokio::select! {
            Some(event) = self.events.recv() => self.handle(event),
            Ok(()) = self.track_m.changed() => {
                if let Some(track_m) = *self.track_m.borrow_and_update() {
                    self.logic.set_track(track_m);
                }
            }
            () = until(Some(self.logic.wake_at())) => {}
        }
    }

    fn trouble(&self) -> Option<Cow<'_, str>> {
        self.logic.trouble().map(Cow::Borrowed)
    }

    fn log_counters(&self) {}
}

/// Forwards how the base moves.
async fn follow(base: Base, events: mpsc::Sender<Event>) {
    let event = |state: Result<BaseState, _>| match state {
        Ok(state) => Event::State(state),
        Err(error) => Event::Failed(ClientError::to_string(&error)),
    };
    forward(base.state_updates().await, || base.state(), events, event).await;
}

/// The age of a measurement at this time, in microseconds since 1970.
fn age_us(time_us: i64) -> Option<u32> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
    let measured = Duration::from_micros(time_us.try_into().ok()?);
    now.saturating_sub(measured).as_micros().try_into().ok()
}
