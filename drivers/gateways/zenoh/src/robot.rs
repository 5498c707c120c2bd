//! A robot in the fleet. IO.
//!
//! ```text
//!   Zenoh's threads          control: own thread               mediator
//!   orders, requests  ---->  Orders (PURE), operators  --UDP-->  one client per operator
//!                                 |
//!                                 v answers
//!                            out: own thread  ----> Zenoh
//!                                 ^ facts, tokens
//!   questions about   ---->  report: roster of devices  <--UDP--  one client that watches
//!   the robot                publishers: one per device    ----> Zenoh
//! ```
//!
//! Data, facts and orders have separate threads, so that a slow link delays neither the other
//! devices nor, above all, a stop.

use std::collections::BTreeMap;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use amber_client::{Client, Event};
use amber_proto::Device;
use amber_proto::mediator::Driver;
use amber_robot::robot::{Trip, TripNews};
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore, mpsc, watch};
use tokio::task::AbortHandle;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};
use zenoh::Session;
use zenoh::key_expr::KeyExpr;

use self::clocks::Clocks;
use self::control::{Control, Input};
use self::door::{Door, MakeQuestion, Question};
use self::goals::Goals;
use self::publisher::{DataPublisher, unix_ns};
use self::ros::Ros;
use self::send_thread::{Asker, Fact, Out, SendThread};
use crate::certificate;
use crate::config::Config;
use crate::counters::Counters;
use crate::health::{Health, Info, OperatorInfo, SeatInfo, State, of_drivers};
use crate::keys::RobotKeys;
use crate::limits::{
    MAX_ORDERS, MAX_QUERIES, MAX_QUESTIONS, MAX_STOPS, RETRY, ROSTER_PERIOD, SHARE,
};
use crate::quota::Quota;
use crate::session;

mod clocks;
mod control;
mod door;
mod goals;
mod operators;
pub mod orders;
mod publisher;
mod ros;
pub mod seats;
mod send_thread;
mod shape;
pub mod vigil;

/// The reason why a robot is not in the fleet.
#[derive(Debug, thiserror::Error)]
pub enum RobotError {
    /// The configuration of Zenoh.
    #[error(transparent)]
    Session(#[from] session::Refused),
    /// Zenoh.
    #[error("Zenoh: {0}")]
    Zenoh(zenoh::Error),
    #[error("cannot start: {0}")]
    System(#[from] io::Error),
}

impl From<zenoh::Error> for RobotError {
    fn from(error: zenoh::Error) -> Self {
        Self::Zenoh(error)
    }
}

/// Brings a robot into the fleet until `stop` resolves. Then all motions of operators stop.
///
/// If the robot gets another shape, it leaves the fleet, and comes back with this one.
///
/// # Errors
/// The configuration is invalid, or Zenoh fails. Missing routers and mediators are not errors.
pub async fn run(config: Config, stop: impl Future<Output = ()>) -> Result<(), RobotError> {
    let mut stop = pin!(stop);
    while let Ended::Shape = run_with_shape(config.clone(), &mut stop).await? {
        tracing::info!("the robot has another shape: it leaves the fleet, and comes back");
    }
    Ok(())
}

/// The reason why a robot has left the fleet.
enum Ended {
    Stopped,
    /// It has another shape.
    Shape,
}

async fn run_with_shape(
    config: Config,
    mut stop: impl Future<Output = ()> + Unpin,
) -> Result<Ended, RobotError> {
    let started = async {
        let session = session::open(&config.link).await?;
        let client = connected(&config.mediator).await;
        let shape = shape::first(&client).await;
        Ok::<_, RobotError>((session, client, shape))
    };
    let (session, client, shape) = tokio::select! {
        started = started => started?,
        () = &mut stop => return Ok(Ended::Stopped),
    };
    let other = shape::other(config.clone(), client.clone(), shape.clone());
    let config = match &shape {
        Some(shape) => config.with_shape(shape),
        None => config,
    };
    let mut watchers = Watchers(Vec::new());
    watchers.start(session::watch_link(session.clone()));
    if let Some(tls) = config.link.tls.clone() {
        watchers.start(certificate::watch(tls));
    }
    let counters = Counters::default();
    let (out, send_thread) = SendThread::start(session.clone(), counters.clone());
    let (inputs, received) = mpsc::unbounded_channel();
    let (shown_operators, operators) = watch::channel(Vec::new());
    let (shown_seats, seats) = watch::channel(BTreeMap::new());
    let (stop_control, stopped) = watch::channel(false);
    let goals = Goals::default();
    let (shown_trips, trips) = mpsc::unbounded_channel();
    let control = Control {
        trips: shown_trips,
        inputs: inputs.clone(),
        goals: goals.clone(),
        controls: config.controls,
        devices: config.devices.clone(),
        stopped,
        mediator: config.mediator.clone(),
        out: out.clone(),
        counters: counters.clone(),
        operators: shown_operators,
        may_force: config.may_force.clone(),
        seats: shown_seats,
    };
    let control_thread = control.start(received)?;
    let report = SelfReport {
        keys: RobotKeys::new(&config.name),
        boot: format!("{:016x}", fastrand::u64(..)),
        started: Instant::now(),
        config,
        session: session.clone(),
        client,
        out: out.clone(),
        counters,
        operators,
        seats,
        clocks: Clocks::default(),
        goals,
        trips: Some(trips),
        has_mediator: false,
        devices: BTreeMap::new(),
        events: None,
    };
    let mut why = Ended::Stopped;
    let ended = async {
        tokio::select! {
            () = stop => {}
            () = other => why = Ended::Shape,
        }
    };
    let served = report.serve(inputs, pin!(ended)).await;
    // First the wheels stop, then the tokens go.
    stop_control.send_replace(true);
    let ended = tokio::task::spawn_blocking(move || {
        let control = control_thread.join();
        out.send(Out::End);
        control.and(send_thread.join())
    });
    if !matches!(ended.await, Ok(Ok(()))) {
        tracing::error!("a thread has ended with a panic");
    }
    drop(watchers);
    session.close().await?;
    served.map(|()| why)
}

/// The tasks that write to the log what changes in the link. They end with this.
struct Watchers(Vec<AbortHandle>);

impl Watchers {
    fn start(&mut self, task: impl Future<Output = ()> + Send + 'static) {
        self.0.push(tokio::spawn(task).abort_handle());
    }
}

impl Drop for Watchers {
    fn drop(&mut self) {
        self.0.iter().for_each(AbortHandle::abort);
    }
}

/// The report of the robot about itself.
struct SelfReport {
    config: Config,
    keys: RobotKeys,
    boot: String,
    started: Instant,
    session: Session,
    /// The client that watches all devices.
    client: Client,
    out: SendThread,
    counters: Counters,
    operators: watch::Receiver<Vec<OperatorInfo>>,
    seats: watch::Receiver<BTreeMap<i32, SeatInfo>>,
    clocks: Clocks,
    goals: Goals,
    /// For the node of ROS 2.
    trips: Option<mpsc::UnboundedReceiver<(Trip, TripNews)>>,
    has_mediator: bool,
    devices: BTreeMap<Device, Shown>,
    events: Option<AbortHandle>,
}

/// A device in the fleet.
struct Shown {
    health: Health,
    has_token: bool,
    /// That for all, and those of single operators.
    publishers: Vec<AbortHandle>,
}

impl SelfReport {
    async fn serve(
        mut self,
        inputs: mpsc::UnboundedSender<Input>,
        mut stop: impl Future<Output = ()> + Unpin,
    ) -> Result<(), RobotError> {
        let (questions, mut asked) = mpsc::channel(MAX_QUESTIONS);
        // All of these live until the robot leaves.
        let _declared = self.declare(inputs.clone(), questions).await?;
        self.out.send(Out::Token(self.keys.alive(&self.boot)));
        let (sender, mut drivers) = watch::channel(None);
        let roster = tokio::spawn(watch_roster(self.client.clone(), sender));
        let ros = self.ros(&drivers, inputs);
        let events = self.keys.own("events");
        self.events = Some(self.publisher(
            Device::MEDIATOR,
            events,
            Duration::ZERO,
            &publisher::FOR_ALL,
        ));
        let mut seats = self.seats.clone();
        let mut known_seats = BTreeMap::new();
        // While one message about seats waits for the link, the next one does not follow it.
        let one = Arc::new(Semaphore::new(1));
        tracing::info!(robot = %self.config.name, "in the fleet");
        loop {
            tokio::select! {
                () = &mut stop => break,
                changed = drivers.changed() => {
                    if changed.is_err() {
                        break;
                    }
                    let drivers = drivers.borrow_and_update().clone();
                    self.update(drivers.as_deref());
                }
                Some(question) = asked.recv() => self.answer(question),
                Ok(permit) = changed(&mut seats, &one) => {
                    let now = seats.borrow_and_update().clone();
                    let facts = differences(&known_seats, &now);
                    self.out.send(Out::PutNewest(self.keys.own("seat"), facts, permit));
                    known_seats = now;
                }
            }
        }
        roster.abort();
        ros.iter().for_each(AbortHandle::abort);
        let publishers = self.devices.values().flat_map(|shown| &shown.publishers);
        publishers.chain(&self.events).for_each(AbortHandle::abort);
        Ok(())
    }

    /// Starts the node of ROS 2, if the robot is one.
    fn ros(
        &mut self,
        drivers: &watch::Receiver<Option<Vec<Driver>>>,
        inputs: mpsc::UnboundedSender<Input>,
    ) -> Option<AbortHandle> {
        let ros = Ros {
            config: self.config.ros.clone()?,
            robot: self.config.clone(),
            session: self.session.clone(),
            client: self.client.clone(),
            drivers: drivers.clone(),
            inputs,
            operators: self.operators.clone(),
            out: self.out.clone(),
            counters: self.counters.clone(),
            clocks: self.clocks.clone(),
            goals: self.goals.clone(),
            trips: self.trips.take()?,
        };
        Some(tokio::spawn(ros.run()).abort_handle())
    }

    /// Declares the queries and orders of operators.
    async fn declare(
        &self,
        inputs: mpsc::UnboundedSender<Input>,
        questions: mpsc::Sender<Question>,
    ) -> Result<Declared, RobotError> {
        let door = Door {
            keys: self.keys.clone(),
            inputs,
            questions,
            orders: Quota::new(MAX_ORDERS, MAX_ORDERS / SHARE),
            queries: Quota::new(MAX_QUERIES, MAX_QUERIES / SHARE),
            stops: Quota::new(MAX_STOPS, MAX_STOPS / SHARE),
            facts: Arc::new(Semaphore::new(MAX_QUESTIONS)),
            wheels: self.config.controls.robot.wheels,
            counters: self.counters.clone(),
        };
        let session = &self.session;
        let mut queryables = Vec::new();
        for way in ["call/*", "drive/*"] {
            let door = door.clone();
            let queryable = (session.declare_queryable(self.keys.of_all(way)))
                .callback(move |query| door.query(query));
            queryables.push(queryable.await?);
        }
        for (key, is_own) in [("seat/*", true), ("seat", false)] {
            let door = door.clone();
            let queryable = (session.declare_queryable(self.keys.own(key)))
                .callback(move |query| door.seat(query, is_own));
            queryables.push(queryable.await?);
        }
        let kinds: [(String, MakeQuestion); 3] = [
            (self.keys.own("info"), Question::Info),
            (self.keys.of_all("health"), Question::Health),
            (self.keys.of_all("description"), Question::Description),
        ];
        for (key, question) in kinds {
            let door = door.clone();
            let queryable = (session.declare_queryable(key))
                .callback(move |query| door.question(query, question));
            queryables.push(queryable.await?);
        }
        let orders = door.clone();
        let orders = (session.declare_subscriber(self.keys.of_all("drive/*")))
            .callback(move |sample| {
                let attachment = sample.attachment();
                orders.put(sample.key_expr().as_str(), attachment, sample.payload());
            })
            .await?;
        let signs = door.clone();
        let signs = (session.declare_subscriber(self.keys.operators()))
            .callback(move |sample| signs.sign(sample.key_expr().as_str(), sample.attachment()))
            .await?;
        let operators = (session.liveliness())
            .declare_subscriber(self.keys.operators())
            .history(true)
            .callback(move |sample| door.operator(sample.key_expr().as_str(), sample.kind()))
            .await?;
        Ok(Declared {
            _queryables: queryables,
            _subscribers: [orders, signs, operators],
        })
    }

    /// The drivers of the mediator, or `None` while it does not answer.
    fn update(&mut self, drivers: Option<&[Driver]>) {
        self.has_mediator = drivers.is_some();
        let mut found = match drivers {
            Some(drivers) => of_drivers(drivers),
            None => self.all_down(),
        };
        found.retain(|device, _| self.config.shows(*device));
        let gone: Vec<_> = (self.devices.keys())
            .filter(|device| !found.contains_key(device))
            .copied()
            .collect();
        for device in gone {
            self.remove(device);
        }
        for (device, health) in found {
            self.show(device, health);
        }
    }

    fn all_down(&self) -> BTreeMap<Device, Health> {
        let down = |health: &Health| Health {
            state: State::Down,
            text: Some("the mediator of the robot does not answer".to_owned()),
            hint: None,
            ..health.clone()
        };
        let all = self.devices.iter();
        all.map(|(device, shown)| (*device, down(&shown.health)))
            .collect()
    }

    fn show(&mut self, device: Device, health: Health) {
        let is_up = health.state != State::Down;
        let token = self.keys.of(device, &format!("alive/{}", self.boot));
        let has_changed = match self.devices.get_mut(&device) {
            Some(shown) if shown.health == health => return,
            Some(shown) => {
                let has_changed = shown.has_token != is_up;
                shown.has_token = is_up;
                shown.health = health.clone();
                has_changed
            }
            None => {
                let publishers = self.publishers(device);
                let shown = Shown {
                    health: health.clone(),
                    has_token: is_up,
                    publishers,
                };
                self.devices.insert(device, shown);
                is_up
            }
        };
        if has_changed {
            self.out.send(match is_up {
                true => Out::Token(token),
                false => Out::NoToken(token),
            });
        }
        let key = self.keys.of(device, "health");
        self.out.send(Out::Put(key, Fact::json(&health)));
    }

    fn remove(&mut self, device: Device) {
        if let Some(shown) = self.devices.remove(&device) {
            shown.publishers.iter().for_each(AbortHandle::abort);
            let token = self.keys.of(device, &format!("alive/{}", self.boot));
            self.out.send(Out::NoToken(token));
        }
    }

    fn publishers(&self, device: Device) -> Vec<AbortHandle> {
        let (period, key) = (self.config.period(device), self.keys.of(device, "data"));
        let mut publishers = vec![self.publisher(device, key, period, &publisher::FOR_ALL)];
        for (who, period) in self.config.own_periods(device) {
            let key = self.keys.own_data(device, who);
            publishers.push(self.publisher(device, key, period, &publisher::FOR_ONE));
        }
        publishers
    }

    fn publisher(
        &self,
        device: Device,
        key: String,
        period: Duration,
        names: &'static publisher::Names,
    ) -> AbortHandle {
        let publisher = DataPublisher {
            session: self.session.clone(),
            client: self.client.clone(),
            device,
            key,
            period,
            names,
            counters: self.counters.clone(),
        };
        tokio::spawn(publisher.run()).abort_handle()
    }

    fn answer(&self, question: Question) {
        match question {
            Question::Info(asker) => {
                let facts = vec![(self.keys.own("info"), Fact::json(&self.info()))];
                self.out.send(Out::Facts(asker, facts));
            }
            Question::Health(asker) => {
                let facts: Vec<_> = (self.asked(&asker, "health"))
                    .map(|(key, shown)| (key, Fact::json(&shown.health)))
                    .collect();
                self.out.send(Out::Facts(asker, facts));
            }
            Question::Description(asker) => {
                let devices: Vec<_> = (self.devices.keys().copied())
                    .map(|device| (self.keys.of(device, "description"), device))
                    .filter(|(key, _)| intersects(&asker, key))
                    .collect();
                let (client, out) = (self.client.clone(), self.out.clone());
                // The mediator may be slow.
                tokio::spawn(async move {
                    let mut facts = Vec::new();
                    for (key, device) in devices {
                        let files = description(&client, device).await;
                        facts.extend(files.map(|files| (key, Fact::Protobuf(files))));
                    }
                    out.send(Out::Facts(asker, facts));
                });
            }
        }
    }

    /// The devices that a query is about.
    fn asked(&self, asker: &Asker, what: &str) -> impl Iterator<Item = (String, &Shown)> {
        let all = self.devices.iter();
        let keyed = all.map(move |(device, shown)| (self.keys.of(*device, what), shown));
        keyed.filter(move |(key, _)| intersects(asker, key))
    }

    fn info(&self) -> Info {
        let counters = self.counters.all().into_iter();
        Info {
            robot: self.config.name.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            boot: self.boot.clone(),
            uptime_ms: u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX),
            time_ms: unix_ns() / 1_000_000,
            mediator: self.has_mediator,
            devices: (self.devices.values())
                .map(|shown| shown.health.clone())
                .collect(),
            operators: self.operators.borrow().clone(),
            counters: counters.map(|(name, n)| (name.to_owned(), n)).collect(),
            clocks: self.clocks.all(),
        }
    }
}

/// The declarations that end when the robot leaves.
struct Declared {
    _queryables: Vec<zenoh::query::Queryable<()>>,
    _subscribers: [zenoh::pubsub::Subscriber<()>; 3],
}

/// Waits until seats have changed, and no message about them waits.
async fn changed(
    seats: &mut watch::Receiver<BTreeMap<i32, SeatInfo>>,
    one: &Arc<Semaphore>,
) -> Result<OwnedSemaphorePermit, AcquireError> {
    if seats.changed().await.is_err() {
        std::future::pending::<()>().await;
    }
    // If this is cancelled here, the change must be seen again.
    seats.mark_changed();
    one.clone().acquire_owned().await
}

/// The pending messages about seats.
fn differences(before: &BTreeMap<i32, SeatInfo>, now: &BTreeMap<i32, SeatInfo>) -> Vec<Fact> {
    let changed = now
        .values()
        .filter(|seat| before.get(&seat.id) != Some(seat));
    let free = before.keys().filter(|id| !now.contains_key(id));
    let free = free.map(|id| Fact::json(&SeatInfo::free(*id)));
    changed.map(Fact::json).chain(free).collect()
}

/// Whether a query also matches this key.
fn intersects(asker: &Asker, key: &str) -> bool {
    let key = KeyExpr::try_from(key);
    key.is_ok_and(|key| asker.query.key_expr().intersects(&key))
}

/// The description that the driver has sent, or Amber's own.
async fn description(client: &Client, device: Device) -> Option<Vec<u8>> {
    let mediator = client.mediator();
    let found = mediator.get_description(device.device_type.0, device.id.0);
    match found.await {
        Ok(found) => Some(found.files.to_vec()),
        Err(_) => (device.device_type.name()).map(|_| amber_proto::DESCRIPTORS.to_vec()),
    }
}

/// Reads the list of drivers periodically, and immediately after an event.
async fn watch_roster(client: Client, shown: watch::Sender<Option<Vec<Driver>>>) {
    let mut ticks = interval(ROSTER_PERIOD);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mediator = client.mediator();
    let mut events = loop {
        match mediator.events().await {
            Ok(events) => break events,
            Err(error) => tracing::warn!("no events of the mediator: {error}"),
        }
        sleep(RETRY).await;
    };
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            event = events.next_event() => match event {
                Some(Event::Message(_) | Event::Interrupted(_) | Event::Resumed) => {}
                None => return,
            },
        }
        let drivers = mediator.drivers().await.ok();
        shown.send_if_modified(|known| {
            let has_changed = *known != drivers;
            *known = drivers;
            has_changed
        });
    }
}

/// Connects to the mediator. Its client then finds it again by itself.
async fn connected(mediator: &str) -> Client {
    loop {
        match Client::connect(mediator).await {
            Ok(client) => return client,
            Err(error) => tracing::warn!("{error}"),
        }
        sleep(RETRY).await;
    }
}
