//! `amber events`: events of drivers and clients. IO.

use amber_client::Mediator;
use amber_client::subscription;
use amber_proto::mediator::{Event, event::Kind};
use amber_terminal::{Failure, Human, local_time, note, show};
use serde::Serialize;

use super::devices::name;

pub(super) async fn run(mediator: &Mediator, json: bool) -> Result<(), Failure> {
    // A mediator of the original system has no events and does not answer.
    mediator.ping().await?;
    let mut events = mediator.events().await?;
    note("waiting for events; Ctrl-C ends");
    while let Some(event) = events.next_event().await {
        match event {
            subscription::Event::Message(update) => {
                if update.missed > 0 {
                    note(format!("missed {} events", update.missed));
                }
                show(&Shown::new(update.message), json)?;
            }
            subscription::Event::Interrupted(why) => note(format!("interrupted: {why}")),
            subscription::Event::Resumed => {}
        }
    }
    Err(Failure::new("the connection to the mediator has ended"))
}

/// An event as a line of text, for other commands that show events.
pub fn event_line(event: Event) -> String {
    Shown::new(event).human()
}

/// The same as JSON.
pub fn event_json(event: Event) -> impl Serialize {
    Shown::new(event)
}

#[derive(Debug, Serialize)]
struct Shown {
    time_ms: u64,
    number: Option<u64>,
    kind: &'static str,
    device: Option<String>,
    client_id: Option<i32>,
    text: Option<String>,
}

impl Shown {
    fn new(event: Event) -> Self {
        let kind = match Kind::try_from(event.kind) {
            Ok(Kind::DeviceUp) => "up",
            Ok(Kind::DeviceDown) => "down",
            Ok(Kind::DeviceFailed) => "failed",
            Ok(Kind::DeviceTrouble) => "trouble",
            Ok(Kind::DeviceRecovered) => "recovered",
            Ok(Kind::ClientGone) => "gone",
            Ok(Kind::ConfigurationReloaded) => "reloaded",
            Ok(Kind::DeviceLease) => "lease",
            Ok(Kind::DeviceHalted) => "halted",
            Ok(Kind::DeviceHaltReleased) => "released",
            Ok(Kind::DeviceMotionRefused) => "refused",
            Ok(Kind::DeviceMotionStopped) => "stopped",
            // A newer mediator has sent an unknown event.
            Err(_) => "unknown",
        };
        Self {
            time_ms: event.time_ms(),
            number: event.number,
            kind,
            device: event.device.as_ref().map(name),
            client_id: event.client_id,
            text: event.text,
        }
    }
}

impl Human for Shown {
    fn human(&self) -> String {
        let time = local_time(self.time_ms);
        let who = match (&self.device, self.client_id) {
            (Some(device), _) => device.clone(),
            (None, Some(client)) => format!("client {client}"),
            (None, None) if self.kind == "unknown" => "event".into(),
            (None, None) => "configuration".into(),
        };
        let text = self.text.as_deref().filter(|text| !text.is_empty());
        let text = text.map(|text| format!(": {text}")).unwrap_or_default();
        format!("{time} {who} {}{text}\n", self.kind)
    }
}

#[cfg(test)]
mod tests {
    use amber_proto::mediator::Device as WireDevice;

    use super::*;

    #[test]
    fn one_line_per_event_in_the_time_zone_of_this_machine() {
        let event = Event {
            kind: Kind::DeviceDown.into(),
            device: Some(WireDevice { r#type: 5, id: 0 }),
            text: Some("killed by signal 9 (SIGKILL)".into()),
            time_ms: Some(1_700_000_581_000),
            ..Event::default()
        };
        let down = Shown::new(event);
        let time = local_time(1_700_000_581_000);
        assert_eq!(
            down.human(),
            format!("{time} dummy:0 down: killed by signal 9 (SIGKILL)\n")
        );
        assert_eq!(serde_json::to_value(&down).unwrap()["kind"], "down");
    }

    #[test]
    fn trouble_and_recovery_show_their_text() {
        let shown = |kind: Kind, text: &str| {
            Shown::new(Event {
                kind: kind.into(),
                device: Some(WireDevice { r#type: 4, id: 0 }),
                text: Some(text.into()),
                time_ms: Some(0),
                ..Event::default()
            })
        };
        let trouble = shown(Kind::DeviceTrouble, "/dev/ttyACM0 is gone");
        let time = local_time(0);
        assert_eq!(
            trouble.human(),
            format!("{time} hokuyo:0 trouble: /dev/ttyACM0 is gone\n")
        );
        let json = serde_json::to_value(&trouble).unwrap();
        assert_eq!(json["kind"], "trouble");
        assert_eq!(json["text"], "/dev/ttyACM0 is gone");
        let recovered = shown(Kind::DeviceRecovered, "after 12.0 s");
        assert_eq!(
            recovered.human(),
            format!("{time} hokuyo:0 recovered: after 12.0 s\n")
        );
    }
}
