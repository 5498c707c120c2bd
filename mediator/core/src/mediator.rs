//! All decisions of the mediator, in one value without IO. PURE.
//!
//! The shell of the crate amber-mediator reports events through methods that take `now`. Afterwards
//! it performs the decisions of the core, until none is left:
//!
//! - [`Core::poll_action`]: processes to start and stop,
//! - [`Core::poll_task`]: work that needs files or the log,
//! - [`Core::send_traced`]: copies of frames for `amber trace`,
//! - [`Core::feed_mut`]: bytes for recorders,
//! - [`Core::poll_queue`]: queues with bytes for a driver's pipe,
//! - [`Core::transmit`]: datagrams to send.
//!
//! [`Core::next_timeout`] says when [`Core::timeout`] is due; [`Core::poll_timers_changed`]
//! says that this may have changed.

mod absence;
mod clients;
mod control;
mod drivers;
mod events;
mod feed;
mod health;
mod lists;
mod log;
mod motion;
mod reload;
#[cfg(test)]
mod tests;
mod trace;
mod unproved;
mod words;

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::time::{Duration, Instant, SystemTime};

use amber_proto::mediator::{self, Event as Notice, ProcessUsage, event::Kind};
use amber_proto::{ClientId, Device, SynNum};

use self::clients::{ClientNews, Gone};
use self::drivers::Driver;
use self::events::Events;
use self::health::Health;
use self::lists::Lists;
use self::log::Log;
use self::unproved::UnprovedRequests;
use crate::address::{ClientAddress, DriverKey};
use crate::config::{Admin, Config, DriverConfig, Limits};
use crate::counters::{Count, Counters, DropReason};
use crate::feeds::{Feed, FeedKey};
use crate::limits;
use crate::links::Interface;
use crate::queue::Queue;
use crate::router::{Outbox, Router, Sender, Unreachable};
use crate::supervise::{Event, ProcessAction, State};

/// The whole core: router, supervision and the mediator as a device.
#[derive(Debug)]
pub struct Core {
    router: Router,
    outbox: Outbox,
    drivers: BTreeMap<DriverKey, Driver>,
    next_key: u32,
    actions: VecDeque<(DriverKey, ProcessAction)>,
    tasks: VecDeque<ShellTask>,
    events: Events,
    /// Clients that run `amber trace`.
    tracers: Vec<trace::Tracer>,
    /// Recent lists, for programs on other machines.
    lists: Lists,
    log: Log,
    admin: Admin,
    limits: Limits,
    unproved: UnprovedRequests,
    client_news: ClientNews,
    listening: Vec<String>,
    started: Instant,
    /// The same, in milliseconds since the Unix epoch.
    started_ms: u64,
    random: fastrand::Rng,
    /// When to check for silent clients.
    client_tick: Option<Instant>,
    /// When to forget clients that were silent for long.
    forget_tick: Option<Instant>,
    timers_changed: bool,
    stopping: bool,
}

/// Work for the shell, because it needs files or the log.
#[derive(Clone, Debug, PartialEq)]
pub enum ShellTask {
    /// Read the configuration again; then call [`Core::apply`] and [`Core::answer`].
    Reload(Ticket),
    /// Change the log filter; then call [`Core::answer`].
    SetLogLevel(Ticket, String),
    /// Measure these processes, with the total number; then call [`Core::answer_processes`].
    MeasureProcesses(Ticket, Vec<ProcessUsage>, u32),
    /// Create a socket for a recorder of these devices, or of all; then call
    /// [`Core::answer_feed`], and [`Core::open_feed`] when it connects.
    OpenFeed(Ticket, Vec<Device>),
    /// Find out whether the client is a program of the mediator's user; then call
    /// [`Core::begin_trace`].
    Trace(Ticket, mediator::Trace),
}

/// The sender of a request that waits for an answer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ticket {
    to: Sender,
    /// Detects that another client now has the address.
    id: Option<ClientId>,
    syn: SynNum,
}

impl Ticket {
    /// The address of the client, unless a driver sent the request.
    pub fn client(&self) -> Option<SocketAddr> {
        match self.to {
            Sender::Client(client) => Some(client.address),
            Sender::Driver(_) | Sender::DriverAsClient(_) => None,
        }
    }
}

impl Core {
    /// A mediator with its drivers down; [`Core::start`] starts them.
    ///
    /// `seed` is for the jitter of backoffs, `wall_clock` for the time of events.
    pub fn new(now: Instant, config: &Config, seed: u64, wall_clock: fn() -> SystemTime) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let secret = random.u64(..);
        let mut core = Self {
            router: Router::new(now, config.limits.clients, config.limits.queue, secret),
            outbox: Outbox::default(),
            drivers: BTreeMap::new(),
            next_key: 0,
            actions: VecDeque::new(),
            tasks: VecDeque::new(),
            events: Events::new(wall_clock),
            tracers: Vec::new(),
            lists: Lists::default(),
            log: Log::default(),
            admin: config.admin,
            limits: config.limits,
            unproved: UnprovedRequests::default(),
            client_news: ClientNews::default(),
            listening: Vec::new(),
            started: now,
            started_ms: 0,
            random,
            client_tick: None,
            forget_tick: None,
            timers_changed: false,
            stopping: false,
        };
        core.started_ms = core.moment(now).time_ms;
        core.take_rules(now, config);
        for driver in &config.drivers {
            core.add_driver(now, driver.clone());
        }
        core
    }

    /// Starts all drivers. `listening` is shown by `amber status`.
    pub fn start(&mut self, now: Instant, listening: Vec<String>) {
        self.listening = listening;
        for key in self.keys() {
            self.driver_event(now, key, Event::Start);
        }
    }

    /// Stops all drivers; [`Core::is_finished`] tells when they have ended. Returns the longest
    /// time that this takes, unless a process cannot be killed.
    pub fn shut_down(&mut self, now: Instant) -> Duration {
        self.stopping = true;
        for key in self.keys() {
            self.driver_event(now, key, Event::Stop);
        }
        let graces = self.drivers.values().map(|d| d.config.policy.grace);
        graces.max().unwrap_or_default() * 2 + limits::AFTER_KILL
    }

    /// The router, for inspection.
    pub fn router(&self) -> &Router {
        &self.router
    }

    /// The addresses on which the mediator listens: datagrams from them are its own.
    pub fn set_listening(&mut self, addresses: &[SocketAddr]) {
        self.router.set_listening(addresses);
    }

    /// The addresses and networks of this machine, which may change.
    pub fn set_interfaces(&mut self, interfaces: &[Interface]) {
        self.router.set_interfaces(interfaces);
    }

    /// Sets the id of the next client, to test the wrap-around of ids.
    pub fn set_next_id(&mut self, id: ClientId) {
        self.router.set_next_id(id);
    }

    /// All counters. The shell adds what it drops itself.
    pub fn counters_mut(&mut self) -> &mut Counters {
        &mut self.router.counters
    }

    /// Counts a datagram that was rejected for its source.
    pub fn refuse_datagram(&mut self, why: DropReason) {
        self.router.refuse_datagram(why);
    }

    /// A driver whose queue has bytes for its pipe.
    pub fn poll_queue(&mut self) -> Option<DriverKey> {
        self.router.poll_dirty()
    }

    /// The frames that wait for a driver.
    pub fn queue_mut(&mut self, key: DriverKey) -> Option<&mut Queue> {
        self.router.queue_mut(key)
    }

    /// Whether anyone traces a driver.
    pub fn is_traced(&self) -> bool {
        !self.router.tap.is_empty()
    }

    /// Datagrams to send to clients.
    pub fn outbox(&self) -> &Outbox {
        &self.outbox
    }

    /// Lends the outbox the buffer of frames from a driver, until [`Core::give_back`].
    pub fn lend(&mut self, buffer: Vec<u8>) {
        self.outbox.lend(buffer);
    }

    /// Returns the buffer that was lent, after everything is sent.
    pub fn give_back(&mut self) -> Vec<u8> {
        self.outbox.give_back()
    }

    /// Gives the datagrams to send to `send`, and forgets them.
    pub fn transmit<T>(&mut self, send: impl FnOnce(&Outbox, &mut Counters) -> T) -> T {
        self.outbox.gather();
        let sent = send(&self.outbox, &mut self.router.counters);
        self.outbox.clear();
        sent
    }

    /// Whether the mediator is shutting down.
    pub fn is_stopping(&self) -> bool {
        self.stopping
    }

    /// The drivers that have not ended yet, as text.
    pub fn unfinished(&self) -> String {
        self.names_of(|driver| !driver.supervisor.is_at_rest())
    }

    /// The state in one line.
    pub fn summary(&self) -> String {
        let known = self.drivers.values().filter(|driver| !driver.obsolete);
        let up = known.clone().filter(|d| *d.supervisor.state() == State::Up);
        let (up, all) = (up.count(), known.count());
        let clients = self.router.clients.len();
        let mut text = format!("drivers up: {up} of {all}, clients: {clients}");
        let failed =
            self.names_of(|driver| matches!(driver.supervisor.state(), State::Failed { .. }));
        if !failed.is_empty() {
            text.push_str(&format!(", given up: {failed}"));
        }
        text
    }

    fn names_of(&self, wanted: impl Fn(&Driver) -> bool) -> String {
        let drivers = self.drivers.values().filter(|driver| wanted(driver));
        let names = drivers.map(|driver| driver.config.devices[0].to_string());
        names.collect::<Vec<_>>().join(", ")
    }

    /// Whether all drivers have ended.
    pub fn is_finished(&self) -> bool {
        self.drivers
            .values()
            .all(|driver| driver.supervisor.is_at_rest())
    }

    /// A datagram has come.
    pub fn datagram(&mut self, now: Instant, from: ClientAddress, bytes: &[u8]) {
        self.set_feed_time(now);
        if let Some(message) = self.router.datagram(now, from, bytes, &mut self.outbox) {
            self.for_mediator(now, message);
        }
        self.tend(now);
    }

    /// The network reports an address as unreachable. This counts only for clients to which
    /// something was sent.
    pub fn unreachable(&mut self, now: Instant, at: ClientAddress, how: Unreachable) {
        let Some(id) = self.router.id_of(Sender::Client(at)) else {
            return;
        };
        self.router.counters.count(Count::AddressErrors);
        if self.router.clients.unreachable(now, id, how) {
            self.router.counters.count(Count::ClientsUnreachable);
            self.client_gone(now, id, Gone::Unreachable(how));
            self.tend(now);
        }
    }

    /// The time of [`Core::next_timeout`] has come.
    pub fn timeout(&mut self, now: Instant) {
        self.set_feed_time(now);
        for key in self.keys() {
            let due = |driver: &Driver| driver.supervisor.next_timeout().is_some_and(|t| t <= now);
            if self.drivers.get(&key).is_some_and(due) {
                self.driver_event(now, key, Event::Timer);
            }
            self.tell_of_health(now, key);
        }
        if self.client_tick.is_some_and(|tick| tick <= now) {
            self.look_for_silent_clients(now);
        }
        if self.forget_tick.is_some_and(|tick| tick <= now) {
            self.forget_abandoned_clients(now);
        }
        self.tend(now);
    }

    /// When [`Core::timeout`] is due.
    pub fn next_timeout(&self) -> Option<Instant> {
        let of_driver = |driver: &Driver| {
            let news = driver.health.iter().filter_map(Health::next_timeout);
            news.chain(driver.supervisor.next_timeout()).min()
        };
        let drivers = self.drivers.values().filter_map(of_driver);
        drivers
            .chain(self.client_tick)
            .chain(self.forget_tick)
            .min()
    }

    /// Whether [`Core::next_timeout`] may have changed since the last call.
    pub fn poll_timers_changed(&mut self) -> bool {
        std::mem::take(&mut self.timers_changed)
    }

    /// The next action on a process.
    pub fn poll_action(&mut self) -> Option<(DriverKey, ProcessAction)> {
        self.actions.pop_front()
    }

    /// The next order for files or the log.
    pub fn poll_task(&mut self) -> Option<ShellTask> {
        self.tasks.pop_front()
    }

    /// Whether a driver with a requested start still waits for it, and was not stopped since.
    pub fn is_to_be_started(&self, key: DriverKey) -> bool {
        let driver = self.drivers.get(&key);
        driver.is_some_and(|driver| *driver.supervisor.state() == State::Starting)
    }

    /// The configuration to start a driver with.
    pub fn driver_config(&mut self, key: DriverKey) -> Option<&DriverConfig> {
        let driver = self.drivers.get_mut(&key)?;
        if let Some(config) = driver.next_config.take() {
            driver.supervisor.set_policy(config.policy);
            driver.config = config;
        }
        Some(&driver.config)
    }

    fn keys(&self) -> Vec<DriverKey> {
        self.drivers.keys().copied().collect()
    }

    /// Handles the observations of the router.
    fn tend(&mut self, now: Instant) {
        while let Some(evicted) = self.router.poll_evicted() {
            let why = Gone::Evicted(evicted.room, evicted.newcomer);
            self.say_client_gone(now, &evicted.client, why);
        }
        while let Some(key) = self.router.poll_deaf() {
            // It may have been stopped already.
            let deaf = self.router.route(key).filter(|route| route.queue.is_deaf());
            if let Some(frames) = deaf.map(|route| route.queue.len()) {
                self.driver_event(now, key, Event::Deaf(frames));
            }
        }
    }

    /// Forgets listeners that were evicted. Others are found when an event is sent to them.
    fn forget_listeners_that_are_gone(&mut self) {
        let known = self.router.clients.len() + self.drivers.len();
        if self.events.listeners() > 2 * known {
            let router = &self.router;
            self.events.retain(|id| router.knows(id));
        }
    }

    /// Sends an event to all listeners.
    fn notify(&mut self, notice: Notice) {
        self.record_event(&notice);
        let (router, outbox) = (&mut self.router, &mut self.outbox);
        // Evicted clients are found here.
        self.events.publish(notice, |id, message| {
            router.tell_client(id, message, outbox)
        });
    }
}

fn notice(kind: Kind) -> Notice {
    Notice {
        kind: kind.into(),
        ..Notice::default()
    }
}

fn device_notice(kind: Kind, device: Device, text: Option<&str>) -> Notice {
    Notice {
        device: Some(control::wire_device(device)),
        text: text.map(str::to_owned),
        ..notice(kind)
    }
}
