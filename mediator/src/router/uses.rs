//! Which devices somebody uses, and how much. PURE.
//!
//! A use begins with a request and lasts until its driver's process ends, or
//! until the user dies. Clients have uses, and drivers that ask other drivers.

use std::time::{Duration, Instant};

use amber_proto::Device;

use super::DriverKey;
use crate::limits;

/// A device that somebody uses.
#[derive(Debug)]
pub struct Use {
    /// Whose process serves it.
    pub driver: DriverKey,
    /// The device.
    pub device: Device,
    /// The driver has said since the last request that it cannot be used.
    pub(super) told: bool,
    /// Under which access rules it was allowed.
    pub(super) rules: u32,
    exchange: Exchange,
}

/// Everything that somebody uses; few entries, the busiest in front.
#[derive(Debug, Default)]
pub struct Uses(Vec<Use>);

impl Uses {
    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Use> {
        self.0.iter()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn find(&mut self, driver: DriverKey, device: Device) -> Option<&mut Use> {
        let is_it = |used: &&mut Use| used.device == device && used.driver == driver;
        self.0.iter_mut().find(is_it)
    }

    /// Whether the process of a driver has heard of the user.
    pub(super) fn has_driver(&self, driver: DriverKey) -> bool {
        self.0.iter().any(|used| used.driver == driver)
    }

    pub(super) fn begin(&mut self, driver: DriverKey, device: Device, rules: u32) {
        self.0.push(Use {
            driver,
            device,
            told: false,
            rules,
            exchange: Exchange::default(),
        });
    }

    /// Ends those that match, and returns them.
    pub(super) fn end(&mut self, ends: impl Fn(&Use) -> bool) -> Vec<Use> {
        self.0.extract_if(.., |used| ends(used)).collect()
    }

    /// The driver has said that it cannot be used. Returns the devices of
    /// which the user has not heard that yet.
    pub(super) fn tell(&mut self, driver: DriverKey) -> Vec<Device> {
        let untold = |used: &&mut Use| used.driver == driver && !used.told;
        let tell = |used: &mut Use| {
            used.told = true;
            used.device
        };
        self.0.iter_mut().filter(untold).map(tell).collect()
    }

    /// Something came back from a device.
    pub(super) fn answered(&mut self, driver: DriverKey, device: Device) {
        if let Some(used) = self.find(driver, device) {
            used.exchange.back = used.exchange.back.saturating_add(1);
        }
    }
}

impl Use {
    /// A request goes out. Says when requests and answers have gone to and fro
    /// for long at a rate that nobody needs: how many a second.
    pub(super) fn asked(&mut self, now: Instant) -> Option<u64> {
        self.exchange.asked(now)
    }
}

/// Counts what goes to and fro between two, to find those that answer each
/// other without end.
#[derive(Debug, Default)]
struct Exchange {
    since: Option<Instant>,
    there: u32,
    back: u32,
}

impl Exchange {
    fn asked(&mut self, now: Instant) -> Option<u64> {
        let since = *self.since.get_or_insert(now);
        self.there += 1;
        if self.there < limits::LOOP_FRAMES {
            return None;
        }
        let took = now
            .duration_since(since)
            .max(Duration::from_millis(1))
            .as_millis() as u64;
        let (there, back) = (u64::from(self.there), u64::from(self.back));
        *self = Self {
            since: Some(now),
            there: 0,
            back: 0,
        };
        let rate = there * 1000 / took;
        // Most of what goes there comes back, as an answer or as a question.
        (rate >= limits::LOOP_RATE && back * 2 >= there).then_some(rate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is said about so many requests, so far apart, every `answered`-th
    /// of which is answered.
    fn check(frames: u32, apart: Duration, answered: u32) -> Vec<u64> {
        let (mut exchange, start) = (Exchange::default(), Instant::now());
        let mut said = Vec::new();
        for i in 0..frames {
            said.extend(exchange.asked(start + apart * i));
            if i % answered == 0 {
                exchange.back += 1;
            }
        }
        said
    }

    #[test]
    fn only_what_goes_to_and_fro_for_long_and_fast_is_a_loop() {
        let fast = Duration::from_micros(50);
        assert_eq!(check(limits::LOOP_FRAMES, fast, 1), [20_020]);
        assert_eq!(check(limits::LOOP_FRAMES - 1, fast, 1), [0; 0]);
        assert_eq!(check(3 * limits::LOOP_FRAMES, fast, 1).len(), 3);
        // A thousand requests a second is much, and may be meant.
        assert_eq!(check(3 * limits::LOOP_FRAMES, fast * 20, 1), [0; 0]);
        // A flood that nobody answers is a flood.
        assert_eq!(check(3 * limits::LOOP_FRAMES, fast, 3), [0; 0]);
    }
}
