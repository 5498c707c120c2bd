//! The goals of the action `navigate_to_pose`. PURE.
//!
//! ```text
//!   ACCEPTED -> EXECUTING -> SUCCEEDED
//!                         -> ABORTED       replaced by a newer goal, stopped, occupied by somebody
//!            -> CANCELING -> CANCELED
//! ```
//!
//! Each goal is a trip: an order of DriveToPoint, so its result is what the driver says about the end of
//! this order. Nodes of ROS 2 see why a goal fails only in its result. So a goal that the robot refuses is
//! accepted and aborted, as Nav2 does it.

use amber_map::Pose;
use amber_robot::robot::{Trip, TripEnd, TripNews};
use amber_ros2::messages::{
    CancelGoalRequest, CancelGoalResponse, GetResultResponse, GoalId, GoalInfo, GoalStatus,
    GoalStatusArray, Header, NavigateFeedback, NavigateFeedbackMessage, NavigateResult,
    PoseStamped, SendGoalRequest, Time, TimeSpan,
};
use amber_values::Target;

use super::convert::{self, Frames};
use crate::limits::{MAX_GOALS, MAX_RESULTS};

/// Nav2's own code for an error without a code of its own.
const UNKNOWN_ERROR: u16 = 9000;

/// The goals of all nodes. `R` is a request that waits for a result.
#[derive(Debug)]
pub struct Goals<R> {
    /// The oldest first.
    goals: Vec<Goal<R>>,
    /// The number of the last trip.
    last: u64,
}

#[derive(Debug)]
struct Goal<R> {
    info: GoalInfo,
    trip: Trip,
    accepted_ns: u64,
    status: i8,
    result: NavigateResult,
    waiting: Vec<R>,
}

/// The first step of a goal that is accepted.
#[derive(Clone, Debug, PartialEq)]
pub enum Begun {
    /// Make this trip.
    Go(Trip, Target),
    /// It is aborted at once, for this reason.
    Aborted(String),
}

/// What news mean for nodes.
#[derive(Debug)]
pub struct Told<R> {
    /// For the topic `feedback`.
    pub feedback: Option<NavigateFeedbackMessage>,
    /// Whether the topic `status` has changed.
    pub has_changed: bool,
    /// Requests that get this result now.
    pub results: Vec<(R, GetResultResponse)>,
    /// Why the robot has not begun.
    pub refused: Option<String>,
}

impl<R> Default for Goals<R> {
    fn default() -> Self {
        Self {
            goals: Vec::new(),
            last: 0,
        }
    }
}

impl<R> Goals<R> {
    /// A node sends a goal. `None` if it is rejected: another goal has its number, or there are too
    /// many.
    pub fn send(
        &mut self,
        now_ns: u64,
        request: &SendGoalRequest,
        frames: &Frames,
    ) -> Option<Begun> {
        let running = self.goals.iter().filter(|goal| !goal.is_over()).count();
        if self.find(request.goal_id).is_some() || running >= MAX_GOALS {
            return None;
        }
        self.last += 1;
        let mut goal = Goal {
            info: GoalInfo {
                goal_id: request.goal_id,
                stamp: Time::from_ns(now_ns),
            },
            trip: Trip(self.last),
            accepted_ns: now_ns,
            status: GoalStatus::ACCEPTED,
            result: NavigateResult::default(),
            waiting: Vec::new(),
        };
        let begun = match convert::goal(&request.goal.pose, frames) {
            Ok(target) => Begun::Go(goal.trip, target),
            Err(refusal) => {
                goal.end(GoalStatus::ABORTED, &refusal.to_string());
                Begun::Aborted(refusal.to_string())
            }
        };
        self.goals.push(goal);
        self.forget_oldest();
        Some(begun)
    }

    /// A node cancels goals. Returns the trips to cancel.
    pub fn cancel(&mut self, request: &CancelGoalRequest) -> (CancelGoalResponse, Vec<Trip>) {
        let wanted = request.goal_info;
        let (mut goals_canceling, mut trips) = (Vec::new(), Vec::new());
        for goal in &mut self.goals {
            let can_end = [GoalStatus::ACCEPTED, GoalStatus::EXECUTING].contains(&goal.status);
            if can_end && wanted.is_meant(&goal.info) {
                goal.status = GoalStatus::CANCELING;
                goals_canceling.push(goal.info);
                trips.push(goal.trip);
            }
        }
        let is_one = wanted.goal_id != GoalId::default() && wanted.stamp == Time::default();
        let return_code = match self.find(wanted.goal_id) {
            None if is_one => CancelGoalResponse::UNKNOWN_GOAL_ID,
            Some(goal) if is_one && goal.is_over() => CancelGoalResponse::GOAL_TERMINATED,
            _ => CancelGoalResponse::NONE,
        };
        let response = CancelGoalResponse {
            return_code,
            goals_canceling,
        };
        (response, trips)
    }

    /// A node asks for a result. Without a result yet, the request waits for it.
    pub fn result(&mut self, goal: GoalId, request: R) -> Option<(R, GetResultResponse)> {
        let found = self.goals.iter_mut().find(|it| it.info.goal_id == goal);
        match found {
            None => Some((request, GetResultResponse::default())),
            Some(goal) if goal.is_over() => Some((request, goal.told())),
            Some(goal) => {
                goal.waiting.push(request);
                None
            }
        }
    }

    /// The robot is on its way, or a trip is over.
    pub fn take_news(
        &mut self,
        now_ns: u64,
        trip: Trip,
        news: &TripNews,
        frames: &Frames,
    ) -> Told<R> {
        let mut told = Told {
            feedback: None,
            has_changed: false,
            results: Vec::new(),
            refused: None,
        };
        let Some(goal) = self.goals.iter_mut().find(|goal| goal.trip == trip) else {
            return told;
        };
        match news {
            TripNews::Progress { pose, remaining_m } if !goal.is_over() => {
                if goal.status == GoalStatus::ACCEPTED {
                    goal.status = GoalStatus::EXECUTING;
                    told.has_changed = true;
                }
                told.feedback = Some(NavigateFeedbackMessage {
                    goal_id: goal.info.goal_id,
                    feedback: NavigateFeedback {
                        current_pose: PoseStamped {
                            header: Header::new(now_ns, &frames.map),
                            pose: convert::ros_pose(Pose::from(*pose)),
                        },
                        navigation_time: TimeSpan::from_ns(now_ns.saturating_sub(goal.accepted_ns)),
                        distance_remaining: remaining_m.unwrap_or_default() as f32,
                        ..NavigateFeedback::default()
                    },
                });
            }
            TripNews::Ended(end) if !goal.is_over() => {
                let is_cancelled = goal.status == GoalStatus::CANCELING;
                match end {
                    TripEnd::Arrived => goal.end(GoalStatus::SUCCEEDED, ""),
                    TripEnd::Cancelled(why) => goal.end(GoalStatus::CANCELED, why),
                    TripEnd::Failed(why) | TripEnd::Refused(why) if is_cancelled => {
                        goal.end(GoalStatus::CANCELED, why);
                    }
                    TripEnd::Failed(why) => goal.end(GoalStatus::ABORTED, why),
                    TripEnd::Refused(why) => {
                        goal.end(GoalStatus::ABORTED, why);
                        told.refused = Some(why.clone());
                    }
                }
                told.has_changed = true;
                let result = goal.told();
                let waiting = goal.waiting.drain(..);
                told.results = waiting.map(|request| (request, result.clone())).collect();
                self.forget_oldest();
            }
            TripNews::Progress { .. } | TripNews::Ended(_) => {}
        }
        told
    }

    /// The states of all goals.
    #[must_use]
    pub fn statuses(&self) -> GoalStatusArray {
        let all = self.goals.iter().map(|goal| GoalStatus {
            goal_info: goal.info,
            status: goal.status,
        });
        GoalStatusArray {
            status_list: all.collect(),
        }
    }

    fn find(&self, id: GoalId) -> Option<&Goal<R>> {
        self.goals.iter().find(|goal| goal.info.goal_id == id)
    }

    /// Of the goals that are over, some are kept.
    fn forget_oldest(&mut self) {
        let over = self.goals.iter().filter(|goal| goal.is_over()).count();
        let mut too_many = over.saturating_sub(MAX_RESULTS);
        self.goals.retain(|goal| {
            let is_gone = goal.is_over() && too_many > 0;
            too_many -= usize::from(is_gone);
            !is_gone
        });
    }
}

impl<R> Goal<R> {
    fn is_over(&self) -> bool {
        self.status > GoalStatus::CANCELING
    }

    fn end(&mut self, status: i8, why: &str) {
        self.status = status;
        self.result = NavigateResult {
            error_code: match status {
                GoalStatus::ABORTED => UNKNOWN_ERROR,
                _ => 0,
            },
            error_msg: why.to_owned(),
        };
    }

    fn told(&self) -> GetResultResponse {
        GetResultResponse {
            status: self.status,
            result: self.result.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use amber_ros2::messages::NavigateGoal;
    use amber_values::MapPose;

    use super::*;

    const S: u64 = 1_000_000_000;

    fn frames() -> Frames {
        Frames::with_prefix("r1/")
    }

    fn id(number: u8) -> GoalId {
        GoalId { uuid: [number; 16] }
    }

    fn request(number: u8, frame: &str) -> SendGoalRequest {
        SendGoalRequest {
            goal_id: id(number),
            goal: NavigateGoal {
                pose: PoseStamped {
                    header: Header::new(0, frame),
                    pose: convert::ros_pose(Pose::new(1.0, 2.0, 0.0)),
                },
                behavior_tree: String::new(),
            },
        }
    }

    fn send(goals: &mut Goals<u32>, number: u8) -> Trip {
        match goals.send(S, &request(number, "map"), &frames()) {
            Some(Begun::Go(trip, target)) => {
                assert_eq!((target.x_m, target.y_m), (1.0, -2.0));
                trip
            }
            other => panic!("{other:?}"),
        }
    }

    fn cancel(goals: &mut Goals<u32>, number: u8) -> (i8, usize, Vec<Trip>) {
        let goal_info = GoalInfo {
            goal_id: id(number),
            ..GoalInfo::default()
        };
        let (response, trips) = goals.cancel(&CancelGoalRequest { goal_info });
        (response.return_code, response.goals_canceling.len(), trips)
    }

    fn ended(goals: &mut Goals<u32>, trip: Trip, end: TripEnd) -> Told<u32> {
        goals.take_news(9 * S, trip, &TripNews::Ended(end), &frames())
    }

    fn statuses(goals: &Goals<u32>) -> Vec<i8> {
        let all = goals.statuses().status_list.into_iter();
        all.map(|status| status.status).collect()
    }

    #[test]
    fn a_goal_gets_feedback_and_one_result() {
        let mut goals = Goals::default();
        let trip = send(&mut goals, 7);
        assert_eq!(statuses(&goals), [GoalStatus::ACCEPTED]);
        assert!(goals.result(id(7), 70).is_none());
        let progress = TripNews::Progress {
            pose: MapPose::new(0.5, -1.0, 0.0),
            remaining_m: Some(1.5),
        };
        let told = goals.take_news(4 * S, trip, &progress, &frames());
        assert!(told.has_changed && told.results.is_empty());
        let feedback = told.feedback.unwrap();
        assert_eq!(feedback.goal_id, id(7));
        assert_eq!(feedback.feedback.navigation_time.sec, 3);
        assert_eq!(feedback.feedback.distance_remaining, 1.5);
        let at = feedback.feedback.current_pose;
        assert_eq!(
            (at.pose.position.y, at.header.frame_id.as_str()),
            (1.0, "map")
        );
        assert!(
            !goals
                .take_news(5 * S, trip, &progress, &frames())
                .has_changed
        );
        let told = ended(&mut goals, trip, TripEnd::Arrived);
        let expected = GetResultResponse {
            status: GoalStatus::SUCCEEDED,
            result: NavigateResult::default(),
        };
        assert_eq!(told.results, [(70, expected.clone())]);
        // Late questions, and late news.
        assert_eq!(goals.result(id(7), 71), Some((71, expected)));
        let late = goals.take_news(9 * S, trip, &progress, &frames());
        assert!(late.feedback.is_none() && !late.has_changed);
        let unknown = goals.result(id(8), 80).unwrap().1;
        assert_eq!(unknown.status, GoalStatus::UNKNOWN);
    }

    #[test]
    fn goals_end_in_the_states_of_ros() {
        let why = || "occupied by bob".to_owned();
        for (is_cancelled, end, status, code) in [
            (false, TripEnd::Failed(why()), GoalStatus::ABORTED, 9000),
            (false, TripEnd::Refused(why()), GoalStatus::ABORTED, 9000),
            (false, TripEnd::Cancelled(why()), GoalStatus::CANCELED, 0),
            (true, TripEnd::Cancelled(why()), GoalStatus::CANCELED, 0),
            (true, TripEnd::Failed(why()), GoalStatus::CANCELED, 0),
        ] {
            let mut goals = Goals::default();
            let trip = send(&mut goals, 7);
            if is_cancelled {
                assert_eq!(cancel(&mut goals, 7), (0, 1, vec![trip]));
                assert_eq!(statuses(&goals), [GoalStatus::CANCELING]);
            }
            let is_refused = matches!(end, TripEnd::Refused(_));
            let told = ended(&mut goals, trip, end);
            assert_eq!(told.refused.is_some(), is_refused);
            let result = goals.result(id(7), 0).unwrap().1;
            assert_eq!((result.status, result.result.error_code), (status, code));
            assert_eq!(result.result.error_msg, "occupied by bob");
        }
        // Never begun: the reason is in the result.
        let mut goals = Goals::<u32>::default();
        let begun = goals.send(S, &request(1, "r1/odom"), &frames()).unwrap();
        assert!(matches!(&begun, Begun::Aborted(why) if why.contains("not in 'r1/odom'")));
        let result = goals.result(id(1), 0).unwrap().1;
        assert_eq!(result.status, GoalStatus::ABORTED);
        assert!(result.result.error_msg.contains("not in 'r1/odom'"));
    }

    #[test]
    fn only_goals_that_run_are_cancelled() {
        let mut goals = Goals::default();
        let first = send(&mut goals, 1);
        assert_eq!(
            cancel(&mut goals, 9),
            (CancelGoalResponse::UNKNOWN_GOAL_ID, 0, vec![])
        );
        ended(&mut goals, first, TripEnd::Arrived);
        assert_eq!(
            cancel(&mut goals, 1),
            (CancelGoalResponse::GOAL_TERMINATED, 0, vec![])
        );
        let (second, third) = (send(&mut goals, 2), send(&mut goals, 3));
        // All of them.
        assert_eq!(cancel(&mut goals, 0), (0, 2, vec![second, third]));
        assert_eq!(cancel(&mut goals, 0), (0, 0, vec![]));
    }

    #[test]
    fn goals_are_bounded() {
        let mut goals = Goals::default();
        let first = send(&mut goals, 0);
        // Twice the same.
        assert_eq!(goals.send(S, &request(0, "map"), &frames()), None);
        for number in 1..MAX_GOALS {
            send(&mut goals, number as u8);
        }
        assert_eq!(goals.send(S, &request(100, "map"), &frames()), None);
        ended(&mut goals, first, TripEnd::Arrived);
        for number in 100..200 {
            let trip = send(&mut goals, number);
            ended(&mut goals, trip, TripEnd::Arrived);
        }
        assert_eq!(goals.goals.len(), MAX_GOALS - 1 + MAX_RESULTS);
        assert_eq!(
            goals.result(id(0), 0).unwrap().1.status,
            GoalStatus::UNKNOWN
        );
        let newest = goals.result(id(199), 0).unwrap().1;
        assert_eq!(newest.status, GoalStatus::SUCCEEDED);
    }
}
