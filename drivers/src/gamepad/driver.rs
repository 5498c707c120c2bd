//! The driver between the mediator and the gamepad. IO.

use std::error::Error;
use std::time::Instant;

use amber_driver::devices::gamepad::{DriverMsg, GamepadDriver, GamepadLink};
use amber_driver::{Reply, now};
use amber_proto::gamepad::GamepadState;

use super::logic::{GamepadLogic, Output, Settings};
use crate::connection::Connect;
use crate::device_task::{DeviceTask, Next};
use crate::stream::{PortAction, PortEvent, StreamDevice, StreamLogic, complain, say};

/// The driver of a gamepad.
#[derive(Debug)]
pub struct Gamepad<C> {
    /// `Some` until the start.
    setup: Option<(Settings, C)>,
    task: DeviceTask<Reply<GamepadState>>,
}

impl<C: Connect> Gamepad<C> {
    /// Creates a driver that reaches its gamepad through `connect`.
    pub fn new(settings: Settings, connect: C) -> Self {
        Self {
            setup: Some((settings, connect)),
            task: DeviceTask::default(),
        }
    }
}

impl<C: Connect> GamepadDriver for Gamepad<C> {
    async fn start(&mut self, link: GamepadLink) -> Result<(), Box<dyn Error + Send + Sync>> {
        if let Some((settings, connect)) = self.setup.take() {
            let logic = GamepadLogic::new(settings, now());
            self.task.open(StreamDevice::new(logic, connect), link);
        }
        Ok(())
    }

    async fn state(&mut self, reply: Reply<GamepadState>) {
        if reply.is_possible() {
            self.task.request(reply).await;
        }
    }

    async fn shutdown(&mut self) {
        self.task.close().await;
    }
}

impl StreamLogic for GamepadLogic {
    type Request = Reply<GamepadState>;
    type Message = DriverMsg;
    type Link = GamepadLink;

    fn request(&mut self, now: Instant, _link: &GamepadLink, reply: Reply<GamepadState>) {
        reply.send(self.state(now));
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

    fn next(&mut self, _now: Instant, link: &GamepadLink) -> Next<PortAction> {
        while let Some(output) = self.poll_output() {
            match output {
                Output::Open => return Next::Perform(PortAction::Open),
                Output::Close => return Next::Perform(PortAction::Close),
                Output::Publish(state) => complain(link.state_updates(state)),
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
