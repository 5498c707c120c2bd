//! Commands: requests without an answer, whose refusals nevertheless reach the caller. IO.
//!
//! Each command asks its driver for the outcome (`want_outcome` in `proto/mediator.proto`). Drivers of
//! this project report it at once, so a caller waits for one round trip. Others never do: each is
//! waited for once, for [`WAIT`]. A missing report is not an error, because the command or its report
//! may be lost. A report that comes later, or for which the caller does not wait, goes to a
//! [`Report`].
//!
//! Clients of the original mediator, and drivers that command other drivers, ask for nothing and wait
//! for nothing. The rule is the same in Python (`client-sdk/python/src/amber/aio.py`).

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use amber_proto::mediator::DriverMsg;
use amber_proto::{Device, DeviceMessage, MsgType};
use bytes::Bytes;
use prost::Message;
use tokio::time::timeout;
use tracing::warn;

use super::Proxy;
use crate::error::{Error, Reason, Result};

/// How long a command waits for the report of its driver.
const WAIT: Duration = Duration::from_millis(250);

/// Gets the reasons why commands were not carried out.
#[derive(Clone)]
pub(super) struct Report(Arc<dyn Fn(Error) + Send + Sync>);

impl fmt::Debug for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Report")
    }
}

impl Report {
    fn log() -> Self {
        Self(Arc::new(|error| {
            warn!("a command was not carried out: {error}");
        }))
    }
}

impl Proxy {
    /// The same device, whose commands do not wait for the driver.
    ///
    /// [`Proxy::command`] then resolves when the message has been handed to the system. If the driver
    /// reports later that it refuses the command, `report` gets the error. This is for programs that
    /// repeat their commands, and go on when a device is unplugged for a moment.
    pub fn without_waiting(mut self, report: impl Fn(Error) + Send + Sync + 'static) -> Self {
        self.report = Some(Report(Arc::new(report)));
        self
    }

    /// Sends a message that the device does not answer, and asks the driver whether it carries it out.
    /// The type becomes DATA unless you set it; synNum is always set here.
    ///
    /// Resolves when the driver has reported, which takes a round trip. A driver that does not report
    /// is waited for once, for a quarter of a second. [`Proxy::without_waiting`] waits for nothing,
    /// [`Proxy::send`] does not ask. If you drop the future earlier, the message may or may not be sent.
    ///
    /// # Errors
    /// The message could not be sent, the driver refuses it, or no driver serves the device. Success
    /// does not mean that the device received it.
    pub async fn command<M: DeviceMessage>(&self, mut message: M) -> Result<()> {
        if message.kind().is_none() {
            message.set_kind(MsgType::Data);
        }
        message.set_syn(None);
        self.command_raw(message.encode_to_vec().into()).await
    }

    /// Like [`Proxy::command`], with an encoded `DriverMsg`; synNum is appended.
    ///
    /// Dropping the future does the same as there.
    ///
    /// # Errors
    /// The same errors.
    pub async fn command_raw(&self, message: Bytes) -> Result<()> {
        let device = self.device;
        if device == Device::MEDIATOR || !self.client.may_ask_for_outcomes() {
            return self.send_raw(message).await;
        }
        let message = self.with_terms(message);
        let call = (self.client)
            .begin(device, wanting_outcome(&message), self.deadline, WAIT)
            .await?;
        let mut answer = Box::pin(call.answer());
        let reports = self.client.reports();
        if self.report.is_none() && reports.does(device) != Some(false) {
            if let Ok(answer) = timeout(WAIT, &mut answer).await {
                match &answer {
                    Ok(_) => reports.note(device, true),
                    Err(Error::TimedOut { .. }) => reports.note(device, false),
                    Err(_) => {}
                }
                return outcome(device, answer);
            }
            reports.note(device, false);
        }
        let report = self.report.clone().unwrap_or_else(Report::log);
        // It keeps no client alive.
        tokio::spawn(async move {
            let answer = answer.await;
            if answer.is_ok() {
                reports.note(device, true);
            }
            if let Err(error) = outcome(device, answer) {
                (report.0)(error);
            }
        });
        Ok(())
    }
}

fn wanting_outcome(command: &[u8]) -> Bytes {
    let wish = DriverMsg {
        want_outcome: Some(true),
        ..DriverMsg::default()
    };
    [command, &wish.encode_to_vec()].concat().into()
}

/// What the driver reports about a command.
fn outcome(device: Device, answer: Result<Bytes>) -> Result<()> {
    let answer = match answer {
        Ok(answer) => answer,
        Err(Error::TimedOut { .. } | Error::Closed { .. }) => return Ok(()),
        Err(error) => return Err(error),
    };
    let reported = DriverMsg::decode(answer).ok();
    let refused = reported.and_then(|message| message.outcome?.why_refused());
    match refused {
        None => Ok(()),
        Some(message) => Err(Error::Refused {
            device,
            reason: Reason::Failed,
            message,
            hint: Some(format!("`amber logs {device}` shows more")),
        }),
    }
}
