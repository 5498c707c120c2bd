//! The driver between the mediator and the scanner. IO.
//!
//! One task owns the port; handlers only give it orders.

use std::error::Error;
use std::future::pending;
use std::io;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use amber_driver::{ClientId, Driver, Link, Origin, Request, SendError};
use amber_proto::hokuyo::DriverMsg;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{sleep_until, timeout};

use super::logic::{Logic, Measured, Note, Output, Settings};
use crate::connection::{Connect, Connection};

/// How many orders may wait while the port is being opened.
const MAX_ORDERS: usize = 64;

/// How long the port may take for a request of some twenty bytes.
const WRITE_TIMEOUT: Duration = Duration::from_secs(1);

/// How long the laser may take to go off: less than the mediator's patience.
const LAST_WORDS: Duration = Duration::from_millis(900);

/// The driver of a Hokuyo laser scanner.
#[derive(Debug)]
pub struct Hokuyo<C> {
    /// What the task needs, until it starts.
    owner: Option<Owner<C>>,
    orders: Option<mpsc::Sender<Order>>,
    has_warned: bool,
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
    ShutDown(oneshot::Sender<()>),
}

/// What has happened to the task.
enum Event {
    Ordered(Option<Order>),
    Read(io::Result<usize>),
    Timeout,
}

impl<C: Connect> Hokuyo<C> {
    /// A driver that opens the way to its scanner by `connect`.
    pub fn new(settings: Settings, connect: C) -> Self {
        Self {
            owner: Some(Owner { settings, connect }),
            orders: None,
            has_warned: false,
        }
    }

    async fn order(&self, order: Order) {
        if let Some(orders) = &self.orders {
            // The task ends only at shutdown.
            let _ = orders.send(order).await;
        }
    }
}

impl<C: Connect> Driver for Hokuyo<C> {
    type Message = DriverMsg;

    async fn start(&mut self, link: Link<DriverMsg>) -> Result<(), Box<dyn Error + Send + Sync>> {
        if let Some(owner) = self.owner.take() {
            let (orders, received) = mpsc::channel(MAX_ORDERS);
            self.orders = Some(orders);
            tokio::spawn(owner.run(received, link));
        }
        Ok(())
    }

    /// That the field is there counts, not its value: so the original did.
    async fn request(&mut self, request: Request<DriverMsg>) -> Option<DriverMsg> {
        let Request { message, origin } = request;
        if message.get_single_scan.is_some() {
            if origin.syn.is_some() {
                self.order(Order::Ask(origin)).await;
            }
        } else if !self.has_warned {
            self.has_warned = true;
            tracing::warn!(client = ?origin.clients, "not a request for a hokuyo (logged once)");
        }
        None
    }

    async fn subscribed(&mut self, _client: ClientId) {
        self.order(Order::Subscribed).await;
    }

    async fn shutdown(&mut self) {
        let (done, is_done) = oneshot::channel();
        let stopped = async {
            self.order(Order::ShutDown(done)).await;
            let _ = is_done.await;
        };
        if timeout(LAST_WORDS, stopped).await.is_err() {
            tracing::warn!("the scanner takes too long to stop");
        }
    }
}

impl<C: Connect> Owner<C> {
    async fn run(mut self, mut orders: mpsc::Receiver<Order>, link: Link<DriverMsg>) {
        let mut logic = Logic::new(self.settings.clone(), now());
        let mut connection: Option<Box<dyn Connection>> = None;
        // Dropped at the end, which says that the laser is off.
        let mut _done = None;
        let mut buffer = vec![0; 8 * 1024];
        loop {
            logic.handle_listeners(now(), link.subscriptions());
            while let Some(output) = logic.poll_output() {
                match output {
                    Output::Open => match self.connect.connect().await {
                        Ok(opened) => {
                            connection = Some(opened);
                            logic.opened(now());
                        }
                        Err(error) => logic.failed(now(), &format!("cannot connect: {error}")),
                    },
                    Output::Close => connection = None,
                    Output::Write(text) => {
                        if let Err(error) = write(&mut connection, &text).await {
                            logic.failed(now(), &format!("cannot write: {error}"));
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
            }
            let event = tokio::select! {
                order = orders.recv() => Event::Ordered(order),
                read = read(&mut connection, &mut buffer) => Event::Read(read),
                () = until(logic.wake_at()) => Event::Timeout,
            };
            match event {
                Event::Ordered(Some(Order::Ask(origin))) => logic.ask(now(), origin),
                // The number of listeners is looked up anyway.
                Event::Ordered(Some(Order::Subscribed)) => {}
                Event::Ordered(Some(Order::ShutDown(waiting))) => {
                    _done = Some(waiting);
                    logic.shut_down(now());
                }
                Event::Ordered(None) => logic.shut_down(now()),
                Event::Read(Ok(0)) => logic.failed(now(), "the scanner was unplugged"),
                Event::Read(Ok(length)) => {
                    logic.handle_bytes(now(), timestamp_ms(), &buffer[..length]);
                }
                Event::Read(Err(error)) => {
                    logic.failed(now(), &format!("the port has failed: {error}"));
                }
                Event::Timeout => logic.handle_timeout(now()),
            }
        }
    }
}

async fn read(
    connection: &mut Option<Box<dyn Connection>>,
    buffer: &mut [u8],
) -> io::Result<usize> {
    match connection {
        Some(connection) => connection.read(buffer).await,
        None => pending().await,
    }
}

async fn write(connection: &mut Option<Box<dyn Connection>>, text: &str) -> io::Result<()> {
    let Some(connection) = connection else {
        return Err(io::ErrorKind::NotConnected.into());
    };
    let write = async {
        connection.write_all(text.as_bytes()).await?;
        connection.flush().await
    };
    timeout(WRITE_TIMEOUT, write)
        .await
        .map_err(|_| io::ErrorKind::TimedOut)?
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

/// The clock of tokio, which tests can stop.
fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

async fn until(instant: Option<Instant>) {
    match instant {
        Some(instant) => sleep_until(instant.into()).await,
        None => pending().await,
    }
}
