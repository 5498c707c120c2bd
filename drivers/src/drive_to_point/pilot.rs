//! The messages of DriveToPoint, answered by its logic. IO.

use std::borrow::Cow;
use std::time::Duration;

use amber_driver::devices::drive_to_point::progress;
use amber_driver::devices::drive_to_point::{
    Configuration, DriveToPointLink, DriverMsg, Go, Location, NextTargetAnswer, NextTargetsAnswer,
    Path, Progress, ProgressAnswer, ProgressUpdatesData, Targets, VisitedTargetAnswer,
    VisitedTargetsAnswer,
};
use amber_driver::orders::{Author, End, LATEST, Orders};
use amber_driver::proto::order;
use amber_driver::{ClientId, Outcome, Reply};
use amber_map::{MapPose, Point, Pose};
use amber_navigation::collision::Reason;
use amber_navigation::drive_to_point::{self as logic, DriveToPoint, Event, State, Target};
use amber_navigation::kinematics::Wheels;

use crate::device_task::finish;
use crate::moving::pilot::{Input, Pilot};
use crate::stream::complain;

/// The time between two messages to subscribers.
const PUBLISH_PERIOD: Duration = Duration::from_millis(200);
/// Maximum number of path points and of skipped targets in a message: a tenth of what fits.
const MAX_POINTS: usize = 200;

/// A request for the task that owns the wheels.
#[derive(Debug)]
pub(super) enum ClientRequest {
    SetTargets(Outcome, Targets),
    Go(Reply<order::Order>, Go),
    CancelOrder(Reply<order::Order>, u64),
    Ask(Question),
    ClientGone(ClientId),
}

/// A request with an answer.
#[derive(Debug)]
pub(super) enum Question {
    NextTarget(Reply<NextTargetAnswer>),
    NextTargets(Reply<NextTargetsAnswer>),
    VisitedTarget(Reply<VisitedTargetAnswer>),
    VisitedTargets(Reply<VisitedTargetsAnswer>),
    Configuration(Reply<Configuration>),
    Progress(Reply<ProgressAnswer>),
    Order(Reply<order::Order>, u64),
    Orders(Reply<order::Orders>),
}

/// The logic, and further data for messages.
pub(super) struct ToPoint {
    logic: DriveToPoint,
    orders: Orders,
    max_speed_mm_s: f64,
    /// The pose as the location driver sent it.
    pose: Option<MapPose>,
    reason: Reason,
    published: Option<Duration>,
    counters: Counters,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counters {
    visited: u64,
    skipped: u64,
    refused: u64,
}

impl ToPoint {
    pub(super) fn new(logic: DriveToPoint, max_speed_mm_s: f64) -> Self {
        Self {
            logic,
            orders: Orders::default(),
            max_speed_mm_s,
            pose: None,
            reason: Reason::Idle,
            published: None,
            counters: Counters::default(),
        }
    }

    /// Replaces the targets without an order of the client.
    fn set_targets(&mut self, now: Duration, by: Author, targets: &Targets) -> Result<(), String> {
        let targets = places(targets);
        check_number(targets.len()).inspect_err(|_| self.counters.refused += 1)?;
        self.begin(now, LATEST, by, &targets);
        match self.logic.skipped_targets().len() {
            0 => Ok(()),
            invalid => Err(format!(
                "{invalid} of {} targets are invalid: {VALID}",
                targets.len()
            )),
        }
    }

    fn go(&mut self, now: Duration, by: Author, go: &Go, reply: Reply<order::Order>) {
        match self.orders.repeated(go.id, by.client) {
            Err(taken) => return reply.refuse(&taken.to_string()),
            Ok(Some(known)) => {
                return match &known.end {
                    Some(End::Refused(why)) => reply.refuse(why),
                    _ => reply.send(known.to_wire(self.logic.remaining_m())),
                };
            }
            Ok(None) => {}
        }
        let targets = places(&go.targets);
        if let Err(why) = check(&go.targets, &targets) {
            self.counters.refused += 1;
            self.orders.refuse(go.id, by, targets.len(), &*why);
            return reply.refuse(&why);
        }
        self.begin(now, go.id, by, &targets);
        reply.send(self.orders.answer(go.id, self.logic.remaining_m()));
    }

    /// New targets; none stop the robot.
    fn begin(&mut self, now: Duration, id: u64, by: Author, targets: &[Target]) {
        let client = logic::ClientId(by.client.0);
        match targets.is_empty() {
            true => self.end(End::Stopped(by)),
            false => {
                self.end(End::Replaced(by.clone()));
                self.orders.begin(id, by, targets.len());
            }
        }
        self.logic.set_targets(now, client, targets);
        self.follow_order();
    }

    fn cancel(&mut self, now: Duration, by: Author, id: u64) -> order::Order {
        let wanted = self.orders.find(id);
        if wanted.is_some_and(|order| order.end.is_none()) {
            self.end(End::Cancelled(by));
            self.logic.stop(now);
        }
        self.orders.answer(id, self.logic.remaining_m())
    }

    fn client_gone(&mut self, now: Duration, client: ClientId) {
        let owner = self.logic.owner();
        let client = logic::ClientId(client.0);
        self.logic.handle_client_left(now, client);
        if self.logic.owner() != owner {
            self.end(match owner == Some(client) {
                true => End::ClientLost,
                false => End::StoppedByRule(format!(
                    "client {} has left, and the driver stops then (--any-client-stops)",
                    client.0
                )),
            });
        }
    }

    /// Notes the progress of the order, and its end if the robot is done.
    fn follow_order(&mut self) {
        let skipped = self.logic.skipped_targets();
        let visited = self.logic.visited_targets().len();
        self.orders.note_progress(visited, skipped.len());
        if self.logic.owner().is_none() {
            let end = match skipped.last() {
                None => End::Arrived,
                Some((_, why)) => End::Skipped(why.to_string()),
            };
            self.end(end);
        }
    }

    /// Ends the order that runs, if any.
    fn end(&mut self, end: End) {
        if let Some(order) = self.orders.end(end) {
            let reason = order.end.as_ref().and_then(End::reason);
            let reason = reason.unwrap_or_else(|| "the robot has arrived".into());
            tracing::info!("order {} of {} has ended: {reason}", order.id, order.by);
            // Subscribers learn it at once.
            self.published = None;
        }
    }

    /// The last pose; zeros before the first one.
    fn location(&self) -> Location {
        let pose = self.pose.unwrap_or_default();
        Location {
            // Old clients read all fields.
            time_stamp: Some(pose.timestamp_ms.unwrap_or_default()),
            ..pose.into()
        }
    }

    fn answer(&self, question: Question) {
        let location = self.location();
        let next = || self.logic.next_targets();
        let visited = || self.logic.visited_targets().iter().copied();
        match question {
            Question::NextTarget(reply) => reply.send(NextTargetAnswer {
                targets: one(next().next()),
                location,
            }),
            Question::NextTargets(reply) => reply.send(NextTargetsAnswer {
                targets: table(next()),
                location,
            }),
            Question::VisitedTarget(reply) => reply.send(VisitedTargetAnswer {
                targets: one(visited().next_back()),
                location,
            }),
            Question::VisitedTargets(reply) => reply.send(VisitedTargetsAnswer {
                targets: table(visited()),
                location,
            }),
            Question::Configuration(reply) => reply.send(Configuration {
                max_speed: Some(self.max_speed_mm_s),
            }),
            Question::Progress(reply) => reply.send(ProgressAnswer {
                progress: self.progress(),
                location,
                order: self.newest_order(),
            }),
            Question::Order(reply, id) => {
                reply.send(self.orders.answer(id, self.logic.remaining_m()));
            }
            Question::Orders(reply) => reply.send(self.orders.list(self.logic.remaining_m())),
        }
    }

    /// The order that runs, or the last one.
    fn newest_order(&self) -> Option<order::Order> {
        let order = self.orders.find(LATEST)?;
        Some(order.to_wire(self.logic.remaining_m()))
    }

    fn progress(&self) -> Progress {
        let path = self.logic.rest_of_path();
        let path = path.into_iter().take(MAX_POINTS).map(on_map);
        let (xs, ys) = path.map(|pose| (pose.x_m, pose.y_m)).unzip();
        let skipped = self
            .logic
            .skipped_targets()
            .iter()
            .map(|(target, _)| *target);
        let mut progress = Progress {
            reason: Some(self.reason.to_string()),
            path: Some(Path { xs, ys }),
            remaining: self.logic.remaining_m(),
            skipped: Some(table(skipped.take(MAX_POINTS))),
            ..Progress::default()
        };
        progress.set_state(match self.logic.state() {
            State::Idle => progress::State::Idle,
            State::NoPose => progress::State::NoPose,
            State::Searching => progress::State::Searching,
            State::PoseJumped => progress::State::PoseJumped,
            State::PoseLost => progress::State::PoseLost,
            State::Turning => progress::State::Turning,
            State::Following => progress::State::Following,
            State::Blocked => progress::State::Blocked,
            State::BackingUp => progress::State::BackingUp,
            State::Waiting => progress::State::Waiting,
        });
        progress
    }

    fn log(&mut self) {
        while let Some(event) = self.logic.poll_event() {
            let place = |target: Target| {
                let pose = on_map(target.at);
                format!("({:.2} m, {:.2} m)", pose.x_m, pose.y_m)
            };
            match event {
                Event::Visited(target) => {
                    self.counters.visited += 1;
                    tracing::info!("visited {}", place(target));
                }
                Event::Skipped(target, why) => {
                    self.counters.skipped += 1;
                    tracing::warn!("skipped {}: {why}", place(target));
                }
                Event::Finished => tracing::info!("no targets are left"),
                Event::ClientLeft(client) => {
                    tracing::info!("client {} has left: the robot stops", client.0);
                }
                Event::State(state) => tracing::debug!(?state, "state"),
            }
        }
    }
}

impl Pilot for ToPoint {
    type Request = ClientRequest;
    type Message = DriverMsg;
    type Link = DriveToPointLink;

    fn request(&mut self, now: Duration, link: &DriveToPointLink, request: ClientRequest) {
        match request {
            ClientRequest::SetTargets(outcome, targets) => {
                let by = link.author(outcome.origin(), None);
                // The end of a lease, for example, which is no list of targets of a client.
                if outcome.origin().stop_cause.is_some() {
                    self.end(End::of_stop(by, outcome.origin()));
                    self.logic.stop(now);
                    return outcome.done();
                }
                let done = self.set_targets(now, by, &targets);
                finish(outcome, done.err().as_deref());
            }
            ClientRequest::Go(reply, go) => {
                let by = link.author(reply.origin(), go.name.as_deref());
                self.go(now, by, &go, reply);
            }
            ClientRequest::CancelOrder(reply, id) => {
                let by = link.author(reply.origin(), None);
                reply.send(self.cancel(now, by, id));
            }
            ClientRequest::Ask(question) => self.answer(question),
            ClientRequest::ClientGone(client) => self.client_gone(now, client),
        }
    }

    fn handle(&mut self, _now: Duration, input: Input) {
        match input {
            Input::Scan(scan, _) => self.logic.handle_scan(&scan),
            Input::Wheels(time, wheels, _) => self.logic.handle_wheels(time, wheels),
            Input::Imu(time, imu) => self.logic.handle_imu(time, imu),
            Input::Contacts(time, touches) => self.logic.handle_touches(time, &touches),
            Input::Pose(reading, pose) => {
                self.logic.handle_pose(reading);
                self.pose = Some(pose);
            }
        }
    }

    fn step(&mut self, now: Duration) -> Wheels {
        let decision = self.logic.step(now);
        self.reason = decision.reason;
        decision.wheels
    }

    fn tell(&mut self, now: Duration, link: &DriveToPointLink) {
        self.log();
        self.follow_order();
        let is_due = (self.published)
            .is_none_or(|published| now.saturating_sub(published) >= PUBLISH_PERIOD);
        if is_due && link.subscriptions() > 0 {
            self.published = Some(now);
            complain(link.progress_updates(ProgressUpdatesData {
                progress: self.progress(),
                location: self.location(),
                order: self.newest_order(),
            }));
        }
    }

    fn trouble(&self) -> Option<Cow<'_, str>> {
        if self.reason == Reason::Blind {
            return Some(self.reason.to_string().into());
        }
        let text = match self.logic.state() {
            State::NoPose => "the pose is unknown",
            State::Searching => "the pose is undecided: the robot turns on the spot to see more",
            State::PoseJumped => "the pose has jumped; the robot waits until it is reliable again",
            State::PoseLost => "the pose is outdated",
            State::Blocked if self.reason.is_trouble() => {
                return Some(self.reason.to_string().into());
            }
            _ => return None,
        };
        Some(text.into())
    }

    fn client(&self) -> Option<ClientId> {
        self.logic.owner().map(|owner| ClientId(owner.0))
    }

    fn counters(&self) -> String {
        format!("{:?} {:?}", self.counters, self.logic.monitor().counters())
    }
}

/// What coordinates and radius must be.
const VALID: &str = "coordinates must be at most 10000 m, and the radius a positive number";

/// The targets of a message. The shortest column decides about their number.
fn places(targets: &Targets) -> Vec<Target> {
    let places = targets.longitudes.iter().zip(&targets.latitudes);
    let target = |((x_m, y_m), radius_m): ((&f64, &f64), &f64)| Target {
        at: Pose::from(MapPose::new(*x_m, *y_m, 0.0)).at,
        radius_m: *radius_m,
    };
    places.zip(&targets.radiuses).map(target).collect()
}

fn check_number(targets: usize) -> Result<(), String> {
    let max = logic::MAX_TARGETS;
    match targets <= max {
        true => Ok(()),
        false => Err(format!("{targets} targets; at most {max}")),
    }
}

/// Whether the targets of an order, and its message, are as they must be.
fn check(message: &Targets, targets: &[Target]) -> Result<(), String> {
    let columns = [&message.longitudes, &message.latitudes, &message.radiuses];
    if columns.iter().any(|column| column.len() != targets.len()) {
        return Err("the columns of the targets differ in length".into());
    }
    if targets.is_empty() {
        return Err("an order has at least one target; to stop the robot, cancel it".into());
    }
    check_number(targets.len())?;
    match targets.iter().position(|target| !target.is_valid()) {
        None => Ok(()),
        Some(index) => Err(format!("target {index} is invalid: {VALID}")),
    }
}

fn on_map(point: Point) -> MapPose {
    let at = point;
    Pose { at, heading: 0.0 }.into()
}

/// One target, or the pseudo target of zeros.
fn one(target: Option<Target>) -> Targets {
    match target {
        Some(target) => table(std::iter::once(target)),
        None => Targets {
            longitudes: vec![0.0],
            latitudes: vec![0.0],
            radiuses: vec![0.0],
        },
    }
}

fn table(targets: impl Iterator<Item = Target>) -> Targets {
    let mut table = Targets::default();
    for target in targets {
        let pose = on_map(target.at);
        table.longitudes.push(pose.x_m);
        table.latitudes.push(pose.y_m);
        table.radiuses.push(target.radius_m);
    }
    table
}
