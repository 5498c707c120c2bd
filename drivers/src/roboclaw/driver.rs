//! The driver between the mediator and the bus. IO.

use std::borrow::Cow;
use std::error::Error;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use amber_driver::devices::roboclaw::{
    DriverMsg, MotorsSpeed, RoboclawDriver, RoboclawLink, SpeedUpdatesData,
};
use amber_driver::{ClientId, Origin, Outcome, Reply, Request, now};
use amber_proto::battery_state::{BatteryState, battery_state::Health};
use amber_values::WheelSpeeds;
use tokio::time::sleep;

use super::bus::Bus;
use super::gpio::Gpio;
use super::logic::{
    BatteryReading, ControllerAction, ExchangeError, Line, Output, Refusal, Settings, WheelLogic,
};
use crate::connection::{Connect, open};
use crate::device_task::{DeviceTask, Next, Owner, finish, until};
use crate::stream::{complain, say};

/// The driver of two RoboClaw controllers and four wheels.
#[derive(Debug)]
pub struct Roboclaw<C> {
    /// `Some` until the start.
    setup: Option<(Setup, C)>,
    task: DeviceTask<WheelRequest>,
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

/// A request for the task that owns the bus.
#[derive(Debug)]
enum WheelRequest {
    Drive(Outcome, WheelSpeeds),
    Ask(Origin),
    Battery(Reply<BatteryState>),
    /// There is a new subscriber.
    Subscribed,
    ClientDied(ClientId),
}

impl<C: Connect> Roboclaw<C> {
    /// Creates a driver that reaches its controllers through `connect`.
    pub fn new(setup: Setup, connect: C) -> Self {
        Self {
            setup: Some((setup, connect)),
            task: DeviceTask::default(),
        }
    }
}

impl<C: Connect> RoboclawDriver for Roboclaw<C> {
    async fn start(&mut self, link: RoboclawLink) -> Result<(), Box<dyn Error + Send + Sync>> {
        if let Some((setup, connect)) = self.setup.take() {
            let controllers = Controllers {
                logic: WheelLogic::new(setup.settings.clone(), now()),
                setup,
                connect,
                bus: None,
                gpio_has_failed: false,
            };
            self.task.open(controllers, link);
        }
        Ok(())
    }

    /// If a message holds a request and a command, only the request takes effect, as in the
    /// original.
    fn received(&mut self, request: &mut Request<DriverMsg>) {
        if request.message.current_speed_request.is_some() {
            request.message.motors_command = None;
        }
    }

    async fn drive(&mut self, speeds: MotorsSpeed, outcome: Outcome) {
        self.task
            .request(WheelRequest::Drive(outcome, speeds.into()))
            .await;
    }

    async fn speeds(&mut self, reply: Reply<MotorsSpeed>) {
        if reply.is_possible() {
            self.task
                .request(WheelRequest::Ask(reply.into_origin()))
                .await;
        }
    }

    async fn battery(&mut self, reply: Reply<BatteryState>) {
        if reply.is_possible() {
            self.task.request(WheelRequest::Battery(reply)).await;
        }
    }

    /// Wakes the task, which measures only while there are subscribers.
    async fn subscribed(&mut self, _client: ClientId) {
        self.task.request(WheelRequest::Subscribed).await;
    }

    fn handles_gone_clients(&self) -> bool {
        true
    }

    async fn client_gone(&mut self, client: ClientId) {
        self.task.request(WheelRequest::ClientDied(client)).await;
    }

    async fn shutdown(&mut self) {
        self.task.close().await;
    }
}

/// Both controllers on their bus, with the logic.
struct Controllers<C> {
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
        let logic = &mut self.logic;
        tell(logic, link);
        match request {
            WheelRequest::Drive(outcome, speeds) => {
                let refused = logic.drive(now(), &outcome.origin().clients, speeds);
                // A client learns the cause of an outage, not only that there is one.
                let why = refused.map(|refusal| match (refusal, logic.trouble()) {
                    (Refusal::Away, Some(trouble)) => trouble.into_owned(),
                    (refusal, _) => refusal.to_string(),
                });
                finish(outcome, why.as_deref());
            }
            WheelRequest::Ask(origin) => logic.ask(now(), origin),
            WheelRequest::Battery(reply) => match logic.battery(now()) {
                Ok(reading) => reply.send(battery_state(reading)),
                Err(why) => reply.refuse(&why),
            },
            // The subscribers are counted before the next step.
            WheelRequest::Subscribed => {}
            WheelRequest::ClientDied(client) => logic.client_died(client),
        }
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

fn tell(logic: &mut WheelLogic, link: &RoboclawLink) {
    while let Some(output) = logic.poll_output() {
        match output {
            Output::Answer(origin, speeds) => {
                complain(link.answer_speeds(&origin, speeds.into()));
            }
            Output::Publish(speeds, age) => {
                let battery = logic.battery_to_publish(now());
                complain(link.speed_updates(SpeedUpdatesData {
                    current_speed: speeds.into(),
                    speed_age_us: Some(age.as_micros().try_into().unwrap_or(u32::MAX)),
                    battery: battery.map(battery_state),
                }));
            }
            Output::Say(note) => say(&note, note.is_warning()),
        }
    }
}

/// Only what the controllers know: neither the cells nor the current of the battery.
fn battery_state(reading: BatteryReading) -> BatteryState {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH);
    let measured = since_1970.map(|since| since.saturating_sub(reading.age).as_micros());
    let health = match reading.is_low {
        true => Health::Low,
        false => Health::Good,
    };
    BatteryState {
        voltage: Some(reading.mv),
        present: Some(true),
        health: Some(health.into()),
        time: measured.ok().and_then(|us| us.try_into().ok()),
        ..BatteryState::default()
    }
}

#[cfg(test)]
mod tests;
