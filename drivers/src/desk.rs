//! Handlers of a driver on one side, one task that has the device to itself on
//! the other. IO.
//!
//! Handlers only leave orders, so none of them waits for hardware, but
//! [`Desk::close`], and that not for long.

use std::future::pending;
use std::time::{Duration, Instant};

use amber_driver::Link;
use amber_proto::DeviceMessage;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{sleep_until, timeout};

/// How many orders may wait while the task is busy with the device.
const MAX_ORDERS: usize = 64;

/// How long bringing the device to rest may take: less than the mediator's patience.
const LAST_WORDS: Duration = Duration::from_millis(900);

/// A task that has a device to itself.
pub(crate) trait Owner: Send + Sized + 'static {
    /// What handlers want of it.
    type Order: Send + 'static;
    /// The `DriverMsg` of the device.
    type Message: DeviceMessage + Send + 'static;

    /// Carries out orders until there are no more, and then brings the device
    /// to rest.
    fn run(
        self,
        inbox: Inbox<Self::Order>,
        link: Link<Self::Message>,
    ) -> impl Future<Output = ()> + Send;
}

/// Where handlers leave orders.
#[derive(Debug)]
pub(crate) struct Desk<W: Owner> {
    /// Until it runs.
    owner: Option<W>,
    orders: Option<mpsc::Sender<W::Order>>,
    task: Option<JoinHandle<()>>,
    has_warned: bool,
}

impl<W: Owner> Desk<W> {
    pub(crate) fn new(owner: W) -> Self {
        Self {
            owner: Some(owner),
            orders: None,
            task: None,
            has_warned: false,
        }
    }

    /// The task runs from now on.
    pub(crate) fn open(&mut self, link: Link<W::Message>) {
        if let Some(owner) = self.owner.take() {
            let (orders, received) = mpsc::channel(MAX_ORDERS);
            let inbox = Inbox {
                orders: received,
                is_closed: false,
            };
            self.orders = Some(orders);
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

    /// Somebody asks for what the device cannot do: worth a line, once.
    pub(crate) fn complain_once(&mut self, origin: &amber_driver::Origin) {
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

/// The orders that are left at a [`Desk`].
#[derive(Debug)]
pub(crate) struct Inbox<T> {
    orders: mpsc::Receiver<T>,
    is_closed: bool,
}

impl<T> Inbox<T> {
    /// The next order, or `None` at the end, which comes once.
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

    /// The same if it is there already.
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

/// Tells the mediator whether the device works, as often as you like.
pub(crate) fn report<M: DeviceMessage>(link: &Link<M>, trouble: Option<&str>) {
    match trouble {
        Some(trouble) => link.trouble(trouble),
        None => link.recovered(),
    }
}

/// The clock of tokio, which tests can stop.
pub(crate) fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

/// Waits for this time, or for ever.
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
    async fn orders_come_in_turn_and_the_end_comes_once() {
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
