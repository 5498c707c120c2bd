//! The action `navigate_to_pose`. IO.
//!
//! ```text
//!   send_goal, cancel_goal, get_result --> calls --> one task with all goals --> control, as trips
//!                         replies, feedback, status <--'              ^--- how they go
//! ```

use std::sync::Arc;

use amber_robot::robot::{Trip, TripNews};
use amber_ros2::attachment::Gid;
use amber_ros2::decode;
use amber_ros2::messages::{
    CancelGoalRequest, GetResultRequest, NavigateFeedbackMessage, SendGoalRequest,
    SendGoalResponse, Time, TrackedFeedback, TrackedFeedbackMessage,
};
use amber_values::Target;
use tokio::sync::mpsc;

use super::super::control::{Input, Travel};
use super::super::goals::Goals as Refusals;
use super::super::publisher::unix_ns;
use super::super::vigil::Sender;
use super::Shared;
use super::inputs::Door;
use super::node::Publisher;
use super::services::{Call, Reply, Service, Services};
use crate::limits::MAX_QUESTIONS;
use crate::ros::actions::{Begun, Goals};
use crate::ros::layout::Layout;
use crate::ros::topics::Topic;

/// A request of a node, with its reply.
enum Asked {
    Send(SendGoalRequest, Option<Gid>, Reply),
    Cancel(CancelGoalRequest, Reply),
    Result(GetResultRequest, Reply),
}

/// The action, which ends when this is dropped.
pub(super) struct Navigate {
    shared: Arc<Shared>,
    door: Arc<Door>,
    refusals: Refusals,
    calls: mpsc::Receiver<Asked>,
    trips: mpsc::UnboundedReceiver<(Trip, TripNews)>,
    feedback: Publisher<NavigateFeedbackMessage>,
    tracked: Publisher<TrackedFeedbackMessage>,
    status: Publisher<amber_ros2::messages::GoalStatusArray>,
    _services: [Service; 3],
}

impl Navigate {
    pub(super) async fn declare(
        services: &Services,
        door: &Arc<Door>,
        refusals: Refusals,
        trips: mpsc::UnboundedReceiver<(Trip, TripNews)>,
    ) -> Result<Self, zenoh::Error> {
        let (node, layout) = (&services.shared.node, Layout::RmwZenoh);
        let (ask, calls) = mpsc::channel(MAX_QUESTIONS);
        let entry = Entry {
            ask,
            door: door.clone(),
        };
        // Topics first: when a client finds the services, it finds all.
        let feedback = node.publisher(Topic::Feedback).await?;
        let tracked = node.publisher(Topic::Feedback).await?;
        let status = node.publisher(Topic::Status).await?;
        let cancel = entry.clone();
        let cancel = services.serve::<CancelGoalRequest>(layout, Topic::CancelGoal, move |call| {
            cancel.take(call, |request, _, reply| Asked::Cancel(request, reply));
        });
        let cancel = cancel.await?;
        let result = entry.clone();
        let result = services.serve::<GetResultRequest>(layout, Topic::GetResult, move |call| {
            result.take(call, |request, _, reply| Asked::Result(request, reply));
        });
        let result = result.await?;
        let send = services.serve::<SendGoalRequest>(layout, Topic::SendGoal, move |call| {
            entry.take(call, Asked::Send);
        });
        Ok(Self {
            shared: services.shared.clone(),
            door: door.clone(),
            refusals,
            calls,
            trips,
            feedback,
            tracked,
            status,
            _services: [cancel, result, send.await?],
        })
    }

    /// Runs until it is aborted.
    pub(super) async fn run(mut self) {
        let mut goals = Goals::default();
        // For those who come before the first goal.
        self.status.publish(&goals.statuses());
        loop {
            tokio::select! {
                // News first: then a new goal finds room.
                biased;
                Some((trip, news)) = self.trips.recv() => {
                    self.take_news(&mut goals, trip, &news);
                }
                Some(asked) = self.calls.recv() => self.take(&mut goals, asked),
                else => return,
            }
        }
    }

    fn take(&self, goals: &mut Goals<Reply>, asked: Asked) {
        match asked {
            Asked::Send(request, author, reply) => {
                let now_ns = unix_ns();
                let begun = goals.send(now_ns, &request, &self.shared.config.frames);
                reply.send(&SendGoalResponse {
                    accepted: begun.is_some(),
                    stamp: Time::from_ns(now_ns),
                });
                match begun {
                    Some(Begun::Go(trip, target)) => self.go(goals, trip, target, author),
                    Some(Begun::Aborted(why)) => self.refusals.refused(&why),
                    None => self.door.counters.count("ros_goals_rejected"),
                }
                self.status.publish(&goals.statuses());
            }
            Asked::Cancel(request, reply) => {
                let (response, trips) = goals.cancel(&request);
                for trip in trips {
                    let program = self.door.program.clone();
                    self.door.send(Input::CancelTrip(program, trip));
                }
                reply.send(&response);
                self.status.publish(&goals.statuses());
            }
            Asked::Result(request, reply) => {
                if let Some((reply, response)) = goals.result(request.goal_id, reply) {
                    reply.send(&response);
                }
            }
        }
    }

    /// From now on, the node that has sent the goal must give signs of life.
    fn go(&self, goals: &mut Goals<Reply>, trip: Trip, target: Target, author: Option<Gid>) {
        let Some(permit) = self.door.permit() else {
            let why = "too many messages wait".to_owned();
            let ended = TripNews::Ended(amber_robot::robot::TripEnd::Refused(why));
            return self.take_news(goals, trip, &ended);
        };
        if let Some(author) = author {
            self.door.asking.vigil().set(Sender::Node(author));
        }
        self.door.send(Input::Travel(Travel {
            program: self.door.program.clone(),
            device: self.shared.devices().targets,
            trip,
            target,
            _permit: permit,
        }));
    }

    fn take_news(&self, goals: &mut Goals<Reply>, trip: Trip, news: &TripNews) {
        let told = goals.take_news(unix_ns(), trip, news, &self.shared.config.frames);
        if let Some(feedback) = told.feedback {
            self.feedback.publish(&feedback);
            self.tracked.publish(&TrackedFeedbackMessage {
                goal_id: feedback.goal_id,
                feedback: TrackedFeedback::new(&feedback.feedback),
            });
        }
        if let Some(why) = told.refused {
            self.refusals.refused(&why);
        }
        if told.has_changed {
            self.status.publish(&goals.statuses());
        }
        for (reply, response) in told.results {
            reply.send(&response);
        }
    }
}

/// The way of calls to the task.
#[derive(Clone)]
struct Entry {
    ask: mpsc::Sender<Asked>,
    door: Arc<Door>,
}

impl Entry {
    fn take<M: amber_ros2::RosMessage>(
        &self,
        call: Call,
        asked: impl FnOnce(M, Option<Gid>, Reply) -> Asked,
    ) {
        let request = match decode::<M>(&call.payload) {
            Ok(request) => request,
            Err(error) => {
                tracing::debug!("a call of navigate_to_pose cannot be read: {error}");
                return self.door.counters.count("ros_dropped_unreadable");
            }
        };
        let author = call.author;
        let Some(reply) = call.reply() else {
            return;
        };
        if self.ask.try_send(asked(request, author, reply)).is_err() {
            self.door.counters.count("queries_dropped_busy");
        }
    }
}
