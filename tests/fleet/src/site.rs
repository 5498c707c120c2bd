//! All processes of the fleet. IO.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use amber_harness::Program;
use amber_harness::processes::children;
use anyhow::{Context, ensure};

use crate::process::{end, start};

/// The name of the process that ends the drivers of a mediator that was killed.
const GUARD: &str = "driver-guard";

/// The programs that run.
#[derive(Debug)]
pub(crate) struct Programs {
    amber: PathBuf,
    amber_zenoh: PathBuf,
    this: PathBuf,
    logs: Option<PathBuf>,
}

/// A robot: a mediator with its driver, and its place in the fleet.
#[derive(Debug)]
pub(crate) struct Robot {
    pub(crate) name: String,
    /// The address of its mediator.
    pub(crate) address: String,
    pub(crate) mediator: Program,
    pub(crate) zenoh: Program,
}

/// A router and the robots.
#[derive(Debug)]
pub(crate) struct Site {
    /// How the router is reached.
    pub(crate) endpoint: String,
    pub(crate) router: Program,
    pub(crate) robots: Vec<Robot>,
    /// A raw peer for each robot.
    pub(crate) raw: Vec<Program>,
}

/// The role of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Router,
    AmberZenoh,
    Mediator,
    Driver,
    Raw,
}

impl Programs {
    /// Looks for the programs at their usual places.
    pub(crate) fn find(
        amber: Option<&Path>,
        amber_zenoh: Option<&Path>,
        logs: Option<PathBuf>,
    ) -> anyhow::Result<Self> {
        let this = std::env::current_exe()?;
        let beside = this.parent().context("no folder")?;
        let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let usual = workspace.join("target/release/amber");
        let programs = Self {
            amber: amber.map_or(usual, Path::to_owned),
            amber_zenoh: amber_zenoh.map_or(beside.join("amber-zenoh"), Path::to_owned),
            this,
            logs,
        };
        for path in [&programs.amber, &programs.amber_zenoh] {
            ensure!(
                path.is_file(),
                "{} is missing: use scripts/bench fleet",
                path.display()
            );
        }
        if let Some(folder) = &programs.logs {
            std::fs::create_dir_all(folder)?;
        }
        Ok(programs)
    }

    fn start(&self, program: &Path, words: &[&str], name: &str) -> anyhow::Result<Program> {
        let mut command = Command::new(program);
        command.args(words);
        start(command, name, self.logs.as_deref())
    }

    /// Starts a router.
    pub(crate) fn router(&self, endpoint: &str) -> anyhow::Result<Program> {
        self.start(
            &self.amber_zenoh,
            &["router", "--listen", endpoint],
            "router",
        )
    }

    /// Starts a mediator with some drivers: DEVICES=COMMAND.
    pub(crate) fn mediator(
        &self,
        name: &str,
        listen: &str,
        drivers: &[String],
    ) -> anyhow::Result<Program> {
        let mut words = vec!["mediator", "--listen", listen];
        for driver in drivers {
            words.extend(["--driver", driver]);
        }
        self.start(&self.amber, &words, &format!("{name}-mediator"))
    }

    /// Starts the mediator of a robot.
    pub(crate) fn robot_mediator(&self, name: &str, listen: &str) -> anyhow::Result<Program> {
        let driver = format!("hokuyo:0,roboclaw:0='{}' driver", self.this.display());
        self.mediator(name, listen, &[driver])
    }

    /// The same; the driver writes all commands to a file.
    pub(crate) fn logging_mediator(&self, name: &str, log: &Path) -> anyhow::Result<Program> {
        let driver = format!(
            "hokuyo:0,roboclaw:0='{}' driver '{}'",
            self.this.display(),
            log.display()
        );
        self.mediator(name, "127.0.0.1:0", &[driver])
    }

    /// Starts the program that brings a robot into the fleet.
    pub(crate) fn robot(
        &self,
        name: &str,
        mediator: &str,
        router: &str,
    ) -> anyhow::Result<Program> {
        let words = [
            "robot",
            "--name",
            name,
            "--mediator",
            mediator,
            "--connect",
            router,
        ];
        self.start(&self.amber_zenoh, &words, name)
    }

    /// The driver of a local mediator that shows the scanner of a robot as `hokuyo:ID`.
    pub(crate) fn remote_driver(&self, robot: &str, id: usize, router: &str) -> String {
        let program = self.amber_zenoh.display();
        let far = format!("--robot {robot} --first-id {id} --operator watcher");
        format!("hokuyo:{id}='{program}' remote {far} --connect {router}")
    }
}

impl Site {
    /// Starts the router, and then all robots at once.
    pub(crate) fn start(programs: &Programs, robots: usize) -> anyhow::Result<Self> {
        let endpoint = format!("tcp/127.0.0.1:{}", free_tcp_port()?);
        let mut site = Self {
            router: programs.router(&endpoint)?,
            endpoint,
            robots: Vec::new(),
            raw: Vec::new(),
        };
        let names = (1..=robots).map(robot_name);
        let mediators = names.map(|name| {
            let mediator = programs.robot_mediator(&name, "127.0.0.1:0")?;
            anyhow::Ok((name, mediator))
        });
        for (name, mediator) in mediators.collect::<anyhow::Result<Vec<_>>>()? {
            let address = mediator.after("listening on ")?;
            let zenoh = programs.robot(&name, &address, &site.endpoint)?;
            site.robots.push(Robot {
                name,
                address,
                mediator,
                zenoh,
            });
        }
        Ok(site)
    }

    /// Starts a raw peer for each robot.
    pub(crate) fn start_raw(&mut self, programs: &Programs) -> anyhow::Result<()> {
        for robot in &self.robots {
            let words = ["raw", &robot.name, &self.endpoint];
            let peer = programs.start(&programs.this, &words, &format!("{}-raw", robot.name))?;
            self.raw.push(peer);
        }
        Ok(())
    }

    /// The processes that do something.
    pub(crate) fn pids(&self, role: Role) -> Vec<u32> {
        let mediators: Vec<_> = self.robots.iter().map(|it| it.mediator.pid()).collect();
        match role {
            Role::Router => vec![self.router.pid()],
            Role::AmberZenoh => self.robots.iter().map(|it| it.zenoh.pid()).collect(),
            Role::Raw => self.raw.iter().map(Program::pid).collect(),
            Role::Mediator => {
                let guards = children(&mediators).into_iter().filter(|it| it.1 == GUARD);
                let guards: Vec<_> = guards.map(|it| it.0).collect();
                mediators.into_iter().chain(guards).collect()
            }
            Role::Driver => {
                let drivers = children(&mediators).into_iter().filter(|it| it.1 != GUARD);
                drivers.map(|it| it.0).collect()
            }
        }
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        let robots = self.robots.drain(..);
        let (zenoh, mediators) = robots.map(|it| (it.zenoh, it.mediator)).unzip();
        end(zenoh);
        end(mediators);
        end(std::mem::take(&mut self.raw));
    }
}

/// The name of a robot; the first one has the number 1.
pub(crate) fn robot_name(number: usize) -> String {
    format!("r{number:03}")
}

/// The index of the robot that a key is about.
pub(crate) fn index_of(key: &str) -> Option<usize> {
    let number: usize = key.split('/').nth(1)?.strip_prefix('r')?.parse().ok()?;
    number.checked_sub(1)
}

fn free_tcp_port() -> anyhow::Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}
