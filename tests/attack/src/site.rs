//! A mediator with its drivers, as a real process. IO.

use std::fs;
use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use amber_harness::processes::{self, Marked, marked};
use amber_harness::{Program, wait_for, within};
use anyhow::ensure;
use nix::sys::signal::Signal;
use tempfile::TempDir;

use crate::net::{DefaultBuffers, Namespace};

/// The name of the mark in the environment of all processes of a site.
const MARK: &str = "AMBER_ATTACK_SITE";

/// The programs of a run.
#[derive(Clone, Debug)]
pub struct Programs {
    /// The program that is attacked.
    pub amber: PathBuf,
    /// This program, which is also the drivers.
    pub this: PathBuf,
}

/// Where and how a mediator runs.
#[derive(Debug, Default)]
pub struct SiteOptions<'a> {
    /// The network; that of this program when it is missing.
    pub network: Option<&'a Namespace>,
    /// Whether the send buffers are those that Linux grants by default.
    pub default_buffers: bool,
}

/// See the [module](self).
#[derive(Debug)]
pub struct Site {
    programs: Programs,
    folder: TempDir,
    mark: String,
    mediator: Program,
    /// Where the mediator listens.
    pub addresses: Vec<SocketAddr>,
}

impl Site {
    /// Starts a mediator with this configuration. In it, `$attack` stands for this
    /// program and `$folder` for the folder of the site.
    ///
    /// # Errors
    /// It does not start.
    pub fn start(
        programs: &Programs,
        place: &SiteOptions<'_>,
        config: &str,
    ) -> anyhow::Result<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let folder = tempfile::Builder::new().prefix("amber-attack-").tempdir()?;
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let value = format!("{}-{number}", std::process::id());
        let mark = format!("{MARK}={value}");
        let mut sites = SITES.lock().unwrap_or_else(PoisonError::into_inner);
        sites.push((mark.clone(), folder.path().to_owned()));
        drop(sites);
        write_config(programs, folder.path(), config)?;
        let mut command = Command::new(&programs.amber);
        command
            .args(["mediator", "-c", "amber.toml"])
            .env(MARK, &value)
            // Drivers may join it, and are found by that.
            .process_group(0)
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut spawn = || Ok(command.spawn()?);
        let buffers = place
            .default_buffers
            .then(DefaultBuffers::set)
            .transpose()?;
        let mediator = Program::of(match place.network {
            Some(network) => network.run(spawn)?,
            None => spawn()?,
        });
        let mut site = Self {
            programs: programs.clone(),
            folder,
            mark,
            mediator,
            addresses: Vec::new(),
        };
        let listening = wait_for("the mediator to listen", || {
            ensure!(
                site.mediator.try_wait()?.is_none(),
                "it ended:\n{}",
                site.log()
            );
            // It says so after the last address.
            let log = site.log();
            let lines = log
                .lines()
                .filter_map(|line| line.strip_prefix("listening on "));
            let lines: Vec<String> = lines.map(str::to_owned).collect();
            Ok((lines.len() >= listens(config)).then_some(lines))
        })?;
        drop(buffers);
        let addresses = listening.iter().map(|text| text.parse());
        site.addresses = addresses.collect::<Result<_, _>>()?;
        Ok(site)
    }

    /// Where it listens first.
    pub fn address(&self) -> SocketAddr {
        self.addresses[0]
    }

    /// What the mediator has printed.
    pub fn log(&self) -> String {
        self.mediator.output().join("\n")
    }

    /// The folder of the configuration.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The process of the mediator.
    pub fn pid(&self) -> u32 {
        self.mediator.pid()
    }

    /// Replaces the configuration; a reload makes it count.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn configure(&self, config: &str) -> anyhow::Result<()> {
        write_config(&self.programs, self.folder(), config)
    }

    /// Sends a signal to the mediator.
    ///
    /// # Errors
    /// It has ended.
    pub fn signal(&self, signal: Signal) -> anyhow::Result<()> {
        self.mediator.signal(signal)
    }

    /// How the mediator ended, when it does so in time.
    ///
    /// # Errors
    /// The system does not say.
    pub fn ended_within(&mut self, time: Duration) -> anyhow::Result<Option<ExitStatus>> {
        self.mediator.ended_within(time)
    }

    /// All processes that it has started, and that run; the mediator is not among them.
    pub fn processes(&self) -> Vec<Marked> {
        let mut all = marked(&self.mark);
        all.retain(|process| process.pid != self.pid());
        all
    }

    /// The same without the guard of the mediator.
    pub fn drivers(&self) -> Vec<Marked> {
        let mut all = self.processes();
        all.retain(|process| !process.command.contains("guard"));
        all
    }
}

/// The marks of all sites of this run, and their folders.
static SITES: Mutex<Vec<(String, PathBuf)>> = Mutex::new(Vec::new());

/// Ends all processes that this run has started, at once: it was interrupted.
pub fn end_all() {
    let sites = SITES.lock().unwrap_or_else(PoisonError::into_inner);
    for (mark, folder) in sites.iter() {
        end_marked(mark);
        let _ = fs::remove_dir_all(folder);
    }
}

/// Ends whatever bears a mark; each process by its number.
fn end_marked(mark: &str) {
    let _ = within(Duration::from_secs(3), || {
        let left = marked(mark);
        for process in &left {
            let _ = processes::signal(process.pid, mark, Signal::SIGKILL);
        }
        Ok(left.is_empty().then_some(()))
    });
}

impl Drop for Site {
    fn drop(&mut self) {
        if let Ok(None) = self.mediator.try_wait() {
            let _ = self.signal(Signal::SIGTERM);
            if let Ok(None) | Err(_) = self.ended_within(Duration::from_secs(5)) {
                self.mediator.kill();
            }
        }
        end_marked(&self.mark);
    }
}

fn write_config(programs: &Programs, folder: &Path, config: &str) -> anyhow::Result<()> {
    let text = config
        .replace("$attack", &programs.this.display().to_string())
        .replace("$folder", &folder.display().to_string());
    // A reload never sees half of it.
    fs::write(folder.join("amber.toml.new"), text)?;
    Ok(fs::rename(
        folder.join("amber.toml.new"),
        folder.join("amber.toml"),
    )?)
}

/// How many addresses a configuration names.
fn listens(config: &str) -> usize {
    let line = config
        .lines()
        .find(|line| line.trim_start().starts_with("listen"));
    line.map_or(1, |line| line.matches('"').count() / 2)
}
