//! Ports that are reused immediately. IO.

use std::collections::HashSet;
use std::fs;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use amber_harness::wait_for;
use amber_proto::{Device, DeviceType, Frame, MsgType};
use nix::sys::socket::{MsgFlags, recv};

use crate::peer::Peer;
use crate::site::{Site, SiteOptions};
use crate::suite::{Attack, Context, Seen};
use crate::wire;

/// See the [module](self).
pub const ATTACKS: &[Attack] = &[
    Attack {
        name: "returned-port",
        expected: "a client on a port that was closed with answers under way keeps its id: \
                   nobody dies of the errors of the client before it",
        run: returned_port,
    },
    Attack {
        name: "unknown-deaths",
        expected: "4000 clients that come and go at once: a driver hears of the end of no client \
                   that it has not heard, and of none twice",
        run: unknown_deaths,
    },
];

/// The one driver; in the first attack it answers with the id of the client.
const DRIVER: Device = Device::new(DeviceType(77), 0);

fn returned_port(context: &Context) -> anyhow::Result<Seen> {
    const CONFIG: &str = r#"
        [mediator]
        listen = ["127.0.0.1:0"]
        [[driver]]
        device = "77:0"
        command = ["$attack", "driver", "whoami"]
    "#;
    let site = Site::start(&context.programs, &SiteOptions::default(), CONFIG)?;
    Peer::local(&site, None)?.wait_for_answer(DRIVER)?;
    let returns = context.pick(4_000, 80_000);
    let end = Instant::now() + context.pick(Duration::from_secs(6), Duration::from_secs(150));
    let mut rng = fastrand::Rng::with_seed(context.seed);
    let to = site.address();
    let question = wire::to(DRIVER, &wire::numbered(1, 0));
    let (mut compared, mut changed, mut silent) = (0, 0, 0);
    while compared < returns && Instant::now() < end {
        let first = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        let port = first.local_addr()?;
        // Answers to closed ports come back as errors, at different moments.
        for _ in 0..rng.usize(1..4) {
            first.send_to(&question, to)?;
        }
        drop(first);
        if rng.bool() {
            std::thread::sleep(Duration::from_micros(rng.u64(..100)));
        }
        // Another program may have been faster.
        let Ok(returned) = UdpSocket::bind(port) else {
            continue;
        };
        returned.connect(to)?;
        returned.set_read_timeout(Some(Duration::from_millis(300)))?;
        let id = ask(&returned, &question);
        std::thread::sleep(Duration::from_micros(rng.u64(..300)));
        let again = ask(&returned, &question);
        match (id, again) {
            (Some(id), Some(again)) => {
                compared += 1;
                changed += usize::from(id != again);
            }
            _ => silent += 1,
        }
    }
    let text = format!("{changed} of {compared} died, {silent} got no answer");
    // Requests of a dead client may be lost with it, one request may be lost anyway.
    Ok(Seen::new(changed == 0 && silent <= compared / 1000, text))
}

/// The id under which the driver knows a socket. Answers that waited before are dropped:
/// they may be for the client that had the port before.
fn ask(socket: &UdpSocket, question: &[u8]) -> Option<u32> {
    let mut buffer = [0; 256];
    while recv(socket.as_raw_fd(), &mut buffer, MsgFlags::MSG_DONTWAIT).is_ok() {}
    socket.send(question).ok()?;
    let length = socket.recv(&mut buffer).ok()?;
    let frame = Frame::from_datagram(&buffer[..length]).ok()?;
    wire::number(frame.message)
}

fn unknown_deaths(context: &Context) -> anyhow::Result<Seen> {
    const CLIENTS: u32 = 4000;
    const CONFIG: &str = r#"
        [mediator]
        listen = ["127.0.0.1:0"]
        [[driver]]
        device = "77:0"
        command = ["$attack", "driver", "record", "--work-us", "200", "--file", "$folder/record"]
    "#;
    let goodbye = wire::to(Device::MEDIATOR, &wire::kind(MsgType::ClientDied));
    let mut rng = fastrand::Rng::with_seed(context.seed);
    let (mut deaths, mut unknown, mut twice) = (0, 0, 0);
    for _ in 0..context.pick(1, 10) {
        let site = Site::start(&context.programs, &SiteOptions::default(), CONFIG)?;
        let local = Peer::local(&site, None)?;
        for number in 0..CLIENTS {
            let client = Peer::local(&site, None)?;
            for _ in 0..rng.u8(1..4) {
                client.send(&wire::to(DRIVER, &wire::numbered(number, 0)));
            }
            client.send(&goodbye);
            if number % 64 == 0 {
                // The mediator keeps up.
                local.statistics()?;
            }
        }
        local.statistics()?;
        wait_for("the driver to read all", || {
            let counters = local.describe(DRIVER)?.counters.unwrap_or_default();
            Ok((counters.queued() == 0).then_some(()))
        })?;
        let record = settled(&site)?;
        let (mut heard, mut dead) = (HashSet::new(), HashSet::new());
        for line in record.lines() {
            let mut words = line.split(' ');
            match (words.next(), words.next()) {
                (Some("ClientDied"), Some(id)) => {
                    deaths += 1;
                    unknown += usize::from(!heard.contains(id));
                    twice += usize::from(!dead.insert(id));
                }
                (_, Some(id)) => drop(heard.insert(id)),
                _ => {}
            }
        }
    }
    let text = format!("{deaths} deaths, {unknown} of unknown clients, {twice} told twice");
    Ok(Seen::new(deaths > 0 && unknown + twice == 0, text))
}

/// What the driver has recorded when it has read its pipe to the end.
fn settled(site: &Site) -> anyhow::Result<String> {
    let path = site.folder().join("record");
    let mut last = String::new();
    let mut since = Instant::now();
    wait_for("the driver to finish", || {
        let now = fs::read_to_string(&path)?;
        if now != last {
            last = now;
            since = Instant::now();
        }
        Ok((since.elapsed() > Duration::from_millis(500)).then(|| last.clone()))
    })
}
