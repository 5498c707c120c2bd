//! What the mediator's sockets accept, and to whom it sends because of it. IO.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use amber_harness::{copy_program, wait_for};
use amber_proto::{Device, DeviceType, MsgType};
use anyhow::Context as _;

use super::forged;
use crate::net::{Namespace, Networks};
use crate::peer::Peer;
use crate::site::{Site, SiteOptions};
use crate::suite::{Attack, Context, Seen};
use crate::wire;

/// See the [module](self).
pub const ATTACKS: &[Attack] = &[
    Attack {
        name: "group-destinations",
        expected: "broadcasts and multicasts, also from forged sources, reach no driver; the \
                   system keeps at most 64 kB of them, and they are counted",
        run: group_destinations,
    },
    Attack {
        name: "stolen-address",
        expected: "another user who binds 127.0.0.1 without a pause while the mediator starts \
                   never has its port",
        run: stolen_address,
    },
    Attack {
        name: "forged-subscriptions",
        expected: "1000 forged SUBSCRIBEs to a stream of 20 MB/s: a silent victim behind a router \
                   gets at most 10 kB/s after the first seconds, one in the robot's network at \
                   most 1.2 MB/s",
        run: forged_subscriptions,
    },
];

const RECORDER: Device = Device::new(DeviceType(77), 0);
const PUBLISHER: Device = Device::new(DeviceType(77), 1);
const PORT: u16 = 26233;

fn robot() -> SocketAddr {
    (Ipv4Addr::new(10, 77, 0, 1), PORT).into()
}

fn group_destinations(context: &Context) -> anyhow::Result<Seen> {
    let networks = match Networks::new() {
        Ok(networks) => networks,
        Err(error) => return Ok(Seen::skip(format!("{error:#}"))),
    };
    forged::accept_strange_sources(&networks)?;
    let config = format!(
        "
        [mediator]
        listen = ['0.0.0.0:{PORT}', '[::]:{PORT}']
        [[driver]]
        device = '77:0'
        command = ['$attack', 'driver', 'record', '--file', '$folder/record']
        "
    )
    .replace('\'', "\"");
    let place = SiteOptions {
        network: Some(&networks.robot),
        ..SiteOptions::default()
    };
    let site = Site::start(&context.programs, &place, &config)?;
    let local = Peer::local(&site, Some(&networks.robot))?;
    local.wait_until_up(RECORDER)?;
    let forger = networks.forger()?;
    let to_each = context.pick(500, 3000);
    let mut sent = 0_u64;
    for (from, to) in [
        ("10.77.0.2", "10.77.0.255"),
        ("10.77.0.2", "255.255.255.255"),
        ("127.0.0.1", "255.255.255.255"),
        ("10.77.0.2", "224.0.0.1"),
        ("fd77::2", "ff02::1"),
        ("fd77::1", "ff02::1"),
    ] {
        let (from, to): (IpAddr, IpAddr) = (from.parse()?, to.parse()?);
        let data = wire::to(RECORDER, &wire::numbered(1, 1300));
        for _ in 0..to_each {
            forger.send_to_all((from, 40_000).into(), (to, PORT).into(), &data)?;
            sent += 1;
        }
    }
    // What comes afterwards is handled afterwards.
    for (own, robot) in [("10.77.0.2", "10.77.0.1"), ("fd77::2", "fd77::1")] {
        let to = SocketAddr::new(robot.parse()?, PORT);
        Peer::at(Some(&networks.neighbour), own.parse()?, to)?.statistics()?;
    }
    let kept = kept_bytes(&networks.robot)?;
    thread::sleep(Duration::from_millis(200));
    let statistics = local.statistics()?;
    let counted = statistics
        .dropped
        .iter()
        .find(|counter| counter.name == "datagram_to_several_machines")
        .map_or(0, |counter| counter.value);
    let record = fs::read_to_string(site.folder().join("record")).unwrap_or_default();
    let reached = record
        .lines()
        .filter(|line| line.starts_with("Data "))
        .count();
    let holds = reached == 0 && kept <= 64_000 && counted > 0 && counted <= sent;
    Ok(Seen::new(
        holds,
        format!("{reached} of {sent} reached the driver, {kept} bytes kept, {counted} counted"),
    ))
}

/// The bytes that wait in all sockets of the mediator's port.
fn kept_bytes(network: &Namespace) -> anyhow::Result<u64> {
    network.run(|| {
        let mut bytes = 0;
        for table in ["/proc/thread-self/net/udp", "/proc/thread-self/net/udp6"] {
            for line in fs::read_to_string(table)?.lines().skip(1) {
                let fields: Vec<&str> = line.split_whitespace().collect();
                if fields[1].ends_with(&format!(":{PORT:04X}")) {
                    let waiting = fields[4].rsplit(':').next().context("a queue")?;
                    bytes += u64::from_str_radix(waiting, 16)?;
                }
            }
        }
        Ok(bytes)
    })
}

fn stolen_address(context: &Context) -> anyhow::Result<Seen> {
    if fs::metadata("/proc/self")?.uid() != 0 {
        return Ok(Seen::skip("needs root, to act as another user"));
    }
    // A user that does not exist otherwise, who must be able to read this program.
    let user = 1_000_000 + 2 * std::process::id();
    let folder = tempfile::Builder::new().prefix("amber-attack-").tempdir()?;
    std::os::unix::fs::chown(folder.path(), Some(user), Some(user))?;
    let program = folder.path().join("attack");
    copy_program(&context.programs.this, &program)?;
    let rounds = context.pick(3, 10);
    let (mut stolen, mut started) = (0, 0);
    for _ in 0..rounds {
        let free = UdpSocket::bind("127.0.0.1:0")?.local_addr()?.port();
        let mut thief = Command::new(&program)
            .args(["driver", "steal", "--port", &free.to_string()])
            .uid(user)
            .gid(user)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()?;
        let config = format!("[mediator]\nlisten = [\"0.0.0.0:{free}\"]\n");
        // The thief may have the port at this very moment; then the mediator refuses to start.
        let site = Site::start(&context.programs, &SiteOptions::default(), &config);
        thread::sleep(Duration::from_millis(100));
        let has_it = thief.try_wait()?.is_some();
        thief.kill()?;
        thief.wait()?;
        started += u32::from(site.is_ok());
        stolen += u32::from(site.is_ok() && has_it);
    }
    Ok(Seen::new(
        stolen == 0 && started > 0,
        format!("stolen in {stolen} of {started} starts"),
    ))
}

fn forged_subscriptions(context: &Context) -> anyhow::Result<Seen> {
    let networks = match Networks::new() {
        Ok(networks) => networks,
        Err(error) => return Ok(Seen::skip(format!("{error:#}"))),
    };
    // The neighbour is also the router to another network.
    networks.neighbour.ip("addr add 10.99.0.9/32 dev lo")?;
    networks.robot.ip("route add 10.99.0.0/16 via 10.77.0.2")?;
    let (mut texts, mut holds) = (Vec::new(), true);
    for (place, victim, most) in [
        ("behind a router", Ipv4Addr::new(10, 99, 0, 9), 10_000.0),
        ("in its network", Ipv4Addr::new(10, 77, 0, 2), 1_200_000.0),
    ] {
        let rates = flood(context, &networks, victim)?;
        let [first, later] = rates;
        holds &= later <= most && first > 0.0;
        texts.push(format!(
            "{place} {:.3} MB/s, then {:.3} MB/s",
            first / 1e6,
            later / 1e6
        ));
    }
    Ok(Seen::new(holds, texts.join("; ")))
}

/// Subscribes in the name of a victim. Returns the bytes per second that the robot sends, in the
/// first seconds and afterwards.
fn flood(context: &Context, networks: &Networks, victim: Ipv4Addr) -> anyhow::Result<[f64; 2]> {
    const PORTS: u16 = 1000;
    let config = format!(
        "
        [mediator]
        listen = ['0.0.0.0:{PORT}']
        [[driver]]
        device = '77:1'
        command = ['$attack', 'driver', 'publish', '--per-second', '10', '--bytes', '2000']
        "
    )
    .replace('\'', "\"");
    let place = SiteOptions {
        network: Some(&networks.robot),
        ..SiteOptions::default()
    };
    let site = Site::start(&context.programs, &place, &config)?;
    let local = Peer::local(&site, Some(&networks.robot))?;
    local.wait_until_up(PUBLISHER)?;
    // Open ports that nobody reads: the victim sends no error.
    let silent = networks.neighbour.run(|| {
        let sockets = (0..PORTS).map(|port| UdpSocket::bind((victim, 20_000 + port)));
        Ok(sockets.collect::<Result<Vec<_>, _>>()?)
    })?;
    let forger = networks.forger()?;
    let subscribe = wire::to(PUBLISHER, &wire::kind(MsgType::Subscribe));
    for port in 0..PORTS {
        forger.send((victim, 20_000 + port).into(), robot(), &subscribe)?;
        // Not faster than a small queue of the driver allows.
        if port % 100 == 99 {
            thread::sleep(Duration::from_millis(20));
        }
    }
    wait_for("all to be clients", || {
        Ok((local.statistics()?.clients() >= PORTS.into()).then_some(()))
    })?;
    let mut rates = [0.0; 2];
    for (rate, time) in rates.iter_mut().zip([3, context.pick(3, 10)]) {
        let (start, before) = (Instant::now(), sent_bytes(&networks.robot)?);
        thread::sleep(Duration::from_secs(time));
        let bytes = sent_bytes(&networks.robot)? - before;
        *rate = bytes as f64 / start.elapsed().as_secs_f64();
    }
    drop(silent);
    Ok(rates)
}

/// The bytes that the robot's first card has sent.
fn sent_bytes(network: &Namespace) -> anyhow::Result<u64> {
    network.run(|| {
        let table = fs::read_to_string("/proc/thread-self/net/dev")?;
        let line = table
            .lines()
            .find_map(|line| line.trim().strip_prefix("robot0:"));
        let sent = line.and_then(|line| line.split_whitespace().nth(8));
        Ok(sent.context("robot0 is missing")?.parse()?)
    })
}
