//! The three paths to the robots: streams and calls. IO.

use std::time::Duration;

use amber_client::Client;
use amber_proto::{DeviceMessage, roboclaw};
use amber_zenoh::keys::{Address, RobotKeys, Way as Verb};
use amber_zenoh::names::Name;
use amber_zenoh::stamp::{DataStamp, OrderStamp};
use anyhow::{Context, anyhow, bail};
use prost::Message;
use serde::Serialize;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use zenoh::Session;
use zenoh::bytes::Encoding;
use zenoh::liveliness::LivelinessToken;
use zenoh::pubsub::Subscriber;
use zenoh::qos::{CongestionControl, Priority};

use crate::clock::{monotonic_ns, unix_ns};
use crate::driver::{SCANNER, WHEELS};
use crate::raw::link;
use crate::site::{Site, index_of};
use crate::watch::Arrival;

/// The name of the operator.
const WHO: &str = "bench";
/// A call without an answer in this time has failed.
const DEADLINE: Duration = Duration::from_secs(2);

/// A way to the robots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Way {
    /// From this process to each mediator, without Zenoh.
    Direct,
    /// Raw peers: Zenoh without Amber.
    Raw,
    /// The same, ten times as many scans.
    FastRaw,
    Fleet,
}

/// The connections for all paths.
pub(crate) struct Ways {
    pub(crate) session: Session,
    /// Clients of the mediators; gone after [`Ways::leave_mediators`].
    clients: Vec<Client>,
    names: Vec<Name>,
    instance: u64,
    sequence: u64,
    _tokens: Vec<LivelinessToken>,
}

/// Whether this process reaches the mediators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mediators {
    /// On the same network.
    Here,
    /// Only the router is here.
    Elsewhere,
}

/// Sends motion commands to one robot, without answers.
pub(crate) struct Orders {
    session: Session,
    key: String,
    instance: u64,
    sequence: u64,
}

/// Scans of all robots, until it is dropped.
pub(crate) struct Listening {
    pub(crate) arrivals: mpsc::UnboundedReceiver<Arrival>,
    _subscriber: Option<Subscriber<()>>,
    _tasks: JoinSet<()>,
}

impl Ways {
    /// Connects to the router, and to all mediators that are here.
    pub(crate) async fn open(site: &Site, mediators: Mediators) -> anyhow::Result<Self> {
        let session = amber_zenoh::session::open(&link(&site.endpoint)?).await?;
        let (mut clients, mut names, mut tokens) = (Vec::new(), Vec::new(), Vec::new());
        let (instance, who) = (fastrand::u64(..), WHO.parse()?);
        for robot in &site.robots {
            if mediators == Mediators::Here {
                clients.push(Client::connect(&robot.address).await?);
            }
            let name: Name = robot.name.parse()?;
            let key = RobotKeys::new(&name).operator(&who, instance);
            tokens.push((session.liveliness().declare_token(key).await).map_err(zenoh_failed)?);
            names.push(name);
        }
        Ok(Self {
            session,
            clients,
            names,
            instance,
            sequence: 0,
            _tokens: tokens,
        })
    }

    /// Uses the mediators directly no more.
    pub(crate) fn leave_mediators(&mut self) {
        self.clients.clear();
    }

    /// The number of robots.
    pub(crate) fn robots(&self) -> usize {
        self.names.len()
    }

    /// Listens to the scans of all robots.
    pub(crate) async fn listen(&self, way: Way) -> anyhow::Result<Listening> {
        let (sender, arrivals) = mpsc::unbounded_channel();
        let (mut subscriber, mut tasks) = (None, JoinSet::new());
        match way {
            Way::Direct => {
                for (robot, client) in self.clients.iter().enumerate() {
                    let mut scans = client.device(SCANNER).subscribe_raw().await?;
                    let sender = sender.clone();
                    tasks.spawn(async move {
                        while let Some(update) = scans.next().await {
                            let _ = sender.send(Arrival {
                                robot,
                                at_ns: monotonic_ns(),
                                unix_ns: unix_ns(),
                                stamp: None,
                                message: update.message.to_vec(),
                            });
                        }
                    });
                }
            }
            Way::Raw => subscriber = Some(self.subscribe("raw/*/data", sender).await?),
            Way::FastRaw => subscriber = Some(self.subscribe("raw/*/fast", sender).await?),
            Way::Fleet => {
                let key = "amber/*/hokuyo/0/data";
                subscriber = Some(self.subscribe(key, sender).await?);
            }
        }
        Ok(Listening {
            arrivals,
            _subscriber: subscriber,
            _tasks: tasks,
        })
    }

    async fn subscribe(
        &self,
        key: &str,
        sender: mpsc::UnboundedSender<Arrival>,
    ) -> anyhow::Result<Subscriber<()>> {
        let subscriber = self.session.declare_subscriber(key);
        let subscriber = subscriber.callback(move |sample| {
            let (at_ns, unix_ns) = (monotonic_ns(), unix_ns());
            let stamp = sample.attachment().map(|bytes| bytes.to_bytes());
            if let Some(robot) = index_of(sample.key_expr().as_str()) {
                let _ = sender.send(Arrival {
                    robot,
                    at_ns,
                    unix_ns,
                    stamp: stamp.and_then(|bytes| DataStamp::decode(&bytes)),
                    message: sample.payload().to_bytes().into_owned(),
                });
            }
        });
        subscriber.await.map_err(zenoh_failed)
    }

    /// Asks the wheels of a robot for their speeds, and returns the one of the first wheel.
    pub(crate) async fn call(&mut self, way: Way, robot: usize) -> anyhow::Result<i32> {
        let mut request = roboclaw::DriverMsg::data();
        request.current_speed_request = Some(true);
        let answer = match way {
            Way::Direct => {
                let client = self.clients.get(robot).context("no client")?;
                let proxy = client.device(WHEELS).with_deadline(DEADLINE);
                proxy
                    .request_raw(request.encode_to_vec().into())
                    .await?
                    .to_vec()
            }
            Way::Raw | Way::FastRaw => {
                request.syn_num = Some(1);
                let key = format!("raw/{}/call", self.names[robot]);
                self.query(&key, &request).await?
            }
            Way::Fleet => {
                request.syn_num = Some(1);
                let key = self.key(robot, Verb::Call)?;
                self.query(&key, &request).await?
            }
        };
        let answer = roboclaw::DriverMsg::decode(&answer[..])?;
        let speeds = answer.current_speed.context("an answer without speeds")?;
        Ok(speeds.front_left_speed.unwrap_or_default())
    }

    /// Sets the speed of all wheels of a robot in the fleet. Returns when the command is on its way
    /// to the driver.
    pub(crate) async fn drive(&mut self, robot: usize, speed_mm_s: i32) -> anyhow::Result<()> {
        let mut command = roboclaw::DriverMsg::data();
        command.motors_command = Some(amber_client::WheelSpeeds::all(speed_mm_s).into());
        let key = self.key(robot, Verb::Drive)?;
        self.query(&key, &command).await.map(drop)
    }

    /// Drives one robot from now on; [`Ways::drive`] would be refused meanwhile.
    pub(crate) fn orders(&self, robot: usize) -> anyhow::Result<Orders> {
        Ok(Orders {
            session: self.session.clone(),
            key: self.key(robot, Verb::Drive)?,
            instance: self.instance,
            sequence: self.sequence,
        })
    }

    fn key(&self, robot: usize, way: Verb) -> anyhow::Result<String> {
        Ok(RobotKeys::new(&self.names[robot]).address(&Address {
            device: WHEELS,
            way,
            who: WHO.parse()?,
        }))
    }

    async fn query(&mut self, key: &str, message: &roboclaw::DriverMsg) -> anyhow::Result<Vec<u8>> {
        self.sequence += 1;
        let stamp = OrderStamp {
            instance: self.instance,
            sequence: self.sequence,
            sent_ns: Some(monotonic_ns()),
        };
        let asked = (self.session.get(key))
            .payload(message.encode_to_vec())
            .attachment(stamp.encode())
            .timeout(DEADLINE);
        let replies = asked.await.map_err(zenoh_failed)?;
        let reply = replies.recv_async().await;
        let reply = reply.map_err(|_| anyhow!("no answer at {key}"))?;
        match reply.into_result() {
            Ok(sample) => Ok(sample.payload().to_bytes().into_owned()),
            Err(error) => bail!(
                "{key}: {}",
                String::from_utf8_lossy(&error.payload().to_bytes())
            ),
        }
    }
}

impl Orders {
    /// Sends a command as `amber-zenoh remote` does.
    pub(crate) async fn put(&mut self, speeds: roboclaw::MotorsSpeed) -> anyhow::Result<()> {
        let mut command = roboclaw::DriverMsg::data();
        command.motors_command = Some(speeds);
        self.sequence += 1;
        let stamp = OrderStamp {
            instance: self.instance,
            sequence: self.sequence,
            sent_ns: Some(monotonic_ns()),
        };
        let put = (self.session.put(&self.key, command.encode_to_vec()))
            .encoding(Encoding::APPLICATION_PROTOBUF)
            .attachment(stamp.encode())
            .congestion_control(CongestionControl::Drop)
            .priority(Priority::InteractiveHigh)
            .express(true);
        put.await.map_err(zenoh_failed)
    }
}

/// The errors of Zenoh have no common type.
pub(crate) fn zenoh_failed(error: zenoh::Error) -> anyhow::Error {
    anyhow!("Zenoh: {error}")
}
