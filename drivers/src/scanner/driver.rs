//! The driver between the mediator and a scanner of any model. IO.

use std::error::Error;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use amber_driver::devices::hokuyo::{
    DriverMsg, HokuyoDriver, HokuyoLink, ScanAnswer, Scanner, ScansData,
};
use amber_driver::{ClientId, Origin, Reply, named_devices, now};
use amber_proto::Device;
use tokio::sync::watch;

use super::masked::Masked;
use super::sectors::Sectors;
use super::{Model, Note, Output};
use crate::connection::Connect;
use crate::device_task::{DeviceTask, Next};
use crate::stream::{PortAction, PortEvent, StreamDevice, StreamLogic, complain, say};

/// The driver of a laser scanner.
pub struct LaserDriver<M: Model, C> {
    /// `Some` until the start.
    setup: Option<(M::Settings, C)>,
    task: DeviceTask<ScanRequest>,
    /// `None` in a mediator of the original system, which has no robot device.
    device: Option<Device>,
    /// `Some` while it runs and has a device.
    masked: Option<Masked>,
}

/// A request for the task that owns the scanner.
#[derive(Debug)]
enum ScanRequest {
    Ask(Origin),
    Describe(Reply<Scanner>),
    Subscribed,
}

impl<M: Model, C: Connect> LaserDriver<M, C> {
    /// Creates a driver that reaches its scanner through `connect`.
    pub fn new(settings: M::Settings, connect: C) -> Self {
        Self {
            setup: Some((settings, connect)),
            task: DeviceTask::default(),
            device: named_devices().first().copied(),
            masked: None,
        }
    }
}

impl<M: Model, C: Connect> HokuyoDriver for LaserDriver<M, C> {
    async fn start(&mut self, link: HokuyoLink) -> Result<(), Box<dyn Error + Send + Sync>> {
        if let Some((settings, connect)) = self.setup.take() {
            let (found, masked) = watch::channel(Sectors::default());
            self.masked = self
                .device
                .map(|device| Masked::follow(link.devices(), device, found));
            let logic = Logic {
                model: M::new(settings, now()),
                masked,
            };
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
        self.masked = None;
        self.task.close().await;
    }
}

/// The logic of a model, in the task that owns the port.
struct Logic<M> {
    model: M,
    masked: watch::Receiver<Sectors>,
}

impl<M: Model> StreamLogic for Logic<M> {
    type Request = ScanRequest;
    type Message = DriverMsg;
    type Link = HokuyoLink;

    fn request(&mut self, now: Instant, _link: &HokuyoLink, request: ScanRequest) {
        match request {
            ScanRequest::Ask(origin) => self.model.ask(now, origin),
            ScanRequest::Describe(reply) => match self.model.scanner() {
                Ok(scanner) => reply.send(scanner),
                Err(why) => reply.refuse(why),
            },
            // `next` reads the number of subscribers.
            ScanRequest::Subscribed => {}
        }
    }

    fn handle(&mut self, now: Instant, event: PortEvent<'_>) {
        match event {
            PortEvent::Opened => self.model.opened(now),
            PortEvent::Failed(problem) => self.model.failed(now, problem),
            PortEvent::Bytes(bytes) => self.model.handle_bytes(now, timestamp_ms(), bytes),
            PortEvent::Timeout => self.model.handle_timeout(now),
            PortEvent::ShutDown => self.model.shut_down(now),
        }
    }

    fn next(&mut self, now: Instant, link: &HokuyoLink) -> Next<PortAction> {
        self.model.handle_listeners(now, link.subscriptions());
        if self.masked.has_changed().unwrap_or(false) {
            let masked = self.masked.borrow_and_update().clone();
            self.model.service_mut().set_masked(masked);
        }
        while let Some(output) = self.model.poll_output() {
            match output {
                Output::Open => return Next::Perform(PortAction::Open),
                Output::Close => return Next::Perform(PortAction::Close),
                Output::Write(bytes) => return Next::Perform(PortAction::Write(bytes)),
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
        self.model.wake_at()
    }

    fn trouble(&self) -> Option<&str> {
        self.model.trouble()
    }

    fn counters(&self) -> String {
        format!("{:?}", self.model.service().counters)
    }
}

fn timestamp_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis().try_into().unwrap_or(i64::MAX))
}
