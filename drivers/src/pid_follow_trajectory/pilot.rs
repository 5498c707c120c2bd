//! The messages of PidFollowTrajectory, answered by its logic. IO.

use std::borrow::Cow;
use std::time::Duration;

use amber_driver::devices::pid_follow_trajectory::progress;
use amber_driver::devices::pid_follow_trajectory::{
    Configuration, DriverMsg, PidFollowTrajectoryLink, Progress, Targets,
};
use amber_driver::{ClientId, Outcome, Reply};
use amber_map::{MapPose, Pose};
use amber_navigation::collision::{Monitor, Reason};
use amber_navigation::drive_to_point;
use amber_navigation::kinematics::Wheels;
use amber_navigation::trajectory::{Config, Refused, State, Trajectory, Waypoint};
use amber_values::{Row, TrajectoryPoint};

use crate::desk::finish;
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
    Start(Outcome),
    Stop(Outcome),
    Step(Outcome),
    ClientGone(ClientId),
}

/// The logic behind the collision monitor.
pub(super) struct Following {
    trajectory: Trajectory,
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

    fn request(&mut self, now: Duration, _link: &PidFollowTrajectoryLink, request: ClientRequest) {
        let trajectory = &mut self.trajectory;
        match request {
            ClientRequest::SetTargets(outcome, targets, configuration) => {
                let done = trajectory.set(config(&configuration), &waypoints(&targets));
                self.finish(outcome, done);
            }
            ClientRequest::NextTargets(reply) => reply.send(table(trajectory.next_points())),
            ClientRequest::VisitedTargets(reply) => reply.send(table(trajectory.visited_points())),
            ClientRequest::Start(outcome) => {
                let done = trajectory.start(owner(outcome.client()));
                self.finish(outcome, done);
            }
            ClientRequest::Stop(outcome) => {
                trajectory.stop();
                outcome.done();
            }
            ClientRequest::Step(outcome) => {
                let done = trajectory.single_step(now, owner(outcome.client()));
                self.finish(outcome, done);
            }
            ClientRequest::ClientGone(client) => trajectory.handle_client_left(owner(Some(client))),
        }
    }

    fn handle(&mut self, _now: Duration, input: Input) {
        match (input, &mut self.monitor) {
            (Input::Scan(scan, _), Some(monitor)) => monitor.handle_scan(&scan),
            (Input::Imu(time, imu), Some(monitor)) => monitor.handle_imu(time, imu),
            (Input::Scan(..) | Input::Imu(..), None) => {}
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
        self.reason = decision.reason;
        decision.wheels
    }

    fn tell(&mut self, now: Duration, link: &PidFollowTrajectoryLink) {
        let is_due = (self.published)
            .is_none_or(|published| now.saturating_sub(published) >= PUBLISH_PERIOD);
        if is_due && link.subscriptions() > 0 {
            self.published = Some(now);
            complain(link.progress_updates(self.progress(now)));
        }
    }

    fn trouble(&self) -> Option<Cow<'_, str>> {
        match (self.trajectory.state(), self.reason) {
            (State::WaitingForPose, _) => Some("there is no reliable pose".into()),
            (State::Running, Reason::Stuck | Reason::Slip | Reason::Bump) => {
                Some(self.reason.to_string().into())
            }
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

fn owner(client: Option<ClientId>) -> drive_to_point::ClientId {
    drive_to_point::ClientId(client.map_or(0, |client| client.0))
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
