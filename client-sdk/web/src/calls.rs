//! Requests that pages and viewers send to devices, by their descriptions. IO.

use std::time::Duration;

use amber_client::lease::{Claims, Terms, Use};
use amber_client::{Announcement, Client, Error};
use amber_proto::Device;
use amber_reflect::arguments::{self, Spelling};
use amber_reflect::{Motion, Schemas};
use amber_schema::{Harmless, Kind, Method};
use amber_terminal::note;
use bytes::Bytes;
use serde_json::{Map, Value};
use tokio::sync::{mpsc, oneshot};
use tokio::time::sleep_until;

use crate::limits::{ANSWER_MARGIN, LEASE_HOLD, LEASE_PERIOD, MAX_CLAIMS, MEDIATOR_DEADLINE};

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

/// The leases of what the requests of a page or viewer move. They end with their client.
#[derive(Clone, Debug)]
pub struct Leases(mpsc::Sender<Wanted>);

struct Wanted {
    device: Device,
    what: Use,
    granted: oneshot::Sender<Result<(), Error>>,
}

impl Leases {
    /// For the requests of this client. `name` says to people who moves the devices.
    #[must_use]
    pub fn new(client: Client, name: &str) -> Self {
        let (wanted, asked) = mpsc::channel(MAX_CLAIMS);
        let claims = Claims::new(Terms::new(name).with_period(LEASE_PERIOD), LEASE_HOLD);
        tokio::spawn(hold(client, claims, asked));
        Self(wanted)
    }

    /// Takes the lease of a device, unless it is held already.
    ///
    /// # Errors
    /// Another client holds it.
    async fn claim(&self, device: Device, what: Use) -> Result<(), Error> {
        let (granted, answer) = oneshot::channel();
        let wanted = Wanted {
            device,
            what,
            granted,
        };
        match self.0.send(wanted).await {
            Ok(()) => answer.await.unwrap_or(Ok(())),
            Err(_) => Ok(()),
        }
    }
}

async fn hold(client: Client, mut claims: Claims, mut asked: mpsc::Receiver<Wanted>) {
    loop {
        let due = claims.next_due();
        let expired = async {
            match due {
                Some(due) => sleep_until(due.into()).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            wanted = asked.recv() => {
                let Some(Wanted { device, what, granted }) = wanted else {
                    return;
                };
                let claimed = claims.claim(&client.device(device), what).await;
                let _ = granted.send(claimed);
            }
            // The error names the device.
            (_, error) = claims.lost() => note(error),
            () = expired => claims.expire(),
        }
    }
}

/// Sends a request with arguments as on the command line, takes the lease of what it moves, and
/// returns the answer by name; null if the request has none. A request without an answer asks the
/// driver whether it carries it out.
///
/// # Errors
/// An argument is invalid, or the device does not answer or refuses.
pub async fn call(
    client: &Client,
    leases: &Leases,
    device: Device,
    schemas: &Schemas,
    method: &Method,
    words: &[String],
) -> Result<Value, String> {
    let motion = |message: &[u8]| match schemas.interface(device.device_type) {
        Some(interface) => {
            let schemas = schemas.for_device(Some(device.device_type));
            schemas.motion(interface, message)
        }
        None => Motion::Nothing,
    };
    let of_device = schemas.for_device(Some(device.device_type));
    let given = arguments::read(method, words, Spelling::default());
    let given = given.map_err(|error| error.text)?;
    let message: Bytes = (of_device.request(method, &given))
        .map_err(|error| error.text)?
        .into();
    let what = match motion(&message) {
        Motion::Nothing | Motion::Stops => None,
        Motion::Moves => Some(Use::Command),
        Motion::Errand => Some(Use::Errand),
    };
    if let Some(what) = what {
        let claimed = leases.claim(device, what).await;
        claimed.map_err(|error| in_words(&error))?;
    }
    let Kind::Ask { timeout_ms, .. } = &method.kind else {
        let proxy = client.device(device);
        let sent = proxy.command_raw(message).await;
        return sent.map(|()| Value::Null).map_err(|error| in_words(&error));
    };
    let duration = arguments::duration(method).and_then(|path| given.time_ms(path));
    let duration = duration.map(|ms| Duration::from_millis(ms) + ANSWER_MARGIN);
    let usual = timeout_ms.map(|ms| Duration::from_millis(ms.into()));
    let deadline = duration.or(usual).unwrap_or(client.deadline());
    let proxy = client.device(device).with_deadline(deadline);
    let answer = proxy.request_raw(message).await;
    let answer = answer.map_err(|error| in_words(&error))?;
    read_answer(method, of_device, &answer).map(Value::Object)
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
