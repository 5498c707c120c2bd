//! The driver between the mediator and the bus. IO.

use std::error::Error;
use std::time::Duration;

use amber_driver::{ClientId, Driver, Link, Origin, Request};
use amber_proto::roboclaw::DriverMsg;
use amber_values::WheelSpeeds;
use tokio::time::sleep;

use super::bus::Bus;
use super::gpio::Gpio;
use super::logic::{ExchangeError, Line, Logic, Output, Refusal, Settings, Step};
use crate::connection::{Connect, open};
use crate::desk::{self, Desk, Inbox, now, report, report_outcome, until};

/// The driver of two RoboClaw controllers and four wheels.
#[derive(Debug)]
pub struct Roboclaw<C: Connect> {
    desk: Desk<Owner<C>>,
}

/// How the driver runs, apart from the connection to the controllers.
#[derive(Clone, Debug, PartialEq)]
pub struct Setup {
    /// The settings of the logic.
    pub settings: Settings,
    /// The GPIO lines.
    pub gpio: Gpio,
    /// Time limit for a reply.
    pub reply_timeout: Duration,
}

#[derive(Debug)]
struct Owner<C> {
    setup: Setup,
    connect: C,
}

#[derive(Debug)]
enum Order {
    Drive(Origin, WheelSpeeds),
    Ask(Origin),
    ClientDied(ClientId),
}

impl<C: Connect> Roboclaw<C> {
    /// Creates a driver that reaches its controllers through `connect`.
    pub fn new(setup: Setup, connect: C) -> Self {
        Self {
            desk: Desk::new(Owner { setup, connect }),
        }
    }
}

impl<C: Connect> Driver for Roboclaw<C> {
    type Message = DriverMsg;

    async fn start(&mut self, link: Link<DriverMsg>) -> Result<(), Box<dyn Error + Send + Sync>> {
        self.desk.open(link);
        Ok(())
    }

    /// If a message holds a request and a command, only the request takes effect, as in the
    /// original.
    async fn request(&mut self, request: Request<DriverMsg>) -> Option<DriverMsg> {
        let Request { message, origin } = request;
        if message.current_speed_request.is_some() {
            if origin.syn.is_some() {
                self.desk.order(Order::Ask(origin)).await;
            }
        } else if let Some(speeds) = message.motors_command {
            let drive = Order::Drive(origin, speeds.into());
            self.desk.order(drive).await;
        } else {
            self.desk.complain_once(&origin);
        }
        None
    }

    async fn client_died(&mut self, client: ClientId) {
        self.desk.order(Order::ClientDied(client)).await;
    }

    async fn shutdown(&mut self) {
        self.desk.close().await;
    }
}

impl<C: Connect> desk::Owner for Owner<C> {
    type Order = Order;
    type Message = DriverMsg;

    async fn run(mut self, mut inbox: Inbox<Order>, link: Link<DriverMsg>) {
        let mut logic = Logic::new(self.setup.settings.clone(), now());
        let mut bus: Option<Bus> = None;
        let mut gpio_has_failed = false;
        loop {
            // Takes all orders before the next step, since only the newest command matters.
            while let Some(order) = inbox.try_next() {
                obey(&mut logic, &link, order);
            }
            let step = logic.poll_step(now());
            tell(&mut logic, &link);
            match step {
                None => tokio::select! {
                    order = inbox.next() => obey(&mut logic, &link, order),
                    () = until(logic.wake_at()) => {}
                },
                Some(Step::Open) => match self.open().await {
                    Ok(opened) => {
                        bus = Some(opened);
                        logic.opened();
                    }
                    Err(problem) => logic.open_failed(now(), &problem),
                },
                Some(Step::Close) => bus = None,
                Some(Step::Exchange { packet, shape }) => {
                    let result = match &mut bus {
                        Some(bus) => bus.exchange(&packet, shape).await,
                        None => Err(ExchangeError::Port("the port is closed".into())),
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
    }
}

impl<C: Connect> Owner<C> {
    async fn open(&mut self) -> Result<Bus, String> {
        let connection = open(&mut self.connect).await?;
        let mut bus = Bus::new(connection, self.connect.place(), self.setup.reply_timeout);
        bus.settle().await.map_err(|error| error.to_string())?;
        Ok(bus)
    }
}

fn obey(logic: &mut Logic, link: &Link<DriverMsg>, order: Option<Order>) {
    match order {
        Some(Order::Drive(origin, speeds)) => {
            let refused = logic.drive(now(), &origin.clients, speeds);
            // A client learns the cause of an outage, not only that there is one.
            let why = refused.map(|refusal| match (refusal, logic.trouble()) {
                (Refusal::Away, Some(trouble)) => trouble.into_owned(),
                (refusal, _) => refusal.to_string(),
            });
            report_outcome(link, &origin, why.as_deref());
        }
        Some(Order::Ask(origin)) => logic.ask(now(), origin),
        Some(Order::ClientDied(client)) => logic.client_died(client),
        None => logic.shut_down(),
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
    report(link, logic.trouble().as_deref());
}

#[cfg(test)]
mod tests;
