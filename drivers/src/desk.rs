//! The one task that owns a device, and the desk where a driver's handlers leave orders for it. IO.
//!
//! Handlers only leave orders, so they never wait for hardware. The exception is [`Desk::close`],
//! which waits for a short time. The task runs an [`Owner`]:
//!
//! ```text
//!  handlers --orders--> Owner::next: the pure logic decides --> Owner::perform: hardware
//!                            ^                                        |
//!                            +------ Owner::wait: input, timers <-----+
//! ```

use std::borrow::Cow;
use std::future::pending;
use std::ops::Deref;
use std::time::{Duration, Instant};

use amber_driver::{Link, Outcome};
use amber_proto::DeviceMessage;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{sleep_until, timeout};

/// Maximum number of orders that wait while the task is busy with the device.
const MAX_ORDERS: usize = 64;

/// Time limit for bringing the device to rest. Shorter than the mediator's own limit.
const LAST_WORDS: Duration = Duration::from_millis(900);

/// A device with the pure logic that controls it, owned by one task.
pub(crate) trait Owner: Send + 'static {
    /// An order from a handler.
    type Order: Send + 'static;
    /// The `DriverMsg` of the device.
    type Message: DeviceMessage + Send + 'static;
    /// The link to the mediator.
    type Link: Deref<Target = Link<Self::Message>> + Send + Sync + 'static;
    /// Something that the logic wants the hardware to do.
    type Action: Send;

    /// Takes an order.
    fn order(&mut self, link: &Self::Link, order: Self::Order);

    /// Begins to bring the device to rest.
    fn shut_down(&mut self);

    /// What the logic wants next. Also sends its answers and writes its log lines.
    fn next(&mut self, link: &Self::Link) -> Next<Self::Action>;

    /// Carries out an action, and tells the logic the result.
    fn perform(&mut self, action: Self::Action) -> impl Future<Output = ()> + Send;

    /// Waits until the device or a timer tells the logic something.
    ///
    /// Dropping the future loses nothing.
    fn wait(&mut self) -> impl Future<Output = ()> + Send;

    /// Why the device does not work, if there is a problem.
    fn trouble(&self) -> Option<Cow<'_, str>>;

    /// Writes the counters to the log, at the end.
    fn log_counters(&self);
}

/// What an [`Owner`] does next.
pub(crate) enum Next<A> {
    /// Carry out an action.
    Perform(A),
    /// Wait for an order, input or a timer.
    Wait,
    /// Nothing is left to do.
    End,
}

/// Carries out orders until the inbox closes, then brings the device to rest.
async fn run<W: Owner>(mut owner: W, mut inbox: Inbox<W::Order>, link: W::Link) {
    fn take<W: Owner>(owner: &mut W, link: &W::Link, order: Option<W::Order>) {
        match order {
            Some(order) => owner.order(link, order),
            None => owner.shut_down(),
        }
    }
    loop {
        let next = owner.next(&link);
        report(&link, owner.trouble().as_deref());
        match next {
            Next::Perform(action) => owner.perform(action).await,
            Next::Wait => tokio::select! {
                order = inbox.next() => take(&mut owner, &link, order),
                () = owner.wait() => {}
            },
            Next::End => break,
        }
        // Takes all orders before the next action: of commands, only the newest may matter.
        while let Some(order) = inbox.try_next() {
            take(&mut owner, &link, order);
        }
        report(&link, owner.trouble().as_deref());
    }
    owner.log_counters();
}

/// Where handlers leave orders of type `T`.
#[derive(Debug)]
pub(crate) struct Desk<T> {
    orders: Option<mpsc::Sender<T>>,
    task: Option<JoinHandle<()>>,
}

impl<T> Default for Desk<T> {
    fn default() -> Self {
        Self {
            orders: None,
            task: None,
        }
    }
}

impl<T: Send + 'static> Desk<T> {
    /// Starts the task.
    pub(crate) fn open<W: Owner<Order = T>>(&mut self, owner: W, link: W::Link) {
        let (orders, received) = mpsc::channel(MAX_ORDERS);
        let inbox = Inbox {
            orders: received,
            is_closed: false,
        };
        self.orders = Some(orders);
        self.task = Some(tokio::spawn(run(owner, inbox, link)));
    }

    /// Leaves an order.
    pub(crate) async fn order(&self, order: T) {
        if let Some(orders) = &self.orders {
            // The task ends only when the desk is closed.
            let _ = orders.send(order).await;
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
struct Inbox<T> {
    orders: mpsc::Receiver<T>,
    is_closed: bool,
}

impl<T> Inbox<T> {
    /// The next order, or `None` at the end, which is returned once.
    ///
    /// Dropping the future loses nothing.
    async fn next(&mut self) -> Option<T> {
        if self.is_closed {
            return pending().await;
        }
        let order = self.orders.recv().await;
        self.is_closed = order.is_none();
        order
    }

    /// The next order if one is already waiting.
    fn try_next(&mut self) -> Option<Option<T>> {
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

/// Reports that a command is carried out, or why it is not.
pub(crate) fn finish(outcome: Outcome, refused: Option<&str>) {
    match refused {
        Some(why) => outcome.refuse(why),
        None => outcome.done(),
    }
}

/// Reports to the mediator whether the device works. May be called at any rate.
fn report<M: DeviceMessage>(link: &Link<M>, trouble: Option<&str>) {
    match trouble {
        Some(trouble) => link.trouble(trouble),
        None => link.recovered(),
    }
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
