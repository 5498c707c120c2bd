//! The driver between the mediator and the PCA9685. IO.

use std::borrow::Cow;
use std::future::pending;

use amber_driver::devices::maestro::{DriverMsg, MaestroLink};
use amber_driver::{Guard, now};

use super::Settings;
use super::chip;
use super::logic::{Action, ServoLogic};
use super::registers::pulses;
use crate::device_task::{Next, Owner, on_a_thread, until};
use crate::i2c::registers::Problem;
use crate::i2c::{Bus, OpenBus};
use crate::servos::Servos;
use crate::servos::driver::{ServoRequest, ServosDriver, answer, tell};

/// The driver of a PCA9685, whose bus is at `place`.
pub(crate) fn driver<B: OpenBus>(
    settings: Settings,
    servos: Servos,
    place: B,
) -> ServosDriver<Pca9685<B>> {
    let continuous = servos.continuous().clone();
    ServosDriver::new(servos, move || Pca9685 {
        last_writes: (continuous.iter().map(|servo| pulses(*servo, &[0]))).collect(),
        logic: ServoLogic::new(settings.timing, continuous, now()),
        settings,
        place: Some(place),
        bus: None,
        guard: None,
        no_guard: None,
    })
}

/// The controller on its bus, with the logic.
pub(crate) struct Pca9685<B> {
    settings: Settings,
    logic: ServoLogic,
    /// `None` while a thread has it.
    place: Option<B>,
    bus: Option<Box<dyn Bus>>,
    /// What stops the servos that turn like motors.
    last_writes: Vec<Vec<u8>>,
    guard: Option<Guard>,
    /// Why there is no guard, although there should be one.
    no_guard: Option<String>,
}

impl<B: OpenBus> Owner for Pca9685<B> {
    type Request = ServoRequest;
    type Message = DriverMsg;
    type Link = MaestroLink;
    type Action = Action;

    fn request(&mut self, _link: &MaestroLink, request: ServoRequest) {
        answer(&mut self.logic, now(), request);
    }

    fn shut_down(&mut self) {
        self.logic.shut_down(now());
    }

    fn next(&mut self, _link: &MaestroLink) -> Next<Action> {
        if self.guard.as_ref().is_some_and(Guard::has_acted) {
            self.logic.handle_guard_acted(now());
        }
        let action = self.logic.poll_action(now());
        tell(&mut self.logic);
        match action {
            Some(Action::End) => Next::End,
            Some(action) => Next::Perform(action),
            None => Next::Wait,
        }
    }

    async fn perform(&mut self, action: Action) {
        let Settings { address, timing } = self.settings;
        match action {
            Action::Open => {
                let opened = self.open().await;
                self.logic.opened(now(), opened);
            }
            Action::SetUp => {
                let done = self.on_bus(move |bus| chip::make_ready(bus, address, timing));
                let done = done.await;
                self.logic.handle_set_up(now(), done);
            }
            Action::Check => {
                let kept = self.on_bus(move |bus| chip::has_kept(bus, address, timing));
                let kept = kept.await;
                self.logic.handle_check(now(), kept);
            }
            Action::Write(writes) => {
                let written = self.on_bus(move |bus| chip::write(bus, address, &writes));
                let written = written.await;
                self.logic.handle_written(now(), written);
            }
            Action::End => {}
        }
        if self.logic.is_closed() {
            self.bus = None;
        }
    }

    async fn wait(&mut self) {
        let (due, guard) = (self.logic.wake_at(), self.guard.as_ref());
        let news = async {
            match guard {
                Some(guard) => guard.changed().await,
                None => pending().await,
            }
        };
        tokio::select! {
            () = until(Some(due)) => {}
            () = news => {}
        }
    }

    fn trouble(&self) -> Option<Cow<'_, str>> {
        let of_chip = self.logic.service.trouble().map(Cow::from);
        let of_guard = || self.guard.as_ref().and_then(Guard::trouble).map(Cow::from);
        let without = || self.no_guard.as_deref().map(Cow::from);
        of_chip.or_else(of_guard).or_else(without)
    }

    fn log_counters(&self) {
        tracing::debug!(counters = ?self.logic.service.counters, "ended");
    }
}

impl<B: OpenBus> Pca9685<B> {
    /// Opens the bus, and starts a guard for it if something turns like a motor.
    async fn open(&mut self) -> Result<(), String> {
        let place = self.place.take().ok_or("a transfer is unfinished")?;
        // It has the bus as it was.
        self.guard = None;
        let (address, writes) = (self.settings.address, self.last_writes.clone());
        let (place, opened) = on_a_thread(place, move |place| {
            let bus = place.open()?;
            let guard = match writes.is_empty() {
                true => Ok(None),
                false => place.guard(address, &writes),
            };
            Ok::<_, String>((bus, guard))
        })
        .await;
        self.place = Some(place);
        let (bus, guard) = opened?;
        self.bus = Some(bus);
        (self.guard, self.no_guard) = match guard {
            Ok(guard) => (guard, None),
            Err(why) => (None, Some(why)),
        };
        if let Some(why) = &self.no_guard {
            tracing::warn!("servos that turn like motors go on if this driver is killed: {why}");
        }
        Ok(())
    }

    /// Runs transfers on a thread.
    async fn on_bus<T: Send + 'static>(
        &mut self,
        work: impl FnOnce(&mut dyn Bus) -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        let closed = || Problem::Bus("the bus is closed".into());
        let bus = self.bus.take().ok_or_else(closed)?;
        let (bus, result) = on_a_thread(bus, move |bus| work(bus.as_mut())).await;
        self.bus = Some(bus);
        result
    }
}

#[cfg(test)]
mod tests;
