//! Detects silence of the other devices. PURE.

use std::time::Duration;

use amber_proto::Device;

use crate::robot_options::Devices;

/// At first, the other drivers may still be starting.
const START: Duration = Duration::from_secs(3);

/// The data that a driver gets from another device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Scans,
    Wheels,
    Imu,
    Contacts,
    Poses,
}

impl Source {
    /// The missing data, as text.
    fn lack(self) -> &'static str {
        match self {
            Self::Scans => "sends no scans",
            Self::Wheels => "reports no wheel speeds",
            Self::Imu => "sends no readings",
            Self::Contacts => "does not say what the robot touches",
            Self::Poses => "sends no poses",
        }
    }

    /// A longer silence is a problem. The wheels also stop after this time, if they need the
    /// source.
    fn timeout(self) -> Duration {
        match self {
            Self::Scans | Self::Wheels => Duration::from_millis(600),
            Self::Imu | Self::Contacts | Self::Poses => Duration::from_millis(1_000),
        }
    }
}

/// The other devices, and the last time at which each was heard.
#[derive(Clone, Debug)]
pub(crate) struct Sources {
    sources: Vec<SourceState>,
}

#[derive(Clone, Debug)]
struct SourceState {
    source: Source,
    device: Device,
    heard: Option<Duration>,
    error: Option<String>,
}

impl Sources {
    /// Devices that were not heard yet.
    pub(crate) fn new(devices: Devices) -> Self {
        let sources = [
            (Source::Wheels, Some(devices.wheels)),
            (Source::Scans, devices.laser),
            (Source::Poses, devices.poses),
            (Source::Imu, devices.imu),
            (Source::Contacts, devices.bumper),
        ];
        let state = |(source, device): (Source, Option<Device>)| {
            Some(SourceState {
                source,
                device: device?,
                heard: None,
                error: None,
            })
        };
        Self {
            sources: sources.into_iter().filter_map(state).collect(),
        }
    }

    /// Data has arrived.
    pub(crate) fn heard(&mut self, source: Source, now: Duration) {
        if let Some(state) = self.state(source) {
            state.heard = Some(now);
            state.error = None;
        }
    }

    /// A request has failed.
    pub(crate) fn failed(&mut self, source: Source, error: String) {
        if let Some(state) = self.state(source) {
            state.error = Some(error);
        }
    }

    /// Whether data has arrived lately.
    pub(crate) fn is_alive(&self, source: Source, now: Duration) -> bool {
        let is_alive = |state: &SourceState| {
            state
                .heard
                .is_some_and(|heard| now.saturating_sub(heard) <= state.source.timeout())
        };
        (self.sources.iter()).any(|state| state.source == source && is_alive(state))
    }

    /// The first silent device, and the reason.
    pub(crate) fn trouble(&self, now: Duration) -> Option<String> {
        let is_silent = |state: &&SourceState| match state.heard {
            Some(heard) => now.saturating_sub(heard) > state.source.timeout(),
            None => now > START,
        };
        let state = self.sources.iter().find(is_silent)?;
        let what = format!("{} {}", state.device, state.source.lack());
        Some(match &state.error {
            Some(error) => format!("{what}: {error}"),
            None => what,
        })
    }

    fn state(&mut self, source: Source) -> Option<&mut SourceState> {
        self.sources.iter_mut().find(|state| state.source == source)
    }
}

#[cfg(test)]
mod tests {
    use amber_proto::DeviceType;

    use super::*;

    #[test]
    fn a_silent_device_is_named_with_the_last_error() {
        let ms = Duration::from_millis;
        let mut sources = Sources::new(Devices {
            laser: Some(Device::new(DeviceType::HOKUYO, 0)),
            wheels: Device::new(DeviceType::ROBOCLAW, 1),
            imu: None,
            bumper: None,
            poses: None,
        });
        assert_eq!(sources.trouble(ms(3000)), None);
        assert!(!sources.is_alive(Source::Wheels, ms(100)));
        let text = sources.trouble(ms(3001)).unwrap();
        assert_eq!(text, "roboclaw:1 reports no wheel speeds");
        sources.heard(Source::Wheels, ms(3000));
        assert!(sources.is_alive(Source::Wheels, ms(3600)));
        assert!(!sources.is_alive(Source::Wheels, ms(3601)));
        sources.failed(Source::Scans, "timeout".into());
        let text = sources.trouble(ms(3600)).unwrap();
        assert_eq!(text, "hokuyo:0 sends no scans: timeout");
        sources.heard(Source::Scans, ms(3700));
        assert!(sources.trouble(ms(3700)).unwrap().starts_with("roboclaw:1"));
        sources.heard(Source::Wheels, ms(3700));
        assert_eq!(sources.trouble(ms(4300)), None);
        // There is no such device.
        sources.heard(Source::Poses, ms(3700));
    }
}
