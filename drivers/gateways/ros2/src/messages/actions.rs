//! Actions, and the action `navigate_to_pose` of Nav2. PURE.
//!
//! An action is three services and two topics: `send_goal`, `get_result`, `cancel_goal`, `feedback`
//! and `status`, with names such as `navigate_to_pose/_action/send_goal`.

use super::{PoseStamped, Time, message, typed};

message! {
    /// The number of a goal, which its client chooses at random.
    #[derive(Copy, Eq, Hash, PartialOrd, Ord)]
    GoalId = "unique_identifier_msgs" "UUID" {
        /// Its bytes.
        uuid: [u8; 16],
    }
}

message! {
    /// A goal, and when it was accepted.
    #[derive(Copy, Eq)]
    GoalInfo = "action_msgs" "GoalInfo" {
        goal_id: GoalId,
        /// When it was accepted.
        stamp: Time,
    }
}

message! {
    /// The state of a goal.
    #[derive(Copy, Eq)]
    GoalStatus = "action_msgs" "GoalStatus" {
        goal_info: GoalInfo,
        /// One of the numbers below.
        status: i8,
    }
}

message! {
    /// The states of all goals: the topic `status`.
    #[derive(Eq)]
    GoalStatusArray = "action_msgs" "GoalStatusArray" {
        /// One entry for each goal.
        status_list: Vec<GoalStatus>,
    }
}

message! {
    #[derive(Copy, Eq)]
    CancelGoalRequest = "action_msgs/srv/CancelGoal_Request" {
        /// The goal, or all until a time: see [`GoalInfo::is_meant`].
        goal_info: GoalInfo,
    }
}

message! {
    /// The reply.
    #[derive(Eq)]
    CancelGoalResponse = "action_msgs/srv/CancelGoal_Response" {
        /// One of the numbers below.
        return_code: i8,
        /// The goals that end.
        goals_canceling: Vec<GoalInfo>,
    }
}

message! {
    /// A place to drive to.
    NavigateGoal = "nav2_msgs/action/NavigateToPose_Goal" {
        /// The place.
        pose: PoseStamped,
        /// The file of a behavior tree.
        behavior_tree: String,
    }
}

message! {
    /// The result of a goal.
    #[derive(Eq)]
    NavigateResult = "nav2_msgs/action/NavigateToPose_Result" {
        /// 0, or the kind of error.
        error_code: u16,
        /// The error, for people.
        error_msg: String,
    }
}

message! {
    /// A length of time.
    #[derive(Copy, Eq)]
    TimeSpan = "builtin_interfaces" "Duration" {
        /// Seconds.
        sec: i32,
        /// Nanoseconds in this second.
        nanosec: u32,
    }
}

message! {
    /// The progress of a goal.
    NavigateFeedback = "nav2_msgs/action/NavigateToPose_Feedback" {
        /// The pose of the robot.
        current_pose: PoseStamped,
        /// Since the goal was accepted.
        navigation_time: TimeSpan,
        /// Until the robot arrives.
        estimated_time_remaining: TimeSpan,
        /// How often the robot has freed itself.
        number_of_recoveries: i16,
        /// Metres to the goal, along the path.
        distance_remaining: f32,
    }
}

message! {
    /// The topic `feedback` of Jazzy and Kilted.
    NavigateFeedbackMessage = "nav2_msgs/action/NavigateToPose_FeedbackMessage" {
        goal_id: GoalId,
        /// Its progress.
        feedback: NavigateFeedback,
    }
}

message! {
    /// The progress of a goal, as Lyrical has it.
    TrackedFeedback = "nav2_msgs/action/NavigateToPose_Feedback" {
        /// The pose of the robot.
        current_pose: PoseStamped,
        /// Since the goal was accepted.
        navigation_time: TimeSpan,
        /// Until the robot arrives.
        estimated_time_remaining: TimeSpan,
        /// How often the robot has freed itself.
        number_of_recoveries: i16,
        /// Metres to the goal, along the path.
        distance_remaining: f32,
        /// Metres to the nearest point of the path.
        position_tracking_error: f32,
        /// Radians to its direction there.
        heading_tracking_error: f32,
    }
}

message! {
    /// The topic `feedback` of Lyrical.
    TrackedFeedbackMessage = "nav2_msgs/action/NavigateToPose_FeedbackMessage" {
        goal_id: GoalId,
        /// Its progress.
        feedback: TrackedFeedback,
    }
}

message! {
    /// A new goal.
    SendGoalRequest = "nav2_msgs/action/NavigateToPose_SendGoal_Request" {
        /// Its number.
        goal_id: GoalId,
        /// The place.
        goal: NavigateGoal,
    }
}

message! {
    /// Whether a goal is accepted.
    #[derive(Copy, Eq)]
    SendGoalResponse = "nav2_msgs/action/NavigateToPose_SendGoal_Response" {
        /// Whether it is.
        accepted: bool,
        /// When it was.
        stamp: Time,
    }
}

message! {
    /// The request for the result of a goal. The reply comes when the goal has ended.
    #[derive(Copy, Eq)]
    GetResultRequest = "nav2_msgs/action/NavigateToPose_GetResult_Request" {
        goal_id: GoalId,
    }
}

message! {
    /// The result of a goal.
    #[derive(Eq)]
    GetResultResponse = "nav2_msgs/action/NavigateToPose_GetResult_Response" {
        /// One of the numbers of [`GoalStatus`].
        status: i8,
        result: NavigateResult,
    }
}

typed! {
    Message "action_msgs" "GoalStatusArray"
    "6c1684b00f177d37438febe6e709fc4e2b0d4248dca4854946f9ed8b30cda83e": GoalStatusArray
}
typed! {
    Service "action_msgs" "CancelGoal"
    "573d8b0a534451d7bc2ac8c5ffde8ac14b8593b7001175d0cd6516dcbeb8689a":
    CancelGoalRequest CancelGoalResponse
}
typed! {
    Action "nav2_msgs" "NavigateToPose_SendGoal"
    "a4fcb3bee1bf32e21a0e541a943b221aa0826996e2c98f079b47022b256f48b5":
    SendGoalRequest SendGoalResponse
}
typed! {
    Action "nav2_msgs" "NavigateToPose_GetResult"
    "c407920357d566771e8882b4ef4d1f1a84ee922d609920ccd57faa6d6e391dc5":
    GetResultRequest GetResultResponse
}
typed! {
    Action "nav2_msgs" "NavigateToPose_FeedbackMessage"
    "9d1f6fa2eb975ce733b419ac2e97b134d8ff92b6478b6559feed9a50bdfd82b3": NavigateFeedbackMessage
}
typed! {
    Action "nav2_msgs" "NavigateToPose_FeedbackMessage"
    "2c1b4ec1a0e3a53c9aa326aabe717670eeef0ff3d4c3351ff940613b2011728a": TrackedFeedbackMessage
}

impl GoalStatus {
    /// There is no such goal.
    pub const UNKNOWN: i8 = 0;
    /// The goal is accepted, and has not begun.
    pub const ACCEPTED: i8 = 1;
    /// The robot is on its way.
    pub const EXECUTING: i8 = 2;
    /// The robot is about to stop, because the goal was cancelled.
    pub const CANCELING: i8 = 3;
    /// The robot has arrived.
    pub const SUCCEEDED: i8 = 4;
    /// The goal was cancelled.
    pub const CANCELED: i8 = 5;
    /// The robot does not drive there any more.
    pub const ABORTED: i8 = 6;
}

impl CancelGoalResponse {
    /// At least one goal ends.
    pub const NONE: i8 = 0;
    /// There is no such goal.
    pub const UNKNOWN_GOAL_ID: i8 = 2;
    /// The goal has ended before.
    pub const GOAL_TERMINATED: i8 = 3;
}

impl GoalInfo {
    /// Whether a request to cancel this means a goal. Without number and time, it means all goals;
    /// with a time, all that were accepted until then, and the one with the number.
    #[must_use]
    pub fn is_meant(&self, goal: &Self) -> bool {
        let (has_id, has_time) = (
            self.goal_id != GoalId::default(),
            self.stamp != Time::default(),
        );
        let is_same = has_id && goal.goal_id == self.goal_id;
        is_same || (has_time && goal.stamp <= self.stamp) || !(has_id || has_time)
    }
}

impl TimeSpan {
    /// A time in nanoseconds.
    #[must_use]
    pub fn from_ns(ns: u64) -> Self {
        let Time { sec, nanosec } = Time::from_ns(ns);
        Self { sec, nanosec }
    }
}

impl TrackedFeedback {
    /// The same for Lyrical. The errors are not measured.
    #[must_use]
    pub fn new(feedback: &NavigateFeedback) -> Self {
        Self {
            current_pose: feedback.current_pose.clone(),
            navigation_time: feedback.navigation_time,
            estimated_time_remaining: feedback.estimated_time_remaining,
            number_of_recoveries: feedback.number_of_recoveries,
            distance_remaining: feedback.distance_remaining,
            position_tracking_error: 0.0,
            heading_tracking_error: 0.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_to_cancel_means_one_goal_or_many() {
        let info = |id: u8, s: u64| GoalInfo {
            goal_id: GoalId { uuid: [id; 16] },
            stamp: Time::from_ns(s * 1_000_000_000),
        };
        let goals = [info(1, 5), info(2, 6), info(3, 7)];
        for (request, expected) in [
            (info(0, 0), [true, true, true]),
            (info(2, 0), [false, true, false]),
            (info(0, 6), [true, true, false]),
            (info(3, 5), [true, false, true]),
            (info(4, 0), [false, false, false]),
        ] {
            let meant = goals.map(|goal| request.is_meant(&goal));
            assert_eq!(meant, expected, "{request:?}");
        }
    }
}
