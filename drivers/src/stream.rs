//! A device at a byte stream, such as a serial port: runs its pure logic over the port. IO.

use std::borrow::Cow;
use std::fmt;
use std::time::Instant;

use amber_driver::{Link, SendError, now};
use amber_proto::DeviceMessage;

use crate::connection::{Connect, Port};
use crate::device_task::{Next, Owner, until};

/// The most that is read at once, in bytes: more than a scan.
const READ: usize = 8 * 1024;

/// The pure logic of a device at a byte stream.
pub(crate) trait StreamLogic: Send + 'static {
    /// A request from a handler.
    type Request: Send + 'static;
    /// The `DriverMsg` of the device.
    type Message: DeviceMessage + Send + 'static;
    /// The link to the mediator.
    type Link: std::ops::Deref<Target = Link<Self::Message>> + Send + Sync + 'static;

    /// Takes a request.
    fn request(&mut self, now: Instant, link: &Self::Link, request: Self::Request);

    /// Handles what has happened.
    fn handle(&mut self, now: Instant, event: PortEvent<'_>);

    /// The next action on the port. Also sends answers and writes log lines.
    fn next(&mut self, now: Instant, link: &Self::Link) -> Next<PortAction>;

    /// When to handle [`PortEvent::Timeout`] if nothing happens earlier.
    fn wake_at(&self) -> Option<Instant>;

    /// The reason why the device does not work, if there is a problem.
    fn trouble(&self) -> Option<&str>;

    /// Events for the log.
    fn counters(&self) -> String;
}

/// An event at the port.
pub(crate) enum PortEvent<'a> {
    /// The connection is open.
    Opened,
    /// The connection cannot be opened, or has failed.
    Failed(&'a str),
    /// Bytes from the device.
    Bytes(&'a [u8]),
    /// A timer has expired.
    Timeout,
    /// The driver ends.
    ShutDown,
}

/// An action at the port.
pub(crate) enum PortAction {
    /// Open the connection again.
    Open,
    /// Close the connection.
    Close,
    /// Send this to the device.
    Write(Vec<u8>),
}

/// A device at a byte stream, with its logic.
pub(crate) struct StreamDevice<L, C> {
    logic: L,
    port: Port<C>,
    buffer: Vec<u8>,
}

impl<L: StreamLogic, C: Connect> StreamDevice<L, C> {
    /// Creates a device that is reached through `connect`.
    pub(crate) fn new(logic: L, connect: C) -> Self {
        Self {
            logic,
            port: Port::new(connect),
            buffer: vec![0; READ],
        }
    }
}

impl<L: StreamLogic, C: Connect> Owner for StreamDevice<L, C> {
    type Request = L::Request;
    type Message = L::Message;
    type Link = L::Link;
    type Action = PortAction;

    fn request(&mut self, link: &L::Link, request: L::Request) {
        self.logic.request(now(), link, request);
    }

    fn shut_down(&mut self) {
        self.logic.handle(now(), PortEvent::ShutDown);
    }

    fn next(&mut self, link: &L::Link) -> Next<PortAction> {
        self.logic.next(now(), link)
    }

    async fn perform(&mut self, action: PortAction) {
        let done = match action {
            PortAction::Open => match self.port.open().await {
                Ok(()) => return self.logic.handle(now(), PortEvent::Opened),
                failed => failed,
            },
            PortAction::Close => {
                self.port.close();
                Ok(())
            }
            PortAction::Write(bytes) => self.port.write(&bytes).await,
        };
        if let Err(problem) = done {
            self.logic.handle(now(), PortEvent::Failed(&problem));
        }
    }

    async fn wait(&mut self) {
        let due = self.logic.wake_at();
        tokio::select! {
            read = self.port.read(&mut self.buffer) => match read {
                Ok(length) => self.logic.handle(now(), PortEvent::Bytes(&self.buffer[..length])),
                Err(problem) => self.logic.handle(now(), PortEvent::Failed(&problem)),
            },
            () = until(due) => self.logic.handle(now(), PortEvent::Timeout),
        }
    }

    fn trouble(&self) -> Option<Cow<'_, str>> {
        self.logic.trouble().map(Cow::from)
    }

    fn log_counters(&self) {
        tracing::debug!(counters = self.logic.counters(), "ended");
    }
}

/// Logs that a message was not sent, which happens when the mediator does not read.
pub(crate) fn complain(sent: Result<(), SendError>) {
    if let Err(error) = sent {
        tracing::debug!("a message was not sent: {error}");
    }
}

/// Writes a note to the log.
pub(crate) fn say(note: &impl fmt::Display, is_warning: bool) {
    match is_warning {
        true => tracing::warn!("{note}"),
        false => tracing::info!("{note}"),
    }
}
