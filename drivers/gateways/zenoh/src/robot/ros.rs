//! The robot as a node of ROS 2. IO.
//!
//! ```text
//!   devices --> sources: one task for each --> publishers --> Zenoh     (node: each layout)
//!   cmd_vel, goal_pose, stop --> inputs --> control, as one operator
//!   navigate_to_pose --> navigate: its goals are trips of this operator
//! ```
//!
//! A source queries its device only while one of its topics has subscribers. Commands go to the
//! thread that decides about all orders, so the seat and the dead-man are those of all operators.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use amber_client::Client;
use amber_client::values::MapPose;
use amber_proto::Device;
use amber_proto::mediator::Driver;
use amber_robot::robot::{RobotSetup, Trip, TripNews};
use tokio::sync::{mpsc, watch};
use tokio::task::AbortHandle;
use zenoh::Session;

use self::asking::Asking;
use self::inputs::Inputs;
use self::node::Node;
use self::sources::Source;
use super::clocks::Clocks;
use super::control::Input;
use super::goals::Goals;
use super::orders::Program;
use super::send_thread::SendThread;
use crate::config::Config;
use crate::counters::Counters;
use crate::health::OperatorInfo;
use crate::names::{Name, ROS_OPERATOR};
use crate::ros::config::RosConfig;
use crate::ros::layout::Interest;
use crate::ros::topics::{Topic, TopicSet};

mod asking;
mod battery;
mod bumper;
mod camera;
mod gps;
mod inputs;
mod joy;
mod navigate;
mod node;
mod plans;
mod services;
mod sources;

/// The inputs of the node.
pub(super) struct Ros {
    pub(super) robot: Config,
    pub(super) config: RosConfig,
    pub(super) session: Session,
    /// The client that watches the devices.
    pub(super) client: Client,
    /// The drivers of the mediator; `None` while it does not answer.
    pub(super) drivers: watch::Receiver<Option<Vec<Driver>>>,
    pub(super) inputs: mpsc::UnboundedSender<Input>,
    /// Those who use the robot.
    pub(super) operators: watch::Receiver<Vec<OperatorInfo>>,
    pub(super) out: SendThread,
    pub(super) counters: Counters,
    pub(super) clocks: Clocks,
    pub(super) goals: Goals,
    /// How the goals of the action go.
    pub(super) trips: mpsc::UnboundedReceiver<(Trip, TripNews)>,
}

/// The state that all sources share.
struct Shared {
    node: Node,
    robot: Config,
    config: RosConfig,
    client: Client,
    drivers: watch::Receiver<Option<Vec<Driver>>>,
    /// The topics with subscribers.
    interest: watch::Receiver<Interest>,
    clocks: Clocks,
    goals: Goals,
    /// The newest pose on the map, and its time.
    found: watch::Sender<Option<(Instant, MapPose)>>,
}

impl Ros {
    /// Runs until it is aborted, or the session is closed.
    pub(super) async fn run(self) {
        if let Err(error) = self.try_run().await {
            tracing::error!("not a node of ROS 2: {error}");
        }
    }

    async fn try_run(self) -> Result<(), zenoh::Error> {
        let (interest, interests) = watch::channel(Interest::default());
        let counters = self.counters.clone();
        let node = Node::declare(&self.session, &self.config, interest, counters).await?;
        let mut drivers = self.drivers.clone();
        let shared = Arc::new(Shared {
            node,
            robot: self.robot,
            config: self.config,
            client: self.client,
            drivers: self.drivers,
            interest: interests,
            clocks: self.clocks,
            goals: self.goals,
            found: watch::channel(None).0,
        });
        let program = Program {
            who: ROS_OPERATOR.parse::<Name>().expect("a name"),
            instance: fastrand::u64(1..),
        };
        let asking = Asking::new(self.session.clone(), self.inputs.clone(), program.clone());
        let inputs = Inputs {
            program,
            shared: shared.clone(),
            asking: asking.clone(),
            session: self.session,
            inputs: self.inputs,
            out: self.out,
            counters: self.counters,
        };
        // These live until the robot leaves.
        let _declared = inputs.declare(self.trips).await?;
        let mut running = Running::default();
        running
            .1
            .push(tokio::spawn(asking.run(self.operators)).abort_handle());
        for source in Source::OF_THE_ROBOT {
            running.start(source, &shared);
        }
        let layouts = shared.config.layouts.iter().map(|layout| layout.name());
        let layouts: Vec<_> = layouts.collect();
        tracing::info!(
            namespace = %shared.config.namespace,
            layouts = layouts.join(" "),
            domain = shared.config.domain,
            "a node of ROS 2"
        );
        loop {
            let known = drivers.borrow_and_update().clone();
            if let Some(known) = known {
                running.update(&known, &shared);
            }
            if drivers.changed().await.is_err() {
                return Ok(());
            }
        }
    }
}

/// The tasks of all sources. They end with it.
#[derive(Default)]
struct Running(BTreeMap<Source, AbortHandle>, Vec<AbortHandle>);

impl Running {
    /// Topics appear with the device in the list of the mediator, and disappear with it. A driver
    /// that is down for a while keeps them.
    fn update(&mut self, drivers: &[Driver], shared: &Arc<Shared>) {
        let listed = |device: Device| {
            let mut devices = drivers.iter().flat_map(|driver| &driver.devices);
            devices.any(|other| Device::from(*other) == device) && shared.robot.shows(device)
        };
        for source in Source::OF_DEVICES {
            match listed(source.device(&shared.robot.controls.robot)) {
                true => self.start(source, shared),
                false => {
                    if let Some(task) = self.0.remove(&source) {
                        task.abort();
                    }
                }
            }
        }
    }

    fn start(&mut self, source: Source, shared: &Arc<Shared>) {
        let is_wanted = shared.config.topics.intersects(source.topics());
        if is_wanted && !self.0.contains_key(&source) {
            let task = tokio::spawn(source.run(shared.clone()));
            self.0.insert(source, task.abort_handle());
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let all = self.0.values().chain(&self.1);
        all.for_each(AbortHandle::abort);
    }
}

impl Shared {
    /// Whether the configuration names this topic.
    fn has(&self, topic: Topic) -> bool {
        self.config.topics.contains(topic)
    }

    /// Resolves when one of these topics gets subscribers, or when none has any.
    async fn listened(&self, topics: TopicSet, is_listened: bool) {
        let mut interest = self.interest.clone();
        // The sender ends with the node.
        let _ = interest
            .wait_for(|all| all.intersects(topics) == is_listened)
            .await;
    }

    fn devices(&self) -> &RobotSetup {
        &self.robot.controls.robot
    }
}
