//! The operators as clients of the mediator: one client and one task for each. IO.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use amber_client::proxy::{CollisionAvoidance, DriveToPoint, Roboclaw};
use amber_client::{Client, Error, Proxy};
use amber_gateways::shared::robot::{Order, User};
use amber_proto::{Device, DeviceType, DriverMsg};
use amber_values::WheelSpeeds;
use bytes::{BufMut, Bytes, BytesMut};
use prost::Message;
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::outbox::{Asker, Out, Outbox};
use crate::counters::Counters;
use crate::limits::{LAST_WORDS, MAX_CALLS, MAX_JOBS, MOTION_DEADLINE, RETRY};
use crate::problem::{Kind, Problem};

/// All operators of the robot.
pub(super) struct Operators {
    mediator: String,
    outbox: Outbox,
    counters: Counters,
    handles: HashMap<User, Handle>,
    tasks: JoinSet<()>,
}

/// A request of an operator to a device, other than motion.
pub(super) enum Job {
    /// An answer.
    Ask(Device, Bytes, Duration, Asker),
    /// Nothing. The query, if there is one, is answered when the message is sent.
    Tell(Device, Bytes, Option<Asker>),
    /// Something that goes on by itself.
    Order(Order),
}

struct Handle {
    /// Only the newest motion matters.
    motion: watch::Sender<Option<(Device, WheelSpeeds)>>,
    jobs: mpsc::Sender<Job>,
}

impl Operators {
    pub(super) fn new(mediator: String, outbox: Outbox, counters: Counters) -> Self {
        Self {
            mediator,
            outbox,
            counters,
            handles: HashMap::new(),
            tasks: JoinSet::new(),
        }
    }

    pub(super) fn open(&mut self, user: User) {
        let (motion, motions) = watch::channel(None);
        let (jobs, received) = mpsc::channel(MAX_JOBS);
        let task = Task {
            mediator: self.mediator.clone(),
            outbox: self.outbox.clone(),
            counters: self.counters.clone(),
            calls: Arc::new(Semaphore::new(MAX_CALLS)),
        };
        self.tasks.spawn(task.run(motions, received));
        self.handles.insert(user, Handle { motion, jobs });
        // Forgets those that have ended.
        while self.tasks.try_join_next().is_some() {}
    }

    /// The operator leaves the mediator, after the last motion and all jobs.
    pub(super) fn close(&mut self, user: User) {
        self.handles.remove(&user);
    }

    /// A motion, or the end of an errand.
    pub(super) fn order(&self, user: User, order: Order) {
        let Some(handle) = self.handles.get(&user) else {
            return;
        };
        match order {
            Order::Drive(device, speeds) => {
                handle.motion.send_replace(Some((device, speeds)));
            }
            order => {
                if handle.jobs.try_send(Job::Order(order)).is_err() {
                    self.counters.count("orders_dropped_busy");
                }
            }
        }
    }

    /// Forwards a job; returns it if too many wait.
    pub(super) fn give(&self, user: User, job: Job) -> Result<(), Box<Job>> {
        let Some(handle) = self.handles.get(&user) else {
            return Err(Box::new(job));
        };
        let full = |error: mpsc::error::TrySendError<Job>| Box::new(error.into_inner());
        handle.jobs.try_send(job).map_err(full)
    }

    /// Closes all, and waits until they have left.
    pub(super) async fn end(&mut self) {
        self.handles.clear();
        let left = async { while self.tasks.join_next().await.is_some() {} };
        if timeout(LAST_WORDS, left).await.is_err() {
            tracing::warn!("the mediator did not accept the final orders of all operators in time");
        }
    }
}

/// One operator.
struct Task {
    mediator: String,
    outbox: Outbox,
    counters: Counters,
    calls: Arc<Semaphore>,
}

impl Task {
    async fn run(
        self,
        mut motions: watch::Receiver<Option<(Device, WheelSpeeds)>>,
        mut jobs: mpsc::Receiver<Job>,
    ) {
        let Some(client) = self.connected(&motions).await else {
            return;
        };
        loop {
            tokio::select! {
                biased;
                // If the operator is closed, this still returns the last motion first.
                changed = motions.changed() => {
                    if changed.is_err() {
                        break;
                    }
                    let motion = *motions.borrow_and_update();
                    if let Some((device, speeds)) = motion {
                        self.drive(&client, device, speeds).await;
                    }
                }
                Some(job) = jobs.recv() => self.perform(&client, job).await,
            }
        }
        // What was ordered before still counts.
        while let Ok(job) = jobs.try_recv() {
            self.perform(&client, job).await;
        }
        client.close().await;
    }

    async fn drive(&self, client: &Client, device: Device, speeds: WheelSpeeds) {
        let proxy = without_waiting(client, device);
        let sent = match device.device_type {
            // The original drivers of this type do not accept the commands of a Roboclaw.
            DeviceType::COLLISION_AVOIDANCE => {
                let wheels = CollisionAvoidance::new(proxy).with_deadline(MOTION_DEADLINE);
                wheels.drive(speeds).await
            }
            _ => {
                let wheels = Roboclaw::new(proxy).with_deadline(MOTION_DEADLINE);
                wheels.drive(speeds).await
            }
        };
        self.report(device, &sent);
    }

    async fn perform(&self, client: &Client, job: Job) {
        match job {
            Job::Order(Order::Drive(device, speeds)) => self.drive(client, device, speeds).await,
            Job::Order(Order::Targets(device, targets)) => {
                let driver = DriveToPoint::new(without_waiting(client, device));
                self.report(device, &driver.set_targets(&targets).await);
            }
            Job::Order(Order::Message(device, message)) => {
                self.report(device, &client.device(device).send_raw(message).await);
            }
            Job::Tell(device, message, asker) => {
                let sent = client.device(device).send_raw(message).await;
                self.report(device, &sent);
                if let Some(asker) = asker {
                    self.outbox.send(match sent {
                        Ok(()) => Out::Answer(asker, Bytes::new()),
                        Err(error) => Out::Refuse(asker, Problem::from(&error)),
                    });
                }
            }
            Job::Ask(device, message, deadline, asker) => {
                let Ok(permit) = self.calls.clone().try_acquire_owned() else {
                    let problem = format!("more than {MAX_CALLS} requests wait for their answers");
                    let problem = Problem::new(Kind::Busy, problem);
                    return self.outbox.send(Out::Refuse(asker, problem));
                };
                let proxy = client.device(device).with_deadline(deadline);
                let outbox = self.outbox.clone();
                tokio::spawn(async move {
                    let head = DriverMsg::decode(message.clone()).ok();
                    let number = head.and_then(|head| head.syn_num);
                    outbox.send(match proxy.request_raw(message).await {
                        Ok(answer) => Out::Answer(asker, with_ack(&answer, number)),
                        Err(error) => Out::Refuse(asker, Problem::from(&error)),
                    });
                    drop(permit);
                });
            }
        }
    }

    fn report(&self, device: Device, sent: &Result<(), Error>) {
        match sent {
            Ok(()) => self.counters.count("orders_sent"),
            Err(error) => {
                self.counters.count("orders_not_sent");
                tracing::warn!(%device, "an order was not sent: {error}");
            }
        }
    }

    /// Connects to the mediator; `None` if the operator is closed before.
    async fn connected(
        &self,
        motions: &watch::Receiver<Option<(Device, WheelSpeeds)>>,
    ) -> Option<Client> {
        loop {
            match Client::connect(&self.mediator).await {
                Ok(client) => return Some(client),
                Err(error) => tracing::warn!("cannot reach the mediator: {error}"),
            }
            if motions.has_changed().is_err() {
                return None;
            }
            sleep(RETRY).await;
        }
    }
}

/// The message with the number of the request: of two fields with the same number, the last counts.
fn with_ack(message: &Bytes, ack: Option<u32>) -> Bytes {
    const ACK_NUM: u32 = 4;
    let Some(ack) = ack else {
        return message.clone();
    };
    let mut changed = BytesMut::with_capacity(message.len() + 6);
    changed.put_slice(message);
    prost::encoding::uint32::encode(ACK_NUM, &ack, &mut changed);
    changed.freeze()
}

/// The next command of an operator must not wait for the driver of the last one.
fn without_waiting(client: &Client, device: Device) -> Proxy {
    let refused =
        move |error: Error| tracing::debug!(%device, "a command was not carried out: {error}");
    client.device(device).without_waiting(refused)
}
