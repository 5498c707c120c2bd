//! The messages of DriveToPoint, answered by its logic. IO.

use std::borrow::Cow;
use std::time::Duration;

use amber_driver::devices::drive_to_point::progress;
use amber_driver::devices::drive_to_point::{
    Configuration, DriveToPointLink, DriverMsg, Location, NextTargetAnswer, NextTargetsAnswer,
    Path, Progress, ProgressAnswer, ProgressUpdatesData, Targets, VisitedTargetAnswer,
    VisitedTargetsAnswer,
};
use amber_driver::{ClientId, Outcome, Reply};
use amber_map::{MapPose, Point, Pose};
use amber_navigation::collision::Reason;
use amber_navigation::drive_to_point::{self as logic, DriveToPoint, Event, State, Target};
use amber_navigation::kinematics::Wheels;

use crate::desk::finish;
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
}

/// The logic, and further data for messages.
pub(super) struct ToPoint {
    logic: DriveToPoint,
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
            max_speed_mm_s,
            pose: None,
            reason: Reason::Idle,
            published: None,
            counters: Counters::default(),
        }
    }

    fn set_targets(
        &mut self,
        now: Duration,
        client: Option<ClientId>,
        targets: &Targets,
    ) -> Result<(), String> {
        let places = targets.longitudes.iter().zip(&targets.latitudes);
        let targets: Vec<Target> = places
            .zip(&targets.radiuses)
            .map(|((x_m, y_m), radius_m)| Target {
                at: Pose::from(MapPose::new(*x_m, *y_m, 0.0)).at,
                radius_m: *radius_m,
            })
            .collect();
        if targets.len() > logic::MAX_TARGETS {
            self.counters.refused += 1;
            let max = logic::MAX_TARGETS;
            return Err(format!("{} targets; at most {max}", targets.len()));
        }
        let client = client.unwrap_or(ClientId(0));
        self.logic
            .set_targets(now, logic::ClientId(client.0), &targets);
        match self.logic.skipped_targets().len() {
            0 => Ok(()),
            invalid => Err(format!(
                "{invalid} of {} targets are invalid: coordinates and radius must be numbers, and \
                 the radius positive",
                targets.len()
            )),
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
            }),
        }
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

    fn request(&mut self, now: Duration, _link: &DriveToPointLink, request: ClientRequest) {
        match request {
            // The end of a lease, which is no list of targets of a client.
            ClientRequest::SetTargets(outcome, _) if outcome.origin().is_from_harness => {
                self.logic.stop(now);
                outcome.done();
            }
            ClientRequest::SetTargets(outcome, targets) => {
                let done = self.set_targets(now, outcome.client(), &targets);
                finish(outcome, done.err().as_deref());
            }
            ClientRequest::Ask(question) => self.answer(question),
            ClientRequest::ClientGone(client) => {
                let client = logic::ClientId(client.0);
                self.logic.handle_client_left(now, client);
            }
        }
    }

    fn handle(&mut self, _now: Duration, input: Input) {
        match input {
            Input::Scan(scan, _) => self.logic.handle_scan(&scan),
            Input::Wheels(time, wheels, _) => self.logic.handle_wheels(time, wheels),
            Input::Imu(time, imu) => self.logic.handle_imu(time, imu),
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
        let is_due = (self.published)
            .is_none_or(|published| now.saturating_sub(published) >= PUBLISH_PERIOD);
        if is_due && link.subscriptions() > 0 {
            self.published = Some(now);
            complain(link.progress_updates(ProgressUpdatesData {
                progress: self.progress(),
                location: self.location(),
            }));
        }
    }

    fn trouble(&self) -> Option<Cow<'_, str>> {
        let text = match self.logic.state() {
            State::NoPose => "the pose is unknown",
            State::PoseJumped => "the pose has jumped; the robot waits until it is reliable again",
            State::PoseLost => "the pose is outdated",
            State::Blocked => match self.reason {
                Reason::Stuck | Reason::Slip | Reason::Bump => {
                    return Some(self.reason.to_string().into());
                }
                _ => return None,
            },
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
