//! `amber trace`: shows the frames to and from a driver. IO.

use std::path::PathBuf;

use amber_client::{Client, Event};
use amber_proto::mediator::{Traced, traced::Direction};
use amber_proto::{Device, DeviceType, Header};
use amber_reflect::{Schemas, explain, hex};
use amber_terminal::{Failure, Human, note, show};
use serde::Serialize;
use serde_json::{Map, Value};

pub(super) const HELP: &str = "\
Examples:
  amber trace dummy
  amber trace hokuyo --bytes -n 1
  amber trace 110:0 --proto my_device.proto

`>` marks frames to the driver, `<` frames from it. Times are UTC. Tracing works only on the
machine of the mediator, for its user and root.";

/// Options of `amber trace`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Device, e.g. hokuyo, hokuyo:0 or 4:0
    #[arg(value_parser = amber_terminal::device)]
    device: Device,
    /// Explain every byte of each frame
    #[arg(long)]
    bytes: bool,
    /// Messages of your own device (may be given several times)
    #[arg(long, value_name = "FILE")]
    proto: Vec<PathBuf>,
    /// Number of frames to show [default: until Ctrl-C]
    #[arg(short = 'n', long, value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
}

pub(super) async fn run(client: &Client, options: Options, json: bool) -> Result<(), Failure> {
    let schemas = Schemas::with(&options.proto)?;
    let mediator = client.mediator();
    let mut frames = mediator.trace_device(options.device).await?;
    note(format!("tracing {}; Ctrl-C ends", options.device));
    let (mut shown, mut lost) = (0, 0);
    while options.count.is_none_or(|count| shown < count) {
        match frames.next_event().await {
            Some(Event::Message(update)) => {
                // Frames lost in the mediator and in the network.
                let now = update.message.lost().saturating_sub(lost) + update.missed;
                lost = update.message.lost();
                if now > 0 {
                    note(format!("{now} frames are missing: there were too many"));
                }
                show(&Shown::new(&update.message, &schemas, options.bytes), json)?;
                shown += 1;
            }
            Some(Event::Interrupted(why)) => note(format!("interrupted: {why}")),
            Some(Event::Resumed) => {
                lost = 0;
                mediator.trace(options.device, None).await?;
            }
            None => return Err(Failure::new("the connection to the mediator has ended")),
        }
    }
    Ok(())
}

/// What is shown in hex of a message that the mediator has cut.
const CUT_BYTES: usize = 64;

#[derive(Debug, Serialize)]
struct Shown {
    time_us: u64,
    device: String,
    direction: &'static str,
    clients: Vec<i32>,
    /// The device in the header, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    header_device: Option<String>,
    bytes: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<Map<String, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hex: Option<String>,
    #[serde(skip)]
    text: String,
}

impl Shown {
    fn new(traced: &Traced, schemas: &Schemas, bytes: bool) -> Self {
        let (header, message) = (&traced.header[..], &traced.message[..]);
        let parsed = Header::parse(header).unwrap_or_default();
        let schemas = schemas.for_device(Some(DeviceType(traced.device.r#type)));
        let values = schemas.brief_values(message);
        // The mediator cuts long messages. Most have the data of a picture, which nobody reads in hex.
        let undecoded = match traced.message_bytes {
            None => message,
            Some(_) => &message[..message.len().min(CUT_BYTES)],
        };
        let mut text = match traced.message_bytes {
            None => schemas.brief(header, message),
            Some(all) => format!("{} ... of {all} bytes", schemas.brief(header, message)),
        };
        if bytes {
            let lengths = [header, message].map(|part| (part.len() as u16).to_be_bytes());
            let frame = [&lengths[0][..], header, &lengths[1], message].concat();
            for explained in schemas.explain(&frame).0 {
                text += "\n";
                text += explain::table(&frame, &explained.lines).trim_end();
            }
        }
        Self {
            time_us: traced.time_us(),
            device: super::devices::name(&traced.device),
            direction: match traced.direction() {
                Direction::ToDriver => "to-driver",
                Direction::FromDriver => "from-driver",
            },
            clients: parsed.client_ids().map(|id| id.0).collect(),
            header_device: parsed.device().map(|device| device.to_string()),
            bytes: traced
                .message_bytes
                .map_or(message.len(), |all| all as usize),
            hex: values.is_none().then(|| hex(undecoded)),
            message: values,
            text,
        }
    }
}

impl Human for Shown {
    fn human(&self) -> String {
        let (seconds, micros) = (self.time_us / 1_000_000, self.time_us % 1_000_000);
        let [hour, minute, second] = [seconds / 3600 % 24, seconds / 60 % 60, seconds % 60];
        let arrow = if self.direction == "to-driver" {
            '>'
        } else {
            '<'
        };
        let text = &self.text;
        format!("{hour:02}:{minute:02}:{second:02}.{micros:06} {arrow} {text}\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_one_line_with_its_time_and_direction() {
        let traced = Traced {
            direction: Direction::FromDriver.into(),
            header: b"\x1a\x01\x05"[..].into(),
            message: b"\x10\x03\x20\x07"[..].into(),
            time_us: Some(1_700_000_581_000_042),
            ..Traced::default()
        };
        let schemas = Schemas::built_in();
        let shown = Shown::new(&traced, &schemas, false);
        assert_eq!(
            shown.human(),
            "22:23:01.000042 < clients [5]  PONG ackNum 7\n"
        );
        let json = serde_json::to_value(&shown).unwrap();
        assert_eq!(
            (&json["message"]["type"], &json["clients"][0]),
            (&"PONG".into(), &5.into())
        );
        assert_eq!(
            Shown::new(&traced, &schemas, true).human().lines().count(),
            6
        );
    }
}
