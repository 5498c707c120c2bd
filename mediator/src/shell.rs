//! The IO layer around the core. IO.
//!
//! One thread runs one loop. It waits until a source is ready or a timer is due, tells the
//! [`Core`], and performs the core's decisions until none is left (`Shell::settle`). A source
//! with more data than fits into a turn continues in the next one, so no other source waits
//! long. There are no locks and no queues between threads; only files are read on another
//! thread, because that may take long.

mod alarms;
mod batch;
mod bind;
mod child;
mod companion;
mod datagrams;
mod errors;
mod feeds;
mod guard;
mod hooks;
mod neighbours;
mod owner;
mod poll;
mod port_holder;
mod process;
mod reload;
mod sender;
mod service;
mod spawn;
mod starts;
mod strays;
mod timer;
mod udp;

use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Waker};
use nix::sys::signal::Signal;
use signal_hook::consts::{SIGCHLD, SIGHUP};
use signal_hook_mio::v1_0::Signals;
use tracing::{error, info};

use self::alarms::Alarms;
use self::batch::Batch;
pub use self::bind::BindError;
use self::child::Child;
use self::companion::Companion;
use self::datagrams::Inlet;
use self::feeds::Recorders;
use self::guard::Guard;
pub use self::guard::guard;
pub use self::hooks::{CompanionFor, Hangup, Hooks, SetLogLevel, this_program};
use self::poll::Source;
pub use self::port_holder::of as port_holder;
use self::reload::Reloads;
use self::sender::Sender;
use self::service::Service;
pub use self::spawn::{NO_FILES, is_out_of_files};
use self::starts::Starts;
use self::strays::Strays;
use self::timer::Timer;
use self::udp::{Listener, Receiver};
use crate::log;
use amber_core::address::DriverKey;
use amber_core::config::Config;
use amber_core::counters::DropReason;
use amber_core::hash::Map;
use amber_core::limits::EVENTS_PER_TURN;
use amber_core::origin::OwnAddresses;
use amber_core::rate::Digest;
use amber_core::supervise::ProcessAction;
use amber_core::{Core, ShellTask};

/// A mediator with its sockets.
pub struct Mediator {
    config: Config,
    listeners: Vec<Listener>,
    addresses: Vec<SocketAddr>,
    hooks: Hooks,
    poll: Poll,
    signals: Signals,
}

/// How a mediator ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// All drivers have ended, or cannot be ended.
    Orderly,
    /// A second signal came before that. The guard ends the drivers as soon as this process
    /// ends, so the caller must exit now.
    Hurried,
}

impl Mediator {
    /// The addresses that it listens on, with the actual ports.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Runs until SIGTERM or SIGINT comes and all drivers have ended or cannot be ended: at
    /// most twice the longest grace time and [`AFTER_KILL`](amber_core::limits::AFTER_KILL) later. A
    /// second signal ends it at once. SIGHUP reads the configuration again, or ends it as well.
    ///
    /// Drivers get SIGTERM when the calling thread ends.
    ///
    /// # Errors
    /// The system refuses a resource that the mediator needs, or waiting fails.
    pub fn run(mut self) -> io::Result<Ending> {
        // Unpredictable, because the numbers that prove client addresses are derived from it.
        let seed = RandomState::new().build_hasher().finish();
        let mut core = Core::new(Instant::now(), &self.config, seed, SystemTime::now);
        core.set_listening(&self.addresses);
        (self.hooks.set_log_rate)(self.config.limits.log_lines_per_second);
        let registry = self.poll.registry();
        let (mut inlets, mut outlets) = (Vec::new(), Vec::new());
        for (listener, sockets) in (0..=u8::MAX).zip(self.listeners) {
            for (mut socket, reach) in sockets.receiving {
                let token = Source::Socket(inlets.len()).into();
                registry.register(&mut socket, token, Interest::READABLE)?;
                inlets.push(Inlet {
                    socket,
                    reach,
                    listener,
                    receiver: Receiver::new(),
                });
            }
            outlets.push(sockets.outlets);
        }
        let sender = Sender::new(outlets);
        for (number, (_, socket)) in sender.sockets().enumerate() {
            // Only errors arrive at these sockets.
            let token = Source::SendErrors(number).into();
            let descriptor = socket.as_raw_fd();
            registry.register(&mut SourceFd(&descriptor), token, Interest::READABLE)?;
        }
        registry.register(
            &mut self.signals,
            Source::Signals.into(),
            Interest::READABLE,
        )?;
        let waker = Arc::new(Waker::new(registry, Source::Wake.into())?);
        let timer = Timer::new(registry)?;
        let strays = Strays::adopt();
        let mut shell = Shell {
            core,
            now: Instant::now(),
            poll: self.poll,
            again: Vec::new(),
            alarms: Alarms::default(),
            timer,
            inlets,
            batch: Batch::new(),
            own_addresses: OwnAddresses::new(&self.addresses),
            sender,
            dropped_to_groups: vec![0; self.addresses.len()],
            children: Map::default(),
            lender: None,
            starts: Starts::without_pauses(),
            for_drivers: for_drivers(self.addresses[0]),
            guard: Guard::new(self.hooks.amber.clone(), strays.token()),
            companion: (self.hooks.companion)(&self.addresses)
                .map(|arguments| Companion::new(self.hooks.amber.clone(), arguments)),
            strays,
            recorders: Recorders::default(),
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
    /// When this turn began: the time of everything that is received in it.
    now: Instant,
    poll: Poll,
    /// Sources with more than fitted into the last turn.
    again: Vec<Source>,
    alarms: Alarms<Alarm>,
    timer: Timer,
    inlets: Vec<Inlet>,
    /// Buffers for incoming datagrams.
    batch: Batch,
    own_addresses: OwnAddresses,
    sender: Sender,
    /// What is known of [`Sender::dropped_to_groups`], for each listening address.
    dropped_to_groups: Vec<u32>,
    children: Map<DriverKey, Child>,
    /// The driver whose buffer is lent to the outbox.
    lender: Option<DriverKey>,
    starts: Starts,
    /// The address at which drivers reach the mediator.
    for_drivers: SocketAddr,
    guard: Guard,
    companion: Option<Companion>,
    strays: Strays,
    recorders: Recorders,
    hooks: Hooks,
    signals: Signals,
    reloads: Reloads,
    service: Service,
    log_lines_lost: u64,
    lost_datagrams: Digest,
    phase: Phase,
}

/// The phases of the mediator's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Running,
    /// Drivers are being stopped.
    Ending,
    Ended(Ending),
}

/// The timers of the loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Alarm {
    /// The core has a timeout.
    Core,
    /// The service manager needs a message.
    Service,
    /// A lost guard must be replaced.
    Guard,
    /// A companion that has ended is started again.
    Companion,
    /// Drivers wait to be started.
    Start,
    /// Processes left behind by drivers may not have ended yet.
    Strays,
    /// Waiting for drivers to end is over.
    Patience,
    /// Bytes wait for recorders, or a recorder has not connected.
    Recorders,
    Driver(DriverKey, child::Alarm),
}

impl Shell {
    fn start(&mut self, listening: Vec<String>) {
        if !self.guard.start() {
            self.guard_lost();
        }
        self.start_companion();
        self.core.start(Instant::now(), listening);
        self.settle();
        self.starts.pause_from_now_on();
        self.service.ready();
        self.tell_service();
    }

    fn run(mut self) -> io::Result<Ending> {
        let mut events = Events::with_capacity(EVENTS_PER_TURN);
        loop {
            match self.phase {
                Phase::Ending if self.is_finished() => {
                    self.end_recorders();
                    return Ok(Ending::Orderly);
                }
                Phase::Ended(ending) => {
                    self.end_recorders();
                    return Ok(ending);
                }
                Phase::Running | Phase::Ending => {}
            }
            let longest = match self.again.is_empty() {
                true => self.timer.timeout(self.alarms.next()),
                false => Some(Duration::ZERO),
            };
            poll::wait(&mut self.poll, &mut events, longest)?;
            // Data that has arrived by now is handled before timeouts, even if this thread was
            // delayed.
            let now = Instant::now();
            self.now = now;
            let mut again = std::mem::take(&mut self.again);
            let is_error =
                |source: &Source| matches!(source, Source::Errors(_) | Source::SendErrors(_));
            // Errors first: they concern earlier datagrams. The next program on the same port
            // may already be sending.
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
            // Then drivers, then datagrams: clients that get their replies first may send their next
            // requests in time, so that these are received and written together with the others.
            let is_socket = |source: &Source| matches!(source, Source::Socket(_));
            for event in &events {
                let source = event.token().into();
                again.retain(|other| *other != source);
                if !is_error(&source) && !is_socket(&source) {
                    self.ready(source, event.is_read_closed() || event.is_write_closed());
                }
            }
            for source in again.extract_if(.., |source| !is_socket(source)) {
                self.ready(source, false);
            }
            for event in &events {
                let source = event.token().into();
                if is_socket(&source) {
                    self.ready(source, false);
                }
            }
            for source in again {
                self.ready(source, false);
            }
            // A timer that is set again and is due at once waits until the others had their
            // turn.
            for _ in 0..self.alarms.due(now) {
                if let Some(alarm) = self.alarms.pop(now) {
                    self.due(now, alarm);
                }
            }
        }
    }

    /// A source is ready. `closed` means that the other end is closed, which must be handled.
    fn ready(&mut self, source: Source, closed: bool) {
        match source {
            Source::Socket(socket) => self.receive(socket),
            Source::Errors(socket) => self.take_errors(socket),
            Source::SendErrors(number) => self.take_send_errors(number),
            Source::Stream(key, stream) => self.stream_ready(key, stream, closed),
            Source::Signals => self.take_signals(),
            Source::Wake => self.reloaded(),
            Source::Timer => return self.timer.fired(),
            Source::Recorder(key) => self.recorder_connects(key),
            Source::Feed(key) => self.recorder_ready(key),
        }
        self.settle();
    }

    /// The source has more data and continues in the next turn.
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
            Alarm::Companion => self.start_companion(),
            Alarm::Start => self.start_more_drivers(),
            Alarm::Strays => self.end_strays(),
            // The last process has ended just now.
            Alarm::Patience if self.is_finished() => {}
            Alarm::Patience => {
                let left = match self.core.is_finished() {
                    true => "a process that a driver has started".to_owned(),
                    false => self.core.unfinished(),
                };
                error!("SIGKILL does not end {left}: left behind");
                self.phase = Phase::Ended(Ending::Orderly);
            }
            Alarm::Recorders => self.recorders_due(now),
            Alarm::Driver(key, alarm) => self.driver_due(now, key, alarm),
        }
        self.settle();
    }

    /// Whether everything that was started has ended.
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

    fn start_companion(&mut self) {
        let companion = self.companion.as_mut();
        if companion.is_some_and(|companion| !companion.start()) {
            self.companion_lost();
        }
    }

    fn companion_lost(&mut self) {
        let due = Instant::now() + companion::PAUSE;
        self.alarms.set(Alarm::Companion, due);
    }

    fn tell_service(&mut self) {
        if let Some(due) = self.service.tell(&self.core) {
            self.alarms.set(Alarm::Service, due);
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
        info!("shutting down; a second signal exits immediately");
        self.phase = Phase::Ending;
        let now = Instant::now();
        let patience = self.core.shut_down(now);
        self.alarms.set(Alarm::Patience, now + patience);
        self.service.stopping(patience);
        self.tell_service();
    }

    /// Performs all decisions of the core.
    fn settle(&mut self) {
        loop {
            self.settle_drivers();
            // Sending may find unreachable addresses, which the core must handle.
            if !self.send() {
                break;
            }
        }
        if self.core.is_recorded() {
            self.feed_recorders();
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
            if let Some(key) = self.core.poll_queue() {
                self.write(key);
            } else if let Some((key, action)) = self.core.poll_action() {
                self.act(key, action);
            } else if let Some(order) = self.core.poll_task() {
                self.carry_out(order);
            } else {
                break;
            }
        }
    }

    /// Adds lost log lines to the counters, because a client may request these.
    fn count_lost_lines(&mut self) {
        let lost = (self.hooks.log_lines_lost)();
        let known = std::mem::replace(&mut self.log_lines_lost, lost);
        let counters = self.core.counters_mut();
        counters.drop_many(DropReason::LogLines, lost - known);
    }

    /// An action on a process that has ended already does nothing.
    fn act(&mut self, key: DriverKey, action: ProcessAction) {
        let child = self.children.get_mut(&key);
        match (action, child) {
            (ProcessAction::Spawn, _) => self.start_driver(key),
            (ProcessAction::CloseInput, Some(child)) => child.close_input(),
            (ProcessAction::Terminate, Some(_)) => self.signal(key, Signal::SIGTERM),
            (ProcessAction::Kill, Some(_)) => self.signal(key, Signal::SIGKILL),
            (ProcessAction::CloseInput | ProcessAction::Terminate | ProcessAction::Kill, None) => {}
        }
    }

    fn carry_out(&mut self, order: ShellTask) {
        match order {
            ShellTask::Reload(ticket) => self.reload(Some(ticket)),
            ShellTask::OpenFeed(ticket, devices) => {
                // The socket is closed to others, too, if that cannot be found out.
                let made = match ticket.client().and_then(owner::is_ours) {
                    Some(false) => Err(feeds::of_another_user()),
                    Some(true) | None => self.make_feed(devices),
                };
                self.core.answer_feed(ticket, made);
            }
            ShellTask::Trace(ticket, wanted) => {
                let is_ours = ticket.client().and_then(owner::is_ours).unwrap_or(false);
                let now = Instant::now();
                self.core.begin_trace(now, ticket, &wanted, is_ours);
            }
            ShellTask::SetLogLevel(ticket, filter) => {
                let outcome = (self.hooks.set_log_level)(&filter)
                    .map(|()| format!("log level: {filter}"))
                    .map_err(|error| (error, Some(log::HINT.to_owned())));
                self.core.answer(ticket, outcome);
            }
            ShellTask::MeasureProcesses(ticket, mut processes, total) => {
                for process in &mut processes {
                    if process.device.is_none() {
                        process.pid = std::process::id();
                    }
                    process::measure(process);
                }
                self.core.answer_processes(ticket, processes, total);
            }
        }
    }
}

/// The address at which programs on this machine reach the mediator.
fn for_drivers(address: SocketAddr) -> SocketAddr {
    match address {
        SocketAddr::V4(v4) if v4.ip().is_unspecified() => (Ipv4Addr::LOCALHOST, v4.port()).into(),
        SocketAddr::V6(v6) if v6.ip().is_unspecified() => (Ipv6Addr::LOCALHOST, v6.port()).into(),
        address => address,
    }
}
