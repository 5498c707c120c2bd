//! The connection of a recorder to its mediator. IO.

use std::io;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;

use amber_client::error::Reason;
use amber_client::{Client, Error};
use amber_proto::{Device, DeviceType};
use amber_reflect::Schemas;
use amber_terminal::{Failure, note};

use super::super::descriptions;

/// A feed, and what its messages mean.
pub(super) struct OpenFeed {
    pub(super) stream: UnixStream,
    pub(super) schemas: Schemas,
}

impl OpenFeed {
    /// Opens a feed of these devices, or of all.
    ///
    /// # Errors
    /// The mediator refuses, is too old, or runs on another machine.
    pub(super) async fn open(
        client: &Client,
        devices: &[Device],
        mut schemas: Schemas,
    ) -> Result<Self, Failure> {
        let mediator = client.mediator();
        let drivers = mediator.drivers().await?;
        let served = drivers.iter().flat_map(|driver| &driver.devices);
        let served = served.map(|device| Device::new(DeviceType(device.r#type), device.id));
        let served: Vec<_> = served.collect();
        for device in devices.iter().filter(|device| !served.contains(device)) {
            note(format!(
                "{device} has no driver now; it is recorded when it has"
            ));
        }
        let is_wanted = |device: &&Device| devices.is_empty() || devices.contains(device);
        for device in served.iter().filter(is_wanted) {
            if schemas.interface(device.device_type).is_some() {
                continue;
            }
            if let Err(failure) = descriptions::complete(client, *device, &mut schemas).await {
                note(format!(
                    "{}; its messages are recorded as bytes",
                    failure.text()
                ));
            }
        }
        let wanted = devices.iter().map(|device| amber_proto::mediator::Device {
            r#type: device.device_type.0,
            id: device.id.0,
        });
        let feed = mediator.open_feed(wanted).await.map_err(cannot_open)?;
        let stream = UnixStream::connect(&feed.path);
        let stream = stream.map_err(|error| cannot_connect(&feed.path, &error))?;
        Ok(Self { stream, schemas })
    }
}

/// Tells the mediator that this recorder leaves. It writes what it still has.
pub(super) fn leave(stream: &UnixStream) {
    // It may have ended already.
    let _ = stream.shutdown(Shutdown::Write);
}

/// Ends reading from a mediator that hangs.
pub(super) fn give_up(stream: &UnixStream) {
    let _ = stream.shutdown(Shutdown::Both);
}

/// The feed has ended without its last record.
pub(super) fn lost(why: Option<String>) -> Failure {
    let why = why.map(|why| format!(": {why}")).unwrap_or_default();
    Failure::new(format!("the connection to the mediator was lost{why}"))
        .hint("the recording has everything until then; `amber status` shows whether it runs again")
}

fn cannot_open(error: Error) -> Failure {
    match &error {
        // The only other reason is a list of devices that is too long, which has a hint.
        Error::Refused {
            reason: Reason::BadRequest,
            hint: None,
            ..
        } => Failure::new("this mediator is too old: it cannot be recorded")
            .hint("run a mediator of this version"),
        _ => error.into(),
    }
}

fn cannot_connect(path: &str, error: &io::Error) -> Failure {
    let failure = Failure::new(format!("cannot open the feed {path}: {error}"));
    match error.kind() {
        io::ErrorKind::NotFound => failure.hint(
            "the mediator runs in another container, or on another machine: run `amber record` \
             there",
        ),
        io::ErrorKind::PermissionDenied => failure.hint(
            "only the mediator's user can record: run `amber record` as this user, e.g. with sudo",
        ),
        _ => failure,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(reason: Reason, hint: Option<&str>) -> Error {
        Error::Refused {
            device: Device::MEDIATOR,
            reason,
            message: "why".into(),
            hint: hint.map(str::to_owned),
        }
    }

    #[test]
    fn a_refusal_says_what_to_do() {
        let old = cannot_open(refused(Reason::BadRequest, None));
        assert!(old.text().contains("too old"), "{}", old.text());
        let remote = cannot_open(refused(Reason::NotAllowed, Some("run it there")));
        assert_eq!(remote.text(), "mediator:0 refused the request: why");
        let missing = cannot_connect("/x", &io::ErrorKind::NotFound.into());
        assert!(missing.text().starts_with("cannot open the feed /x"));
    }
}
