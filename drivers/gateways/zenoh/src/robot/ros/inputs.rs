//! What nodes of ROS 2 send to the robot. IO.
//!
//! Zenoh calls the functions here in its own threads, so they never wait.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use amber_ros2::messages::{PoseStamped, TriggerRequest, TriggerResponse, Twist, TwistStamped};
use amber_ros2::{Attachment, EntityKind, RosMessage, RosType, encode};
use tokio::sync::{Semaphore, mpsc};
use zenoh::Session;
use zenoh::liveliness::LivelinessToken;
use zenoh::pubsub::Subscriber;
use zenoh::query::{Query, Queryable};
use zenoh::sample::{Sample, SampleKind};

use super::super::control::{Incoming, Input};
use super::super::feed::unix_ns;
use super::super::orders::Program;
use super::super::outbox::{Asker, Out, Outbox};
use super::Shared;
use crate::counters::Counters;
use crate::keys::{Address, Way};
use crate::limits::{DEADLINE, MAX_ORDERS, MAX_QUESTIONS, MAX_ROS_DRIVERS};
use crate::names::Name;
use crate::ros::orders::{Command, Inbox, Wish, stop};
use crate::ros::topics::Topic;
use crate::stamp::OrderStamp;

/// How all nodes of ROS 2 appear among the operators of the robot.
const OPERATOR: &str = "ros";

/// Declares what nodes may send.
pub(super) struct Inputs {
    pub(super) shared: Arc<Shared>,
    pub(super) session: Session,
    pub(super) inputs: mpsc::UnboundedSender<Input>,
    pub(super) outbox: Outbox,
    pub(super) counters: Counters,
}

/// What is undeclared when the robot leaves.
#[derive(Default)]
pub(super) struct Declared {
    _tokens: Vec<LivelinessToken>,
    _subscribers: Vec<Subscriber<()>>,
    _queryables: Vec<Queryable<()>>,
}

/// The way to the thread that decides about orders.
struct Door {
    inputs: mpsc::UnboundedSender<Input>,
    counters: Counters,
    orders: Arc<Semaphore>,
    /// One operator for all nodes: the newest number counts.
    program: Program,
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
            program: Program {
                who: OPERATOR.parse::<Name>().expect("a name"),
                instance: fastrand::u64(1..),
            },
            sequence: Mutex::new(0),
        });
        for (topic, wish, ros_type) in [
            (Topic::CmdVel, Wish::Twist, Twist::TYPE),
            (Topic::CmdVel, Wish::TwistStamped, TwistStamped::TYPE),
            (Topic::GoalPose, Wish::Goal, PoseStamped::TYPE),
        ] {
            if shared.has(topic) {
                self.subscribe(&mut declared, &door, topic, wish, &ros_type)
                    .await?;
            }
        }
        if shared.has(Topic::Stop) {
            self.serve(&mut declared, &door).await?;
        }
        if shared.has(Topic::CmdVel) || shared.has(Topic::GoalPose) {
            self.watch_drivers(&mut declared, &door).await?;
        }
        Ok(declared)
    }

    async fn subscribe(
        &self,
        declared: &mut Declared,
        door: &Arc<Door>,
        topic: Topic,
        wish: Wish,
        ros_type: &RosType,
    ) -> Result<(), zenoh::Error> {
        let node = &self.shared.node;
        let inbox = Inbox::new(wish, *self.shared.devices(), self.shared.config.clone());
        let (inbox, door) = (Mutex::new(inbox), door.clone());
        let subscriber = (self.session.declare_subscriber(node.key(topic, ros_type)))
            .callback(move |sample| door.receive(&inbox, &sample));
        declared._subscribers.push(subscriber.await?);
        let token = node.endpoint(EntityKind::Subscription, topic, ros_type);
        declared._tokens.push(node.announce(&token).await?);
        Ok(())
    }

    /// The service that stops the robot.
    async fn serve(&self, declared: &mut Declared, door: &Arc<Door>) -> Result<(), zenoh::Error> {
        let node = &self.shared.node;
        let key = node.key(Topic::Stop, &TriggerRequest::TYPE);
        let robot = *self.shared.devices();
        let (door, outbox) = (door.clone(), self.outbox.clone());
        let waiting = Arc::new(Semaphore::new(MAX_QUESTIONS));
        let reply_key = key.clone();
        let callback = move |query: Query| {
            let attachment = query.attachment().map(|bytes| bytes.to_bytes());
            let attachment = attachment.and_then(|bytes| Attachment::decode(&bytes).ok());
            let Some(attachment) = attachment else {
                return door.counters.count("ros_dropped_attachment");
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
                _permit: permit,
            };
            let response = TriggerResponse {
                success: true,
                message: String::new(),
            };
            // The number and the identity of a reply are those of the request.
            let attachment = Attachment {
                source_ns: i64::try_from(unix_ns()).unwrap_or(i64::MAX),
                ..attachment
            };
            outbox.send(Out::RosReply(asker, encode(&response), attachment.encode()));
        };
        let queryable = (self.session.declare_queryable(key))
            // Clients of ROS ask only services that say so.
            .complete(true)
            .callback(callback);
        declared._queryables.push(queryable.await?);
        let token = node.endpoint(EntityKind::Service, Topic::Stop, &TriggerRequest::TYPE);
        declared._tokens.push(node.announce(&token).await?);
        Ok(())
    }

    /// Nodes that drive have tokens. When the last of them is gone, their operator is, too, and what
    /// they have set in motion stops. If the link to the router is lost, all tokens go.
    async fn watch_drivers(
        &self,
        declared: &mut Declared,
        door: &Arc<Door>,
    ) -> Result<(), zenoh::Error> {
        let tokens = Arc::new(Mutex::new(HashSet::new()));
        for topic in [Topic::CmdVel, Topic::GoalPose] {
            let domain = self.shared.config.domain;
            let name = self.shared.config.name(topic).replace('/', "%");
            let key = format!("@ros2_lv/{domain}/*/*/*/MP/*/*/*/{name}/**");
            let (tokens, door) = (tokens.clone(), door.clone());
            let watched = (self.session.liveliness())
                .declare_subscriber(key)
                .history(true)
                .callback(move |sample| door.watch(&tokens, &sample));
            declared._subscribers.push(watched.await?);
        }
        Ok(())
    }
}

impl Door {
    fn receive(&self, inbox: &Mutex<Inbox>, sample: &Sample) {
        let attachment = sample.attachment().map(|bytes| bytes.to_bytes());
        let payload = sample.payload().to_bytes();
        let mut inbox = inbox.lock().unwrap_or_else(PoisonError::into_inner);
        match inbox.read(unix_ns(), attachment.as_deref(), &payload) {
            Ok(command) => self.command(command),
            Err(dropped) => {
                self.counters.count(dropped.counter());
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
        };
        self.send(Input::Message(Box::new(Incoming {
            address,
            stamp: Some(stamp),
            message: command.message,
            deadline: DEADLINE,
            asker: None,
            _permit: Some(permit),
        })));
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
