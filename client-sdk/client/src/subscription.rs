//! A subscription as a stream. IO.

use std::collections::VecDeque;
use std::error::Error;
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};

use amber_proto::Device;
use bytes::Bytes;
use futures_core::Stream;

use crate::client::Client;
use crate::dispatch::Cancellation;
use crate::subscriptions::ListenerId;

/// The maximum number of messages queued for a slow reader; then the oldest are
/// dropped.
pub const QUEUE_LEN: usize = 64;

/// A subscription to the messages that a device publishes.
///
/// As a [`Stream`] it yields messages, and it resumes after a restart of the
/// driver or the mediator. [`Subscription::next_event`] also reports
/// interruptions. It ends only when the client ends ([`Client::close`], or a
/// failed transport).
///
/// **Slow readers**: the queue holds 64 messages. When it is full, the oldest
/// is dropped, and [`Update::missed`] of the next message counts the dropped
/// ones. Of messages that are longer than a frame, such as pictures, it holds
/// only the newest of each kind.
///
/// **Dropping** it never blocks. Dropping the last subscription of this client
/// to the device sends UNSUBSCRIBE. A subscription keeps the client alive like
/// any handle.
#[must_use = "dropping it unsubscribes"]
pub struct Subscription<T> {
    queue: Arc<Queue>,
    device: Device,
    listener: ListenerId,
    client: Client,
    decode: Decode<T>,
    missed: u64,
    interruptions: u64,
    undecodable: u64,
}

/// Decodes bytes; `None` if the message is about something else.
pub(crate) type Decode<T> = fn(Bytes) -> Result<Option<T>, Box<dyn Error>>;

/// A message and what was lost before it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Update<T> {
    /// The published value.
    pub message: T,
    /// The number of messages lost since the previous one: they were not read in
    /// time, or are longer than a frame and did not arrive completely.
    pub missed: u64,
    /// The number of messages since the previous one that could not be decoded.
    pub undecodable: u64,
    /// The number of interruptions since the previous message: the driver died,
    /// or the mediator was unavailable.
    pub interruptions: u64,
}

/// An event of a subscription.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event<T> {
    /// A message.
    Message(Update<T>),
    /// The device publishes nothing for now. The client subscribes again until
    /// it does.
    Interrupted(Interruption),
    /// The device publishes again; the next event is a message.
    Resumed,
}

/// The reason why data stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Interruption {
    /// The driver died, or no driver serves the device.
    DriverDown,
    /// The mediator does not answer or cannot be reached.
    MediatorLost,
    /// The mediator was restarted.
    MediatorRestarted,
    /// The mediator and the drivers had forgotten this client: it was
    /// unreachable, or was evicted for other clients.
    Forgotten,
}

impl<T> Subscription<T> {
    pub(crate) fn new(
        client: Client,
        device: Device,
        listener: ListenerId,
        decode: Decode<T>,
    ) -> Self {
        Self {
            queue: Arc::new(Queue::default()),
            device,
            listener,
            client,
            decode,
            missed: 0,
            interruptions: 0,
            undecodable: 0,
        }
    }

    pub(crate) fn queue(&self) -> &Arc<Queue> {
        &self.queue
    }

    /// The device that publishes.
    pub fn device(&self) -> Device {
        self.device
    }

    /// The next message; `None` when the client has ended.
    ///
    /// Dropping the future loses no message.
    pub async fn next(&mut self) -> Option<Update<T>> {
        poll_fn(|cx| self.poll_message(cx)).await
    }

    /// The next message or interruption; `None` when the client has ended.
    ///
    /// Dropping the future loses no message.
    pub async fn next_event(&mut self) -> Option<Event<T>> {
        poll_fn(|cx| self.poll_event(cx)).await
    }

    /// How many messages were lost since the last one that was read: so far, what
    /// [`Update::missed`] of the next one will count.
    ///
    /// While a device sends only pictures that do not arrive completely, nothing else tells.
    pub fn missed(&self) -> u64 {
        self.missed + self.queue.missed()
    }

    fn poll_message(&mut self, cx: &mut Context<'_>) -> Poll<Option<Update<T>>> {
        loop {
            match ready!(self.poll_event(cx)) {
                Some(Event::Message(update)) => return Poll::Ready(Some(update)),
                Some(Event::Interrupted(_) | Event::Resumed) => {}
                None => return Poll::Ready(None),
            }
        }
    }

    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Option<Event<T>>> {
        loop {
            let event = match ready!(self.queue.poll_pop(cx)) {
                None => None,
                Some((Signal::Interrupted(why), _)) => {
                    self.interruptions += 1;
                    Some(Event::Interrupted(why))
                }
                Some((Signal::Resumed, _)) => Some(Event::Resumed),
                Some((Signal::Message(bytes) | Signal::Long(_, bytes), missed)) => {
                    // The next message may be about something else.
                    self.missed += missed;
                    match (self.decode)(bytes) {
                        Ok(Some(message)) => Some(Event::Message(Update {
                            message,
                            missed: std::mem::take(&mut self.missed),
                            undecodable: std::mem::take(&mut self.undecodable),
                            interruptions: std::mem::take(&mut self.interruptions),
                        })),
                        Ok(None) => continue,
                        Err(error) => {
                            tracing::debug!(device = %self.device, %error, "message not understood");
                            self.undecodable += 1;
                            continue;
                        }
                    }
                }
            };
            return Poll::Ready(event);
        }
    }
}

impl<T> Stream for Subscription<T> {
    type Item = Update<T>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Update<T>>> {
        self.get_mut().poll_message(cx)
    }
}

impl<T> Drop for Subscription<T> {
    fn drop(&mut self) {
        // Close the queue first and remove the listener then: as with calls, no order of
        // events leaves a listener behind.
        self.queue.close();
        self.client
            .cancel(Cancellation::Listener(self.device, self.listener));
    }
}

impl<T> fmt::Debug for Subscription<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription")
            .field("device", &self.device)
            .finish_non_exhaustive()
    }
}

impl fmt::Display for Interruption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::DriverDown => "no driver serves it",
            Self::MediatorLost => "the mediator does not answer",
            Self::MediatorRestarted => "the mediator was restarted",
            Self::Forgotten => "the mediator had forgotten this client",
        })
    }
}

/// The queue between the client's task and the reader.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    state: Mutex<QueueState>,
}

#[derive(Debug)]
pub(crate) enum Signal {
    Message(Bytes),
    /// A message that came in pieces, and its stream. It replaces earlier ones.
    Long(u32, Bytes),
    Interrupted(Interruption),
    Resumed,
}

#[derive(Debug, Default)]
struct QueueState {
    signals: VecDeque<Signal>,
    missed: u64,
    closed: bool,
    reader: Option<Waker>,
}

impl Queue {
    /// Adds a signal, and drops the oldest one if there are too many.
    pub(crate) fn push(&self, signal: Signal) {
        let mut state = self.lock();
        if let Signal::Long(stream, _) = &signal {
            let before = state.signals.len();
            let is_older = |it: &Signal| matches!(it, Signal::Long(old, _) if old == stream);
            state.signals.retain(|it| !is_older(it));
            state.missed += (before - state.signals.len()) as u64;
        }
        if state.signals.len() >= QUEUE_LEN
            && let Some(Signal::Message(_) | Signal::Long(..)) = state.signals.pop_front()
        {
            state.missed += 1;
        }
        state.signals.push_back(signal);
        let reader = state.reader.take();
        drop(state);
        if let Some(reader) = reader {
            reader.wake();
        }
    }

    /// A message was lost on its way.
    pub(crate) fn miss(&self) {
        self.lock().missed += 1;
    }

    /// The number of messages lost since the last one that was taken.
    pub(crate) fn missed(&self) -> u64 {
        self.lock().missed
    }

    /// Nothing is added after this; what is there can be read.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        let reader = state.reader.take();
        drop(state);
        if let Some(reader) = reader {
            reader.wake();
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// The oldest signal, and how many messages were dropped before it.
    pub(crate) fn poll_pop(&self, cx: &mut Context<'_>) -> Poll<Option<(Signal, u64)>> {
        let mut state = self.lock();
        match state.signals.pop_front() {
            Some(signal @ (Signal::Message(_) | Signal::Long(..))) => {
                let missed = std::mem::take(&mut state.missed);
                Poll::Ready(Some((signal, missed)))
            }
            Some(signal) => Poll::Ready(Some((signal, 0))),
            None if state.closed => Poll::Ready(None),
            None => {
                state.reader = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, QueueState> {
        // No code that holds the lock can panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn pop(queue: &Queue) -> Option<(Signal, u64)> {
        poll_fn(|cx| queue.poll_pop(cx)).await
    }

    #[tokio::test]
    async fn a_slow_reader_misses_the_oldest_and_learns_how_many() {
        let queue = Queue::default();
        for k in 0..QUEUE_LEN + 3 {
            queue.push(Signal::Message(vec![k as u8].into()));
        }
        queue.close();
        match pop(&queue).await {
            Some((Signal::Message(bytes), 3)) => assert_eq!(bytes[0], 3),
            other => panic!("{other:?}"),
        }
        let mut rest = 0;
        while let Some((_, missed)) = pop(&queue).await {
            assert_eq!(missed, 0);
            rest += 1;
        }
        assert_eq!(rest, QUEUE_LEN - 1);
    }

    #[tokio::test]
    async fn only_the_newest_long_message_of_each_stream_waits() {
        let queue = Queue::default();
        let long = |stream, byte: u8| Signal::Long(stream, vec![byte].into());
        queue.push(long(5, 0));
        queue.push(long(6, 1));
        queue.push(Signal::Message(vec![2].into()));
        queue.push(long(5, 3));
        queue.miss();
        queue.close();
        let mut found = Vec::new();
        while let Some((signal, missed)) = pop(&queue).await {
            let (Signal::Message(bytes) | Signal::Long(_, bytes)) = signal else {
                panic!("{signal:?}")
            };
            found.push((bytes[0], missed));
        }
        assert_eq!(found, [(1, 2), (2, 0), (3, 0)]);
    }
}
