//! The VESCs at their ports, with their logic. IO.

use std::borrow::Cow;
use std::future::pending;

use amber_driver::devices::roboclaw::{DriverMsg, RoboclawLink};
use amber_driver::now;

use super::Settings;
use super::logic::{VescAction, VescLogic};
use super::units::Unit;
use crate::connection::{Connect, Port};
use crate::device_task::{Next, Owner, until};
use crate::wheels::Model;
use crate::wheels::driver::{WheelRequest, WheelsDriver, answer, tell};

/// More than the longest frame, in bytes.
const READ: usize = 1024;

/// The driver of two VESCs, which reaches the second one by the first or through `second`.
pub(crate) fn driver<C: Connect>(
    settings: Settings,
    first: C,
    second: Option<C>,
) -> WheelsDriver<Vescs<C>> {
    WheelsDriver::new(move || Vescs {
        logic: VescLogic::new(settings, now()),
        first: Port::new(first),
        second: second.map(Port::new),
        buffers: [[0; READ]; 2],
    })
}

/// Both VESCs with their logic.
pub(crate) struct Vescs<C> {
    logic: VescLogic,
    first: Port<C>,
    second: Option<Port<C>>,
    buffers: [[u8; READ]; 2],
}

impl<C: Connect> Owner for Vescs<C> {
    type Request = WheelRequest;
    type Message = DriverMsg;
    type Link = RoboclawLink;
    type Action = VescAction;

    fn request(&mut self, link: &RoboclawLink, request: WheelRequest) {
        answer(&mut self.logic, link, request);
    }

    fn shut_down(&mut self) {
        self.logic.shut_down();
    }

    fn next(&mut self, link: &RoboclawLink) -> Next<VescAction> {
        let now = now();
        self.logic.set_listened(now, link.subscriptions() > 0);
        let action = self.logic.poll_action(now);
        tell(&mut self.logic, link);
        match action {
            Some(VescAction::End) => Next::End,
            Some(action) => Next::Perform(action),
            None => Next::Wait,
        }
    }

    async fn perform(&mut self, action: VescAction) {
        let done = match action {
            VescAction::Open => match self.open().await {
                Ok(()) => return self.logic.opened(now()),
                failed => failed,
            },
            VescAction::Close => {
                self.close();
                Ok(())
            }
            VescAction::Write(port, bytes) => match (port, &mut self.second) {
                (Unit::Second, Some(second)) => second.write(&bytes).await,
                _ => self.first.write(&bytes).await,
            },
            VescAction::End => Ok(()),
        };
        if let Err(problem) = done {
            self.logic.failed(now(), &problem);
        }
    }

    async fn wait(&mut self) {
        let due = self.logic.wake_at();
        let [first, second] = &mut self.buffers;
        tokio::select! {
            // On a busy machine, this task runs late: a VESC that has answered is not silent.
            biased;
            read = self.first.read(first) => match read {
                Ok(length) => self.logic.handle_bytes(now(), Unit::First, &first[..length]),
                Err(problem) => self.logic.failed(now(), &problem),
            },
            read = read(self.second.as_mut(), second) => match read {
                Ok(length) => self.logic.handle_bytes(now(), Unit::Second, &second[..length]),
                Err(problem) => self.logic.failed(now(), &problem),
            },
            () = until(due) => {}
        }
        if due.is_some_and(|due| now() >= due) {
            self.logic.handle_timeout(now());
        }
    }

    fn trouble(&self) -> Option<Cow<'_, str>> {
        self.logic.trouble()
    }

    fn log_counters(&self) {
        tracing::debug!(counters = ?self.logic.service().counters(), "ended");
    }
}

impl<C: Connect> Vescs<C> {
    /// Opens all ports, or none.
    async fn open(&mut self) -> Result<(), String> {
        let opened = async {
            self.first.open().await?;
            match &mut self.second {
                Some(second) => second.open().await,
                None => Ok(()),
            }
        };
        let opened = opened.await;
        if opened.is_err() {
            self.close();
        }
        opened
    }

    fn close(&mut self) {
        self.first.close();
        if let Some(second) = &mut self.second {
            second.close();
        }
    }
}

/// Waits for bytes; never returns without a port, or while it is closed.
///
/// Dropping the future loses nothing.
async fn read<C: Connect>(port: Option<&mut Port<C>>, buffer: &mut [u8]) -> Result<usize, String> {
    match port {
        Some(port) => port.read(buffer).await,
        None => pending().await,
    }
}
