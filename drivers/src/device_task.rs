//! The one task that owns a device, and where the handlers of a driver leave requests for it. IO.
//!
//! Handlers only leave requests, so they never wait for hardware. The exception is [`DeviceTask::close`],
//! which waits for a short time. The task runs an [`Owner`]:
//!
//! ```text
//!  handlers --requests--> Owner::next: the pure logic decides --> Owner::perform: hardware
//!                            ^                                        |
//!                            +------ Owner::wait: input, timers <-----+
//! ```

use std::borrow::Cow;
use std::future::pending;
use std::ops::Deref;
use std::time::{Duration, Instant};

use amber_driver::{Link, Outcome};
use amber_proto::DeviceMessage;
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::{sleep_until, timeout};

/// Maximum number of requests that wait while the task is busy with the device.
const MAX_REQUESTS: usize = 64;

/// Time limit for bringing the device to rest. Shorter than the mediator's own limit.
const LAST_WORDS: Duration = Duration::from_millis(900);

/// A device with the pure logic that controls it, owned by one task.
pub(crate) trait Owner: Send + 'static {
    /// A request from a handler.
    type Request: Send + 'static;
    /// The `DriverMsg` of the device.
    type Message: DeviceMessage + Send + 'static;
    /// The link to the mediator.
    type Link: Deref<Target = Link<Self::Message>> + Send + Sync + 'static;
    /// An action for the hardware.
    type Action: Send;

    /// Takes a request.
    fn request(&mut self, link: &Self::Link, request: Self::Request);

    /// Begins to bring the device to rest.
    fn shut_down(&mut self);

    /// The next action of the logic. Also sends its answers and writes its log lines.
    fn next(&mut self, link: &Self::Link) -> Next<Self::Action>;

    /// Carries out an action, and tells the logic the result.
    fn perform(&mut self, action: Self::Action) -> impl Future<Output = ()> + Send;

    /// Waits for input of the device or a timer, and reports it to the logic.
    ///
    /// Dropping the future loses nothing.
    fn wait(&mut self) -> impl Future<Output = ()> + Send;

    /// The reason why the device does not work, if there is a problem.
    fn trouble(&self) -> Option<Cow<'_, str>>;

    /// Writes the counters to the log, at the end.
    fn log_counters(&self);
}

/// The next step of an [`Owner`].
pub(crate) enum Next<A> {
    /// Carry out an action.
    Perform(A),
    /// Wait for a request, input or a timer.
    Wait,
    /// Nothing is left to do.
    End,
}

/// Carries out requests until the inbox closes, then brings the device to rest.
async fn run<W: Owner>(mut owner: W, mut inbox: Inbox<W::Request>, link: W::Link) {
    fn take<W: Owner>(owner: &mut W, link: &W::Link, request: Option<W::Request>) {
        match request {
            Some(request) => owner.request(link, request),
            None => owner.shut_down(),
        }
    }
    loop {
        let next = owner.next(&link);
        report(&link, owner.trouble().as_deref());
        match next {
            Next::Perform(action) => owner.perform(action).await,
            Next::Wait => tokio::select! {
                request = inbox.next() => take(&mut owner, &link, request),
                () = owner.wait() => {}
            },
            Next::End => break,
        }
        // Takes all requests before the next action: possibly only the newest command matters.
        while let Some(request) = inbox.try_next() {
            take(&mut owner, &link, request);
        }
        report(&link, owner.trouble().as_deref());
    }
    owner.log_counters();
}

/// The place where handlers leave requests of type `T`.
#[derive(Debug)]
pub(crate) struct DeviceTask<T> {
    requests: Option<mpsc::Sender<T>>,
    task: Option<JoinHandle<()>>,
}

impl<T> Default for DeviceTask<T> {
    fn default() -> Self {
        Self {
            requests: None,
            task: None,
        }
    }
}

impl<T: Send + 'static> DeviceTask<T> {
    /// Starts the task.
    pub(crate) fn open<W: Owner<Request = T>>(&mut self, owner: W, link: W::Link) {
        let inbox = self.inbox();
        self.task = Some(tokio::spawn(run(owner, inbox, link)));
    }

    /// Starts the task in a thread of its own, because it computes for long: others must not wait for
    /// it, such as clients that keep their lease.
    pub(crate) fn open_in_thread<W: Owner<Request = T>>(&mut self, owner: W, link: W::Link) {
        let (inbox, runtime) = (self.inbox(), Handle::current());
        let thread = move || runtime.block_on(run(owner, inbox, link));
        self.task = Some(spawn_blocking(thread));
    }

    fn inbox(&mut self) -> Inbox<T> {
        let (requests, received) = mpsc::channel(MAX_REQUESTS);
        self.requests = Some(requests);
        Inbox {
            requests: received,
            is_closed: false,
        }
    }

    /// Leaves a request.
    pub(crate) async fn request(&self, request: T) {
        if let Some(requests) = &self.requests {
            // The task ends only when its requests are closed.
            let _ = requests.send(request).await;
        }
    }

    /// Waits until the device is at rest.
    pub(crate) async fn close(&mut self) {
        self.requests = None;
        // It may be closed again, at the end of the driver.
        if let Some(task) = self.task.take()
            && timeout(LAST_WORDS, task).await.is_err()
        {
            tracing::warn!("the device takes too long to stop");
        }
    }
}

/// The requests left at a [`DeviceTask`].
#[derive(Debug)]
struct Inbox<T> {
    requests: mpsc::Receiver<T>,
    is_closed: bool,
}

impl<T> Inbox<T> {
    /// The next request, or `None` at the end, which is returned once.
    ///
    /// Dropping the future loses nothing.
    async fn next(&mut self) -> Option<T> {
        if self.is_closed {
            return pending().await;
        }
        let request = self.requests.recv().await;
        self.is_closed = request.is_none();
        request
    }

    /// The next request if one is already waiting.
    fn try_next(&mut self) -> Option<Option<T>> {
        match self.requests.try_recv() {
            Ok(request) => Some(Some(request)),
            Err(mpsc::error::TryRecvError::Disconnected) if !self.is_closed => {
                self.is_closed = true;
                Some(None)
            }
            Err(_) => None,
        }
    }
}

/// Reports that a command is carried out, or the reason why it is not.
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

/// Waits until this time, or endlessly if it is `None`.
pub(crate) async fn until(instant: Option<Instant>) {
    match instant {
        Some(instant) => sleep_until(instant.into()).await,
        None => pending().await,
    }
}

/// Runs a blocking function on a thread, which takes a value and returns it.
pub(crate) async fn on_a_thread<T: Send + 'static, R: Send + 'static>(
    mut thing: T,
    work: impl FnOnce(&mut T) -> R + Send + 'static,
) -> (T, R) {
    let blocking = spawn_blocking(move || {
        let result = work(&mut thing);
        (thing, result)
    });
    match blocking.await {
        Ok(done) => done,
        // A panic has already ended the process, and nothing aborts the thread.
        Err(_) => pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn requests_arrive_in_sequence_and_the_end_arrives_once() {
        let (requests, received) = mpsc::channel(4);
        let mut inbox = Inbox {
            requests: received,
            is_closed: false,
        };
        requests.send(1).await.unwrap();
        requests.send(2).await.unwrap();
        assert_eq!(inbox.next().await, Some(1));
        assert_eq!(inbox.try_next(), Some(Some(2)));
        assert_eq!(inbox.try_next(), None);
        drop(requests);
        assert_eq!(inbox.try_next(), Some(None));
        assert_eq!(inbox.try_next(), None);
        assert!(timeout(Duration::ZERO, inbox.next()).await.is_err());
    }
}
