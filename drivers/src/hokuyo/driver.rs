//! The driver between the mediator and the scanner. IO.

use std::error::Error;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use amber_driver::devices::hokuyo::{DriverMsg, HokuyoDriver, HokuyoLink, ScanAnswer, ScansData};
use amber_driver::{ClientId, Origin, Reply, now};

use super::logic::{Logic, Note, Output, Settings};
use crate::connection::Connect;
use crate::desk::{Desk, Next};
use crate::stream::{Event, PortAction, StreamDevice, StreamLogic, complain, say};

/// The driver of a Hokuyo laser scanner.
#[derive(Debug)]
pub struct Hokuyo<C> {
    /// `Some` until the start.
    setup: Option<(Settings, C)>,
    desk: Desk<Order>,
}

/// An order for the task that owns the scanner.
#[derive(Debug)]
pub(crate) enum Order {
    Ask(Origin),
    Subscribed,
}

impl<C: Connect> Hokuyo<C> {
    /// Creates a driver that reaches its scanner through `connect`.
    pub fn new(settings: Settings, connect: C) -> Self {
        Self {
            setup: Some((settings, connect)),
            desk: Desk::default(),
        }
    }
}

impl<C: Connect> HokuyoDriver for Hokuyo<C> {
    async fn start(&mut self, link: HokuyoLink) -> Result<(), Box<dyn Error + Send + Sync>> {
        if let Some((settings, connect)) = self.setup.take() {
            let logic = Logic::new(settings, now());
            self.desk.open(StreamDevice::new(logic, connect), link);
        }
        Ok(())
    }

    async fn scan(&mut self, reply: Reply<ScanAnswer>) {
        if reply.is_possible() {
            self.desk.order(Order::Ask(reply.into_origin())).await;
        }
    }

    async fn subscribed(&mut self, _client: ClientId) {
        self.desk.order(Order::Subscribed).await;
    }

    async fn shutdown(&mut self) {
        self.desk.close().await;
    }
}

impl StreamLogic for Logic {
    type Order = Order;
    type Message = DriverMsg;
    type Link = HokuyoLink;

    fn order(&mut self, now: Instant, _link: &HokuyoLink, order: Order) {
        match order {
            Order::Ask(origin) => self.ask(now, origin),
            // `next` reads the number of subscribers.
            Order::Subscribed => {}
        }
    }

    fn handle(&mut self, now: Instant, event: Event<'_>) {
        match event {
            Event::Opened => self.opened(now),
            Event::Failed(problem) => self.failed(now, problem),
            Event::Bytes(bytes) => self.handle_bytes(now, timestamp_ms(), bytes),
            Event::Timeout => self.handle_timeout(now),
            Event::ShutDown => self.shut_down(now),
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
