//! Where pictures come from. IO.
//!
//! A source runs in a task or a thread of its own and tells what happens through a channel. Pictures
//! that come while nobody takes them are dropped: the driver is busy with the one before, and the next
//! one is newer.

pub(super) mod network;
pub(super) mod program;
#[cfg(target_os = "linux")]
pub mod v4l2;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use amber_proto::camera::Control;
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, spawn};

use super::jpeg::Jpeg;
use super::logic::{Facts, Frame};

/// How many events may wait for the driver: a picture, and how it ended.
const MAX_EVENTS: usize = 2;

/// An event of a source.
#[derive(Debug)]
pub enum Event {
    /// It works, and pictures follow.
    Opened(Facts),
    /// A picture.
    Frame(Frame),
    /// A control was set, or why it was not. All controls follow from this one on, since setting one may
    /// change others.
    ControlSet(Result<(Control, Vec<Control>), String>),
    /// It has ended. Nothing follows.
    Failed(String),
}

/// The place where a source tells its events.
#[derive(Clone, Debug)]
pub struct Events(mpsc::Sender<Event>);

impl Events {
    /// A picture that was taken at this time. It is dropped if the driver is busy.
    pub(super) fn frame(&self, jpeg: Jpeg, captured: SystemTime) {
        let since = captured.duration_since(UNIX_EPOCH).unwrap_or_default();
        let captured_us = i64::try_from(since.as_micros()).unwrap_or(i64::MAX);
        let _ = self.0.try_send(Event::Frame(Frame { jpeg, captured_us }));
    }

    /// What must not be lost. `false` if nobody listens.
    pub(super) async fn tell(&self, event: Event) -> bool {
        self.0.send(event).await.is_ok()
    }

    /// The same in a thread.
    #[cfg(target_os = "linux")]
    pub(super) fn tell_blocking(&self, event: Event) -> bool {
        self.0.blocking_send(event).is_ok()
    }

    /// Whether nobody listens.
    #[cfg(target_os = "linux")]
    pub(super) fn is_closed(&self) -> bool {
        self.0.is_closed()
    }
}

/// A way to get pictures.
pub trait Source: Send + 'static {
    /// Starts. What happens goes to the events, until the running source is dropped.
    fn start(&mut self, events: Events) -> Running;

    /// Its name, for people.
    fn place(&self) -> String;
}

/// A source that runs. It ends when this is dropped.
#[derive(Debug)]
pub struct Running {
    task: Option<JoinHandle<()>>,
    /// The controls to set, for sources that have some.
    orders: Option<std::sync::mpsc::Sender<(u32, i64)>>,
}

impl Running {
    /// Runs a task until its end or that of this value. The task returns why there are no more pictures.
    pub(super) fn task(events: Events, run: impl Future<Output = String> + Send + 'static) -> Self {
        let task = spawn(async move {
            let why = run.await;
            events.tell(Event::Failed(why)).await;
        });
        Self {
            task: Some(task),
            orders: None,
        }
    }

    /// A thread that ends when its orders do.
    #[cfg(target_os = "linux")]
    pub(super) fn thread(orders: std::sync::mpsc::Sender<(u32, i64)>) -> Self {
        Self {
            task: None,
            orders: Some(orders),
        }
    }

    /// Sets a control. [`Event::ControlSet`] follows. `false` if this source has none.
    pub(super) fn set(&self, id: u32, value: i64) -> bool {
        let orders = self.orders.as_ref();
        orders.is_some_and(|orders| orders.send((id, value)).is_ok())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

/// A channel for the events of one run.
pub(super) fn channel() -> (Events, mpsc::Receiver<Event>) {
    let (sender, receiver) = mpsc::channel(MAX_EVENTS);
    (Events(sender), receiver)
}

/// The sources of a driver, chosen by its options.
#[derive(Debug)]
pub enum AnySource {
    /// A USB camera.
    #[cfg(target_os = "linux")]
    Device(v4l2::UsbCamera),
    /// A network camera.
    Network(network::NetworkCamera<network::ToServer>),
    /// A program.
    Program(program::Program),
}

impl Source for AnySource {
    fn start(&mut self, events: Events) -> Running {
        match self {
            #[cfg(target_os = "linux")]
            Self::Device(source) => source.start(events),
            Self::Network(source) => source.start(events),
            Self::Program(source) => source.start(events),
        }
    }

    fn place(&self) -> String {
        match self {
            #[cfg(target_os = "linux")]
            Self::Device(source) => source.place(),
            Self::Network(source) => source.place(),
            Self::Program(source) => source.place(),
        }
    }
}

/// How long a source waits for something, in words.
pub(super) fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64()).replace(".0 s", " s")
}
