//! When a device was last heard, and why it is silent. PURE.

use std::time::{Duration, Instant};

use amber_proto::Device;

/// A device that says nothing for longer than this is silent.
const SILENCE: Duration = Duration::from_millis(600);
/// At first, the device may still be starting.
const START: Duration = Duration::from_secs(3);

/// A device that publishes measurements.
#[derive(Debug)]
pub(crate) struct Heard {
    device: Device,
    /// What it does not do if it is silent, such as "reports no wheels".
    silence: &'static str,
    started: Instant,
    /// `None` if it was never heard.
    last: Option<Instant>,
    looked_at: Instant,
    failure: Option<String>,
}

impl Heard {
    /// A device that was not heard yet.
    pub(crate) fn new(device: Device, silence: &'static str, now: Instant) -> Self {
        Self {
            device,
            silence,
            started: now,
            last: None,
            looked_at: now,
            failure: None,
        }
    }

    /// The device has measured something.
    pub(crate) fn measured(&mut self, now: Instant) {
        self.last = Some(now);
        self.failure = None;
    }

    /// The device has answered, with nothing new.
    pub(crate) fn repeated(&mut self) {
        self.failure = None;
    }

    /// The device did not answer as it should.
    pub(crate) fn failed(&mut self, why: String) {
        self.failure = Some(why);
    }

    /// Whether nothing was heard for too long.
    pub(crate) fn is_silent(&self, now: Instant) -> bool {
        let age = self.last.map(|last| now.saturating_duration_since(last));
        age.is_none_or(|age| age > SILENCE)
    }

    /// Why the device cannot be used.
    pub(crate) fn absence(&self, now: Instant) -> Option<String> {
        let (device, silence) = (self.device, self.silence);
        self.is_silent(now).then(|| match &self.failure {
            Some(why) => format!("{device} {silence}: {why}"),
            None => format!("{device} {silence}"),
        })
    }

    /// Whether an absence is no problem yet.
    pub(crate) fn is_starting(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.started) <= START
    }

    /// Its silence was looked at.
    pub(crate) fn looked(&mut self, now: Instant) {
        self.looked_at = now;
    }

    /// When to look at its silence again.
    pub(crate) fn look_at(&self) -> Instant {
        self.looked_at + SILENCE
    }
}

#[cfg(test)]
mod tests {
    use amber_proto::DeviceType;

    use super::*;

    #[test]
    fn a_device_is_silent_until_it_was_heard_and_some_time_after_it() {
        let now = Instant::now();
        let base = Device::new(DeviceType::BASE, 0);
        let mut heard = Heard::new(base, "does not move", now);
        assert_eq!(heard.absence(now), Some("base:0 does not move".into()));
        heard.failed("no answer".into());
        let why = "base:0 does not move: no answer";
        assert_eq!(heard.absence(now), Some(why.into()));
        heard.measured(now);
        assert_eq!(heard.absence(now + SILENCE), None);
        let late = now + SILENCE + Duration::from_millis(1);
        assert_eq!(heard.absence(late), Some("base:0 does not move".into()));
        heard.failed("no answer".into());
        heard.repeated();
        assert_eq!(heard.absence(late), Some("base:0 does not move".into()));
        assert!(heard.is_starting(now + START) && !heard.is_starting(now + 2 * START));
        heard.looked(late);
        assert_eq!(heard.look_at(), late + SILENCE);
    }
}
