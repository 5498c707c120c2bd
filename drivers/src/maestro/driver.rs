//! The driver between the mediator and the Maestro. IO.

use std::time::Instant;

use amber_driver::devices::maestro::{DriverMsg, MaestroLink};

use super::logic::{Output, ServoLogic, Settings};
use crate::connection::Connect;
use crate::device_task::Next;
use crate::servos::Servos;
use crate::servos::driver::{ServoRequest, ServosDriver, answer, tell};
use crate::stream::{PortAction, PortEvent, StreamDevice, StreamLogic};

/// The driver of a Pololu Maestro, which it reaches through `connect`.
pub(crate) fn driver<C: Connect>(
    settings: Settings,
    servos: Servos,
    connect: C,
) -> ServosDriver<StreamDevice<ServoLogic, C>> {
    let continuous = servos.continuous().clone();
    ServosDriver::new(servos, move || {
        StreamDevice::new(ServoLogic::new(settings, continuous), connect)
    })
}

impl StreamLogic for ServoLogic {
    type Request = ServoRequest;
    type Message = DriverMsg;
    type Link = MaestroLink;

    fn request(&mut self, now: Instant, _link: &MaestroLink, request: ServoRequest) {
        answer(self, now, request);
    }

    fn handle(&mut self, now: Instant, event: PortEvent<'_>) {
        match event {
            PortEvent::Opened => self.opened(now),
            PortEvent::Failed(problem) => self.failed(now, problem),
            PortEvent::Bytes(bytes) => self.handle_bytes(now, bytes),
            PortEvent::Timeout => self.handle_timeout(now),
            PortEvent::ShutDown => self.shut_down(now),
        }
    }

    fn next(&mut self, _now: Instant, _link: &MaestroLink) -> Next<PortAction> {
        tell(self);
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
}

#[cfg(test)]
mod tests;
