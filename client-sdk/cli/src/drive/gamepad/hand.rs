//! From the state of a gamepad to wheel speeds. PURE.

use std::time::{Duration, Instant};

use amber_client::WheelSpeeds;
use amber_proto::gamepad::GamepadState;
use amber_proto::gamepad::gamepad_state::Button;

use crate::drive::hand::{FASTEST_MM_S, Hand, Wish};

/// A gamepad without wires may be out of reach without a word. The stick in a hand trembles, so after
/// this time without an event, the button must be pressed again.
const SILENT: Duration = Duration::from_secs(10);
/// The device publishes its state twice as often at least. Without it, the same holds.
const UNHEARD: Duration = Duration::from_secs(1);
/// Small movements of the stick are slower by this exponent.
const EXPONENT: f64 = 1.5;

/// A person with a gamepad.
#[derive(Clone, Debug)]
pub(in crate::drive) struct PadHand {
    state: GamepadState,
    speed_mm_s: i32,
    /// Until when the state counts.
    until: Option<Instant>,
    /// The button was seen up, so its press is one by a person. After a silence, a button that was held
    /// before must be seen up again.
    was_up: bool,
}

impl PadHand {
    pub(in crate::drive) fn new(speed_mm_s: i32) -> Self {
        Self {
            state: GamepadState::default(),
            speed_mm_s,
            until: None,
            was_up: false,
        }
    }

    fn holds(&self, button: Button) -> bool {
        self.state.buttons().any(|held| held == button)
    }

    fn wanted(&self) -> WheelSpeeds {
        let is_held = self.was_up && self.holds(Button::LeftShoulder);
        let (right, ahead) = (self.state.left_x(), self.state.left_y());
        let far = right.hypot(ahead);
        if !is_held || far == 0.0 {
            return WheelSpeeds::STOP;
        }
        let speed_mm_s = f64::from(self.speed_mm_s());
        let [right, ahead] = [right, ahead].map(|way| way / far * far.powf(EXPONENT));
        // As with the keys, turns are half as fast.
        let turn = right / 2.0;
        let sides = [ahead + turn, ahead - turn];
        rounded(sides.map(|part| part.clamp(-1.0, 1.0) * speed_mm_s))
    }
}

impl Hand for PadHand {
    type Input = GamepadState;

    const NAME: &'static str = "gamepad";

    fn press(&mut self, now: Instant, state: GamepadState) -> Wish {
        let is_silent = self.until.is_some_and(|until| until <= now);
        let is_doubtful = is_silent && self.holds(Button::LeftShoulder);
        // Only the device says how old its state is: a gamepad of this computer is heard at once.
        let lasts = match state.age {
            Some(age) => UNHEARD.min(SILENT.saturating_sub(Duration::from_millis(age.into()))),
            None => SILENT,
        };
        self.state = state;
        self.until = Some(now + lasts);
        let is_up = !self.holds(Button::LeftShoulder);
        self.was_up = is_up || self.was_up && !is_doubtful;
        Wish::GoOn
    }

    fn speeds(&self, now: Instant) -> WheelSpeeds {
        match self.until {
            Some(until) if now < until => self.wanted(),
            _ => WheelSpeeds::STOP,
        }
    }

    fn next_timeout(&self, now: Instant) -> Option<Instant> {
        let until = self.until.filter(|until| *until > now);
        until.filter(|_| self.wanted() != WheelSpeeds::STOP)
    }

    fn speed_mm_s(&self) -> i32 {
        match self.holds(Button::RightShoulder) {
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
    use proptest::prelude::*;

    use super::*;

    const AHEAD: [f64; 2] = [0.0, 1.0];
    const HELD: &[Button] = &[Button::LeftShoulder];

    /// A gamepad at rest.
    fn hand(now: Instant) -> PadHand {
        let mut hand = PadHand::new(200);
        hand.press(now, state([0.0; 2], &[]));
        hand
    }

    fn state([left_x, left_y]: [f64; 2], buttons: &[Button]) -> GamepadState {
        GamepadState {
            connected: Some(true),
            left_x: Some(left_x),
            left_y: Some(left_y),
            buttons: buttons.iter().map(|button| (*button).into()).collect(),
            ..GamepadState::default()
        }
    }

    fn told(stick: [f64; 2], buttons: &[Button], age: u32) -> GamepadState {
        GamepadState {
            age: Some(age),
            ..state(stick, buttons)
        }
    }

    #[test]
    fn the_stick_drives_while_the_button_is_held() {
        let now = Instant::now();
        for (stick, left, right) in [
            (AHEAD, 200, 200),
            ([0.0, -1.0], -200, -200),
            ([1.0, 0.0], 100, -100),
            ([-1.0, 0.0], -100, 100),
            ([0.0, 0.0], 0, 0),
            // Half of the way, to the power of 1.5.
            ([0.0, 0.5], 70, 70),
            // Far into the corner.
            ([0.707, 0.707], 200, 70),
        ] {
            let mut hand = hand(now);
            hand.press(now, state(stick, &[]));
            assert_eq!(hand.speeds(now), WheelSpeeds::STOP);
            hand.press(now, state(stick, HELD));
            assert_eq!(
                hand.speeds(now),
                WheelSpeeds::sides(left, right),
                "{stick:?}"
            );
            hand.press(now, state(stick, &[Button::South]));
            assert_eq!(hand.speeds(now), WheelSpeeds::STOP);
        }
    }

    #[test]
    fn a_button_that_is_held_at_the_start_does_not_drive() {
        let now = Instant::now();
        let mut hand = PadHand::new(200);
        hand.press(now, state(AHEAD, HELD));
        hand.press(now, state(AHEAD, HELD));
        assert_eq!(hand.speeds(now), WheelSpeeds::STOP);
        hand.press(now, state(AHEAD, &[]));
        hand.press(now, state(AHEAD, HELD));
        assert_eq!(hand.speeds(now), WheelSpeeds::all(200));
    }

    #[test]
    fn the_other_button_doubles_the_speed() {
        let now = Instant::now();
        let mut hand = hand(now);
        let both = [Button::LeftShoulder, Button::RightShoulder];
        hand.press(now, state(AHEAD, &both));
        assert_eq!(hand.speeds(now), WheelSpeeds::all(400));
        assert_eq!(hand.speed_mm_s(), 400);
    }

    #[test]
    fn a_silent_gamepad_stops_the_wheels_until_the_button_is_pressed_again() {
        let now = Instant::now();
        let mut hand = hand(now);
        hand.press(now, state(AHEAD, HELD));
        let silent = now + SILENT;
        assert_eq!(hand.next_timeout(now), Some(silent));
        assert_eq!(hand.speeds(silent), WheelSpeeds::STOP);
        // It is back, and all is as before.
        hand.press(silent, state([0.0, 0.99], HELD));
        assert_eq!(hand.speeds(silent), WheelSpeeds::STOP);
        assert_eq!(hand.next_timeout(silent), None);
        hand.press(silent, state([0.0; 2], &[]));
        hand.press(silent, state(AHEAD, HELD));
        assert_eq!(hand.speeds(silent), WheelSpeeds::all(200));
        // One that lies on the table for long is no problem.
        hand.press(silent, state([0.0; 2], &[]));
        let later = silent + 10 * SILENT;
        hand.press(later, state(AHEAD, HELD));
        assert_eq!(hand.speeds(later), WheelSpeeds::all(200));
    }

    #[test]
    fn the_state_of_the_device_counts_for_a_second_and_only_while_its_gamepad_speaks() {
        let now = Instant::now();
        let second = Duration::from_secs(1);
        let mut hand = hand(now);
        hand.press(now, told(AHEAD, HELD, 20));
        assert_eq!(hand.speeds(now + second / 2), WheelSpeeds::all(200));
        assert_eq!(hand.next_timeout(now), Some(now + second));
        assert_eq!(hand.speeds(now + second), WheelSpeeds::STOP);
        // The device goes on, but the gamepad says nothing.
        for half_seconds in 0..20 {
            let age = half_seconds * 500;
            let now = now + Duration::from_millis(age.into());
            if half_seconds == 0 {
                hand.press(now, told(AHEAD, &[], age));
            }
            hand.press(now, told(AHEAD, HELD, age));
            assert_eq!(hand.speeds(now), WheelSpeeds::all(200), "{age} ms");
        }
        let end = now + SILENT;
        assert_eq!(hand.speeds(end), WheelSpeeds::STOP);
        hand.press(end, told(AHEAD, HELD, 10_000));
        assert_eq!(hand.speeds(end), WheelSpeeds::STOP);
        // Its gamepad is unplugged.
        let mut hand = self::hand(now);
        hand.press(now, told(AHEAD, HELD, 0));
        let none = GamepadState {
            connected: Some(false),
            ..GamepadState::default()
        };
        hand.press(now, none);
        assert_eq!(hand.speeds(now), WheelSpeeds::STOP);
    }

    proptest! {
        #[test]
        fn nothing_drives_without_the_button(
            presses in proptest::collection::vec((-1.0..1.0, -1.0..1.0, 0..4_u32, 0..12_000_u64), 0..40),
        ) {
            let mut now = Instant::now();
            let mut hand = PadHand::new(200);
            for (x, y, held, wait_ms) in presses {
                now += Duration::from_millis(wait_ms);
                let buttons = [Button::LeftShoulder, Button::RightShoulder];
                let held = buttons.into_iter().filter(|it| (held >> (*it as u32 - 9)) & 1 == 1);
                let held: Vec<_> = held.collect();
                hand.press(now, state([x, y], &held));
                let moves = hand.speeds(now) != WheelSpeeds::STOP;
                prop_assert!(!moves || held.contains(&Button::LeftShoulder));
                prop_assert_eq!(hand.speeds(now + SILENT), WheelSpeeds::STOP);
            }
        }
    }
}
