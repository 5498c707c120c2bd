//! What can happen, and what happens next. PURE.

use std::fmt;
use std::time::Duration;

use amber_proto::Device;
use fastrand::Rng;

use crate::fleet::{CHANGING, Changing, DEAF, DUMMIES, LASER, VICTIM_ECHOES, VICTIMS};

/// One thing that happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// The process of a driver is killed.
    Kill(Device),
    /// It is stopped (SIGSTOP) and goes on later, while requests pile up.
    Freeze(Device, Duration),
    /// So many requests, as fast as the mediator takes them.
    Flood(Device, u32),
    /// So many long requests for a driver that never reads.
    FillPipe(u32),
    /// The plug of the laser scanner is pulled, and put in again.
    Unplug(Duration),
    /// A driver writes as fast as it can.
    Talk(Duration),
    /// A driver writes what is no frame.
    Nonsense,
    /// So many datagrams of garbage.
    Garbage(u32),
    /// One datagram from each of so many addresses, about nothing.
    MadeUpAddresses(u32),
    /// So many clients ask and listen, and are gone without a word.
    Vanish(u32),
    /// So many clients come, ask, and say good-bye.
    ComeAndGo(u32),
    /// `amber restart`.
    Restart(Device),
    /// `amber stop`, and `amber start` later.
    Stop(Device, Duration),
    /// `amber reload`, with something changed.
    Reload(Changing),
    /// `amber reload` of what is no configuration.
    BadReload,
}

impl Trouble {
    /// Each kind once, at its largest: after that, whatever grows has grown.
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
            Self::Nonsense,
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

    /// Any.
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
            6 => Self::Nonsense,
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

/// The longest moment; three PINGs of the victim that hangs fit in.
const LONGEST_MS: u64 = 1000;
/// The most of anything: more than clients are known at once.
const MOST: u32 = 2000;

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kill(device) => write!(f, "kill {device}"),
            Self::Freeze(device, moment) => write!(f, "freeze {device} for {moment:?}"),
            Self::Flood(device, count) => write!(f, "flood {device} with {count}"),
            Self::FillPipe(count) => write!(f, "{count} long ones for {DEAF}, which never reads"),
            Self::Unplug(moment) => write!(f, "unplug {LASER} for {moment:?}"),
            Self::Talk(moment) => write!(f, "a driver talks without end for {moment:?}"),
            Self::Nonsense => write!(f, "a driver talks nonsense"),
            Self::Garbage(count) => write!(f, "{count} datagrams of garbage"),
            Self::MadeUpAddresses(count) => write!(f, "{count} made-up addresses"),
            Self::Vanish(count) => write!(f, "{count} clients vanish"),
            Self::ComeAndGo(count) => write!(f, "{count} clients come and go"),
            Self::Restart(device) => write!(f, "restart {device}"),
            Self::Stop(device, moment) => write!(f, "stop {device} for {moment:?}"),
            Self::Reload(Changing::Absent) => write!(f, "reload without {CHANGING}"),
            Self::Reload(_) => write!(f, "reload with a changed {CHANGING}"),
            Self::BadReload => write!(f, "reload what is no configuration"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::mem::discriminant;

    use super::*;

    #[test]
    fn the_same_seed_means_the_same_trouble() {
        let of = |seed| -> Vec<_> {
            let mut rng = Rng::with_seed(seed);
            (0..100).map(|_| Trouble::any(&mut rng)).collect()
        };
        assert_eq!(of(7), of(7));
        assert_ne!(of(7), of(8));
    }

    #[test]
    fn every_kind_comes() {
        let mut rng = Rng::with_seed(1);
        let any: Vec<_> = (0..1000).map(|_| Trouble::any(&mut rng)).collect();
        for trouble in Trouble::each() {
            let same = |other: &&Trouble| discriminant(*other) == discriminant(&trouble);
            assert!(any.iter().any(|other| same(&other)), "{trouble}");
        }
    }
}
