//! A mediator, its drivers and a simulated robot: real processes. IO.

use std::collections::HashMap;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use amber_client::blocking::Client;
use amber_harness::processes::{self, Marked};
use amber_harness::usage::{Footprint, footprint};
use amber_harness::{PATIENCE, Program, wait_for};
use amber_proto::mediator::{Driver, DriverState};
use amber_sim::robot;
use anyhow::{Context, bail, ensure};
use nix::sys::signal::Signal;
use tempfile::TempDir;

use crate::{accounts, fleet};

/// The number of log lines that a failure shows.
const LOG_LINES: usize = 200;

/// The name of the environment variable that marks all processes of a site.
const MARK: &str = "AMBER_CHAOS_SITE";

/// See the [module](self).
pub struct Site {
    amber: PathBuf,
    folder: TempDir,
    mark: String,
    places: HashMap<String, String>,
    robot: Program,
    mediator: Program,
    /// The address of the mediator.
    pub address: SocketAddr,
    started: Instant,
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
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let robot = Program::of(command.stderr(Stdio::null()).spawn()?);
        let places = places(&robot, folder.path())?;

        fs::write(folder.path().join("amber.toml"), config(&places))?;
        let mut command = Command::new(amber);
        command.env(MARK, &name).current_dir(folder.path());
        command.args(["mediator", "-c", "amber.toml", "--listen", "127.0.0.1:0"]);
        let mediator = Program::start(&mut command)?;
        let address = mediator.after("listening on ")?.parse()?;
        Ok(Self {
            amber: amber.to_owned(),
            folder,
            mark,
            places,
            robot,
            mediator,
            address,
            started: Instant::now(),
        })
    }

    /// The folder of this site.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The process id of the mediator.
    pub fn pid(&self) -> u32 {
        self.mediator.pid()
    }

    /// Its minimum uptime.
    pub fn age(&self) -> Duration {
        self.started.elapsed()
    }

    /// The last lines of its log.
    pub fn log(&self) -> String {
        self.mediator.last_lines(LOG_LINES).join("\n")
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
        processes::signal(pid, &self.mark, signal)
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
        footprint(self.pid()).with_context(|| format!("the mediator has ended:\n{}", self.log()))
    }

    /// Processes without a running driver: not the mediator, its guard or the robot, and not in the
    /// process group of a driver.
    pub fn strays(&self, drivers: &[Driver]) -> Vec<Marked> {
        let mut groups: Vec<u32> = drivers.iter().filter_map(|driver| driver.pid).collect();
        groups.push(0);
        let own = [self.pid(), self.robot.pid()];
        processes::marked(&self.mark)
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
        let status = self.mediator.wait()?;
        ensure!(status.success(), "the mediator: {status}\n{}", self.log());
        self.robot.close_input();
        self.robot.wait()?;
        let left = || processes::marked(&self.mark);
        // The guard ends last.
        wait_for("no process", || Ok(left().is_empty().then_some(())))
            .with_context(|| format!("left behind: {:?}", left()))
    }
}

/// The locations of the devices of a robot, once all exist.
fn places(robot: &Program, folder: &Path) -> anyhow::Result<HashMap<String, String>> {
    let devices = robot::Device::built_in();
    let places = devices.map(|device| {
        let place = robot.after(&format!("{} ", device.name()))?;
        let place = folder.join(place).display().to_string();
        anyhow::Ok((device.name().to_owned(), place))
    });
    places.collect()
}
