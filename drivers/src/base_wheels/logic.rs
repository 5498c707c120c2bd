//! Turns the speeds of left and right wheels into those of a base, and back. PURE.

use std::time::{Duration, Instant};

use amber_driver::ClientId;
use amber_navigation::kinematics::{SkidSteer, Twist};
use amber_proto::Device;
use amber_proto::base::{BaseState, Velocity};
use amber_values::WheelSpeeds;

use crate::moving::heard::Heard;
use crate::moving::repeating::Repeating;

/// The track of a robot that does not say it, as programs assume it.
const USUAL_TRACK_M: f64 = 0.42;
/// The base stops this long after the last command, as with other drivers of wheels.
const IDLE_STOP: Duration = Duration::from_secs(4);

/// The logic of the driver.
#[derive(Debug)]
pub(super) struct WheelsLogic {
    track_m: f64,
    command: Repeating<Twist>,
    measured: Twist,
    base: Heard,
    trouble: Option<String>,
}

impl WheelsLogic {
    /// A base at rest that was not heard yet.
    pub(super) fn new(base: Device, now: Instant) -> Self {
        Self {
            track_m: USUAL_TRACK_M,
            command: Repeating::new(now, Some(IDLE_STOP)),
            measured: Twist::STOP,
            base: Heard::new(base, "does not say how it moves", now),
            trouble: None,
        }
    }

    /// Programs assume this distance between left and right wheels.
    pub(super) fn set_track(&mut self, track_m: f64) {
        self.track_m = track_m;
    }

    /// Clients want these speeds.
    ///
    /// # Errors
    /// The base cannot drive: the reason.
    pub(super) fn drive(
        &mut self,
        now: Instant,
        clients: &[ClientId],
        speeds: WheelSpeeds,
    ) -> Result<(), String> {
        if speeds == WheelSpeeds::STOP {
            self.command.stop(now);
            return Ok(());
        }
        if let Some(why) = self.base.absence(now) {
            return Err(why);
        }
        let twist = self.wheels().twist(speeds.into());
        self.command.command(now, clients, twist);
        Ok(())
    }

    /// The base says how it moves.
    pub(super) fn handle(&mut self, now: Instant, state: &BaseState) {
        let measured = state.measured.unwrap_or_default();
        self.measured = Twist::new(measured.forward() / 1_000.0, measured.turn().to_radians());
        self.base.measured(now);
        self.look(now);
    }

    /// The base does not say how it moves.
    pub(super) fn failed(&mut self, now: Instant, problem: String) {
        self.base.failed(problem);
        self.look(now);
    }

    /// Another client drives the base: nothing may be sent.
    pub(super) fn give_way(&mut self) {
        self.command.last();
    }

    /// A timer may have expired.
    pub(super) fn handle_timeout(&mut self, now: Instant) {
        self.base.looked(now);
        self.command.expire(now);
        if self.base.is_silent(now) {
            self.command.stop(now);
        }
        self.look(now);
    }

    /// When to call [`Self::handle_timeout`] and [`Self::poll`] if nothing happens earlier.
    pub(super) fn wake_at(&self) -> Instant {
        let look_at = self.base.look_at();
        self.command.wake_at().map_or(look_at, |at| at.min(look_at))
    }

    /// What the base must be told now, and for which client.
    pub(super) fn poll(&mut self, now: Instant) -> Option<(Velocity, Option<ClientId>)> {
        let twist = self.command.poll(now)?;
        Some(self.order(twist))
    }

    /// The driver ends: what stops the base, if it moves.
    pub(super) fn last(&mut self) -> Option<(Velocity, Option<ClientId>)> {
        let twist = self.command.last()?;
        Some(self.order(twist))
    }

    /// The speeds of the wheels, or why they are not known.
    pub(super) fn speeds(&self, now: Instant) -> Result<WheelSpeeds, String> {
        match self.base.absence(now) {
            Some(why) => Err(why),
            None => Ok(self.wheels().wheels(self.measured).into()),
        }
    }

    /// Why the base cannot be used.
    pub(super) fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }

    fn order(&self, twist: Twist) -> (Velocity, Option<ClientId>) {
        let velocity = Velocity {
            forward: Some(twist.forward_m_s * 1_000.0),
            left: Some(0.0),
            turn: Some(twist.turn_rad_s.to_degrees()),
        };
        (velocity, self.command.commanders().first().copied())
    }

    /// The wheels that programs know. The base has its own limit.
    fn wheels(&self) -> SkidSteer {
        SkidSteer {
            track_m: self.track_m,
            max_wheel_m_s: f64::INFINITY,
        }
    }

    fn look(&mut self, now: Instant) {
        let is_starting = self.base.is_starting(now);
        self.trouble = self.base.absence(now).filter(|_| !is_starting);
    }
}

#[cfg(test)]
mod tests {
    use amber_navigation::kinematics::Wheels;
    use amber_proto::DeviceType;

    use super::*;

    const MS: Duration = Duration::from_millis(1);
    const CLIENT: ClientId = ClientId(5);
    const BASE: Device = Device::new(DeviceType::BASE, 0);

    fn logic() -> (WheelsLogic, Instant) {
        let now = Instant::now();
        (WheelsLogic::new(BASE, now), now)
    }

    fn state(forward: f64, left: f64, turn: f64) -> BaseState {
        BaseState {
            measured: Some(Velocity {
                forward: Some(forward),
                left: Some(left),
                turn: Some(turn),
            }),
            ..BaseState::default()
        }
    }

    fn sides(left: i32, right: i32) -> WheelSpeeds {
        Wheels::sides(f64::from(left) / 1_000.0, f64::from(right) / 1_000.0).into()
    }

    #[test]
    fn wheel_speeds_become_a_velocity_and_back() {
        for (track_m, left, right, forward, turn) in [
            (0.42, 100, 100, 100.0, 0.0),
            (0.42, -100, 100, 0.0, 27.28),
            (0.2, -100, 100, 0.0, 57.30),
            (0.42, 0, -100, -50.0, -13.64),
        ] {
            let (mut logic, now) = logic();
            logic.set_track(track_m);
            logic.handle(now, &state(forward, 30.0, turn));
            let speeds = logic.speeds(now).unwrap();
            assert_eq!(speeds, sides(left, right), "sideways motion is left out");
            logic.drive(now, &[CLIENT], speeds).unwrap();
            let (velocity, client) = logic.poll(now).unwrap();
            assert!((velocity.forward() - forward).abs() < 0.01, "{velocity:?}");
            assert!((velocity.turn() - turn).abs() < 0.01, "{velocity:?}");
            assert_eq!((velocity.left, client), (Some(0.0), Some(CLIENT)));
        }
    }

    #[test]
    fn a_command_holds_for_four_seconds_but_not_without_the_base() {
        let (mut logic, start) = logic();
        let why = "base:0 does not say how it moves".to_owned();
        let done = logic.drive(start, &[CLIENT], sides(100, 100));
        assert_eq!(done, Err(why));
        assert_eq!(logic.drive(start, &[CLIENT], WheelSpeeds::STOP), Ok(()));
        let driven = |logic: &mut WheelsLogic, is_heard| {
            logic.handle(start, &state(0.0, 0.0, 0.0));
            logic.drive(start, &[CLIENT], sides(100, 100)).unwrap();
            let mut moved = Duration::ZERO;
            for ms in (10..6_000).step_by(10) {
                let now = start + MS * ms;
                if is_heard {
                    logic.handle(now, &state(0.0, 0.0, 0.0));
                }
                logic.handle_timeout(now);
                if logic
                    .poll(now)
                    .is_some_and(|(velocity, _)| velocity.forward() > 0.0)
                {
                    moved = MS * ms;
                }
            }
            moved.as_millis()
        };
        let moved_ms = driven(&mut logic, true);
        assert!((3_950..4_000).contains(&moved_ms), "{moved_ms}");
        let mut logic = WheelsLogic::new(BASE, start);
        let moved_ms = driven(&mut logic, false);
        assert!((550..610).contains(&moved_ms), "{moved_ms}");
        let late = start + MS * 6_000;
        logic.failed(late, "servo 7 does not answer".into());
        let why = "base:0 does not say how it moves: servo 7 does not answer";
        assert_eq!(logic.trouble(), Some(why));
        assert_eq!(logic.speeds(late), Err(why.into()));
    }

    #[test]
    fn it_gives_way_to_others_and_stops_at_its_end() {
        let (mut logic, now) = logic();
        logic.handle(now, &state(0.0, 0.0, 0.0));
        logic.drive(now, &[CLIENT], sides(100, 100)).unwrap();
        assert!(logic.poll(now).is_some());
        logic.give_way();
        assert_eq!(logic.poll(now + MS * 100), None);
        assert_eq!(logic.last(), None);
        logic.drive(now, &[CLIENT], sides(100, 100)).unwrap();
        assert!(logic.poll(now + MS * 200).is_some());
        let (velocity, _) = logic.last().unwrap();
        assert_eq!((velocity.forward(), velocity.turn()), (0.0, 0.0));
    }
}
