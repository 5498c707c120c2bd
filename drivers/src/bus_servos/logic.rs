//! Decides what is said on the bus, and what follows from the answers. PURE.
//!
//! ```text
//!           opened             shutdown
//!  Absent ----------> Working ----------> Stopping --> Ended
//!    ^                   |
//!    +--- port failed ---+
//! ```
//!
//! While it works, it measures in rounds: all servos that are known in one exchange, or one by one if
//! they cannot answer together, and then those that are not known are asked what they are. Orders are
//! sent between two exchanges, those for several servos together.
//!
//! Report each event to [`BusLogic`], then carry out what [`BusLogic::poll_output`] says until it says
//! nothing. Call [`BusLogic::handle_timeout`] at [`BusLogic::wake_at`].

use std::collections::{BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use amber_driver::ClientId;
use amber_proto::bus_servos::{MoveServos, ServoSpeeds, ServoState, ServoTorque};

use super::bus::Bus;
use super::servo::{Order, Servo};
use super::wire::{Request, Status};
use super::{Claim, Kind, Maker, Model, Rules, Write};
use crate::outage::Outage;
use crate::servos::Note;

mod rounds;

use self::rounds::together;

/// How many different rejections are logged.
const MAX_REFUSALS: usize = 32;

const LATE: &str = "the driver was frozen for a second, so its guard has stopped what moved";

/// An action for the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Open the connection, then call [`BusLogic::opened`] or [`BusLogic::failed`].
    Open,
    /// Close the connection.
    Close,
    /// Send this.
    Write(Vec<u8>),
    /// Nothing is left to do.
    End,
}

/// Event counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Rounds of measurements.
    pub rounds: u64,
    /// Answers that have not come.
    pub missed: u64,
    /// The same, where something damaged has come instead.
    pub damaged: u64,
    /// Rejected requests.
    pub refused: u64,
}

/// The logic of a driver.
#[derive(Debug)]
pub struct BusLogic<M: Maker> {
    rules: Rules,
    phase: Phase,
    is_open: bool,
    bus: Bus<M>,
    servos: Vec<Servo<M::Model>>,
    /// What is left of this round.
    round: VecDeque<Request>,
    is_in_round: bool,
    round_at: Instant,
    /// What makes servos what the configuration says.
    set_ups: VecDeque<(u8, Write)>,
    measured_at: Option<Instant>,
    turned_at: Instant,
    is_fresh: bool,
    trouble: Option<String>,
    was_ready: bool,
    outage: Outage,
    refusals: Vec<String>,
    /// What was said of servos once.
    advice: Vec<&'static str>,
    notes: VecDeque<Note>,
    /// Event counters.
    pub counters: Counters,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Absent { until: Instant },
    Opening,
    Working,
    Stopping,
    Ended,
}

impl<M: Maker> BusLogic<M> {
    /// Starts without a connection.
    #[must_use]
    pub fn new(rules: Rules, now: Instant) -> Self {
        let servos = rules.servos.iter();
        Self {
            phase: Phase::Absent { until: now },
            is_open: false,
            bus: Bus::new(now, rules.baud, rules.reply_timeout),
            servos: servos
                .map(|(id, kind)| Servo::new(*id, *kind, now))
                .collect(),
            round: VecDeque::new(),
            is_in_round: false,
            round_at: now,
            set_ups: VecDeque::new(),
            measured_at: None,
            turned_at: now,
            is_fresh: false,
            trouble: None,
            was_ready: false,
            outage: Outage::default(),
            refusals: Vec::new(),
            advice: Vec::new(),
            notes: VecDeque::new(),
            counters: Counters::default(),
            rules,
        }
    }

    /// The connection is open.
    pub fn opened(&mut self, now: Instant) {
        self.is_open = true;
        if self.phase == Phase::Opening {
            self.phase = Phase::Working;
            self.bus.reset(now);
            self.round_at = now;
        }
    }

    /// The connection is closed or could not be opened.
    pub fn failed(&mut self, now: Instant, problem: &str) {
        match self.phase {
            Phase::Absent { .. } | Phase::Ended => {}
            Phase::Stopping => self.phase = Phase::Ended,
            Phase::Opening | Phase::Working => {
                self.forget(now);
                self.set_trouble(now, Some(problem.to_owned()));
                let until = self.outage.try_again_at(now);
                self.phase = Phase::Absent { until };
            }
        }
    }

    /// Bytes have arrived.
    pub fn handle_bytes(&mut self, now: Instant, bytes: &[u8]) {
        self.bus.push(bytes);
        while let Some((at, status)) = self.bus.next() {
            self.handle_status(now, at, &status);
        }
    }

    /// A timer may have expired.
    pub fn handle_timeout(&mut self, now: Instant) {
        if let Some(missing) = self.bus.expire(now) {
            let count = missing.ids.len() as u64;
            self.counters.missed += count;
            self.counters.damaged += count * u64::from(missing.is_damaged);
            for servo in &mut self.servos {
                if missing.ids.contains(&servo.id) {
                    servo.miss(now, missing.is_damaged);
                    servo.is_suspect |= missing.ids.first() == Some(&servo.id);
                }
            }
        }
        self.expire(now);
        if self.idle_at().is_some_and(|due| now >= due) {
            self.stop_those(now, |servo| servo.kind == Kind::Wheel && servo.moves());
            self.notes.push_back(Note::Event(
                "the wheels stop: no command has come for a while",
            ));
        }
    }

    /// The driver ends: everything stops first.
    pub fn shut_down(&mut self, now: Instant) {
        if self.phase == Phase::Working {
            self.stop_those(now, Servo::moves);
            let farewell = |servo: &Servo<M::Model>| {
                let write = servo.model.as_ref()?.farewell()?;
                Some((servo.id, write))
            };
            self.set_ups = self.servos.iter().filter_map(farewell).collect();
            self.phase = Phase::Stopping;
        } else {
            self.phase = Phase::Ended;
        }
    }

    /// The next action.
    pub fn poll_output(&mut self, now: Instant) -> Option<Output> {
        match self.phase {
            Phase::Absent { .. } if std::mem::take(&mut self.is_open) => {
                return Some(Output::Close);
            }
            Phase::Absent { until } if now >= until => {
                self.phase = Phase::Opening;
                return Some(Output::Open);
            }
            Phase::Absent { .. } | Phase::Opening => return None,
            Phase::Ended => return Some(Output::End),
            Phase::Working | Phase::Stopping => {}
        }
        if !self.bus.is_free(now) {
            return None;
        }
        let orders = self.take_orders();
        if !orders.is_empty() {
            let bytes = orders.iter().flat_map(|it| self.bus.write(now, it));
            return Some(Output::Write(bytes.collect()));
        }
        if self.phase == Phase::Stopping {
            self.phase = Phase::Ended;
            return Some(Output::End);
        }
        if self.round.is_empty() && std::mem::take(&mut self.is_in_round) {
            self.end_round(now);
        }
        if self.round.is_empty() && now >= self.round_at {
            self.begin_round(now);
        }
        let request = self.round.pop_front()?;
        Some(Output::Write(self.bus.ask(now, request)))
    }

    /// When to call [`BusLogic::handle_timeout`] if nothing happens earlier.
    #[must_use]
    pub fn wake_at(&self, now: Instant) -> Option<Instant> {
        let own = match self.phase {
            Phase::Absent { until } => Some(until),
            Phase::Opening | Phase::Ended => return None,
            Phase::Working => self.bus.wake_at(now).or(Some(self.round_at)),
            Phase::Stopping => self.bus.wake_at(now),
        };
        let validities = self.servos.iter().filter_map(Servo::until);
        own.into_iter()
            .chain(self.idle_at())
            .chain(validities)
            .min()
    }

    /// Turns servos to angles.
    ///
    /// # Errors
    /// A servo cannot do it, so none does: the reason.
    pub fn move_to(&mut self, claim: &Claim, command: &MoveServos) -> Result<(), String> {
        let most = f64::from(self.rules.max_speed_deg_s);
        let speed_deg_s = command.speed.unwrap_or(most);
        if !(1.0..=most).contains(&speed_deg_s) {
            return Err(format!(
                "joints turn with 1 to {most} deg/s, not {speed_deg_s}"
            ));
        }
        let targets = &command.targets;
        let pairs = self.pairs(&targets.ids, &targets.angles)?;
        let orders = pairs.into_iter().map(|(index, angle_deg)| {
            let servo = &self.servos[index];
            if servo.kind != Kind::Joint {
                return Err(format!(
                    "servo {} is a wheel, and turns to no angle",
                    servo.id
                ));
            }
            let (model, _) = servo.check()?;
            let step = model.step(angle_deg);
            let step = step.map_err(|why| format!("servo {} {why}", servo.id))?;
            Ok((index, step, model.units(speed_deg_s)))
        });
        let orders: Vec<_> = orders.collect::<Result<_, String>>()?;
        for (index, step, units) in orders {
            let order = Order {
                goal: Some((step, units)),
                torque: Some(true),
                speed: None,
            };
            self.servos[index].give(order, Some(step), claim.clone());
        }
        Ok(())
    }

    /// Turns wheels.
    ///
    /// # Errors
    /// A servo cannot do it, so none does: the reason.
    pub fn turn(
        &mut self,
        now: Instant,
        claim: &Claim,
        command: &ServoSpeeds,
    ) -> Result<(), String> {
        let most = f64::from(self.rules.max_wheel_speed_deg_s);
        let pairs = self.pairs(&command.ids, &command.speeds)?;
        let orders = pairs.into_iter().map(|(index, speed_deg_s)| {
            let servo = &self.servos[index];
            let id = servo.id;
            if servo.kind != Kind::Wheel {
                return Err(format!("servo {id} is a joint: --wheels makes it a wheel"));
            }
            if !(-most..=most).contains(&speed_deg_s) {
                return Err(format!(
                    "servo {id} turns with at most {most} deg/s, not {speed_deg_s}"
                ));
            }
            let (model, _) = servo.check()?;
            Ok((index, model.units(speed_deg_s)))
        });
        let orders: Vec<_> = orders.collect::<Result<_, String>>()?;
        for (index, units) in orders {
            let order = Order {
                speed: Some(units),
                torque: Some(true),
                goal: None,
            };
            self.servos[index].give(order, Some(units), claim.clone());
        }
        self.turned_at = now;
        Ok(())
    }

    /// Switches motors on, without a jump, or off.
    ///
    /// # Errors
    /// A servo cannot do it, so none does: the reason.
    pub fn set_torque(&mut self, now: Instant, command: &ServoTorque) -> Result<(), String> {
        let ids = match command.ids.as_slice() {
            [] => self.servos.iter().map(|servo| servo.id.into()).collect(),
            ids => ids.to_vec(),
        };
        let found = self.pairs(&ids, &ids)?;
        for (index, _) in &found {
            let servo = &self.servos[*index];
            let (model, state) = servo.check()?;
            let is_beyond = servo.kind == Kind::Joint && !model.may_hold(state.position);
            if command.on && !state.torque && is_beyond {
                return Err(format!(
                    "servo {} is at {:.1} degrees, beyond its limits: turn it back by hand",
                    servo.id, state.angle_deg
                ));
            }
        }
        for (index, _) in found {
            match command.on {
                true => self.hold(now, index, Some(true)),
                false => {
                    let order = Order {
                        torque: Some(false),
                        ..Order::default()
                    };
                    self.servos[index].give(order, None, Claim::default());
                }
            }
        }
        Ok(())
    }

    /// Stops everything that moves. Returns why the servos cannot be reached, if that is so.
    pub fn stop(&mut self, now: Instant) -> Option<String> {
        self.stop_those(now, Servo::moves);
        self.absence()
    }

    /// Stops what moves by commands that are no longer valid. Each servo has its own: an arm and the wheels
    /// under it may be on one bus.
    pub fn expire(&mut self, now: Instant) {
        self.stop_those(now, |servo| servo.until().is_some_and(|until| now >= until));
    }

    /// Stops what this client moves.
    pub fn client_gone(&mut self, now: Instant, client: ClientId) {
        let is_of = |servo: &Servo<_>| servo.moves() && servo.claim.clients.contains(&client);
        if self.stop_those(now, is_of) {
            self.notes.push_back(Note::Stopped(client));
        }
    }

    /// The guard has sent the last words, because this process was frozen.
    pub fn guard_acted(&mut self, now: Instant) {
        if self.stop_those(now, Servo::moves) {
            self.notes.push_back(Note::Event(LATE));
        }
    }

    /// What stops everything that moves, if this process cannot any more.
    #[must_use]
    pub fn last_words(&self) -> Option<Vec<u8>> {
        if !matches!(self.phase, Phase::Working | Phase::Stopping) {
            return None;
        }
        let moving = self.servos.iter().filter(|servo| servo.may_move());
        let writes = moving.filter_map(|servo| {
            let model = servo.model.as_ref()?;
            let found = servo.measured.as_ref()?;
            Some(match servo.kind {
                Kind::Wheel => (servo.id, model.speed(0)),
                Kind::Joint => {
                    let step = model.within(found.position);
                    (servo.id, model.goal(step, self.fastest(model)))
                }
            })
        });
        let requests = together(writes);
        let bytes: Vec<_> = requests.iter().flat_map(M::encode).collect();
        // Servos may be answering then, which destroys them. So they are repeated after the longest
        // answer.
        let pause = vec![0; self.servos.len() * M::answer_length(M::STATE.1.into())];
        (!bytes.is_empty()).then(|| [&bytes, &pause, &bytes].map(Vec::as_slice).concat())
    }

    /// Why the servos cannot be reached.
    #[must_use]
    pub fn absence(&self) -> Option<String> {
        let is_there = |servo: &Servo<_>| servo.measured.is_some();
        if self.phase == Phase::Working && self.servos.iter().any(is_there) {
            return None;
        }
        let trouble = self.trouble.as_deref();
        Some(
            trouble
                .unwrap_or("the servos were not measured yet")
                .to_owned(),
        )
    }

    /// The servos, and when they were measured.
    #[must_use]
    pub fn states(&self) -> (Vec<ServoState>, Option<Instant>) {
        let states = self.servos.iter().map(Servo::state).collect();
        (states, self.measured_at)
    }

    /// Whether there are measurements that were not published.
    pub fn take_fresh(&mut self) -> bool {
        std::mem::take(&mut self.is_fresh) && self.absence().is_none()
    }

    /// Rejects a request. Each reason is logged once.
    pub fn refuse(&mut self, why: String) {
        self.counters.refused += 1;
        if self.refusals.len() < MAX_REFUSALS && !self.refusals.contains(&why) {
            self.refusals.push(why.clone());
            self.notes.push_back(Note::Refused(why));
        }
    }

    /// The problem of the servos, if any.
    #[must_use]
    pub fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }

    /// The next log message.
    pub fn poll_note(&mut self) -> Option<Note> {
        self.notes.pop_front()
    }

    fn handle_status(&mut self, now: Instant, at: u16, status: &Status) {
        let mut servos = self.servos.iter_mut();
        let Some(index) = servos.position(|servo| servo.id == status.id) else {
            return;
        };
        let servo = &mut self.servos[index];
        if at == M::IDENTITY.0 {
            let model = M::Model::decode(&status.data);
            if let Some(model) = model.filter(|_| self.phase == Phase::Working) {
                if let Some(advice) = model.advice().filter(|it| !self.advice.contains(it)) {
                    self.advice.push(advice);
                    self.notes.push_back(Note::Event(advice));
                }
                let silence = self.rules.silence();
                let writes = servo.identify(now, model, silence).into_iter();
                let id = servo.id;
                self.set_ups.extend(writes.map(|write| (id, write)));
            }
            return;
        }
        let model = servo.model.as_ref();
        let Some(found) = model.and_then(|it| it.measured(status.error, &status.data)) else {
            return;
        };
        self.measured_at = Some(now);
        // Such as a failure of its supply that was so short that it was not missed.
        if let Some(lapse) = found.lapse {
            self.notes.push_back(Note::Event(lapse));
            return servo.forget(now);
        }
        let turns = servo.kind == Kind::Wheel && found.torque && found.goal_speed != 0;
        if servo.handle(found) {
            let what = "a servo has switched its motor off by itself";
            self.notes.push_back(Note::Event(what));
        }
        // Nobody has told it so, at least not by this driver: its guard was killed, too.
        if turns && !servo.moves() && !servo.has_order() {
            self.hold(now, index, None);
        }
    }

    /// The servos that are named, each with its value.
    fn pairs<T: Copy>(&self, ids: &[u32], values: &[T]) -> Result<Vec<(usize, T)>, String> {
        if ids.len() != values.len() {
            return Err(format!("{} ids have {} values", ids.len(), values.len()));
        }
        let mut named = BTreeSet::new();
        let pair = |(id, value): (&u32, &T)| {
            if !named.insert(*id) {
                return Err(format!("servo {id} is named twice"));
            }
            let mut servos = self.servos.iter();
            match servos.position(|servo| u32::from(servo.id) == *id) {
                Some(index) => Ok((index, *value)),
                None => Err(format!("servo {id} is not configured")),
            }
        };
        ids.iter().zip(values).map(pair).collect()
    }

    /// Stops some servos. Returns whether there are any.
    fn stop_those(&mut self, now: Instant, which: impl Fn(&Servo<M::Model>) -> bool) -> bool {
        let those: Vec<_> = (0..self.servos.len())
            .filter(|index| which(&self.servos[*index]))
            .collect();
        for index in &those {
            self.hold(now, *index, None);
        }
        !those.is_empty()
    }

    /// Lets a servo hold the angle that it has, or stand still.
    fn hold(&mut self, now: Instant, index: usize, torque: Option<bool>) {
        let age = self
            .measured_at
            .map_or(Duration::MAX, |it| now.saturating_duration_since(it));
        let servo = &self.servos[index];
        let (Some(model), Some(step)) = (&servo.model, servo.place(age)) else {
            return;
        };
        let (goal, speed, target) = match servo.kind {
            Kind::Joint => (Some((step, self.fastest(model))), None, step),
            Kind::Wheel => (None, Some(0), 0),
        };
        let order = Order {
            goal,
            speed,
            torque,
        };
        self.servos[index].give(order, Some(target), Claim::default());
    }

    fn fastest(&self, model: &M::Model) -> i32 {
        model.units(self.rules.max_speed_deg_s.into())
    }

    fn set_trouble(&mut self, now: Instant, trouble: Option<String>) {
        match &trouble {
            Some(text) if self.outage.complain(now, text) => {
                self.notes.push_back(Note::Trouble(text.clone()));
            }
            None if self.trouble.is_some() || !self.was_ready => {
                let count = self.servos.len();
                self.was_ready = true;
                self.notes.push_back(match self.outage.over(now) {
                    Some(after) => Note::Back(after),
                    None if count == 1 => Note::Ready("1 servo".to_owned()),
                    None => Note::Ready(format!("{count} servos")),
                });
            }
            Some(_) | None => {}
        }
        self.trouble = trouble;
    }

    fn forget(&mut self, now: Instant) {
        self.bus.reset(now);
        self.round.clear();
        self.set_ups.clear();
        self.is_in_round = false;
        for servo in &mut self.servos {
            servo.forget(now);
        }
    }

    /// When the wheels stop because no command comes.
    fn idle_at(&self) -> Option<Instant> {
        let turns = |servo: &Servo<_>| servo.kind == Kind::Wheel && servo.moves();
        let idle_stop = self.rules.idle_stop?;
        (self.servos.iter().any(turns)).then(|| self.turned_at + idle_stop)
    }
}

#[cfg(test)]
mod tests;
