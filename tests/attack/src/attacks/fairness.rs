//! Drivers and clients that take more than their share. IO.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use amber_harness::{PATIENCE, wait_for, within};
use amber_proto::{Device, DeviceType, MsgType};
use anyhow::ensure;

use crate::net::{Namespace, Networks};
use crate::peer::{Measured, Peer, Probe};
use crate::site::{Site, SiteOptions};
use crate::suite::{Attack, Context, Seen, median_of};
use crate::wire;

/// See the [module](self).
pub const ATTACKS: &[Attack] = &[
    Attack {
        name: "goodbye-overtakes",
        expected: "a driver that takes 10 ms for a command hears of the good-bye after at most \
                   60 of the 500 commands of the dead client, within 1 s",
        run: goodbye_overtakes,
    },
    Attack {
        name: "junk-drivers",
        expected: "drivers that write junk without end: half of the answers of others within \
                   2.5 ms with one, 8 ms with eight",
        run: junk_drivers,
    },
    Attack {
        name: "host-fairness",
        expected: "1000 ports of one host ask a driver for 112 % of what it can do: a client of \
                   another host that asks 10 times a second loses at most 5 %",
        run: host_fairness,
    },
];

const DRIVER: Device = Device::new(DeviceType(77), 0);
const PORT: u16 = 26233;

fn goodbye_overtakes(context: &Context) -> anyhow::Result<Seen> {
    const COMMANDS: u32 = 500;
    const CONFIG: &str = r#"
        [mediator]
        listen = ["127.0.0.1:0"]
        [[driver]]
        device = "77:0"
        command = ["$attack", "driver", "record", "--work-us", "10000", "--file", "$folder/record"]
    "#;
    let rounds = context.pick(1, 3);
    let (mut times, mut counts) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        // A new driver each time: nothing is known of its pace.
        let site = Site::start(&context.programs, &SiteOptions::default(), CONFIG)?;
        let client = Peer::local(&site, None)?;
        client.wait_until_up(DRIVER)?;
        for number in 0..COMMANDS {
            client.send(&wire::to(DRIVER, &wire::numbered(number, 0)));
            if (number + 1) % 50 == 0 {
                // The mediator has read them: no socket buffer overflows.
                client.statistics()?;
            }
        }
        let queued = client.describe(DRIVER)?.counters.unwrap_or_default();
        ensure!(
            queued.frames_in() >= u64::from(COMMANDS) && queued.dropped_full() == 0,
            "the mediator has not queued all {COMMANDS} commands: {queued:?}"
        );
        let start = Instant::now();
        client.send(&wire::to(DRIVER, &wire::kind(MsgType::ClientDied)));
        let record = || fs::read_to_string(site.folder().join("record")).unwrap_or_default();
        let heard = within(PATIENCE, || {
            Ok(record().contains("ClientDied").then(|| start.elapsed()))
        })?;
        times.push(heard.unwrap_or(PATIENCE));
        let record = record();
        let before = record
            .lines()
            .take_while(|line| !line.starts_with("ClientDied"));
        counts.push(before.filter(|line| line.starts_with("Data")).count());
    }
    let (time, count) = (median_of(times), median_of(counts));
    let text = format!(
        "heard after {count} commands, {:.2} s late",
        time.as_secs_f64()
    );
    Ok(Seen::new(
        count <= 60 && time <= Duration::from_secs(1),
        text,
    ))
}

fn junk_drivers(context: &Context) -> anyhow::Result<Seen> {
    let rounds = context.pick(3, 7);
    let mut medians = Vec::new();
    for junk in [0, 1, 8] {
        let mut config = String::from(
            r#"
            [mediator]
            listen = ["127.0.0.1:0"]
            [[driver]]
            device = "77:0"
            command = ["$attack", "driver", "echo"]
            "#,
        );
        for id in 1..=junk {
            config += &format!(
                r#"
                [[driver]]
                device = "77:{id}"
                command = ["$attack", "driver", "junk"]
                "#
            );
        }
        let site = Site::start(&context.programs, &SiteOptions::default(), &config)?;
        let local = Peer::local(&site, None)?;
        for id in 1..=junk {
            wait_for("a driver to write junk", || {
                let driver = local.describe(Device::new(DeviceType(77), id))?;
                let written = driver.counters.unwrap_or_default().frames_out();
                Ok((written > 0).then_some(()))
            })?;
        }
        let mut values = Vec::new();
        for _ in 0..rounds {
            let innocent = Peer::local(&site, None)?;
            innocent.wait_for_echo(DRIVER)?;
            let measured = Probe::run(innocent, DRIVER, 100, Duration::from_millis(800));
            values.push(measured.median());
        }
        medians.push(1000.0 * median_of(values).as_secs_f64());
    }
    let [alone, one, eight] = medians[..] else {
        unreachable!("three cases");
    };
    let text =
        format!("half within {one:.1} ms with one, {eight:.1} ms with eight ({alone:.1} alone)");
    Ok(Seen::new(one <= 2.5 && eight <= 8.0, text))
}

fn host_fairness(context: &Context) -> anyhow::Result<Seen> {
    const PORTS: usize = 1000;
    let networks = match Networks::new() {
        Ok(networks) => networks,
        Err(error) => return Ok(Seen::skip(format!("{error:#}"))),
    };
    let place = SiteOptions {
        network: Some(&networks.robot),
        ..SiteOptions::default()
    };
    // The driver takes a millisecond for each: 1000 in a second.
    let config = format!(
        r#"
        [mediator]
        listen = ["0.0.0.0:{PORT}"]
        [[driver]]
        device = "77:0"
        command = ["$attack", "driver", "echo", "--work-us", "1000"]
        "#
    );
    let site = Site::start(&context.programs, &place, &config)?;
    let local = Peer::local(&site, Some(&networks.robot))?;
    local.wait_for_echo(DRIVER)?;
    let at = |network: &Namespace, own: [u8; 4], to: [u8; 4]| {
        let to = SocketAddr::from((Ipv4Addr::from(to), PORT));
        Peer::at(Some(network), Ipv4Addr::from(own).into(), to)
    };
    let many: anyhow::Result<Vec<Peer>> = (0..PORTS)
        .map(|_| at(&networks.neighbour, [10, 77, 0, 2], [10, 77, 0, 1]))
        .collect();
    let many = match many {
        Ok(many) => many,
        Err(error) => {
            return Ok(Seen::skip(format!(
                "{PORTS} sockets: {error:#}; see `ulimit -n`"
            )));
        }
    };
    let single = at(&networks.far, [10, 78, 0, 2], [10, 78, 0, 1])?;
    let stop = AtomicBool::new(false);
    let time = context.pick(Duration::from_secs(6), Duration::from_secs(15));
    let (measured, asked) = thread::scope(|scope| {
        let flood = scope.spawn(|| take_turns(&many, 1120, &stop));
        let full = wait_for("the queue of the driver to be full", || {
            let counters = local.describe(DRIVER)?.counters.unwrap_or_default();
            Ok((counters.dropped_full() > 0).then_some(()))
        });
        let measured = full.map(|()| Probe::run(single, DRIVER, 10, time));
        stop.store(true, Ordering::Relaxed);
        (measured, flood.join().unwrap_or(0))
    });
    let measured: Measured = measured?;
    let text = format!(
        "lost {:.1} % of {} beside {asked} requests of the other host (half within {:.0} ms)",
        measured.lost_percent(),
        measured.asked,
        1000.0 * measured.median().as_secs_f64()
    );
    Ok(Seen::new(measured.lost_percent() <= 5.0, text))
}

/// Each asks when its turn comes, so many in a second together. They begin with one
/// request each at once. Returns how many there were.
fn take_turns(peers: &[Peer], per_second: u32, stop: &AtomicBool) -> usize {
    let pause = Duration::from_secs(1) / per_second;
    let mut due = Instant::now();
    let mut asked = 0;
    for (number, peer) in peers.iter().cycle().enumerate() {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        peer.send(&wire::to(DRIVER, &wire::numbered(number as u32, 32)));
        peer.drain();
        asked += 1;
        if asked > peers.len() {
            due = (due + pause).max(Instant::now() - Duration::from_millis(100));
            thread::sleep(due.saturating_duration_since(Instant::now()));
        }
    }
    asked
}
