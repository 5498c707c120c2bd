//! The processes under test, and their resource usage. IO.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use amber_harness::Program;
use amber_harness::processes::children;
use amber_harness::usage::cpu_of;
use anyhow::{Context, ensure};
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use tempfile::TempPath;

use crate::results::Candidate;

/// The location of the programs.
#[derive(Clone, Debug)]
pub struct Programs {
    directory: PathBuf,
    before: Option<PathBuf>,
}

/// A running candidate with its drivers, until it is dropped.
pub struct Running {
    program: Program,
    /// The address on which it listens.
    pub address: SocketAddr,
}

/// The settings of the mediator, apart from one driver for [`probe::DEVICE`](crate::probe::DEVICE).
#[derive(Clone, Debug, Default)]
pub struct Setting<'a> {
    /// The arguments of `bench-echo`.
    pub echo: &'a str,
    /// DEVICE=COMMAND instead of `bench-echo`; only for `amber`.
    pub driver: Option<&'a str>,
    /// The number of clients to make room for; only `amber` has a limit.
    pub clients: Option<usize>,
    /// Additional drivers; only for `amber`.
    pub more_drivers: usize,
}

impl Programs {
    /// The programs built together with this one, and optionally another build of `amber`.
    ///
    /// # Errors
    /// One of them is missing.
    pub fn beside_this(before: Option<PathBuf>) -> anyhow::Result<Self> {
        let this = std::env::current_exe()?;
        let directory = this.parent().context("no folder")?.to_owned();
        let programs = Self { directory, before };
        for name in [
            "amber",
            "bench-echo",
            "bench-floor",
            "bench-sdk",
            "bench-slow",
        ] {
            let path = programs.path(name);
            ensure!(
                path.exists(),
                "{} is missing: use scripts/bench",
                path.display()
            );
        }
        Ok(programs)
    }

    /// The path of a program.
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// Starts a candidate; it listens when this returns.
    ///
    /// # Errors
    /// It does not start.
    pub fn start(&self, candidate: Candidate, setting: &Setting<'_>) -> anyhow::Result<Running> {
        let (mut command, _config) = self.command(candidate, setting)?;
        let program = Program::of(command.stdout(Stdio::piped()).spawn()?);
        let address = program.after("listening on ")?.parse()?;
        Ok(Running { program, address })
    }

    /// The command, and its configuration file as long as it is needed.
    fn command(
        &self,
        candidate: Candidate,
        setting: &Setting<'_>,
    ) -> anyhow::Result<(Command, Option<TempPath>)> {
        let echo = self.path("bench-echo");
        let words: Vec<_> = setting.echo.split_whitespace().collect();
        match candidate {
            Candidate::Floor | Candidate::FloorBatched => {
                let mut command = Command::new(self.path("bench-floor"));
                command.args((candidate == Candidate::FloorBatched).then_some("-b"));
                command.arg(echo).args(words);
                Ok((command, None))
            }
            Candidate::Amber | Candidate::Before => {
                let program = match (candidate, &self.before) {
                    (Candidate::Before, Some(before)) => before.clone(),
                    _ => self.path("amber"),
                };
                let mut command = Command::new(&program);
                command.args(["mediator", "--listen", "127.0.0.1:0", "--log", "error"]);
                let echo = display(&echo)?;
                let driver = match setting.driver {
                    Some(driver) => driver.to_owned(),
                    None => format!("5:0={echo} {}", setting.echo),
                };
                command.args(["--driver", &driver]);
                for i in 1..=setting.more_drivers {
                    command.args(["--driver", &format!("5:{i}={echo}")]);
                }
                if let Some(clients) = setting.clients {
                    let file = tempfile::Builder::new().suffix(".toml").tempfile()?;
                    fs::write(file.path(), room_for(&program, clients)?)?;
                    command.arg("-c").arg(file.path());
                    return Ok((command, Some(file.into_temp_path())));
                }
                Ok((command, None))
            }
        }
    }
}

/// A configuration with room for this number of clients, all on this machine.
fn room_for(program: &Path, clients: usize) -> anyhow::Result<String> {
    let mut text = format!("[limits]\nclients = {clients}\n");
    // The build to compare with may not have this limit yet.
    let shown = Command::new(program)
        .args(["mediator", "--print-config"])
        .output()?;
    if String::from_utf8_lossy(&shown.stdout).contains("clients_per_host") {
        text.push_str(&format!("clients_per_host = {clients}\n"));
    }
    Ok(text)
}

/// A path for a command in the configuration.
fn display(path: &Path) -> anyhow::Result<String> {
    let text = path.to_str().context("the path is not valid UTF-8")?;
    Ok(format!("'{text}'"))
}

impl Running {
    /// The id of its process.
    pub fn pid(&self) -> u32 {
        self.program.pid()
    }

    /// Moves its drivers to the first allowed core, as soon as they run.
    ///
    /// # Errors
    /// There are none, or the system refuses.
    pub fn move_drivers_to_first_core(&self) -> anyhow::Result<()> {
        let allowed = sched_getaffinity(Pid::from_raw(std::process::id() as i32))?;
        let mut first = CpuSet::new();
        first.set(cores_of(&allowed).next().context("no core")?)?;
        let until = Instant::now() + Duration::from_secs(3);
        loop {
            let mut drivers = children(&[self.pid()]);
            drivers.retain(|(_, name)| name.starts_with("bench-"));
            for (pid, _) in &drivers {
                sched_setaffinity(Pid::from_raw(*pid as i32), &first)?;
            }
            if !drivers.is_empty() {
                return Ok(());
            }
            ensure!(Instant::now() < until, "the candidate has no driver");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

fn cores_of(set: &CpuSet) -> impl DoubleEndedIterator<Item = usize> {
    (0..CpuSet::count()).filter(|core| set.is_set(*core).unwrap_or(false))
}

/// Keeps this thread and its children on one core until it is dropped.
#[derive(Debug)]
pub struct OnOneCore {
    before: CpuSet,
}

impl OnOneCore {
    /// Moves to the first allowed core.
    ///
    /// # Errors
    /// The system refuses.
    pub fn first() -> anyhow::Result<Self> {
        Self::begin(|cores| cores.next())
    }

    /// Moves to the last allowed core.
    ///
    /// # Errors
    /// The system refuses.
    pub fn last() -> anyhow::Result<Self> {
        Self::begin(|cores| cores.last())
    }

    fn begin(
        choose: impl FnOnce(&mut dyn Iterator<Item = usize>) -> Option<usize>,
    ) -> anyhow::Result<Self> {
        let before = sched_getaffinity(Pid::from_raw(0))?;
        let mut ours = cores_of(&before);
        let mut one = CpuSet::new();
        one.set(choose(&mut ours).context("no core")?)?;
        sched_setaffinity(Pid::from_raw(0), &one)?;
        Ok(Self { before })
    }
}

impl Drop for OnOneCore {
    fn drop(&mut self) {
        let _ = sched_setaffinity(Pid::from_raw(0), &self.before);
    }
}

/// Measures the CPU time of a process.
#[derive(Debug)]
pub struct CpuMeter {
    pid: u32,
    start: Duration,
}

impl CpuMeter {
    /// Starts the measurement.
    pub fn start(pid: u32) -> Self {
        let start = cpu_of(pid);
        Self { pid, start }
    }

    /// The CPU time since the start.
    pub fn elapsed(&self) -> Duration {
        cpu_of(self.pid).saturating_sub(self.start)
    }
}
