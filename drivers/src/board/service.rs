//! The pins with their values, the clients that have set them, refusals and the outage. PURE.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use amber_driver::ClientId;
use amber_proto::board as message;

use super::{Command, Mode, Order, Pin, Pins, Place, Value};
use crate::outage::Outage;
use crate::servos::Note;

/// How many different rejections, and how many different remarks, are logged.
const MAX_SAID: usize = 32;

/// The shortest time between two publications: a switch bounces.
const GAP: Duration = Duration::from_millis(5);

/// The time between two publications without a change.
const QUIET: Duration = Duration::from_secs(1);

/// Event counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Orders sent.
    pub sent: u64,
    /// Rejected requests.
    pub refused: u64,
    /// Restarts of the board.
    pub restarts: u64,
    /// Messages of the board that cannot be right.
    pub garbled: u64,
}

/// Where a pin of the configuration is on the board.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spot {
    /// The number by which the board knows it.
    pub number: Option<u8>,
    /// Its analog input, if it has one.
    pub channel: Option<u8>,
    /// Why it cannot be used as it is configured.
    pub problem: Option<String>,
}

/// A pin, and what is known of it.
#[derive(Debug)]
struct State {
    pin: Pin,
    spot: Spot,
    /// What an output was told.
    told: Option<Value>,
    /// Who has told it.
    commanders: Vec<ClientId>,
    /// The level of a digital input.
    level: Option<bool>,
    /// How often that has changed.
    changes: u32,
    /// An analog input, as a share of the reference voltage.
    fraction: Option<f64>,
}

/// The pins of a board, whatever its model is.
#[derive(Debug)]
pub struct Service {
    states: Vec<State>,
    reference_v: f64,
    /// The time between two publications of analog values.
    period: Duration,
    is_ready: bool,
    was_well: bool,
    is_listened: bool,
    has_changed: bool,
    published: Instant,
    said: Vec<String>,
    outage: Outage,
    notes: VecDeque<Note>,
    /// Event counters.
    pub counters: Counters,
}

impl Service {
    /// The board is not connected yet.
    #[must_use]
    pub fn new(pins: Pins, reference_v: f64, period: Duration, now: Instant) -> Self {
        let state = |pin| State {
            pin,
            spot: Spot::default(),
            told: None,
            commanders: Vec::new(),
            level: None,
            changes: 0,
            fraction: None,
        };
        Self {
            states: pins.into_vec().into_iter().map(state).collect(),
            reference_v,
            period,
            is_ready: false,
            was_well: false,
            is_listened: false,
            has_changed: false,
            published: now,
            said: Vec::new(),
            outage: Outage::default(),
            notes: VecDeque::new(),
            counters: Counters::default(),
        }
    }

    /// Whether orders reach the board.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.is_ready
    }

    /// The pins, with where they are.
    pub fn pins(&self) -> impl Iterator<Item = (&Pin, &Spot)> {
        self.states.iter().map(|state| (&state.pin, &state.spot))
    }

    /// The pins that work, each with its index and the number by which the board knows it.
    pub fn usable(&self) -> impl Iterator<Item = (usize, u8, &Pin)> {
        let states = self.states.iter().enumerate();
        states.filter_map(|(index, state)| {
            let number = state.spot.number?;
            let works = state.spot.problem.is_none();
            works.then_some((index, number, &state.pin))
        })
    }

    /// The board has said where the pins are, in the order of [`Service::pins`].
    pub fn locate(&mut self, spots: Vec<Spot>) {
        for (state, spot) in self.states.iter_mut().zip(spots) {
            state.spot = spot;
        }
        let problems = self.states.iter().filter_map(|it| it.spot.problem.clone());
        let problems: Vec<_> = problems.collect();
        for problem in problems {
            self.remark(problem);
        }
    }

    /// The order for a command.
    ///
    /// # Errors
    /// It cannot be carried out: the reason.
    pub fn read(&self, command: &Command) -> Result<Order, String> {
        let (text, mode) = match command {
            Command::Digital(it) => (&it.pin, Mode::Output),
            Command::Pwm(it) => (&it.pin, Mode::Pwm),
            Command::Servo(it) => (&it.pin, Mode::Servo),
            Command::Pulse(it) => (&it.pin, Mode::Servo),
        };
        let index = self.find(text)?;
        let State { pin, spot, .. } = &self.states[index];
        if pin.mode != mode {
            return Err(format!("{pin} is {}, not {mode}", pin.mode));
        }
        if let Some(problem) = &spot.problem {
            return Err(problem.clone());
        }
        let of_pin = |why: String| format!("{pin} {why}");
        let value = match command {
            Command::Digital(it) => Value::Level(it.high),
            Command::Pwm(it) if (0.0..=100.0).contains(&it.duty) => Value::Duty(it.duty),
            Command::Pwm(it) => return Err(format!("{pin} takes 0 to 100 %, not {}", it.duty)),
            Command::Servo(it) => Value::Pulse(pin.range.pulse_us(it.angle).map_err(of_pin)?),
            Command::Pulse(it) => Value::Pulse(pin.range.check_us(it.pulse).map_err(of_pin)?),
        };
        Ok(Order { pin: index, value })
    }

    /// The pin that a client names.
    fn find(&self, text: &str) -> Result<usize, String> {
        let place = text.parse::<Place>();
        let is_there = |state: &State| match place {
            Ok(place) if place == state.pin.place => true,
            Ok(Place::Number(number)) => state.spot.number == Some(number),
            Ok(Place::Analog(channel)) => state.spot.channel == Some(channel),
            Err(_) => false,
        };
        let is_named = |state: &State| state.pin.name.as_deref() == Some(text);
        let mut states = self.states.iter();
        if let Some(index) = states.position(|state| is_named(state) || is_there(state)) {
            return Ok(index);
        }
        let known = self.states.iter().map(|state| match &state.pin.name {
            Some(name) => name.clone(),
            None => state.pin.place.to_string(),
        });
        let known: Vec<_> = known.collect();
        Err(match known.is_empty() {
            true => "no pins are configured".to_owned(),
            false => format!("pin {text:?} is not configured, only {}", known.join(", ")),
        })
    }

    /// Takes note of orders that are about to be sent.
    pub fn take(&mut self, clients: &[ClientId], orders: &[Order]) {
        for order in orders {
            let state = &mut self.states[order.pin];
            state.told = Some(order.value);
            state.commanders = clients.to_vec();
        }
        self.has_changed |= !orders.is_empty();
        self.counters.sent += orders.len() as u64;
    }

    /// The orders that give everything that was set its safe value.
    #[must_use]
    pub fn stops(&self) -> Vec<Order> {
        self.stops_of(|state| state.told.is_some())
    }

    /// The orders that give what a client has set its safe value, because it is gone.
    pub fn client_gone(&mut self, client: ClientId) -> Vec<Order> {
        let stops = self.stops_of(|state| state.commanders.contains(&client));
        if !stops.is_empty() {
            self.say(Note::Stopped(client));
        }
        stops
    }

    /// The orders that give every pin that works its safe value.
    #[must_use]
    pub fn all_safe(&self) -> Vec<Order> {
        self.stops_of(|state| state.spot.problem.is_none() && state.spot.number.is_some())
    }

    fn stops_of(&self, concerns: impl Fn(&State) -> bool) -> Vec<Order> {
        let states = self.states.iter().enumerate();
        let concerned = states.filter(|(_, state)| concerns(state));
        let order = |(pin, state): (usize, &State)| {
            let value = state.pin.safe?;
            Some(Order { pin, value })
        };
        concerned.filter_map(order).collect()
    }

    /// The board has all settings, and its outputs have the values of the start.
    pub fn is_well(&mut self, now: Instant, what: impl FnOnce() -> String) {
        for state in &mut self.states {
            if state.spot.problem.is_none() {
                state.told = initial(&state.pin);
            }
        }
        self.is_ready = true;
        self.has_changed = true;
        let note = match self.outage.over(now) {
            Some(after) => Note::Back(after),
            None => Note::Ready(what()),
        };
        if !std::mem::replace(&mut self.was_well, true) {
            self.say(note);
        }
    }

    /// The board is gone or restarts: nothing is known of its pins.
    pub fn forget(&mut self) {
        self.is_ready = false;
        for state in &mut self.states {
            state.told = None;
            state.commanders.clear();
            state.level = None;
            state.fraction = None;
        }
    }

    /// The level of a digital input.
    pub fn set_level(&mut self, pin: usize, high: bool) {
        let state = &mut self.states[pin];
        let before = state.level.replace(high);
        if before.is_some_and(|before| before != high) {
            state.changes = state.changes.wrapping_add(1);
            self.has_changed = true;
        }
    }

    /// The value of an analog input, as a share of the reference voltage.
    pub fn set_fraction(&mut self, pin: usize, fraction: f64) {
        self.states[pin].fraction = Some(fraction);
    }

    /// Whether clients are subscribed to the values.
    pub fn set_listened(&mut self, is_listened: bool) {
        self.is_listened = is_listened;
    }

    /// A client has subscribed: it gets the values at once.
    pub fn publish_soon(&mut self) {
        self.has_changed = true;
    }

    /// When the values are to be published.
    #[must_use]
    pub fn publish_at(&self) -> Option<Instant> {
        let has_analog = || self.states.iter().any(|it| it.pin.mode == Mode::Analog);
        let wait = match self.has_changed {
            true => GAP,
            false if has_analog() => self.period,
            false => QUIET,
        };
        (self.is_ready && self.is_listened).then(|| self.published + wait)
    }

    /// The values, if they are to be published now.
    pub fn poll_publication(&mut self, now: Instant) -> Option<message::Pins> {
        self.publish_at().filter(|due| now >= *due)?;
        self.published = now;
        self.has_changed = false;
        Some(self.message())
    }

    /// All pins with their values.
    #[must_use]
    pub fn message(&self) -> message::Pins {
        let pins = self.states.iter().map(|state| self.row(state));
        message::Pins {
            pins: pins.collect(),
        }
    }

    fn row(&self, state: &State) -> message::Pin {
        let State { pin, spot, .. } = state;
        let (mut high, mut duty, mut pulse) = (state.level, None, None);
        match state.told {
            Some(Value::Level(level)) => high = Some(level),
            Some(Value::Duty(percent)) => duty = Some(percent),
            Some(Value::Pulse(us)) => pulse = Some(us),
            Some(Value::Released) | None => {}
        }
        message::Pin {
            number: spot.number.map(u32::from),
            name: pin.name.clone(),
            mode: Some(told_mode(pin.mode).into()),
            high,
            changes: pin.mode.is_input().then_some(state.changes),
            voltage: state.fraction.map(|fraction| fraction * self.reference_v),
            fraction: state.fraction,
            duty,
            angle: pulse.map(|us| pin.range.angle_deg(us)),
            pulse: pulse.map(u32::from),
            problem: spot.problem.clone(),
        }
    }

    /// Rejects a request. Each reason is logged once.
    pub fn refuse(&mut self, why: String) {
        self.counters.refused += 1;
        if self.is_new(&why) {
            self.say(Note::Refused(why));
        }
    }

    /// Logs something once.
    pub fn remark(&mut self, text: String) {
        if self.is_new(&text) {
            self.say(Note::Trouble(text));
        }
    }

    fn is_new(&mut self, text: &str) -> bool {
        let is_new = self.said.len() < MAX_SAID && !self.said.iter().any(|said| said == text);
        if is_new {
            self.said.push(text.to_owned());
        }
        is_new
    }

    /// The board does not work.
    pub fn complain(&mut self, now: Instant, trouble: String) {
        self.was_well = false;
        if self.outage.complain(now, &trouble) {
            self.say(Note::Trouble(trouble));
        }
    }

    /// The connection is given up for now; returns when to retry.
    pub fn try_again_at(&mut self, now: Instant) -> Instant {
        self.outage.try_again_at(now)
    }

    /// The problem of the board, or of the first pin that has one.
    #[must_use]
    pub fn trouble(&self) -> Option<&str> {
        let mut problems = self
            .states
            .iter()
            .filter_map(|it| it.spot.problem.as_deref());
        self.outage.trouble().or_else(|| problems.next())
    }

    /// Writes a log message.
    pub fn say(&mut self, note: Note) {
        self.notes.push_back(note);
    }

    /// The next log message.
    pub fn poll_note(&mut self) -> Option<Note> {
        self.notes.pop_front()
    }
}

/// What an output has when the board was set up: its safe value, or nothing. A servo gets its first pulse
/// by a command.
#[must_use]
pub fn initial(pin: &Pin) -> Option<Value> {
    match pin.mode {
        Mode::Output => Some(pin.safe.unwrap_or(Value::Level(false))),
        Mode::Pwm => Some(pin.safe.unwrap_or(Value::Duty(0.0))),
        Mode::Input | Mode::InputPullUp | Mode::Analog | Mode::Servo => None,
    }
}

/// As clients are told.
#[must_use]
pub fn told_mode(mode: Mode) -> message::pin::Mode {
    match mode {
        Mode::Input => message::pin::Mode::Input,
        Mode::InputPullUp => message::pin::Mode::InputPullUp,
        Mode::Output => message::pin::Mode::Output,
        Mode::Analog => message::pin::Mode::Analog,
        Mode::Pwm => message::pin::Mode::Pwm,
        Mode::Servo => message::pin::Mode::Servo,
    }
}

#[cfg(test)]
mod tests {
    use amber_proto::board::{DigitalCommand, PulseCommand, PwmCommand, ServoCommand};

    use super::*;
    use crate::board::PinOptions;

    const MS: Duration = Duration::from_millis(1);
    const FIRST: ClientId = ClientId(7);
    const SECOND: ClientId = ClientId(8);

    const PINS: [&str; 6] = [
        "led=13:output",
        "motor=5:pwm",
        "pan=9:servo",
        "button=2:input-pull-up",
        "light=A0:analog",
        "relay=7:output:high",
    ];

    /// A board on which the pins are where they say; A0 is pin 14.
    fn service(now: Instant) -> Service {
        let options = PINS.map(|text| text.parse::<PinOptions>().unwrap());
        let pins = Pins::new(&options).unwrap();
        let mut service = Service::new(pins, 5.0, 100 * MS, now);
        let spots = service.pins().map(|(pin, _)| match pin.place {
            Place::Number(number) => Spot {
                number: Some(number),
                ..Spot::default()
            },
            Place::Analog(channel) => Spot {
                number: Some(14 + channel),
                channel: Some(channel),
                problem: None,
            },
        });
        let spots = spots.collect();
        service.locate(spots);
        service.is_well(now, || "an Uno".to_owned());
        service
    }

    fn digital(pin: &str, high: bool) -> Command {
        let pin = pin.to_owned();
        Command::Digital(DigitalCommand { pin, high })
    }

    fn pwm(pin: &str, duty: f64) -> Command {
        let pin = pin.to_owned();
        Command::Pwm(PwmCommand { pin, duty })
    }

    fn servo(pin: &str, angle: f64) -> Command {
        let pin = pin.to_owned();
        Command::Servo(ServoCommand { pin, angle })
    }

    fn pulse(pin: &str, pulse: u32) -> Command {
        let pin = pin.to_owned();
        Command::Pulse(PulseCommand { pin, pulse })
    }

    fn order(pin: usize, value: Value) -> Order {
        Order { pin, value }
    }

    #[test]
    fn a_pin_has_a_name_a_number_and_a_label() {
        let service = service(Instant::now());
        for text in ["led", "13"] {
            let read = service.read(&digital(text, true));
            assert_eq!(read, Ok(order(0, Value::Level(true))), "{text}");
        }
        for text in ["light", "A0", "a0", "14"] {
            let error = service.read(&digital(text, true)).unwrap_err();
            let expected = "pin A0 (light) is an analog input, not a digital output";
            assert_eq!(error, expected, "{text}");
        }
        for text in ["LED", "12", "A1", ""] {
            let error = service.read(&digital(text, true)).unwrap_err();
            let expected = format!(
                "pin {text:?} is not configured, only led, motor, pan, button, light, relay"
            );
            assert_eq!(error, expected);
        }
    }

    #[test]
    fn a_command_that_cannot_be_carried_out_is_refused_with_the_reason() {
        let service = service(Instant::now());
        let duty = service.read(&pwm("motor", 12.5));
        assert_eq!(duty, Ok(order(1, Value::Duty(12.5))));
        let turn = service.read(&servo("pan", 90.0));
        assert_eq!(turn, Ok(order(2, Value::Pulse(1472))));
        let turn = service.read(&pulse("pan", 1500));
        assert_eq!(turn, Ok(order(2, Value::Pulse(1500))));
        for (command, error) in [
            (
                pwm("motor", 100.1),
                "pin 5 (motor) takes 0 to 100 %, not 100.1",
            ),
            (
                pwm("motor", f64::NAN),
                "pin 5 (motor) takes 0 to 100 %, not NaN",
            ),
            (
                pwm("led", 1.0),
                "pin 13 (led) is a digital output, not a PWM output",
            ),
            (
                digital("button", true),
                "pin 2 (button) is a digital input with pull-up, not a digital output",
            ),
            (
                servo("pan", 200.0),
                "pin 9 (pan) turns from 0 to 180 degrees, not to 200",
            ),
            (
                pulse("pan", 300),
                "pin 9 (pan) takes pulses of 544 to 2400 us, not of 300",
            ),
        ] {
            assert_eq!(service.read(&command), Err(error.to_owned()));
        }
    }

    #[test]
    fn what_a_client_has_set_is_safe_when_it_is_gone() {
        let mut service = service(Instant::now());
        let orders = [
            order(0, Value::Level(true)),
            order(1, Value::Duty(50.0)),
            order(5, Value::Level(false)),
        ];
        service.take(&[FIRST], &orders);
        // The newest command counts.
        service.take(&[SECOND], &[order(1, Value::Duty(60.0))]);
        let stops = service.client_gone(FIRST);
        assert_eq!(stops, [order(5, Value::Level(true))], "a light may stay on");
        service.take(&[], &stops);
        assert_eq!(service.client_gone(FIRST), []);
        let both = [order(1, Value::Duty(0.0)), order(5, Value::Level(true))];
        assert_eq!(service.stops(), both);
        assert_eq!(service.all_safe(), both);
        let notes: Vec<_> = std::iter::from_fn(|| service.poll_note()).collect();
        assert_eq!(notes, [Note::Ready("an Uno".into()), Note::Stopped(FIRST)]);
    }

    #[test]
    fn a_state_has_only_what_is_known() {
        let mut service = service(Instant::now());
        service.take(&[FIRST], &[order(2, Value::Pulse(1472))]);
        service.set_level(3, true);
        service.set_fraction(4, 0.5);
        let found = service.message().pins;
        let at = |index: usize| found[index].clone();
        assert_eq!((at(0).high, at(0).number), (Some(false), Some(13)));
        assert_eq!((at(1).duty, at(1).high), (Some(0.0), None));
        assert_eq!(
            (at(2).pulse, at(2).mode()),
            (Some(1472), message::pin::Mode::Servo)
        );
        assert!((at(2).angle() - 90.0).abs() < 1e-9);
        assert_eq!((at(3).high, at(3).changes), (Some(true), Some(0)));
        assert_eq!((at(4).voltage, at(4).fraction), (Some(2.5), Some(0.5)));
        assert_eq!((at(5).high, at(5).name()), (Some(true), "relay"));
        service.forget();
        for pin in service.message().pins {
            let values = (pin.high, pin.voltage, pin.duty, pin.pulse);
            assert_eq!(values, (None, None, None, None), "{}", pin.name());
        }
        assert!(!service.is_ready());
    }

    #[test]
    fn every_change_is_counted_and_published_at_once() {
        let start = Instant::now();
        let mut service = service(start);
        assert_eq!(service.publish_at(), None, "nobody listens");
        service.set_listened(true);
        let first = service.poll_publication(start + GAP);
        assert!(first.is_some() && service.poll_publication(start + GAP).is_none());
        // The first level is no change.
        service.set_level(3, true);
        assert_eq!(service.publish_at(), Some(start + GAP + 100 * MS));
        for high in [false, false, true] {
            service.set_level(3, high);
        }
        assert_eq!(service.publish_at(), Some(start + 2 * GAP));
        let pins = service.poll_publication(start + 2 * GAP).unwrap().pins;
        assert_eq!((pins[3].high, pins[3].changes), (Some(true), Some(2)));
        assert_eq!(service.publish_at(), Some(start + 2 * GAP + 100 * MS));
        service.set_level(3, true);
        assert_eq!(
            service.publish_at(),
            Some(start + 2 * GAP + 100 * MS),
            "no change"
        );
        service.complain(start, "unplugged".to_owned());
        service.forget();
        assert_eq!(service.publish_at(), None);
        assert_eq!(service.trouble(), Some("unplugged"));
    }

    #[test]
    fn a_pin_that_cannot_do_it_is_a_trouble_and_the_others_work() {
        let now = Instant::now();
        let mut service = service(now);
        let mut spots: Vec<_> = service.pins().map(|(_, spot)| spot.clone()).collect();
        spots[1].problem = Some("pin 5 (motor) cannot be a PWM output".into());
        service.forget();
        service.locate(spots.clone());
        service.locate(spots);
        service.is_well(now, || "an Uno".to_owned());
        let problem = "pin 5 (motor) cannot be a PWM output";
        assert_eq!(service.trouble(), Some(problem));
        assert_eq!(service.read(&pwm("motor", 1.0)), Err(problem.to_owned()));
        assert!(service.read(&digital("led", true)).is_ok());
        assert_eq!(service.usable().count(), PINS.len() - 1);
        assert_eq!(service.message().pins[1].problem(), problem);
        assert_eq!(service.message().pins[1].duty, None);
        assert_eq!(service.all_safe(), [order(5, Value::Level(true))]);
        let notes: Vec<_> = std::iter::from_fn(|| service.poll_note()).collect();
        let expected = [Note::Ready("an Uno".into()), Note::Trouble(problem.into())];
        assert_eq!(notes, expected, "each problem is logged once");
    }
}
