//! The configurations of a run. PURE.

use std::num::NonZeroUsize;
use std::time::Duration;

use amber_core::config::{Config, Limits};
use amber_core::queue::Bounds;
use amber_core::supervise::{Backoff, Policy, Restart};

use crate::random::Random;

/// The usual configuration; [`OTHERS`] lists the others.
const USUAL: &str = "
[[driver]]
device = '5:0'
command = ['dummy']
[[driver]]
devices = ['77:3', '77:4']
command = ['two']
[[driver]]
device = '4:0'
command = ['hokuyo']
[[driver]]
device = '4:1'
command = ['hokuyo']
";

/// Drivers changed, missing, new, and with devices of another; and access rules.
const OTHERS: [&str; 4] = [
    "
[[driver]]
device = '5:0'
command = ['dummy', 'again']
[[driver]]
devices = ['77:4', '78:0']
command = ['other']
[[driver]]
device = '4:0'
command = ['hokuyo']
",
    "
[[access]]
action = 'deny'
from = ['192.168.1.0/24']
devices = ['5:0', '77:*']
[[driver]]
device = '5:0'
command = ['dummy']
[[driver]]
devices = ['77:3', '77:4']
command = ['two']
[[driver]]
device = '4:0'
command = ['hokuyo', '--changed']
[[driver]]
device = '78:0'
command = ['new']
",
    "
[[access]]
action = 'allow'
from = ['loopback']
[[access]]
action = 'allow'
from = ['192.168.1.0/30']
devices = ['4:*']
[[access]]
action = 'deny'
[[driver]]
device = '77:3'
command = ['alone']
[[driver]]
device = '77:4'
command = ['alone']
",
    "
[[access]]
action = 'deny'
from = ['192.168.1.0/24', '10.0.0.0/8']
devices = ['mediator']
[[driver]]
device = '5:0'
command = ['dummy']
[[driver]]
devices = ['77:3', '77:4']
command = ['two']
[[driver]]
device = '4:0'
command = ['hokuyo']
[[driver]]
device = '4:1'
command = ['hokuyo']
",
];

/// The configuration of one run.
pub struct Setup {
    limits: Limits,
    policy: Policy,
}

impl Setup {
    /// Draws a setup: mostly with small limits, so that they are reached.
    pub fn draw(rng: &mut Random) -> Self {
        let clients = *rng.choice(&[4, 10, 30, 200]).unwrap_or(&10);
        let frames = *rng.choice(&[1, 4, 20, 200]).unwrap_or(&20);
        let bytes = *rng.choice(&[100, 2000, 60_000]).unwrap_or(&2000);
        let life_cycle = *rng.choice(&[4, 100]).unwrap_or(&100);
        let clients_per_host = clients_per_host(rng);
        let datagrams_per_second = *rng.choice(&[20, 20_000, 20_000]).unwrap_or(&20_000);
        let limits = Limits {
            clients: NonZeroUsize::new(clients).unwrap_or(NonZeroUsize::MIN),
            clients_per_host,
            forget_clients: forget_clients(rng),
            queue: Bounds {
                frames,
                bytes,
                life_cycle,
            },
            datagrams_per_second,
            ..Config::default().limits
        };
        let ms = |rng: &mut Random, from: u64, to: u64| Duration::from_millis(rng.u64(from..to));
        let (min, more) = (ms(rng, 10, 300), ms(rng, 0, 3000));
        let doubling = Backoff::new(min, min + more);
        let restarts = [Restart::Always, Restart::Always, Restart::OnFailure];
        let usual = Config::parse(USUAL, "amber.toml".as_ref(), &|_| None).unwrap_or_default();
        let policy = Policy {
            restart: *rng.choice(&restarts).unwrap_or(&Restart::Always),
            deaths: rng.usize(3..20),
            deaths_window: ms(rng, 1000, 20_000),
            grace: ms(rng, 50, 1500),
            ping_interval: ms(rng, 200, 1500),
            backoff: doubling.unwrap_or(usual.drivers[0].policy.backoff),
        };
        Self { limits, policy }
    }

    /// The configuration at the start and at the end.
    pub fn usual(&self) -> Config {
        self.read(USUAL)
    }

    /// A random other configuration.
    pub fn other(&self, rng: &mut Random) -> Config {
        let mut config = self.read(OTHERS[rng.usize(0..OTHERS.len())]);
        config.limits.clients_per_host = clients_per_host(rng);
        config.limits.forget_clients = forget_clients(rng);
        config
    }

    fn read(&self, text: &str) -> Config {
        let mut config = Config::parse(text, "amber.toml".as_ref(), &|_| None)
            .unwrap_or_else(|error| unreachable!("{error}: {text}"));
        config.limits = self.limits;
        for driver in &mut config.drivers {
            driver.policy = self.policy;
        }
        config
    }
}

/// Short enough that clients are forgotten, or longer than a run.
fn forget_clients(rng: &mut Random) -> Duration {
    let seconds = *rng.choice(&[7, 30, 43_200]).unwrap_or(&43_200);
    Duration::from_secs(seconds)
}

/// Small enough to be reached by the clients of the world, or only by a flood.
fn clients_per_host(rng: &mut Random) -> NonZeroUsize {
    let limit = *rng.choice(&[2, 8, 8, 30, 1000]).unwrap_or(&8);
    NonZeroUsize::new(limit).unwrap_or(NonZeroUsize::MIN)
}
