//! The driver between the mediator and the scanner. IO.

use std::error::Error;
use std::time::{SystemTime, UNIX_EPOCH};

use amber_driver::{ClientId, Driver, Link, Origin, Request, SendError};
use amber_proto::hokuyo::DriverMsg;

use super::logic::{Logic, Measured, Note, Output, Settings};
use crate::connection::{Connect, Port};
use crate::desk::{self, Desk, Inbox, now, report, until};

/// The driver of a Hokuyo laser scanner.
#[derive(Debug)]
pub struct Hokuyo<C: Connect> {
    desk: Desk<Owner<C>>,
}

#[derive(Debug)]
struct Owner<C> {
    settings: Settings,
    connect: C,
}

#[derive(Debug)]
enum Order {
    Ask(Origin),
    Subscribed,
}

/// Events that wake the task.
enum Event {
    Ordered(Option<Order>),
    Read(Result<usize, String>),
    Timeout,
}

impl<C: Connect> Hokuyo<C> {
    /// Creates a driver that reaches its scanner through `connect`.
    pub fn new(settings: Settings, connect: C) -> Self {
        Self {
            desk: Desk::new(Owner { settings, connect }),
        }
    }
}

impl<C: Connect> Driver for Hokuyo<C> {
    type Message = DriverMsg;

    async fn start(&mut self, link: Link<DriverMsg>) -> Result<(), Box<dyn Error + Send + Sync>> {
        self.desk.open(link);
        Ok(())
    }

    /// Only the presence of the field matters, not its value, as in the original.
    async fn request(&mut self, request: Request<DriverMsg>) -> Option<DriverMsg> {
        let Request { message, origin } = request;
        if message.get_single_scan.is_none() {
            self.desk.complain_once(&origin);
        } else if origin.syn.is_some() {
            self.desk.order(Order::Ask(origin)).await;
        }
        None
    }

    async fn subscribed(&mut self, _client: ClientId) {
        self.desk.order(Order::Subscribed).await;
    }

    async fn shutdown(&mut self) {
        self.desk.close().await;
    }
}

impl<C: Connect> desk::Owner for Owner<C> {
    type Order = Order;
    type Message = DriverMsg;

    async fn run(self, mut inbox: Inbox<Order>, link: Link<DriverMsg>) {
        let mut logic = Logic::new(self.settings, now());
        let mut port = Port::new(self.connect);
        let mut buffer = vec![0; 8 * 1024];
        loop {
            logic.handle_listeners(now(), link.subscriptions());
            while let Some(output) = logic.poll_output() {
                match output {
                    Output::Open => match port.open().await {
                        Ok(()) => logic.opened(now()),
                        Err(problem) => logic.failed(now(), &problem),
                    },
                    Output::Close => port.close(),
                    Output::Write(text) => {
                        if let Err(problem) = port.write(text.as_bytes()).await {
                            logic.failed(now(), &problem);
                        }
                    }
                    Output::Answer(origin, measured) => {
                        complain(link.answer(&origin, message(measured)));
                    }
                    Output::Publish(measured) => complain(link.publish(message(measured))),
                    Output::Say(note) => say(&note),
                    Output::End => {
                        tracing::debug!(counters = ?logic.counters(), "ended");
                        return;
                    }
                }
                report(&link, logic.trouble());
            }
            let event = tokio::select! {
                order = inbox.next() => Event::Ordered(order),
                read = port.read(&mut buffer) => Event::Read(read),
                () = until(logic.wake_at()) => Event::Timeout,
            };
            match event {
                Event::Ordered(Some(Order::Ask(origin))) => logic.ask(now(), origin),
                // The caller reads the number of listeners after every event.
                Event::Ordered(Some(Order::Subscribed)) => {}
                Event::Ordered(None) => logic.shut_down(now()),
                Event::Read(Ok(length)) => {
                    logic.handle_bytes(now(), timestamp_ms(), &buffer[..length]);
                }
                Event::Read(Err(problem)) => logic.failed(now(), &problem),
                Event::Timeout => logic.handle_timeout(now()),
            }
        }
    }
}

fn message(measured: Measured) -> DriverMsg {
    DriverMsg {
        scan: Some(measured.scan),
        timestamp: Some(measured.timestamp_ms),
        ..DriverMsg::default()
    }
}

fn complain(sent: Result<(), SendError>) {
    if let Err(error) = sent {
        tracing::debug!("a scan was not sent: {error}");
    }
}

fn say(note: &Note) {
    match note {
        note if note.is_warning() => tracing::warn!("{note}"),
        Note::Laser(_) => tracing::debug!("{note}"),
        note => tracing::info!("{note}"),
    }
}

fn timestamp_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis().try_into().unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests;
