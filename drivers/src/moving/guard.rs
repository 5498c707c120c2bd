//! Wheel speeds of clients behind the collision monitor. PURE.

use std::time::Duration;

use amber_driver::ClientId;
use amber_navigation::collision::{self, Decision, Monitor, Reason};
use amber_navigation::kinematics::Wheels;
use amber_values::{Scan, WheelSpeeds};

use super::pilot::Input;

/// Older measurements are not reported.
const MAX_AGE: Duration = Duration::from_secs(1);
/// A stuck robot is reported for this long: its client usually tries again.
const TROUBLE: Duration = Duration::from_secs(3);

/// The collision monitor with the client that drives.
#[derive(Debug)]
pub(crate) struct Guard {
    monitor: Monitor,
    max_mm_s: u32,
    commander: Option<ClientId>,
    speeds: Option<(Duration, WheelSpeeds)>,
    scan: Option<(Duration, Scan)>,
    trouble: Option<(Duration, Reason)>,
    counters: Counters,
}

/// Counters of commands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counters {
    commands: u64,
    too_fast: u64,
    /// Commands that the wheels did not follow at all.
    stopped: u64,
}

/// The reason why the wheels do not follow a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("{0} mm/s is above the maximum of {1} mm/s")]
    TooFast(u32, u32),
    #[error("the wheels stand still: {0}")]
    Stopped(Reason),
}

impl Guard {
    pub(crate) fn new(config: collision::Config) -> Self {
        Self {
            monitor: Monitor::new(config),
            // Within the checked range of the option.
            max_mm_s: (config.drive.max_wheel_m_s * 1000.0) as u32,
            commander: None,
            speeds: None,
            scan: None,
            trouble: None,
            counters: Counters::default(),
        }
    }

    /// A client commands these speeds. If one of them is too high, the command is dropped, as by
    /// Roboclaw.
    pub(crate) fn drive(
        &mut self,
        now: Duration,
        client: Option<ClientId>,
        speeds: WheelSpeeds,
    ) -> Result<(), Refusal> {
        self.counters.commands += 1;
        let fastest_mm_s = speeds.fastest_mm_s();
        if fastest_mm_s > self.max_mm_s {
            self.counters.too_fast += 1;
            return Err(Refusal::TooFast(fastest_mm_s, self.max_mm_s));
        }
        self.commander = client;
        self.monitor.handle_command(now, Wheels::from(speeds));
        let Decision { scale, reason, .. } = self.monitor.step(now);
        if scale == 0.0 && speeds != WheelSpeeds::STOP {
            self.counters.stopped += 1;
            return Err(Refusal::Stopped(reason));
        }
        Ok(())
    }

    /// A client has left. The wheels stop if it drove.
    pub(crate) fn handle_client_gone(&mut self, now: Duration, client: ClientId) {
        if self.commander == Some(client) {
            self.commander = None;
            self.monitor.handle_command(now, Wheels::STOP);
        }
    }

    /// The client that drives.
    pub(crate) fn commander(&self) -> Option<ClientId> {
        self.commander
    }

    /// Handles data of another device.
    pub(crate) fn handle(&mut self, now: Duration, input: Input) {
        match input {
            Input::Scan(read, scan) => {
                self.monitor.handle_scan(&read);
                self.scan = Some((now, scan));
            }
            Input::Wheels(time, wheels, speeds) => {
                self.monitor.handle_wheels(time, wheels);
                self.speeds = Some((now, speeds));
            }
            Input::Imu(time, imu) => self.monitor.handle_imu(time, imu),
            Input::Contacts(time, touches) => self.monitor.handle_touches(time, &touches),
            Input::Pose(..) => {}
        }
    }

    /// The speeds for the wheels now.
    pub(crate) fn step(&mut self, now: Duration) -> Wheels {
        let decision = self.monitor.step(now);
        if self.monitor.is_blind(now) {
            self.trouble = Some((now, Reason::Blind));
        } else if decision.reason.is_trouble() {
            self.trouble = Some((now, decision.reason));
        } else if (self.trouble).is_some_and(|(since, reason)| {
            reason == Reason::Blind || now.saturating_sub(since) > TROUBLE
        }) {
            self.trouble = None;
        }
        decision.wheels
    }

    /// The measured speeds, if there are new ones.
    pub(crate) fn speeds(&self, now: Duration) -> Option<WheelSpeeds> {
        fresh(self.speeds.as_ref(), now).copied()
    }

    /// The last scan, if it is new.
    pub(crate) fn scan(&self, now: Duration) -> Option<&Scan> {
        fresh(self.scan.as_ref(), now)
    }

    /// The reason why the robot does not move as commanded.
    pub(crate) fn trouble(&self) -> Option<String> {
        self.trouble.map(|(_, reason)| reason.to_string())
    }

    /// Events for the log.
    pub(crate) fn counters(&self) -> String {
        format!("{:?} {:?}", self.counters, self.monitor.counters())
    }
}

fn fresh<T>(measured: Option<&(Duration, T)>, now: Duration) -> Option<&T> {
    let (time, value) = measured?;
    (now.saturating_sub(*time) <= MAX_AGE).then_some(value)
}

#[cfg(test)]
mod tests {
    use amber_map::Pose;
    use amber_navigation::collision::{Felt, Touch};
    use amber_navigation::scan::{self, Beam, Echo};

    use super::*;

    const CLIENT: ClientId = ClientId(7);

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// A scan of a wall across the way.
    fn wall(time: Duration, ahead_m: f64) -> Input {
        let beams = (-120..=120).map(|degrees| {
            let angle_rad = f64::from(degrees).to_radians();
            let distance_m = ahead_m / angle_rad.cos();
            let is_seen = angle_rad.cos() > 0.05 && distance_m < 5.0;
            Beam {
                angle_rad,
                echo: if is_seen {
                    Echo::At(distance_m)
                } else {
                    Echo::Nothing
                },
            }
        });
        let read = scan::Scan {
            start: time,
            beam_time: Duration::ZERO,
            beams: beams.collect(),
        };
        let raw = Scan::new(&[0.0], &[(ahead_m * 1000.0) as i32], None).unwrap();
        Input::Scan(read, raw)
    }

    fn wheels(time: Duration, speeds: WheelSpeeds) -> Input {
        Input::Wheels(time, Wheels::from(speeds), speeds)
    }

    fn guard(ahead_m: f64) -> Guard {
        let mut guard = Guard::new(collision::Config::new(Pose::default()));
        guard.handle(ms(1000), wheels(ms(1000), WheelSpeeds::STOP));
        guard.handle(ms(1000), wall(ms(1000), ahead_m));
        guard
    }

    #[test]
    fn a_free_command_passes_and_its_client_stops_it_by_leaving() {
        let mut guard = guard(4.0);
        let speeds = WheelSpeeds::sides(300, 200);
        guard.drive(ms(1000), Some(CLIENT), speeds).unwrap();
        assert_eq!(guard.step(ms(1000)), Wheels::sides(0.3, 0.2));
        guard.handle_client_gone(ms(1010), ClientId(8));
        assert_eq!(guard.step(ms(1010)), Wheels::sides(0.3, 0.2));
        guard.handle_client_gone(ms(1020), CLIENT);
        assert_eq!(guard.step(ms(1020)), Wheels::STOP);
    }

    #[test]
    fn a_wall_in_the_way_stops_the_wheels_and_the_client_learns_why() {
        let mut guard = guard(0.25);
        let refusal = guard.drive(ms(1000), Some(CLIENT), WheelSpeeds::all(200));
        let text = refusal.unwrap_err().to_string();
        assert_eq!(text, "the wheels stand still: an obstacle is in the way");
        assert_eq!(guard.step(ms(1000)), Wheels::STOP);
        guard
            .drive(ms(1000), Some(CLIENT), WheelSpeeds::all(-100))
            .unwrap();
        // Slowly: the area behind the robot is unknown.
        assert_eq!(guard.step(ms(1000)), Wheels::sides(-0.045, -0.045));
        assert_eq!(guard.trouble(), None);
    }

    #[test]
    fn a_command_that_is_too_fast_is_dropped_and_the_last_one_holds() {
        let mut guard = guard(4.0);
        guard
            .drive(ms(1000), Some(CLIENT), WheelSpeeds::all(100))
            .unwrap();
        let refusal = guard.drive(ms(1400), Some(CLIENT), WheelSpeeds::sides(100, -5000));
        let text = refusal.unwrap_err().to_string();
        assert_eq!(text, "5000 mm/s is above the maximum of 1200 mm/s");
        guard.handle(ms(1400), wall(ms(1400), 4.0));
        assert_eq!(guard.step(ms(1500)), Wheels::sides(0.1, 0.1));
        assert_eq!(
            guard.step(ms(1501)),
            Wheels::STOP,
            "it does not renew the command"
        );
    }

    #[test]
    fn old_measurements_are_not_reported() {
        let guard = guard(4.0);
        assert!(guard.speeds(ms(2000)).is_some() && guard.scan(ms(2000)).is_some());
        assert!(guard.speeds(ms(2001)).is_none() && guard.scan(ms(2001)).is_none());
    }

    #[test]
    fn a_laser_that_sees_nothing_stops_the_wheels_and_is_a_trouble_until_it_sees() {
        let mut guard = guard(2.5);
        let drive = |guard: &mut Guard, time, scan| {
            guard.handle(ms(time), wheels(ms(time), WheelSpeeds::all(200)));
            guard.handle(ms(time), scan);
            let done = guard.drive(ms(time), Some(CLIENT), WheelSpeeds::all(200));
            (guard.step(ms(time)).fastest_m_s(), done)
        };
        // No beam ends within 5 m.
        let nothing = |time| wall(ms(time), 6.0);
        assert_eq!(drive(&mut guard, 1100, nothing(1100)).0, 0.2);
        for time in (1200..2100).step_by(100) {
            drive(&mut guard, time, nothing(time)).1.unwrap();
        }
        assert!(guard.step(ms(2099)).fastest_m_s() <= 0.1);
        let (speed_m_s, done) = drive(&mut guard, 2100, nothing(2100));
        assert_eq!(speed_m_s, 0.0);
        let why = done.unwrap_err().to_string();
        assert!(why.contains("the laser sees nothing"), "{why}");
        // Also at rest.
        guard.handle_client_gone(ms(2200), CLIENT);
        guard.step(ms(9000));
        assert!(
            guard
                .trouble()
                .unwrap()
                .starts_with("the laser sees nothing")
        );
        let (speed_m_s, done) = drive(&mut guard, 9100, wall(ms(9100), 2.5));
        assert_eq!((speed_m_s, done), (0.2, Ok(())));
        assert_eq!(guard.trouble(), None);
    }

    #[test]
    fn a_pressed_bumper_is_the_reason_and_a_trouble_and_the_robot_may_drive_back() {
        let mut guard = guard(4.0);
        let front = Touch {
            felt: Felt::Bumper,
            angle_rad: 0.0,
            arc_rad: 1.5,
        };
        guard.handle(ms(1000), Input::Contacts(ms(1000), vec![front]));
        let refusal = guard.drive(ms(1000), Some(CLIENT), WheelSpeeds::all(200));
        let text = "a bumper is pressed; drive away from there";
        let expected = format!("the wheels stand still: {text}");
        assert_eq!(refusal.unwrap_err().to_string(), expected);
        assert_eq!(guard.step(ms(1000)), Wheels::STOP);
        assert_eq!(guard.trouble().as_deref(), Some(text));
        guard
            .drive(ms(1000), Some(CLIENT), WheelSpeeds::all(-100))
            .unwrap();
        assert_eq!(guard.step(ms(1000)), Wheels::sides(-0.045, -0.045));
    }

    #[test]
    fn blocked_wheels_are_a_trouble_for_some_seconds() {
        let mut guard = guard(4.0);
        for time in (1000..2200).step_by(50) {
            guard.handle(ms(time), wheels(ms(time), WheelSpeeds::STOP));
            guard.handle(ms(time), wall(ms(time), 4.0));
            let _ = guard.drive(ms(time), Some(CLIENT), WheelSpeeds::all(200));
            guard.step(ms(time));
        }
        assert_eq!(guard.trouble().as_deref(), Some("the robot is stuck"));
        guard.step(ms(6000));
        assert_eq!(guard.trouble(), None);
    }
}
