//! The logic, the simulated VESCs, their wheels, and a clock.

use amber_driver::ClientId;
use amber_sim::vesc::{CAN_ID, Firmware, Vescs};
use amber_sim::wheels::{Drive, Reading as Measured};
use amber_values::WheelSpeeds;

use super::super::*;
use crate::vesc::Options;
use crate::wheels::testing::{Heard, question};

pub(super) const MS: Duration = Duration::from_millis(1);
pub(super) const AHEAD: WheelSpeeds = WheelSpeeds::all(300);
/// How fast a wheel without power slows down, in pulses per second squared.
const ROLLING_QPPS2: f64 = 500.0;

/// What happens to the answers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Cable {
    Well,
    Silent,
    /// A byte has a wrong bit.
    Garbled,
    /// Something else comes first.
    Noisy,
}

/// The logic, the VESCs, their wheels, and a clock.
pub(super) struct Robot {
    pub(super) logic: VescLogic,
    pub(super) vescs: Vescs,
    /// That at the port of the second VESC, if it has one.
    pub(super) other: Option<Vescs>,
    /// Encoder pulses per second, and the pulses.
    pub(super) qpps: [f64; 2],
    pub(super) pulses: [f64; 2],
    pub(super) began: Instant,
    pub(super) now: Instant,
    pub(super) plugged: bool,
    pub(super) cable: Cable,
    pub(super) opened: usize,
    pub(super) closed: usize,
    pub(super) ended: bool,
    /// The payloads, and when they were sent.
    pub(super) sent: Vec<(Instant, Unit, Vec<u8>)>,
    pub(super) heard: Heard,
}

pub(super) fn options() -> Options {
    Options {
        can_id: Some(CAN_ID),
        pole_pairs: Some(7),
        gear_ratio: Some(10.0),
        wheel_diameter_mm: Some(120.0),
        min_erpm: Some(100),
        ..Options::default()
    }
}

/// The payload of a command that turns a wheel.
pub(super) fn erpm(erpm: i32) -> Vec<u8> {
    [&[8], &erpm.to_be_bytes()[..]].concat()
}

/// The same for one that brakes it.
pub(super) fn brake() -> Vec<u8> {
    [&[7], &5_000_i32.to_be_bytes()[..]].concat()
}

impl Robot {
    /// A robot that is ready.
    pub(super) fn new() -> Self {
        Self::with(Firmware::V6_02, |_| {})
    }

    pub(super) fn with(firmware: Firmware, change: impl FnOnce(&mut Options)) -> Self {
        let mut robot = Self::starting(firmware, change);
        robot.advance(100);
        assert!(robot.logic.is_ready(), "{:?}", robot.heard.notes);
        robot
    }

    /// A robot that was just switched on.
    pub(super) fn starting(firmware: Firmware, change: impl FnOnce(&mut Options)) -> Self {
        let mut options = options();
        change(&mut options);
        let (settings, _, second) = options.settings().unwrap();
        let now = Instant::now();
        Self {
            logic: VescLogic::new(settings, now),
            vescs: Vescs::new(firmware),
            other: second.map(|_| Vescs::new(firmware)),
            qpps: [0.0; 2],
            pulses: [0.0; 2],
            began: now,
            now,
            plugged: true,
            cable: Cable::Well,
            opened: 0,
            closed: 0,
            ended: false,
            sent: Vec::new(),
            heard: Heard::default(),
        }
    }

    pub(super) fn time(&self) -> Duration {
        self.now - self.began
    }

    /// What drives the left and the right wheel.
    pub(super) fn drives(&self) -> [Drive; 2] {
        let [left, right, ..] = self.vescs.drives();
        match &self.other {
            Some(other) => [left, other.drives()[0]],
            None => [left, right],
        }
    }

    /// Moves the wheels until then: they follow a speed at once, and brake as real ones.
    pub(super) fn pass(&mut self, until: Instant) {
        while self.now < until {
            self.now += MS;
            let drives = self.drives();
            let wheels = self.qpps.iter_mut().zip(&mut self.pulses);
            for ((qpps, pulses), drive) in wheels.zip(drives) {
                let step = |limit: f64| limit * MS.as_secs_f64();
                match drive {
                    drive if drive.is_zero() => {
                        let limit = match drive {
                            Drive::Speed {
                                acceleration_qpps2: Some(limit),
                                ..
                            } => limit,
                            _ => ROLLING_QPPS2,
                        };
                        *qpps -= qpps.clamp(-step(limit), step(limit));
                    }
                    Drive::Speed { qpps: wanted, .. } => *qpps = wanted,
                    Drive::Duty(duty) => panic!("{duty}"),
                }
                *pulses += step(*qpps);
            }
            let [left, right] = [0, 1].map(|side| Measured {
                speed_qpps: self.qpps[side].round() as i32,
                pulses: self.pulses[side] as i64,
                ..Measured::default()
            });
            let time = self.time();
            self.vescs.handle_readings(time, [left, right, left, right]);
            if let Some(other) = &mut self.other {
                other.handle_readings(time, [right; 4]);
            }
        }
    }

    /// Carries out every action that needs no timer.
    pub(super) fn settle(&mut self) {
        for _ in 0..1_000 {
            let action = self.logic.poll_action(self.now);
            self.heard.listen(&mut self.logic);
            match action {
                None => return,
                Some(VescAction::End) => {
                    self.ended = true;
                    return;
                }
                Some(VescAction::Open) if self.plugged => {
                    self.opened += 1;
                    self.logic.opened(self.now);
                }
                Some(VescAction::Open) => self.logic.failed(self.now, "it does not exist"),
                Some(VescAction::Close) => self.closed += 1,
                Some(VescAction::Write(port, bytes)) => self.write(port, &bytes),
            }
        }
        panic!("it never comes to rest");
    }

    pub(super) fn write(&mut self, port: Unit, bytes: &[u8]) {
        let mut frames = Frames::default();
        frames.push(bytes);
        while let Some(payload) = frames.next_payload() {
            self.sent.push((self.now, port, payload));
        }
        if !self.plugged {
            return self.logic.failed(self.now, "it is gone");
        }
        let time = self.time();
        let vescs = match (port, &mut self.other) {
            (Unit::Second, Some(other)) => other,
            _ => &mut self.vescs,
        };
        if self.cable != Cable::Silent {
            vescs.handle_bytes(time, bytes);
        }
        let answers: Vec<_> = std::iter::from_fn(|| vescs.poll_output()).collect();
        self.pass(self.now + 2 * MS);
        for mut answer in answers {
            match self.cable {
                Cable::Silent => continue,
                Cable::Garbled => answer[9] ^= 0x40,
                Cable::Noisy => {
                    (self.logic).handle_bytes(self.now, port, b"\x02\x00\xFF\x03\x00\x02\x01\x02");
                }
                Cable::Well => {}
            }
            self.logic.handle_bytes(self.now, port, &answer);
        }
    }

    /// Advances the clock from timer to timer.
    pub(super) fn advance(&mut self, millis: u64) {
        let end = self.now + Duration::from_millis(millis);
        self.settle();
        let mut turns = 0;
        while let Some(due) = self.logic.wake_at().filter(|due| *due <= end) {
            turns += 1;
            assert!(turns < 10_000, "timers that do nothing");
            self.pass(due);
            self.logic.handle_timeout(self.now);
            self.settle();
        }
        self.pass(end);
    }

    /// Advances the clock until this is true.
    pub(super) fn until(&mut self, is_true: impl Fn(&Self) -> bool) {
        for _ in 0..20_000 {
            if is_true(self) {
                return;
            }
            self.advance(1);
        }
        panic!("it never comes true: {:?}", self.heard.notes);
    }

    pub(super) fn drive(&mut self, client: ClientId, speeds: WheelSpeeds) -> Option<Refusal> {
        let refusal = self.logic.drive(self.now, &[client], speeds);
        self.settle();
        refusal
    }

    pub(super) fn ask(&mut self) {
        self.logic.ask(self.now, question());
        self.settle();
    }

    /// Whether a motor is told to turn.
    pub(super) fn turns(&self) -> bool {
        self.drives().iter().any(|drive| !drive.is_zero())
    }

    pub(super) fn stands(&self) -> bool {
        self.qpps == [0.0; 2]
    }

    /// The commands for the motors since the last call, without those that were passed on.
    pub(super) fn motors(&mut self) -> Vec<Vec<u8>> {
        let sent = std::mem::take(&mut self.sent).into_iter();
        let sent = sent.map(|(_, _, payload)| payload);
        sent.filter(|payload| [7, 8].contains(&payload[0]))
            .collect()
    }

    pub(super) fn trouble(&self) -> String {
        self.logic.trouble().unwrap_or_default().into_owned()
    }
}
