//! Addresses that are ignored for a while, because they guess tokens or sessions. PURE.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

use crate::limits::MAX_OFFENDERS;

/// A rule such as "after 5 wrong tokens in a minute, silence for 60 s", and the addresses that
/// broke it.
#[derive(Debug)]
pub struct Offences {
    limit: u32,
    window: Duration,
    silence: Duration,
    offenders: HashMap<IpAddr, Offender>,
}

#[derive(Clone, Copy, Debug)]
struct Offender {
    /// The start of the current window.
    since: Duration,
    count: u32,
    silent_until: Option<Duration>,
}

impl Offences {
    /// More than `limit` offences within a window cause the silence.
    #[must_use]
    pub fn new(limit: u32, window: Duration, silence: Duration) -> Self {
        Self {
            limit,
            window,
            silence,
            offenders: HashMap::new(),
        }
    }

    /// Notes an offence.
    pub fn note(&mut self, now: Duration, ip: IpAddr) {
        if self.offenders.len() >= MAX_OFFENDERS && !self.offenders.contains_key(&ip) {
            let window = self.window;
            self.offenders.retain(|_, it| it.counts(now, window));
            // Of many, the oldest matters least.
            let oldest = self.offenders.iter().min_by_key(|(_, it)| it.since);
            if let Some(oldest) = oldest.map(|(ip, _)| *ip)
                && self.offenders.len() >= MAX_OFFENDERS
            {
                self.offenders.remove(&oldest);
            }
        }
        let fresh = Offender {
            since: now,
            count: 0,
            silent_until: None,
        };
        let offender = self.offenders.entry(ip).or_insert(fresh);
        if !offender.counts(now, self.window) {
            *offender = fresh;
        }
        offender.count += 1;
        if offender.count > self.limit {
            offender.silent_until = Some(now + self.silence);
        }
    }

    /// Whether an address is ignored now.
    #[must_use]
    pub fn is_silenced(&self, now: Duration, ip: IpAddr) -> bool {
        (self.offenders.get(&ip))
            .and_then(|it| it.silent_until)
            .is_some_and(|until| now < until)
    }
}

impl Offender {
    /// Whether it still matters.
    fn counts(&self, now: Duration, window: Duration) -> bool {
        match self.silent_until {
            Some(until) => now < until,
            None => now.saturating_sub(self.since) < window,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn more_than_the_limit_within_the_window_causes_silence() {
        let mut offences = Offences::new(5, MINUTE, MINUTE);
        let ip = IpAddr::from([10, 0, 0, 1]);
        let start = Duration::from_secs(7);
        for _ in 0..5 {
            offences.note(start, ip);
        }
        assert!(!offences.is_silenced(start, ip));
        offences.note(start, ip);
        assert!(offences.is_silenced(start, ip));
        assert!(!offences.is_silenced(start, IpAddr::from([10, 0, 0, 2])));
        assert!(offences.is_silenced(start + MINUTE - Duration::from_millis(1), ip));
        assert!(!offences.is_silenced(start + MINUTE, ip));
        offences.note(start + MINUTE, ip);
        assert!(!offences.is_silenced(start + MINUTE, ip));
    }

    #[test]
    fn slow_offences_are_forgotten() {
        let mut offences = Offences::new(5, MINUTE, MINUTE);
        let ip = IpAddr::from([10, 0, 0, 1]);
        for minute in 0..20 {
            for _ in 0..5 {
                offences.note(MINUTE * minute, ip);
            }
            assert!(!offences.is_silenced(MINUTE * minute, ip));
        }
    }

    #[test]
    fn the_table_is_bounded() {
        let mut offences = Offences::new(0, MINUTE, MINUTE);
        for number in 0..5_000_u32 {
            let now = Duration::from_micros(number.into());
            offences.note(now, IpAddr::from(number.to_be_bytes()));
        }
        assert_eq!(offences.offenders.len(), MAX_OFFENDERS);
    }
}
