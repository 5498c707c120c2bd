//! The messages of PidFollowTrajectory, answered by its logic. IO.

use std::borrow::Cow;
use std::time::Duration;

use amber_driver::devices::pid_follow_trajectory::progress;
use amber_driver::devices::pid_follow_trajectory::{
    Configuration, DriverMsg, Follow, PidFollowTrajectoryLink, Progress, ProgressUpdatesData,
    Targets,
};
use amber_driver::orders::{Author, End, LATEST, Orders};
use amber_driver::proto::order;
use amber_driver::{ClientId, Origin, Outcome, Reply};
use amber_map::{MapPose, Pose};
use amber_navigation::collision::{Monitor, Reason};
use amber_navigation::drive_to_point;
use amber_navigation::kinematics::Wheels;
use amber_navigation::trajectory::{Config, Refused, State, Trajectory, Waypoint};
use amber_values::{Row, TrajectoryPoint};

use crate::device_task::finish;
use crate::moving::pilot::{Input, Pilot};
use crate::stream::complain;

/// The time between two messages to subscribers.
const PUBLISH_PERIOD: Duration = Duration::from_millis(200);

/// A request for the task that owns the wheels.
#[derive(Debug)]
pub(super) enum ClientRequest {
    SetTargets(Outcome, Targets, Configuration),
    NextTargets(Reply<Targets>),
    VisitedTargets(Reply<Targets>),
    Follow(Reply<order::Order>, Follow),
    Order(Reply<order::Order>, u64),
    CancelOrder(Reply<order::Order>, u64),
    Orders(Reply<order::Orders>),
    Start(Outcome),
    Stop(Outcome),
    Step(Outcome),
    ClientGone(ClientId),
}

/// The logic behind the collision monitor.
pub(super) struct Following {
    trajectory: Trajectory,
    orders: Orders,
    /// `None` if the driver runs without a scanner.
    monitor: Option<Monitor>,
    reason: Reason,
    published: Option<Duration>,
    refused: u64,
}

impl Following {
    pub(super) fn new(trajectory: Trajectory, monitor: Option<Monitor>) -> Self {
        Self {
            trajectory,
            orders: Orders::default(),
            monitor,
            reason: Reason::Idle,
            published: None,
            refused: 0,
        }
    }

    fn finish(&mut self, outcome: Outcome, done: Result<(), Refused>) {
        let why = done.err().map(|refused| refused.to_string());
        if let Some(why) = &why {
            self.refused += 1;
            tracing::warn!("refused a request: {why}");
        }
        finish(outcome, why.as_deref());
    }

    /// Starts the trajectory as an order of a client that knows no orders.
    fn start(
        &mut self,
        link: &PidFollowTrajectoryLink,
        outcome: Outcome,
        start: impl FnOnce(&mut Trajectory, drive_to_point::ClientId) -> Result<(), Refused>,
    ) {
        let by = link.author(outcome.origin(), None);
        let done = start(&mut self.trajectory, logic_id(by.client));
        if done.is_ok() {
            self.begin(LATEST, by);
        }
        self.finish(outcome, done);
    }

    /// The robot follows the trajectory from now on.
    fn begin(&mut self, id: u64, by: Author) {
        self.end(End::Replaced(by.clone()));
        let points = self.trajectory.visited_points().len() + self.trajectory.next_points().len();
        self.orders.begin(id, by, points);
        self.follow_order();
    }

    fn follow(&mut self, by: Author, follow: &Follow, reply: Reply<order::Order>) {
        match self.orders.repeated(follow.id, by.client) {
            Err(taken) => return reply.refuse(&taken.to_string()),
            Ok(Some(known)) => {
                return match &known.end {
                    Some(End::Refused(why)) => reply.refuse(why),
                    _ => reply.send(known.to_wire(self.trajectory.remaining_m())),
                };
            }
            Ok(None) => {}
        }
        let (config, points) = (config(&follow.configuration), waypoints(&follow.targets));
        let client = logic_id(by.client);
        match self.trajectory.follow_instead(client, config, &points) {
            Ok(()) => {
                self.begin(follow.id, by);
                reply.send(self.answer(follow.id));
            }
            Err(refused) => {
                let why = refused.to_string();
                self.refused += 1;
                self.orders.refuse(follow.id, by, points.len(), &*why);
                reply.refuse(&why);
            }
        }
    }

    fn cancel(&mut self, by: Author, id: u64) {
        let wanted = self.orders.find(id);
        if wanted.is_some_and(|order| order.end.is_none()) {
            self.end(End::Cancelled(by));
            self.trajectory.stop();
        }
    }

    fn stop(&mut self, by: Author, origin: &Origin) {
        self.end(End::of_stop(by, origin));
        self.trajectory.stop();
    }

    /// Notes the progress of the order, and its end if the robot is done.
    fn follow_order(&mut self) {
        if self.orders.current().is_none() {
            return;
        }
        let visited = self.trajectory.visited_points().len();
        self.orders.note_progress(visited, 0);
        if self.trajectory.owner().is_none() {
            self.end(match self.trajectory.state() {
                State::Finished => End::Arrived,
                _ => End::StoppedByRule("the single step is over".into()),
            });
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

    fn answer(&self, id: u64) -> order::Order {
        self.orders.answer(id, self.trajectory.remaining_m())
    }

    fn progress(&self, now: Duration) -> Progress {
        let visited = self.trajectory.visited_points().len();
        let mut progress = Progress {
            visited: u32::try_from(visited).ok(),
            left: self.trajectory.left_m(now),
            reason: Some(self.reason.to_string()),
            ..Progress::default()
        };
        progress.set_state(match self.trajectory.state() {
            State::Empty => progress::State::Empty,
            State::Ready => progress::State::Ready,
            State::Running => progress::State::Running,
            State::WaitingForPose => progress::State::WaitingForPose,
            State::Finished => progress::State::Finished,
        });
        progress
    }
}

impl Pilot for Following {
    type Request = ClientRequest;
    type Message = DriverMsg;
    type Link = PidFollowTrajectoryLink;

    fn request(&mut self, now: Duration, link: &PidFollowTrajectoryLink, request: ClientRequest) {
        let trajectory = &mut self.trajectory;
        match request {
            ClientRequest::SetTargets(outcome, targets, configuration) => {
                let done = trajectory.set(config(&configuration), &waypoints(&targets));
                self.finish(outcome, done);
            }
            ClientRequest::NextTargets(reply) => reply.send(table(trajectory.next_points())),
            ClientRequest::VisitedTargets(reply) => reply.send(table(trajectory.visited_points())),
            ClientRequest::Follow(reply, follow) => {
                let by = link.author(reply.origin(), follow.name.as_deref());
                self.follow(by, &follow, reply);
            }
            ClientRequest::Order(reply, id) => reply.send(self.answer(id)),
            ClientRequest::CancelOrder(reply, id) => {
                self.cancel(link.author(reply.origin(), None), id);
                reply.send(self.answer(id));
            }
            ClientRequest::Orders(reply) => {
                reply.send(self.orders.list(trajectory.remaining_m()));
            }
            ClientRequest::Start(outcome) => self.start(link, outcome, Trajectory::start),
            ClientRequest::Stop(outcome) => {
                self.stop(link.author(outcome.origin(), None), outcome.origin());
                outcome.done();
            }
            ClientRequest::Step(outcome) => {
                let step = |logic: &mut Trajectory, client| logic.single_step(now, client);
                self.start(link, outcome, step);
            }
            ClientRequest::ClientGone(client) => {
                let client = logic_id(client);
                let is_its = trajectory.owner() == Some(client);
                trajectory.handle_client_left(client);
                if is_its {
                    self.end(End::ClientLost);
                }
            }
        }
    }

    fn handle(&mut self, _now: Duration, input: Input) {
        match (input, &mut self.monitor) {
            (Input::Scan(scan, _), Some(monitor)) => monitor.handle_scan(&scan),
            (Input::Imu(time, imu), Some(monitor)) => monitor.handle_imu(time, imu),
            (Input::Contacts(time, touches), Some(monitor)) => {
                monitor.handle_touches(time, &touches);
            }
            (Input::Scan(..) | Input::Imu(..) | Input::Contacts(..), None) => {}
            (Input::Wheels(time, wheels, _), monitor) => {
                self.trajectory.handle_wheels(time, wheels);
                if let Some(monitor) = monitor {
                    monitor.handle_wheels(time, wheels);
                }
            }
            (Input::Pose(reading, _), _) => self.trajectory.handle_pose(reading),
        }
    }

    fn step(&mut self, now: Duration) -> Wheels {
        let wheels = self.trajectory.step(now);
        let Some(monitor) = &mut self.monitor else {
            return wheels;
        };
        monitor.handle_command(now, wheels);
        let decision = monitor.step(now);
        let is_blind = monitor.is_blind(now);
        self.reason = if is_blind {
            Reason::Blind
        } else {
            decision.reason
        };
        decision.wheels
    }

    fn tell(&mut self, now: Duration, link: &PidFollowTrajectoryLink) {
        self.follow_order();
        let is_due = (self.published)
            .is_none_or(|published| now.saturating_sub(published) >= PUBLISH_PERIOD);
        if is_due && link.subscriptions() > 0 {
            self.published = Some(now);
            let order = self.orders.find(LATEST);
            complain(link.progress_updates(ProgressUpdatesData {
                progress: self.progress(now),
                order: order.map(|order| order.to_wire(self.trajectory.remaining_m())),
            }));
        }
    }

    fn trouble(&self) -> Option<Cow<'_, str>> {
        match (self.trajectory.state(), self.reason) {
            (_, Reason::Blind) => Some(self.reason.to_string().into()),
            (State::WaitingForPose, _) => Some("there is no reliable pose".into()),
            (State::Running, reason) if reason.is_trouble() => Some(reason.to_string().into()),
            _ => None,
        }
    }

    fn client(&self) -> Option<ClientId> {
        let owner = self.trajectory.owner();
        owner.map(|owner| ClientId(owner.0))
    }

    fn counters(&self) -> String {
        format!("refused: {}", self.refused)
    }
}

fn logic_id(client: ClientId) -> drive_to_point::ClientId {
    drive_to_point::ClientId(client.0)
}

/// The configuration of a message. An absent value is that of the original's example client. The
/// weights and the scale are ignored; see [`amber_navigation::trajectory`].
fn config(message: &Configuration) -> Config {
    let otherwise = Config::default();
    let step_ms = message
        .loop_sleep_time
        .and_then(|ms| u64::try_from(ms).ok());
    Config {
        max_lookahead_m: (message.max_lookahead).unwrap_or(otherwise.max_lookahead_m),
        max_centripetal_m_s2: (message.max_centric_acceleration)
            .unwrap_or(otherwise.max_centripetal_m_s2),
        max_m_s: message.max_linear_velocity.unwrap_or(otherwise.max_m_s),
        step_time: step_ms.map_or(otherwise.step_time, Duration::from_millis),
    }
}

/// The points of a message. The shortest list of coordinates wins; a time may be missing.
fn waypoints(targets: &Targets) -> Vec<Waypoint> {
    let times = targets.times.iter().copied().chain(std::iter::repeat(0));
    let places = targets.latitudes.iter().zip(&targets.longitudes);
    places
        .zip(times)
        .map(|((x_m, y_m), time_ms)| Waypoint {
            at: Pose::from(MapPose::new(*x_m, *y_m, 0.0)).at,
            time: Duration::from_millis(u64::try_from(time_ms).unwrap_or_default()),
        })
        .collect()
}

fn table(points: &[Waypoint]) -> Targets {
    let row = |point: &Waypoint| {
        let (at, heading) = (point.at, 0.0);
        let pose = MapPose::from(Pose { at, heading });
        TrajectoryPoint {
            x_m: pose.x_m,
            y_m: pose.y_m,
            time_ms: i64::try_from(point.time.as_millis()).unwrap_or(i64::MAX),
        }
    };
    let rows: Vec<TrajectoryPoint> = points.iter().map(row).collect();
    TrajectoryPoint::table(&rows)
}
