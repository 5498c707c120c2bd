//! Tracks requests and subscriptions, and decides when to read the sensors. PURE.
//!
//! Call [`ImuLogic::poll_action`] and carry out each step until it returns `None`; drain
//! [`ImuLogic::poll_output`] after each. Call again at [`ImuLogic::wake_at`].
//!
//! ```text
//!  Absent --opened--> Open: reads on a request, when a period ends, or for a check
//!    ^                 |
//!    +--- bus broken --+
//! ```
//!
//! One reading serves every client that is due at that moment.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use amber_driver::{ClientId, Origin, Periodic};
use amber_proto::DeviceMessage;
use amber_proto::ninedof::{DataRequest, DriverMsg, SensorData, SubscribeAction};

use super::board::Reading;
use super::calibration::Calibration;
use super::model::Model;
use super::sensors::Sensors;
use super::service::Service;
use super::units::{Measured, gyro_milli};
use crate::outage::{CLIENT_PATIENCE, Outage};

mod note;
mod services;

pub use self::note::Note;
use self::services::Storing;

/// Maximum number of requests that wait for a reading.
const MAX_ASKERS: usize = 256;

/// The interval for reading sensors that are starting up, while requests wait.
const SETTLING: Duration = Duration::from_millis(10);

/// How often the driver checks all sensors when no client reads them.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// The same while a sensor is missing.
const LOOK_FOR_MISSING_EVERY: Duration = Duration::from_secs(1);

/// An action for the caller, one at a time.
#[derive(Clone, Debug, PartialEq)]
pub enum ImuAction {
    /// Open the bus, then call [`ImuLogic::opened`] or [`ImuLogic::failed`].
    Open,
    /// Close the bus.
    Close,
    /// Read these sensors, then call [`ImuLogic::read`] or [`ImuLogic::failed`].
    Read(Sensors),
    /// Save this calibration, then call [`ImuLogic::stored`].
    Store(Calibration),
}

/// A message or a log line.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// The reply to a request.
    Answer(Origin, DriverMsg),
    /// A publication for one client.
    PublishTo(Origin, DriverMsg),
    /// A publication for all clients that sent SUBSCRIBE.
    Publish(DriverMsg),
    /// A log message.
    Say(Note),
}

/// Event counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Readings of the sensors.
    pub readings: u64,
    /// Requests that got no reply.
    pub unanswered: u64,
    /// Publications skipped because no data was available.
    pub skipped: u64,
    /// Clients whose subscription was rejected.
    pub refused: u64,
}

/// The data for one client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Wanted {
    sensors: Sensors,
    extended: bool,
}

/// The driver of a model without its bus.
#[derive(Debug)]
pub struct ImuLogic<M: Model> {
    model: M,
    calibration: Calibration,
    began: Instant,
    phase: Phase,
    askers: VecDeque<Asker>,
    ask_at: Instant,
    subscribers: Periodic<Wanted>,
    /// A publication for the clients that sent SUBSCRIBE is due.
    publishes: bool,
    service: Option<Service>,
    storing: Option<Storing>,
    measure_bias_at: Option<Instant>,
    look_at: Instant,
    /// When the unfinished reading was started, and of which sensors.
    reads_at: Instant,
    reads: Sensors,
    outage: Outage,
    /// The problem of the chips, if any.
    board_trouble: Option<String>,
    /// The sensors that this board does not have.
    lacking: Sensors,
    /// The last reading.
    latest: M::Raw,
    has_warned_of_motion: bool,
    outputs: VecDeque<Output>,
    counters: Counters,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Absent { until: Instant },
    Closing,
    Open,
}

#[derive(Debug)]
struct Asker {
    origin: Origin,
    wanted: Wanted,
    since: Instant,
}

/// Requests.
impl<M: Model> ImuLogic<M> {
    /// Starts without a bus.
    pub fn new(model: M, calibration: Calibration, now: Instant) -> Self {
        let measures_bias = model.measures_bias() && !calibration.knows_gyro();
        Self {
            model,
            calibration,
            began: now,
            phase: Phase::Absent { until: now },
            askers: VecDeque::new(),
            ask_at: now,
            subscribers: Periodic::default(),
            publishes: false,
            service: None,
            storing: None,
            measure_bias_at: measures_bias.then_some(now),
            look_at: now,
            reads_at: now,
            reads: Sensors::default(),
            outage: Outage::default(),
            board_trouble: None,
            lacking: Sensors::default(),
            latest: M::Raw::default(),
            has_warned_of_motion: false,
            outputs: VecDeque::new(),
            counters: Counters::default(),
        }
    }

    /// A client requests one reading.
    ///
    /// The reply holds the values that could be read. If none could, there is no reply and the
    /// client's request times out.
    pub fn ask(&mut self, now: Instant, origin: Origin, request: DataRequest) {
        let wanted = Wanted::of(
            (request.accel, request.gyro, request.magnet),
            request.extended,
        );
        if wanted.sensors.is_empty() {
            return self.answer_nothing(now, origin);
        }
        self.forget_askers(now);
        if self.askers.len() == MAX_ASKERS {
            self.askers.pop_front();
            self.counters.unanswered += 1;
        }
        self.askers.push_back(Asker {
            origin,
            wanted,
            since: now,
        });
        self.ask_at = now;
    }

    /// A client starts or stops a subscription.
    pub fn subscribe(&mut self, now: Instant, origin: &Origin, action: SubscribeAction) {
        let period = Duration::from_millis(action.freq.unwrap_or(0).into());
        let wanted = Wanted::of((action.accel, action.gyro, action.magnet), action.extended);
        if period.is_zero() || wanted.sensors.is_empty() {
            self.subscribers.unsubscribe(origin);
        } else if !self.subscribers.subscribe(now, origin, period, wanted) {
            self.counters.refused += 1;
            if self.counters.refused == 1 {
                self.outputs.push_back(Output::Say(Note::TooMany));
            }
        }
    }

    /// A publication for the clients that sent SUBSCRIBE is due: it holds all sensors.
    pub fn publish(&mut self) {
        self.publishes = true;
    }

    /// A client is gone.
    pub fn client_died(&mut self, client: ClientId) {
        self.subscribers.remove(client);
        (self.askers).retain(|asker| asker.origin.clients != [client]);
        self.stop_service_of(client);
    }

    /// The next message or log line.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// The problem of the bus or the chips, if any.
    pub fn trouble(&self) -> Option<&str> {
        self.outage.trouble().or(self.board_trouble.as_deref())
    }

    /// Event counters.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// The known errors of the chips.
    pub fn calibration(&self) -> &Calibration {
        &self.calibration
    }
}

/// The bus.
impl<M: Model> ImuLogic<M> {
    /// The next action for the caller.
    pub fn poll_action(&mut self, now: Instant) -> Option<ImuAction> {
        self.forget_askers(now);
        self.proceed_with_service(now);
        if let Some(storing) = self.storing.as_mut().filter(|storing| !storing.is_begun) {
            storing.is_begun = true;
            return Some(ImuAction::Store(self.calibration.clone()));
        }
        match self.phase {
            Phase::Absent { until } => (now >= until).then_some(ImuAction::Open),
            Phase::Closing => {
                let until = self.outage.try_again_at(now);
                self.phase = Phase::Absent { until };
                Some(ImuAction::Close)
            }
            Phase::Open => {
                let wanted = self.wanted(now);
                self.reads_at = now;
                self.reads = wanted;
                (!wanted.is_empty()).then_some(ImuAction::Read(wanted))
            }
        }
    }

    /// When to call [`ImuLogic::poll_action`] if nothing happens earlier.
    pub fn wake_at(&self) -> Option<Instant> {
        let service_ends = self.service.as_ref().map(Service::ends);
        let when = match self.phase {
            Phase::Closing => return None,
            Phase::Absent { until } => [Some(until), service_ends, None, None, None],
            Phase::Open => [
                Some(self.look_at),
                service_ends,
                self.service.as_ref().map(Service::due),
                (!self.askers.is_empty()).then_some(self.ask_at),
                self.subscribers.next_due(),
            ],
        };
        when.into_iter().flatten().min()
    }

    /// The bus is open.
    pub fn opened(&mut self, now: Instant) {
        self.phase = Phase::Open;
        self.look_at = now;
    }

    /// The bus cannot be opened, or has failed.
    pub fn failed(&mut self, now: Instant, why: &str) {
        if self.outage.complain(now, why) {
            (self.outputs).push_back(Output::Say(Note::Trouble(why.to_owned())));
        }
        self.phase = Phase::Closing;
    }

    /// The sensors were read; `trouble` is the problem of the chips.
    pub fn read(&mut self, now: Instant, reading: Reading<M::Raw>, trouble: Option<String>) {
        self.counters.readings += 1;
        if let Some(lasted) = self.outage.over(now) {
            self.outputs.push_back(Output::Say(Note::Back(lasted)));
        }
        let next_look = now
            + match (reading.settling.is_empty(), trouble.is_some()) {
                (false, _) => SETTLING,
                (true, true) => LOOK_FOR_MISSING_EVERY,
                (true, false) => LOOK_EVERY,
            };
        self.look_at = match self.reads == Sensors::ALL {
            true => next_look,
            // Sensors that no client reads must still be checked in time.
            false => next_look.min(self.look_at),
        };
        self.board_trouble = trouble;
        self.lacking = reading.lacking;
        self.latest = reading.raw;
        self.keep_learned(reading.raw);
        let measured = self.model.measured(reading.raw, &self.calibration);
        self.answer(now, reading, measured);
        for (origin, wanted) in self.subscribers.take_due(self.reads_at) {
            match self.message(now, wanted, reading.raw, measured) {
                Some(message) => self.outputs.push_back(Output::PublishTo(origin, message)),
                None => self.counters.skipped += 1,
            }
        }
        if std::mem::take(&mut self.publishes) {
            match self.message(now, Wanted::ALL, reading.raw, measured) {
                Some(message) => self.outputs.push_back(Output::Publish(message)),
                None => self.counters.skipped += 1,
            }
        }
        let reads_at = self.reads_at;
        if let Some(service) = self.service.as_mut().filter(|one| one.due() <= reads_at) {
            let uncalibrated = (self.model).measured(reading.raw, &Calibration::default());
            service.push(now, uncalibrated);
        }
        self.watch_for_bias(now, measured);
    }

    /// The sensors to read now.
    fn wanted(&self, now: Instant) -> Sensors {
        let due = self.subscribers.due(now).map(|wanted| wanted.sensors);
        let service = self.service.iter().filter(|one| one.due() <= now);
        let all = (self.publishes || self.look_at <= now).then_some(Sensors::ALL);
        let others = due.chain(service.map(Service::wants)).chain(all);
        let others = others.fold(Sensors::default(), Sensors::and);
        match others.is_empty() && now < self.ask_at {
            true => others,
            // Waiting requests use every reading.
            false => (self.askers.iter())
                .map(|asker| asker.wanted.sensors)
                .fold(others, Sensors::and),
        }
    }

    fn answer(&mut self, now: Instant, reading: Reading<M::Raw>, measured: Measured) {
        for asker in std::mem::take(&mut self.askers) {
            if reading.settling.meet(asker.wanted.sensors) {
                self.askers.push_back(asker);
                continue;
            }
            match self.message(now, asker.wanted, reading.raw, measured) {
                Some(message) => (self.outputs).push_back(Output::Answer(asker.origin, message)),
                None => self.counters.unanswered += 1,
            }
        }
        self.ask_at = now + SETTLING;
    }

    /// A message with the requested values that are available; `None` if there are none.
    fn message(
        &self,
        now: Instant,
        wanted: Wanted,
        raw: M::Raw,
        measured: Measured,
    ) -> Option<DriverMsg> {
        let mut data = self.model.sensor_data(wanted.sensors, raw, measured);
        let is_empty = data == SensorData::default();
        if is_empty && !wanted.sensors.is_empty() {
            return None;
        }
        if self.model.has_time() {
            let passed = now.saturating_duration_since(self.began).as_millis();
            // Wraps after 49 days because the field has 32 bits.
            data.timestamp = Some(passed as u32);
        }
        if wanted.extended {
            data.gyro_milli = gyro_milli(measured).filter(|_| wanted.sensors.gyro);
            let both = wanted.sensors.accel && wanted.sensors.magnet;
            data.attitude = both
                .then(|| self.model.attitude(raw, measured, &self.calibration))
                .flatten();
        }
        Some(DriverMsg {
            sensor_data: Some(data),
            ..DriverMsg::data()
        })
    }

    /// A request for no sensors gets an empty reply, as from the original.
    fn answer_nothing(&mut self, now: Instant, origin: Origin) {
        let nothing = self.message(
            now,
            Wanted::default(),
            M::Raw::default(),
            Measured::default(),
        );
        (self.outputs).extend(nothing.map(|message| Output::Answer(origin, message)));
    }

    fn forget_askers(&mut self, now: Instant) {
        while let Some(asker) = self.askers.front() {
            if now.saturating_duration_since(asker.since) < CLIENT_PATIENCE {
                break;
            }
            self.askers.pop_front();
            self.counters.unanswered += 1;
        }
    }
}

impl Wanted {
    const ALL: Self = Self {
        sensors: Sensors::ALL,
        extended: true,
    };

    fn of(
        (accel, gyro, magnet): (Option<bool>, Option<bool>, Option<bool>),
        extended: Option<bool>,
    ) -> Self {
        Self {
            sensors: Sensors {
                accel: accel.unwrap_or(false),
                gyro: gyro.unwrap_or(false),
                magnet: magnet.unwrap_or(false),
            },
            extended: extended.unwrap_or(false),
        }
    }
}

#[cfg(test)]
mod tests;
