//! Where the core meets the world. IO.
//!
//! One thread and one loop: it waits until the system has something, or until
//! something is due, tells the [`Core`], and does what the core has decided
//! until nothing is left (`Shell::settle`). Whoever has more than fits into a
//! turn goes on in the next, so that nobody waits for long. There are no locks and
//! no hand-overs; only files are read on another thread, because they may take long.

mod alarms;
mod batch;
mod child;
mod errors;
mod guard;
mod neighbours;
mod poll;
mod process;
mod reload;
mod sender;
mod service;
mod spawn;
mod strays;
mod udp;

use std::collections::VecDeque;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
use std::{env, io};

use mio::net::UdpSocket;
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Registry, Waker};
use nix::sys::signal::Signal;
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};
use signal_hook_mio::v1_0::Signals;
use tracing::{debug, error, info, warn};

use self::alarms::Alarms;
use self::batch::Batch;
use self::child::Child;
use self::guard::Guard;
pub use self::guard::guard;
use self::poll::Source;
use self::reload::Reloads;
use self::sender::Sender;
use self::service::Service;
use self::strays::Strays;
use self::udp::{Listener, Receiver, Rest};
use crate::config::{Config, ConfigError};
use crate::core::{Core, Order};
use crate::counters::Drop;
use crate::hash::Map;
use crate::limits::{EVENTS_PER_TURN, LISTEN_ADDRESSES, STARTS_AT_ONCE, STARTS_PAUSE};
use crate::log;
use crate::origin::{OwnAddresses, Reach};
use crate::rate::Digest;
use crate::router::{ClientAddress, DriverKey, Unreachable};
use crate::supervise::{Action, Event, Exit};

/// A mediator that has its sockets.
pub struct Mediator {
    config: Config,
    listeners: Vec<Listener>,
    addresses: Vec<SocketAddr>,
    hooks: Hooks,
    poll: Poll,
    signals: Signals,
}

/// What the mediator cannot do without its program.
pub struct Hooks {
    /// Reads the configuration again, on a thread of its own.
    pub reload: Arc<dyn Fn() -> Result<Config, ConfigError> + Send + Sync>,
    /// Changes what is logged; the error says what is wrong with the filter.
    pub set_log_level: SetLogLevel,
    /// Changes how many lines are logged in a second at most.
    pub set_log_rate: Box<dyn Fn(u32)>,
    /// Lines of the log that were lost so far.
    pub log_lines_lost: Box<dyn Fn() -> u64>,
    /// The program that `amber` stands for in commands; it is also run as
    /// `amber guard`.
    pub amber: PathBuf,
    /// What SIGHUP means.
    pub hangup: Hangup,
}

/// What SIGHUP means, which comes when a terminal is closed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Hangup {
    /// Read the configuration again, as services do.
    #[default]
    Reload,
    /// The end.
    End,
}

/// How a mediator has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// All drivers have ended, or cannot be ended.
    Orderly,
    /// A second signal did not want to wait for them. They are ended by the guard
    /// as soon as this process ends, which must be now.
    Hurried,
}

/// See [`Hooks`].
pub type SetLogLevel = Box<dyn Fn(&str) -> Result<(), String>>;

/// Why the mediator cannot listen.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// Somebody else listens there.
    #[error("{address} is in use{}", by(holder.as_deref()))]
    InUse {
        /// Where.
        address: SocketAddr,
        /// Who, as far as can be seen.
        holder: Option<String>,
    },
    /// Something else is wrong.
    #[error("cannot listen on {0}: {1}")]
    Other(SocketAddr, io::Error),
    /// Some would never be heard.
    #[error("{0} addresses to listen on, more than {LISTEN_ADDRESSES}")]
    TooMany(usize),
    /// The configuration names no address.
    #[error("no address to listen on")]
    Nothing,
    /// The system does not let us wait for anything.
    #[error("cannot wait for datagrams and signals: {0}")]
    Poll(io::Error),
}

fn by(holder: Option<&str>) -> String {
    holder.map_or(String::new(), |holder| format!(" by {holder}"))
}

impl Mediator {
    /// Takes the addresses of the configuration, and SIGTERM, SIGINT, SIGHUP and
    /// SIGCHLD of this process.
    ///
    /// # Errors
    /// An address cannot be had. An address family that the machine lacks is
    /// skipped with a line in the log, unless nothing else is left. Or the system
    /// refuses what the mediator needs to begin with.
    pub fn bind(config: Config, hooks: Hooks) -> Result<Self, BindError> {
        let mut listeners = Vec::new();
        let mut skipped = None;
        if config.listen.len() > LISTEN_ADDRESSES {
            return Err(BindError::TooMany(config.listen.len()));
        }
        for address in &config.listen {
            match udp::listen(*address) {
                Ok(listener) => listeners.push(listener),
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                    let holder = port_holder(address.port());
                    return Err(BindError::InUse {
                        address: *address,
                        holder,
                    });
                }
                Err(error) if address.ip().is_unspecified() && lacks_family(&error) => {
                    warn!(%address, %error, "skipped");
                    skipped = Some(BindError::Other(*address, error));
                }
                Err(error) => return Err(BindError::Other(*address, error)),
            }
        }
        if listeners.is_empty() {
            return Err(skipped.unwrap_or(BindError::Nothing));
        }
        Ok(Self {
            config,
            addresses: listeners.iter().map(|listener| listener.address).collect(),
            listeners,
            hooks,
            poll: Poll::new().map_err(BindError::Poll)?,
            signals: Signals::new([SIGTERM, SIGINT, SIGHUP, SIGCHLD]).map_err(BindError::Poll)?,
        })
    }

    /// Where it listens, with the ports that it got.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Routes and supervises until SIGTERM or SIGINT comes and all drivers have
    /// ended, or cannot be ended: at the latest twice the longest grace time and
    /// [`AFTER_KILL`](crate::limits::AFTER_KILL) later. A second one ends at once.
    /// SIGHUP reads the configuration again, or is an end as well.
    ///
    /// Drivers get SIGTERM when the thread ends that calls this.
    ///
    /// # Errors
    /// The system refuses what the mediator needs to begin with, or to wait.
    pub fn run(mut self) -> io::Result<Ending> {
        // Nobody can guess it: clients prove themselves with what comes of it.
        let seed = RandomState::new().build_hasher().finish();
        let mut core = Core::new(Instant::now(), &self.config, seed, SystemTime::now);
        core.router.set_listening(&self.addresses);
        (self.hooks.set_log_rate)(self.config.limits.log_lines_per_second);
        let registry = self.poll.registry();
        let (mut inlets, mut outlets) = (Vec::new(), Vec::new());
        for (listener, sockets) in (0..=u8::MAX).zip(self.listeners) {
            for (socket, reach) in sockets.receiving {
                let mut inlet = Inlet {
                    socket,
                    reach,
                    listener,
                    receiver: Receiver::new(),
                };
                inlet.adjust_watch(registry, inlets.len())?;
                inlets.push(inlet);
            }
            outlets.push(sockets.outlets);
        }
        let sender = Sender::new(outlets);
        for (number, (_, socket)) in sender.sockets().enumerate() {
            // Nothing but errors ever comes there.
            let token = Source::SendErrors(number).into();
            let source = &mut SourceFd(&socket.as_raw_fd());
            registry.register(source, token, Interest::READABLE)?;
        }
        registry.register(
            &mut self.signals,
            Source::Signals.into(),
            Interest::READABLE,
        )?;
        let waker = Arc::new(Waker::new(registry, Source::Wake.into())?);
        let strays = Strays::adopt();
        let mut shell = Shell {
            core,
            poll: self.poll,
            again: Vec::new(),
            alarms: Alarms::default(),
            inlets,
            batch: Batch::new(),
            own_addresses: OwnAddresses::new(&self.addresses),
            sender,
            children: Map::default(),
            to_start: VecDeque::new(),
            // At first nobody is served who could wait.
            time_for_starts: Duration::MAX,
            for_drivers: for_drivers(self.addresses[0]),
            guard: Guard::new(self.hooks.amber.clone(), strays.token()),
            strays,
            hooks: self.hooks,
            signals: self.signals,
            reloads: Reloads::new(waker),
            service: Service::from_env(),
            log_lines_lost: 0,
            lost_datagrams: Digest::default(),
            phase: Phase::Running,
        };
        let listening = self.addresses.iter().map(ToString::to_string).collect();
        shell.start(listening);
        shell.run()
    }
}

/// See the [module](self).
struct Shell {
    core: Core,
    poll: Poll,
    /// What had more than fitted into the last turn.
    again: Vec<Source>,
    alarms: Alarms<Alarm>,
    inlets: Vec<Inlet>,
    /// Room for what comes in.
    batch: Batch,
    own_addresses: OwnAddresses,
    sender: Sender,
    children: Map<DriverKey, Child>,
    /// Drivers that are to be started, a few in each turn.
    to_start: VecDeque<DriverKey>,
    /// What is left for that until the next pause.
    time_for_starts: Duration,
    /// Where drivers reach us.
    for_drivers: SocketAddr,
    guard: Guard,
    strays: Strays,
    hooks: Hooks,
    signals: Signals,
    reloads: Reloads,
    service: Service,
    log_lines_lost: u64,
    lost_datagrams: Digest,
    phase: Phase,
}

/// A socket that receives.
struct Inlet {
    socket: UdpSocket,
    receiver: Receiver,
    reach: Reach,
    /// Index of the address that it belongs to, for [`ClientAddress::socket`].
    listener: u8,
}

impl Inlet {
    fn adjust_watch(&mut self, registry: &Registry, index: usize) -> io::Result<()> {
        let token = Source::Socket(index).into();
        self.receiver
            .adjust_watch(registry, &mut self.socket, token)
    }
}

/// How far we are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Running,
    /// Drivers are being ended.
    Ending,
    Ended(Ending),
}

/// What may be due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Alarm {
    /// The core wants to know the time.
    Core,
    /// The service manager is to be told how we are.
    Service,
    /// A guard that was lost is to be replaced.
    Guard,
    /// Drivers are to be started.
    Start,
    /// Drivers have left something behind that may not have ended yet.
    Strays,
    /// We do not wait any longer for drivers to end.
    Patience,
    Driver(DriverKey, child::Alarm),
}

impl Shell {
    fn start(&mut self, listening: Vec<String>) {
        if !self.guard.start() {
            self.guard_lost();
        }
        self.core.start(Instant::now(), listening);
        self.settle();
        self.time_for_starts = STARTS_AT_ONCE;
        self.service.ready();
        self.tell_service();
    }

    fn run(mut self) -> io::Result<Ending> {
        let mut events = Events::with_capacity(EVENTS_PER_TURN);
        loop {
            match self.phase {
                Phase::Ending if self.is_finished() => return Ok(Ending::Orderly),
                Phase::Ended(ending) => return Ok(ending),
                Phase::Running | Phase::Ending => {}
            }
            let longest = self.idle_time();
            poll::wait(&mut self.poll, &mut events, longest)?;
            // What has come by now is seen before it is missed, however long we are kept
            // from going on.
            let now = Instant::now();
            let mut again = std::mem::take(&mut self.again);
            let is_error =
                |source: &Source| matches!(source, Source::Errors(_) | Source::SendErrors(_));
            // Errors first: what they are about was sent before anything that is sent from
            // now on, perhaps to the next program on the same port.
            for source in again.extract_if(.., |source| is_error(source)) {
                self.ready(source, false);
            }
            for event in &events {
                match event.token().into() {
                    Source::Socket(socket) if event.is_error() => {
                        self.ready(Source::Errors(socket), false);
                    }
                    source if is_error(&source) => self.ready(source, false),
                    _ => {}
                }
            }
            for event in &events {
                let source = event.token().into();
                again.retain(|other| *other != source);
                if !is_error(&source) {
                    self.ready(source, event.is_read_closed() || event.is_write_closed());
                }
            }
            for source in again {
                self.ready(source, false);
            }
            // What is due again at once has its next turn after the others had theirs.
            for _ in 0..self.alarms.due(now) {
                if let Some(alarm) = self.alarms.pop(now) {
                    self.due(now, alarm);
                }
            }
        }
    }

    /// How long there is nothing to do, unless something becomes ready.
    fn idle_time(&self) -> Option<Duration> {
        if !self.again.is_empty() {
            return Some(Duration::ZERO);
        }
        // What was due may have taken its time.
        let next = self.alarms.next()?;
        Some(next.saturating_duration_since(Instant::now()))
    }

    /// Something is ready. What is `closed` has an end, which must be seen.
    fn ready(&mut self, source: Source, closed: bool) {
        match source {
            Source::Socket(socket) => self.receive(socket),
            Source::Errors(socket) => self.take_errors(socket),
            Source::SendErrors(number) => self.take_send_errors(number),
            Source::Stream(key, stream) => self.stream_ready(key, stream, closed),
            Source::Signals => self.take_signals(),
            Source::Wake => self.reloaded(),
        }
        self.settle();
    }

    /// It has more, and the others have their turn.
    fn again(&mut self, source: Source) {
        if !self.again.contains(&source) {
            self.again.push(source);
        }
    }

    fn due(&mut self, now: Instant, alarm: Alarm) {
        match alarm {
            Alarm::Core => {
                self.core.timeout(now);
                self.set_core_alarm();
            }
            Alarm::Service => self.tell_service(),
            Alarm::Guard => {
                if !self.guard.start() {
                    self.guard_lost();
                }
            }
            Alarm::Start => {
                self.time_for_starts = STARTS_AT_ONCE;
                self.start_some();
            }
            Alarm::Strays => self.end_strays(),
            // The last one ended just now.
            Alarm::Patience if self.is_finished() => {}
            Alarm::Patience => {
                let left = match self.core.is_finished() {
                    true => "a process that a driver has started".to_owned(),
                    false => self.core.unfinished(),
                };
                error!("not even SIGKILL ends {left}: left behind");
                self.phase = Phase::Ended(Ending::Orderly);
            }
            Alarm::Driver(key, alarm) => self.driver_due(now, key, alarm),
        }
        self.settle();
    }

    /// Whether all that was started has ended.
    fn is_finished(&self) -> bool {
        self.core.is_finished() && !self.strays.may_be_left()
    }

    fn set_core_alarm(&mut self) {
        match self.core.next_timeout() {
            Some(due) => self.alarms.set(Alarm::Core, due),
            None => self.alarms.clear(Alarm::Core),
        }
    }

    fn guard_lost(&mut self) {
        self.alarms.set(Alarm::Guard, Instant::now() + guard::PAUSE);
    }

    fn tell_service(&mut self) {
        if let Some(due) = self.service.tell(&self.core) {
            self.alarms.set(Alarm::Service, due);
        }
    }

    /// Takes datagrams from a socket.
    fn receive(&mut self, index: usize) {
        self.count_lost_lines();
        let now = Instant::now();
        self.count_lost_datagrams(now, index);
        let core = &mut self.core;
        let inlet = &mut self.inlets[index];
        let (socket, reach) = (inlet.listener, inlet.reach);
        let own = &mut self.own_addresses;
        let each =
            |address, bytes: &[u8]| match own.check(now, address, reach, neighbours::own_addresses)
            {
                Ok(()) => core.datagram(now, ClientAddress { socket, address }, bytes),
                Err(why) => core.router.refuse_datagram(why),
            };
        match inlet.receiver.receive(&mut self.batch, &inlet.socket, each) {
            Ok(Rest::Nothing) => {}
            Ok(Rest::Unknown) => self.again(Source::Socket(index)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => {
                // An error of the socket is taken by being seen.
                debug!(%error, "receiving failed");
                self.again(Source::Errors(index));
                self.again(Source::Socket(index));
            }
        }
        let inlet = &mut self.inlets[index];
        if let Err(error) = inlet.adjust_watch(self.poll.registry(), index) {
            debug!(%error, "a socket cannot be watched");
        }
        if !inlet.receiver.is_watched() {
            self.again(Source::Socket(index));
        }
    }

    /// Takes the datagrams that came when there was no room for them into the count.
    fn count_lost_datagrams(&mut self, now: Instant, index: usize) {
        let Inlet {
            socket, receiver, ..
        } = &mut self.inlets[index];
        let lost = receiver.newly_lost(now, socket);
        if lost == 0 {
            return;
        }
        let counters = &mut self.core.router.counters;
        counters.drop_many(Drop::ReceiveBufferFull, lost);
        if let Some(datagrams) = self.lost_datagrams.happened_times(now, lost) {
            let hint = udp::has_little_room(socket).then_some(
                "the system grants little room for them: see `sysctl net.core.rmem_max`",
            );
            warn!(
                datagrams,
                hint, "datagrams came faster than they could be taken, and were lost"
            );
        }
    }

    /// Takes what is known of addresses that cannot be reached. That comes before
    /// the datagrams: who comes from such an address after that is new.
    fn take_errors(&mut self, index: usize) {
        let core = &mut self.core;
        let inlet = &self.inlets[index];
        if take_errors(core, inlet.listener, &inlet.socket) {
            self.again(Source::Errors(index));
        }
    }

    /// The same of a socket that sends: the system gives errors to any socket of the
    /// address.
    fn take_send_errors(&mut self, number: usize) {
        let Some((listener, socket)) = self.sender.socket_at(number) else {
            return;
        };
        if take_errors(&mut self.core, listener, socket) {
            self.again(Source::SendErrors(number));
        }
    }

    fn take_signals(&mut self) {
        let signals: Vec<_> = self.signals.pending().collect();
        for signal in signals {
            match signal {
                SIGCHLD => self.reap(),
                SIGHUP if self.hooks.hangup == Hangup::Reload => self.reload(None),
                _ => self.end(),
            }
        }
    }

    fn end(&mut self) {
        if self.phase != Phase::Running {
            self.phase = Phase::Ended(Ending::Hurried);
            return;
        }
        info!("ending; a second signal ends at once");
        self.phase = Phase::Ending;
        let now = Instant::now();
        let patience = self.core.shut_down(now);
        self.alarms.set(Alarm::Patience, now + patience);
        self.service.stopping(patience);
        self.tell_service();
    }

    /// Does all that the core has decided.
    fn settle(&mut self) {
        loop {
            self.settle_drivers();
            // What is learned by sending is one more thing to settle.
            if !self.send() {
                break;
            }
        }
        if self.core.poll_timers_changed() {
            self.set_core_alarm();
            if let Some(due) = self.service.changed() {
                self.alarms.set(Alarm::Service, due);
            }
        }
    }

    fn settle_drivers(&mut self) {
        loop {
            if let Some(key) = self.core.router.poll_dirty() {
                self.write(key);
            } else if let Some((key, action)) = self.core.poll_action() {
                self.act(key, action);
            } else if let Some(order) = self.core.poll_order() {
                self.carry_out(order);
            } else {
                break;
            }
        }
    }

    /// Sends what is to be sent; true when it turned out that somebody cannot be
    /// reached.
    fn send(&mut self) -> bool {
        let core = &mut self.core;
        if !core.router.tap.is_empty() {
            core.send_traced(Instant::now());
        }
        if core.outbox.is_empty() {
            return false;
        }
        let counters = &mut core.router.counters;
        let unreachable = self.sender.send(&core.outbox, counters);
        core.outbox.clear();
        for address in &unreachable {
            core.unreachable(Instant::now(), *address, Unreachable::NoRoute);
        }
        !unreachable.is_empty()
    }

    /// Takes the lines of the log that were lost into the count: somebody may ask
    /// for it.
    fn count_lost_lines(&mut self) {
        let lost = (self.hooks.log_lines_lost)();
        let known = std::mem::replace(&mut self.log_lines_lost, lost);
        let counters = &mut self.core.router.counters;
        counters.drop_many(Drop::LogLines, lost - known);
    }

    fn act(&mut self, key: DriverKey, action: Action) {
        let child = self.children.get_mut(&key);
        match (action, child) {
            (Action::Spawn, _) => {
                self.to_start.push_back(key);
                self.start_some();
            }
            (Action::CloseInput, Some(child)) => child.close_input(),
            (Action::Terminate, Some(_)) => self.signal(key, Signal::SIGTERM),
            (Action::Kill, Some(_)) => self.signal(key, Signal::SIGKILL),
            // There is no process; or the core has done it itself.
            _ => {}
        }
    }

    /// Starts drivers, as many as there is time for until the next pause.
    fn start_some(&mut self) {
        while !self.time_for_starts.is_zero()
            && let Some(key) = self.to_start.pop_front()
        {
            let begin = Instant::now();
            if self.core.is_to_be_started(key) {
                self.spawn(key);
            } else {
                let exit = Exit {
                    text: "was stopped before it was started".into(),
                    success: true,
                };
                self.core.exited(Instant::now(), key, exit);
            }
            self.time_for_starts = self.time_for_starts.saturating_sub(begin.elapsed());
        }
        if self.time_for_starts.is_zero() && !self.alarms.is_set(Alarm::Start) {
            self.alarms.set(Alarm::Start, Instant::now() + STARTS_PAUSE);
        }
    }

    fn spawn(&mut self, key: DriverKey) {
        let Some(config) = self.core.driver_config(key).cloned() else {
            return;
        };
        let (guard, strays) = (&mut self.guard, &mut self.strays);
        let started = spawn::spawn(&config, &self.hooks.amber, self.for_drivers, guard, strays);
        let child = started.and_then(|started| {
            let slot = started.slot;
            Child::new(self.poll.registry(), key, started).map_err(|error| {
                self.guard.forget(slot);
                spawn::SpawnError {
                    error: error.to_string(),
                    hint: spawn::NO_FILES.into(),
                }
            })
        });
        let now = Instant::now();
        match child {
            Ok(child) => {
                let pid = child.pid();
                self.children.insert(key, child);
                self.core.driver_event(now, key, Event::Spawned { pid });
            }
            Err(spawn::SpawnError { error, hint }) => {
                self.core.spawn_failed(now, key, error, hint);
            }
        }
    }

    fn carry_out(&mut self, order: Order) {
        match order {
            Order::Reload(ticket) => self.reload(Some(ticket)),
            Order::SetLogLevel(ticket, filter) => {
                let outcome = (self.hooks.set_log_level)(&filter)
                    .map(|()| format!("log level: {filter}"))
                    .map_err(|error| (error, Some(log::HINT.to_owned())));
                self.core.answer(ticket, outcome);
            }
        }
    }
}

/// Takes what the network says of addresses; true when there is more.
fn take_errors(core: &mut Core, listener: u8, socket: &impl AsFd) -> bool {
    let taken = errors::take(socket, |address, how| {
        let from = ClientAddress {
            socket: listener,
            address,
        };
        core.unreachable(Instant::now(), from, how);
    });
    taken.unwrap_or_else(|error| {
        debug!(%error, "reading errors failed");
        false
    })
}

/// The address under which a program on this machine reaches us.
fn for_drivers(address: SocketAddr) -> SocketAddr {
    match address {
        SocketAddr::V4(v4) if v4.ip().is_unspecified() => (Ipv4Addr::LOCALHOST, v4.port()).into(),
        SocketAddr::V6(v6) if v6.ip().is_unspecified() => (Ipv6Addr::LOCALHOST, v6.port()).into(),
        address => address,
    }
}

fn lacks_family(error: &io::Error) -> bool {
    use nix::errno::Errno;
    let code = error.raw_os_error().map(Errno::from_raw);
    matches!(code, Some(Errno::EAFNOSUPPORT | Errno::EADDRNOTAVAIL))
}

/// Who holds a UDP port, as far as /proc lets us see.
fn port_holder(port: u16) -> Option<String> {
    let inodes: Vec<String> = ["/proc/net/udp", "/proc/net/udp6"]
        .iter()
        .filter_map(|table| std::fs::read_to_string(table).ok())
        .flat_map(|table| {
            table
                .lines()
                .skip(1)
                .filter_map(|line| {
                    let fields: Vec<&str> = line.split_whitespace().collect();
                    let local = fields.get(1)?.rsplit(':').next()?;
                    let inode = fields.get(9)?;
                    (u16::from_str_radix(local, 16) == Ok(port))
                        .then(|| format!("socket:[{inode}]"))
                })
                .collect::<Vec<_>>()
        })
        .collect();
    for process in std::fs::read_dir("/proc").ok()?.flatten() {
        let Ok(files) = std::fs::read_dir(process.path().join("fd")) else {
            continue;
        };
        let holds = files.flatten().any(|file| {
            std::fs::read_link(file.path()).is_ok_and(|target| {
                inodes
                    .iter()
                    .any(|inode| target.as_os_str() == inode.as_str())
            })
        });
        if holds {
            let name = std::fs::read_to_string(process.path().join("comm")).ok()?;
            let pid = process.file_name();
            return Some(format!(
                "'{}' (process {})",
                name.trim(),
                pid.to_string_lossy()
            ));
        }
    }
    None
}

/// The running program, for [`Hooks::amber`].
///
/// # Errors
/// The system does not say.
pub fn this_program() -> io::Result<PathBuf> {
    env::current_exe()
}
