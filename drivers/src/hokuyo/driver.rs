//! The driver between the mediator and the scanner. IO.

use std::error::Error;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use amber_driver::devices::hokuyo::{
    DriverMsg, HokuyoDriver, HokuyoLink, ScanAnswer, Scanner, ScansData,
};
use amber_driver::{ClientId, Origin, Reply, now};

use super::logic::{Note, Output, ScannerLogic, Settings};
use crate::connection::Connect;
use crate::device_task::{DeviceTask, Next};
use crate::stream::{PortAction, PortEvent, StreamDevice, StreamLogic, complain, say};

/// The driver of a Hokuyo laser scanner.
#[derive(Debug)]
pub struct Hokuyo<C> {
    /// `Some` until the start.
    setup: Option<(Settings, C)>,
    task: DeviceTask<ScanRequest>,
}

/// A request for the task that owns the scanner.
#[derive(Debug)]
pub(crate) enum ScanRequest {
    Ask(Origin),
    Describe(Reply<Scanner>),
    Subscribed,
}

impl<C: Connect> Hokuyo<C> {
    /// Creates a driver that reaches its scanner through `connect`.
    pub fn new(settings: Settings, connect: C) -> Self {
        Self {
            setup: Some((settings, connect)),
            task: DeviceTask::default(),
        }
    }
}

impl<C: Connect> HokuyoDriver for Hokuyo<C> {
    async fn start(&mut self, link: HokuyoLink) -> Result<(), Box<dyn Error + Send + Sync>> {
        if let Some((settings, connect)) = self.setup.take() {
            let logic = ScannerLogic::new(settings, now());
            self.task.open(StreamDevice::new(logic, connect), link);
        }
        Ok(())
    }

    async fn scan(&mut self, reply: Reply<ScanAnswer>) {
        if reply.is_possible() {
            self.task
                .request(ScanRequest::Ask(reply.into_origin()))
                .await;
        }
    }

    async fn scanner(&mut self, reply: Reply<Scanner>) {
        if reply.is_possible() {
            self.task.request(ScanRequest::Describe(reply)).await;
        }
    }

    async fn subscribed(&mut self, _client: ClientId) {
        self.task.request(ScanRequest::Subscribed).await;
    }

    async fn shutdown(&mut self) {
        self.task.close().await;
    }
}

impl StreamLogic for ScannerLogic {
    type Request = ScanRequest;
    type Message = DriverMsg;
    type Link = HokuyoLink;

    fn request(&mut self, now: Instant, _link: &HokuyoLink, request: ScanRequest) {
        match request {
            ScanRequest::Ask(origin) => self.ask(now, origin),
            ScanRequest::Describe(reply) => match self.scanner() {
                Ok(scanner) => reply.send(scanner),
                Err(why) => reply.refuse(why),
            },
            // `next` reads the number of subscribers.
            ScanRequest::Subscribed => {}
        }
    }

    fn handle(&mut self, now: Instant, event: PortEvent<'_>) {
        match event {
            PortEvent::Opened => self.opened(now),
            PortEvent::Failed(problem) => self.failed(now, problem),
            PortEvent::Bytes(bytes) => self.handle_bytes(now, timestamp_ms(), bytes),
            PortEvent::Timeout => self.handle_timeout(now),
            PortEvent::ShutDown => self.shut_down(now),
        }
    }

    fn next(&mut self, now: Instant, link: &HokuyoLink) -> Next<PortAction> {
        self.handle_listeners(now, link.subscriptions());
        while let Some(output) = self.poll_output() {
            match output {
                Output::Open => return Next::Perform(PortAction::Open),
                Output::Close => return Next::Perform(PortAction::Close),
                Output::Write(text) => return Next::Perform(PortAction::Write(text.into_bytes())),
                Output::Answer(origin, measured) => {
                    let answer = ScanAnswer {
                        scan: measured.scan,
                        timestamp_ms: Some(measured.timestamp_ms),
                    };
                    complain(link.answer_scan(&origin, answer));
                }
                Output::Publish(measured) => complain(link.scans(ScansData {
                    scan: measured.scan,
                    timestamp_ms: Some(measured.timestamp_ms),
                })),
                Output::Say(note @ Note::Laser(_)) => tracing::debug!("{note}"),
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
        format!("{:?}", self.counters())
    }
}

fn timestamp_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis().try_into().unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests;
