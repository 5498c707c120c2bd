//! `amber start`, `stop`, `restart`, `reload`: what the mediator said. IO.

use serde::Serialize;

use super::Failure;
use super::output::{self, Human};
use crate::error::{Error, Reason};

/// What the mediator does now.
#[derive(Debug, Serialize)]
struct Done {
    done: String,
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
