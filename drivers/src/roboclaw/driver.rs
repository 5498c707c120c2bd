//! The controllers on their bus, with their logic. IO.

use std::borrow::Cow;
use std::time::Duration;

use amber_driver::devices::roboclaw::{DriverMsg, RoboclawLink};
use amber_driver::now;
use tokio::time::sleep;

use super::bus::Bus;
use super::gpio::Gpio;
use super::logic::{ControllerAction, ExchangeError, Line, Settings, WheelLogic};
use crate::connection::{Connect, open};
use crate::device_task::{Next, Owner, until};
use crate::wheels::Model;
use crate::wheels::driver::{WheelRequest, WheelsDriver, answer, tell};

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

/// The driver of two RoboClaw controllers and four wheels, which reaches them through `connect`.
pub(super) fn driver<C: Connect>(setup: Setup, connect: C) -> WheelsDriver<Controllers<C>> {
    WheelsDriver::new(move || Controllers {
        logic: WheelLogic::new(setup.settings.clone(), now()),
        setup,
        connect,
        bus: None,
        gpio_has_failed: false,
    })
}

/// Both controllers on their bus, with the logic.
pub(super) struct Controllers<C> {
    logic: WheelLogic,
    setup: Setup,
    connect: C,
    bus: Option<Bus>,
    gpio_has_failed: bool,
}

impl<C: Connect> Owner for Controllers<C> {
    type Request = WheelRequest;
    type Message = DriverMsg;
    type Link = RoboclawLink;
    type Action = ControllerAction;

    fn request(&mut self, link: &RoboclawLink, request: WheelRequest) {
        answer(&mut self.logic, link, request);
    }

    fn shut_down(&mut self) {
        self.logic.shut_down();
    }

    fn next(&mut self, link: &RoboclawLink) -> Next<ControllerAction> {
        let now = now();
        self.logic.set_listened(now, link.subscriptions() > 0);
        let step = self.logic.poll_action(now);
        tell(&mut self.logic, link);
        match step {
            Some(ControllerAction::End) => Next::End,
            Some(step) => Next::Perform(step),
            None => Next::Wait,
        }
    }

    async fn perform(&mut self, step: ControllerAction) {
        match step {
            ControllerAction::Open => match self.open().await {
                Ok(opened) => {
                    self.bus = Some(opened);
                    self.logic.opened();
                }
                Err(problem) => self.logic.open_failed(now(), &problem),
            },
            ControllerAction::Close => self.bus = None,
            ControllerAction::Exchange { packet, shape } => {
                let result = match &mut self.bus {
                    Some(bus) => bus.exchange(&packet, shape).await,
                    None => Err(ExchangeError::Port("the port is closed".into())),
                };
                self.logic.exchanged(now(), result);
            }
            ControllerAction::Set(line, active) => self.set(line, active).await,
            ControllerAction::Wait(duration) => sleep(duration).await,
            ControllerAction::End => {}
        }
    }

    async fn wait(&mut self) {
        until(self.logic.wake_at()).await;
    }

    fn trouble(&self) -> Option<Cow<'_, str>> {
        self.logic.trouble()
    }

    fn log_counters(&self) {
        tracing::debug!(counters = ?self.logic.counters(), "ended");
    }
}

impl<C: Connect> Controllers<C> {
    async fn open(&mut self) -> Result<Bus, String> {
        let connection = open(&mut self.connect).await?;
        let mut bus = Bus::new(connection, self.connect.place(), self.setup.reply_timeout);
        bus.settle().await.map_err(|error| error.to_string())?;
        Ok(bus)
    }

    async fn set(&mut self, line: Line, active: bool) {
        if let Err(error) = self.setup.gpio.set(line, active).await
            && !std::mem::replace(&mut self.gpio_has_failed, true)
        {
            tracing::warn!("cannot set the {line:?} line: {error} (logged once)");
        }
        if line == Line::Reset {
            tracing::debug!(active, "reset line");
        }
    }
}

#[cfg(test)]
mod tests;
