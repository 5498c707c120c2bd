//! Why a driver cannot be used, for those who ask. PURE.

use amber_proto::mediator::{Unavailable, unavailable::Reason};

use super::Driver;
use super::control::shorten;
use crate::supervise::{State, Stop};

/// Nothing when it can.
pub(super) fn of(driver: &Driver) -> Option<Unavailable> {
    let supervisor = &driver.supervisor;
    let (reason, message) = match supervisor.state() {
        State::Up => return None,
        State::Down if driver.waits => {
            let message = "it starts when the driver that had it before has ended";
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
            format!("`amber status {device}` shows why; `amber start {device}` brings it back")
        }
        _ => format!("it comes back by itself; `amber status {device}` shows more"),
    };
    Some(Unavailable {
        reason: reason.into(),
        message: Some(shorten(&message)),
        hint: Some(hint),
    })
}

/// Its driver says so.
pub(super) fn out_of_order() -> Unavailable {
    Unavailable {
        reason: Reason::OutOfOrder.into(),
        message: Some("its driver says that it cannot be used".into()),
        hint: None,
    }
}
