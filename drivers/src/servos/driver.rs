//! The driver between the mediator and servos of any model. IO.

use std::error::Error;
use std::time::Instant;

use amber_driver::devices::maestro::{
    DriverMsg, MaestroDriver, MaestroLink, ServoAngles, SetAngleCommand, SetDifferentAnglesCommand,
    SetSameAngleCommand, SetSpeedCommand,
};
use amber_driver::{ClientId, Outcome, Reply};

use super::{Model, Order, Refusal, Servos};
use crate::device_task::{DeviceTask, Owner, finish};
use crate::stream::say;

/// The driver of servos.
///
/// Commands have no answer: old clients expect none. Only the outcome is reported to clients that
/// ask for it.
pub(crate) struct ServosDriver<W> {
    servos: Servos,
    /// `Some` until the start.
    make: Option<Box<dyn FnOnce() -> W + Send>>,
    task: DeviceTask<ServoRequest>,
}

/// A request for the task that owns the controller.
#[derive(Debug)]
pub(crate) enum ServoRequest {
    Command(Outcome, Result<Vec<Order>, Refusal>),
    Stop(Outcome),
    Angles(Reply<ServoAngles>),
    ClientGone(ClientId),
}

impl<W> ServosDriver<W> {
    /// Creates a driver whose task owns what `make` returns at the start.
    pub(crate) fn new(servos: Servos, make: impl FnOnce() -> W + Send + 'static) -> Self {
        Self {
            servos,
            make: Some(Box::new(make)),
            task: DeviceTask::default(),
        }
    }

    async fn command(&self, message: DriverMsg, outcome: Outcome) {
        let orders = self.servos.read(&message);
        self.task
            .request(ServoRequest::Command(outcome, orders))
            .await;
    }
}

impl<W> MaestroDriver for ServosDriver<W>
where
    W: Owner<Request = ServoRequest, Message = DriverMsg, Link = MaestroLink>,
{
    async fn start(&mut self, link: MaestroLink) -> Result<(), Box<dyn Error + Send + Sync>> {
        if let Some(make) = self.make.take() {
            self.task.open(make(), link);
        }
        Ok(())
    }

    async fn set_angle(&mut self, command: SetAngleCommand, outcome: Outcome) {
        let message = DriverMsg {
            set_angle_command: Some(command),
            ..DriverMsg::default()
        };
        self.command(message, outcome).await;
    }

    async fn set_same_angle(&mut self, command: SetSameAngleCommand, outcome: Outcome) {
        let message = DriverMsg {
            set_same_angle_command: Some(command),
            ..DriverMsg::default()
        };
        self.command(message, outcome).await;
    }

    async fn set_angles(&mut self, command: SetDifferentAnglesCommand, outcome: Outcome) {
        let message = DriverMsg {
            set_different_angles_command: Some(command),
            ..DriverMsg::default()
        };
        self.command(message, outcome).await;
    }

    async fn stop(&mut self, outcome: Outcome) {
        self.task.request(ServoRequest::Stop(outcome)).await;
    }

    async fn angles(&mut self, reply: Reply<ServoAngles>) {
        self.task.request(ServoRequest::Angles(reply)).await;
    }

    async fn set_speed(&mut self, command: SetSpeedCommand, outcome: Outcome) {
        let message = DriverMsg {
            set_speed_command: Some(command),
            ..DriverMsg::default()
        };
        self.command(message, outcome).await;
    }

    fn handles_gone_clients(&self) -> bool {
        true
    }

    async fn client_gone(&mut self, client: ClientId) {
        self.task.request(ServoRequest::ClientGone(client)).await;
    }

    async fn shutdown(&mut self) {
        self.task.close().await;
    }
}

/// Passes a request to the logic.
pub(crate) fn answer(model: &mut impl Model, now: Instant, request: ServoRequest) {
    match request {
        ServoRequest::Command(outcome, Ok(orders)) => {
            let clients = outcome.origin().clients.clone();
            let why = carry_out(model, now, &clients, &orders);
            finish(outcome, why.as_deref());
        }
        ServoRequest::Stop(outcome) => {
            let stops = model.service().stops();
            let why = carry_out(model, now, &[], &stops);
            model.hold();
            finish(outcome, why.as_deref());
        }
        ServoRequest::Command(outcome, Err(refusal)) => {
            let why = refusal.to_string();
            outcome.refuse(&why);
            model.service().refuse(why);
        }
        ServoRequest::Angles(reply) => {
            let (servos, angles) = model.service().angles().unzip();
            reply.send(ServoAngles {
                servo_addresses: servos,
                angles,
            });
        }
        ServoRequest::ClientGone(client) => {
            let stops = model.service().client_gone(client);
            carry_out(model, now, &[], &stops);
        }
    }
}

/// Carries out orders of clients, or drops them: why.
fn carry_out(
    model: &mut impl Model,
    now: Instant,
    clients: &[ClientId],
    orders: &[Order],
) -> Option<String> {
    let is_connected = model.is_connected();
    model.service().take(clients, orders, is_connected);
    if is_connected {
        model.carry_out(now, orders);
        return None;
    }
    let trouble = model.service().trouble();
    Some(
        trouble
            .unwrap_or("the servo controller is not ready")
            .to_owned(),
    )
}

/// Writes the log messages of the logic.
pub(crate) fn tell(model: &mut impl Model) {
    while let Some(note) = model.service().poll_note() {
        say(&note, note.is_warning());
    }
}
