//! One run: its peers and events. PURE.

mod end;
mod network;
mod peers;
mod shell;
mod troubles;

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use amber_core::address::DriverKey;
use amber_core::config::Config;
use amber_core::router::Unreachable;
use amber_core::{Core, Ticket};

use crate::agenda::Agenda;
use crate::clients::Client;
use crate::invariant::{Broken, Check, Invariant, holds};
use crate::messages::Tokens;
use crate::model::Model;
use crate::process::Process;
use crate::random::Random;
use crate::setup::Setup;
use crate::summary::Summary;
use crate::weather::Weather;

/// The quiet time before the end: longer than the SDK waits before it subscribes again, and longer
/// than the detection of a hanging driver.
const CALM: Duration = Duration::from_secs(110);

/// The part of it in which clients still send requests and subscribe.
const LAST_REQUESTS: Duration = Duration::from_secs(25);

/// The maximum number of steps at one instant; more means that time does not advance.
const STEPS_AT_ONCE: u32 = 200_000;

/// The number of log lines to keep.
const LAST: usize = 60;

/// The counter of what the mediator sends.
const SENT: &str = "datagrams sent by the mediator";

/// What to log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Log {
    /// Nothing.
    Nothing,
    /// The last events.
    Last,
    /// Everything.
    All,
}

/// A planned event.
enum Event {
    ToMediator(SocketAddr, Vec<u8>),
    ToClient(SocketAddr, Vec<u8>),
    /// A client gets an ICMP error because no mediator is at the address.
    Refused(SocketAddr),
    /// The mediator gets an ICMP error because no client is at the address.
    Unreachable(u32, SocketAddr, Unreachable),
    /// A client starts at an unused address.
    Arrives(SocketAddr),
    /// A client acts; the number distinguishes it from later clients at its address.
    Acts(SocketAddr, u64),
    Reads(u32),
    Writes(u32),
    ShellReads(u32),
    Writable(u32),
    Look(u32, Instant),
    OutputClosed(u32),
    Stalled(u32, Instant),
    Dies(u32, i32),
    Exits(u32, i32),
    Reloaded(u32, Option<Ticket>),
    Trouble,
    OutageEnds,
    /// By now a mediator that is shutting down must have ended.
    MustHaveEnded(u32),
    MediatorStarts,
    Calm,
    Quiet,
    End,
}

/// See the [module](self).
pub struct World {
    agenda: Agenda<Event>,
    rng: Random,
    weather: Weather,
    setup: Setup,
    /// All faults have stopped.
    calm: bool,
    /// Since when clients send nothing new.
    quiet: Option<Instant>,
    /// The network drops everything.
    outage: bool,
    spawns_fail: bool,
    /// The address of a client that ended without a goodbye; no ICMP error is sent and no other
    /// client starts there.
    lost: Option<SocketAddr>,
    /// There are more clients than the mediator's limit.
    crowded: bool,
    core: Option<Core>,
    /// The number of the mediator.
    generation: u32,
    model: Model,
    config: Config,
    processes: BTreeMap<u32, Process>,
    /// The process of each driver, as known to the shell.
    children: BTreeMap<DriverKey, u32>,
    pids: u32,
    clients: BTreeMap<SocketAddr, (u64, Client)>,
    arrivals: u64,
    tokens: Tokens,
    summary: Summary,
    steps: u64,
    log: Log,
    lines: VecDeque<String>,
    start: Instant,
    /// How often the end was postponed.
    late: u32,
    ended: bool,
}

impl World {
    /// Creates a run.
    pub fn new(start: Instant, mut rng: Random, log: Log) -> Self {
        // Uptimes count from the first mediator, instants from an earlier time.
        let start = start + Duration::from_secs(86_400);
        let weather = Weather::draw(&mut rng);
        let setup = Setup::draw(&mut rng);
        let config = setup.usual();
        let model = Model::new(&config);
        let mut world = Self {
            agenda: Agenda::new(start),
            rng,
            weather,
            setup,
            calm: false,
            quiet: None,
            outage: false,
            spawns_fail: false,
            lost: None,
            crowded: false,
            core: None,
            generation: 0,
            model,
            config,
            processes: BTreeMap::new(),
            children: BTreeMap::new(),
            pids: 100,
            clients: BTreeMap::new(),
            arrivals: 0,
            tokens: Tokens::default(),
            summary: Summary::default(),
            steps: 0,
            log,
            lines: VecDeque::new(),
            start,
            late: 0,
            ended: false,
        };
        world.plan_all();
        world
    }

    /// A mediator that has just started, with its drivers and without clients, troubles
    /// and a network that loses anything.
    ///
    /// # Errors
    /// A promise is broken.
    pub fn in_peace(start: Instant) -> Result<Self, Broken> {
        let mut world = Self::new(start, Random::seeded(0), Log::Nothing);
        world.weather.calm();
        world.agenda = Agenda::new(world.agenda.now());
        world.mediator_starts()?;
        Ok(world)
    }

    /// The mediator receives a datagram. Returns how many it sends at once.
    ///
    /// # Errors
    /// A promise is broken.
    pub fn receives(&mut self, from: SocketAddr, bytes: &[u8]) -> Result<u64, Broken> {
        let before = self.summary.counted(SENT);
        self.datagram(from, bytes)?;
        Ok(self.summary.counted(SENT) - before)
    }

    fn plan_all(&mut self) {
        let troubled = Duration::from_secs(self.rng.u64(5..40));
        self.agenda.plan(Duration::ZERO, Event::MediatorStarts);
        self.agenda.plan(self.weather.trouble, Event::Trouble);
        self.agenda.plan(troubled, Event::Calm);
        self.agenda.plan(troubled + LAST_REQUESTS, Event::Quiet);
        self.agenda.plan(troubled + CALM, Event::End);
        let (here, there) = (self.rng.u16(1..8), self.rng.u8(1..8));
        // The inspector is an additional client.
        let limits = self.config.limits;
        self.crowded = usize::from(here) + usize::from(there) >= limits.clients.get()
            || usize::from(here) >= limits.clients_per_host.get();
        for i in 0..here {
            self.arrives_soon(([127, 0, 0, 1], 4000 + i).into());
        }
        for i in 0..there {
            self.arrives_soon(([192, 168, 1, 1 + i], 5000).into());
        }
    }

    /// Runs to the end.
    ///
    /// # Errors
    /// An invariant is violated.
    pub fn run(&mut self) -> Check {
        let mut at_once = 0;
        while !self.ended {
            if self.rng.is_used_up() && self.wind_up()? {
                break;
            }
            let before = self.agenda.now();
            self.advance()?;
            self.steps += 1;
            at_once = match self.agenda.now() == before {
                true => at_once + 1,
                false => 0,
            };
            holds(Invariant::TimersAdvance, at_once < STEPS_AT_ONCE, || {
                "time does not advance".into()
            })?;
        }
        self.summary.count_many("steps", self.steps);
        let seconds = (self.agenda.now() - self.start).as_secs();
        self.summary.count_many("virtual seconds", seconds);
        self.summary.count("runs");
        Ok(())
    }

    /// No decisions are left: the mediator must shut down. Returns whether it has.
    fn wind_up(&mut self) -> Result<bool, Broken> {
        self.shut_down()?;
        Ok(self.core.is_none())
    }

    /// The number of steps so far.
    pub fn step(&self) -> u64 {
        self.steps
    }

    /// The counted events.
    pub fn into_summary(self) -> Summary {
        self.summary
    }

    pub fn into_log(self) -> Vec<String> {
        self.lines.into()
    }

    /// Processes the next event.
    fn advance(&mut self) -> Check {
        let now = self.agenda.now();
        let planned = self.agenda.next();
        let core = self.core.as_ref().and_then(Core::next_timeout);
        let client = (self.clients.iter())
            .filter_map(|(at, (_, client))| Some((client.next_timeout()?, *at)))
            .min();
        let process = (self.processes.values())
            .filter_map(|process| Some((process.next_due(now)?, process.pid)))
            .min();
        let times = [planned, core, client.map(|it| it.0), process.map(|it| it.0)];
        let Some(next) = times.into_iter().flatten().min() else {
            return Ok(());
        };
        self.agenda.advance(next);
        match (client, process) {
            _ if core == Some(next) => self.core_timeout(),
            (Some((due, at)), _) if due == next => self.client_timeout(at),
            (_, Some((due, pid))) if due == next => self.process_due(pid),
            _ => match self.agenda.take() {
                Some(event) => self.happens(event),
                None => Ok(()),
            },
        }
    }

    fn happens(&mut self, event: Event) -> Check {
        match event {
            Event::ToMediator(from, bytes) => self.datagram_for_mediator(from, &bytes),
            Event::ToClient(to, bytes) => self.datagram_for_client(to, &bytes),
            Event::Refused(at) => self.client_refused(at),
            Event::Unreachable(generation, at, how) => self.unreachable(generation, at, how),
            Event::Arrives(at) => self.arrives(at),
            Event::Acts(at, number) => self.client_acts(at, number),
            Event::Reads(pid) => self.process_reads(pid),
            Event::Writes(pid) => self.process_writes(pid),
            Event::ShellReads(pid) => self.shell_reads(pid),
            Event::Writable(pid) => self.writable(pid),
            Event::Look(pid, at) => self.look(pid, at),
            Event::OutputClosed(pid) => self.output_closed(pid),
            Event::Stalled(pid, since) => self.stalled(pid, since),
            Event::Dies(pid, code) => {
                self.process_dies(pid, code);
                Ok(())
            }
            Event::Exits(pid, code) => self.exits(pid, code),
            Event::Reloaded(generation, ticket) => self.reloaded(generation, ticket),
            Event::Trouble => self.trouble(),
            Event::OutageEnds => {
                self.outage = false;
                Ok(())
            }
            Event::MustHaveEnded(generation) => self.must_have_ended(generation),
            Event::MediatorStarts => self.mediator_starts(),
            Event::Calm => self.calm_down(),
            Event::Quiet => {
                self.quiet = Some(self.agenda.now());
                Ok(())
            }
            Event::End => self.end(),
        }
    }

    /// Writes a log line.
    #[allow(clippy::print_stdout)]
    fn say(&mut self, what: impl FnOnce() -> String) {
        if self.log == Log::Nothing {
            return;
        }
        let time = (self.agenda.now() - self.start).as_secs_f64();
        let line = format!("{:>7} {time:>9.4} s  {}", self.steps, what());
        if self.log == Log::All {
            println!("{line}");
        }
        if self.lines.len() == LAST {
            self.lines.pop_front();
        }
        self.lines.push_back(line);
    }
}
