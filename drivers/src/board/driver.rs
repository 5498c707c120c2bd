//! The driver between the mediator and a board of any model. IO.

use std::error::Error;
use std::time::Instant;

use amber_driver::devices::board::{
    BoardDriver, BoardInfo, BoardLink, DigitalCommand, DriverMsg, Pins, PulseCommand, PwmCommand,
    ServoCommand,
};
use amber_driver::{ClientId, Outcome, Reply};

use super::{Command, Model, Order};
use crate::device_task::{DeviceTask, Owner, finish};
use crate::stream::{complain, say};

/// The driver of a board.
pub(crate) struct PinsDriver<W> {
    /// `Some` until the start.
    make: Option<Box<dyn FnOnce() -> W + Send>>,
    task: DeviceTask<BoardRequest>,
}

/// A request for the task that owns the board.
#[derive(Debug)]
pub(crate) enum BoardRequest {
    Command(Outcome, Command),
    Stop(Outcome),
    Pins(Reply<Pins>),
    Info(Reply<BoardInfo>),
    /// There is a new subscriber.
    Subscribed,
    ClientGone(ClientId),
}

impl<W> PinsDriver<W> {
    /// Creates a driver whose task owns what `make` returns at the start.
    pub(crate) fn new(make: impl FnOnce() -> W + Send + 'static) -> Self {
        Self {
            make: Some(Box::new(make)),
            task: DeviceTask::default(),
        }
    }

    async fn command(&self, command: Command, outcome: Outcome) {
        let request = BoardRequest::Command(outcome, command);
        self.task.request(request).await;
    }
}

impl<W> BoardDriver for PinsDriver<W>
where
    W: Owner<Request = BoardRequest, Message = DriverMsg, Link = BoardLink>,
{
    async fn start(&mut self, link: BoardLink) -> Result<(), Box<dyn Error + Send + Sync>> {
        if let Some(make) = self.make.take() {
            self.task.open(make(), link);
        }
        Ok(())
    }

    async fn pins(&mut self, reply: Reply<Pins>) {
        self.task.request(BoardRequest::Pins(reply)).await;
    }

    async fn info(&mut self, reply: Reply<BoardInfo>) {
        self.task.request(BoardRequest::Info(reply)).await;
    }

    async fn set_digital(&mut self, command: DigitalCommand, outcome: Outcome) {
        self.command(Command::Digital(command), outcome).await;
    }

    async fn set_pwm(&mut self, command: PwmCommand, outcome: Outcome) {
        self.command(Command::Pwm(command), outcome).await;
    }

    async fn set_servo(&mut self, command: ServoCommand, outcome: Outcome) {
        self.command(Command::Servo(command), outcome).await;
    }

    async fn set_servo_pulse(&mut self, command: PulseCommand, outcome: Outcome) {
        self.command(Command::Pulse(command), outcome).await;
    }

    async fn stop(&mut self, outcome: Outcome) {
        self.task.request(BoardRequest::Stop(outcome)).await;
    }

    async fn subscribed(&mut self, _client: ClientId) {
        self.task.request(BoardRequest::Subscribed).await;
    }

    fn handles_gone_clients(&self) -> bool {
        true
    }

    async fn client_gone(&mut self, client: ClientId) {
        self.task.request(BoardRequest::ClientGone(client)).await;
    }

    async fn shutdown(&mut self) {
        self.task.close().await;
    }
}

/// Passes a request to the logic.
pub(crate) fn answer(model: &mut impl Model, request: BoardRequest) {
    match request {
        BoardRequest::Command(outcome, command) => {
            if let Some(why) = absence(model) {
                return outcome.refuse(&why);
            }
            match model.service().read(&command) {
                Ok(order) => {
                    let clients = outcome.origin().clients.clone();
                    carry_out(model, &clients, &[order]);
                    outcome.done();
                }
                Err(why) => {
                    outcome.refuse(&why);
                    model.service().refuse(why);
                }
            }
        }
        BoardRequest::Stop(outcome) => {
            let why = absence(model);
            let stops = model.service().stops();
            carry_out(model, &[], &stops);
            finish(outcome, why.as_deref());
        }
        BoardRequest::Pins(reply) => match absence(model) {
            Some(why) => reply.refuse(&why),
            None => reply.send(model.service().message()),
        },
        BoardRequest::Info(reply) => match absence(model) {
            Some(why) => reply.refuse(&why),
            None => reply.send(model.info()),
        },
        BoardRequest::Subscribed => model.service().publish_soon(),
        BoardRequest::ClientGone(client) => {
            let stops = model.service().client_gone(client);
            carry_out(model, &[], &stops);
        }
    }
}

/// Why the board cannot be used now.
fn absence(model: &mut impl Model) -> Option<String> {
    let service = model.service();
    let trouble = service.trouble().unwrap_or("the board is not ready yet");
    (!service.is_ready()).then(|| trouble.to_owned())
}

/// Carries out orders of clients. Without a board, nothing was set.
fn carry_out(model: &mut impl Model, clients: &[ClientId], orders: &[Order]) {
    if model.service().is_ready() {
        model.service().take(clients, orders);
        model.carry_out(orders);
    }
}

/// Publishes the values, and writes the log messages of the logic.
pub(crate) fn tell(model: &mut impl Model, now: Instant, link: &BoardLink) {
    let service = model.service();
    service.set_listened(link.subscriptions() > 0);
    if let Some(pins) = service.poll_publication(now) {
        complain(link.pin_updates(pins));
    }
    while let Some(note) = service.poll_note() {
        say(&note, note.is_warning());
    }
}
