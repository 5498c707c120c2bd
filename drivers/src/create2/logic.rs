//! Decides what to do with the robot, and when. PURE.
//!
//! ```text
//!           opened            a frame            shutdown
//!  Absent ----------> Waking ---------> Ready --------------> Stopping --> Ended
//!    ^                  |                 |
//!    +-- 3 s of silence +-- 0.5 s of it --+
//! ```
//!
//! The rules that keep the wheels under control:
//!
//! - Commands are 20 ms apart. No command is confirmed, so the newest one for the wheels is repeated.
//! - The driver takes the robot into safe mode at its start, if nothing keeps it from driving, and
//!   otherwise only for a command that moves. The robot leaves safe mode by itself: the frames say so.
//! - What stands in the way stops the wheels, and so does every problem: at the start, before the robot
//!   is given up, and at the end, when it is left in passive mode.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

use amber_values::WheelSpeeds;

use super::contacts::contacts;
use super::hindrance::{Hindrance, Hindrances};
use super::odometer::Odometer;
use super::protocol::{Command, Frames, MAX_MM_S, PACKETS, Sensors};
use super::{RobotNote, Settings};
use crate::wheels::{
    BatteryReading, Felt, Model, Note, Refusal, Service, Sides, StopReason, StreamAction,
    StreamModel,
};

/// The robot needs this time after a command.
const GAP: Duration = Duration::from_millis(20);
/// The interval between repetitions of a command for the wheels.
const REPEAT: Duration = Duration::from_millis(250);
/// If a repetition is so late, this process was frozen, and the guard has stopped the wheels.
const LATE: Duration = Duration::from_millis(800);
/// How often a robot is asked for its sensors, or for safe mode, until it does so.
const ASK_AGAIN: Duration = Duration::from_millis(500);
/// How long a robot may take to wake up.
const WAKES: Duration = Duration::from_secs(3);
/// How long it may take to enter safe mode.
const OBEYS: Duration = Duration::from_secs(1);
/// After this time without a frame, the robot is gone.
const SILENCE: Duration = Duration::from_millis(500);
/// Below this voltage, a battery with 12 cells of nickel or 4 of lithium is almost empty.
const LOW_MV: u16 = 12_500;

/// What the driver says if the robot has left safe mode for an unknown reason.
const LEFT: &str = "the robot has left safe mode";
/// What it says if the robot does not enter it.
const STUBBORN: &str =
    "the robot does not enter safe mode: check its wheels, its cliff sensors and its charger";

/// The state of the robot.
#[derive(Debug)]
pub struct Create2Logic {
    settings: Settings,
    phase: Phase,
    is_open: bool,
    /// Whether the robot must be told to stop before the port is closed.
    says_farewell: bool,
    /// Whether anything has arrived since the port was opened.
    has_heard: bool,
    frames: Frames,
    /// What the last frame said, and when.
    sensed: Option<(Instant, Sensors)>,
    hindrances: Hindrances,
    odometer: Odometer,
    grip: Grip,
    /// Whether it did not enter safe mode when it was last told to.
    is_stubborn: bool,
    /// Commands that come before those for the wheels.
    outbox: VecDeque<Command>,
    written: Instant,
    /// Whether the newest command for the wheels must be sent, and when it was sent last.
    untold: bool,
    told: Instant,
    service: Service<RobotNote>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Absent {
        until: Instant,
    },
    Opening,
    Waking {
        since: Instant,
        asked: Instant,
    },
    Ready,
    /// Ends when the outbox is empty.
    Stopping,
    Ended,
}

/// Whether the robot obeys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Grip {
    /// It does what it likes, with its motors off.
    Released,
    /// It was told to enter safe mode.
    Asked { since: Instant, last: Instant },
    /// It is in safe mode.
    Held,
}

impl Model for Create2Logic {
    type Special = RobotNote;

    fn service(&self) -> &Service<RobotNote> {
        &self.service
    }

    fn service_mut(&mut self) -> &mut Service<RobotNote> {
        &mut self.service
    }

    fn is_ready(&self) -> bool {
        self.phase == Phase::Ready
    }

    fn refusal(&self) -> Option<Refusal> {
        (!self.is_ready()).then_some(Refusal::Away)
    }

    fn refusal_of(&self, speeds: WheelSpeeds) -> Option<Refusal> {
        let hindrance = self.hindrances.against(Sides::of(speeds))?;
        Some(Refusal::Hindered(hindrance.text()))
    }

    fn handle_command(&mut self, now: Instant) {
        self.untold = true;
        if self.grip == Grip::Released && self.service.motion.turns() {
            self.take(now);
        }
    }

    fn handle_stop(&mut self) {
        self.untold = true;
    }

    fn shut_down(&mut self) {
        // Before it was opened, the robot was told nothing.
        self.phase = match self.phase {
            Phase::Waking { .. } | Phase::Ready => Phase::Stopping,
            _ => Phase::Ended,
        };
        self.outbox = [Command::STAND, Command::Quiet, Command::Start].into();
        self.service.motion.forget();
    }

    fn battery(&self, now: Instant) -> Result<BatteryReading, Cow<'_, str>> {
        if let Some(trouble) = self.service.trouble() {
            return Err(trouble.into());
        }
        let (then, sensors) = (self.sensed).ok_or("the robot has not reported its battery")?;
        Ok(BatteryReading {
            mv: sensors.battery_mv.into(),
            is_low: sensors.battery_mv < LOW_MV,
            age: now.saturating_duration_since(then),
        })
    }

    fn contacts(&self, now: Instant) -> Result<Felt, Cow<'_, str>> {
        if let Some(trouble) = self.service.trouble() {
            return Err(trouble.into());
        }
        let (then, sensors) = (self.sensed).ok_or("the robot has not said what it feels")?;
        Ok(Felt {
            contacts: contacts(&sensors),
            age: now.saturating_duration_since(then),
        })
    }
}

impl StreamModel for Create2Logic {
    type Settings = Settings;

    fn new(settings: Settings, now: Instant) -> Self {
        Self {
            settings,
            phase: Phase::Absent { until: now },
            is_open: false,
            says_farewell: false,
            has_heard: false,
            frames: Frames::new(PACKETS),
            sensed: None,
            hindrances: Hindrances::default(),
            odometer: Odometer::new(MAX_MM_S.into()),
            grip: Grip::Released,
            is_stubborn: false,
            outbox: VecDeque::new(),
            written: now,
            untold: false,
            told: now,
            service: Service::new(now, settings.rules),
        }
    }

    fn opened(&mut self, now: Instant) {
        self.is_open = true;
        self.has_heard = false;
        self.frames.clear();
        self.sensed = None;
        self.hindrances = Hindrances::default();
        self.odometer = Odometer::new(MAX_MM_S.into());
        self.grip = Grip::Released;
        if self.phase != Phase::Ended {
            self.phase = Phase::Waking {
                since: now,
                asked: now,
            };
            self.ask_for_frames();
        }
    }

    fn failed(&mut self, now: Instant, reason: &str) {
        // A farewell to a port that has failed, too, fails.
        if !matches!(self.phase, Phase::Absent { .. } | Phase::Ended) {
            self.give_up(now, reason.to_owned());
        }
    }

    fn handle_bytes(&mut self, now: Instant, bytes: &[u8]) {
        self.has_heard = true;
        self.frames.extend(bytes);
        while let Some(frame) = self.frames.pop() {
            self.service.counters.bad_replies += u64::from(frame.missed);
            if let Some(sensors) = Sensors::of(&frame.values) {
                self.handle_frame(now, sensors, frame.missed);
            }
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        match self.phase {
            Phase::Waking { since, .. } if now >= since + WAKES => {
                self.give_up(now, self.never_woke());
            }
            Phase::Waking { since, asked } if now >= asked + ASK_AGAIN => {
                self.phase = Phase::Waking { since, asked: now };
                self.ask_for_frames();
            }
            Phase::Ready if now >= self.silent_at() => {
                let trouble = "the robot sends nothing any more: check its cable and its battery; if it \
                               sleeps, press its CLEAN button";
                self.give_up(now, trouble.to_owned());
            }
            _ => {}
        }
        if self.idle_at().is_some_and(|due| now >= due) {
            self.service.motion.idles();
            self.stop(StopReason::Idle);
        }
    }

    fn poll_action(&mut self, now: Instant) -> Option<StreamAction> {
        match self.phase {
            Phase::Absent { .. } if std::mem::take(&mut self.says_farewell) => {
                let commands = [Command::STAND, Command::STAND, Command::Start];
                let bytes = commands.map(Command::encode).concat();
                return Some(StreamAction::Write(bytes));
            }
            Phase::Absent { .. } if self.is_open => {
                self.is_open = false;
                return Some(StreamAction::Close);
            }
            Phase::Absent { until } => {
                if now < until {
                    return None;
                }
                self.phase = Phase::Opening;
                return Some(StreamAction::Open);
            }
            Phase::Opening => return None,
            Phase::Stopping if self.outbox.is_empty() => self.phase = Phase::Ended,
            Phase::Waking { .. } | Phase::Ready | Phase::Stopping | Phase::Ended => {}
        }
        if self.phase == Phase::Ended {
            return Some(StreamAction::End);
        }
        let command = self.next_command(now)?;
        self.written = now;
        Some(StreamAction::Write(command.encode()))
    }

    fn wake_at(&self) -> Option<Instant> {
        let own = match self.phase {
            Phase::Absent { until } => return Some(until),
            Phase::Opening | Phase::Ended => return None,
            Phase::Waking { since, asked } => Some((since + WAKES).min(asked + ASK_AGAIN)),
            Phase::Ready => Some(self.silent_at()),
            Phase::Stopping => None,
        };
        let waiting = (!self.outbox.is_empty()).then_some(self.written + GAP);
        [own, waiting, self.tells_at(), self.idle_at()]
            .into_iter()
            .flatten()
            .min()
    }

    fn hindrance(&self) -> Option<&str> {
        let hindrance = self.hindrances.first().map(Hindrance::text);
        hindrance.or(self.is_stubborn.then_some(STUBBORN))
    }

    fn last_words(&self) -> Option<Vec<u8>> {
        // The first one may be the rest of a command whose beginning the robot has.
        Some([Command::STAND.encode(), Command::STAND.encode()].concat())
    }
}

impl Create2Logic {
    /// START also ends what the robot does: its wheels stop.
    fn ask_for_frames(&mut self) {
        self.outbox = [Command::Start, Command::Stream(PACKETS)].into();
    }

    /// Takes the robot into safe mode.
    fn take(&mut self, now: Instant) {
        self.grip = Grip::Asked {
            since: now,
            last: now,
        };
        self.outbox.push_back(Command::Safe);
    }

    /// Drives on only if nobody can have stopped the wheels meanwhile.
    fn notice_delay(&mut self, now: Instant) {
        if self.grip == Grip::Held && !self.untold && now >= self.told + LATE {
            self.stop(StopReason::Late);
        }
    }

    fn next_command(&mut self, now: Instant) -> Option<Command> {
        self.notice_delay(now);
        if now < self.written + GAP {
            return None;
        }
        if let Some(command) = self.outbox.pop_front() {
            return Some(command);
        }
        if self.tells_at().is_none_or(|at| now < at) {
            return None;
        }
        self.untold = false;
        self.told = now;
        let Sides {
            left_mm_s,
            right_mm_s,
        } = self.service.sides();
        // Within 16 bits.
        let [left, right] =
            [left_mm_s, right_mm_s].map(|mm_s| mm_s.clamp(-MAX_MM_S, MAX_MM_S) as i16);
        Some(Command::Drive { left, right })
    }

    fn handle_frame(&mut self, now: Instant, sensors: Sensors, missed: u32) {
        match self.phase {
            // It may be from a stream of another program: the robot has not yet read START.
            Phase::Waking { .. } if !self.outbox.is_empty() || now < self.written + 2 * GAP => {
                return;
            }
            Phase::Waking { .. } | Phase::Ready => {}
            _ => return,
        }
        self.sensed = Some((now, sensors));
        let before = self.hindrances.first();
        self.hindrances.sense(now, &sensors);
        let hindrance = self.hindrances.first();
        if let Phase::Waking { .. } = self.phase {
            self.phase = Phase::Ready;
            self.untold = false;
            let volts = f64::from(sensors.battery_mv) / 1_000.0;
            let name = || format!("Create 2 or Roomba, battery {volts:.1} V");
            self.service.works(now, name);
            if hindrance.is_none() {
                self.take(now);
            }
        }
        if let Some(hindrance) = hindrance.filter(|_| hindrance != before) {
            (self.service).say(Note::Special(RobotNote::Hindered(hindrance)));
        }
        self.follow_mode(now, sensors.obeys);
        let target = Sides::of(self.service.motion.target());
        if let Some(hindrance) = self.hindrances.against(target) {
            self.stop(StopReason::Hindered(hindrance.text()));
        }
        self.odometer.read(now, sensors.counts, missed);
        self.handle_speeds(now);
    }

    /// Follows the robot into and out of safe mode.
    fn follow_mode(&mut self, now: Instant, obeys: bool) {
        match self.grip {
            Grip::Held if !obeys => {
                self.grip = Grip::Released;
                let hindrance = self.hindrances.first();
                if hindrance.is_none() {
                    self.service.say(Note::Special(RobotNote::LeftSafeMode));
                }
                self.stop(StopReason::Hindered(
                    hindrance.map_or(LEFT, Hindrance::text),
                ));
            }
            Grip::Asked { .. } if obeys => {
                self.grip = Grip::Held;
                self.is_stubborn = false;
                self.untold = true;
            }
            Grip::Asked { since, .. } if now >= since + OBEYS => {
                self.grip = Grip::Released;
                self.is_stubborn = true;
                self.stop(StopReason::Hindered(STUBBORN));
            }
            Grip::Asked { since, last } if now >= last + ASK_AGAIN => {
                self.grip = Grip::Asked { since, last: now };
                self.outbox.push_back(Command::Safe);
            }
            Grip::Held | Grip::Asked { .. } | Grip::Released => {}
        }
    }

    /// Answers the requests that were there before this frame.
    fn handle_speeds(&mut self, now: Instant) {
        // Without speeds, requests wait for the next frame.
        let Some((sides, middle)) = self.odometer.speeds() else {
            return;
        };
        if let Some(measured) = self.service.questions.complete(now) {
            let age = now.saturating_duration_since(middle);
            let published = measured.published.map(|_| age);
            (self.service).tell(sides.wheels(), measured.askers, published);
        }
        self.service.questions.start(now);
    }

    /// Starts over. Logs the problem unless it was already logged.
    fn give_up(&mut self, now: Instant, trouble: String) {
        let until = self.service.give_up(now, trouble);
        self.outbox.clear();
        self.grip = Grip::Released;
        self.is_stubborn = false;
        self.hindrances = Hindrances::default();
        self.says_farewell = self.is_open;
        self.phase = match self.phase {
            Phase::Stopping | Phase::Ended => Phase::Ended,
            _ => Phase::Absent { until },
        };
    }

    fn never_woke(&self) -> String {
        let baud = self.settings.baud;
        match self.has_heard {
            false => format!(
                "the robot does not answer at {baud} baud: press its CLEAN button, as it may sleep; check \
                 its battery, --port, and --baud (115200 or 19200)"
            ),
            true => format!(
                "what arrives at {baud} baud is not from a Create 2 or a Roomba: check --baud (115200 or \
                 19200) and --port"
            ),
        }
    }

    /// When the newest command for the wheels must be sent.
    fn tells_at(&self) -> Option<Instant> {
        let free = self.written + GAP;
        let due = match self.untold {
            true => free,
            false => free.max(self.told + REPEAT),
        };
        (self.phase == Phase::Ready && self.grip == Grip::Held).then_some(due)
    }

    fn silent_at(&self) -> Instant {
        let heard = self.sensed.map_or(self.written, |(heard, _)| heard);
        heard + SILENCE
    }

    fn idle_at(&self) -> Option<Instant> {
        let due = self.service.motion.idle_stop_due();
        due.filter(|_| self.is_ready())
    }
}

#[cfg(test)]
mod tests;
