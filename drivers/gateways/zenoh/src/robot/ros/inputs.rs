//! Messages of ROS 2 nodes to the robot. IO.
//!
//! Zenoh calls the functions here in its own threads, so they never wait.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use amber_ros2::messages::{TriggerRequest, TriggerResponse};
use amber_ros2::{Attachment, EntityKind, RosMessage, encode};
use tokio::sync::{Semaphore, mpsc};
use zenoh::Session;
use zenoh::liveliness::LivelinessToken;
use zenoh::pubsub::Subscriber;
use zenoh::query::{Query, Queryable};
use zenoh::sample::{Sample, SampleKind};
use zenoh::time::Timestamp;

use super::super::clocks::Clocks;
use super::super::control::{Incoming, Input};
use super::super::feed::unix_ns;
use super::super::goals::Goals;
use super::super::orders::Program;
use super::super::outbox::{Asker, Out, Outbox, Permit};
use super::super::vigil::Sender;
use super::Shared;
use super::asking::Asking;
use crate::counters::Counters;
use crate::keys::{Address, Way};
use crate::limits::{DEADLINE, MAX_ORDERS, MAX_QUESTIONS, MAX_ROS_DRIVERS};
use crate::ros::layout::Layout;
use crate::ros::orders::{Command, Envelope, Inbox, Wish, stop};
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
    pub(super) outbox: Outbox,
    pub(super) counters: Counters,
}

/// The declarations that end when the robot leaves.
#[derive(Default)]
pub(super) struct Declared {
    _tokens: Vec<LivelinessToken>,
    _subscribers: Vec<Subscriber<()>>,
    _queryables: Vec<Queryable<()>>,
}

/// The channel to the thread that decides about orders.
struct Door {
    inputs: mpsc::UnboundedSender<Input>,
    counters: Counters,
    orders: Arc<Semaphore>,
    start: Instant,
    clocks: Clocks,
    goals: Goals,
    program: Program,
    asking: Asking,
    sequence: Mutex<u64>,
}

impl Inputs {
    pub(super) async fn declare(self) -> Result<Declared, zenoh::Error> {
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
        // All layouts together: their nodes are one operator.
        let tokens = Arc::new(Mutex::new(HashSet::new()));
        for &layout in &shared.config.layouts {
            self.subscribe(&mut declared, &door, layout).await?;
            if shared.has(Topic::Stop) {
                self.serve(&mut declared, &door, layout).await?;
            }
            if shared.has(Topic::CmdVel) || shared.has(Topic::GoalPose) {
                self.watch_drivers(&mut declared, &door, &tokens, layout)
                    .await?;
            }
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
    async fn serve(
        &self,
        declared: &mut Declared,
        door: &Arc<Door>,
        layout: Layout,
    ) -> Result<(), zenoh::Error> {
        let (topic, ros_type) = (Topic::Stop, TriggerRequest::TYPE);
        let key = layout.key(&self.shared.config, topic, &ros_type);
        let robot = *self.shared.devices();
        let (door, outbox) = (door.clone(), self.outbox.clone());
        let waiting = Arc::new(Semaphore::new(MAX_QUESTIONS));
        let reply_key = key.clone();
        let callback = move |query: Query| {
            let attachment = match layout {
                Layout::RmwZenoh => {
                    let bytes = query.attachment().map(|bytes| bytes.to_bytes());
                    let request = bytes.and_then(|bytes| Attachment::decode(&bytes).ok());
                    let Some(request) = request else {
                        return door.counters.count("ros_dropped_attachment");
                    };
                    // The number and the identity of a reply are those of the request.
                    let source_ns = i64::try_from(unix_ns()).unwrap_or(i64::MAX);
                    let reply = Attachment {
                        source_ns,
                        ..request
                    };
                    Some(reply.encode())
                }
                // A bridge knows by the query to which request the reply belongs.
                Layout::Ros2dds => None,
            };
            for command in stop(&robot) {
                door.command(command);
            }
            let Ok(permit) = waiting.clone().try_acquire_owned() else {
                return door.counters.count("queries_dropped_busy");
            };
            let asker = Asker {
                query,
                key: reply_key.clone(),
                _permit: Permit::Other(permit),
            };
            let response = TriggerResponse {
                success: true,
                message: String::new(),
            };
            outbox.send(Out::RosReply(asker, encode(&response), attachment));
        };
        let queryable = (self.session.declare_queryable(key))
            // Clients of ROS ask only services that say so.
            .complete(true)
            .callback(callback);
        declared._queryables.push(queryable.await?);
        let kind = EntityKind::Service;
        let token = self.shared.node.announce(layout, kind, topic, &ros_type);
        declared._tokens.push(token.await?);
        Ok(())
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
        for topic in [Topic::CmdVel, Topic::GoalPose] {
            let key = layout.publishers(&self.shared.config, topic);
            let (tokens, door) = (tokens.clone(), door.clone());
            let watched = (self.session.liveliness())
                .declare_subscriber(key)
                .history(true)
                .callback(move |sample| {
                    if topic == Topic::GoalPose {
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
                tracing::debug!(key = %sample.key_expr(), "dropped: {dropped}");
            }
        }
    }

    fn command(&self, command: Command) {
        let Ok(permit) = self.orders.clone().try_acquire_owned() else {
            return self.counters.count("orders_dropped_busy");
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
            deadline: DEADLINE,
            asker: None,
            _permit: Some(Permit::Other(permit)),
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

    fn send(&self, input: Input) {
        // The thread ends when the robot leaves.
        let _ = self.inputs.send(input);
    }
}

/// When a bridge or a router has stamped a message.
fn stamped_ns(stamp: &Timestamp) -> u64 {
    let since_1970 = stamp.get_time().to_duration().as_nanos();
    u64::try_from(since_1970).unwrap_or_default()
}
