//! From keys to wheel speeds. PURE.
//!
//! Terminals report a pressed key, repeatedly while it is held, but do not report its
//! release. A key that is not repeated for a while counts as released.

use std::time::{Duration, Instant};

use amber_client::WheelSpeeds;

use super::hand::{FASTEST_MM_S, Hand, SLOWEST_MM_S, Wish};

/// How long a key counts as held after its first report: keyboards wait before they
/// repeat.
pub(super) const HELD_ONCE: Duration = Duration::from_millis(500);
/// How long a key counts as held after a repetition.
pub(super) const HELD: Duration = Duration::from_millis(300);
const STEP_MM_S: i32 = 50;

/// The meaning of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    Go(Direction),
    Faster,
    Slower,
    Stop,
    Quit,
}

/// A direction; left and right turn on the spot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    Forward,
    Back,
    Left,
    Right,
}

/// Tracks which key is held.
#[derive(Clone, Debug)]
pub(super) struct HeldKey {
    speed_mm_s: i32,
    held: Option<Held>,
}

#[derive(Clone, Copy, Debug)]
struct Held {
    direction: Direction,
    until: Instant,
}

impl HeldKey {
    pub(super) fn new(speed_mm_s: i32) -> Self {
        Self {
            speed_mm_s,
            held: None,
        }
    }

    fn held(&self, now: Instant) -> Option<Direction> {
        self.held
            .filter(|held| now < held.until)
            .map(|held| held.direction)
    }
}

impl Hand for HeldKey {
    type Input = Key;

    const NAME: &'static str = "keys";

    fn press(&mut self, now: Instant, key: Key) -> Wish {
        let speed = |by: i32| (self.speed_mm_s + by).clamp(SLOWEST_MM_S, FASTEST_MM_S);
        match key {
            Key::Go(direction) => {
                let again = self.held(now) == Some(direction);
                let patience = if again { HELD } else { HELD_ONCE };
                // The second report may come immediately: never shorten the time.
                let before = self.held.filter(|_| again).map_or(now, |held| held.until);
                let until = before.max(now + patience);
                self.held = Some(Held { direction, until });
            }
            Key::Faster => self.speed_mm_s = speed(STEP_MM_S),
            Key::Slower => self.speed_mm_s = speed(-STEP_MM_S),
            Key::Stop => self.held = None,
            Key::Quit => return Wish::Quit,
        }
        Wish::GoOn
    }

    fn speeds(&self, now: Instant) -> WheelSpeeds {
        let speed = self.speed_mm_s;
        match self.held(now) {
            Some(Direction::Forward) => WheelSpeeds::all(speed),
            Some(Direction::Back) => WheelSpeeds::all(-speed),
            Some(Direction::Left) => WheelSpeeds::sides(-speed / 2, speed / 2),
            Some(Direction::Right) => WheelSpeeds::sides(speed / 2, -speed / 2),
            None => WheelSpeeds::STOP,
        }
    }

    fn next_timeout(&self, now: Instant) -> Option<Instant> {
        self.held
            .map(|held| held.until)
            .filter(|until| *until > now)
    }

    fn speed_mm_s(&self) -> i32 {
        self.speed_mm_s
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);
    const AHEAD: Key = Key::Go(Direction::Forward);

    #[test]
    fn a_key_that_does_not_come_again_is_released() {
        let start = Instant::now();
        let mut held_key = HeldKey::new(200);
        assert_eq!(held_key.speeds(start), WheelSpeeds::STOP);
        held_key.press(start, AHEAD);
        assert_eq!(held_key.next_timeout(start), Some(start + HELD_ONCE));
        assert_eq!(held_key.speeds(start + 499 * MS), WheelSpeeds::all(200));
        assert_eq!(held_key.speeds(start + 500 * MS), WheelSpeeds::STOP);
        assert_eq!(held_key.next_timeout(start + 500 * MS), None);
    }

    #[test]
    fn a_key_that_is_held_is_released_sooner_after_it_came_last() {
        let start = Instant::now();
        let mut held_key = HeldKey::new(200);
        for ms in [0, 450, 480, 510, 540] {
            held_key.press(start + ms * MS, AHEAD);
        }
        assert_eq!(held_key.speeds(start + 839 * MS), WheelSpeeds::all(200));
        assert_eq!(held_key.speeds(start + 840 * MS), WheelSpeeds::STOP);
    }

    #[test]
    fn two_presses_in_a_row_never_hold_shorter_than_one() {
        let start = Instant::now();
        let mut held_key = HeldKey::new(200);
        held_key.press(start, AHEAD);
        held_key.press(start + 10 * MS, AHEAD);
        assert_eq!(held_key.speeds(start + 499 * MS), WheelSpeeds::all(200));
    }

    #[test]
    fn the_last_direction_counts() {
        let now = Instant::now();
        let mut held_key = HeldKey::new(200);
        for (direction, speeds) in [
            (Direction::Forward, WheelSpeeds::all(200)),
            (Direction::Back, WheelSpeeds::all(-200)),
            (Direction::Left, WheelSpeeds::sides(-100, 100)),
            (Direction::Right, WheelSpeeds::sides(100, -100)),
        ] {
            held_key.press(now, Key::Go(direction));
            assert_eq!(held_key.speeds(now), speeds);
            // Nothing is left of the direction before.
            assert_eq!(held_key.next_timeout(now), Some(now + HELD_ONCE));
        }
        assert_eq!(held_key.press(now, Key::Stop), Wish::GoOn);
        assert_eq!(held_key.speeds(now), WheelSpeeds::STOP);
        assert_eq!(held_key.press(now, Key::Quit), Wish::Quit);
    }

    #[test]
    fn speed_has_limits() {
        let now = Instant::now();
        let mut held_key = HeldKey::new(200);
        for (key, limit) in [(Key::Slower, SLOWEST_MM_S), (Key::Faster, FASTEST_MM_S)] {
            for _ in 0..100 {
                held_key.press(now, key);
            }
            assert_eq!(held_key.speed_mm_s(), limit);
        }
    }
}
