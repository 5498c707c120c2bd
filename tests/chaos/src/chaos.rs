//! Injects faults drawn from a seed, and checks the promises. IO.

use std::fmt;
use std::path::PathBuf;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use amber_client::blocking::Client;
use amber_harness::usage::{self, Footprint};
use amber_harness::wait_for;
use amber_proto::Device;
use anyhow::{Context, anyhow};

use crate::accounts;
use crate::clients::{Outcome, Promise, Worker, echo, sdk};
use crate::fleet::{self, Changing, DUMMIES, ECHO, VICTIM_ECHOES, WHEELS};
use crate::mischief::Mischief;
use crate::site::Site;
use crate::trouble::Trouble;

/// The maximum growth of resident memory since each fault has occurred once. The allocator does not
/// return all temporary memory to the system, and fragmentation is random. A leak of a hundred
/// bytes per message exceeds this within seconds.
const MEMORY_KIB: u64 = 3 * 1024;

/// The number of threads that inject faults.
const HANDS: u64 = 2;

/// The number of faults listed after a failure; the seed reproduces all of them.
const JOURNAL_LINES: usize = 200;

/// The parameters of a run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The program under test.
    pub amber: PathBuf,
    /// The seed of all random choices.
    pub seed: u64,
    /// How long to inject faults, after each kind has occurred once.
    pub duration: Duration,
}

/// The results of a run.
#[derive(Debug)]
pub struct Report {
    seed: u64,
    /// The injected faults, with their times.
    journal: Vec<Entry>,
    before: Footprint,
    after: Footprint,
    outcomes: Vec<Outcome>,
    dropped_by_system: u64,
    /// The broken promises.
    pub broken: Vec<String>,
    log: String,
}

#[derive(Debug)]
struct Entry {
    at: Duration,
    hand: u64,
    what: String,
}

/// Runs the test. The report lists broken promises.
///
/// # Errors
/// The test could not run.
pub fn run(plan: &Plan) -> anyhow::Result<Report> {
    let site = Site::start(&plan.amber, |places| {
        fleet::chaos(places, Changing::Setting(0))
    })?;
    let mut run = Run {
        site,
        journal: Mutex::default(),
        broken: Vec::new(),
    };
    let result = run.run(plan);
    let log = run.site.log();
    let explain = |error: anyhow::Error| {
        anyhow!(
            "{error:#}\nseed {}\nthe mediator's last lines:\n{log}",
            plan.seed
        )
    };
    let (before, after, outcomes) = result.map_err(explain)?;
    let dropped_by_system = usage::dropped_by_system(run.site.address);
    if let Err(error) = run.site.end() {
        run.broken.push(format!("{error:#}"));
    }
    Ok(Report {
        seed: plan.seed,
        journal: run.journal.into_inner().unwrap_or_default(),
        before,
        after,
        outcomes,
        dropped_by_system,
        broken: run.broken,
        log,
    })
}

struct Run {
    site: Site,
    journal: Mutex<Vec<Entry>>,
    broken: Vec<String>,
}

impl Run {
    fn run(&mut self, plan: &Plan) -> anyhow::Result<(Footprint, Footprint, Vec<Outcome>)> {
        let control = self.site.client()?;
        self.site.all_up(&control)?;
        let workers = start_clients(&self.site, plan.seed)?;

        let mut hand = Mischief::new(&self.site, plan.seed)?;
        for trouble in Trouble::each() {
            self.make(&mut hand, 0, trouble)?;
        }
        drop(hand);
        let before = self.calm(&control, None)?;

        let end = Instant::now() + plan.duration;
        thread::scope(|scope| {
            let hands: Vec<_> = (1..=HANDS)
                .map(|number| {
                    let this = &*self;
                    scope.spawn(move || this.trouble_until(end, number, plan.seed))
                })
                .collect();
            let join = |hand: thread::ScopedJoinHandle<'_, _>| {
                hand.join()
                    .unwrap_or_else(|_| Err(anyhow!("a fault thread panicked")))
            };
            hands.into_iter().try_for_each(join)
        })?;

        let after = self.calm(&control, Some(before))?;
        workers.iter().for_each(Worker::stop);
        let outcomes: anyhow::Result<Vec<_>> = workers.into_iter().map(Worker::outcome).collect();
        let outcomes = outcomes?;
        self.check(&control, &outcomes)?;
        Ok((before, after, outcomes))
    }

    fn make(&self, hand: &mut Mischief<'_>, number: u64, trouble: Trouble) -> anyhow::Result<()> {
        let entry = Entry {
            at: self.site.age(),
            hand: number,
            what: trouble.to_string(),
        };
        if let Ok(mut journal) = self.journal.lock() {
            journal.push(entry);
        }
        hand.make(trouble).with_context(|| trouble.to_string())
    }

    fn trouble_until(&self, end: Instant, number: u64, seed: u64) -> anyhow::Result<()> {
        let mut hand = Mischief::new(&self.site, seed.wrapping_add(number))?;
        while Instant::now() < end {
            let trouble = hand.pick();
            self.make(&mut hand, number, trouble)?;
            thread::sleep(hand.pause());
        }
        Ok(())
    }

    /// Waits until the state is as before the first fault; resource usage must then be as before.
    fn calm(&mut self, control: &Client, before: Option<Footprint>) -> anyhow::Result<Footprint> {
        let hand = Mischief::new(&self.site, 0)?;
        hand.reload(Changing::Setting(0))?;
        self.site.all_up(control)?;
        let Some(before) = before else {
            return self.site.footprint();
        };
        // The earlier count may include a thread that was about to end.
        let back = wait_for("no more descriptors and threads than before", || {
            let now = self.site.footprint()?;
            let back = now.descriptors <= before.descriptors && now.threads <= before.threads;
            Ok(back.then_some(now))
        });
        let after = match back {
            Ok(after) => after,
            Err(error) => {
                self.broken.push(error.to_string());
                self.site.footprint()?
            }
        };
        if after.resident_kib > before.resident_kib + MEMORY_KIB {
            let (before, after) = (before.resident_kib, after.resident_kib);
            self.broken
                .push(format!("memory: {before} KiB before, {after} KiB after"));
        }
        Ok(after)
    }

    fn check(&mut self, control: &Client, outcomes: &[Outcome]) -> anyhow::Result<()> {
        self.site.check_alive()?;
        let mut broken = Vec::new();
        let age = self.site.age();
        let uptime = control.mediator().statistics()?.uptime_ms();
        // The mediator's clock may have started slightly earlier or later than ours.
        if u128::from(uptime) + 1000 < age.as_millis() {
            broken.push(format!("its uptime is {uptime} ms, expected {age:?}"));
        }
        let drivers = control.mediator().drivers()?;
        broken.extend(accounts::unharmed(&drivers, &[ECHO, DUMMIES[0], WHEELS]));
        broken.extend(
            self.site
                .check_counters(control)
                .err()
                .map(|e| e.to_string()),
        );
        let strays = wait_for("no process without a driver", || {
            let strays = self.site.strays(&control.mediator().drivers()?);
            Ok(strays.is_empty().then_some(()))
        });
        if strays.is_err() {
            broken.push(format!("left behind: {:?}", self.site.strays(&drivers)));
        }
        // Datagrams dropped by the system cannot be answered.
        let excused = usage::dropped_by_system(self.site.address);
        broken.extend(Outcome::broken(outcomes, excused));
        for device in VICTIM_ECHOES {
            let lost = lost_by_clients_of(outcomes, device);
            let counters = accounts::find(&drivers, device).and_then(|d| d.counters.as_ref());
            let told = counters.map_or(0, accounts::unanswered);
            if lost > told + excused {
                broken.push(format!("{device}: {lost} lost, {told} accounted for"));
            }
        }
        self.broken.extend(broken);
        Ok(())
    }
}

fn start_clients(site: &Site, seed: u64) -> anyhow::Result<Vec<Worker>> {
    use Promise::{Everything, NothingWrong};
    let at = site.address;
    let mut workers = vec![
        echo::start(at, ECHO, Everything, 500.0, seed)?,
        echo::start(at, ECHO, Everything, 50.0, seed + 1)?,
        sdk::dummy(at, DUMMIES[0].id.0, Everything, 100.0),
        sdk::listener(at, DUMMIES[0].id.0, Everything),
        // The wheels may be too slow for their driver; the other devices may not.
        sdk::asker(at, "the wheels", NothingWrong, 30.0, |client| {
            client.roboclaw(0).speeds().map(drop)
        }),
        sdk::dummy(at, DUMMIES[1].id.0, NothingWrong, 50.0),
        sdk::listener(at, DUMMIES[1].id.0, NothingWrong),
        sdk::asker(at, "the laser", NothingWrong, 10.0, |client| {
            client.hokuyo(0).scan().map(drop)
        }),
    ];
    for (i, device) in (2..).zip(VICTIM_ECHOES) {
        workers.push(echo::start(at, device, NothingWrong, 200.0, seed + i)?);
    }
    Ok(workers)
}

fn lost_by_clients_of(outcomes: &[Outcome], device: Device) -> u64 {
    let name = format!("echo client of {device}");
    let own = outcomes.iter().filter(|outcome| outcome.name == name);
    own.map(|outcome| outcome.ledger.lost).sum()
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "seed {}", self.seed)?;
        if !self.broken.is_empty() {
            writeln!(f, "the last injected faults, with time and thread:")?;
            let skipped = self.journal.len().saturating_sub(JOURNAL_LINES);
            for Entry { at, hand, what } in &self.journal[skipped..] {
                writeln!(f, "{:9.3} s  {hand}  {what}", at.as_secs_f64())?;
            }
            writeln!(f, "the mediator's last lines:\n{}", self.log)?;
        }
        writeln!(f, "troubles: {}", self.journal.len())?;
        for outcome in &self.outcomes {
            writeln!(f, "{outcome}")?;
        }
        let (before, after) = (self.before, self.after);
        writeln!(
            f,
            "memory: {} KiB after each fault had occurred once, {} KiB at the end\n\
             descriptors: {}, {}; threads: {}, {}\n\
             dropped by the system before the mediator saw them: {}",
            before.resident_kib,
            after.resident_kib,
            before.descriptors,
            after.descriptors,
            before.threads,
            after.threads,
            self.dropped_by_system,
        )?;
        match &self.broken[..] {
            [] => write!(f, "all promises held"),
            broken => write!(f, "broken:\n  {}", broken.join("\n  ")),
        }
    }
}
