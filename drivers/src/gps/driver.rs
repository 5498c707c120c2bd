//! The driver between the mediator and the receiver. IO.

use std::error::Error;
use std::time::Instant;

use amber_driver::devices::gps::{DriverMsg, GpsDriver, GpsLink};
use amber_driver::{Reply, now};
use amber_proto::gps::Fix;

use super::logic::{GpsLogic, Output, Settings};
use crate::connection::Connect;
use crate::device_task::{DeviceTask, Next};
use crate::stream::{PortAction, PortEvent, StreamDevice, StreamLogic, complain, say};

/// The driver of a GPS receiver.
#[derive(Debug)]
pub struct Gps<C> {
    /// `Some` until the start.
    setup: Option<(Settings, C)>,
    task: DeviceTask<Reply<Fix>>,
}

impl<C: Connect> Gps<C> {
    /// Creates a driver that reaches its receiver through `connect`.
    pub fn new(settings: Settings, connect: C) -> Self {
        Self {
            setup: Some((settings, connect)),
            task: DeviceTask::default(),
        }
    }
}

impl<C: Connect> GpsDriver for Gps<C> {
    async fn start(&mut self, link: GpsLink) -> Result<(), Box<dyn Error + Send + Sync>> {
        if let Some((settings, connect)) = self.setup.take() {
            let logic = GpsLogic::new(settings, now());
            self.task.open(StreamDevice::new(logic, connect), link);
        }
        Ok(())
    }

    async fn fix(&mut self, reply: Reply<Fix>) {
        if reply.is_possible() {
            self.task.request(reply).await;
        }
    }

    async fn shutdown(&mut self) {
        self.task.close().await;
    }
}

impl StreamLogic for GpsLogic {
    type Request = Reply<Fix>;
    type Message = DriverMsg;
    type Link = GpsLink;

    fn request(&mut self, now: Instant, _link: &GpsLink, reply: Reply<Fix>) {
        match self.fix(now) {
            Ok(fix) => reply.send(fix),
            Err(why) => reply.refuse(why),
        }
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

    fn next(&mut self, _now: Instant, link: &GpsLink) -> Next<PortAction> {
        while let Some(output) = self.poll_output() {
            match output {
                Output::Open => return Next::Perform(PortAction::Open),
                Output::Close => return Next::Perform(PortAction::Close),
                Output::Publish(fix) => complain(link.fix_updates(fix)),
                Output::Say(note) => say(&note, note.is_warning()),
                Output::End => return Next::End,
            }
        }
        Next::Wait
    }

    fn wake_at(&self) -> Option<Instant> {
        self.wake_at()
    }

    fn trouble(&self) -> Option<&str> {
        self.trouble()
    }

    fn counters(&self) -> String {
        format!("{:?}, {} broken sentences", self.counters(), self.broken())
    }
}

#[cfg(test)]
mod tests;
