//! The driver between the mediator and a board with Firmata. IO.

use std::time::Instant;

use amber_driver::devices::board::{BoardLink, DriverMsg};
use amber_driver::now;

use super::Settings;
use super::logic::{FirmataLogic, Output};
use crate::board::driver::{BoardRequest, PinsDriver, answer, tell};
use crate::connection::Connect;
use crate::device_task::Next;
use crate::stream::{PortAction, PortEvent, StreamDevice, StreamLogic};

/// The driver of a board, which it reaches through `connect`.
pub(crate) fn driver<C: Connect>(
    settings: Settings,
    connect: C,
) -> PinsDriver<StreamDevice<FirmataLogic, C>> {
    PinsDriver::new(move || StreamDevice::new(FirmataLogic::new(settings, now()), connect))
}

impl StreamLogic for FirmataLogic {
    type Request = BoardRequest;
    type Message = DriverMsg;
    type Link = BoardLink;

    fn request(&mut self, _now: Instant, _link: &BoardLink, request: BoardRequest) {
        answer(self, request);
    }

    fn handle(&mut self, now: Instant, event: PortEvent<'_>) {
        match event {
            PortEvent::Opened => self.opened(now),
            PortEvent::Failed(problem) => self.failed(now, problem),
            PortEvent::Bytes(bytes) => self.handle_bytes(now, bytes),
            PortEvent::Timeout => self.handle_timeout(now),
            PortEvent::ShutDown => self.shut_down(),
        }
    }

    fn next(&mut self, now: Instant, link: &BoardLink) -> Next<PortAction> {
        tell(self, now, link);
        match self.poll_output() {
            Some(Output::Open) => Next::Perform(PortAction::Open),
            Some(Output::Close) => Next::Perform(PortAction::Close),
            Some(Output::Write(bytes)) => Next::Perform(PortAction::Write(bytes)),
            Some(Output::End) => Next::End,
            None => Next::Wait,
        }
    }

    fn wake_at(&self) -> Option<Instant> {
        self.wake_at()
    }

    fn trouble(&self) -> Option<&str> {
        self.service.trouble()
    }

    fn counters(&self) -> String {
        format!("{:?}", self.service.counters)
    }

    fn last_words(&self) -> Option<Vec<u8>> {
        self.last_words()
    }

    fn handle_guard_acted(&mut self) {
        self.guard_acted();
    }
}
