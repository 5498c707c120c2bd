//! The reason why a driver is unavailable, as reported to clients. PURE.

use amber_proto::mediator::{Unavailable, unavailable::Reason};

use super::Driver;
use super::control::shorten;
use crate::supervise::{State, Stop};

/// The reason; `None` if it is available.
pub(super) fn of(driver: &Driver) -> Option<Unavailable> {
    let supervisor = &driver.supervisor;
    let (reason, message) = match supervisor.state() {
        State::Up => return None,
        State::Down if driver.waits => {
            let message = "it starts when the previous driver of this device has ended";
            (Reason::Restarting, message.into())
        }
        State::Starting => (Reason::Restarting, "it is being started".into()),
        State::Down => match supervisor.last_exit() {
            Some(exit) => (Reason::Stopped, format!("it is down: {exit}")),
            None => (Reason::Stopped, "it is stopped".into()),
        },
        State::Stopping {
            why: Stop::Fault(fault),
            ..
        } => (Reason::Restarting, format!("its driver {fault}")),
        State::Stopping {
            why: Stop::Asked, ..
        } => match supervisor.is_wanted() {
            true => (Reason::Restarting, "it is being restarted".into()),
            false => (Reason::Stopped, "it is being stopped".into()),
        },
        State::Backoff { reason, .. } => (Reason::Restarting, format!("its driver {reason}")),
        State::Failed { reason } => (Reason::Failed, format!("its driver {reason}")),
    };
    let device = driver.config.devices[0];
    let hint = match reason {
        Reason::Stopped => format!("`amber start {device}` starts it"),
        Reason::Failed => {
            format!(
                "`amber status {device}` shows the reason; `amber start {device}` starts it again"
            )
        }
        _ => format!("it recovers automatically; `amber status {device}` shows more"),
    };
    Some(Unavailable {
        reason: reason.into(),
        message: Some(shorten(&message)),
        hint: Some(hint),
    })
}

/// The driver has reported it, possibly with a reason.
pub(super) fn out_of_order(said: Option<Unavailable>) -> Unavailable {
    let said = said.unwrap_or_default();
    let usual = "its driver reports that it is unavailable";
    let message = said.message.filter(|text| !text.is_empty());
    Unavailable {
        reason: Reason::OutOfOrder.into(),
        message: Some(shorten(message.as_deref().unwrap_or(usual))),
        hint: said.hint.as_deref().map(shorten),
    }
}
