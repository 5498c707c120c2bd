//! Requests that pages and viewers send to devices, by their descriptions. IO.

use std::time::Duration;

use amber_client::{Announcement, Client, Error};
use amber_proto::Device;
use amber_reflect::Schemas;
use amber_reflect::arguments::{self, Spelling};
use amber_schema::{Harmless, Kind, Method};
use bytes::Bytes;
use serde_json::{Map, Value};

use crate::limits::{ANSWER_MARGIN, MEDIATOR_DEADLINE};

/// The known descriptions.
#[derive(Debug)]
pub struct Known {
    /// The descriptions of Amber, and that of the device.
    pub schemas: Schemas,
    /// Why that of the device cannot be used, if it has one.
    pub problem: Option<String>,
}

/// The descriptions of Amber, and that of the device from the mediator if it is another one.
pub async fn schemas(client: &Client, device: Device) -> Known {
    let mut known = Known {
        schemas: Schemas::built_in(),
        problem: None,
    };
    let is_known = known.schemas.interface(device.device_type).is_some();
    if is_known || client.announcement() == Announcement::Silent {
        return known;
    }
    let mediator = client.mediator().with_deadline(MEDIATOR_DEADLINE);
    let found = mediator.get_description(device.device_type.0, device.id.0);
    // Most drivers have sent none.
    let Ok(found) = found.await else {
        return known;
    };
    match Schemas::from_descriptors(&found.files) {
        Ok(served) => known.schemas.add(served),
        Err(error) => {
            known.problem = Some(format!("{device}: invalid description: {}", error.text));
        }
    }
    known
}

/// Whether a request changes nothing.
#[must_use]
pub fn only_reads(method: &Method) -> bool {
    method.harmless == Harmless::Any && matches!(method.kind, Kind::Ask { .. })
}

/// Whether a request makes something move until another one comes, such as wheels. Its sender must
/// stop it, which a program that only passes requests on cannot know.
#[must_use]
pub fn keeps_moving(method: &Method) -> bool {
    let moves = method.moves.as_ref();
    moves.is_some_and(|moves| !moves.errand && moves.stop.is_some() && !method.request.is_empty())
}

/// Sends a request with arguments as on the command line, and returns the answer by name; null if the
/// request has none. A request without an answer asks the driver whether it carries it out.
///
/// # Errors
/// An argument is invalid, or the device does not answer or refuses.
pub async fn call(
    client: &Client,
    device: Device,
    schemas: &Schemas,
    method: &Method,
    words: &[String],
) -> Result<Value, String> {
    let schemas = schemas.for_device(Some(device.device_type));
    let given = arguments::read(method, words, Spelling::default());
    let given = given.map_err(|error| error.text)?;
    let message: Bytes = (schemas.request(method, &given))
        .map_err(|error| error.text)?
        .into();
    let Kind::Ask { timeout_ms, .. } = &method.kind else {
        let sent = client.device(device).command_raw(message).await;
        return sent.map(|()| Value::Null).map_err(|error| in_words(&error));
    };
    let duration = arguments::duration(method).and_then(|path| given.time_ms(path));
    let duration = duration.map(|ms| Duration::from_millis(ms) + ANSWER_MARGIN);
    let usual = timeout_ms.map(|ms| Duration::from_millis(ms.into()));
    let deadline = duration.or(usual).unwrap_or(client.deadline());
    let proxy = client.device(device).with_deadline(deadline);
    let answer = proxy.request_raw(message).await;
    let answer = answer.map_err(|error| in_words(&error))?;
    read_answer(method, schemas, &answer).map(Value::Object)
}

/// The fields of an answer by name.
///
/// # Errors
/// The device refuses the request, or a field is missing.
pub fn read_answer(
    method: &Method,
    schemas: &Schemas,
    bytes: &[u8],
) -> Result<Map<String, Value>, String> {
    let values = schemas.decode(bytes).unwrap_or_default();
    if let Kind::Ask {
        refusal: Some(refusal),
        ..
    } = &method.kind
        && let Some(why) = schemas.value_at(&values, &refusal.path)
    {
        let text = why.get("message").unwrap_or(why);
        return Err(text
            .as_str()
            .map_or_else(|| text.to_string(), str::to_owned));
    }
    answer_of(method, schemas, &values).ok_or_else(|| "the answer lacks a field".to_owned())
}

/// The fields of a method in a message; `None` if it does not have all of them.
#[must_use]
pub fn answer_of(
    method: &Method,
    schemas: &Schemas,
    values: &Map<String, Value>,
) -> Option<Map<String, Value>> {
    let mut found = Map::new();
    for field in &method.answer {
        let value = schemas.value_at(values, &field.path)?;
        found.insert(field.name.clone(), value.clone());
    }
    for field in &method.may_answer {
        if let Some(value) = schemas.value_at(values, &field.path) {
            found.insert(field.name.clone(), value.clone());
        }
    }
    Some(found)
}

/// An error with its hint.
#[must_use]
pub fn in_words(error: &Error) -> String {
    match error.hint() {
        Some(hint) => format!("{error} ({hint})"),
        None => error.to_string(),
    }
}
