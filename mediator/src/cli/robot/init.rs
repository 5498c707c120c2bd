//! `amber init`: asks the machine what is plugged in, and the person what the machine cannot know, and
//! writes `amber.toml` and `robot.toml`. IO.
//!
//! ```text
//!  found: /sys and /dev --> models (PURE): USB ids --> look: probes --> report
//!                                                        |
//!  questions: at most five ----------------------------->+--> files (PURE): both files --> reading
//! ```
//!
//! [`amber_drivers::probe`] has the table of the probes. [`found`] opens no device, [`reading`] shows that
//! the written configuration works, [`service`] and [`dashboard`] are what comes next.

use std::fs;
use std::io::{self, BufRead};
use std::path::{Path, PathBuf};

use amber_terminal::{Failure, note, print_json, print_text};

use self::files::{Files, Robot};
use self::found::Machine;
use self::look::{At, Looked, State, WHEELS};
use self::questions::Questions;
use self::report::Report;
use super::{doctor, failed};

#[cfg(feature = "web")]
mod dashboard;
mod files;
mod found;
mod look;
mod models;
mod questions;
mod reading;
mod report;
mod service;

/// The files that are written.
const CONFIGURATION: &str = "amber.toml";
const ROBOT: &str = "robot.toml";
/// What an old file gets behind its name.
const OLD: &str = ".old";
/// The folder for maps, in the folder of the files.
const MAPS: &str = "maps";

#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  amber init --dry-run             (shows what is connected, and writes nothing)
  amber init                       (writes amber.toml and robot.toml here)
  amber init --yes --at stargazer=/dev/ttyUSB0
  sudo amber init /etc/amber --force  (for the service)

It asks devices who they are, and moves nothing: docs/init.md lists what it sends, and why that is
safe. Ports that another program uses are left alone. Next, try `amber mediator -c amber.toml`.")]
pub(crate) struct Options {
    /// Folder for the files
    #[arg(value_name = "FOLDER", default_value = ".")]
    folder: PathBuf,
    /// Say which device is connected to a port that cannot tell, such as roboclaw=/dev/ttyAMA0 (may be
    /// given several times)
    #[arg(long, value_name = "DEVICE=PORT", value_parser = questions::at)]
    at: Vec<At>,
    /// Take the default answer to each question
    #[arg(long)]
    yes: bool,
    /// Ask nothing and write nothing: show what is connected, and what would be written
    #[arg(long)]
    dry_run: bool,
    /// Replace existing files; the old ones are kept as amber.toml.old and robot.toml.old
    #[arg(long)]
    force: bool,
    /// The folder that has /dev, /etc, /proc, /run and /sys, for tests
    #[arg(long, value_name = "FOLDER", default_value = "/", hide = true)]
    root: PathBuf,
}

impl Options {
    pub(crate) fn run(&self, options: &amber_cli::Options) -> Result<(), Failure> {
        if !self.force && !self.dry_run {
            self.refuse_existing()?;
        }
        let mut questions = Questions::new(match self.yes || self.dry_run {
            true => None,
            false => Some(io::stdin().lock()),
        });
        let machine = Machine::read(&self.root);
        let at = match self.at.is_empty() {
            true => questions.ports(&look::unknown(&machine))?,
            false => self.at.clone(),
        };
        note("asking the devices who they are ...");
        let looked = Looked::at(&machine, &at)?;
        let mut report = Report::new(&looked, self.dry_run);
        if !options.json {
            print_text(&report.findings_text())?;
        }
        if looked.configured().next().is_none() {
            if options.json {
                print_json(&report)?;
            }
            return Err(nothing_found(&looked));
        }
        let wheels = looked.first_of(WHEELS);
        let wheels = wheels.map(|(finding, kind, _)| (kind, &*finding.options));
        let robot = questions.robot(&looked, Robot::new(hostname(&self.root), wheels))?;
        let maps = match self.is_for_service() {
            true => PathBuf::from("/var/lib/amber"),
            false => PathBuf::from(MAPS),
        };
        let files = files::write(&looked, &robot, &maps);
        report.files([
            (self.path(CONFIGURATION), files.amber.as_str()),
            (self.path(ROBOT), files.robot.as_str()),
        ]);
        if self.dry_run {
            return match options.json {
                true => print_json(&report),
                false => print_text(&report.files_text()),
            };
        }
        self.write(&files)?;
        if !options.json {
            print_text(&report.files_text())?;
            note("starting the drivers for a first reading; nothing moves ...");
        }
        report.readings = reading::all(&looked, &robot, &self.folder);
        if !options.json {
            print_text(&report.readings_text())?;
        }
        self.finish(&mut questions, &looked, &mut report)?;
        match options.json {
            true => print_json(&report)?,
            false => report.print_next()?,
        }
        match report.readings.iter().filter(|it| !it.works).count() {
            0 => Ok(()),
            _ => Err(Failure::new("a device gave no reading").hint(format!(
                "the files are written; `amber doctor -c {}` says more",
                self.path(CONFIGURATION).display()
            ))),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        match self.folder == Path::new(".") {
            true => PathBuf::from(name),
            false => self.folder.join(name),
        }
    }

    /// Whether the files are those of the service.
    fn is_for_service(&self) -> bool {
        let service = self.root.join("etc/amber");
        let real = |path: &Path| fs::canonicalize(path).ok();
        real(&self.folder).is_some_and(|folder| Some(folder) == real(&service))
    }

    fn refuse_existing(&self) -> Result<(), Failure> {
        for name in [CONFIGURATION, ROBOT] {
            let path = self.path(name);
            if path.symlink_metadata().is_ok() {
                let path = path.display();
                return Err(
                    Failure::wrong(format!("{path} exists already")).hint(format!(
                        "`amber init --force` replaces it, and keeps the old one as {name}{OLD}; \
                     `amber init FOLDER` writes elsewhere; `amber init --dry-run` only looks"
                    )),
                );
            }
        }
        Ok(())
    }

    /// Writes both files; old ones get another name.
    fn write(&self, files: &Files) -> Result<(), Failure> {
        let cannot = |path: &Path, error: &io::Error| {
            failed(&format!("cannot write {}", path.display()), error)
                .hint("`amber init FOLDER` writes elsewhere; /etc/amber needs sudo")
        };
        fs::create_dir_all(&self.folder).map_err(|error| cannot(&self.folder, &error))?;
        for (name, text) in [(CONFIGURATION, &files.amber), (ROBOT, &files.robot)] {
            let path = self.path(name);
            if path.symlink_metadata().is_ok() {
                let old = self.path(&format!("{name}{OLD}"));
                fs::rename(&path, &old).map_err(|error| cannot(&old, &error))?;
            }
            fs::write(&path, text).map_err(|error| cannot(&path, &error))?;
        }
        if files.has_maps && !self.is_for_service() {
            let maps = self.path(MAPS);
            fs::create_dir_all(&maps).map_err(|error| cannot(&maps, &error))?;
        }
        Ok(())
    }

    /// Offers the service, and says how to go on.
    fn finish(
        &self,
        questions: &mut Questions<impl BufRead>,
        looked: &Looked,
        report: &mut Report,
    ) -> Result<(), Failure> {
        let configuration = self.path(CONFIGURATION).display().to_string();
        let is_installed = service::is_installed(&self.root);
        let is_for_service = self.is_for_service();
        if is_installed && is_for_service && questions.starts_service()? {
            service::start()?;
            report.service_started = true;
            report.add(
                "journalctl -u amber -f",
                "the log of the service; Ctrl-C ends",
            );
        } else if is_installed && is_for_service {
            report.add(
                "sudo systemctl enable --now amber && sudo systemctl reload amber",
                "start it now, and whenever the robot starts",
            );
        } else {
            report.add(
                &format!("amber mediator -c {configuration}"),
                "start it; Ctrl-C ends it",
            );
        }
        #[cfg(feature = "web")]
        dashboard::add(report, &self.path("dashboard.tokens"), is_for_service)?;
        report.add(
            "amber devices",
            "what runs; in another terminal, as all others",
        );
        if looked.first(WHEELS).is_some() {
            report.add(
                "amber drive --left 100 --right 100 --for 2",
                "wheels off the ground! Do all turn forwards, at 100 mm/s (`amber watch roboclaw`)?",
            );
        }
        report.add(
            "amber robot show",
            "the robot from above, as robot.toml describes it",
        );
        report.add(
            &format!("amber doctor -c {configuration}"),
            "if something does not work",
        );
        if is_installed && !is_for_service {
            report.add(
                "sudo amber init /etc/amber --force",
                "the same for the service, which starts with the robot",
            );
        }
        Ok(())
    }
}

/// The failure if no device can be configured.
fn nothing_found(looked: &Looked) -> Failure {
    let with = |state| looked.findings.iter().find(|it| it.state == state);
    if let Some(finding) = with(State::Unusable) {
        let why = finding.note.as_deref().unwrap_or_default();
        return Failure::new("no device can be used as it is")
            .hint(format!("{}: {why}", finding.what));
    }
    let user = doctor::facts::user();
    let groups = format!(
        "sudo usermod --append --groups dialout {user} (for I2C: the group i2c), then log in again"
    );
    let failure = Failure::new("no device was found that Amber has a driver for");
    if with(State::Denied).is_some() {
        return failure.hint(format!("{user} may not use all ports: {groups}"));
    }
    failure.hint(format!(
        "is it plugged in and switched on? A port without USB ids must be named: `amber init --at \
         roboclaw=/dev/ttyAMA0`. On a Raspberry Pi, I2C and the serial port on the pins are enabled in \
         `sudo raspi-config`. Ports need permission: {groups}"
    ))
}

/// The name of this computer, for the robot.
fn hostname(root: &Path) -> String {
    let name = fs::read_to_string(root.join("proc/sys/kernel/hostname")).unwrap_or_default();
    match name.trim().split('.').next().unwrap_or_default() {
        "" | "localhost" => "robot".to_owned(),
        first => first.to_owned(),
    }
}
