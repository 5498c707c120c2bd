//! The driver between the mediator and the bus. IO.
//!
//! One task owns the port. Handlers only give it orders, so none of them waits
//! for the hardware, but [`Roboclaw::shutdown`], and that not for long.

use std::error::Error;
use std::future::pending;
use std::time::{Duration, Instant};

use amber_driver::{ClientId, Driver, Link, Origin, Request};
use amber_proto::roboclaw::DriverMsg;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{sleep, sleep_until, timeout};

use super::bus::Bus;
use super::gpio::Gpio;
use super::logic::{ExchangeError, Line, Logic, Output, Settings, Step};
use super::units::WheelSpeeds;
use crate::connection::Connect;

/// How many orders may wait for the end of an exchange.
const MAX_ORDERS: usize = 64;

/// How long stopping the wheels may take: less than the mediator's patience.
const LAST_WORDS: Duration = Duration::from_millis(900);

/// The driver of two RoboClaw controllers and four wheels.
#[derive(Debug)]
pub struct Roboclaw<C> {
    /// What the task needs, until it starts.
    owner: Option<Owner<C>>,
    orders: Option<mpsc::Sender<Order>>,
    has_warned: bool,
}

/// How the driver runs, but for the way to the controllers.
#[derive(Clone, Debug, PartialEq)]
pub struct Setup {
    /// What it does and may do.
    pub settings: Settings,
    /// The lines beside the bus.
    pub gpio: Gpio,
    /// How long a reply may take.
    pub reply_timeout: Duration,
}

#[derive(Debug)]
struct Owner<C> {
    setup: Setup,
    connect: C,
}

#[derive(Debug)]
enum Order {
    Drive(Vec<ClientId>, WheelSpeeds),
    Ask(Origin),
    ClientDied(ClientId),
    ShutDown(oneshot::Sender<()>),
}

impl<C: Connect> Roboclaw<C> {
    /// A driver that opens the way to its controllers by `connect`.
    pub fn new(setup: Setup, connect: C) -> Self {
        Self {
            owner: Some(Owner { setup, connect }),
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

impl<C: Connect> Driver for Roboclaw<C> {
    type Message = DriverMsg;

    async fn start(&mut self, link: Link<DriverMsg>) -> Result<(), Box<dyn Error + Send + Sync>> {
        if let Some(owner) = self.owner.take() {
            let (orders, received) = mpsc::channel(MAX_ORDERS);
            self.orders = Some(orders);
            tokio::spawn(owner.run(received, link));
        }
        Ok(())
    }

    /// Of a question and a command in one message only the question counts:
    /// so the original did.
    async fn request(&mut self, request: Request<DriverMsg>) -> Option<DriverMsg> {
        let Request { message, origin } = request;
        if message.current_speed_request.is_some() {
            if origin.syn.is_some() {
                self.order(Order::Ask(origin)).await;
            }
        } else if let Some(speeds) = message.motors_command {
            self.order(Order::Drive(origin.clients, speeds.into()))
                .await;
        } else if !self.has_warned {
            self.has_warned = true;
            tracing::warn!(client = ?origin.clients, "not a request for a roboclaw (logged once)");
        }
        None
    }

    async fn client_died(&mut self, client: ClientId) {
        self.order(Order::ClientDied(client)).await;
    }

    async fn shutdown(&mut self) {
        let (done, is_done) = oneshot::channel();
        let stopped = async {
            self.order(Order::ShutDown(done)).await;
            let _ = is_done.await;
        };
        if timeout(LAST_WORDS, stopped).await.is_err() {
            tracing::warn!("the controllers take too long to stop");
        }
    }
}

impl<C: Connect> Owner<C> {
    async fn run(mut self, mut orders: mpsc::Receiver<Order>, link: Link<DriverMsg>) {
        let mut logic = Logic::new(self.setup.settings.clone(), now());
        let mut bus: Option<Bus> = None;
        let mut done = None;
        let mut gpio_has_failed = false;
        loop {
            // All of them before the next step: the newest command counts.
            while let Ok(order) = orders.try_recv() {
                obey(&mut logic, order, &mut done);
            }
            let step = logic.poll_step(now());
            tell(&mut logic, &link);
            match step {
                None => tokio::select! {
                    order = orders.recv() => match order {
                        Some(order) => obey(&mut logic, order, &mut done),
                        None => logic.shut_down(),
                    },
                    () = until(logic.wake_at()) => {}
                },
                Some(Step::Open) => match self.connect.connect().await {
                    Ok(connection) => {
                        let mut opened = Bus::new(connection, self.setup.reply_timeout);
                        match opened.settle().await {
                            Ok(()) => {
                                bus = Some(opened);
                                logic.opened();
                            }
                            Err(error) => logic.open_failed(now(), &error.to_string()),
                        }
                    }
                    Err(error) => logic.open_failed(now(), &error.to_string()),
                },
                Some(Step::Close) => bus = None,
                Some(Step::Exchange { packet, shape }) => {
                    let result = match &mut bus {
                        Some(bus) => bus.exchange(&packet, shape).await,
                        None => Err(ExchangeError::Port("it is closed".into())),
                    };
                    logic.exchanged(now(), result);
                }
                Some(Step::Set(line, active)) => {
                    if let Err(error) = self.setup.gpio.set(line, active).await
                        && !gpio_has_failed
                    {
                        gpio_has_failed = true;
                        tracing::warn!("cannot set the {line:?} line: {error} (logged once)");
                    }
                    if line == Line::Reset {
                        tracing::debug!(active, "reset line");
                    }
                }
                Some(Step::Wait(duration)) => sleep(duration).await,
                Some(Step::End) => break,
            }
            tell(&mut logic, &link);
        }
        tracing::debug!(counters = ?logic.counters(), "ended");
        // Dropping `done` says that the wheels stand.
    }
}

fn obey(logic: &mut Logic, order: Order, done: &mut Option<oneshot::Sender<()>>) {
    match order {
        Order::Drive(clients, speeds) => logic.drive(now(), &clients, speeds),
        Order::Ask(origin) => logic.ask(now(), origin),
        Order::ClientDied(client) => logic.client_died(client),
        Order::ShutDown(waiting) => {
            *done = Some(waiting);
            logic.shut_down();
        }
    }
}

fn tell(logic: &mut Logic, link: &Link<DriverMsg>) {
    while let Some(output) = logic.poll_output() {
        match output {
            Output::Answer(origin, speeds) => {
                let message = DriverMsg {
                    current_speed: Some(speeds.into()),
                    ..DriverMsg::default()
                };
                if let Err(error) = link.answer(&origin, message) {
                    tracing::debug!("not answered: {error}");
                }
            }
            Output::Say(note) if note.is_warning() => tracing::warn!("{note}"),
            Output::Say(note) => tracing::info!("{note}"),
        }
    }
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

#[cfg(test)]
mod tests;
