//! What is sent: orders, and the questions of a round. PURE.

use std::collections::BTreeMap;
use std::time::Instant;

use super::BusLogic;
use crate::bus_servos::servo::Servo;
use crate::bus_servos::wire::Request;
use crate::bus_servos::{Maker, Model, Write};

impl<M: Maker> BusLogic<M> {
    /// Everything that servos must be told now.
    pub(super) fn take_orders(&mut self) -> Vec<Request> {
        let set_up = std::mem::take(&mut self.set_ups).into_iter();
        // One after another: they depend on each other.
        let mut requests: Vec<_> = set_up.flat_map(|write| together([write])).collect();
        let (mut goals, mut torques) = (Vec::new(), Vec::new());
        for servo in &mut self.servos {
            let Some(order) = servo.take_order() else {
                continue;
            };
            let Some(model) = &servo.model else {
                continue;
            };
            let goal = order.goal.map(|(step, units)| model.goal(step, units));
            let speed = order.speed.map(|units| model.speed(units));
            let torque = order.torque.map(|is_on| model.torque(is_on));
            goals.extend(goal.into_iter().chain(speed).map(|write| (servo.id, write)));
            torques.extend(torque.map(|write| (servo.id, write)));
        }
        // A motor that is switched on must not go to an old goal.
        requests.extend(together(goals));
        requests.extend(together(torques));
        requests
    }

    pub(super) fn begin_round(&mut self, now: Instant) {
        let next = self.round_at + self.rules.interval;
        self.round_at = if next > now {
            next
        } else {
            now + self.rules.interval
        };
        self.is_in_round = true;
        let known = |servo: &&Servo<M::Model>| servo.model.is_some();
        let in_groups =
            |servo: &Servo<M::Model>| (servo.model.as_ref()).is_some_and(Model::is_in_groups);
        let (at, count) = M::STATE;
        let (mut group, single): (Vec<_>, Vec<_>) = self
            .servos
            .iter()
            .filter(known)
            .partition(|servo| in_groups(servo));
        // Those of Dynamixel wait for the one before them: behind a missing one, all are silent.
        group.sort_by_key(|servo| servo.is_suspect);
        let ids: Vec<_> = group.iter().map(|servo| servo.id).collect();
        if !ids.is_empty() {
            self.round.push_back(Request::GroupRead { at, count, ids });
        }
        let read = |servo: &Servo<_>| Request::Read {
            id: servo.id,
            at,
            count,
        };
        self.round.extend(single.into_iter().map(read));
        // One that was silent costs time, so only one of them is asked in a round.
        let mut silent = 0;
        let due = self.servos.iter().filter(|servo| {
            let is_due = servo.model.is_none() && now >= servo.ask_at;
            silent += u8::from(is_due && servo.is_silent());
            is_due && (!servo.is_silent() || silent == 1)
        });
        let (at, count) = M::IDENTITY;
        let ask = |servo: &Servo<_>| Request::Read {
            id: servo.id,
            at,
            count,
        };
        self.round.extend(due.map(ask));
    }

    pub(super) fn end_round(&mut self, now: Instant) {
        self.counters.rounds += 1;
        self.is_fresh = true;
        // One that has just been found is set up, and measured in the next round.
        let is_unmeasured =
            |servo: &Servo<_>| servo.measured.is_none() && servo.problem().is_none();
        if self.servos.iter().any(is_unmeasured) {
            return;
        }
        let trouble = match self.servos.iter().all(Servo::is_silent) {
            true => Some(format!(
                "no servo answers at {} baud: check the supply of the servos, their cable, their ids and \
                 --baud",
                self.rules.baud
            )),
            false => self.servos.iter().find_map(|servo| {
                let problem = servo.problem()?;
                Some(format!("servo {} {problem}", servo.id))
            }),
        };
        self.set_trouble(now, trouble);
    }
}

/// The same values for the same registers of several servos, in one request.
pub(super) fn together(writes: impl IntoIterator<Item = (u8, Write)>) -> Vec<Request> {
    let mut groups = BTreeMap::<_, Vec<_>>::new();
    for (id, (at, values)) in writes {
        let group = groups.entry((at, values.len()));
        group.or_default().push((id, values));
    }
    let groups = groups.into_iter();
    groups
        .map(|((at, _), values)| Request::GroupWrite { at, values })
        .collect()
}
