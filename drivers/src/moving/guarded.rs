//! A driver of wheels behind the guard: common code of CollisionAvoidance and DriveSupport. IO.
//!
//! ```text
//!  handlers of the device --> GuardedWheels --requests--> Guarded, a pilot with the Guard
//! ```

use std::borrow::Cow;
use std::ops::Deref;
use std::time::{Duration, Instant};

use amber_driver::{ClientId, Link, Outcome};
use amber_navigation::kinematics::Wheels;
use amber_proto::DeviceMessage;
use amber_values::{Scan, WheelSpeeds};

use super::guard::Guard;
use super::pilot::{Input, Pilot};
use super::waiting::Waiting;
use super::wheel_task::WheelTask;
use crate::described::Described;
use crate::device_task::{DeviceTask, finish};
use crate::robot_options::{Setup, Stated};

/// The messages of a device with guarded wheels.
pub(crate) trait GuardedDevice: Send + 'static {
    /// A request with an answer.
    type Question: Send + 'static;
    /// The `DriverMsg` of the device.
    type Message: DeviceMessage + Send + 'static;
    /// The link to the mediator.
    type Link: Deref<Target = Link<Self::Message>> + Clone + Send + Sync + 'static;

    /// Answers a request. Returns it if a measurement for it is missing.
    fn answer(
        question: Self::Question,
        speeds: Option<WheelSpeeds>,
        scan: Option<&Scan>,
    ) -> Result<(), Self::Question>;

    /// Refuses a request that has waited too long for a measurement.
    fn refuse(question: Self::Question);

    /// A scan has arrived.
    fn publish(_link: &Self::Link, _speeds: WheelSpeeds, _scan: &Scan) {}

    /// Measured speeds have arrived, of this age.
    fn publish_speeds(_link: &Self::Link, _speeds: WheelSpeeds, _age: Duration) {}
}

/// A request for the task that owns the wheels.
#[derive(Debug)]
enum ClientRequest<Q> {
    Drive(Outcome, WheelSpeeds),
    Ask(Q),
    ClientGone(ClientId),
}

/// The place where the handlers of a device leave its requests.
pub(crate) struct GuardedWheels<D: GuardedDevice> {
    robot: Described,
    task: DeviceTask<ClientRequest<D::Question>>,
    /// `Some` after the start.
    link: Option<D::Link>,
}

impl<D: GuardedDevice> GuardedWheels<D> {
    pub(crate) fn new(stated: Stated) -> Self {
        Self {
            robot: Described::new(stated),
            task: DeviceTask::default(),
            link: None,
        }
    }

    /// Starts the task, as soon as the shape of the robot is known.
    pub(crate) async fn open(&mut self, link: D::Link) {
        let setup = self.robot.setup(&link).await;
        self.link = Some(link);
        self.begin(setup);
    }

    fn begin(&mut self, setup: Setup) {
        if let Some(link) = self.link.clone() {
            let pilot = Guarded::<D> {
                guard: Guard::new(setup.collision),
                waiting: Waiting::default(),
                has_new_scan: false,
                new_speeds: None,
            };
            self.task.open(WheelTask::new(pilot, setup, &link), link);
        }
    }

    /// When to call [`GuardedWheels::look`].
    pub(crate) fn look_at(&self) -> Option<Instant> {
        self.robot.look_at()
    }

    /// If the robot has another shape, stops the wheels and begins again.
    pub(crate) async fn look(&mut self) {
        if let Some(setup) = self.robot.changed() {
            self.task.close().await;
            self.begin(setup);
        }
    }

    /// A client commands these speeds.
    pub(crate) async fn drive(&self, speeds: WheelSpeeds, outcome: Outcome) {
        self.task
            .request(ClientRequest::Drive(outcome, speeds))
            .await;
    }

    /// A client asks for measurements.
    pub(crate) async fn ask(&self, question: D::Question) {
        self.task.request(ClientRequest::Ask(question)).await;
    }

    /// A client has left.
    pub(crate) async fn client_gone(&self, client: ClientId) {
        self.task.request(ClientRequest::ClientGone(client)).await;
    }

    /// Waits until the wheels are at rest.
    pub(crate) async fn close(&mut self) {
        self.task.close().await;
    }
}

/// The guard, with the requests that wait for its first measurements.
struct Guarded<D: GuardedDevice> {
    guard: Guard,
    waiting: Waiting<D::Question>,
    has_new_scan: bool,
    /// Measured speeds and their time.
    new_speeds: Option<(Duration, WheelSpeeds)>,
}

impl<D: GuardedDevice> Pilot for Guarded<D> {
    type Request = ClientRequest<D::Question>;
    type Message = D::Message;
    type Link = D::Link;

    fn request(&mut self, now: Duration, _link: &D::Link, request: Self::Request) {
        match request {
            ClientRequest::Drive(outcome, speeds) => {
                let done = self.guard.drive(now, outcome.client(), speeds);
                let refusal = done.err().map(|refusal| refusal.to_string());
                finish(outcome, refusal.as_deref());
            }
            ClientRequest::Ask(question) => self.waiting.push(now, question),
            ClientRequest::ClientGone(client) => self.guard.handle_client_gone(now, client),
        }
    }

    fn handle(&mut self, now: Duration, input: Input) {
        self.has_new_scan |= matches!(input, Input::Scan(..));
        if let Input::Wheels(time, _, speeds) = &input {
            self.new_speeds = Some((*time, *speeds));
        }
        self.guard.handle(now, input);
    }

    fn step(&mut self, now: Duration) -> Wheels {
        self.guard.step(now)
    }

    fn tell(&mut self, now: Duration, link: &D::Link) {
        let (speeds, scan) = (self.guard.speeds(now), self.guard.scan(now));
        let late = (self.waiting).answer(now, |question| D::answer(question, speeds, scan));
        late.for_each(D::refuse);
        if let Some((time, speeds)) = self.new_speeds.take()
            && link.subscriptions() > 0
        {
            D::publish_speeds(link, speeds, now.saturating_sub(time));
        }
        if std::mem::take(&mut self.has_new_scan)
            && link.subscriptions() > 0
            && let (Some(speeds), Some(scan)) = (speeds, scan)
        {
            D::publish(link, speeds, scan);
        }
    }

    fn client(&self) -> Option<ClientId> {
        self.guard.commander()
    }

    fn trouble(&self) -> Option<Cow<'_, str>> {
        self.guard.trouble().map(Cow::Owned)
    }

    fn counters(&self) -> String {
        let dropped = self.waiting.dropped();
        format!("{} unanswered: {dropped}", self.guard.counters())
    }
}
