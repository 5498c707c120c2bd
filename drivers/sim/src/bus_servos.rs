//! Simulated servos on one bus, of any maker. PURE.
//!
//! ```text
//!  bytes --> Bus: time on the line --> Protocol: requests --> Servo: registers --> Motor
//!        <--                       <--            answers <--
//! ```
//!
//! The line is half-duplex with one byte in ten bits: an answer comes when the request and the answers
//! before it are over. Servos with the same id answer at once, and destroy each other's bytes.
//!
//! Servos have a supply of their own. Those of an arm do not move the robot in its world; three of them
//! may be the wheels on which it stands (`omni`).

use std::collections::VecDeque;
use std::fmt::Debug;
use std::time::Duration;

pub(crate) use self::motor::Drive;
pub use self::motor::Motor;
use self::omni::OmniWheels;
use crate::ceiling::Ceiling;
use crate::control::{BusServo, SimulationState};
use crate::twin::{Surroundings, Twin};
use crate::wheels::Reading;
use crate::world::{Drives, World};

#[cfg(test)]
pub(crate) mod bench;
mod motor;
mod omni;

/// Tells all servos at once.
pub(crate) const EVERYBODY: u8 = 0xFE;

/// The most that waits for the rest of a packet.
const ROOM: usize = 1024;

/// The time of a byte at 1 000 000 bits per second.
const BYTE_TIME: Duration = Duration::from_micros(10);

/// How long a servo takes to answer.
const DELAY: Duration = Duration::from_micros(50);

/// What the servos of a maker understand.
pub trait Protocol: Debug + Send + 'static {
    /// Its servos.
    type Servo: Servo;

    /// Takes the next intact request out of the input, and what is before it.
    fn next_request(input: &mut Vec<u8>) -> Option<Vec<u8>>;

    /// Carries out a request.
    fn carry_out(bus: &mut Bus<Self>, request: &[u8])
    where
        Self: Sized;

    /// The packet in which a servo answers with values.
    fn answer(servo: &Self::Servo, values: &[u8]) -> Vec<u8>;
}

/// A servo of any maker.
pub trait Servo: Debug + Send + 'static {
    /// Its id.
    fn id(&self) -> u8;

    /// Whether its cable is in.
    fn hears(&self) -> bool;

    /// Time passes.
    fn advance(&mut self, passed: Duration);

    /// Whether time changes it.
    fn is_busy(&self) -> bool;

    /// From now on, a person turns it to this place, in steps as it counts them.
    fn turn_by_hand(&mut self, steps: f64);

    /// The supply goes off and on: what is not in its memory is lost.
    fn power_cycle(&mut self);

    /// What `amber sim state` shows of it.
    fn show(&self) -> BusServo;
}

/// The servos on a bus.
#[derive(Debug)]
pub struct Bus<P: Protocol> {
    servos: Vec<P::Servo>,
    input: Vec<u8>,
    outputs: VecDeque<(Duration, Vec<u8>)>,
    /// When the line is free again.
    free_at: Duration,
    advanced: Duration,
    /// Whether the adapter repeats what it sends.
    pub echoes: bool,
    /// Those on which the robot stands.
    wheels: Option<OmniWheels>,
}

impl<P: Protocol> Bus<P> {
    /// These servos, just switched on.
    #[must_use]
    pub fn of(servos: impl IntoIterator<Item = P::Servo>) -> Self {
        Self {
            servos: servos.into_iter().collect(),
            input: Vec::new(),
            outputs: VecDeque::new(),
            free_at: Duration::ZERO,
            advanced: Duration::ZERO,
            echoes: false,
            wheels: None,
        }
    }

    /// The same; the robot stands on the wheels of LeKiwi, which the servos 7, 8 and 9 turn.
    #[must_use]
    pub fn on_wheels(self) -> Self {
        Self {
            wheels: Some(OmniWheels::LEKIWI),
            ..self
        }
    }

    /// The servos, in the order in which they were given.
    #[must_use]
    pub fn servos(&self) -> &[P::Servo] {
        &self.servos
    }

    /// The same, to do something to them.
    pub fn servos_mut(&mut self) -> &mut [P::Servo] {
        &mut self.servos
    }

    /// A servo, to do something to it.
    ///
    /// # Panics
    /// There is no servo with this index.
    pub fn servo(&mut self, index: usize) -> &mut P::Servo {
        &mut self.servos[index]
    }

    /// Brings the servos to a time.
    pub fn advance(&mut self, now: Duration) {
        let passed = now.saturating_sub(self.advanced);
        self.advanced = now.max(self.advanced);
        for servo in &mut self.servos {
            servo.advance(passed);
        }
    }

    /// From now on, a person turns a servo to this place, in steps as it counts them. A motor that is on
    /// is too strong for that.
    ///
    /// # Errors
    /// There is no such servo.
    pub fn turn_by_hand(&mut self, now: Duration, id: u8, steps: f64) -> Result<(), String> {
        self.advance(now);
        let servo = self.servos.iter_mut().find(|servo| servo.id() == id);
        let servo = servo.ok_or_else(|| format!("there is no servo {id}"))?;
        servo.turn_by_hand(steps);
        Ok(())
    }

    /// Bytes from the host.
    pub fn handle_bytes(&mut self, now: Duration, bytes: &[u8]) {
        self.advance(now);
        if self.echoes {
            self.outputs.push_back((now, bytes.to_vec()));
        }
        self.free_at = self.free_at.max(now) + BYTE_TIME * bytes.len().min(ROOM) as u32;
        if self.input.len() + bytes.len() > ROOM {
            self.input.clear();
        }
        self.input
            .extend(&bytes[bytes.len().saturating_sub(ROOM)..]);
        while let Some(request) = P::next_request(&mut self.input) {
            P::carry_out(self, &request);
        }
    }

    /// The next bytes for the host, if it is time for them.
    pub fn poll_output(&mut self, now: Duration) -> Option<Vec<u8>> {
        let (due, _) = self.outputs.front()?;
        if *due > now {
            return None;
        }
        self.outputs.pop_front().map(|(_, bytes)| bytes)
    }

    /// When something changes without further input.
    #[must_use]
    pub fn next_timeout(&self) -> Option<Duration> {
        let answer = self.outputs.front().map(|(due, _)| *due);
        let is_busy = self.servos.iter().any(Servo::is_busy);
        let motion = is_busy.then(|| self.advanced + Duration::from_millis(5));
        answer.into_iter().chain(motion).min()
    }

    /// Switches the supply of all servos off and on.
    pub fn power_cycle(&mut self) {
        for servo in &mut self.servos {
            servo.power_cycle();
        }
        self.outputs.clear();
    }

    /// The different ids of some servos, in their order.
    pub(crate) fn ids(&self, which: impl Fn(&P::Servo) -> bool) -> Vec<u8> {
        let some = self.servos.iter().filter(|servo| which(servo));
        let mut ids: Vec<_> = some.map(Servo::id).collect();
        ids.sort_unstable();
        ids.dedup();
        ids
    }

    /// Lets all servos with this id do something, and answer with the values that it gives.
    pub(crate) fn answer(&mut self, id: u8, act: impl Fn(&mut P::Servo) -> Option<Vec<u8>>) {
        let mut bytes: Option<Vec<u8>> = None;
        for servo in &mut self.servos {
            let is_meant = id == servo.id() || id == EVERYBODY;
            if !is_meant || !servo.hears() {
                continue;
            }
            let values = act(servo);
            // Nobody answers what was told everybody.
            let Some(values) = values.filter(|_| id != EVERYBODY) else {
                continue;
            };
            let answer = P::answer(servo, &values);
            bytes = Some(match bytes {
                // A line that one of them pulls down is low.
                Some(other) => other
                    .iter()
                    .zip(&answer)
                    .map(|(one, two)| one & two)
                    .collect(),
                None => answer,
            });
        }
        if let Some(bytes) = bytes {
            self.send(bytes);
        }
    }

    /// Bytes for the host, when the line is free.
    pub(crate) fn send(&mut self, bytes: Vec<u8>) {
        self.free_at += DELAY + BYTE_TIME * bytes.len() as u32;
        self.outputs.push_back((self.free_at, bytes));
    }
}

impl<P: Protocol> Twin for Bus<P> {
    fn advance(&mut self, now: Duration, _around: &mut Surroundings<'_>) {
        Bus::advance(self, now);
    }

    fn handle_bytes(&mut self, now: Duration, bytes: &[u8]) {
        Bus::handle_bytes(self, now, bytes);
    }

    fn poll_output(&mut self, now: Duration) -> Option<Vec<u8>> {
        Bus::poll_output(self, now)
    }

    fn next_timeout(&self) -> Option<Duration> {
        Bus::next_timeout(self)
    }

    fn drives(&self) -> Option<Drives> {
        let wheels = self.wheels.as_ref()?;
        let turns = self.servos.iter().map(P::Servo::show);
        Some(Drives::Body(wheels.body(turns)))
    }

    /// The servos keep step with the world.
    fn handle_readings(&mut self, now: Duration, _readings: [Reading; 4]) {
        Bus::advance(self, now);
    }

    fn show(&self, _world: &World, _ceiling: &Ceiling, state: &mut SimulationState) {
        state
            .bus_servos
            .extend(self.servos.iter().map(P::Servo::show));
    }
}
