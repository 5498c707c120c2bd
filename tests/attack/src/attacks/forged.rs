//! Datagrams from another machine that claim to come from this one. IO.

use std::collections::HashSet;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6, UdpSocket};
use std::time::Duration;

use amber_harness::wait_for;
use amber_proto::mediator::{DriverState, change_driver::Action, request};
use amber_proto::{Device, DeviceType};
use nix::net::if_::if_nametoindex;

use crate::net::Networks;
use crate::peer::{self, Peer};
use crate::site::{Site, SiteOptions};
use crate::suite::{Attack, Context, Seen};
use crate::wire;

/// See the [module](self).
pub const ATTACKS: &[Attack] = &[
    Attack {
        name: "mapped-loopback",
        expected: "STOP and DATA from ::ffff:127.0.0.1 on the wire change nothing",
        run: mapped_loopback,
    },
    Attack {
        name: "forged-loopback",
        expected: "STOP and DATA from 127.0.0.0/8 on the wire, with route_localnet, change nothing",
        run: forged_loopback,
    },
    Attack {
        name: "own-address",
        expected: "DATA from the robot's own other addresses on the wire passes no rule",
        run: own_address,
    },
    Attack {
        name: "link-local",
        expected: "two machines with the same link-local address and port, on two networks of the \
                   robot, are two clients, and each gets its own answers",
        run: link_local,
    },
];

const OPEN: Device = Device::new(DeviceType(77), 0);
const CLOSED: Device = Device::new(DeviceType(77), 1);
const PORT: u16 = 26233;

/// Two drivers; the second may be used from here only.
fn config(allowed: &str) -> String {
    format!(
        "
        [mediator]
        listen = ['0.0.0.0:{PORT}', '[::]:{PORT}']
        [[access]]
        action = 'allow'
        from = [{allowed}]
        [[access]]
        action = 'deny'
        devices = ['77:1']
        [[driver]]
        device = '77:0'
        command = ['$attack', 'driver', 'echo']
        [[driver]]
        device = '77:1'
        command = ['$attack', 'driver', 'record', '--file', '$folder/record']
        "
    )
    .replace('\'', "\"")
}

/// What forged datagrams have done.
#[derive(Debug, Default)]
struct Damage {
    /// Sources whose STOP stopped a driver.
    stopped: Vec<IpAddr>,
    /// Sources whose DATA reached a driver in spite of a rule.
    passed: Vec<IpAddr>,
    /// Sources whose packets the system itself delivers.
    delivered: Vec<IpAddr>,
}

impl Damage {
    fn seen(&self, sources: usize) -> Seen {
        let (stopped, passed, delivered) = (&self.stopped, &self.passed, &self.delivered);
        let text = format!(
            "STOP by {} of {sources} sources {stopped:?}, DATA past the rule by {} {passed:?}; \
             the system delivers {} {delivered:?}",
            stopped.len(),
            passed.len(),
            delivered.len()
        );
        Seen::new(stopped.is_empty() && passed.is_empty(), text)
    }
}

/// Sends STOP and DATA from each of the sources. The honest client may use the driver
/// that they must not reach.
fn forge(
    site: &Site,
    networks: &Networks,
    honest: IpAddr,
    sources: &[IpAddr],
) -> anyhow::Result<Damage> {
    let local = Peer::local(site, Some(&networks.robot))?;
    local.wait_for_echo(OPEN)?;
    let to = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), PORT);
    let honest = Peer::at(Some(&networks.robot), honest, to)?;
    let mut honest_number = FORGED;
    // Another socket shows what the system lets through.
    let witness = networks.robot.run(|| {
        let v4 = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, PORT + 1))?;
        let v6 = v6_only(PORT + 1)?;
        for socket in [&v4, &v6] {
            socket.set_read_timeout(Some(Duration::from_millis(300)))?;
        }
        Ok([v4, v6])
    })?;
    let forger = networks.forger()?;
    let mut damage = Damage::default();
    for source in sources {
        let robot = robot_address(*source);
        let from = SocketAddr::new(*source, 40_000);
        let send = |port: u16, bytes: &[u8]| forger.send(from, SocketAddr::new(robot, port), bytes);
        send(PORT + 1, b"control")?;
        let socket = &witness[usize::from(source.is_ipv6())];
        if socket.recv(&mut [0; 16]).is_ok() {
            damage.delivered.push(*source);
        }
        let before = recorded(site, |number| number < FORGED);
        for number in 0..3 {
            send(PORT, &wire::to(CLOSED, &wire::numbered(number, 0)))?;
            let stop = request::What::ChangeDriver(peer::change(OPEN, Action::Stop));
            send(PORT, &wire::request(number, stop))?;
        }
        // The mediator takes datagrams of one socket in order, so what comes after
        // them on each of its sockets is answered after them.
        settle(networks)?;
        // Clients take turns, so what forged datagrams have left comes before these.
        for _ in 0..5 {
            honest_number += 1;
            wait_for("a message that a rule allows", || {
                honest.send(&wire::to(CLOSED, &wire::numbered(honest_number, 0)));
                let came = recorded(site, |number| number == honest_number) > 0;
                Ok(came.then_some(()))
            })?;
        }
        if recorded(site, |number| number < FORGED) > before {
            damage.passed.push(*source);
        }
        let state = local.describe(OPEN)?.state();
        if [DriverState::Stopping, DriverState::Down].contains(&state) {
            damage.stopped.push(*source);
            local.change(OPEN, Action::Start)?;
            local.wait_for_echo(OPEN)?;
        }
    }
    Ok(damage)
}

/// Numbers below this are those of forged messages.
const FORGED: u32 = 100;

/// How many messages the driver has recorded whose number is one of these.
fn recorded(site: &Site, which: impl Fn(u32) -> bool) -> usize {
    let record = fs::read_to_string(site.folder().join("record")).unwrap_or_default();
    let data = record.lines().filter(|line| line.starts_with("Data "));
    let numbers = data.filter_map(|line| line.rsplit(' ').next()?.parse().ok());
    numbers.filter(|number| which(*number)).count()
}

/// Waits until the mediator has taken what came by either family.
fn settle(networks: &Networks) -> anyhow::Result<()> {
    let neighbour = Some(&networks.neighbour);
    for (own, robot) in [("10.77.0.2", "10.77.0.1"), ("fd77::2", "fd77::1")] {
        let to = SocketAddr::new(robot.parse()?, PORT);
        Peer::at(neighbour, own.parse()?, to)?.statistics()?;
    }
    Ok(())
}

/// An address of the robot's first network, of the family of another address.
fn robot_address(like: IpAddr) -> IpAddr {
    match like {
        IpAddr::V4(_) => Ipv4Addr::new(10, 77, 0, 1).into(),
        IpAddr::V6(_) => Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, 1).into(),
    }
}

fn v6_only(port: u16) -> anyhow::Result<UdpSocket> {
    use nix::sys::socket::{
        AddressFamily, SockFlag, SockType, SockaddrIn6, bind, setsockopt, socket, sockopt,
    };
    use std::os::fd::AsRawFd;
    let flags = SockFlag::SOCK_CLOEXEC;
    let socket = socket(AddressFamily::Inet6, SockType::Datagram, flags, None)?;
    setsockopt(&socket, sockopt::Ipv6V6Only, &true)?;
    let any = std::net::SocketAddrV6::new(Ipv6Addr::UNSPECIFIED, port, 0, 0);
    bind(socket.as_raw_fd(), &SockaddrIn6::from(any))?;
    Ok(socket.into())
}

fn attack(
    context: &Context,
    allowed: &str,
    honest: [u8; 4],
    sources: &[&str],
    prepare: impl FnOnce(&Networks) -> anyhow::Result<()>,
) -> anyhow::Result<Seen> {
    let networks = match Networks::new() {
        Ok(networks) => networks,
        Err(error) => return Ok(Seen::skip(format!("{error:#}"))),
    };
    prepare(&networks)?;
    let place = SiteOptions {
        network: Some(&networks.robot),
        ..SiteOptions::default()
    };
    let site = Site::start(&context.programs, &place, &config(allowed))?;
    let sources: Result<Vec<IpAddr>, _> = sources.iter().map(|source| source.parse()).collect();
    let sources = sources?;
    let honest = Ipv4Addr::from(honest).into();
    Ok(forge(&site, &networks, honest, &sources)?.seen(sources.len()))
}

fn mapped_loopback(context: &Context) -> anyhow::Result<Seen> {
    let sources = ["::ffff:127.0.0.1", "::ffff:127.1.2.3", "::ffff:10.79.0.1"];
    attack(
        context,
        "'loopback', '10.79.0.1'",
        [127, 0, 0, 1],
        &sources,
        |_| Ok(()),
    )
}

fn forged_loopback(context: &Context) -> anyhow::Result<Seen> {
    let sources = ["127.0.0.1", "127.0.0.5", "127.1.2.3", "::1"];
    attack(
        context,
        "'loopback'",
        [127, 0, 0, 1],
        &sources,
        accept_strange_sources,
    )
}

fn own_address(context: &Context) -> anyhow::Result<Seen> {
    let sources = ["10.79.0.1", "10.78.0.1", "fd79::1", "fd78::1", "fd77::1"];
    let allowed = "'10.79.0.1', '10.78.0.1', 'fd79::1', 'fd78::1', 'fd77::1'";
    attack(
        context,
        allowed,
        [10, 79, 0, 1],
        &sources,
        accept_strange_sources,
    )
}

/// Makes the system as careless as some routers and container hosts are.
pub(super) fn accept_strange_sources(networks: &Networks) -> anyhow::Result<()> {
    for card in ["all", "robot0"] {
        let setting = |name: &str| format!("net/ipv4/conf/{card}/{name}");
        networks.robot.set(&setting("rp_filter"), "0")?;
        networks.robot.set(&setting("route_localnet"), "1")?;
        networks.robot.set(&setting("accept_local"), "1")?;
    }
    Ok(())
}

fn link_local(context: &Context) -> anyhow::Result<Seen> {
    let networks = match Networks::new() {
        Ok(networks) => networks,
        Err(error) => return Ok(Seen::skip(format!("{error:#}"))),
    };
    let (robot, twin) = (
        Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1),
        "fe80::77".parse()?,
    );
    let place = SiteOptions {
        network: Some(&networks.robot),
        ..SiteOptions::default()
    };
    let config = format!(
        r#"
        [mediator]
        listen = ["[::]:{PORT}"]
        [[driver]]
        device = "77:0"
        command = ["$attack", "driver", "whoami"]
        "#
    );
    let mut twins = Vec::new();
    for (number, network) in [&networks.neighbour, &networks.far].into_iter().enumerate() {
        networks
            .robot
            .ip(&format!("addr add {robot}/64 dev robot{number} nodad"))?;
        let card = format!("peer{number}");
        network.ip(&format!("addr add {twin}/64 dev {card} nodad"))?;
        twins.push((network, card));
    }
    let _site = Site::start(&context.programs, &place, &config)?;
    let twins: anyhow::Result<Vec<UdpSocket>> = twins
        .iter()
        .map(|(network, card)| {
            network.run(|| {
                let scope = if_nametoindex(card.as_str())?;
                let socket = UdpSocket::bind(SocketAddrV6::new(twin, 40_000, 0, scope))?;
                socket.connect(SocketAddrV6::new(robot, PORT, 0, scope))?;
                socket.set_read_timeout(Some(Duration::from_millis(200)))?;
                Ok(socket)
            })
        })
        .collect();
    let twins = twins?;
    let question = wire::to(OPEN, &wire::numbered(1, 0));
    let mut ids = [HashSet::new(), HashSet::new()];
    for _ in 0..context.pick(20, 100) {
        for (twin, ids) in twins.iter().zip(&mut ids) {
            ids.insert(wait_for("an answer", || Ok(id_of(twin, &question)))?);
        }
    }
    let text = format!("known as {:?} and {:?}", ids[0], ids[1]);
    let holds = ids.iter().all(|ids| ids.len() == 1) && ids[0] != ids[1];
    Ok(Seen::new(holds, text))
}

/// The id under which the driver knows a client.
fn id_of(client: &UdpSocket, question: &[u8]) -> Option<u32> {
    client.send(question).ok()?;
    let mut buffer = [0; 256];
    let length = client.recv(&mut buffer).ok()?;
    let frame = amber_proto::Frame::from_datagram(&buffer[..length]).ok()?;
    wire::number(frame.message)
}
