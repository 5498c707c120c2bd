//! Messages of ROS 2 nodes to the robot. IO.
//!
//! Zenoh calls the functions here in its own threads, so they never wait.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use amber_robot::robot::{Trip, TripNews};
use amber_ros2::messages::{SaveMapRequest, SaveMapResponse, TriggerRequest, TriggerResponse};
use amber_ros2::{EntityKind, decode};
use bytes::Bytes;
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::task::AbortHandle;
use zenoh::Session;
use zenoh::liveliness::LivelinessToken;
use zenoh::pubsub::Subscriber;
use zenoh::sample::{Sample, SampleKind};
use zenoh::time::Timestamp;

use super::super::clocks::Clocks;
use super::super::control::{Incoming, Input};
use super::super::goals::Goals;
use super::super::orders::Program;
use super::super::publisher::unix_ns;
use super::super::send_thread::{Caller, Permit, SendThread};
use super::super::vigil::Sender;
use super::Shared;
use super::asking::Asking;
use super::navigate::Navigate;
use super::services::{Service, Services};
use crate::counters::Counters;
use crate::keys::{Address, Way};
use crate::limits::{DEADLINE, MAX_ORDERS, MAX_ROS_DRIVERS, SAVE_DEADLINE};
use crate::problem::Problem;
use crate::ros::layout::Layout;
use crate::ros::orders::{Command, Envelope, Inbox, Wish, save_map, saved, stop};
use crate::ros::topics::Topic;
use crate::stamp::OrderStamp;

/// Declares the topics and services for nodes.
pub(super) struct Inputs {
    /// One operator for all nodes: the newest number counts.
    pub(super) program: Program,
    pub(super) asking: Asking,
    pub(super) shared: Arc<Shared>,
    pub(super) session: Session,
    pub(super) inputs: mpsc::UnboundedSender<Input>,
    pub(super) out: SendThread,
    pub(super) counters: Counters,
}

/// The declarations that end when the robot leaves.
#[derive(Default)]
pub(super) struct Declared {
    _tokens: Vec<LivelinessToken>,
    _subscribers: Vec<Subscriber<()>>,
    _services: Vec<Service>,
    action: Option<AbortHandle>,
}

impl Drop for Declared {
    fn drop(&mut self) {
        self.action.iter().for_each(AbortHandle::abort);
    }
}

/// The channel to the thread that decides about orders.
pub(super) struct Door {
    inputs: mpsc::UnboundedSender<Input>,
    pub(super) counters: Counters,
    orders: Arc<Semaphore>,
    start: Instant,
    clocks: Clocks,
    goals: Goals,
    pub(super) program: Program,
    pub(super) asking: Asking,
    sequence: Mutex<u64>,
}

impl Inputs {
    /// `trips` tells how the goals of the action go.
    pub(super) async fn declare(
        self,
        trips: mpsc::UnboundedReceiver<(Trip, TripNews)>,
    ) -> Result<Declared, zenoh::Error> {
        let mut declared = Declared::default();
        let shared = &self.shared;
        let door = Arc::new(Door {
            inputs: self.inputs.clone(),
            counters: self.counters.clone(),
            orders: Arc::new(Semaphore::new(MAX_ORDERS)),
            start: Instant::now(),
            clocks: self.shared.clocks.clone(),
            goals: self.shared.goals.clone(),
            program: self.program.clone(),
            asking: self.asking.clone(),
            sequence: Mutex::new(0),
        });
        let services = Services {
            shared: shared.clone(),
            session: self.session.clone(),
            out: self.out.clone(),
            counters: self.counters.clone(),
        };
        // All layouts together: their nodes are one operator.
        let tokens = Arc::new(Mutex::new(HashSet::new()));
        for &layout in &shared.config.layouts {
            self.subscribe(&mut declared, &door, layout).await?;
            if shared.has(Topic::Stop) {
                let service = self.serve_stop(&services, &door, layout).await?;
                declared._services.push(service);
            }
            if shared.has(Topic::SaveMap) {
                let service = self.serve_maps(&services, &door, layout).await?;
                declared._services.push(service);
            }
            self.watch_drivers(&mut declared, &door, &tokens, layout)
                .await?;
        }
        let has_action = shared.has(Topic::NavigateToPose);
        if has_action && shared.config.layouts.contains(&Layout::RmwZenoh) {
            let goals = self.shared.goals.clone();
            let action = Navigate::declare(&services, &door, goals, trips).await?;
            declared.action = Some(tokio::spawn(action.run()).abort_handle());
        }
        Ok(declared)
    }

    async fn subscribe(
        &self,
        declared: &mut Declared,
        door: &Arc<Door>,
        layout: Layout,
    ) -> Result<(), zenoh::Error> {
        let (node, config) = (&self.shared.node, &self.shared.config);
        for (topic, wish, ros_type) in Wish::all(layout, config) {
            let inbox = Inbox::new(wish, *self.shared.devices(), config.clone());
            let (inbox, door) = (Mutex::new(inbox), door.clone());
            let key = layout.key(config, topic, &ros_type);
            let subscriber = (self.session.declare_subscriber(key))
                .callback(move |sample| door.receive(layout, &inbox, &sample));
            declared._subscribers.push(subscriber.await?);
            let kind = EntityKind::Subscription;
            let token = node.announce(layout, kind, topic, &ros_type);
            declared._tokens.push(token.await?);
        }
        Ok(())
    }

    /// The service that stops the robot.
    async fn serve_stop(
        &self,
        services: &Services,
        door: &Arc<Door>,
        layout: Layout,
    ) -> Result<Service, zenoh::Error> {
        let robot = *self.shared.devices();
        let door = door.clone();
        let stops = services.serve::<TriggerRequest>(layout, Topic::Stop, move |call| {
            // Also without room for a reply.
            for command in stop(&robot) {
                door.command(command);
            }
            if let Some(reply) = call.reply() {
                reply.send(&TriggerResponse {
                    success: true,
                    message: String::new(),
                });
            }
        });
        stops.await
    }

    /// The service that saves the map.
    async fn serve_maps(
        &self,
        services: &Services,
        door: &Arc<Door>,
        layout: Layout,
    ) -> Result<Service, zenoh::Error> {
        let robot = *self.shared.devices();
        let (door, runtime) = (door.clone(), Handle::current());
        let saves = services.serve::<SaveMapRequest>(layout, Topic::SaveMap, move |call| {
            let Ok(request) = decode::<SaveMapRequest>(&call.payload) else {
                return door.counters.count("ros_dropped_unreadable");
            };
            let Some(reply) = call.reply() else {
                return;
            };
            let answer = door.ask(save_map(&robot, &request), SAVE_DEADLINE);
            // The driver writes files.
            runtime.spawn(async move {
                let saved = match answer.await {
                    Ok(Ok(answer)) => saved(answer),
                    Ok(Err(problem)) => Err(problem.to_string()),
                    Err(_) => Err("too many messages wait".to_owned()),
                };
                if let Err(why) = &saved {
                    tracing::warn!("a map is not saved for a node of ROS 2: {why}");
                }
                reply.send(&SaveMapResponse {
                    result: saved.is_ok(),
                });
            });
        });
        saves.await
    }

    /// Nodes that drive have tokens, or their bridge has. When the last of them is gone, their
    /// operator is, too, and what they have set in motion stops. If the link to the router is lost,
    /// all tokens go.
    async fn watch_drivers(
        &self,
        declared: &mut Declared,
        door: &Arc<Door>,
        tokens: &Arc<Mutex<HashSet<String>>>,
        layout: Layout,
    ) -> Result<(), zenoh::Error> {
        for topic in [Topic::CmdVel, Topic::GoalPose, Topic::SendGoal] {
            let is_wanted = match topic {
                Topic::SendGoal => self.shared.has(Topic::NavigateToPose),
                _ => self.shared.has(topic),
            };
            if !is_wanted || !topic.is_in(layout) {
                continue;
            }
            let key = layout.senders(&self.shared.config, topic);
            let (tokens, door) = (tokens.clone(), door.clone());
            let watched = (self.session.liveliness())
                .declare_subscriber(key)
                .history(true)
                .callback(move |sample| {
                    if topic != Topic::CmdVel {
                        door.author(layout, &sample);
                    }
                    door.watch(&tokens, &sample);
                });
            declared._subscribers.push(watched.await?);
        }
        Ok(())
    }
}

impl Door {
    fn receive(&self, layout: Layout, inbox: &Mutex<Inbox>, sample: &Sample) {
        let attachment = sample.attachment().map(|bytes| bytes.to_bytes());
        let envelope = match layout {
            Layout::RmwZenoh => Envelope::Attachment(attachment.as_deref()),
            Layout::Ros2dds => Envelope::Stamp(sample.timestamp().map(stamped_ns)),
        };
        let payload = sample.payload().to_bytes();
        let mut inbox = inbox.lock().unwrap_or_else(PoisonError::into_inner);
        let read = inbox.read(self.start.elapsed(), unix_ns(), envelope, &payload);
        let topic = sample.key_expr().as_str();
        self.clocks.note(topic, inbox.clock_trouble_ms());
        match read {
            Ok(command) => {
                if inbox.is_for_goals() {
                    let author = inbox.author().map_or(Sender::Bridge, Sender::Node);
                    self.asking.vigil().set(author);
                }
                self.command(command);
            }
            Err(dropped) => {
                self.counters.count(dropped.counter());
                if inbox.is_for_goals() {
                    self.goals.refused(&dropped.to_string());
                }
                if inbox.is_for_poses() {
                    tracing::warn!("an initialpose of ROS 2 is ignored: {dropped}");
                }
                tracing::debug!(key = %sample.key_expr(), "dropped: {dropped}");
            }
        }
    }

    fn command(&self, command: Command) {
        self.give(command, DEADLINE, None);
    }

    /// Sends a request, and returns its answer. Without room, there is none.
    fn ask(
        &self,
        command: Command,
        deadline: Duration,
    ) -> oneshot::Receiver<Result<Bytes, Problem>> {
        let (answer, answered) = oneshot::channel();
        self.give(command, deadline, Some(Caller::Task(answer)));
        answered
    }

    /// Room for an order.
    pub(super) fn permit(&self) -> Option<Permit> {
        let permit = self.orders.clone().try_acquire_owned();
        if permit.is_err() {
            self.counters.count("orders_dropped_busy");
        }
        permit.ok().map(Permit::Other)
    }

    fn give(&self, command: Command, deadline: Duration, asker: Option<Caller>) {
        let Some(permit) = self.permit() else {
            return;
        };
        let Program { who, instance } = self.program.clone();
        let address = Address {
            device: command.device,
            way: Way::Drive,
            who,
        };
        // With the lock until it is on its way, so that the numbers grow.
        let mut sequence = self.sequence.lock().unwrap_or_else(PoisonError::into_inner);
        *sequence += 1;
        let stamp = OrderStamp {
            instance,
            sequence: *sequence,
            // The stamps of ROS are checked earlier.
            sent_ns: None,
        };
        self.send(Input::Message(Box::new(Incoming {
            address,
            stamp: Some(stamp),
            message: command.message,
            deadline,
            asker,
            _permit: Some(permit),
        })));
    }

    /// A program that may set goals has come or gone.
    fn author(&self, layout: Layout, sample: &Sample) {
        let key = sample.key_expr().as_str();
        match sample.kind() {
            SampleKind::Put => self.asking.vigil().appeared(layout, key),
            SampleKind::Delete => self.asking.vigil().disappeared(key),
        }
    }

    fn watch(&self, tokens: &Mutex<HashSet<String>>, sample: &Sample) {
        let key = sample.key_expr().as_str().to_owned();
        let mut tokens = tokens.lock().unwrap_or_else(PoisonError::into_inner);
        let had_some = !tokens.is_empty();
        match sample.kind() {
            SampleKind::Put if tokens.len() < MAX_ROS_DRIVERS => {
                tokens.insert(key);
            }
            SampleKind::Put => self.counters.count("operators_dropped_invalid"),
            SampleKind::Delete => {
                tokens.remove(&key);
            }
        }
        match (had_some, tokens.is_empty()) {
            (false, false) => self.send(Input::Announced(self.program.clone())),
            (true, true) => self.send(Input::Gone(self.program.clone())),
            _ => {}
        }
    }

    pub(super) fn send(&self, input: Input) {
        // The thread ends when the robot leaves.
        let _ = self.inputs.send(input);
    }
}

/// When a bridge or a router has stamped a message.
fn stamped_ns(stamp: &Timestamp) -> u64 {
    let since_1970 = stamp.get_time().to_duration().as_nanos();
    u64::try_from(since_1970).unwrap_or_default()
}
