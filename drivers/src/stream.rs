//! A device at a byte stream, such as a serial port: runs its pure logic over the port. IO.

use std::borrow::Cow;
use std::fmt;
use std::future::pending;
use std::time::Instant;

use amber_driver::{Guard, Link, SendError, now};
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

    /// What stops a device without a watchdog of its own, or `None` while there is nothing to stop. A
    /// guard writes it when the driver is killed or hangs.
    fn last_words(&self) -> Option<Vec<u8>> {
        None
    }

    /// The guard has written it, because this process did not run for a second.
    fn handle_guard_acted(&mut self) {}
}

/// An event at the port.
pub(crate) enum PortEvent<'a> {
    /// The connection is open.
    Opened,
    /// The connection cannot be opened, or has failed.
    Failed(&'a str),
    /// Bytes from the device.
    Bytes(&'a [u8]),
    /// A timer may have expired.
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
    /// What stops the device while the port is open.
    guard: Option<Guard>,
    /// Why there is no guard, although there should be one.
    no_guard: Option<String>,
    /// The last words that the guard knows.
    armed: Option<Vec<u8>>,
}

impl<L: StreamLogic, C: Connect> StreamDevice<L, C> {
    /// Creates a device that is reached through `connect`.
    pub(crate) fn new(logic: L, connect: C) -> Self {
        Self {
            logic,
            port: Port::new(connect),
            buffer: vec![0; READ],
            guard: None,
            no_guard: None,
            armed: None,
        }
    }

    async fn open(&mut self) -> Result<(), String> {
        self.close();
        self.port.open().await
    }

    fn close(&mut self) {
        self.port.close();
        // The logic has said all that it could.
        if let Some(guard) = self.guard.take() {
            guard.disarm();
        }
        self.no_guard = None;
        self.armed = None;
    }

    /// Tells the guard the last words, when they have changed. The first ones start it.
    fn tend_guard(&mut self) {
        let is_open = self.port.is_open();
        let words = self.logic.last_words().filter(|_| is_open);
        if words == self.armed {
            return;
        }
        let writes: Vec<_> = words.iter().cloned().collect();
        self.armed = words;
        if let Some(guard) = &self.guard {
            guard.arm(&writes);
            return;
        }
        if writes.is_empty() || self.no_guard.is_some() {
            return;
        }
        match self.port.guard(&writes) {
            Ok(guard) => self.guard = guard,
            Err(why) => {
                tracing::warn!("what moves goes on if this driver is killed: {why}");
                self.no_guard = Some(why);
            }
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
        if self.guard.as_ref().is_some_and(Guard::has_acted) {
            self.logic.handle_guard_acted();
        }
        let next = self.logic.next(now(), link);
        self.tend_guard();
        next
    }

    async fn perform(&mut self, action: PortAction) {
        let done = match action {
            PortAction::Open => match self.open().await {
                Ok(()) => return self.logic.handle(now(), PortEvent::Opened),
                failed => failed,
            },
            PortAction::Close => {
                self.close();
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
        let guard = self.guard.as_ref();
        let news = async {
            match guard {
                Some(guard) => guard.changed().await,
                None => pending().await,
            }
        };
        tokio::select! {
            // On a busy machine, this task runs late: a device that has answered is not silent.
            biased;
            read = self.port.read(&mut self.buffer) => match read {
                Ok(length) => self.logic.handle(now(), PortEvent::Bytes(&self.buffer[..length])),
                Err(problem) => self.logic.handle(now(), PortEvent::Failed(&problem)),
            },
            () = until(due) => {}
            () = news => {}
        }
        // A device that always sends holds no timer up.
        if due.is_some_and(|due| now() >= due) {
            self.logic.handle(now(), PortEvent::Timeout);
        }
    }

    fn trouble(&self) -> Option<Cow<'_, str>> {
        let of_guard = || self.guard.as_ref().and_then(Guard::trouble).map(Cow::from);
        let without = || self.no_guard.as_deref().map(Cow::from);
        let of_device = self.logic.trouble().map(Cow::from);
        of_device.or_else(of_guard).or_else(without)
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

/// The trouble that was logged last.
#[derive(Debug, Default)]
pub(crate) struct Said(Option<String>);

impl Said {
    /// Logs the trouble, or that it is over, if that has changed.
    pub(crate) fn say(&mut self, trouble: Option<&str>, is_over: &str) {
        if trouble == self.0.as_deref() {
            return;
        }
        say(&trouble.unwrap_or(is_over), trouble.is_some());
        self.0 = trouble.map(str::to_owned);
    }
}

/// Writes a note to the log.
pub(crate) fn say(note: &impl fmt::Display, is_warning: bool) {
    match is_warning {
        true => tracing::warn!("{note}"),
        false => tracing::info!("{note}"),
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use amber_driver::devices::hokuyo::{DriverMsg, HokuyoLink};
    use tokio::io::{AsyncWriteExt, DuplexStream};
    use tokio::time::advance;

    use super::*;
    use crate::connection::Connection;

    /// Notes what happens, and wants to be woken at a time.
    struct Notes {
        due: Instant,
        events: Vec<&'static str>,
        last_words: Option<Vec<u8>>,
    }

    impl StreamLogic for Notes {
        type Request = ();
        type Message = DriverMsg;
        type Link = HokuyoLink;

        fn request(&mut self, _now: Instant, _link: &HokuyoLink, _request: ()) {}

        fn handle(&mut self, _now: Instant, event: PortEvent<'_>) {
            self.events.push(match event {
                PortEvent::Bytes(_) => "bytes",
                PortEvent::Timeout => "timeout",
                _ => "other",
            });
        }

        fn next(&mut self, _now: Instant, _link: &HokuyoLink) -> Next<PortAction> {
            Next::Wait
        }

        fn wake_at(&self) -> Option<Instant> {
            Some(self.due)
        }

        fn trouble(&self) -> Option<&str> {
            None
        }

        fn counters(&self) -> String {
            String::new()
        }

        fn last_words(&self) -> Option<Vec<u8>> {
            self.last_words.clone()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_counts_before_a_timer_that_expired_meanwhile() {
        // The order was once a matter of chance.
        for _ in 0..50 {
            let (mut device, near) = tokio::io::duplex(64);
            let mut near = Some(near);
            let connect = move || -> io::Result<Box<dyn Connection>> {
                let near: DuplexStream = near.take().ok_or(io::ErrorKind::NotFound)?;
                Ok(Box::new(near))
            };
            let due = now() + Duration::from_millis(300);
            let notes = Notes {
                due,
                events: Vec::new(),
                last_words: None,
            };
            let mut owner = StreamDevice::new(notes, connect);
            owner.perform(PortAction::Open).await;
            device.write_all(b"scan").await.unwrap();
            advance(Duration::from_secs(1)).await;
            owner.wait().await;
            assert_eq!(owner.logic.events, ["other", "bytes", "timeout"]);
        }
    }

    /// A port for which no guard can be started, and how often one was wanted.
    struct Unguarded(Arc<AtomicUsize>);

    impl Connect for Unguarded {
        async fn connect(&mut self) -> io::Result<Box<dyn Connection>> {
            Ok(Box::new(tokio::io::duplex(64).0))
        }

        fn guard(&mut self) -> io::Result<Option<Guard>> {
            self.0.fetch_add(1, Ordering::Relaxed);
            Err(io::Error::other("too many processes"))
        }
    }

    #[tokio::test]
    async fn a_missing_guard_is_a_trouble_while_there_is_something_to_stop() {
        let notes = Notes {
            due: now(),
            events: Vec::new(),
            last_words: None,
        };
        let wanted = Arc::<AtomicUsize>::default();
        let mut owner = StreamDevice::new(notes, Unguarded(wanted.clone()));
        owner.perform(PortAction::Open).await;
        owner.tend_guard();
        assert_eq!(owner.trouble(), None);
        for words in [&b"stop"[..], b"stop", b"stop more"] {
            owner.logic.last_words = Some(words.to_vec());
            owner.tend_guard();
            let trouble = "no guard for the port: too many processes";
            assert_eq!(owner.trouble().as_deref(), Some(trouble));
        }
        owner.perform(PortAction::Close).await;
        owner.tend_guard();
        assert_eq!(owner.trouble(), None);
        owner.perform(PortAction::Open).await;
        owner.tend_guard();
        assert!(owner.trouble().is_some());
        assert_eq!(
            wanted.load(Ordering::Relaxed),
            2,
            "once for each connection"
        );
    }
}
