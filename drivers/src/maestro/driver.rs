//! The driver between the mediator and the Maestro. IO.

use std::error::Error;
use std::time::Instant;

use amber_driver::devices::maestro::{
    DriverMsg, MaestroDriver, MaestroLink, ServoAngles, SetAngleCommand, SetDifferentAnglesCommand,
    SetSameAngleCommand, SetSpeedCommand,
};
use amber_driver::{Outcome, Reply};

use super::logic::{Output, ServoLogic, Settings};
use super::protocol::Command;
use super::servos::{Refusal, Servos};
use crate::connection::Connect;
use crate::device_task::{DeviceTask, Next, finish};
use crate::stream::{PortAction, PortEvent, StreamDevice, StreamLogic, say};

/// The driver of a Pololu Maestro with hobby servos.
///
/// Commands have no answer: old clients expect none. Only the outcome is reported to clients that
/// ask for it.
#[derive(Debug)]
pub struct Maestro<C> {
    servos: Servos,
    /// `Some` until the start.
    setup: Option<(Settings, C)>,
    task: DeviceTask<ServoRequest>,
}

/// A request for the task that owns the device.
#[derive(Debug)]
pub(crate) enum ServoRequest {
    /// The commands, and the angle of each servo that they turn.
    Command(Outcome, Vec<Command>, Vec<(u8, i32)>),
    Refuse(Outcome, Refusal),
    Angles(Reply<ServoAngles>),
}

impl<C: Connect> Maestro<C> {
    /// Creates a driver that reaches its device through `connect`.
    pub fn new(settings: Settings, servos: Servos, connect: C) -> Self {
        Self {
            servos,
            setup: Some((settings, connect)),
            task: DeviceTask::default(),
        }
    }

    async fn command(&self, message: DriverMsg, outcome: Outcome) {
        let request = match self.servos.read(&message) {
            Ok(commands) => ServoRequest::Command(outcome, commands, Servos::angles(&message)),
            Err(refusal) => ServoRequest::Refuse(outcome, refusal),
        };
        self.task.request(request).await;
    }
}

impl<C: Connect> MaestroDriver for Maestro<C> {
    async fn start(&mut self, link: MaestroLink) -> Result<(), Box<dyn Error + Send + Sync>> {
        if let Some((settings, connect)) = self.setup.take() {
            let device = StreamDevice::new(ServoLogic::new(settings), connect);
            self.task.open(device, link);
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

    async fn shutdown(&mut self) {
        self.task.close().await;
    }
}

impl StreamLogic for ServoLogic {
    type Request = ServoRequest;
    type Message = DriverMsg;
    type Link = MaestroLink;

    fn request(&mut self, _now: Instant, _link: &MaestroLink, request: ServoRequest) {
        match request {
            ServoRequest::Command(outcome, commands, angles) => {
                let refused = match self.command(&commands, &angles) {
                    true => None,
                    false => Some(self.trouble().unwrap_or("the Maestro is not ready")),
                };
                finish(outcome, refused);
            }
            ServoRequest::Refuse(outcome, refusal) => {
                let why = refusal.to_string();
                outcome.refuse(&why);
                self.refuse(why);
            }
            ServoRequest::Angles(reply) => {
                let (servos, angles) = self.angles().unzip();
                reply.send(ServoAngles {
                    servo_addresses: servos,
                    angles,
                });
            }
        }
    }

    fn handle(&mut self, now: Instant, event: PortEvent<'_>) {
        match event {
            PortEvent::Opened => self.opened(now),
            PortEvent::Failed(problem) => self.failed(now, problem),
            PortEvent::Bytes(bytes) => self.handle_bytes(now, bytes),
            PortEvent::Timeout => self.handle_timeout(now),
            PortEvent::ShutDown => self.shut_down(),
        }
    }

    fn next(&mut self, _now: Instant, _link: &MaestroLink) -> Next<PortAction> {
        while let Some(output) = self.poll_output() {
            match output {
                Output::Open => return Next::Perform(PortAction::Open),
                Output::Close => return Next::Perform(PortAction::Close),
                Output::Write(bytes) => return Next::Perform(PortAction::Write(bytes)),
                Output::Say(note) => say(&note, note.is_warning()),
                Output::End => return Next::End,
            }
        }
        Next::Wait
    }

    fn wake_at(&self) -> Option<Instant> {
        self.wake_at()
    }

    fn trouble(&self) -> Option<&str> {
        self.trouble()
    }

    fn counters(&self) -> String {
        format!("{:?}", self.counters())
    }
}

#[cfg(test)]
mod tests;
