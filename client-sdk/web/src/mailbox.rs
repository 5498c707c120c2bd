//! The backlog of a page or viewer, shared by what fills it and the task that sends. IO.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{Sink, SinkExt};
use tokio::sync::Notify;
use tokio::time::{Instant, interval, sleep_until, timeout};
use tokio_tungstenite::tungstenite::Message;

use crate::backlog::{Backlog, Frame, Room};

/// See the [module](self).
#[derive(Debug)]
pub struct Mailbox<C> {
    backlog: Mutex<Backlog<C>>,
    filled: Notify,
}

/// How frames are sent.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// The time between two batches of frames.
    pub frames: Duration,
    /// The time between two pings.
    pub pings: Duration,
    /// A peer that takes nothing for this long is gone.
    pub patience: Duration,
}

impl<C: Ord> Mailbox<C> {
    /// An empty one.
    #[must_use]
    pub fn new(room: Room) -> Self {
        Self {
            backlog: Mutex::new(Backlog::new(room)),
            filled: Notify::new(),
        }
    }

    /// Changes what waits.
    pub fn change(&self, change: impl FnOnce(&mut Backlog<C>)) {
        change(&mut self.lock());
        self.filled.notify_one();
    }

    /// The number of frames that were dropped because the peer was too slow.
    pub fn dropped(&self) -> u64 {
        self.lock().dropped()
    }

    /// Sends what waits, and pings, until the peer is gone.
    pub async fn send_to(&self, mut sink: impl Sink<Message> + Unpin, pace: Pace) {
        let mut pings = interval(pace.pings);
        let mut next = Instant::now();
        loop {
            let messages = tokio::select! {
                biased;
                _ = pings.tick() => vec![Message::Ping(Bytes::new())],
                frames = async {
                    sleep_until(next).await;
                    self.take().await
                } => {
                    next = Instant::now() + pace.frames;
                    frames.into_iter().map(message).collect()
                }
            };
            for message in messages {
                if !matches!(timeout(pace.patience, sink.feed(message)).await, Ok(Ok(()))) {
                    return;
                }
            }
            if !matches!(timeout(pace.patience, sink.flush()).await, Ok(Ok(()))) {
                return;
            }
        }
    }

    async fn take(&self) -> Vec<Frame> {
        loop {
            let frames = self.lock().take();
            if !frames.is_empty() {
                return frames;
            }
            self.filled.notified().await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Backlog<C>> {
        // No code that holds the lock can panic.
        self.backlog.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn message(frame: Frame) -> Message {
    match frame {
        Frame::Text(text) => Message::Text(text.into()),
        Frame::Binary(bytes) => Message::Binary(bytes),
    }
}
