//! Ends processes that drivers have started and left behind. IO.
//!
//! A process that a driver has started may leave the driver's process group, and becomes an
//! orphan when its parent ends. The mediator is a subreaper, so it adopts such orphans. Their
//! environment shows which driver they belong to: each process of a driver has a tag ([`TAG`]),
//! which its children inherit. An orphan of a driver that has ended is a stray: it gets SIGKILL,
//! and so do its descendants.
//!
//! An orphan without a tag may belong to any driver. It is a stray when no driver runs.
//!
//! A motion guard is meant to outlive its driver for a moment, to stop the motors. It gets no signals
//! before that moment is over.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::process;
use std::time::{Duration, Instant};

use nix::sys::prctl::set_child_subreaper;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use tracing::{debug, warn};

use super::process::{
    Environment, MOTION_GUARD_GRACE, Process, Stat, children, descendants, may_be_motion_guard,
    signal, stat,
};
use super::{Alarm, Shell};
use amber_core::limits::{FAMILY_PROCESSES, ORPHANS_PER_TURN};

/// The variable that identifies the start of the driver that a process belongs to.
pub(super) const TAG: &str = "AMBER_STARTED_BY";

/// The pause between two checks for strays doubles from here, while there are any ...
const PAUSE_MIN: Duration = Duration::from_millis(10);
/// ... to here: then only the kernel can keep them from ending.
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// One start of a driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Run(u64);

/// A process whose parent has ended.
#[derive(Clone, Copy, Debug)]
struct Orphan {
    /// The driver start that it belongs to, if known.
    run: Option<Run>,
    /// Until when it has to do something, if it is or may be a motion guard.
    is_needed_until: Option<Instant>,
}

impl Orphan {
    /// Whether its environment was seen, or has not shown for too long.
    fn is_known(&self, now: Instant) -> bool {
        self.run.is_some() || self.is_needed_until.is_none_or(|until| now >= until)
    }
}

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Strays {
    token: String,
    runs: u64,
    own: Pid,
    /// Children that this process had before it became a mediator. `None` if the system does
    /// not list processes, or gives orphans to another process.
    inherited: Option<BTreeSet<Pid>>,
    /// Our orphans. Their pids are not reused until we wait for them.
    orphans: BTreeMap<Pid, Orphan>,
    /// Driver starts with strays at the last check.
    left: BTreeSet<Option<Run>>,
    /// The last check could not see all orphans.
    is_unsure: bool,
    pause: Duration,
}

impl Strays {
    /// Makes this process adopt all orphans of its descendants.
    pub(super) fn adopt() -> Self {
        let adopted = children(own_pid()).and_then(|children| {
            set_child_subreaper(true)?;
            Ok(children.into_iter().collect())
        });
        let inherited = adopted.inspect_err(|error| {
            warn!(%error, "processes that leave a driver's process group may outlive it");
        });
        Self::new(inherited.ok())
    }

    pub(super) fn new(inherited: Option<BTreeSet<Pid>>) -> Self {
        Self {
            // Differs between mediators, and between starts of one mediator.
            token: format!("{:016x}", RandomState::new().build_hasher().finish()),
            runs: 0,
            own: own_pid(),
            inherited,
            orphans: BTreeMap::new(),
            left: BTreeSet::new(),
            is_unsure: false,
            pause: PAUSE_MIN,
        }
    }

    pub(super) fn token(&self) -> &str {
        &self.token
    }

    pub(super) fn next_run(&mut self) -> Run {
        self.runs += 1;
        Run(self.runs)
    }

    /// The value of [`TAG`] for a driver.
    pub(super) fn tag(&self, run: Run) -> String {
        format!("{}-{}", self.token, run.0)
    }

    fn run_of(&self, tag: &str) -> Option<Run> {
        let rest = tag.strip_prefix(self.token.as_str())?;
        rest.strip_prefix('-')?.parse().ok().map(Run)
    }

    /// Whether there may be strays.
    pub(super) fn may_be_left(&self) -> bool {
        self.is_unsure || !self.left.is_empty()
    }

    /// Whether there were strays of a driver start at the last check.
    pub(super) fn are_left_of(&self, run: Run) -> bool {
        self.left.contains(&Some(run))
    }

    /// The processes that a driver has started outside its process group. `known` are our
    /// children that are handled elsewhere.
    pub(super) fn outside_group(
        &mut self,
        driver: Pid,
        run: Run,
        known: &BTreeSet<Pid>,
    ) -> Vec<Process> {
        // Processes that are not visible now are checked again when the driver has ended.
        let family = self.family(driver, run, known).unwrap_or_default();
        let outside = family.iter().filter(|member| member.group != driver);
        let outside = outside.filter(|member| !may_be_motion_guard(member.process.pid));
        outside.map(|member| member.process).collect()
    }

    fn family(&mut self, driver: Pid, run: Run, known: &BTreeSet<Pid>) -> io::Result<Vec<Stat>> {
        let mut family = descendants(driver, FAMILY_PROCESSES)?;
        self.look(known)?;
        let orphans = self.orphans.iter();
        for (orphan, _) in orphans.filter(|(_, of)| of.run == Some(run)) {
            family.extend(stat(*orphan)?.filter(|stat| !stat.is_zombie));
            family.extend(descendants(*orphan, FAMILY_PROCESSES)?);
        }
        Ok(family)
    }

    /// Registers new orphans and waits for those that have ended. Returns false if there are
    /// more than fit into one turn, or if the environment of one does not show yet.
    fn look(&mut self, known: &BTreeSet<Pid>) -> io::Result<bool> {
        let Some(inherited) = &self.inherited else {
            return Ok(true);
        };
        let (mut seen, mut is_sure) = (0, true);
        for child in children(self.own)? {
            if known.contains(&child) || inherited.contains(&child) {
                continue;
            }
            let is_alive = waitpid(child, Some(WaitPidFlag::WNOHANG));
            if is_alive != Ok(WaitStatus::StillAlive) {
                self.orphans.remove(&child);
                continue;
            }
            let now = Instant::now();
            let known = self.orphans.get(&child).copied();
            if known.is_some_and(|orphan| orphan.is_known(now)) {
                continue;
            }
            if seen == ORPHANS_PER_TURN {
                return Ok(false);
            }
            seen += 1;
            let environment = Environment::of(child)?;
            let tag = environment.variable(TAG);
            let needed_until = known.and_then(|orphan| orphan.is_needed_until);
            let needed_until = needed_until.unwrap_or_else(|| now + MOTION_GUARD_GRACE);
            let orphan = Orphan {
                run: tag.and_then(|tag| self.run_of(&tag)),
                is_needed_until: (environment.may_be_of_motion_guard()).then_some(needed_until),
            };
            is_sure &= orphan.is_known(now);
            self.orphans.insert(child, orphan);
        }
        Ok(is_sure)
    }

    /// Sends SIGKILL to strays. `running` are the drivers that run.
    fn end(&mut self, known: &BTreeSet<Pid>, running: &BTreeSet<Run>) -> io::Result<()> {
        self.is_unsure = true;
        let saw_all = self.look(known)?;
        let nobody_runs = running.is_empty() && self.all_are_of_drivers();
        let is_stray = |of: &Orphan| (of.run).map_or(nobody_runs, |run| !running.contains(&run));
        let strays = self.orphans.iter().filter(|(_, of)| is_stray(of));
        self.left = strays.clone().map(|(_, of)| of.run).collect();
        let now = Instant::now();
        let unneeded = strays.filter(|(_, of)| of.is_needed_until.is_none_or(|until| now >= until));
        for (stray, _) in unneeded.take(ORPHANS_PER_TURN) {
            // Its descendants first: as orphans they might be impossible to identify.
            for member in descendants(*stray, FAMILY_PROCESSES)? {
                if !may_be_motion_guard(member.process.pid) {
                    signal(member.process, Signal::SIGKILL)?;
                }
            }
            debug!(pid = %stray, "sent SIGKILL to a process that a driver left behind");
            // It is our child, so its pid is not reused.
            let _ = kill(*stray, Signal::SIGKILL);
        }
        self.is_unsure = !saw_all;
        Ok(())
    }

    /// Whether every unknown orphan was started by a driver. That is not so if we had other
    /// children before, or if we adopt all orphans of a container.
    fn all_are_of_drivers(&self) -> bool {
        self.own.as_raw() != 1 && self.inherited.as_ref().is_some_and(BTreeSet::is_empty)
    }
}

fn own_pid() -> Pid {
    Pid::from_raw(process::id().cast_signed())
}

/// Whether a tag is from the mediator with this token.
pub(super) fn is_from(token: &str, tag: &str) -> bool {
    let rest = tag.strip_prefix(token);
    !token.is_empty() && rest.is_some_and(|rest| rest.starts_with('-'))
}

impl Shell {
    /// Our children that are handled elsewhere.
    pub(super) fn known_children(&self) -> BTreeSet<Pid> {
        let children = self.children.values();
        let unreaped = children.filter(|child| !child.has_exited());
        let companion = self.companion.as_ref().and_then(|it| it.pid());
        let own = self.guard.pid().into_iter().chain(companion);
        let pids = unreaped.map(|child| child.pid()).chain(own);
        pids.map(|pid| Pid::from_raw(pid.cast_signed())).collect()
    }

    /// Ends processes that ended drivers have left behind. While there are any, checks again
    /// after a pause, or when the next child ends.
    pub(super) fn end_strays(&mut self) {
        let children = self.children.values();
        let running = children.filter(|child| !child.has_exited());
        let running = running.map(|child| child.run()).collect();
        let known = self.known_children();
        if let Err(error) = self.strays.end(&known, &running) {
            warn!(%error, "cannot look for processes that drivers have left behind");
            self.strays.pause = PAUSE_MAX;
        }
        if self.strays.may_be_left() {
            self.alarms
                .set(Alarm::Strays, Instant::now() + self.strays.pause);
            self.strays.pause = (self.strays.pause * 2).min(PAUSE_MAX);
        } else {
            self.alarms.clear(Alarm::Strays);
            self.strays.pause = PAUSE_MIN;
        }
        self.finish_ended();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_identifies_the_mediator_and_the_start_of_the_driver() {
        let mut strays = Strays::new(None);
        strays.token = "0123456789abcdef".into();
        strays.next_run();
        let run = strays.next_run();
        let tag = strays.tag(run);
        assert_eq!(strays.run_of(&tag), Some(run));
        assert!(is_from(&strays.token, &tag));
        for other in ["", "x", "0123456789abcdef", "0123456789abcdee-2"] {
            assert_eq!(strays.run_of(other), None, "{other}");
            assert!(!is_from(&strays.token, other), "{other}");
        }
        assert!(!is_from("", "-2"));
    }
}
