//! The pure logic of one model of wheels. PURE.

use std::borrow::Cow;
use std::time::{Duration, Instant};

use amber_driver::{ClientId, Origin};
use amber_values::WheelSpeeds;

use super::{Felt, Output, Refusal, Service, Special, StopFor, StopReason};

/// A measurement of the main battery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatteryReading {
    /// The voltage.
    pub mv: u32,
    /// Whether a controller has reported that it is too low to drive.
    pub is_low: bool,
    /// The time since the measurement.
    pub age: Duration,
}

/// The logic of wheels and their controllers.
///
/// Report each event, and drain [`Model::poll_output`] after every change.
pub trait Model: Send + 'static {
    /// Log messages that only this model has.
    type Special: Special;

    /// The rules, the newest command, and who wants the speeds.
    fn service(&self) -> &Service<Self::Special>;

    /// The same, to change it.
    fn service_mut(&mut self) -> &mut Service<Self::Special>;

    /// Whether commands reach the wheels.
    fn is_ready(&self) -> bool;

    /// The reason why commands are refused now, whatever their speeds are.
    fn refusal(&self) -> Option<Refusal>;

    /// The reason why a command with these speeds is refused now.
    fn refusal_of(&self, _speeds: WheelSpeeds) -> Option<Refusal> {
        None
    }

    /// There is a new command, which must be sent.
    fn handle_command(&mut self, now: Instant);

    /// The wheels must stop.
    fn handle_stop(&mut self);

    /// Stops the wheels, and then ends.
    fn shut_down(&mut self);

    /// A client commands the wheels. Returns the reason if the command is refused.
    fn drive(
        &mut self,
        now: Instant,
        clients: &[ClientId],
        speeds: WheelSpeeds,
    ) -> Option<Refusal> {
        let too_fast = || self.service().too_fast(speeds);
        let refused = || self.refusal_of(speeds);
        let refusal = self.refusal().or_else(too_fast).or_else(refused);
        match refusal {
            Some(refusal) => self.service_mut().refuse(now, refusal),
            None => {
                self.service_mut().motion.command(now, clients, speeds);
                self.handle_command(now);
            }
        }
        refusal
    }

    /// A client requests the speeds.
    ///
    /// The reply holds speeds measured after this call. While the controllers are unreachable there
    /// is no reply, and the client's request times out.
    fn ask(&mut self, now: Instant, origin: Origin) {
        self.service_mut().questions.ask(now, origin);
    }

    /// Whether clients are subscribed to the speeds.
    fn set_listened(&mut self, now: Instant, is_listened: bool) {
        (self.service_mut().questions).set_listened(now, is_listened);
    }

    /// A client is gone.
    fn client_died(&mut self, client: ClientId) {
        let stops = match self.service().stop_for() {
            StopFor::Commander => self.service().motion.is_of(client),
            StopFor::Anyone => true,
        };
        if stops {
            self.stop(StopReason::ClientDied(client));
        }
    }

    /// Stops the wheels. Before the controllers are ready, they stand still.
    fn stop(&mut self, reason: StopReason) {
        if self.is_ready() {
            self.service_mut().stop(reason);
            self.handle_stop();
        }
    }

    /// Stops the wheels if nobody has commanded them for some time, or if a command was sent so long ago
    /// that the controllers have stopped them. `sent` is when the newest one was sent.
    fn stop_in_time(&mut self, now: Instant, sent: Option<Instant>, controllers_stop: Duration) {
        let motion = &mut self.service_mut().motion;
        let turns = motion.turns();
        if motion.idle_stop_due().is_some_and(|due| now >= due) {
            motion.idles();
            if turns {
                self.stop(StopReason::Idle);
            }
        } else if turns && sent.is_some_and(|sent| now >= sent + controllers_stop) {
            self.stop(StopReason::Late);
        }
    }

    /// The main battery, as it was measured last.
    ///
    /// # Errors
    /// It is not measured now: the reason.
    fn battery(&self, _now: Instant) -> Result<BatteryReading, Cow<'_, str>> {
        Err("these wheels do not measure a battery".into())
    }

    /// The same when it is due for the subscribers: once a second.
    fn battery_to_publish(&mut self, now: Instant) -> Option<BatteryReading> {
        let reading = self.battery(now).ok()?;
        (self.service_mut().publishes_battery(now)).then_some(reading)
    }

    /// What the base feels, as it was measured last: its bumpers, cliffs, and wheels in the air.
    ///
    /// # Errors
    /// It is unknown: the reason.
    fn contacts(&self, _now: Instant) -> Result<Felt, Cow<'_, str>> {
        Err("this base has no bumper".into())
    }

    /// The next reply or log message.
    fn poll_output(&mut self) -> Option<Output<Self::Special>> {
        self.service_mut().poll_output()
    }

    /// The reason why driving is disabled, if it is.
    fn trouble(&self) -> Option<Cow<'_, str>> {
        self.service().trouble().map(Cow::from)
    }
}

/// An action at a byte stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamAction {
    /// Open the connection, then call [`StreamModel::opened`] or [`StreamModel::failed`].
    Open,
    /// Close the connection.
    Close,
    /// Send this to the controllers.
    Write(Vec<u8>),
    /// Nothing is left to do.
    End,
}

/// A model whose controllers are at a byte stream.
///
/// Report each event, then carry out the actions of [`StreamModel::poll_action`] one after the other.
/// Call [`StreamModel::handle_timeout`] at [`StreamModel::wake_at`].
pub trait StreamModel: Model {
    /// What the options of the driver say.
    type Settings: Send + 'static;

    /// Starts without a connection.
    fn new(settings: Self::Settings, now: Instant) -> Self;

    /// The connection is open.
    fn opened(&mut self, now: Instant);

    /// The connection cannot be opened, or has failed.
    fn failed(&mut self, now: Instant, reason: &str);

    /// Bytes from the controllers.
    fn handle_bytes(&mut self, now: Instant, bytes: &[u8]);

    /// Handles expired timers.
    fn handle_timeout(&mut self, now: Instant);

    /// The next action, if any.
    fn poll_action(&mut self, now: Instant) -> Option<StreamAction>;

    /// When to call [`StreamModel::handle_timeout`] if nothing happens earlier.
    fn wake_at(&self) -> Option<Instant>;

    /// What the base senses that keeps it from driving, or from driving ahead.
    fn hindrance(&self) -> Option<&str> {
        None
    }

    /// What stops the wheels of controllers without a watchdog of their own. A guard writes it when the
    /// driver is killed or hangs.
    fn last_words(&self) -> Option<Vec<u8>> {
        None
    }
}
