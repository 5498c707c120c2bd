//! The driver between the mediator and the Maestro. IO.

use std::error::Error;

use amber_driver::{Driver, Link, Origin, Request};
use amber_proto::maestro::DriverMsg;

use super::logic::{Logic, Output, Settings};
use super::protocol::Command;
use super::servos::{Refusal, Servos};
use crate::connection::{Connect, Port};
use crate::desk::{self, Desk, Inbox, now, report, report_outcome, until};

/// The driver of a Pololu Maestro with hobby servos.
#[derive(Debug)]
pub struct Maestro<C: Connect> {
    servos: Servos,
    desk: Desk<Owner<C>>,
}

#[derive(Debug)]
struct Owner<C> {
    settings: Settings,
    connect: C,
}

#[derive(Debug)]
enum Order {
    Command(Origin, Vec<Command>),
    Refuse(Origin, Refusal),
}

/// Events that wake the task.
enum Event {
    Ordered(Option<Order>),
    Read(Result<usize, String>),
    Timeout,
}

impl<C: Connect> Maestro<C> {
    /// Creates a driver that reaches its device through `connect`.
    pub fn new(settings: Settings, servos: Servos, connect: C) -> Self {
        Self {
            servos,
            desk: Desk::new(Owner { settings, connect }),
        }
    }
}

impl<C: Connect> Driver for Maestro<C> {
    type Message = DriverMsg;

    async fn start(&mut self, link: Link<DriverMsg>) -> Result<(), Box<dyn Error + Send + Sync>> {
        self.desk.open(link);
        Ok(())
    }

    /// Commands have no answer: old clients expect none. Only the outcome is reported to
    /// clients that ask for it.
    async fn request(&mut self, request: Request<DriverMsg>) -> Option<DriverMsg> {
        let order = match self.servos.read(&request.message) {
            Ok(commands) => Order::Command(request.origin, commands),
            Err(refusal) => Order::Refuse(request.origin, refusal),
        };
        self.desk.order(order).await;
        None
    }

    async fn shutdown(&mut self) {
        self.desk.close().await;
    }
}

impl<C: Connect> desk::Owner for Owner<C> {
    type Order = Order;
    type Message = DriverMsg;

    async fn run(self, mut inbox: Inbox<Order>, link: Link<DriverMsg>) {
        let mut logic = Logic::new(self.settings);
        let mut port = Port::new(self.connect);
        let mut buffer = [0; 256];
        loop {
            while let Some(output) = logic.poll_output() {
                match output {
                    Output::Open => match port.open().await {
                        Ok(()) => logic.opened(now()),
                        Err(problem) => logic.failed(now(), &problem),
                    },
                    Output::Close => port.close(),
                    Output::Write(bytes) => {
                        if let Err(problem) = port.write(&bytes).await {
                            logic.failed(now(), &problem);
                        }
                    }
                    Output::Say(note) if note.is_warning() => tracing::warn!("{note}"),
                    Output::Say(note) => tracing::info!("{note}"),
                    Output::End => {
                        tracing::debug!(counters = ?logic.counters(), "ended");
                        return;
                    }
                }
                report(&link, logic.trouble());
            }
            let event = tokio::select! {
                order = inbox.next() => Event::Ordered(order),
                read = port.read(&mut buffer) => Event::Read(read),
                () = until(logic.wake_at()) => Event::Timeout,
            };
            match event {
                Event::Ordered(Some(Order::Command(origin, commands))) => {
                    let refused = match logic.command(&commands) {
                        true => None,
                        false => Some(logic.trouble().unwrap_or("the Maestro is not ready")),
                    };
                    report_outcome(&link, &origin, refused);
                }
                Event::Ordered(Some(Order::Refuse(origin, refusal))) => {
                    let why = refusal.to_string();
                    report_outcome(&link, &origin, Some(&why));
                    logic.refuse(why);
                }
                Event::Ordered(None) => logic.shut_down(),
                Event::Read(Ok(length)) => logic.handle_bytes(now(), &buffer[..length]),
                Event::Read(Err(problem)) => logic.failed(now(), &problem),
                Event::Timeout => logic.handle_timeout(now()),
            }
            // Reports even when nothing else is to do.
            report(&link, logic.trouble());
        }
    }
}

#[cfg(test)]
mod tests;
