//! The devices that a client or a driver uses. PURE.
//!
//! A use begins with a request. It ends when the driver's process ends, or when its user is
//! gone. Users are clients, and drivers that send requests to other drivers.

use std::time::Duration;

use amber_proto::{Device, MsgType};

use crate::address::DriverKey;
use crate::limits;
use crate::moment::Moment;

/// A device in use.
#[derive(Debug)]
pub struct Use {
    /// The driver that serves it.
    pub driver: DriverKey,
    pub device: Device,
    /// Since the last message in either direction, the driver has reported that it is unavailable.
    pub(super) told: bool,
    /// The last of its messages that began like SUBSCRIBE or UNSUBSCRIBE was SUBSCRIBE.
    pub(super) subscribed: bool,
    /// The version of the access rules that allowed it.
    pub(super) rules: u32,
    /// Start of the current count of requests and answers, which detects two peers that answer
    /// each other endlessly.
    since: Option<Moment>,
    /// Requests; never more than [`limits::LOOP_FRAMES`].
    there: u16,
    /// Answers.
    back: u16,
    /// The low bits of the request number when a loop was last suspected, or 0.
    suspected: u16,
}

/// The devices that a client or driver uses, usually one, which is stored inline.
///
/// This is our own type because it takes 32 bytes, smallvec takes 40, and there is one in each
/// of many thousands of clients.
#[derive(Debug, Default)]
pub enum Uses {
    /// No device.
    #[default]
    None,
    /// One device.
    One(Use),
    /// Several devices, or one that is left of them.
    Many(Vec<Use>),
}

impl Uses {
    fn as_slice(&self) -> &[Use] {
        match self {
            Self::None => &[],
            Self::One(used) => std::slice::from_ref(used),
            Self::Many(all) => all,
        }
    }

    fn as_mut_slice(&mut self) -> &mut [Use] {
        match self {
            Self::None => &mut [],
            Self::One(used) => std::slice::from_mut(used),
            Self::Many(all) => all,
        }
    }

    /// All uses.
    pub fn iter(&self) -> impl Iterator<Item = &Use> {
        self.as_slice().iter()
    }

    /// Whether there is no use.
    pub fn is_empty(&self) -> bool {
        self.as_slice().is_empty()
    }

    pub(super) fn find(&mut self, driver: DriverKey, device: Device) -> Option<&mut Use> {
        let is_it = |used: &&mut Use| used.device == device && used.driver == driver;
        self.as_mut_slice().iter_mut().find(is_it)
    }

    /// Whether the process of a driver knows the user.
    pub(super) fn has_driver(&self, driver: DriverKey) -> bool {
        self.iter().any(|used| used.driver == driver)
    }

    pub(super) fn begin(&mut self, driver: DriverKey, device: Device, rules: u32) {
        let new = Use::new(driver, device, rules);
        *self = match std::mem::take(self) {
            Self::None => Self::One(new),
            Self::One(first) => Self::Many(vec![first, new]),
            Self::Many(mut all) => {
                all.push(new);
                Self::Many(all)
            }
        };
    }

    /// Ends all uses that match, and returns them.
    pub(super) fn end(&mut self, ends: impl Fn(&Use) -> bool) -> Vec<Use> {
        let mut all = match std::mem::take(self) {
            Self::None => return Vec::new(),
            Self::One(used) => {
                if ends(&used) {
                    return vec![used];
                }
                *self = Self::One(used);
                return Vec::new();
            }
            Self::Many(all) => all,
        };
        let ended = all.extract_if(.., |used| ends(used)).collect();
        if !all.is_empty() {
            *self = Self::Many(all);
        }
        ended
    }

    /// The driver has reported that one of its devices is unavailable, or that all are. Returns
    /// those about which the user was not told yet.
    pub(super) fn tell(&mut self, driver: DriverKey, about: Option<Device>) -> Vec<Device> {
        let is_meant = |device| about.is_none_or(|about| about == device);
        let untold = |used: &&mut Use| used.driver == driver && !used.told && is_meant(used.device);
        let tell = |used: &mut Use| {
            used.told = true;
            used.device
        };
        (self.as_mut_slice().iter_mut().filter(untold))
            .map(tell)
            .collect()
    }

    /// Whether the user uses a device of this driver that is not reported as unavailable.
    pub(super) fn has_untold(&self, driver: DriverKey) -> bool {
        self.iter().any(|used| used.driver == driver && !used.told)
    }

    /// The device has sent something back, so it is available. Returns whether the user had been
    /// told the opposite.
    pub(super) fn answered(&mut self, driver: DriverKey, device: Device) -> bool {
        let Some(used) = self.find(driver, device) else {
            return false;
        };
        used.back = used.back.saturating_add(1);
        std::mem::take(&mut used.told)
    }
}

impl Use {
    fn new(driver: DriverKey, device: Device, rules: u32) -> Self {
        Self {
            driver,
            device,
            told: false,
            subscribed: false,
            rules,
            since: None,
            there: 0,
            back: 0,
            suspected: 0,
        }
    }

    /// Notes whether a message begins or ends a subscription, by its first two bytes: the type is
    /// the first field that libraries write.
    pub(super) fn note(&mut self, message: &[u8]) {
        const SUBSCRIBE: u8 = MsgType::Subscribe as u8;
        const UNSUBSCRIBE: u8 = MsgType::Unsubscribe as u8;
        match message {
            [0x10, SUBSCRIBE, ..] => self.subscribed = true,
            [0x10, UNSUBSCRIBE, ..] => self.subscribed = false,
            _ => {}
        }
    }

    /// Counts a request. Returns the rate in requests per second if requests and answers have
    /// alternated for a long time, faster than any real program needs.
    pub(super) fn asked(&mut self, now: Moment) -> Option<u64> {
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
        (self.since, self.there, self.back) = (Some(now), 0, 0);
        let rate = there * 1000 / took;
        // Most requests come back, as an answer or as another request.
        (rate >= limits::LOOP_RATE && back * 2 >= there).then_some(rate)
    }

    /// Whether a fast exchange consists of new requests, each with its own number, as of
    /// `amber bench`, and is not a loop. Messages in a loop are answers, have no number, or
    /// return with the same one, which this notices at the second suspicion.
    pub(super) fn asks_anew(&mut self, number: Option<u32>) -> bool {
        let bits = number.map_or(0, |number| (number as u16).max(1));
        let before = std::mem::replace(&mut self.suspected, bits);
        bits != 0 && bits != before
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::moment::Epoch;

    /// The rates reported for this many requests at this interval, where every `answered`-th
    /// request is answered.
    fn check(frames: u16, apart: Duration, answered: u32) -> Vec<u64> {
        let mut used = Use::new(DriverKey(0), Device::MEDIATOR, 0);
        let start = Instant::now();
        let epoch = Epoch::at(start);
        let mut said = Vec::new();
        for i in 0..u32::from(frames) {
            said.extend(used.asked(epoch.moment(start + apart * i)));
            if i % answered == 0 {
                used.back += 1;
            }
        }
        said
    }

    #[test]
    fn only_a_long_and_fast_exchange_is_a_loop() {
        let fast = Duration::from_micros(50);
        assert_eq!(check(limits::LOOP_FRAMES, fast, 1), [20_020]);
        assert_eq!(check(limits::LOOP_FRAMES - 1, fast, 1), [0; 0]);
        assert_eq!(check(3 * limits::LOOP_FRAMES, fast, 1).len(), 3);
        // A thousand requests a second may be intended.
        assert_eq!(check(3 * limits::LOOP_FRAMES, fast * 20, 1), [0; 0]);
        // A flood without answers is not a loop.
        assert_eq!(check(3 * limits::LOOP_FRAMES, fast, 3), [0; 0]);
    }
}
