//! The desk between a driver's handlers and the one task that owns the device. IO.
//!
//! Handlers only leave orders, so they never wait for hardware. The exception is [`Desk::close`],
//! which waits for a short time.

use std::future::pending;
use std::time::{Duration, Instant};

use amber_driver::{Link, Origin};
use amber_proto::DeviceMessage;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{sleep_until, timeout};

/// Maximum number of orders that wait while the task is busy with the device.
const MAX_ORDERS: usize = 64;

/// Time limit for bringing the device to rest. Shorter than the mediator's own limit.
const LAST_WORDS: Duration = Duration::from_millis(900);

/// A task that owns a device.
pub(crate) trait Owner: Send + Sized + 'static {
    /// An order from a handler.
    type Order: Send + 'static;
    /// The `DriverMsg` of the device.
    type Message: DeviceMessage + Send + 'static;

    /// Carries out orders until the inbox closes, then brings the device to rest.
    fn run(
        self,
        inbox: Inbox<Self::Order>,
        link: Link<Self::Message>,
    ) -> impl Future<Output = ()> + Send;
}

/// Where handlers leave orders.
#[derive(Debug)]
pub(crate) struct Desk<W: Owner> {
    /// `Some` until the task starts.
    owner: Option<W>,
    orders: Option<mpsc::Sender<W::Order>>,
    task: Option<JoinHandle<()>>,
    link: Option<Link<W::Message>>,
    has_warned: bool,
}

impl<W: Owner> Desk<W> {
    pub(crate) fn new(owner: W) -> Self {
        Self {
            owner: Some(owner),
            orders: None,
            task: None,
            link: None,
            has_warned: false,
        }
    }

    /// Starts the task.
    pub(crate) fn open(&mut self, link: Link<W::Message>) {
        if let Some(owner) = self.owner.take() {
            let (orders, received) = mpsc::channel(MAX_ORDERS);
            let inbox = Inbox {
                orders: received,
                is_closed: false,
            };
            self.orders = Some(orders);
            self.link = Some(link.clone());
            self.task = Some(tokio::spawn(owner.run(inbox, link)));
        }
    }

    /// Leaves an order.
    pub(crate) async fn order(&self, order: W::Order) {
        if let Some(orders) = &self.orders {
            // The task ends only when the desk is closed.
            let _ = orders.send(order).await;
        }
    }

    /// Refuses a request that is not for this device, and logs the first one.
    pub(crate) fn complain_once(&mut self, origin: &Origin) {
        if let Some(link) = &self.link {
            report_outcome(link, origin, Some("not a request for this device"));
        }
        if !std::mem::replace(&mut self.has_warned, true) {
            let clients = &origin.clients;
            tracing::warn!(?clients, "not a request for this device (logged once)");
        }
    }

    /// Waits until the device is at rest.
    pub(crate) async fn close(&mut self) {
        self.orders = None;
        if let Some(task) = &mut self.task
            && timeout(LAST_WORDS, task).await.is_err()
        {
            tracing::warn!("the device takes too long to stop");
        }
    }
}

/// The orders left at a [`Desk`].
#[derive(Debug)]
pub(crate) struct Inbox<T> {
    orders: mpsc::Receiver<T>,
    is_closed: bool,
}

impl<T> Inbox<T> {
    /// The next order, or `None` at the end, which is returned once.
    ///
    /// Dropping the future loses nothing.
    pub(crate) async fn next(&mut self) -> Option<T> {
        if self.is_closed {
            return pending().await;
        }
        let order = self.orders.recv().await;
        self.is_closed = order.is_none();
        order
    }

    /// The next order if one is already waiting.
    pub(crate) fn try_next(&mut self) -> Option<Option<T>> {
        match self.orders.try_recv() {
            Ok(order) => Some(Some(order)),
            Err(mpsc::error::TryRecvError::Disconnected) if !self.is_closed => {
                self.is_closed = true;
                Some(None)
            }
            Err(_) => None,
        }
    }
}

/// Tells the sender of a request why it is refused, or that it is accepted, if it
/// asked for that.
pub(crate) fn report_outcome<M: DeviceMessage>(
    link: &Link<M>,
    origin: &Origin,
    refused: Option<&str>,
) {
    let reported = match refused {
        Some(why) => link.refused(origin, why),
        None => link.accepted(origin),
    };
    if let Err(error) = reported {
        tracing::debug!("outcome not reported: {error}");
    }
}

/// Reports to the mediator whether the device works. May be called at any rate.
pub(crate) fn report<M: DeviceMessage>(link: &Link<M>, trouble: Option<&str>) {
    match trouble {
        Some(trouble) => link.trouble(trouble),
        None => link.recovered(),
    }
}

/// The tokio clock, which tests can pause.
pub(crate) fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

/// Waits until this time, or for ever if it is `None`.
pub(crate) async fn until(instant: Option<Instant>) {
    match instant {
        Some(instant) => sleep_until(instant.into()).await,
        None => pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn orders_arrive_in_sequence_and_the_end_arrives_once() {
        let (orders, received) = mpsc::channel(4);
        let mut inbox = Inbox {
            orders: received,
            is_closed: false,
        };
        orders.send(1).await.unwrap();
        orders.send(2).await.unwrap();
        assert_eq!(inbox.next().await, Some(1));
        assert_eq!(inbox.try_next(), Some(Some(2)));
        assert_eq!(inbox.try_next(), None);
        drop(orders);
        assert_eq!(inbox.try_next(), Some(None));
        assert_eq!(inbox.try_next(), None);
        assert!(timeout(Duration::ZERO, inbox.next()).await.is_err());
    }
}
