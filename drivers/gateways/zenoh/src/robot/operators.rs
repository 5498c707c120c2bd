//! The operators as clients of the mediator: one client and one task for each. IO.
//!
//! An operator takes the lease of what it moves, so that no program of the robot moves it at the same
//! time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use amber_client::lease::{Claims, Terms, Use, errand_over};
use amber_client::proxy::{CollisionAvoidance, DriveToPoint, Roboclaw};
use amber_client::{Client, Error, Proxy};
use amber_proto::{Device, DeviceType, DriverMsg};
use amber_robot::controls::Seat;
use amber_robot::limits::{LEASE_PERIOD, MOTION_LIFE, SEAT_HOLD, TELL_AGAIN};
use amber_robot::motion::{self, Motion};
use amber_robot::robot::{News, Order, User};
use amber_robot::trips::Trips;
use amber_scene::moving;
use amber_values::WheelSpeeds;
use bytes::{BufMut, Bytes, BytesMut};
use prost::Message;
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{sleep, sleep_until, timeout};

use super::control::Input;
use super::outbox::{Caller, Out, Outbox};
use crate::counters::Counters;
use crate::limits::{LAST_WORDS, MAX_CALLS, MAX_JOBS, MOTION_DEADLINE, RETRY};
use crate::problem::{Kind, Problem};

/// All operators of the robot.
pub(super) struct Operators {
    mediator: String,
    seat: Seat,
    outbox: Outbox,
    counters: Counters,
    reports: Reports,
    handles: HashMap<User, Handle>,
    tasks: JoinSet<()>,
}

/// Where the clients report what happens.
#[derive(Clone)]
pub(super) struct Reports {
    /// How trips go.
    pub(super) news: mpsc::Sender<News>,
    /// The ends of other errands.
    pub(super) inputs: mpsc::UnboundedSender<Input>,
}

/// A request of an operator to a device, other than motion.
pub(super) enum Job {
    /// An answer.
    Ask(Forwarded, Duration, Caller),
    /// Nothing. The query, if there is one, is answered when the message is sent.
    Tell(Forwarded, Option<Caller>),
    /// Something that goes on by itself.
    Order(Order),
}

/// A message for a device.
pub(super) struct Forwarded {
    pub(super) device: Device,
    pub(super) message: Bytes,
    /// The number of its errand, if it begins one.
    pub(super) errand: Option<u64>,
}

struct Handle {
    /// Only the newest motion matters.
    motion: watch::Sender<Option<(Device, WheelSpeeds)>>,
    jobs: mpsc::Sender<Job>,
    refusals: Refusals,
}

/// Why the robot does not obey an operator.
#[derive(Clone, Default)]
struct Refusals(Arc<Mutex<Option<(Instant, String)>>>);

impl Refusals {
    fn note(&self, device: Device, error: &Error) {
        tracing::debug!(%device, "a command was not carried out: {error}");
        if let Error::Refused { .. } = error {
            *self.lock() = Some((Instant::now(), error.to_string()));
        }
    }

    fn now(&self) -> Option<String> {
        let last = self.lock();
        let (_, why) = last.as_ref().filter(|(at, _)| at.elapsed() < TELL_AGAIN)?;
        Some(why.clone())
    }

    fn lock(&self) -> MutexGuard<'_, Option<(Instant, String)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Operators {
    /// If all operators may drive at the same time, they take no leases: the newest command counts.
    pub(super) fn new(
        mediator: String,
        seat: Seat,
        outbox: Outbox,
        counters: Counters,
        reports: Reports,
    ) -> Self {
        Self {
            reports,
            mediator,
            seat,
            outbox,
            counters,
            handles: HashMap::new(),
            tasks: JoinSet::new(),
        }
    }

    /// `name` says to people who drives.
    pub(super) fn open(&mut self, user: User, name: String) {
        let (motion, motions) = watch::channel(None);
        let (jobs, received) = mpsc::channel(MAX_JOBS);
        let refusals = Refusals::default();
        let task = Task {
            trips: Trips::new(user, name.clone(), self.reports.news.clone()),
            ends: HashMap::new(),
            inputs: self.reports.inputs.clone(),
            name,
            seat: self.seat,
            refusals: refusals.clone(),
            mediator: self.mediator.clone(),
            outbox: self.outbox.clone(),
            counters: self.counters.clone(),
            calls: Arc::new(Semaphore::new(MAX_CALLS)),
        };
        self.tasks.spawn(task.run(motions, received));
        let handle = Handle {
            motion,
            jobs,
            refusals,
        };
        self.handles.insert(user, handle);
        // Forgets those that have ended.
        while self.tasks.try_join_next().is_some() {}
    }

    /// Why the robot has not obeyed an operator in the last second.
    pub(super) fn refused(&self, user: User) -> Option<String> {
        self.handles.get(&user)?.refusals.now()
    }

    /// The errands of an operator end without a word from the operator.
    pub(super) fn abandoned(&self, name: &str) {
        self.counters.count("errands_abandoned");
        tracing::warn!("a target or trajectory ends: no sign of life of {name} any more");
    }

    /// The operator leaves the mediator, after the last motion and all jobs.
    pub(super) fn close(&mut self, user: User) {
        self.handles.remove(&user);
    }

    /// A motion, a trip, or the end of an errand; `false` if it is dropped.
    pub(super) fn order(&self, user: User, order: Order) -> bool {
        let Some(handle) = self.handles.get(&user) else {
            return false;
        };
        if let Order::Drive(device, speeds) = order {
            handle.motion.send_replace(Some((device, speeds)));
            return true;
        }
        let is_given = handle.jobs.try_send(Job::Order(order)).is_ok();
        if !is_given {
            self.counters.count("orders_dropped_busy");
        }
        is_given
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
    name: String,
    seat: Seat,
    refusals: Refusals,
    mediator: String,
    outbox: Outbox,
    counters: Counters,
    calls: Arc<Semaphore>,
    trips: Trips,
    /// The tasks that wait for the ends of errands.
    ends: HashMap<Device, AbortHandle>,
    inputs: mpsc::UnboundedSender<Input>,
}

/// The newest motion of an operator.
type Motions = watch::Receiver<Option<(Device, WheelSpeeds)>>;

impl Task {
    async fn run(mut self, mut motions: Motions, mut jobs: mpsc::Receiver<Job>) {
        let Some(client) = self.connected(&motions).await else {
            while let Ok(job) = jobs.try_recv() {
                if let Job::Order(Order::Trip(_, trip, _)) = job {
                    let why = "the mediator cannot be reached".to_owned();
                    self.trips.refuse(trip, why).await;
                }
            }
            return;
        };
        let terms = Terms::new(self.name.clone()).with_period(LEASE_PERIOD);
        let mut claims = Claims::new(terms, SEAT_HOLD);
        loop {
            let due = claims.next_due();
            tokio::select! {
                biased;
                // If the operator is closed, this still returns the last motion first.
                changed = motions.changed() => {
                    if changed.is_err() {
                        break;
                    }
                    self.drive(&client, &mut claims, &mut motions).await;
                }
                Some(job) = jobs.recv() => self.perform(&client, &mut claims, job).await,
                (device, error) = claims.lost() => self.refusals.note(device, &error),
                () = wait_until(due) => claims.expire(),
            }
        }
        // What was ordered before still counts.
        while let Ok(job) = jobs.try_recv() {
            self.perform(&client, &mut claims, job).await;
        }
        self.ends.values().for_each(AbortHandle::abort);
        client.close().await;
    }

    /// Sends the newest motion, if this operator may move the device.
    async fn drive(&self, client: &Client, claims: &mut Claims, motions: &mut Motions) {
        loop {
            let newest = *motions.borrow_and_update();
            let Some((device, speeds)) = newest else {
                return;
            };
            if speeds == WheelSpeeds::STOP {
                // A stick that comes to rest must not stop the robot of another program.
                if !claims.is_denied(device) {
                    self.send_speeds(client, device, speeds).await;
                }
                return;
            }
            if self
                .may_move(client, claims, device, Use::Command)
                .await
                .is_err()
            {
                return;
            }
            // The operator may have let go in the meantime.
            let is_newest = *motions.borrow() == newest;
            if is_newest {
                return self.send_speeds(client, device, speeds).await;
            }
        }
    }

    async fn may_move(
        &self,
        client: &Client,
        claims: &mut Claims,
        device: Device,
        what: Use,
    ) -> Result<(), Error> {
        if self.seat == Seat::Shared {
            return Ok(());
        }
        let claimed = claims.claim(&client.device(device), what).await;
        if let Err(error) = &claimed {
            self.refusals.note(device, error);
        }
        claimed
    }

    async fn send_speeds(&self, client: &Client, device: Device, speeds: WheelSpeeds) {
        let proxy = self.without_waiting(client, device);
        let sent = match device.device_type {
            // The original drivers of this type do not accept the commands of a Roboclaw.
            DeviceType::COLLISION_AVOIDANCE => {
                let wheels = CollisionAvoidance::new(proxy).with_deadline(MOTION_DEADLINE);
                wheels.with_validity(MOTION_LIFE).drive(speeds).await
            }
            _ => {
                let wheels = Roboclaw::new(proxy).with_deadline(MOTION_DEADLINE);
                wheels.with_validity(MOTION_LIFE).drive(speeds).await
            }
        };
        self.report(device, &sent);
    }

    /// Takes the lease for a message that begins an errand.
    async fn may_send(
        &mut self,
        client: &Client,
        claims: &mut Claims,
        forwarded: &Forwarded,
    ) -> Result<(), Error> {
        let device = forwarded.device;
        match motion::of(device, Device::MEDIATOR, &forwarded.message) {
            Ok(Motion::Begin(_)) => {
                self.trips.supersede(device);
                self.may_move(client, claims, device, Use::Errand).await?;
                if let Some(number) = forwarded.errand {
                    self.watch_end(client, device, number);
                }
                Ok(())
            }
            Ok(Motion::End(_)) => {
                self.trips.supersede(device);
                claims.release(device);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Reports when the robot has arrived, so that it does not count as driven any more.
    fn watch_end(&mut self, client: &Client, device: Device, number: u64) {
        let (proxy, inputs) = (client.device(device), self.inputs.clone());
        let task = tokio::spawn(async move {
            errand_over(&proxy).await;
            let _ = inputs.send(Input::ErrandEnded(device, number));
        });
        if let Some(before) = self.ends.insert(device, task.abort_handle()) {
            before.abort();
        }
        self.ends.retain(|_, task| !task.is_finished());
    }

    async fn perform(&mut self, client: &Client, claims: &mut Claims, job: Job) {
        match job {
            Job::Order(Order::Drive(device, speeds)) => {
                self.send_speeds(client, device, speeds).await;
            }
            Job::Order(Order::Stop(device)) if device.device_type == DeviceType::DRIVE_TO_POINT => {
                self.trips.supersede(device);
                let driver = DriveToPoint::new(self.without_waiting(client, device));
                self.report(device, &driver.stop().await);
                claims.release(device);
            }
            Job::Order(Order::Stop(device)) => {
                self.send_speeds(client, device, WheelSpeeds::STOP).await;
            }
            Job::Order(Order::Halt(is_halted)) => self.halt(client, is_halted),
            Job::Order(Order::Targets(device, targets)) => {
                self.trips.supersede(device);
                // The end of an errand: the targets of others are no business of this operator.
                let may = match targets.is_empty() {
                    true => !claims.is_denied(device),
                    false => {
                        let claimed = self.may_move(client, claims, device, Use::Errand).await;
                        claimed.is_ok()
                    }
                };
                if may {
                    let driver = DriveToPoint::new(self.without_waiting(client, device));
                    self.report(device, &driver.set_targets(&targets).await);
                }
                if targets.is_empty() {
                    claims.release(device);
                }
            }
            Job::Order(Order::Trip(device, trip, targets)) => {
                self.trips.supersede(device);
                match self.may_move(client, claims, device, Use::Errand).await {
                    Ok(()) => self.trips.begin(client, device, trip, targets),
                    Err(error) => self.trips.refuse(trip, error.to_string()).await,
                }
            }
            Job::Order(Order::CancelTrip(trip)) => self.trips.cancel(trip),
            // Operators save maps and say where the robot is in messages of their own.
            Job::Order(Order::Here(..) | Order::SaveMap(..)) => {}
            Job::Order(Order::Message(device, message)) => {
                self.report(device, &client.device(device).send_raw(message).await);
            }
            Job::Tell(forwarded, asker) => {
                let may = self.may_send(client, claims, &forwarded).await;
                let Forwarded {
                    device, message, ..
                } = forwarded;
                let proxy = self.without_waiting(client, device);
                let sent = match may {
                    Ok(()) => proxy.command_raw(message).await,
                    Err(error) => Err(error),
                };
                self.report(device, &sent);
                if let Some(asker) = asker {
                    self.outbox.send(match sent {
                        Ok(()) => Out::Answer(asker, Bytes::new()),
                        Err(error) => Out::Refuse(asker, Problem::from(&error)),
                    });
                }
            }
            Job::Ask(forwarded, deadline, asker) => {
                let Ok(permit) = self.calls.clone().try_acquire_owned() else {
                    let problem = format!("more than {MAX_CALLS} requests wait for their answers");
                    let problem = Problem::new(Kind::Busy, problem);
                    return self.outbox.send(Out::Refuse(asker, problem));
                };
                if let Err(error) = self.may_send(client, claims, &forwarded).await {
                    let problem = Problem::from(&error);
                    return self.outbox.send(Out::Refuse(asker, problem));
                }
                let Forwarded {
                    device, message, ..
                } = forwarded;
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

    /// The next command of an operator must not wait for the driver of the last one.
    fn without_waiting(&self, client: &Client, device: Device) -> Proxy {
        let refusals = self.refusals.clone();
        client
            .device(device)
            .without_waiting(move |error: Error| refusals.note(device, &error))
    }

    /// Halts all devices that move, or releases the halt, while other jobs go on.
    fn halt(&self, client: &Client, is_halted: bool) {
        let (client, name, refusals) = (client.clone(), self.name.clone(), self.refusals.clone());
        tokio::spawn(async move {
            let devices = match moving::devices(&client).await {
                Ok(devices) => devices,
                Err(error) => return tracing::warn!("cannot change the halt: {error}"),
            };
            for (device, done) in moving::change_halts(&client, devices, is_halted, &name).await {
                if let Err(error) = done {
                    tracing::warn!(%device, "cannot change the halt: {error}");
                    refusals.note(device, &error);
                }
            }
        });
    }

    /// Connects to the mediator; `None` if the operator is closed before.
    async fn connected(&self, motions: &Motions) -> Option<Client> {
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

/// Waits until this time, or endlessly.
async fn wait_until(due: Option<tokio::time::Instant>) {
    match due {
        Some(due) => sleep_until(due).await,
        None => std::future::pending().await,
    }
}
