//! Runs a model whose controllers are at a byte stream. IO.

use std::time::Instant;

use amber_driver::devices::roboclaw::{DriverMsg, RoboclawLink};
use amber_driver::now;

use super::driver::{WheelRequest, WheelsDriver, answer, tell};
use super::{StopReason, StreamAction, StreamModel};
use crate::connection::Connect;
use crate::device_task::Next;
use crate::stream::{PortAction, PortEvent, StreamDevice, StreamLogic};

/// The driver of a model, which reaches its controllers through `connect`.
pub(crate) fn driver<M: StreamModel, C: Connect>(
    settings: M::Settings,
    connect: C,
) -> WheelsDriver<StreamDevice<Logic<M>, C>> {
    WheelsDriver::new(move || StreamDevice::new(Logic(M::new(settings, now())), connect))
}

/// The logic of a model, in the task that owns the port.
pub(crate) struct Logic<M>(M);

impl<M: StreamModel> StreamLogic for Logic<M> {
    type Request = WheelRequest;
    type Message = DriverMsg;
    type Link = RoboclawLink;

    fn request(&mut self, _now: Instant, link: &RoboclawLink, request: WheelRequest) {
        answer(&mut self.0, link, request);
    }

    fn handle(&mut self, now: Instant, event: PortEvent<'_>) {
        match event {
            PortEvent::Opened => self.0.opened(now),
            PortEvent::Failed(problem) => self.0.failed(now, problem),
            PortEvent::Bytes(bytes) => self.0.handle_bytes(now, bytes),
            PortEvent::Timeout => self.0.handle_timeout(now),
            PortEvent::ShutDown => self.0.shut_down(),
        }
    }

    fn next(&mut self, now: Instant, link: &RoboclawLink) -> Next<PortAction> {
        self.0.set_listened(now, link.subscriptions() > 0);
        let action = self.0.poll_action(now);
        tell(&mut self.0, link);
        match action {
            Some(StreamAction::Open) => Next::Perform(PortAction::Open),
            Some(StreamAction::Close) => Next::Perform(PortAction::Close),
            Some(StreamAction::Write(bytes)) => Next::Perform(PortAction::Write(bytes)),
            Some(StreamAction::End) => Next::End,
            None => Next::Wait,
        }
    }

    fn wake_at(&self) -> Option<Instant> {
        self.0.wake_at()
    }

    fn trouble(&self) -> Option<&str> {
        self.0.service().trouble().or_else(|| self.0.hindrance())
    }

    fn last_words(&self) -> Option<Vec<u8>> {
        self.0.last_words()
    }

    fn handle_guard_acted(&mut self) {
        self.0.stop(StopReason::Late);
    }

    fn counters(&self) -> String {
        format!("{:?}", self.0.service().counters())
    }
}
