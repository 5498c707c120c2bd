//! Drivers that do not want to end, and a guard that cannot work. IO.

use std::fs;
use std::time::Duration;

use amber_harness::processes::Marked;
use amber_harness::{wait_for, within};
use amber_proto::mediator::{DriverState, change_driver::Action};
use amber_proto::{Device, DeviceType};
use anyhow::{Context as _, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::peer::Peer;
use crate::site::{Site, SiteOptions};
use crate::suite::{Attack, Context, Seen};
use crate::wire;

/// See the [module](self).
pub const ATTACKS: &[Attack] = &[
    Attack {
        name: "grace-zero",
        expected: "with grace_ms = 0, stop and restart of `sleep 1000` leave the mediator \
                   answering, and SIGTERM ends it",
        run: grace_zero,
    },
    Attack {
        name: "leaves-group",
        expected: "nothing of drivers that leave their process group and ignore SIGTERM is left \
                   8 s after stop, SIGTERM, SIGKILL of the mediator, and killall -9 of its name",
        run: leaves_group,
    },
    Attack {
        name: "frozen-guard",
        expected: "a guard that was frozen for thousands of restarts still ends every driver \
                   when the mediator is killed",
        run: frozen_guard,
    },
    Attack {
        name: "stdin-closed-driver",
        expected: "a driver that closes its stdin does not stay up for 15 s while it swallows \
                   requests",
        run: stdin_closed_driver,
    },
];

const DRIVER: Device = Device::new(DeviceType(77), 0);

/// How long whatever is to end may take: the whole stop ladder, and the guard's.
const END: Duration = Duration::from_secs(8);

fn start(context: &Context, drivers: &str) -> anyhow::Result<Site> {
    let config = format!("[mediator]\nlisten = [\"127.0.0.1:0\"]\n{drivers}");
    Site::start(&context.programs, &SiteOptions::default(), &config)
}

fn grace_zero(context: &Context) -> anyhow::Result<Seen> {
    const SLEEPER: &str = "
        [[driver]]
        device = '77:0'
        command = ['sleep', '1000']
        grace_ms = 0
        backoff_min_ms = 100
    ";
    let rounds = context.pick(1, 3);
    let mut hung = Vec::new();
    for what in ["stop", "restart", "SIGTERM"] {
        let mut hangs = 0;
        for _ in 0..rounds {
            let mut site = start(context, &SLEEPER.replace('\'', "\""))?;
            let local = Peer::local(&site, None)?;
            wait_for("the driver", || {
                Ok((!site.drivers().is_empty()).then_some(()))
            })?;
            let before = site.drivers();
            match what {
                "stop" => local.request_change(DRIVER, Action::Stop),
                "restart" => local.request_change(DRIVER, Action::Restart),
                _ => site.signal(Signal::SIGTERM)?,
            }
            let gone = within(END, || {
                let now = site.drivers();
                Ok((!now.iter().any(|driver| before.contains(driver))).then_some(()))
            })?;
            let fine = match what {
                "SIGTERM" => site.ended_within(END)?.is_some(),
                _ => local.is_answered(Duration::from_secs(3)),
            };
            hangs += usize::from(!fine || gone.is_none());
        }
        hung.push((what, hangs));
    }
    let words: Vec<_> = hung
        .iter()
        .map(|(what, n)| format!("{what} {n} of {rounds}"))
        .collect();
    let text = format!("hangs: {}", words.join(", "));
    Ok(Seen::new(hung.iter().all(|(_, hangs)| *hangs == 0), text))
}

/// The driver joins the group of the mediator; the shells make groups of their own.
const LEAVING: &str = r#"
    [[driver]]
    device = "77:0"
    command = ["$attack", "driver", "leave-group"]
    [[driver]]
    device = "77:1"
    command = ["bash", "-c", "timeout 1000 sleep 999; true"]
    [[driver]]
    device = "77:2"
    command = ["bash", "-c", "set -m; sleep 999 & wait"]
"#;

fn leaves_group(context: &Context) -> anyhow::Result<Seen> {
    let mut words = Vec::new();
    let mut all_gone = true;
    for way in ["stop", "SIGTERM", "SIGKILL", "killall -9"] {
        let mut site = start(context, LEAVING)?;
        wait_for("the drivers to leave their groups", || {
            let drivers = site.drivers();
            let sleeps = drivers.iter().filter(|d| d.command == "sleep 999").count();
            let left = drivers.iter().any(|d| d.group == site.pid());
            // Until the guard has its own name, it is another process with that of the mediator.
            let mediator = name_of(site.pid());
            let guarded = guard(&site).is_some_and(|guard| name_of(guard.pid) != mediator);
            Ok((sleeps == 2 && left && guarded).then_some(()))
        })?;
        match way {
            "stop" => {
                let local = Peer::local(&site, None)?;
                for id in 0..3 {
                    local.change(Device::new(DeviceType(77), id), Action::Stop)?;
                }
            }
            "SIGTERM" => site.signal(Signal::SIGTERM)?,
            "SIGKILL" => site.signal(Signal::SIGKILL)?,
            _ => kill_all_by_name(&mut site)?,
        }
        if way != "stop" {
            site.ended_within(END)?;
        }
        within(END, || Ok(site.drivers().is_empty().then_some(())))?;
        let left = site.drivers();
        all_gone &= left.is_empty();
        let named: Vec<_> = left.iter().map(|driver| short(&driver.command)).collect();
        words.push(format!("{way} leaves {} {named:?}", left.len()));
    }
    Ok(Seen::new(all_gone, words.join(", ")))
}

/// The words of a command without the path of its program.
fn short(command: &str) -> String {
    let (program, rest) = command.split_once(' ').unwrap_or((command, ""));
    let name = program.rsplit('/').next().unwrap_or(program);
    format!("{name} {rest}").trim().to_owned()
}

/// What `killall -9 NAME` does, for the processes of this site only.
fn kill_all_by_name(site: &mut Site) -> anyhow::Result<()> {
    let mediator = name_of(site.pid());
    ensure!(!mediator.is_empty(), "the mediator has no name");
    let same = site
        .processes()
        .into_iter()
        .filter(|p| name_of(p.pid) == mediator);
    let pids: Vec<u32> = same.map(|process| process.pid).collect();
    site.signal(Signal::SIGKILL)?;
    for pid in pids {
        // Nothing has reaped it yet: only the mediator does.
        let _ = kill(Pid::from_raw(pid.cast_signed()), Signal::SIGKILL);
    }
    Ok(())
}

/// The name that `killall` compares.
fn name_of(pid: u32) -> String {
    fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default()
}

fn guard(site: &Site) -> Option<Marked> {
    let mut all = site.processes().into_iter();
    all.find(|process| process.command.contains("guard"))
}

fn frozen_guard(context: &Context) -> anyhow::Result<Seen> {
    /// Lines about so many restarts are more than a pipe of 64 KiB holds.
    const RESTARTS: u32 = 4500;
    if context.quick {
        return Ok(Seen::skip(
            "thousands of restarts take too long for the short form",
        ));
    }
    let mut drivers = String::new();
    // They end at once, and come back at once.
    for id in 1..=10 {
        drivers += &format!(
            "
            [[driver]]
            device = \"77:{id}\"
            command = [\"true\"]
            backoff_min_ms = 1
            backoff_max_ms = 1
            deaths = 1000000
            "
        );
    }
    drivers += r#"
        [[driver]]
        device = "77:0"
        command = ["bash", "-c", "sleep 999; true"]
    "#;
    let mut site = start(context, &drivers)?;
    let local = Peer::local(&site, None)?;
    let guard = wait_for("the guard", || Ok(guard(&site)))?;
    let pid = Pid::from_raw(guard.pid.cast_signed());
    local.change(DRIVER, Action::Stop)?;
    wait_for("the driver to end", || {
        let state = local.describe(DRIVER)?.state();
        Ok((state == DriverState::Down).then_some(()))
    })?;
    kill(pid, Signal::SIGSTOP).context("the guard is gone")?;
    let mut restarts = 0;
    let enough = within(Duration::from_secs(180), || {
        restarts = 0;
        for id in 1..=10 {
            let driver = local.describe(Device::new(DeviceType(77), id))?;
            restarts += driver.restarts.unwrap_or(0);
        }
        Ok((restarts >= RESTARTS).then_some(()))
    })?;
    ensure!(
        enough.is_some(),
        "only {restarts} restarts: the pipe of the guard may not be full"
    );
    local.change(DRIVER, Action::Start)?;
    let sleeps = |site: &Site| {
        let drivers = site.drivers();
        drivers.iter().filter(|d| d.command == "sleep 999").count()
    };
    wait_for("the driver to start", || {
        Ok((sleeps(&site) > 0).then_some(()))
    })?;
    // Another guard may have taken over by now.
    let _ = kill(pid, Signal::SIGCONT);
    site.signal(Signal::SIGKILL)?;
    site.ended_within(END)?;
    within(END, || Ok((sleeps(&site) == 0).then_some(())))?;
    let left = sleeps(&site);
    Ok(Seen::new(
        left == 0,
        format!("{left} left after {restarts} restarts"),
    ))
}

fn stdin_closed_driver(context: &Context) -> anyhow::Result<Seen> {
    const DEAF: &str = r#"
        [[driver]]
        device = "77:0"
        command = ["sh", "-c", "exec sleep 1000 <&-"]
    "#;
    let site = start(context, DEAF)?;
    let local = Peer::local(&site, None)?;
    let first = wait_for("the driver", || Ok(local.describe(DRIVER)?.pid))?;
    // Announced, so that it is told what cannot be used.
    local.statistics()?;
    let question = wire::to(DRIVER, &wire::numbered(1, 0));
    let noticed = within(Duration::from_secs(15), || {
        local.send(&question);
        let told = local.receive(Duration::from_millis(200));
        let told = told.is_some_and(|datagram| wire::says_driver_died(&datagram, DRIVER));
        let driver = local.describe(DRIVER)?;
        let replaced = driver.pid.is_some_and(|pid| pid != first);
        let state = driver.state();
        let up = [DriverState::Starting, DriverState::Up].contains(&state);
        let how = match (told, replaced) {
            (true, _) => "the client was told",
            (_, true) => "the driver was replaced",
            _ => "the driver is not up",
        };
        Ok((told || replaced || !up).then_some(how))
    })?;
    Ok(match noticed {
        Some(how) => Seen::new(true, how),
        None => Seen::new(false, "the driver stays up, and requests are swallowed"),
    })
}
