//! Little effort for the attacker, much work for the mediator. IO.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use amber_harness::usage::footprint;
use amber_harness::{PATIENCE, wait_for, within};
use amber_proto::mediator::{ListClients, request};
use amber_proto::{Device, DeviceType, MsgType};
use anyhow::{Context as _, bail, ensure};

use crate::net::{Forger, Networks};
use crate::peer::{Measured, Peer, Probe};
use crate::site::{Site, SiteOptions};
use crate::suite::{Attack, Context, Seen, median_of};
use crate::wire::{self, FromMediator};

/// See the [module](self).
pub const ATTACKS: &[Attack] = &[
    Attack {
        name: "duplicate-ids",
        expected: "a header with one id 32 000 times, once a second: nobody waits longer than \
                   60 ms; 64 a second: half of the answers within 20 ms; three times in a \
                   header is three datagrams",
        run: duplicate_ids,
    },
    Attack {
        name: "list-clients",
        expected: "50 ports of one host that ask for 4000 clients 200 times a second each: half \
                   of the answers to others within 20 ms, none lost (at most 1 %)",
        run: list_clients,
    },
    Attack {
        name: "wide-publisher",
        expected: "a driver that publishes 4 kB to 1000 subscribers without a pause: half of the \
                   answers to others within 20 ms, 99 % within 150 ms",
        run: wide_publisher,
    },
];

const ECHO: Device = Device::new(DeviceType(77), 0);
const ATTACKER: Device = Device::new(DeviceType(77), 1);
const RECORDER: Device = Device::new(DeviceType(77), 1);
const PORT: u16 = 26233;

/// A driver writes as fast as it can.
const NO_PAUSE: u32 = 1_000_000;

/// How often the innocent asks.
const PER_SECOND: u32 = 100;

fn milliseconds(time: Duration) -> f64 {
    1000.0 * time.as_secs_f64()
}

/// Measures round by round, and gives the median over the rounds of something.
fn median_of_rounds(
    rounds: u32,
    mut round: impl FnMut() -> anyhow::Result<Measured>,
    what: impl Fn(&Measured) -> Duration,
) -> anyhow::Result<Duration> {
    let mut values = Vec::new();
    for _ in 0..rounds {
        values.push(what(&round()?));
    }
    Ok(median_of(values))
}

/// A mediator with an honest driver, and one that names a subscriber too often.
fn with_duplicates(context: &Context, per_second: u32, times: u32) -> anyhow::Result<(Site, Peer)> {
    let config = format!(
        "
        [mediator]
        listen = ['127.0.0.1:0']
        [[driver]]
        device = '77:0'
        command = ['$attack', 'driver', 'echo']
        [[driver]]
        device = '77:1'
        command = ['$attack', 'driver', 'duplicate', '--per-second', '{per_second}', '--times', '{times}']
        "
    )
    .replace('\'', "\"");
    let site = Site::start(&context.programs, &SiteOptions::default(), &config)?;
    let attacker = Peer::local(&site, None)?;
    attacker.wait_for_echo(ECHO)?;
    let subscribe = wire::to(ATTACKER, &wire::kind(MsgType::Subscribe));
    wait_for("a publication", || {
        attacker.send(&subscribe);
        Ok(attacker.receive(Duration::from_millis(500)))
    })?;
    Ok((site, attacker))
}

fn duplicate_ids(context: &Context) -> anyhow::Result<Seen> {
    let rounds = context.pick(3, 7);
    let round = |site: &Site, attacker: &Peer| {
        attacker.drain();
        let innocent = Peer::local(site, None)?;
        Ok(Probe::run(
            innocent,
            ECHO,
            PER_SECOND,
            Duration::from_millis(1200),
        ))
    };
    let (site, attacker) = with_duplicates(context, 1, 32_000)?;
    let worst = median_of_rounds(rounds, || round(&site, &attacker), Measured::worst)?;
    drop(site);
    let (site, attacker) = with_duplicates(context, 64, 32_000)?;
    let half = median_of_rounds(rounds, || round(&site, &attacker), Measured::median)?;
    drop(site);
    let few = few_duplicates(context)?;
    let text = format!(
        "once a second the slowest answer takes {:.1} ms; 64 a second: half within {:.1} ms; \
         three times in a header: {few} datagrams",
        milliseconds(worst),
        milliseconds(half)
    );
    let holds = worst <= Duration::from_millis(60) && half <= Duration::from_millis(20);
    Ok(Seen::new(holds && few == 3, text))
}

/// How many datagrams come of a header that names a client three times.
fn few_duplicates(context: &Context) -> anyhow::Result<usize> {
    let (_site, client) = with_duplicates(context, 20, 3)?;
    let mut numbers = Vec::new();
    for _ in 0..12 {
        let datagram = client
            .receive(Duration::from_secs(5))
            .context("no publication")?;
        let frame = amber_proto::Frame::from_datagram(&datagram)?;
        numbers.extend(wire::number(frame.message));
    }
    // The first and the last may be cut off.
    let middle = numbers[numbers.len() / 2];
    Ok(numbers.iter().filter(|number| **number == middle).count())
}

fn list_clients(context: &Context) -> anyhow::Result<Seen> {
    const ASKERS: usize = 50;
    let networks = match Networks::new() {
        Ok(networks) => networks,
        Err(error) => return Ok(Seen::skip(format!("{error:#}"))),
    };
    let place = SiteOptions {
        network: Some(&networks.robot),
        ..SiteOptions::default()
    };
    let config = format!(
        "
        [mediator]
        listen = ['0.0.0.0:{PORT}']
        [[driver]]
        device = '77:0'
        command = ['$attack', 'driver', 'echo']
        [[driver]]
        device = '77:1'
        command = ['$attack', 'driver', 'record', '--file', 'record']
        "
    )
    .replace('\'', "\"");
    let site = Site::start(&context.programs, &place, &config)?;
    let local = Peer::local(&site, Some(&networks.robot))?;
    local.wait_for_echo(ECHO)?;
    // A driver that is not up would make the mediator send to clients that do not exist.
    local.wait_until_up(RECORDER)?;
    let robot = (Ipv4Addr::new(10, 77, 0, 1), PORT).into();
    make_known(&networks.forger()?, robot, &local)?;

    let own = Ipv4Addr::new(10, 77, 0, 2).into();
    let askers: anyhow::Result<Vec<Peer>> = (0..ASKERS)
        .map(|_| Peer::at(Some(&networks.neighbour), own, robot))
        .collect();
    let askers = askers?;
    for asker in &askers {
        // Proves the address.
        asker.statistics()?;
    }
    let known_before = known_clients(&local)?;
    let alone = Probe::run(local, ECHO, PER_SECOND, Duration::from_secs(1));
    let innocent = Peer::local(&site, Some(&networks.robot))?;
    let time = context.pick(Duration::from_secs(3), Duration::from_secs(8));
    let stop = AtomicBool::new(false);
    let (measured, used, replies) = thread::scope(|scope| {
        let asking = scope.spawn(|| ask_without_end(&askers, &stop));
        thread::sleep(Duration::from_millis(500));
        let before = footprint(site.pid());
        let start = Instant::now();
        let measured = Probe::run(innocent, ECHO, PER_SECOND, time);
        let after = footprint(site.pid());
        let elapsed = start.elapsed();
        stop.store(true, Ordering::Relaxed);
        let replies = asking.join().unwrap_or(0);
        let used = after.zip(before).map(|(after, before)| {
            100.0 * (after.cpu - before.cpu).as_secs_f64() / elapsed.as_secs_f64()
        });
        (measured, used.unwrap_or(0.0), replies)
    });
    let known_after = known_clients(&Peer::local(&site, Some(&networks.robot))?)?;
    ensure!(
        known_before >= FORGED_CLIENTS && known_after >= FORGED_CLIENTS,
        "the mediator knew {known_before} clients before and {known_after} after the \
         measurement: lists must have at least {FORGED_CLIENTS}"
    );
    let text = format!(
        "half within {:.1} ms (alone {:.1}), lost {:.1} %, {used:.0} % of one core, {replies} \
         replies with {known_after} clients",
        milliseconds(measured.median()),
        milliseconds(alone.median()),
        measured.lost_percent(),
    );
    let holds = measured.median() <= Duration::from_millis(20)
        && measured.lost_percent() <= 1.0
        && replies > 0;
    Ok(Seen::new(holds, text))
}

/// Clients in the lists that the attack asks for, beside those of this program.
const FORGED_CLIENTS: usize = FORGED_HOSTS * PORTS_PER_HOST;
const FORGED_HOSTS: usize = 4;
/// Fewer than the mediator knows of one host.
const PORTS_PER_HOST: usize = 1000;

/// Makes the mediator know clients that do not exist. It never sends to them, so no error
/// reports that they are missing.
///
/// Packets get lost when the machine is busy. So each group is sent until all its clients
/// are known: a group without progress is an error.
fn make_known(forger: &Forger, robot: SocketAddr, local: &Peer) -> anyhow::Result<()> {
    const GROUP: usize = 50;
    let data = wire::to(RECORDER, &wire::numbered(1, 0));
    let sources: Vec<SocketAddr> = (0..FORGED_HOSTS)
        .flat_map(|host| (0..PORTS_PER_HOST).map(move |port| (host, port)))
        .map(|(host, port)| {
            let address = Ipv4Addr::new(10, 77, 0, 20 + host as u8);
            (address, 30_000 + port as u16).into()
        })
        .collect();
    let mut goal = known_clients(local)?;
    for group in sources.chunks(GROUP) {
        goal += group.len();
        let mut known = 0;
        let all_known = within(PATIENCE, || {
            for source in group {
                forger.send(*source, robot, &data)?;
            }
            known = known_clients(local)?;
            Ok((known >= goal).then_some(()))
        })?;
        if all_known.is_none() {
            let dropped = local.dropped()?;
            bail!("{known} of {goal} clients are known after {PATIENCE:?}; dropped: {dropped}");
        }
    }
    Ok(())
}

fn known_clients(peer: &Peer) -> anyhow::Result<usize> {
    Ok(peer.statistics()?.clients.unwrap_or(0) as usize)
}

/// Each asks 200 times a second. Returns how many replies came.
fn ask_without_end(askers: &[Peer], stop: &AtomicBool) -> usize {
    let mut replies = 0;
    let mut due = Instant::now();
    for number in 1.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let question = wire::request(
            number,
            request::What::ListClients(ListClients { skip: None }),
        );
        for asker in askers {
            asker.send(&question);
            replies += take_lists(asker);
        }
        due = (due + Duration::from_millis(5)).max(Instant::now() - Duration::from_millis(50));
        thread::sleep(due.saturating_duration_since(Instant::now()));
    }
    replies
}

/// Takes what has come, and proves the address where that is asked for. Returns how many
/// lists there were. They are not read: the attacker does not care.
fn take_lists(asker: &Peer) -> usize {
    let mut lists = 0;
    while let Some(datagram) = asker.receive_now() {
        if datagram.len() > 1000 {
            lists += 1;
        } else if let FromMediator::Ping(pong) = wire::from_mediator(&datagram) {
            asker.send(&pong);
        }
    }
    lists
}

fn wide_publisher(context: &Context) -> anyhow::Result<Seen> {
    const SUBSCRIBERS: usize = 1000;
    let config = format!(
        "
        [mediator]
        listen = ['127.0.0.1:0']
        [[driver]]
        device = '77:0'
        command = ['$attack', 'driver', 'echo']
        [[driver]]
        device = '77:1'
        command = ['$attack', 'driver', 'publish', '--per-second', '{NO_PAUSE}', '--bytes', '4000']
        "
    )
    .replace('\'', "\"");
    let site = Site::start(&context.programs, &SiteOptions::default(), &config)?;
    let local = Peer::local(&site, None)?;
    local.wait_for_echo(ECHO)?;
    let subscribe = wire::to(ATTACKER, &wire::kind(MsgType::Subscribe));
    // They never read: the system drops what their buffers do not hold.
    let subscribers: anyhow::Result<Vec<Peer>> =
        (0..SUBSCRIBERS).map(|_| Peer::local(&site, None)).collect();
    let subscribers = subscribers?;
    for some in subscribers.chunks(100) {
        for peer in some {
            peer.send(&subscribe);
        }
        thread::sleep(Duration::from_millis(20));
    }
    wait_for("a publication to all", || {
        let all = subscribers.iter().all(|peer| peer.receive_now().is_some());
        if !all {
            subscribers.iter().for_each(|peer| peer.send(&subscribe));
            thread::sleep(Duration::from_millis(100));
        }
        Ok(all.then_some(()))
    })?;
    let innocent = Peer::local(&site, None)?;
    let time = context.pick(Duration::from_secs(3), Duration::from_secs(10));
    let measured = Probe::run(innocent, ECHO, PER_SECOND, time);
    let (half, most) = (measured.median(), measured.most());
    let text = format!(
        "half within {:.1} ms, 99 % within {:.1} ms, {:.1} % lost",
        milliseconds(half),
        milliseconds(most),
        measured.lost_percent()
    );
    let holds = half <= Duration::from_millis(20) && most <= Duration::from_millis(150);
    Ok(Seen::new(holds && measured.lost_percent() <= 1.0, text))
}
