//! The faults, and the choice of the next one. PURE.

use std::fmt;
use std::time::Duration;

use amber_proto::Device;
use fastrand::Rng;

use crate::fleet::{CHANGING, Changing, DEAF, DUMMIES, LASER, VICTIM_ECHOES, VICTIMS};

/// A fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// A driver process is killed.
    Kill(Device),
    /// A driver process is stopped (SIGSTOP) for a time, while requests pile up.
    Freeze(Device, Duration),
    /// This many requests, as fast as the mediator takes them.
    Flood(Device, u32),
    /// This many long requests for a driver that never reads.
    FillPipe(u32),
    /// The laser scanner is unplugged and plugged in again.
    Unplug(Duration),
    /// A driver writes as fast as it can.
    Talk(Duration),
    /// A driver writes an invalid frame.
    InvalidFrame,
    /// This many invalid datagrams.
    Garbage(u32),
    /// One unimportant datagram from each of this many spoofed addresses.
    MadeUpAddresses(u32),
    /// This many clients send requests, subscribe, and vanish without a goodbye.
    Vanish(u32),
    /// This many clients connect, send a request, and disconnect cleanly.
    ComeAndGo(u32),
    /// `amber restart`.
    Restart(Device),
    /// `amber stop`, and `amber start` later.
    Stop(Device, Duration),
    /// `amber reload` with a changed configuration.
    Reload(Changing),
    /// `amber reload` with an invalid configuration.
    BadReload,
}

impl Trouble {
    /// Each kind once, at its largest: afterwards all tables have reached their full size.
    pub fn each() -> Vec<Self> {
        let moment = Duration::from_millis(LONGEST_MS);
        vec![
            Self::Kill(VICTIM_ECHOES[0]),
            Self::Freeze(VICTIM_ECHOES[1], moment),
            Self::Freeze(DUMMIES[1], moment),
            Self::Flood(VICTIM_ECHOES[0], MOST),
            Self::FillPipe(MOST),
            Self::Unplug(moment),
            Self::Talk(moment),
            Self::InvalidFrame,
            Self::Garbage(MOST),
            Self::MadeUpAddresses(MOST),
            Self::Vanish(MOST / 20),
            Self::ComeAndGo(4),
            Self::Restart(LASER),
            Self::Stop(DUMMIES[1], moment),
            Self::Reload(Changing::Absent),
            Self::Reload(Changing::Setting(0)),
            Self::BadReload,
        ]
    }

    /// A random fault.
    pub fn any(rng: &mut Rng) -> Self {
        let victim = VICTIMS[rng.usize(..VICTIMS.len())];
        let echo = VICTIM_ECHOES[rng.usize(..VICTIM_ECHOES.len())];
        let moment = Duration::from_millis(rng.u64(20..=LONGEST_MS));
        let count = rng.u32(1..=MOST);
        match rng.u8(..15) {
            0 => Self::Kill(victim),
            1 => Self::Freeze(victim, moment),
            2 => Self::Flood(echo, count),
            3 => Self::FillPipe(count),
            4 => Self::Unplug(moment),
            5 => Self::Talk(moment),
            6 => Self::InvalidFrame,
            7 => Self::Garbage(count),
            8 => Self::MadeUpAddresses(count),
            9 => Self::Vanish(count.div_ceil(20)),
            10 => Self::ComeAndGo(rng.u32(1..=4)),
            11 => Self::Restart(victim),
            12 => Self::Stop(victim, moment),
            13 if rng.bool() => Self::Reload(Changing::Absent),
            13 => Self::Reload(Changing::Setting(rng.u32(..))),
            _ => Self::BadReload,
        }
    }
}

/// The longest duration; long enough for three PINGs of the hanging victim.
const LONGEST_MS: u64 = 1000;
/// The largest count: more than the limit of known clients.
const MOST: u32 = 2000;

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kill(device) => write!(f, "kill {device}"),
            Self::Freeze(device, moment) => write!(f, "freeze {device} for {moment:?}"),
            Self::Flood(device, count) => write!(f, "flood {device} with {count}"),
            Self::FillPipe(count) => {
                write!(f, "send {count} long requests to {DEAF}, which never reads")
            }
            Self::Unplug(moment) => write!(f, "unplug {LASER} for {moment:?}"),
            Self::Talk(moment) => write!(f, "a driver writes continuously for {moment:?}"),
            Self::InvalidFrame => write!(f, "a driver writes an invalid frame"),
            Self::Garbage(count) => write!(f, "send {count} invalid datagrams"),
            Self::MadeUpAddresses(count) => write!(f, "send from {count} spoofed addresses"),
            Self::Vanish(count) => write!(f, "{count} clients vanish"),
            Self::ComeAndGo(count) => write!(f, "{count} clients connect and disconnect"),
            Self::Restart(device) => write!(f, "restart {device}"),
            Self::Stop(device, moment) => write!(f, "stop {device} for {moment:?}"),
            Self::Reload(Changing::Absent) => write!(f, "reload without {CHANGING}"),
            Self::Reload(_) => write!(f, "reload with a changed {CHANGING}"),
            Self::BadReload => write!(f, "reload an invalid configuration"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::mem::discriminant;

    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_faults() {
        let of = |seed| -> Vec<_> {
            let mut rng = Rng::with_seed(seed);
            (0..100).map(|_| Trouble::any(&mut rng)).collect()
        };
        assert_eq!(of(7), of(7));
        assert_ne!(of(7), of(8));
    }

    #[test]
    fn every_kind_occurs() {
        let mut rng = Rng::with_seed(1);
        let any: Vec<_> = (0..1000).map(|_| Trouble::any(&mut rng)).collect();
        for trouble in Trouble::each() {
            let same = |other: &&Trouble| discriminant(*other) == discriminant(&trouble);
            assert!(any.iter().any(|other| same(&other)), "{trouble}");
        }
    }
}
