//! One run: who there is, and what happens when. PURE.

mod end;
mod network;
mod peers;
mod shell;
mod troubles;

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use amber_mediator::config::Config;
use amber_mediator::core::{Core, Ticket};
use amber_mediator::router::{DriverKey, Unreachable};
use fastrand::Rng;

use crate::agenda::Agenda;
use crate::clients::Client;
use crate::invariant::{Check, Invariant, holds};
use crate::messages::Tokens;
use crate::model::Model;
use crate::process::Process;
use crate::setup::Setup;
use crate::summary::Summary;
use crate::weather::Weather;

/// How long it is quiet before the end: longer than the SDK waits before it asks
/// again, and than it takes to notice that a driver hangs.
const CALM: Duration = Duration::from_secs(110);

/// So much of that, clients still ask and subscribe.
const LAST_REQUESTS: Duration = Duration::from_secs(25);

/// Steps at one moment; more means that time stands still.
const STEPS_AT_ONCE: u32 = 200_000;

/// Lines that are kept.
const LAST: usize = 60;

/// What is written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Log {
    /// Nothing.
    Nothing,
    /// What happened last.
    Last,
    /// Everything.
    All,
}

/// What is planned.
enum Event {
    ToMediator(SocketAddr, Vec<u8>),
    ToClient(SocketAddr, Vec<u8>),
    /// A client hears that no mediator is there.
    Refused(SocketAddr),
    /// A mediator hears that no client is there.
    Unreachable(u32, SocketAddr, Unreachable),
    /// A client comes to an address where nobody is.
    Arrives(SocketAddr),
    /// A client does something; of its number, because another may come after it.
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
    /// A mediator that ends must have ended.
    MustHaveEnded(u32),
    MediatorStarts,
    Calm,
    Quiet,
    End,
}

/// See the [module](self).
pub struct World {
    agenda: Agenda<Event>,
    rng: Rng,
    weather: Weather,
    setup: Setup,
    /// Trouble has stopped.
    calm: bool,
    /// Clients ask for nothing new, since then.
    quiet: Option<Instant>,
    /// Nothing passes the network.
    outage: bool,
    spawns_fail: bool,
    /// Where a client has ended without a word, and nobody says so or comes.
    lost: Option<SocketAddr>,
    /// There are more clients than the mediator may know.
    crowded: bool,
    core: Option<Core>,
    /// Which mediator it is.
    generation: u32,
    model: Model,
    config: Config,
    processes: BTreeMap<u32, Process>,
    /// The process of each driver, as the shell knows it.
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
    /// How often the end was put off.
    late: u32,
    ended: bool,
}

impl World {
    /// A run that is about to begin.
    pub fn new(start: Instant, seed: u64, log: Log) -> Self {
        // Uptimes count from the first mediator, instants from some time before.
        let start = start + Duration::from_secs(86_400);
        let mut rng = Rng::with_seed(seed);
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

    fn plan_all(&mut self) {
        let troubled = Duration::from_secs(self.rng.u64(5..40));
        self.agenda.plan(Duration::ZERO, Event::MediatorStarts);
        self.agenda.plan(self.weather.trouble, Event::Trouble);
        self.agenda.plan(troubled, Event::Calm);
        self.agenda.plan(troubled + LAST_REQUESTS, Event::Quiet);
        self.agenda.plan(troubled + CALM, Event::End);
        let (here, there) = (self.rng.u16(1..8), self.rng.u8(1..8));
        // The inspector comes besides.
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
    /// A promise is broken.
    pub fn run(&mut self) -> Check {
        let mut at_once = 0;
        while !self.ended {
            let before = self.agenda.now();
            self.advance()?;
            self.steps += 1;
            at_once = match self.agenda.now() == before {
                true => at_once + 1,
                false => 0,
            };
            holds(Invariant::TimersAdvance, at_once < STEPS_AT_ONCE, || {
                "time stands still".into()
            })?;
        }
        self.summary.count_many("steps", self.steps);
        let seconds = (self.agenda.now() - self.start).as_secs();
        self.summary.count_many("virtual seconds", seconds);
        self.summary.count("runs");
        Ok(())
    }

    /// How far it has come.
    pub fn step(&self) -> u64 {
        self.steps
    }

    /// What has happened.
    pub fn into_summary(self) -> Summary {
        self.summary
    }

    /// What was written down.
    pub fn into_log(self) -> Vec<String> {
        self.lines.into()
    }

    /// The next thing, whoever it happens to.
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

    /// Writes something down.
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
