//! The program behind `scripts/simulate`. IO.

#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use amber_simulation::parts::{self, PARTS, Part};
use amber_simulation::pictures::{self, Plan};
use amber_simulation::{Failure, Invariant, Log, Random, Summary, simulate};

const HELP: &str = "\
scripts/simulate [--seeds N | --for 120s] [--from SEED] [--seed SEED] [--trace] [--keep-going]
scripts/simulate --pictures HOURS [--seed SEED]
scripts/simulate --parts HOURS [--seed SEED] [PART...]

The mediator and both SDKs against scripted peers, on a virtual clock. Each seed
is another world; the same seed is the same world, to the last byte.

--seeds N     number of worlds (100)
--for TIME    as many worlds as possible in this time, such as 120s
--from SEED   the first seed (1)
--seed SEED   only this seed
--trace       prints all events
--keep-going  continues after a failure, and counts the violated invariants
--list        prints the invariants
--pictures H  instead of worlds: a camera sends ten pictures per second in pieces for so many
              simulated hours, to clients that stay and others that come and go, over a network
              that loses one packet in a hundred. The memory of this program must not grow
--parts H     instead of worlds: the driver of each part (or of these) with its simulated device
              for so many simulated hours, with faults. No reading may be missing without a
              reported cause, each outage must end in time, and the memory must not grow";

/// More than this is growth; less is what the allocator keeps.
const GROWTH_KIB: u64 = 1024;

/// The interval between progress lines.
const NEWS: Duration = Duration::from_secs(10);

/// The parsed arguments.
#[derive(Debug)]
struct Options {
    first: u64,
    seeds: Option<u64>,
    time: Option<Duration>,
    trace: bool,
    keep_going: bool,
    /// Simulated hours of pictures, instead of worlds.
    pictures: Option<f64>,
    /// Simulated hours of each part, instead of worlds.
    parts: Option<f64>,
    /// Only these parts.
    names: Vec<String>,
}

/// The state shared by all threads.
struct Shared {
    next: AtomicU64,
    stop: AtomicBool,
    done: Mutex<Done>,
}

#[derive(Default)]
struct Done {
    worlds: u64,
    summary: Summary,
    failures: Vec<Failure>,
    last_news: Option<Instant>,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let options = match parse(&arguments) {
        Ok(Some(options)) => options,
        Ok(None) => return ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}\nhint: scripts/simulate --help");
            return ExitCode::from(2);
        }
    };
    // A panic is a result; it is reported with its world.
    if let Some(hours) = options.pictures {
        return show_pictures(hours, options.first);
    }
    if let Some(hours) = options.parts {
        return show_parts(hours, &options);
    }
    std::panic::set_hook(Box::new(|_| {}));
    run(&options)
}

fn parse(arguments: &[String]) -> Result<Option<Options>, String> {
    let mut options = Options {
        first: 1,
        seeds: None,
        time: None,
        trace: false,
        keep_going: false,
        pictures: None,
        parts: None,
        names: Vec::new(),
    };
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or(format!("{argument} needs a value"));
        let number = |text: &String| {
            text.parse()
                .map_err(|_| format!("'{text}' is not a number"))
        };
        match argument.as_str() {
            "--seeds" => options.seeds = Some(number(value()?)?),
            "--from" => options.first = number(value()?)?,
            "--seed" => (options.first, options.seeds) = (number(value()?)?, Some(1)),
            "--for" => {
                let text = value()?;
                let seconds = text.strip_suffix('s').unwrap_or(text).parse();
                let seconds = seconds
                    .map_err(|_| format!("'{text}' is not a duration; use a form such as 120s"))?;
                options.time = Some(Duration::from_secs(seconds));
            }
            "--trace" => options.trace = true,
            "--pictures" => options.pictures = Some(hours(value()?)?),
            "--parts" => options.parts = Some(hours(value()?)?),
            "--keep-going" => options.keep_going = true,
            "--list" => {
                for invariant in Invariant::ALL {
                    println!("{:30} {}", invariant.name(), invariant.text());
                }
                return Ok(None);
            }
            "--help" | "-h" => {
                println!("{HELP}");
                return Ok(None);
            }
            name if PARTS.iter().any(|part| part.name == name) => {
                options.names.push(name.to_owned());
            }
            other => return Err(format!("unknown argument '{other}'")),
        }
    }
    if options.time.is_none() {
        options.seeds.get_or_insert(100);
    }
    Ok(Some(options))
}

fn hours(text: &str) -> Result<f64, String> {
    let hours = text.parse().ok();
    let hours = hours.filter(|hours| (0.0..=10_000.0).contains(hours));
    hours.ok_or(format!("'{text}' is not a number of hours"))
}

fn run(options: &Options) -> ExitCode {
    let start = Instant::now();
    let shared = Shared {
        next: AtomicU64::new(options.first),
        stop: AtomicBool::new(false),
        done: Mutex::default(),
    };
    let threads = match options.trace {
        true => 1,
        false => thread::available_parallelism().map_or(1, usize::from),
    };
    println!("seeds from {}, on {threads} threads", options.first);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| work(options, start, &shared));
        }
    });
    let done = shared
        .done
        .into_inner()
        .unwrap_or_else(|error| error.into_inner());
    println!("{}", done.summary);
    let seconds = start.elapsed().as_secs_f64();
    println!("{} worlds in {seconds:.1} s", done.worlds);
    for failure in &done.failures {
        show(failure, options);
    }
    for invariant in Invariant::ALL {
        let times = done
            .failures
            .iter()
            .filter(|one| one.broken.invariant == *invariant);
        if let times @ 1.. = times.count() {
            println!("violated: {invariant} in {times} of {} worlds", done.worlds);
        }
    }
    match done.failures.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

/// Runs a camera for so many simulated hours.
fn show_pictures(hours: f64, seed: u64) -> ExitCode {
    let plan = Plan {
        duration: Duration::from_secs_f64(hours * 3600.0),
        ..Plan::default()
    };
    let mut rng = Random::seeded(seed);
    let mut resident_kib = Vec::new();
    let began = Instant::now();
    let counts = pictures::run(began, &plan, &mut rng, |counts| {
        resident_kib.extend(resident());
        let seconds = began.elapsed().as_secs_f64();
        let memory = resident_kib.last().copied().unwrap_or_default();
        println!("{seconds:7.1} s, {memory} KiB: {counts:?}");
    });
    if let Err(error) = counts {
        eprintln!("error: {error}");
        return ExitCode::FAILURE;
    }
    match check_growth(&resident_kib) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Checks the memory after each hour. In the first hour, buffers and tables grow to their size.
fn check_growth(resident_kib: &[u64]) -> Result<(), String> {
    let [Some(first), Some(last)] = [resident_kib.first(), resident_kib.last()] else {
        return Err("the memory of this program is unknown".to_owned());
    };
    match *last > first + GROWTH_KIB {
        true => Err(format!("the memory has grown from {first} to {last} KiB")),
        false => Ok(()),
    }
}

/// Runs parts for so many simulated hours, each in a process of its own: so its memory is known.
fn show_parts(hours: f64, options: &Options) -> ExitCode {
    let is_wanted = |part: &&Part| options.names.iter().any(|name| name == part.name);
    if let [name] = options.names.as_slice()
        && let Some(part) = PARTS.iter().find(|part| part.name == name)
    {
        return show_part(part, hours, options.first);
    }
    let wanted = PARTS
        .iter()
        .filter(|part| options.names.is_empty() || is_wanted(part));
    let waiting = Mutex::new(wanted);
    let failed = AtomicU64::new(0);
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let next = waiting
                        .lock()
                        .unwrap_or_else(|error| error.into_inner())
                        .next();
                    let Some(part) = next else { return };
                    if let Err(error) = run_alone(part, hours, options.first) {
                        eprintln!("error: {}: {error}", part.name);
                        failed.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    match failed.into_inner() {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

/// Runs a part in another process.
fn run_alone(part: &Part, hours: f64, seed: u64) -> Result<(), String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let status = std::process::Command::new(program)
        .args([
            "--parts",
            &hours.to_string(),
            "--seed",
            &seed.to_string(),
            part.name,
        ])
        .status();
    let status = status.map_err(|error| error.to_string())?;
    match status.success() {
        true => Ok(()),
        false => Err(status.to_string()),
    }
}

/// Runs a part in this process.
fn show_part(part: &Part, hours: f64, seed: u64) -> ExitCode {
    let plan = parts::Plan::long(Duration::from_secs_f64(hours * 3600.0));
    let mut resident_kib = Vec::new();
    let began = Instant::now();
    let counts = parts::run(part, &plan, seed, |_| resident_kib.extend(resident()));
    let checked = counts.and_then(|counts| check_growth(&resident_kib).map(|()| counts));
    match checked {
        Ok(counts) => {
            let seconds = began.elapsed().as_secs_f64();
            let memory = |kib: Option<&u64>| kib.copied().unwrap_or_default();
            let (first, last) = (memory(resident_kib.first()), memory(resident_kib.last()));
            println!(
                "{:18} {seconds:6.1} s, {first} to {last} KiB: {counts}",
                part.name
            );
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {}: {error}", part.name);
            eprintln!(
                "hint: scripts/simulate --parts {hours} --seed {seed} '{}'",
                part.name
            );
            ExitCode::FAILURE
        }
    }
}

/// The resident memory of this program, in KiB.
fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.split_whitespace().next()?.parse().ok()
}

fn work(options: &Options, start: Instant, shared: &Shared) {
    loop {
        let seed = shared.next.fetch_add(1, Ordering::Relaxed);
        let enough = options
            .seeds
            .is_some_and(|seeds| seed >= options.first.saturating_add(seeds))
            || options.time.is_some_and(|time| start.elapsed() >= time);
        if enough || shared.stop.load(Ordering::Relaxed) {
            return;
        }
        let log = if options.trace {
            Log::All
        } else {
            Log::Nothing
        };
        let outcome = simulate(start, seed, log);
        let mut done = shared
            .done
            .lock()
            .unwrap_or_else(|error| error.into_inner());
        done.worlds += 1;
        match outcome {
            Ok(summary) => done.summary.merge(&summary),
            Err(failure) => {
                done.failures.push(*failure);
                shared.stop.store(!options.keep_going, Ordering::Relaxed);
            }
        }
        let now = Instant::now();
        if now - *done.last_news.get_or_insert(now) >= NEWS {
            done.last_news = Some(now);
            let (worlds, failed) = (done.worlds, done.failures.len());
            println!(
                "  {:5.0} s: {worlds} worlds, {failed} failed",
                start.elapsed().as_secs_f64()
            );
        }
    }
}

fn show(failure: &Failure, options: &Options) {
    let Failure {
        seed, step, broken, ..
    } = failure;
    if !options.keep_going {
        // Repeat the same world with a log.
        if let Err(again) = simulate(Instant::now(), *seed, Log::Last) {
            println!("the last events of world {seed}:");
            for line in &again.last {
                println!("  {line}");
            }
        }
    }
    println!(
        "error: seed {seed}, step {step}: {} is violated",
        broken.invariant
    );
    println!("  promised: {}", broken.invariant.text());
    println!("  seen: {}", broken.what);
    println!("hint: scripts/simulate --seed {seed} --trace");
}
