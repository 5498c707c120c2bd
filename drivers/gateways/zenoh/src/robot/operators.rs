//! The operators as clients of the mediator: one client and one task for each. IO.
//!
//! The orders are carried out as those of gateways, see [`Hands`].

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use amber_client::lease::errand_over;
use amber_client::{Client, Error};
use amber_proto::{Device, DriverMsg};
use amber_robot::controls::Seat;
use amber_robot::hands::{Hands, Motions, Report, with_ack};
use amber_robot::limits::TELL_AGAIN;
use amber_robot::motion::{self, Motion};
use amber_robot::robot::{News, User, UserOrder};
use amber_robot::trips::{Trips, UNREACHABLE};
use amber_values::WheelSpeeds;
use bytes::Bytes;
use prost::Message;
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::timeout;

use super::control::Input;
use super::send_thread::{Caller, Out, SendThread};
use crate::counters::Counters;
use crate::limits::{LAST_WORDS, MAX_CALLS, MAX_JOBS};
use crate::problem::{Kind, Problem};

/// All operators of the robot.
pub(super) struct Operators {
    mediator: String,
    seat: Seat,
    out: SendThread,
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
    Order(UserOrder),
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
#[derive(Clone)]
struct Refusals {
    last: Arc<Mutex<Option<(Instant, String)>>>,
    counters: Counters,
}

impl Report for Refusals {
    fn refused(&self, device: Device, error: &Error) {
        tracing::debug!(%device, "a command was not carried out: {error}");
        if let Error::Refused { .. } = error {
            *self.lock() = Some((Instant::now(), error.to_string()));
        }
    }

    fn sent(&self, device: Device, sent: &Result<(), Error>) {
        match sent {
            Ok(()) => self.counters.count("orders_sent"),
            Err(error) => {
                self.counters.count("orders_not_sent");
                tracing::warn!(%device, "an order was not sent: {error}");
            }
        }
    }
}

impl Refusals {
    fn now(&self) -> Option<String> {
        let last = self.lock();
        let (_, why) = last.as_ref().filter(|(at, _)| at.elapsed() < TELL_AGAIN)?;
        Some(why.clone())
    }

    fn lock(&self) -> MutexGuard<'_, Option<(Instant, String)>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Operators {
    /// If all operators may drive at the same time, they take no leases: the newest command counts.
    pub(super) fn new(
        mediator: String,
        seat: Seat,
        out: SendThread,
        counters: Counters,
        reports: Reports,
    ) -> Self {
        Self {
            reports,
            mediator,
            seat,
            out,
            counters,
            handles: HashMap::new(),
            tasks: JoinSet::new(),
        }
    }

    /// `name` says to people who drives.
    pub(super) fn open(&mut self, user: User, name: String) {
        let (motion, motions) = watch::channel(None);
        let (jobs, received) = mpsc::channel(MAX_JOBS);
        let refusals = Refusals {
            last: Arc::default(),
            counters: self.counters.clone(),
        };
        let task = Task {
            user,
            ends: HashMap::new(),
            reports: self.reports.clone(),
            name,
            seat: self.seat,
            refusals: refusals.clone(),
            mediator: self.mediator.clone(),
            out: self.out.clone(),
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
    pub(super) fn order(&self, user: User, order: UserOrder) -> bool {
        let Some(handle) = self.handles.get(&user) else {
            return false;
        };
        if let UserOrder::Drive(device, speeds) = order {
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
    user: User,
    name: String,
    seat: Seat,
    refusals: Refusals,
    mediator: String,
    out: SendThread,
    calls: Arc<Semaphore>,
    /// The tasks that wait for the ends of errands.
    ends: HashMap<Device, AbortHandle>,
    reports: Reports,
}

impl Task {
    async fn run(mut self, mut motions: Motions, mut jobs: mpsc::Receiver<Job>) {
        let report = Arc::new(self.refusals.clone());
        let (name, seat) = (self.name.clone(), self.seat);
        let trips = Trips::new(self.user, name.clone(), self.reports.news.clone());
        let connected = Hands::connect(&self.mediator, &motions, name, seat, trips, report);
        let mut hands = match connected.await {
            Ok(hands) => hands,
            Err(trips) => {
                while let Ok(job) = jobs.try_recv() {
                    if let Job::Order(UserOrder::Trip(_, trip, _)) = job {
                        trips.refuse(trip, UNREACHABLE.to_owned()).await;
                    }
                }
                return;
            }
        };
        loop {
            tokio::select! {
                biased;
                // If the operator is closed, this still returns the last motion first.
                changed = motions.changed() => {
                    if changed.is_err() {
                        break;
                    }
                    hands.drive(&mut motions).await;
                }
                Some(job) = jobs.recv() => self.perform(&mut hands, job).await,
                () = hands.keep() => {}
            }
        }
        // What was ordered before still counts.
        while let Ok(job) = jobs.try_recv() {
            self.perform(&mut hands, job).await;
        }
        self.ends.values().for_each(AbortHandle::abort);
        hands.close().await;
    }

    async fn perform(&mut self, hands: &mut Hands, job: Job) {
        match job {
            Job::Order(order) => {
                // Operators save maps by messages of their own.
                if let Some(UserOrder::Message(device, message)) = hands.perform(order).await {
                    let sent = hands.client().device(device).send_raw(message).await;
                    self.refusals.sent(device, &sent);
                }
            }
            Job::Tell(forwarded, asker) => {
                let sent = match self.may_send(hands, &forwarded).await {
                    Ok(()) => {
                        let proxy = hands.without_waiting(forwarded.device);
                        proxy.command_raw(forwarded.message).await
                    }
                    Err(error) => Err(error),
                };
                self.refusals.sent(forwarded.device, &sent);
                if let Some(asker) = asker {
                    self.out.send(match sent {
                        Ok(()) => Out::Answer(asker, Bytes::new()),
                        Err(error) => Out::Refuse(asker, Problem::from(&error)),
                    });
                }
            }
            Job::Ask(forwarded, deadline, asker) => {
                let Ok(permit) = self.calls.clone().try_acquire_owned() else {
                    let problem = format!("more than {MAX_CALLS} requests wait for their answers");
                    let problem = Problem::new(Kind::Busy, problem);
                    return self.out.send(Out::Refuse(asker, problem));
                };
                if let Err(error) = self.may_send(hands, &forwarded).await {
                    let problem = Problem::from(&error);
                    return self.out.send(Out::Refuse(asker, problem));
                }
                let proxy = hands.client().device(forwarded.device);
                let (proxy, out) = (proxy.with_deadline(deadline), self.out.clone());
                tokio::spawn(async move {
                    let head = DriverMsg::decode(forwarded.message.clone()).ok();
                    let number = head.and_then(|head| head.syn_num);
                    out.send(match proxy.request_raw(forwarded.message).await {
                        Ok(answer) => Out::Answer(
                            asker,
                            match number {
                                Some(number) => with_ack(&answer, number),
                                None => answer,
                            },
                        ),
                        Err(error) => Out::Refuse(asker, Problem::from(&error)),
                    });
                    drop(permit);
                });
            }
        }
    }

    /// Takes the lease for a message that begins an errand.
    async fn may_send(&mut self, hands: &mut Hands, forwarded: &Forwarded) -> Result<(), Error> {
        let device = forwarded.device;
        match motion::of(device, Device::MEDIATOR, &forwarded.message) {
            Ok(Motion::Begin(_)) => {
                hands.begin(device).await?;
                if let Some(number) = forwarded.errand {
                    self.watch_end(hands.client(), device, number);
                }
            }
            Ok(Motion::End(_)) => hands.end(device),
            _ => {}
        }
        Ok(())
    }

    /// Reports when the robot has arrived, so that it does not count as driven any more.
    fn watch_end(&mut self, client: &Client, device: Device, number: u64) {
        let (proxy, inputs) = (client.device(device), self.reports.inputs.clone());
        let task = tokio::spawn(async move {
            errand_over(&proxy).await;
            let _ = inputs.send(Input::ErrandEnded(device, number));
        });
        if let Some(before) = self.ends.insert(device, task.abort_handle()) {
            before.abort();
        }
        self.ends.retain(|_, task| !task.is_finished());
    }
}
