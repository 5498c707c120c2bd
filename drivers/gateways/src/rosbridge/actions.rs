//! The goals of a client: the action `navigate_to_pose`, with feedback, result and cancelling. PURE.
//!
//! Each goal is an order of DriveToPoint, so its result is what the driver says about the end of this
//! order.

use std::time::Duration;

use amber_robot::robot::{Trip, TripEnd, TripNews};
use amber_values::Target;
use serde_json::{Value, json};

use super::codec::{CancelActionGoal, Id, Response, SendActionGoal};
use super::messages;
use crate::shared::clock::Now;

/// The only action, as Nav2 calls it.
pub(super) const ACTION: &str = "navigate_to_pose";
/// Its type, as ROS 2 writes it.
pub(super) const ACTION_TYPE: &str = "nav2_msgs/action/NavigateToPose";

/// Goals of one client that have no result yet. A new one replaces the last one, whose result comes
/// within a second.
const MAX_GOALS: usize = 8;
/// Nav2's own code for an error without a code of its own.
const UNKNOWN_ERROR: u16 = 9000;

/// The states of `action_msgs/GoalStatus` in which goals end.
#[derive(Clone, Copy)]
enum Status {
    /// It was never accepted.
    Unknown = 0,
    Succeeded = 4,
    Canceled = 5,
    Aborted = 6,
}

/// The goals of a client that have no result yet.
#[derive(Debug, Default)]
pub(super) struct Goals {
    running: Vec<Goal>,
    /// The number of the last trip.
    last: u64,
}

#[derive(Debug)]
struct Goal {
    trip: Trip,
    id: Option<Id>,
    /// As the client writes it.
    action: String,
    wants_feedback: bool,
    since: Duration,
}

impl Goals {
    /// A client sends a goal. Returns the trip to make.
    ///
    /// # Errors
    /// The reason why it is refused, for people.
    pub(super) fn begin(
        &mut self,
        now: Now,
        goal: SendActionGoal,
    ) -> Result<(Trip, Target), String> {
        let SendActionGoal {
            id,
            action,
            action_type,
            args,
            feedback,
        } = goal;
        if action.trim_start_matches('/') != ACTION {
            return Err(format!("no action \"{action}\", only \"/{ACTION}\""));
        }
        // Also as ROS 1 would write it.
        if action_type.replace("/action/", "/") != ACTION_TYPE.replace("/action/", "/") {
            return Err(format!(
                "{action} has the type \"{ACTION_TYPE}\", not \"{action_type}\""
            ));
        }
        let pose = args.get("pose").ok_or("pose is missing")?;
        let target = messages::goal(pose)?;
        if self.running.len() >= MAX_GOALS {
            return Err(format!("more than {MAX_GOALS} goals without a result"));
        }
        self.last += 1;
        let trip = Trip(self.last);
        self.running.push(Goal {
            trip,
            id,
            action,
            wants_feedback: feedback,
            since: now.elapsed,
        });
        Ok((trip, target))
    }

    /// A client cancels a goal. Returns the trip that ends.
    ///
    /// # Errors
    /// There is no such goal.
    pub(super) fn cancel(&self, cancel: &CancelActionGoal) -> Result<Trip, String> {
        let same = |goal: &&Goal| goal.id == cancel.id && goal.action == cancel.action;
        let found = self.running.iter().rfind(same);
        let none = || format!("{}: there is no goal with this id", cancel.action);
        Ok(found.ok_or_else(none)?.trip)
    }

    /// The answer to news about a trip; `None` if the client wants none.
    pub(super) fn news(&mut self, now: Now, trip: Trip, news: &TripNews) -> Option<Response> {
        let place = self.running.iter().position(|goal| goal.trip == trip)?;
        match news {
            TripNews::Progress { pose, remaining_m } => {
                let goal = &self.running[place];
                let took = now.elapsed.saturating_sub(goal.since);
                goal.wants_feedback.then(|| Response::ActionFeedback {
                    id: goal.id.clone(),
                    action: goal.action.clone(),
                    values: json!({
                        "current_pose": messages::pose(*pose, now.unix),
                        "navigation_time": messages::stamp(took),
                        "estimated_time_remaining": messages::stamp(Duration::ZERO),
                        "number_of_recoveries": 0,
                        "distance_remaining": remaining_m.unwrap_or_default(),
                    }),
                })
            }
            TripNews::Ended(end) => Some(self.running.remove(place).ended(end)),
        }
    }
}

impl Goal {
    fn ended(self, end: &TripEnd) -> Response {
        let (status, values) = match end {
            TripEnd::Arrived => (Status::Succeeded, outcome(0, "")),
            TripEnd::Cancelled(why) => (Status::Canceled, outcome(0, why)),
            TripEnd::Failed(why) => (Status::Aborted, outcome(UNKNOWN_ERROR, why)),
            // As the original server answers if there is no result.
            TripEnd::Refused(why) => (Status::Unknown, Value::from(why.as_str())),
        };
        Response::ActionResult {
            id: self.id,
            action: self.action,
            values,
            status: status as u8,
            result: !matches!(end, TripEnd::Refused(_)),
        }
    }
}

/// Tells the client of a goal that was never begun why.
pub(super) fn refused(id: Option<Id>, action: String, why: String) -> Response {
    Response::ActionResult {
        id,
        action,
        values: why.into(),
        status: Status::Unknown as u8,
        result: false,
    }
}

fn outcome(error_code: u16, error_msg: &str) -> Value {
    json!({ "result": {}, "error_code": error_code, "error_msg": error_msg })
}

#[cfg(test)]
mod tests {
    use amber_values::MapPose;

    use super::*;

    fn goal(id: &str) -> SendActionGoal {
        SendActionGoal {
            id: Some(Id::Text(id.into())),
            action: "/navigate_to_pose".into(),
            action_type: ACTION_TYPE.into(),
            args: json!({"pose": {"header": {"frame_id": "map"},
                "pose": {"position": {"x": 1, "y": -2}}}}),
            feedback: true,
        }
    }

    fn at(ms: u64) -> Now {
        Now::from_millis(ms)
    }

    fn json_of(response: Option<Response>) -> Value {
        serde_json::from_str(&response.unwrap().text()).unwrap()
    }

    #[test]
    fn a_goal_gets_feedback_and_one_result() {
        for (end, status, result, values) in [
            (TripEnd::Arrived, 4, true, outcome(0, "")),
            (
                TripEnd::Cancelled("cancelled by client 8".into()),
                5,
                true,
                outcome(0, "cancelled by client 8"),
            ),
            (
                TripEnd::Failed("replaced by amber goto (client 7)".into()),
                6,
                true,
                outcome(9000, "replaced by amber goto (client 7)"),
            ),
            (
                TripEnd::Refused("amber goto holds the lease".into()),
                0,
                false,
                json!("amber goto holds the lease"),
            ),
        ] {
            let mut goals = Goals::default();
            let (trip, target) = goals.begin(at(1_000), goal("a")).unwrap();
            assert_eq!((target.x_m, target.y_m), (1.0, 2.0));
            let progress = TripNews::Progress {
                pose: MapPose::new(0.5, 1.0, 0.0),
                remaining_m: Some(1.5),
            };
            let feedback = json_of(goals.news(at(2_500), trip, &progress));
            assert_eq!(
                (&feedback["op"], &feedback["id"], &feedback["action"]),
                (
                    &json!("action_feedback"),
                    &json!("a"),
                    &json!("/navigate_to_pose")
                )
            );
            let shown = &feedback["values"];
            assert_eq!(shown["distance_remaining"], 1.5);
            assert_eq!(shown["navigation_time"]["sec"], 1);
            assert_eq!(shown["current_pose"]["pose"]["position"]["x"], 0.5);
            let ended = goals.news(at(3_000), trip, &TripNews::Ended(end.clone()));
            let expected = json!({
                "op": "action_result", "id": "a", "action": "/navigate_to_pose",
                "values": values, "status": status, "result": result,
            });
            assert_eq!(json_of(ended), expected);
            assert_eq!(goals.news(at(3_000), trip, &progress), None);
        }
    }

    #[test]
    fn a_client_cancels_its_own_goal() {
        let mut goals = Goals::default();
        let (first, _) = goals.begin(at(0), goal("a")).unwrap();
        let (second, _) = goals.begin(at(0), goal("b")).unwrap();
        assert_ne!(first, second);
        let cancel = |id: &str| CancelActionGoal {
            id: Some(Id::Text(id.into())),
            action: "/navigate_to_pose".into(),
        };
        assert_eq!(goals.cancel(&cancel("a")), Ok(first));
        assert_eq!(goals.cancel(&cancel("b")), Ok(second));
        let none = goals.cancel(&cancel("c")).unwrap_err();
        assert_eq!(none, "/navigate_to_pose: there is no goal with this id");
    }

    #[test]
    fn goals_that_make_no_sense_are_refused() {
        for (change, expected) in [
            (json!({"action": "/dock"}), "no action \"/dock\", only"),
            (
                json!({"action_type": "nav2_msgs/action/Dock"}),
                "has the type",
            ),
            (json!({"args": {}}), "pose is missing"),
            (
                json!({"args": {"pose": {"header": {"frame_id": "odom"}}}}),
                "frame \"odom\" is unknown",
            ),
        ] {
            let mut text = json!({"action": "navigate_to_pose", "action_type": ACTION_TYPE,
                "args": {"pose": {}}});
            text.as_object_mut()
                .unwrap()
                .extend(change.as_object().unwrap().clone());
            let goal: SendActionGoal = serde_json::from_value(text).unwrap();
            let refused = Goals::default().begin(at(0), goal).unwrap_err();
            assert!(refused.contains(expected), "{refused}");
        }
        let mut goals = Goals::default();
        for number in 0..MAX_GOALS {
            goals.begin(at(0), goal(&number.to_string())).unwrap();
        }
        let refused = goals.begin(at(0), goal("9")).unwrap_err();
        assert_eq!(refused, "more than 8 goals without a result");
    }
}
