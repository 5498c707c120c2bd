//! A message of a device: the next one of a stream, and how it is shown. IO.

use amber_client::{Event, Subscription, Update};
use amber_proto::Device;
use amber_reflect::{Schemas, help, hex};
use amber_terminal::{Failure, Human, note};
use bytes::Bytes;
use serde::Serialize;
use serde_json::{Map, Value};

/// The next message; reports interruptions, and messages that were missed.
pub(super) async fn next<T>(
    updates: &mut Subscription<T>,
    device: Device,
) -> Result<Update<T>, Failure> {
    let update = next_counted(updates, device).await?;
    if update.missed > 0 {
        note(format!("{device}: missed {} messages", update.missed));
    }
    Ok(update)
}

/// The same for callers that count what was missed.
pub(super) async fn next_counted<T>(
    updates: &mut Subscription<T>,
    device: Device,
) -> Result<Update<T>, Failure> {
    loop {
        match updates.next_event().await {
            Some(Event::Message(update)) => return Ok(update),
            Some(Event::Interrupted(why)) => {
                note(format!(
                    "{device}: interrupted: {why}; continues when the device is back"
                ));
            }
            Some(Event::Resumed) => note(format!("{device}: continues")),
            None => return Err(Failure::new("the connection to the mediator has ended")),
        }
    }
}

/// A message, by its schema or in hex.
#[derive(Debug, Serialize)]
pub(super) struct Shown {
    device: String,
    bytes: usize,
    missed: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<Map<String, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hex: Option<String>,
    /// The message with units.
    #[serde(skip)]
    text: String,
}

impl Shown {
    pub(super) fn new(device: Device, update: &Update<Bytes>, schemas: &Schemas) -> Self {
        Self {
            missed: update.missed,
            ..Self::answer(device, &update.message, schemas)
        }
    }

    pub(super) fn answer(device: Device, bytes: &[u8], schemas: &Schemas) -> Self {
        let message = schemas.for_device(Some(device.device_type)).decode(bytes);
        let interface = schemas.interface(device.device_type).into_iter();
        let fields: Vec<_> = interface
            .flat_map(|interface| &interface.methods)
            .flat_map(|method| {
                method
                    .answer
                    .iter()
                    .chain(&method.may_answer)
                    .chain(&method.request)
            })
            .cloned()
            .collect();
        Self {
            text: message
                .as_ref()
                .map_or_else(String::new, |it| help::one_line(&fields, it)),
            device: device.to_string(),
            bytes: bytes.len(),
            missed: 0,
            hex: message.is_none().then(|| hex(bytes)),
            message,
        }
    }
}

impl Human for Shown {
    fn human(&self) -> String {
        match &self.hex {
            None => format!("{}\n", self.text),
            Some(hex) => format!("{} bytes: {hex}\n", self.bytes),
        }
    }
}
