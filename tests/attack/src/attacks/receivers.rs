//! Receivers that are slow, gone, or never existed. IO.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::thread;
use std::time::{Duration, Instant};

use amber_proto::{Device, DeviceType, MsgType};

use crate::net::Networks;
use crate::peer::{Measured, Peer, Probe};
use crate::site::{Site, SiteOptions};
use crate::suite::{Attack, Context, Seen};
use crate::wire;

/// See the [module](self).
pub const ATTACKS: &[Attack] = &[
    Attack {
        name: "slow-receiver",
        expected: "a subscriber behind 1 Mbit/s costs clients elsewhere no answer (at most 1 %), \
                   with the default wmem_max",
        run: slow_receiver,
    },
    Attack {
        name: "vanished-receivers",
        expected: "four subscribers that vanish (no ARP reply) cost others no answer (at most \
                   1 %), with the default wmem_max",
        run: vanished_receivers,
    },
    Attack {
        name: "spoofed-requests",
        expected: "requests from unused addresses cost others no answer (at most 1 %), with the \
                   wmem_max of this machine",
        run: spoofed_requests,
    },
];

const ECHO: Device = Device::new(DeviceType(77), 0);
const PUBLISHER: Device = Device::new(DeviceType(77), 1);
const PORT: u16 = 26233;

/// What innocent clients may lose, in percent: UDP promises nothing, and a machine may
/// be busy.
const MAY_LOSE: f64 = 1.0;
/// How often each of them asks.
const PER_SECOND: u32 = 200;

fn config(per_second: u32, bytes: u32) -> String {
    format!(
        "
        [mediator]
        listen = ['0.0.0.0:{PORT}']
        [[driver]]
        device = '77:0'
        command = ['$attack', 'driver', 'echo']
        [[driver]]
        device = '77:1'
        command = ['$attack', 'driver', 'publish', '--per-second', '{per_second}', '--bytes', '{bytes}']
        "
    )
    .replace('\'', "\"")
}

/// The robot as the first network sees it.
fn robot() -> SocketAddr {
    (Ipv4Addr::new(10, 77, 0, 1), PORT).into()
}

/// Clients that have nothing to do with the attack: one on the robot, one on its
/// second network.
struct Innocent {
    local: Probe,
    far: Probe,
}

impl Innocent {
    fn start(site: &Site, networks: &Networks) -> anyhow::Result<Self> {
        let local = Peer::local(site, Some(&networks.robot))?;
        local.wait_for_echo(ECHO)?;
        let robot = (Ipv4Addr::new(10, 78, 0, 1), PORT).into();
        let far = Peer::at(
            Some(&networks.far),
            Ipv4Addr::new(10, 78, 0, 2).into(),
            robot,
        )?;
        far.wait_for_echo(ECHO)?;
        Ok(Self {
            local: Probe::start(local, ECHO, PER_SECOND, 32),
            far: Probe::start(far, ECHO, PER_SECOND, 32),
        })
    }

    fn seen(self, site: &Site, networks: &Networks, note: &str) -> anyhow::Result<Seen> {
        self.far.finish();
        let (local, far) = (self.local.stop(), self.far.stop());
        let dropped = Peer::local(site, Some(&networks.robot))?.dropped()?;
        let lost = |measured: &Measured| {
            format!(
                "{:.1} % of {} (half within {:.1} ms)",
                measured.lost_percent(),
                measured.asked,
                1000.0 * measured.median().as_secs_f64()
            )
        };
        let text = format!(
            "lost on the robot {}, on another network {}{note}; dropped: \
             {dropped}",
            lost(&local),
            lost(&far)
        );
        let holds = [&local, &far].iter().all(|m| m.lost_percent() <= MAY_LOSE);
        Ok(Seen::new(holds, text))
    }
}

fn subscribe(networks: &Networks, own: IpAddr) -> anyhow::Result<Peer> {
    let peer = Peer::at(Some(&networks.neighbour), own, robot())?;
    peer.wait_for_echo(ECHO)?;
    // It proves its address, so that the stream is not cut.
    peer.statistics()?;
    let subscribe = wire::to(PUBLISHER, &wire::kind(MsgType::Subscribe));
    amber_harness::wait_for("a publication", || {
        peer.send(&subscribe);
        Ok(peer.receive(Duration::from_millis(200)))
    })?;
    Ok(peer)
}

fn slow_receiver(context: &Context) -> anyhow::Result<Seen> {
    let networks = match Networks::new() {
        Ok(networks) => networks,
        Err(error) => return Ok(Seen::skip(format!("{error:#}"))),
    };
    let place = SiteOptions {
        network: Some(&networks.robot),
        default_buffers: true,
    };
    let site = Site::start(&context.programs, &place, &config(2000, 1000))?;
    let slow = subscribe(&networks, Ipv4Addr::new(10, 77, 0, 2).into())?;
    // The network card holds more than any send buffer, as real ones do.
    let shape = "qdisc add dev robot0 root tbf rate 1mbit burst 16kb limit 100000000";
    if let Err(error) = networks.robot.tc(shape) {
        return Ok(Seen::skip(format!("no traffic shaping here: {error:#}")));
    }
    let innocent = Innocent::start(&site, &networks)?;
    let end = Instant::now() + context.pick(Duration::from_secs(4), Duration::from_secs(10));
    let mut received = 0;
    while let Some(left) = end.checked_duration_since(Instant::now()) {
        received += usize::from(slow.receive(left).is_some());
    }
    let note = format!("; the slow one received {received}");
    innocent.seen(&site, &networks, &note)
}

fn vanished_receivers(context: &Context) -> anyhow::Result<Seen> {
    let networks = match Networks::new() {
        Ok(networks) => networks,
        Err(error) => return Ok(Seen::skip(format!("{error:#}"))),
    };
    let place = SiteOptions {
        network: Some(&networks.robot),
        default_buffers: true,
    };
    let site = Site::start(&context.programs, &place, &config(1000, 1000))?;
    let addresses: Vec<Ipv4Addr> = (0..4).map(|i| Ipv4Addr::new(10, 77, 0, 11 + i)).collect();
    let mut peers = Vec::new();
    for address in &addresses {
        networks
            .neighbour
            .ip(&format!("addr add {address}/24 dev peer0"))?;
        peers.push(subscribe(&networks, IpAddr::from(*address))?);
    }
    let innocent = Innocent::start(&site, &networks)?;
    for address in &addresses {
        networks
            .neighbour
            .ip(&format!("addr del {address}/24 dev peer0"))?;
    }
    // The robot would find out by itself, within a minute.
    networks.robot.ip("neigh flush dev robot0")?;
    thread::sleep(context.pick(Duration::from_secs(4), Duration::from_secs(10)));
    innocent.seen(&site, &networks, "")
}

fn spoofed_requests(context: &Context) -> anyhow::Result<Seen> {
    let networks = match Networks::new() {
        Ok(networks) => networks,
        Err(error) => return Ok(Seen::skip(format!("{error:#}"))),
    };
    let place = SiteOptions {
        network: Some(&networks.robot),
        ..SiteOptions::default()
    };
    let site = Site::start(&context.programs, &place, &config(1000, 1000))?;
    let innocent = Innocent::start(&site, &networks)?;
    let forger = networks.forger()?;
    let mut rng = fastrand::Rng::with_seed(context.seed);
    let request = wire::to(ECHO, &wire::numbered(7, 1000));
    let end = Instant::now() + context.pick(Duration::from_secs(4), Duration::from_secs(10));
    let (mut sent, mut due) = (0, Instant::now());
    while Instant::now() < end {
        // Bursts of twenty, 10 000 a second.
        for _ in 0..20 {
            let from = Ipv4Addr::new(10, 77, 0, rng.u8(20..250));
            forger.send((from, 40_000 + rng.u16(..20)).into(), robot(), &request)?;
            sent += 1;
        }
        due += Duration::from_millis(2);
        thread::sleep(due.saturating_duration_since(Instant::now()));
    }
    innocent.seen(&site, &networks, &format!("; {sent} forged requests"))
}
