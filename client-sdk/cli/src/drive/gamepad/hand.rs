//! From the state of a gamepad to wheel speeds. PURE.

use std::time::{Duration, Instant};

use amber_client::WheelSpeeds;

use super::pad::{Event, Pad};
use crate::drive::hand::{FASTEST_MM_S, Hand, Wish};

/// A gamepad without wires may be out of reach without a word. The stick in a hand trembles, so after
/// this time without an event, the button must be pressed again.
const SILENT: Duration = Duration::from_secs(10);

/// A person with a gamepad.
#[derive(Clone, Debug)]
pub(in crate::drive) struct PadHand {
    pad: Pad,
    speed_mm_s: i32,
    heard: Option<Instant>,
}

impl PadHand {
    pub(in crate::drive) fn new(pad: Pad, speed_mm_s: i32) -> Self {
        Self {
            pad,
            speed_mm_s,
            heard: None,
        }
    }

    fn wanted(&self) -> WheelSpeeds {
        if !self.pad.is_held() {
            return WheelSpeeds::STOP;
        }
        let [right, ahead] = self.pad.stick();
        let speed_mm_s = f64::from(self.speed_mm_s());
        // As with the keys, turns are half as fast.
        let turn = right / 2.0;
        let sides = [ahead + turn, ahead - turn];
        rounded(sides.map(|part| part.clamp(-1.0, 1.0) * speed_mm_s))
    }

    /// When the silence of the gamepad is too long.
    fn silent_at(&self) -> Option<Instant> {
        self.heard.map(|heard| heard + SILENT)
    }
}

impl Hand for PadHand {
    type Input = Vec<Event>;

    const NAME: &'static str = "gamepad";

    fn press(&mut self, now: Instant, events: Vec<Event>) -> Wish {
        if self.silent_at().is_some_and(|at| at <= now) {
            self.pad.doubt();
        }
        self.heard = Some(now);
        for event in events {
            self.pad.handle(event);
        }
        Wish::GoOn
    }

    fn speeds(&self, now: Instant) -> WheelSpeeds {
        match self.silent_at() {
            Some(at) if now < at => self.wanted(),
            _ => WheelSpeeds::STOP,
        }
    }

    fn next_timeout(&self, now: Instant) -> Option<Instant> {
        let silent_at = self.silent_at().filter(|at| *at > now);
        silent_at.filter(|_| self.wanted() != WheelSpeeds::STOP)
    }

    fn speed_mm_s(&self) -> i32 {
        match self.pad.is_fast() {
            true => (2 * self.speed_mm_s).min(FASTEST_MM_S),
            false => self.speed_mm_s,
        }
    }
}

/// The nearest speeds that are sent: a hand trembles.
fn rounded(speeds: [f64; 2]) -> WheelSpeeds {
    const STEP_MM_S: f64 = 5.0;
    let [left, right] = speeds.map(|mm_s| ((mm_s / STEP_MM_S).round() * STEP_MM_S) as i32);
    WheelSpeeds::sides(left, right)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drive::gamepad::pad::{ABS, Axis, KEY, LEFT_SHOULDER, X, Y};

    const FAST: u16 = 0x137;

    /// A gamepad at rest, whose stick was at rest.
    fn hand(now: Instant) -> PadHand {
        let axis = Axis {
            min: -100,
            max: 100,
            flat: 0,
        };
        let mut hand = PadHand::new(Pad::new([axis; 2], false), 200);
        hand.press(now, events(&[(ABS, X, 0), (ABS, Y, 0)]));
        hand
    }

    fn events(all: &[(u16, u16, i32)]) -> Vec<Event> {
        let event = |&(kind, code, value)| Event { kind, code, value };
        all.iter().map(event).collect()
    }

    #[test]
    fn the_stick_drives_while_the_button_is_held() {
        let now = Instant::now();
        for (x, y, left, right) in [
            (0, -100, 200, 200),
            (0, 100, -200, -200),
            (100, 0, 100, -100),
            (-100, 0, -100, 100),
            (0, 5, 0, 0),
            // Far into the corner: the stick is a circle.
            (100, -100, 200, 70),
        ] {
            let mut hand = hand(now);
            hand.press(now, events(&[(ABS, X, x), (ABS, Y, y)]));
            assert_eq!(hand.speeds(now), WheelSpeeds::STOP);
            hand.press(now, events(&[(KEY, LEFT_SHOULDER, 1)]));
            assert_eq!(hand.speeds(now), WheelSpeeds::sides(left, right), "{x} {y}");
            hand.press(now, events(&[(KEY, LEFT_SHOULDER, 0)]));
            assert_eq!(hand.speeds(now), WheelSpeeds::STOP);
        }
    }

    #[test]
    fn the_other_button_doubles_the_speed() {
        let now = Instant::now();
        let mut hand = hand(now);
        hand.press(
            now,
            events(&[(KEY, LEFT_SHOULDER, 1), (KEY, FAST, 1), (ABS, Y, -100)]),
        );
        assert_eq!(hand.speeds(now), WheelSpeeds::all(400));
        assert_eq!(hand.speed_mm_s(), 400);
    }

    #[test]
    fn a_silent_gamepad_stops_the_wheels_until_the_button_is_pressed_again() {
        let now = Instant::now();
        let mut hand = hand(now);
        let drive = events(&[(KEY, LEFT_SHOULDER, 1), (ABS, Y, -100)]);
        hand.press(now, drive.clone());
        let silent = now + SILENT;
        assert_eq!(hand.next_timeout(now), Some(silent));
        assert_eq!(hand.speeds(silent), WheelSpeeds::STOP);
        // It is back, and the stick is where it was.
        hand.press(silent, events(&[(ABS, Y, -99)]));
        assert_eq!(hand.speeds(silent), WheelSpeeds::STOP);
        assert_eq!(hand.next_timeout(silent), None);
        hand.press(silent, events(&[(KEY, LEFT_SHOULDER, 0), (ABS, Y, 0)]));
        hand.press(silent, drive);
        assert_eq!(hand.speeds(silent), WheelSpeeds::all(200));
    }
}
