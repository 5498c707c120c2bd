//! `amber start`, `stop`, `restart`, `reload`: what the mediator said. IO.

use amber_proto::Device;
use amber_proto::mediator::DriverState;
use serde::Serialize;

use super::Failure;
use super::output::{self, Human};
use crate::error::{Error, Reason};
use crate::proxy::Mediator;

/// What the mediator does now.
#[derive(Debug, Serialize)]
struct Done {
    done: String,
}

/// Starts a driver that does not run: with one that runs nothing would happen.
pub(super) async fn start(mediator: &Mediator, device: Device, json: bool) -> Result<(), Failure> {
    let state = mediator.driver(device).await?.state();
    if matches!(state, DriverState::Up | DriverState::Starting) {
        return Err(
            Failure::new(format!("the driver of {device} is already running"))
                .hint(format!("`amber restart {device}` restarts it")),
        );
    }
    show(mediator.start(device).await, json)
}

pub(super) fn show(done: Result<String, Error>, json: bool) -> Result<(), Failure> {
    match done {
        Ok(done) => output::show(&Done { done }, json),
        Err(
            error @ Error::Refused {
                reason: Reason::NotAllowed,
                hint: None,
                ..
            },
        ) => Err(Failure::from(error)
            .hint("ask from the robot itself, or allow it in the mediator's configuration")),
        Err(error) => Err(error.into()),
    }
}

impl Human for Done {
    fn human(&self) -> String {
        format!("{}\n", self.done)
    }
}
