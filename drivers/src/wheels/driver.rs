//! The driver between the mediator and wheels of any model. IO.

use std::error::Error;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use amber_driver::devices::roboclaw::{
    DriverMsg, MotorsSpeed, RoboclawDriver, RoboclawLink, SpeedUpdatesData,
};
use amber_driver::{ClientId, Origin, Outcome, Reply, Request, now};
use amber_proto::battery_state::{BatteryState, battery_state::Health};
use amber_values::WheelSpeeds;

use super::{BatteryReading, Model, Output, Refusal};
use crate::device_task::{DeviceTask, Owner, finish};
use crate::stream::{complain, say};

/// The driver of wheels.
pub(crate) struct WheelsDriver<W> {
    /// `Some` until the start.
    make: Option<Box<dyn FnOnce() -> W + Send>>,
    task: DeviceTask<WheelRequest>,
}

/// A request for the task that owns the controllers.
#[derive(Debug)]
pub(crate) enum WheelRequest {
    Drive(Outcome, WheelSpeeds),
    Ask(Origin),
    Battery(Reply<BatteryState>),
    /// There is a new subscriber.
    Subscribed,
    ClientDied(ClientId),
}

impl<W> WheelsDriver<W> {
    /// Creates a driver whose task owns what `make` returns at the start.
    pub(crate) fn new(make: impl FnOnce() -> W + Send + 'static) -> Self {
        Self {
            make: Some(Box::new(make)),
            task: DeviceTask::default(),
        }
    }
}

impl<W> RoboclawDriver for WheelsDriver<W>
where
    W: Owner<Request = WheelRequest, Message = DriverMsg, Link = RoboclawLink>,
{
    async fn start(&mut self, link: RoboclawLink) -> Result<(), Box<dyn Error + Send + Sync>> {
        if let Some(make) = self.make.take() {
            self.task.open(make(), link);
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

    /// Wakes the task, which may measure only while there are subscribers.
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

/// Passes a request to the logic.
pub(crate) fn answer(model: &mut impl Model, link: &RoboclawLink, request: WheelRequest) {
    tell(model, link);
    match request {
        WheelRequest::Drive(outcome, speeds) => {
            let refused = model.drive(now(), &outcome.origin().clients, speeds);
            // A client learns the cause of an outage, not only that there is one.
            let why = refused.map(|refusal| match (refusal, model.trouble()) {
                (Refusal::Away, Some(trouble)) => trouble.into_owned(),
                (refusal, _) => refusal.to_string(),
            });
            finish(outcome, why.as_deref());
        }
        WheelRequest::Ask(origin) => model.ask(now(), origin),
        WheelRequest::Battery(reply) => match model.battery(now()) {
            Ok(reading) => reply.send(battery_state(reading)),
            Err(why) => reply.refuse(&why),
        },
        // The subscribers are counted before the next step.
        WheelRequest::Subscribed => {}
        WheelRequest::ClientDied(client) => model.client_died(client),
    }
}

/// Sends the replies of the logic, and writes its log messages.
pub(crate) fn tell(model: &mut impl Model, link: &RoboclawLink) {
    while let Some(output) = model.poll_output() {
        match output {
            Output::Answer(origin, speeds) => {
                complain(link.answer_speeds(&origin, speeds.into()));
            }
            Output::Publish(speeds, age) => {
                let battery = model.battery_to_publish(now());
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

/// Only what controllers of wheels know: neither the cells nor the current of the battery.
pub(crate) fn battery_state(reading: BatteryReading) -> BatteryState {
    let health = match reading.is_low {
        true => Health::Low,
        false => Health::Good,
    };
    BatteryState {
        voltage: Some(reading.mv),
        present: Some(true),
        health: Some(health.into()),
        time: unix_us(reading.age),
        ..BatteryState::default()
    }
}

/// The time of a measurement of this age, in microseconds since 1970.
pub(crate) fn unix_us(age: Duration) -> Option<u64> {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
    since_1970.saturating_sub(age).as_micros().try_into().ok()
}
