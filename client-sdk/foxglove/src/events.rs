//! Events of the mediator as lines of a log. PURE.

use amber_proto::mediator::{Event, event::Kind};
use amber_proto::{Device, DeviceType};

use crate::frames::timestamp;
use crate::messages::{Log, log::Level};

/// An event as a line of a log.
pub(crate) fn line(event: &Event, time_ns: u64) -> Log {
    let (level, what) = match Kind::try_from(event.kind) {
        Ok(Kind::DeviceUp) => (Level::Info, "up"),
        Ok(Kind::DeviceDown) => (Level::Warning, "down"),
        Ok(Kind::DeviceFailed) => (Level::Error, "failed"),
        Ok(Kind::DeviceTrouble) => (Level::Warning, "does not work"),
        Ok(Kind::DeviceRecovered) => (Level::Info, "works again"),
        Ok(Kind::ClientGone) => (Level::Debug, "gone"),
        Ok(Kind::ConfigurationReloaded) => (Level::Info, "configuration reloaded"),
        Ok(Kind::DeviceLease) => (Level::Info, "lease"),
        Ok(Kind::DeviceHalted) => (Level::Warning, "halted"),
        Ok(Kind::DeviceHaltReleased) => (Level::Info, "halt released"),
        Ok(Kind::DeviceMotionRefused) => (Level::Warning, "motion refused"),
        Ok(Kind::DeviceMotionStopped) => (Level::Warning, "motion stopped"),
        // A newer mediator has sent an unknown event.
        Err(_) => (Level::Unknown, "event of an unknown kind"),
    };
    let device = event.device.as_ref();
    let device = device.map(|it| Device::new(DeviceType(it.r#type), it.id).to_string());
    let client = event.client_id.map(|id| format!("client {id}"));
    let text = event.text.as_deref().filter(|text| !text.is_empty());
    Log {
        timestamp: timestamp(time_ns),
        level: level.into(),
        message: match text {
            Some(text) => format!("{what}: {text}"),
            None => what.to_owned(),
        },
        name: device.or(client).unwrap_or_else(|| "mediator".to_owned()),
        file: String::new(),
        line: 0,
    }
}

#[cfg(test)]
mod tests {
    use amber_proto::mediator::Device as WireDevice;

    use super::*;

    #[test]
    fn an_event_is_a_line_with_its_device_and_level() {
        let event = |kind: Kind| Event {
            kind: kind.into(),
            device: Some(WireDevice { r#type: 4, id: 0 }),
            text: Some("killed by signal 9".into()),
            ..Event::default()
        };
        let down = line(&event(Kind::DeviceDown), 1_000_000_007);
        assert_eq!(
            (&*down.name, &*down.message),
            ("hokuyo:0", "down: killed by signal 9")
        );
        assert_eq!(down.level(), Level::Warning);
        assert_eq!(down.timestamp.unwrap().nanos, 7);
        let reloaded = Event {
            kind: Kind::ConfigurationReloaded.into(),
            ..Event::default()
        };
        let reloaded = line(&reloaded, 0);
        assert_eq!(
            (&*reloaded.name, &*reloaded.message),
            ("mediator", "configuration reloaded")
        );
    }
}
