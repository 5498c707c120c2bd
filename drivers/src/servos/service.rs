//! What is the same for all servo controllers: the last orders, refusals and the outage. PURE.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Instant;

use amber_driver::ClientId;

use super::{Note, Order};
use crate::outage::Outage;

/// How many different rejections are logged.
const MAX_REFUSALS: usize = 32;

/// Event counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Orders sent.
    pub sent: u64,
    /// Orders dropped because the controller was disconnected.
    pub dropped: u64,
    /// Rejected requests.
    pub refused: u64,
    /// Errors that the controller has reported or shown.
    pub errors: u64,
}

/// The last orders, the refusals and the outage of a servo controller, whatever its model is.
#[derive(Debug)]
pub struct Service {
    continuous: BTreeSet<u8>,
    speeds: BTreeMap<u8, u16>,
    angles: BTreeMap<u8, i32>,
    /// Who turns the continuous servos.
    commanders: BTreeMap<u8, Vec<ClientId>>,
    is_ready: bool,
    refusals: Vec<String>,
    outage: Outage,
    notes: VecDeque<Note>,
    /// Event counters.
    pub counters: Counters,
}

impl Service {
    /// The given servos turn on and on, as motors do.
    #[must_use]
    pub fn new(continuous: BTreeSet<u8>) -> Self {
        Self {
            continuous,
            speeds: BTreeMap::new(),
            angles: BTreeMap::new(),
            commanders: BTreeMap::new(),
            is_ready: false,
            refusals: Vec::new(),
            outage: Outage::default(),
            notes: VecDeque::new(),
            counters: Counters::default(),
        }
    }

    /// Takes note of orders that are about to be sent, or are dropped because the controller is
    /// disconnected. Speeds are kept in any case.
    pub fn take(&mut self, clients: &[ClientId], orders: &[Order], is_connected: bool) {
        for order in orders {
            match *order {
                Order::Speed { servo, speed } => {
                    self.speeds.insert(servo, speed);
                }
                Order::Turn { servo, angle, .. } if is_connected => {
                    self.angles.insert(servo, angle);
                    if self.continuous.contains(&servo) {
                        self.commanders.insert(servo, clients.to_vec());
                    }
                }
                Order::Release { servo } if is_connected => {
                    self.angles.remove(&servo);
                    self.commanders.remove(&servo);
                }
                Order::Turn { .. } | Order::Release { .. } => {}
            }
        }
        let count = match is_connected {
            true => &mut self.counters.sent,
            false => &mut self.counters.dropped,
        };
        *count += orders.len() as u64;
    }

    /// The last angle sent to each servo.
    pub fn angles(&self) -> impl Iterator<Item = (u32, i32)> {
        let angles = self.angles.iter();
        angles.map(|(servo, angle)| (u32::from(*servo), *angle))
    }

    /// The orders for the speeds of all servos, for a controller that has lost them.
    #[must_use]
    pub fn speeds(&self) -> Vec<Order> {
        let speeds = self.speeds.iter();
        let order = |(servo, speed): (&u8, &u16)| Order::Speed {
            servo: *servo,
            speed: *speed,
        };
        speeds.map(order).collect()
    }

    /// The servos that turn on and on, as motors do.
    #[must_use]
    pub fn continuous(&self) -> &BTreeSet<u8> {
        &self.continuous
    }

    /// The orders that stop all continuous servos that turn.
    #[must_use]
    pub fn stops(&self) -> Vec<Order> {
        let turning = self.commanders.keys();
        turning
            .map(|servo| Order::Release { servo: *servo })
            .collect()
    }

    /// The orders that stop what a client turns that is gone.
    pub fn client_gone(&mut self, client: ClientId) -> Vec<Order> {
        let commanders = self.commanders.iter();
        let turned = commanders.filter(|(_, clients)| clients.contains(&client));
        let stops = turned.map(|(servo, _)| Order::Release { servo: *servo });
        let stops: Vec<_> = stops.collect();
        if !stops.is_empty() {
            self.say(Note::Stopped(client));
        }
        stops
    }

    /// Rejects a request. Each reason is logged once.
    pub fn refuse(&mut self, why: String) {
        self.counters.refused += 1;
        if self.refusals.len() < MAX_REFUSALS && !self.refusals.contains(&why) {
            self.refusals.push(why.clone());
            self.say(Note::Refused(why));
        }
    }

    /// The controller works. `what` says what it is.
    pub fn is_well(&mut self, now: Instant, what: &str) {
        let was_well = std::mem::replace(&mut self.is_ready, true);
        let note = match self.outage.over(now) {
            Some(after) => Note::Back(after),
            None => Note::Ready(what.to_owned()),
        };
        if !was_well {
            self.say(note);
        }
    }

    /// The controller does not work. Returns when to try again.
    pub fn complain(&mut self, now: Instant, trouble: String) -> Instant {
        self.is_ready = false;
        if self.outage.complain(now, &trouble) {
            self.say(Note::Trouble(trouble));
        }
        self.outage.try_again_at(now)
    }

    /// The problem of the controller, if any.
    #[must_use]
    pub fn trouble(&self) -> Option<&str> {
        self.outage.trouble()
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

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(servo: u8) -> Order {
        Order::Turn {
            servo,
            angle: 90,
            us: 1500.0,
        }
    }

    #[test]
    fn what_a_client_turned_like_a_motor_stops_with_it() {
        let mut service = Service::new([1, 2, 3].into());
        let (first, second) = (ClientId(7), ClientId(8));
        service.take(&[first], &[turn(0), turn(1), turn(2)], true);
        service.take(&[second], &[turn(2)], true);
        service.take(&[first], &[turn(3)], false);
        let stops = service.client_gone(first);
        assert_eq!(stops, [Order::Release { servo: 1 }]);
        service.take(&[], &stops, true);
        assert_eq!(service.client_gone(first), []);
        assert_eq!(service.stops(), [Order::Release { servo: 2 }]);
        let angles: Vec<_> = service.angles().collect();
        assert_eq!(angles, [(0, 90), (2, 90)]);
        let notes: Vec<_> = std::iter::from_fn(|| service.poll_note()).collect();
        assert_eq!(notes, [Note::Stopped(first)]);
        assert_eq!((service.counters.sent, service.counters.dropped), (5, 1));
    }
}
