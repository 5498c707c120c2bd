//! The driver between the mediator and servos of any maker. IO.

use std::error::Error;
use std::time::{Duration, Instant};

use amber_driver::devices::bus_servos::{
    self, BusServosDriver, BusServosLink, DriverMsg, MoveServos, ServoSpeeds, ServoStates,
    ServoTorque,
};
use amber_driver::{ClientId, Driver, Outcome, Reply, StopCause, now};

use super::logic::{BusLogic, Output};
use super::port::QuickPort;
use super::{Claim, Maker, Options, Preset, Rules};
use crate::connection::Connect;
use crate::device_task::{DeviceTask, Next, finish};
use crate::options::OptionsError;
use crate::stream::{PortAction, PortEvent, StreamDevice, StreamLogic, complain, say};
use crate::wheels::driver::unix_us;

impl<P: Preset> Options<P> {
    /// Creates the driver from these options and those of the file.
    ///
    /// # Errors
    /// The file cannot be read, or a value is invalid.
    pub fn driver(self) -> Result<impl Driver, OptionsError> {
        let (rules, endpoint) = self.complete()?.settings()?;
        let driver = ServosDriver::<P::Maker, _>::new(rules, QuickPort::new(endpoint));
        Ok(bus_servos::driver(driver))
    }
}

/// The driver of servos of a maker, which it reaches through `connect`.
pub(crate) struct ServosDriver<M, C> {
    /// `Some` until the start.
    start: Option<(Rules, C)>,
    task: DeviceTask<ServosRequest>,
    maker: std::marker::PhantomData<fn() -> M>,
}

/// A request for the task that owns the bus.
#[derive(Debug)]
pub(crate) enum ServosRequest {
    Servos(Reply<ServoStates>),
    MoveTo(Outcome, MoveServos),
    Turn(Outcome, ServoSpeeds),
    Torque(Outcome, ServoTorque),
    Stop(Outcome),
    ClientGone(ClientId),
}

impl<M: Maker, C: Connect> ServosDriver<M, C> {
    /// Creates a driver with these rules.
    pub(crate) fn new(rules: Rules, connect: C) -> Self {
        Self {
            start: Some((rules, connect)),
            task: DeviceTask::default(),
            maker: std::marker::PhantomData,
        }
    }
}

impl<M: Maker, C: Connect> BusServosDriver for ServosDriver<M, C> {
    async fn start(&mut self, link: BusServosLink) -> Result<(), Box<dyn Error + Send + Sync>> {
        if let Some((rules, connect)) = self.start.take() {
            let logic = BusLogic::<M>::new(rules, now());
            self.task.open(StreamDevice::new(logic, connect), link);
        }
        Ok(())
    }

    async fn servos(&mut self, reply: Reply<ServoStates>) {
        self.task.request(ServosRequest::Servos(reply)).await;
    }

    async fn move_to(&mut self, command: MoveServos, outcome: Outcome) {
        let request = ServosRequest::MoveTo(outcome, command);
        self.task.request(request).await;
    }

    async fn turn(&mut self, command: ServoSpeeds, outcome: Outcome) {
        let request = ServosRequest::Turn(outcome, command);
        self.task.request(request).await;
    }

    async fn stop(&mut self, outcome: Outcome) {
        self.task.request(ServosRequest::Stop(outcome)).await;
    }

    async fn set_torque(&mut self, command: ServoTorque, outcome: Outcome) {
        let request = ServosRequest::Torque(outcome, command);
        self.task.request(request).await;
    }

    fn handles_gone_clients(&self) -> bool {
        true
    }

    async fn client_gone(&mut self, client: ClientId) {
        self.task.request(ServosRequest::ClientGone(client)).await;
    }

    async fn shutdown(&mut self) {
        self.task.close().await;
    }
}

impl<M: Maker> StreamLogic for BusLogic<M> {
    type Request = ServosRequest;
    type Message = DriverMsg;
    type Link = BusServosLink;

    fn request(&mut self, now: Instant, _link: &BusServosLink, request: ServosRequest) {
        let (outcome, done) = match request {
            ServosRequest::Servos(reply) => {
                return match self.absence() {
                    Some(why) => reply.refuse(&why),
                    None => reply.send(message(self, now)),
                };
            }
            ServosRequest::ClientGone(client) => return self.client_gone(now, client),
            ServosRequest::Stop(outcome) => {
                if let Some(StopCause::Expired) = outcome.origin().stop_cause {
                    self.expire(now);
                    return finish(outcome, None);
                }
                let why = self.stop(now);
                return finish(outcome, why.as_deref());
            }
            ServosRequest::MoveTo(outcome, command) => {
                let claim = claim(&outcome);
                let done = reached(self).and_then(|()| self.move_to(&claim, &command));
                (outcome, done)
            }
            ServosRequest::Turn(outcome, command) => {
                let claim = claim(&outcome);
                let done = reached(self).and_then(|()| self.turn(now, &claim, &command));
                (outcome, done)
            }
            ServosRequest::Torque(outcome, command) => {
                let done = reached(self).and_then(|()| self.set_torque(now, &command));
                (outcome, done)
            }
        };
        finish(outcome, done.as_ref().err().map(String::as_str));
        if let Err(why) = done {
            self.refuse(why);
        }
    }

    fn handle(&mut self, now: Instant, event: PortEvent<'_>) {
        match event {
            PortEvent::Opened => self.opened(now),
            PortEvent::Failed(problem) => self.failed(now, problem),
            PortEvent::Bytes(bytes) => self.handle_bytes(now, bytes),
            PortEvent::Timeout => self.handle_timeout(now),
            PortEvent::ShutDown => self.shut_down(now),
        }
    }

    fn next(&mut self, now: Instant, link: &BusServosLink) -> Next<PortAction> {
        let output = self.poll_output(now);
        while let Some(note) = self.poll_note() {
            say(&note, note.is_warning());
        }
        if self.take_fresh() && link.subscriptions() > 0 {
            complain(link.servo_updates(message(self, now)));
        }
        match output {
            Some(Output::Open) => Next::Perform(PortAction::Open),
            Some(Output::Close) => Next::Perform(PortAction::Close),
            Some(Output::Write(bytes)) => Next::Perform(PortAction::Write(bytes)),
            Some(Output::End) => Next::End,
            None => Next::Wait,
        }
    }

    fn wake_at(&self) -> Option<Instant> {
        self.wake_at(now())
    }

    fn trouble(&self) -> Option<&str> {
        self.trouble()
    }

    fn counters(&self) -> String {
        format!("{:?}", self.counters)
    }

    fn last_words(&self) -> Option<Vec<u8>> {
        self.last_words()
    }

    fn handle_guard_acted(&mut self) {
        self.guard_acted(now());
    }
}

fn claim(outcome: &Outcome) -> Claim {
    let origin = outcome.origin();
    Claim {
        clients: origin.clients.clone(),
        until: origin.valid_until,
    }
}

fn reached<M: Maker>(logic: &BusLogic<M>) -> Result<(), String> {
    logic.absence().map_or(Ok(()), Err)
}

fn message<M: Maker>(logic: &BusLogic<M>, now: Instant) -> ServoStates {
    let (servos, measured) = logic.states();
    let age = measured.map_or(Duration::ZERO, |it| now.saturating_duration_since(it));
    let time = unix_us(age).and_then(|us| us.try_into().ok());
    ServoStates { servos, time }
}
