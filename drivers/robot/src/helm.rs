//! Everything that moves one of Amber's robots: wheel speeds, and errands such as targets. PURE.
//!
//! The wheels of a robot can be reached through several devices: its RoboClaw, its collision
//! avoidance, and drivers that follow targets. One user holds the seat of all of them, see
//! [`Controls`]. Errands continue without further commands, so the seat is free a second after the
//! last one; they end when another user takes the seat, and when their user is gone.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use amber_proto::{Device, DeviceId};
use amber_values::WheelSpeeds;

use crate::controls::{Controls, Occupied, Seat};
use crate::errand::Errand;
use crate::limits::{MOTION_LIFE, SEAT_HOLD};
use crate::robot::{RobotSetup, User, UserOrder};

/// The controls of Amber's robots.
#[derive(Debug)]
pub struct Helm {
    seat: Seat,
    /// The devices of the gateway's own robot, whatever their numbers.
    own: [Device; 2],
    wheels: BTreeMap<Device, Controls<User>>,
    errands: Vec<Running>,
    /// Errands to end.
    ended: VecDeque<(User, Errand)>,
}

#[derive(Clone, Copy, Debug)]
struct Running {
    user: User,
    errand: Errand,
    commanded: Duration,
}

impl Helm {
    /// No user drives.
    #[must_use]
    pub fn new(robot: &RobotSetup, seat: Seat) -> Self {
        Self {
            seat,
            own: [robot.wheels, robot.targets],
            wheels: BTreeMap::new(),
            errands: Vec::new(),
            ended: VecDeque::new(),
        }
    }

    /// A user commands wheel speeds, for [`MOTION_LIFE`].
    ///
    /// # Errors
    /// Another user holds the seat of this robot.
    pub fn drive(
        &mut self,
        now: Duration,
        user: User,
        device: Device,
        speeds: WheelSpeeds,
    ) -> Result<(), Occupied> {
        if speeds != WheelSpeeds::STOP {
            self.take_seat(now, user, device)?;
            self.end_errands(device, |_| true);
        }
        let seat = self.seat;
        let controls = (self.wheels.entry(device)).or_insert_with(|| Controls::new(seat));
        controls.drive(now, user, speeds, MOTION_LIFE)
    }

    /// A user begins an errand, or changes it. The caller forwards its message.
    ///
    /// # Errors
    /// Another user holds the seat of this robot.
    pub fn begin(&mut self, now: Duration, user: User, errand: Errand) -> Result<(), Occupied> {
        self.take_seat(now, user, errand.device())?;
        // The same device gets new orders, which replace the old ones.
        self.end_errands(errand.device(), |other| other.errand != errand);
        self.forget(errand);
        self.errands.push(Running {
            user,
            errand,
            commanded: now,
        });
        Ok(())
    }

    /// The errand of a device is over: it was stopped, or it is done.
    pub fn forget(&mut self, errand: Errand) {
        self.errands.retain(|running| running.errand != errand);
    }

    /// Whether this errand is one of this user's.
    #[must_use]
    pub fn has(&self, user: User, errand: Errand) -> bool {
        let mut errands = self.errands.iter();
        errands.any(|running| (running.user, running.errand) == (user, errand))
    }

    /// Whether this errand is one of any user.
    #[must_use]
    pub fn is_running(&self, errand: Errand) -> bool {
        self.errands.iter().any(|running| running.errand == errand)
    }

    /// Whether this user has errands.
    #[must_use]
    pub fn has_errands(&self, user: User) -> bool {
        self.errands.iter().any(|running| running.user == user)
    }

    /// A user gives no sign of life: the errands of this user end. Wheel speeds have a life of their
    /// own.
    pub fn abandon(&mut self, user: User) {
        let gone = |running: &Running| running.user == user;
        self.ended
            .extend(extract(&mut self.errands, gone).map(|it| (it.user, it.errand)));
    }

    /// A user is gone: the motions of this user stop.
    pub fn release(&mut self, user: User) {
        for controls in self.wheels.values_mut() {
            controls.release(user);
        }
        self.abandon(user);
    }

    /// A user gives up the seat of one robot immediately: the motions of this user there stop.
    pub fn vacate(&mut self, user: User, robot: DeviceId) {
        let own = self.own;
        for (&device, controls) in &mut self.wheels {
            if robot_of(own, device) == robot {
                controls.release(user);
            }
        }
        let meant = |it: &Running| it.user == user && robot_of(own, it.errand.device()) == robot;
        self.ended
            .extend(extract(&mut self.errands, meant).map(|it| (it.user, it.errand)));
    }

    /// The user who holds the seat of a robot, and the time when it is free if no further command
    /// comes.
    #[must_use]
    pub fn seated(&self, now: Duration, robot: DeviceId) -> Option<(User, Duration)> {
        let same = |device: Device| self.robot_of(device) == robot;
        let wheels = self.wheels.iter().filter(|(device, _)| same(**device));
        let holders = wheels.filter_map(|(_, controls)| controls.seated_until(now));
        let errands = self.errands.iter().filter(|it| same(it.errand.device()));
        let errands = errands.map(|it| (it.user, it.commanded + SEAT_HOLD));
        let errands = errands.filter(|(_, until)| now < *until);
        holders.chain(errands).max_by_key(|(_, until)| *until)
    }

    /// Stops everything of all users.
    pub fn stop(&mut self) {
        for controls in self.wheels.values_mut() {
            if let Some(holder) = controls.holder() {
                controls.release(holder);
            }
        }
        let all = self.errands.drain(..);
        self.ended.extend(all.map(|it| (it.user, it.errand)));
    }

    /// The next order to send, and its user. Call it until it returns `None`: after each change,
    /// and when [`Helm::next_due`] has come.
    pub fn poll(&mut self, now: Duration) -> Option<(User, UserOrder)> {
        if let Some((user, errand)) = self.ended.pop_front() {
            return Some((user, errand.end()));
        }
        let order = self.wheels.iter_mut().find_map(|(&device, controls)| {
            let (user, speeds) = controls.poll(now)?;
            Some((user, UserOrder::Drive(device, speeds)))
        });
        if order.is_none() {
            // Users may name any device: devices that no user drives take no memory.
            self.wheels
                .retain(|_, controls| controls.holder().is_some());
        }
        order
    }

    /// When [`Helm::poll`] is due next.
    #[must_use]
    pub fn next_due(&self) -> Option<Duration> {
        match self.ended.is_empty() {
            false => Some(Duration::ZERO),
            true => self.wheels.values().filter_map(Controls::next_due).min(),
        }
    }

    /// The number of known devices: those that a user drives or has just driven.
    #[must_use]
    pub fn wheels_in_memory(&self) -> usize {
        self.wheels.len()
    }

    /// Whether a user drives, or has an errand that may still run.
    #[must_use]
    pub fn is_driven_by(&self, user: User) -> bool {
        let mut wheels = self.wheels.values();
        wheels.any(|it| it.holder() == Some(user) && it.moves()) || self.has_errands(user)
    }

    /// Takes the seat of a robot. Its other devices stop.
    fn take_seat(&mut self, now: Duration, user: User, device: Device) -> Result<(), Occupied> {
        let robot = self.robot_of(device);
        let own = self.own;
        let same = |other: Device| robot_of(own, other) == robot;
        if self.seat == Seat::Exclusive && self.seated(now, robot).is_some_and(|it| it.0 != user) {
            return Err(Occupied);
        }
        for (&other, controls) in &mut self.wheels {
            if other != device
                && same(other)
                && let Some(holder) = controls.holder()
            {
                controls.release(holder);
            }
        }
        Ok(())
    }

    /// Ends errands of the robot with this device.
    fn end_errands(&mut self, device: Device, which: impl Fn(&Running) -> bool) {
        let (own, robot) = (self.own, self.robot_of(device));
        let ends = |it: &Running| robot_of(own, it.errand.device()) == robot && which(it);
        self.ended
            .extend(extract(&mut self.errands, ends).map(|it| (it.user, it.errand)));
    }

    /// The robot to which a device belongs: those with the same id do, and those of the gateway's own
    /// robot.
    #[must_use]
    pub fn robot_of(&self, device: Device) -> DeviceId {
        robot_of(self.own, device)
    }
}

/// Devices with the same id belong to the same robot.
fn robot_of(own: [Device; 2], device: Device) -> DeviceId {
    match own.contains(&device) {
        true => own[0].id,
        false => device.id,
    }
}

/// Removes some errands, and returns them.
fn extract(
    errands: &mut Vec<Running>,
    which: impl Fn(&Running) -> bool,
) -> impl Iterator<Item = Running> {
    let (gone, kept) = errands.drain(..).partition(|running| which(running));
    *errands = kept;
    Vec::into_iter(gone)
}

#[cfg(test)]
mod tests {
    use amber_proto::DeviceType;

    use super::*;
    use crate::robot::tests::robot;

    const GO: WheelSpeeds = WheelSpeeds::all(200);
    const STOP: WheelSpeeds = WheelSpeeds::STOP;
    const WHEELS: Device = Device::new(DeviceType::ROBOCLAW, 0);
    const GUARDED: Device = Device::new(DeviceType::COLLISION_AVOIDANCE, 0);
    const TARGETS: Errand = Errand::Targets(Device::new(DeviceType::DRIVE_TO_POINT, 0));
    const PATH: Errand = Errand::Trajectory(Device::new(DeviceType::PID_FOLLOW_TRAJECTORY, 0));
    const OTHER_ROBOT: Device = Device::new(DeviceType::ROBOCLAW, 1);
    const A: User = User(1);
    const B: User = User(2);

    fn helm() -> Helm {
        Helm::new(&robot(), Seat::Exclusive)
    }

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn polled(helm: &mut Helm, now: u64) -> Vec<(User, UserOrder)> {
        std::iter::from_fn(|| helm.poll(ms(now))).collect()
    }

    #[test]
    fn all_devices_of_a_robot_have_one_seat() {
        let mut helm = helm();
        assert_eq!(helm.drive(ms(0), A, WHEELS, GO), Ok(()));
        assert_eq!(helm.drive(ms(10), B, GUARDED, GO), Err(Occupied));
        assert_eq!(helm.begin(ms(10), B, TARGETS), Err(Occupied));
        assert_eq!(helm.begin(ms(10), B, PATH), Err(Occupied));
        assert_eq!(helm.drive(ms(10), B, OTHER_ROBOT, GO), Ok(()));
        let go = |user, device| (user, UserOrder::Drive(device, GO));
        assert_eq!(polled(&mut helm, 10), [go(A, WHEELS), go(B, OTHER_ROBOT)]);
        // The same user changes the device: the first one stops.
        assert_eq!(helm.drive(ms(20), A, GUARDED, GO), Ok(()));
        let expected = [(A, UserOrder::Drive(WHEELS, STOP)), go(A, GUARDED)];
        assert_eq!(polled(&mut helm, 20), expected);
        assert!(helm.is_driven_by(A) && helm.is_driven_by(B));
    }

    #[test]
    fn an_errand_ends_when_another_user_drives_or_its_own_user_is_gone() {
        let mut helm = helm();
        assert_eq!(helm.begin(ms(0), A, TARGETS), Ok(()));
        assert_eq!(helm.drive(ms(999), B, WHEELS, GO), Err(Occupied));
        assert!(helm.has(A, TARGETS) && polled(&mut helm, 999).is_empty());
        assert_eq!(helm.drive(ms(1000), B, WHEELS, GO), Ok(()));
        let end = |user| (user, TARGETS.end());
        assert_eq!(
            polled(&mut helm, 1000),
            [end(A), (B, UserOrder::Drive(WHEELS, GO))]
        );
        assert!(!helm.is_driven_by(A));

        // The wheels stop for an errand, and an errand for another one.
        assert_eq!(helm.begin(ms(1100), B, PATH), Ok(()));
        assert_eq!(
            polled(&mut helm, 1100),
            [(B, UserOrder::Drive(WHEELS, STOP))]
        );
        assert_eq!(helm.begin(ms(1200), B, TARGETS), Ok(()));
        assert_eq!(polled(&mut helm, 1200), [(B, PATH.end())]);
        helm.release(A);
        assert_eq!(polled(&mut helm, 1300), []);
        helm.release(B);
        assert_eq!(helm.next_due(), Some(Duration::ZERO));
        assert_eq!(polled(&mut helm, 1300), [end(B)]);
        assert_eq!(helm.next_due(), None);
    }

    #[test]
    fn the_errands_of_a_silent_user_end_and_wheel_speeds_do_not() {
        let mut helm = helm();
        assert_eq!(helm.begin(ms(0), A, TARGETS), Ok(()));
        assert_eq!(helm.drive(ms(0), A, OTHER_ROBOT, GO), Ok(()));
        polled(&mut helm, 0);
        helm.abandon(B);
        assert!(helm.has_errands(A) && polled(&mut helm, 1).is_empty());
        helm.abandon(A);
        assert!(!helm.has_errands(A) && helm.is_driven_by(A));
        assert_eq!(polled(&mut helm, 1), [(A, TARGETS.end())]);
    }

    #[test]
    fn a_user_vacates_the_seat_of_one_robot() {
        let mut helm = helm();
        let (own, other) = (WHEELS.id, OTHER_ROBOT.id);
        assert_eq!(helm.begin(ms(0), A, TARGETS), Ok(()));
        assert_eq!(helm.drive(ms(100), A, OTHER_ROBOT, GO), Ok(()));
        assert_eq!(helm.seated(ms(200), own), Some((A, ms(1_000))));
        assert_eq!(helm.seated(ms(200), other), Some((A, ms(1_100))));
        polled(&mut helm, 200);
        // Of somebody who does not hold it.
        helm.vacate(B, own);
        assert_eq!(polled(&mut helm, 200), []);
        helm.vacate(A, own);
        assert_eq!(polled(&mut helm, 200), [(A, TARGETS.end())]);
        assert_eq!(helm.seated(ms(200), own), None);
        assert_eq!(helm.drive(ms(200), B, WHEELS, GO), Ok(()));
        helm.vacate(A, other);
        let expected = [
            (B, UserOrder::Drive(WHEELS, GO)),
            (A, UserOrder::Drive(OTHER_ROBOT, STOP)),
        ];
        assert_eq!(polled(&mut helm, 200), expected);
        // An errand may run on without its seat.
        assert_eq!(helm.begin(ms(300), B, TARGETS), Ok(()));
        assert_eq!(helm.seated(ms(1_300), own), None);
        assert!(helm.is_driven_by(B));
    }

    #[test]
    fn a_joystick_at_rest_does_not_end_an_errand() {
        let mut helm = helm();
        assert_eq!(helm.begin(ms(0), A, TARGETS), Ok(()));
        for now in [10, 2_000] {
            assert_eq!(helm.drive(ms(now), B, WHEELS, STOP), Ok(()));
            assert_eq!(helm.drive(ms(now), A, WHEELS, STOP), Ok(()));
        }
        assert_eq!(polled(&mut helm, 2_000), []);
        assert!(helm.has(A, TARGETS));
    }

    #[test]
    fn everything_stops_when_the_gateway_does() {
        let mut helm = helm();
        assert_eq!(helm.drive(ms(0), A, OTHER_ROBOT, GO), Ok(()));
        assert_eq!(helm.begin(ms(0), B, TARGETS), Ok(()));
        polled(&mut helm, 0);
        helm.stop();
        let expected = [(B, TARGETS.end()), (A, UserOrder::Drive(OTHER_ROBOT, STOP))];
        assert_eq!(polled(&mut helm, 0), expected);
    }
}
