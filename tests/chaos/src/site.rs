//! A mediator, its drivers and a simulated robot: real processes. IO.

use std::collections::{HashMap, VecDeque};
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use amber_client::blocking::Client;
use amber_proto::mediator::{Driver, DriverState};
use amber_sim::robot;
use anyhow::{Context, bail, ensure};
use nix::sys::signal::Signal;
use tempfile::TempDir;

use crate::process::{self, Footprint, Marked};
use crate::{PATIENCE, accounts, fleet};

/// The number of log lines to keep.
const LOG_LINES: usize = 200;

/// The name of the environment variable that marks all processes of a site.
const MARK: &str = "AMBER_CHAOS_SITE";

/// See the [module](self).
pub struct Site {
    amber: PathBuf,
    folder: TempDir,
    mark: String,
    places: HashMap<String, String>,
    robot: Child,
    mediator: Child,
    /// The address of the mediator.
    pub address: SocketAddr,
    started: Instant,
    log: Arc<Mutex<VecDeque<String>>>,
}

impl Site {
    /// Starts a robot, and a mediator with a configuration for the locations of its devices.
    /// `amber` is the program.
    ///
    /// # Errors
    /// One of them does not start.
    pub fn start(
        amber: &Path,
        config: impl FnOnce(&HashMap<String, String>) -> String,
    ) -> anyhow::Result<Self> {
        let folder = tempfile::Builder::new().prefix("amber-chaos-").tempdir()?;
        let name = folder.path().display().to_string();
        let mark = format!("{MARK}={name}");
        let mut command = Command::new(amber);
        command.env(MARK, &name).current_dir(folder.path());
        command.args(["sim", "--until-eof", "--dir", "sim"]);
        let mut robot = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let places = places(&mut robot, folder.path())?;

        fs::write(folder.path().join("amber.toml"), config(&places))?;
        let mut command = Command::new(amber);
        command.env(MARK, &name).current_dir(folder.path());
        command.args(["mediator", "-c", "amber.toml", "--listen", "127.0.0.1:0"]);
        let mut mediator = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let log = Arc::new(Mutex::new(VecDeque::new()));
        let stderr = mediator.stderr.take().context("no stderr")?;
        let kept = log.clone();
        thread::spawn(move || keep_last_lines(stderr, &kept));
        let mut line = String::new();
        let stdout = mediator.stdout.take().context("no stdout")?;
        BufReader::new(stdout).read_line(&mut line)?;
        let address = line.trim().strip_prefix("listening on ");
        let site = Self {
            amber: amber.to_owned(),
            folder,
            mark,
            places,
            robot,
            mediator,
            address: address.map_or(Ok(([0; 4], 0).into()), str::parse)?,
            started: Instant::now(),
            log,
        };
        ensure!(
            address.is_some(),
            "the mediator did not start:\n{}",
            site.log()
        );
        Ok(site)
    }

    /// The folder of this site.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The process id of the mediator.
    pub fn pid(&self) -> u32 {
        self.mediator.id()
    }

    /// Its minimum uptime.
    pub fn age(&self) -> Duration {
        self.started.elapsed()
    }

    /// The last lines of its log.
    pub fn log(&self) -> String {
        let log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        log.iter()
            .fold(String::new(), |all, line| all + line + "\n")
    }

    /// A client without a deadline.
    ///
    /// # Errors
    /// The mediator does not answer.
    pub fn client(&self) -> anyhow::Result<Client> {
        Ok(Client::connect(self.address)?.with_deadline(PATIENCE))
    }

    /// Runs `amber` as a client of this mediator and this robot.
    ///
    /// # Errors
    /// The command fails.
    pub fn amber(&self, args: &[&str]) -> anyhow::Result<()> {
        let mut command = Command::new(&self.amber);
        command.args(args).current_dir(self.folder());
        command.env("AMBER_MEDIATOR", self.address.to_string());
        command.env("AMBER_SIM_DIR", "sim");
        let output = command.stdin(Stdio::null()).output()?;
        let words = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "amber {args:?}: {words}");
        Ok(())
    }

    /// Writes the chaos configuration again; `amber reload` activates it.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn configure(&self, changing: fleet::Changing) -> anyhow::Result<()> {
        let text = fleet::chaos(&self.places, changing);
        self.configure_as(&text)
    }

    /// Writes any text as the configuration.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn configure_as(&self, text: &str) -> anyhow::Result<()> {
        let new = self.folder().join("amber.toml.new");
        fs::write(&new, text)?;
        Ok(fs::rename(new, self.folder().join("amber.toml"))?)
    }

    /// Sends a signal to a driver process. Returns false if it has already ended.
    pub fn signal(&self, pid: u32, signal: Signal) -> bool {
        process::signal(pid, &self.mark, signal)
    }

    /// Starts all drivers that are down or given up, and waits until all are up.
    ///
    /// # Errors
    /// A driver does not start.
    /// One of them does not come up.
    pub fn all_up(&self, client: &Client) -> anyhow::Result<Vec<Driver>> {
        let mediator = client.mediator();
        wait_for("all drivers to be up", || {
            let drivers = mediator.drivers()?;
            for driver in &drivers {
                let down = [DriverState::Down, DriverState::Failed].contains(&driver.state());
                if down && let Some(device) = driver.devices.first() {
                    mediator.start(amber_proto::Device::new(
                        amber_proto::DeviceType(device.r#type),
                        device.id,
                    ))?;
                }
            }
            let up = drivers.iter().all(|d| d.state() == DriverState::Up);
            Ok(up.then_some(drivers))
        })
    }

    /// Waits until the counters add up. With messages in transit they do not, because they are not
    /// read at the same instant.
    ///
    /// # Errors
    /// Describes the discrepancy.
    /// What does not add up.
    pub fn check_counters(&self, client: &Client) -> anyhow::Result<()> {
        let mediator = client.mediator();
        let deadline = Instant::now() + PATIENCE;
        loop {
            let (statistics, drivers) = (mediator.statistics()?, mediator.drivers()?);
            match accounts::check(&statistics, &drivers) {
                Ok(()) => return Ok(()),
                Err(wrong) if Instant::now() > deadline => bail!("counters: {wrong}"),
                Err(_) => thread::sleep(Duration::from_millis(20)),
            }
        }
    }

    /// The resource usage of the mediator.
    ///
    /// # Errors
    /// It has ended.
    pub fn footprint(&self) -> anyhow::Result<Footprint> {
        process::footprint(self.pid())
            .with_context(|| format!("the mediator has ended:\n{}", self.log()))
    }

    /// Processes without a running driver: not the mediator, its guard or the robot, and not in the
    /// process group of a driver.
    pub fn strays(&self, drivers: &[Driver]) -> Vec<Marked> {
        let mut groups: Vec<u32> = drivers.iter().filter_map(|driver| driver.pid).collect();
        groups.push(0);
        let own = [self.pid(), self.robot.id()];
        process::marked(&self.mark)
            .into_iter()
            .filter(|p| !own.contains(&p.pid) && !groups.contains(&p.group))
            .filter(|p| !p.command.ends_with(" guard"))
            .collect()
    }

    /// Checks that the original mediator process is still running.
    ///
    /// # Errors
    /// It has ended.
    pub fn check_alive(&mut self) -> anyhow::Result<()> {
        match self.mediator.try_wait()? {
            None => Ok(()),
            Some(status) => bail!("the mediator has ended, {status}:\n{}", self.log()),
        }
    }

    /// Ends the mediator as a service manager does, and the robot.
    ///
    /// # Errors
    /// The mediator fails, or leaves processes behind; the error names them.
    pub fn end(mut self) -> anyhow::Result<()> {
        self.check_alive()?;
        ensure!(self.signal(self.pid(), Signal::SIGTERM));
        let status = wait_for("the end of the mediator", || {
            Ok(self.mediator.try_wait()?)
        })?;
        ensure!(status.success(), "the mediator: {status}\n{}", self.log());
        drop(self.robot.stdin.take());
        wait_for("the end of the robot", || Ok(self.robot.try_wait()?))?;
        let left = || process::marked(&self.mark);
        // The guard ends last.
        wait_for("no process", || Ok(left().is_empty().then_some(())))
            .with_context(|| format!("left behind: {:?}", left()))
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        // After `end` there are no children left.
        for child in [&mut self.mediator, &mut self.robot] {
            if let Ok(None) = child.try_wait() {
                let _ = child.kill();
                let _ = child.wait();
            }
        }
    }
}

/// Polls until there is a result.
///
/// # Errors
/// There is no result in time, or polling fails.
pub fn wait_for<T>(
    what: &str,
    mut ask: impl FnMut() -> anyhow::Result<Option<T>>,
) -> anyhow::Result<T> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(answer) = ask()? {
            return Ok(answer);
        }
        ensure!(Instant::now() < deadline, "waited {PATIENCE:?} for {what}");
        thread::sleep(Duration::from_millis(10));
    }
}

/// The locations of the devices of a robot, once all exist.
fn places(robot: &mut Child, folder: &Path) -> anyhow::Result<HashMap<String, String>> {
    let mut places = HashMap::new();
    let stdout = robot.stdout.take().context("no stdout")?;
    let mut lines = BufReader::new(stdout).lines();
    while !robot::Device::built_in().all(|device| places.contains_key(device.name())) {
        let line = lines.next().context("the robot has ended")??;
        if let Some((name, place)) = line.split_once(' ') {
            let place = folder.join(place).display().to_string();
            places.insert(name.to_owned(), place);
        }
    }
    Ok(places)
}

fn keep_last_lines(stream: impl Read, kept: &Mutex<VecDeque<String>>) {
    for line in BufReader::new(stream).lines().map_while(Result::ok) {
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() == LOG_LINES {
            kept.pop_front();
        }
        kept.push_back(line);
    }
}
