//! Trips, and the ends of errands. PURE.

use std::collections::BTreeMap;
use std::time::Duration;

use amber_proto::Device;
use amber_robot::errand::Errand;
use amber_robot::robot::{Trip, UserOrder};
use amber_values::Target;

use super::{Action, Orders, Program};
use crate::problem::Problem;

/// The numbers of errands, so that the end of an older one means nothing for a newer one.
#[derive(Debug, Default)]
pub(super) struct Errands {
    /// That of the newest errand of each device.
    newest: BTreeMap<Device, u64>,
    last: u64,
    /// The newest trip, with its device and number.
    trip: Option<(Trip, Device, u64)>,
}

impl Orders {
    /// A program makes a trip: a way to a target of which it wants to know the end. Otherwise, it is
    /// as with a message that sets targets.
    ///
    /// # Errors
    /// It does not begin.
    pub fn travel(
        &mut self,
        now: Duration,
        program: &Program,
        device: Device,
        trip: Trip,
        target: Target,
    ) -> Result<(), Problem> {
        self.check_shown(device)?;
        let operator = self.admit(now, program.clone())?;
        operator.pay(now, false)?;
        operator.signed(now);
        let user = operator.user;
        let robot = self.helm.robot_of(device);
        self.check_seat(now, robot, &program.who)?;
        let begun = self.helm.begin(now, user, Errand::Targets(device));
        begun.map_err(|_| self.occupied(now, robot))?;
        let number = self.number_errand(device);
        self.errands.trip = Some((trip, device, number));
        // What it replaces stops first.
        self.drain(now);
        let order = UserOrder::Trip(device, trip, vec![target]);
        self.actions.push_back(Action::Move(user, order));
        self.settle(now, robot.0);
        Ok(())
    }

    /// A program ends a trip, and nothing that has begun since.
    pub fn cancel_trip(&mut self, program: &Program, trip: Trip) {
        if let Some(operator) = self.operators.get(program) {
            let order = Action::Move(operator.user, UserOrder::CancelTrip(trip));
            self.actions.push_back(order);
        }
    }

    /// A trip is over.
    pub fn trip_ended(&mut self, trip: Trip) {
        if let Some((newest, device, number)) = self.errands.trip
            && newest == trip
        {
            self.errands.trip = None;
            self.errand_ended(device, number);
        }
    }

    /// The number of the newest errand of a device, if it may still run.
    #[must_use]
    pub fn errand_of(&self, device: Device) -> Option<u64> {
        self.errands.newest.get(&device).copied()
    }

    /// An errand of a device is over, because the robot has arrived, for example. Nobody needs to give
    /// signs of life any more.
    pub fn errand_ended(&mut self, device: Device, number: u64) {
        if self.errand_of(device) == Some(number) {
            self.errands.newest.remove(&device);
            self.helm.forget(Errand::of(device));
        }
    }

    /// Gives an errand that begins its number.
    pub(super) fn number_errand(&mut self, device: Device) -> u64 {
        // Operators may name any device: those without an errand take no memory.
        let runs = |device: &Device| self.helm.is_running(Errand::of(*device));
        self.errands.newest.retain(|device, _| runs(device));
        self.errands.last += 1;
        self.errands.newest.insert(device, self.errands.last);
        self.errands.last
    }
}
