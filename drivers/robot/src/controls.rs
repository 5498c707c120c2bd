//! The control of the wheels of one robot: the seat, and the life of a command. PURE.
//!
//! One user holds the seat from the first command other than a stop until a while after the last
//! one. Each command holds for its life; then, and when the user is gone, one stop follows. If
//! commands come too fast, only the newest counts. A stop never waits.

use std::time::Duration;

use amber_values::WheelSpeeds;

use crate::limits::{MOTION_PERIOD, SEAT_HOLD};

/// The controls of the wheels of one robot. `U` is the type of its users.
#[derive(Debug)]
pub struct Controls<U> {
    seat: Seat,
    holder: Option<Holder<U>>,
    /// A stop for a user who has lost the seat.
    farewell: Option<U>,
}

/// Whether several users may drive at the same time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Seat {
    /// The commands of others are refused while one user drives.
    #[default]
    Exclusive,
    /// The newest command counts, from any user.
    Shared,
}

/// Another user holds the seat.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("another session drives")]
pub struct Occupied;

#[derive(Debug)]
struct Holder<U> {
    user: U,
    /// When the last command other than a stop has arrived.
    commanded: Duration,
    /// When the current motion ends; `None` at rest.
    moves_until: Option<Duration>,
    /// The newest command that is not sent yet.
    waiting: Option<WheelSpeeds>,
    sent: Option<Duration>,
}

impl<U: Copy + Eq> Controls<U> {
    /// No user drives.
    #[must_use]
    pub fn new(seat: Seat) -> Self {
        Self {
            seat,
            holder: None,
            farewell: None,
        }
    }

    /// A user commands these speeds for the time `life`.
    ///
    /// A stop from a user who does not hold the seat has no effect: a joystick at rest must not
    /// stop a robot that drives to a target.
    ///
    /// # Errors
    /// Another user holds the seat.
    pub fn drive(
        &mut self,
        now: Duration,
        user: U,
        speeds: WheelSpeeds,
        life: Duration,
    ) -> Result<(), Occupied> {
        let is_stop = speeds == WheelSpeeds::STOP;
        match &self.holder {
            Some(holder) if holder.user == user => {}
            Some(holder) if self.seat == Seat::Exclusive && holder.keeps_seat(now) => {
                return if is_stop { Ok(()) } else { Err(Occupied) };
            }
            _ if is_stop => return Ok(()),
            Some(holder) if holder.moves_until.is_some() => {
                self.farewell = Some(holder.user);
                self.holder = None;
            }
            _ => self.holder = None,
        }
        let holder = self.holder.get_or_insert(Holder {
            user,
            commanded: now,
            moves_until: None,
            waiting: None,
            sent: None,
        });
        if !is_stop {
            holder.commanded = now;
        }
        if !is_stop || holder.moves_until.is_some() {
            holder.waiting = Some(speeds);
        }
        holder.moves_until = (!is_stop).then(|| now + life);
        Ok(())
    }

    /// A user is gone: if the robot moves by a command of this user, it stops.
    pub fn release(&mut self, user: U) {
        if let Some(holder) = &self.holder
            && holder.user == user
        {
            if holder.moves_until.is_some() || holder.waiting == Some(WheelSpeeds::STOP) {
                self.farewell = Some(user);
            }
            self.holder = None;
        }
    }

    /// The next command to send, and the user whose command it is. Call it until it returns
    /// `None`: after each change, and when [`Controls::next_due`] has come.
    pub fn poll(&mut self, now: Duration) -> Option<(U, WheelSpeeds)> {
        if let Some(user) = self.farewell.take() {
            return Some((user, WheelSpeeds::STOP));
        }
        let holder = self.holder.as_mut()?;
        if (holder.moves_until).is_some_and(|until| until <= now) {
            holder.moves_until = None;
            holder.waiting = Some(WheelSpeeds::STOP);
        }
        if let Some(speeds) = holder.waiting {
            if holder.waits_until(speeds).is_some_and(|until| now < until) {
                return None;
            }
            holder.waiting = None;
            holder.sent = Some(now);
            return Some((holder.user, speeds));
        }
        if !holder.keeps_seat(now) {
            self.holder = None;
        }
        None
    }

    /// When [`Controls::poll`] is due next.
    #[must_use]
    pub fn next_due(&self) -> Option<Duration> {
        if self.farewell.is_some() {
            return Some(Duration::ZERO);
        }
        let holder = self.holder.as_ref()?;
        let waiting = (holder.waiting).map(|speeds| holder.waits_until(speeds).unwrap_or_default());
        let end = (holder.moves_until).unwrap_or(holder.commanded + SEAT_HOLD);
        Some(waiting.map_or(end, |waiting| waiting.min(end)))
    }

    /// The user who holds the seat at this time, so that others are refused.
    #[must_use]
    pub fn seated(&self, now: Duration) -> Option<U> {
        let holder = self.holder.as_ref()?;
        holder.keeps_seat(now).then_some(holder.user)
    }

    /// The same, with the time at which the seat is free if no further command comes.
    #[must_use]
    pub fn seated_until(&self, now: Duration) -> Option<(U, Duration)> {
        let holder = self.holder.as_ref().filter(|it| it.keeps_seat(now))?;
        let after_last = holder.commanded + SEAT_HOLD;
        let until = holder
            .moves_until
            .map_or(after_last, |it| it.max(after_last));
        Some((holder.user, until))
    }

    /// The user who has driven last. The seat may be free again.
    #[must_use]
    pub fn holder(&self) -> Option<U> {
        Some(self.holder.as_ref()?.user)
    }

    /// Whether the last command that was sent or waits is a motion.
    #[must_use]
    pub fn moves(&self) -> bool {
        self.holder
            .as_ref()
            .is_some_and(|it| it.moves_until.is_some())
    }
}

impl<U> Holder<U> {
    fn keeps_seat(&self, now: Duration) -> bool {
        self.moves_until.is_some() || now < self.commanded + SEAT_HOLD
    }

    /// Until when a command waits because of the last one.
    fn waits_until(&self, speeds: WheelSpeeds) -> Option<Duration> {
        match speeds == WheelSpeeds::STOP {
            true => None,
            false => Some(self.sent? + MOTION_PERIOD),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::MOTION_LIFE;

    const GO: WheelSpeeds = WheelSpeeds::all(200);
    const TURN: WheelSpeeds = WheelSpeeds::sides(-100, 100);
    const STOP: WheelSpeeds = WheelSpeeds::STOP;

    /// Controls on a virtual clock: each step is a time in ms and what happens then.
    #[derive(Clone, Copy)]
    enum Step {
        Drive(u32, WheelSpeeds),
        Refused(u32, WheelSpeeds),
        Gone(u32),
        Nothing,
    }
    use Step::{Drive, Gone, Nothing, Refused};

    /// All commands that are sent, with their times in ms.
    fn sent(seat: Seat, steps: &[(u64, Step)]) -> Vec<(u64, u32, WheelSpeeds)> {
        let mut controls = Controls::new(seat);
        let mut sent = Vec::new();
        let ms = Duration::from_millis;
        let last = steps.last().unwrap().0;
        for now in 0..=last {
            for &(_, step) in steps.iter().filter(|(at, _)| *at == now) {
                match step {
                    Drive(user, speeds) => {
                        assert_eq!(controls.drive(ms(now), user, speeds, MOTION_LIFE), Ok(()));
                    }
                    Refused(user, speeds) => assert_eq!(
                        controls.drive(ms(now), user, speeds, MOTION_LIFE),
                        Err(Occupied)
                    ),
                    Gone(user) => controls.release(user),
                    Nothing => {}
                }
            }
            let due = controls.next_due().is_some_and(|due| due <= ms(now));
            let mut polled = Vec::new();
            while let Some((user, speeds)) = controls.poll(ms(now)) {
                polled.push((now, user, speeds));
            }
            assert!(due || polled.is_empty(), "not announced: {polled:?}");
            sent.extend(polled);
        }
        sent
    }

    #[test]
    fn one_stop_follows_500_ms_after_the_last_command() {
        let steps = [(0, Drive(1, GO)), (300, Drive(1, GO)), (3_000, Nothing)];
        let expected = [(0, 1, GO), (300, 1, GO), (800, 1, STOP)];
        assert_eq!(sent(Seat::Exclusive, &steps), expected);
    }

    #[test]
    fn the_robot_stops_when_its_user_is_gone() {
        let steps = [
            (0, Drive(1, GO)),
            (100, Gone(2)),
            (200, Gone(1)),
            (900, Nothing),
        ];
        let expected = [(0, 1, GO), (200, 1, STOP)];
        assert_eq!(sent(Seat::Exclusive, &steps), expected);
        let at_rest = [(0, Drive(1, GO)), (100, Drive(1, STOP)), (200, Gone(1))];
        let expected = [(0, 1, GO), (100, 1, STOP)];
        assert_eq!(sent(Seat::Exclusive, &at_rest), expected);
    }

    #[test]
    fn of_fast_commands_the_newest_counts_and_a_stop_never_waits() {
        let mut steps: Vec<_> = (0..100).map(|ms| (ms, Drive(1, GO))).collect();
        steps.push((90, Drive(1, TURN)));
        steps.sort_by_key(|(at, _)| *at);
        steps.push((100, Drive(1, TURN)));
        steps.push((107, Drive(1, STOP)));
        let expected = [
            (0, 1, GO),
            (20, 1, GO),
            (40, 1, GO),
            (60, 1, GO),
            (80, 1, GO),
            (100, 1, TURN),
            (107, 1, STOP),
        ];
        assert_eq!(sent(Seat::Exclusive, &steps), expected);
    }

    #[test]
    fn others_wait_until_a_second_after_the_last_command() {
        let steps = [
            (0, Drive(1, GO)),
            (10, Refused(2, TURN)),
            (20, Drive(2, STOP)),
            (30, Drive(1, STOP)),
            (999, Refused(2, TURN)),
            (1_000, Drive(2, TURN)),
            (1_010, Refused(1, GO)),
            (1_100, Gone(2)),
            (1_101, Drive(1, GO)),
            (1_101, Nothing),
        ];
        let expected = [
            (0, 1, GO),
            (30, 1, STOP),
            (1_000, 2, TURN),
            (1_100, 2, STOP),
            (1_101, 1, GO),
        ];
        assert_eq!(sent(Seat::Exclusive, &steps), expected);
    }

    #[test]
    fn the_time_at_which_the_seat_is_free_is_known() {
        let ms = Duration::from_millis;
        let mut controls = Controls::new(Seat::Exclusive);
        assert_eq!(controls.seated_until(ms(0)), None);
        assert_eq!(controls.drive(ms(100), 1, GO, MOTION_LIFE), Ok(()));
        assert_eq!(controls.seated_until(ms(400)), Some((1, ms(1_100))));
        assert_eq!(controls.drive(ms(500), 1, STOP, MOTION_LIFE), Ok(()));
        // A stop does not keep the seat.
        assert_eq!(controls.seated_until(ms(1_099)), Some((1, ms(1_100))));
        assert_eq!(controls.seated_until(ms(1_100)), None);
    }

    #[test]
    fn with_shared_controls_the_newest_command_counts() {
        let steps = [(0, Drive(1, GO)), (30, Drive(2, TURN)), (600, Nothing)];
        let expected = [(0, 1, GO), (30, 1, STOP), (30, 2, TURN), (530, 2, STOP)];
        assert_eq!(sent(Seat::Shared, &steps), expected);
    }

    #[test]
    fn stops_of_somebody_who_does_not_drive_have_no_effect() {
        let steps = [(0, Drive(1, STOP)), (100, Drive(1, STOP)), (200, Nothing)];
        assert_eq!(sent(Seat::Exclusive, &steps), []);
    }
}
