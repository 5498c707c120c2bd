//! The speeds of the wheels of both sides from the counts of their encoders. PURE.
//!
//! Some firmware reads its counts without a lock: one in thousands is wrong by 256 or 65536 for one
//! reading. A board that restarts counts from 0. So a step that is too long for the wheels is not
//! believed, and only a second reading decides what it was.
//!
//! The time of a reading is that of its request: an answer may wait for this process, while the board
//! reads its counts at once.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::Wiring;

/// Speeds are the mean of this time at least: a single count in a shorter one is too fast.
const WINDOW: Duration = Duration::from_millis(100);
/// Wheels may be faster than commanded by this factor for a short time.
const OVERSHOOT: f64 = 1.25;
/// A step may be this much longer, in mm.
const SLACK_MM: f64 = 5.0;
/// After a longer time without a reading, the board may have restarted: it counts anew.
const MAX_GAP: Duration = Duration::from_millis(500);
/// After so many steps that are too long, the wheels are really so fast.
const MAX_DOUBTED: u32 = 5;

/// How far wheels roll for the counts of their encoders.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    /// Encoder counts for a way of 1 mm.
    pub counts_per_mm: f64,
    /// How the encoders are connected.
    pub wiring: Wiring,
}

impl Scale {
    /// That of wheels with this diameter.
    pub fn new(counts_per_turn: f64, diameter_mm: f64, wiring: Wiring) -> Self {
        Self {
            counts_per_mm: counts_per_turn / (std::f64::consts::PI * diameter_mm),
            wiring,
        }
    }

    /// The way of each side in mm, positive forward, for counts of both encoders.
    pub fn ways_mm(&self, counts: [i64; 2]) -> [f64; 2] {
        let ways_mm = counts.map(|count| count as f64 / self.counts_per_mm);
        self.wiring.wheels(ways_mm)
    }
}

/// What a reading was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It follows the last one.
    Good,
    /// It is too far from the last one, and left out.
    Doubted,
    /// It is near the doubted one: the counts have begun anew.
    Jumped,
}

/// The counts of both encoders, and the request for them.
#[derive(Clone, Copy, Debug)]
pub struct Reading {
    /// When the request was sent.
    pub asked: Instant,
    /// When the answer arrived.
    pub answered: Instant,
    /// The counts, which wrap.
    pub counts: [i32; 2],
}

/// Both encoders.
#[derive(Clone, Debug)]
pub struct Encoders {
    scale: Scale,
    fastest_mm_s: f64,
    last: Option<Reading>,
    doubted: Option<Reading>,
    doubts: u32,
    /// How far the wheels have turned since the first reading, in counts.
    turned: [i64; 2],
    window: VecDeque<(Instant, [i64; 2])>,
}

impl Encoders {
    /// Without readings. No wheel is faster than `fastest_mm_s` for long.
    pub fn new(scale: Scale, fastest_mm_s: f64) -> Self {
        Self {
            scale,
            fastest_mm_s,
            last: None,
            doubted: None,
            doubts: 0,
            turned: [0; 2],
            window: VecDeque::new(),
        }
    }

    /// Adds a reading.
    pub fn read(&mut self, reading: Reading) -> Verdict {
        let Some(last) = self.last else {
            self.begin(reading);
            return Verdict::Good;
        };
        if self.is_possible(last, reading) || self.doubts == MAX_DOUBTED {
            self.doubts = 0;
            self.doubted = None;
            self.add(last, reading);
            return Verdict::Good;
        }
        if let Some(doubted) = self.doubted
            && self.is_possible(doubted, reading)
        {
            self.begin(reading);
            return Verdict::Jumped;
        }
        self.doubts += 1;
        self.doubted = Some(reading);
        Verdict::Doubted
    }

    /// The mean speeds of both sides in mm/s, positive forward, and the middle of their time. `None`
    /// before the second reading.
    pub fn speeds_mm_s(&self) -> Option<([f64; 2], Instant)> {
        let ((from, first), (to, last)) = (self.window.front()?, self.window.back()?);
        let passed = to.saturating_duration_since(*from);
        let turned = [last[0] - first[0], last[1] - first[1]];
        let speeds = (self.scale.ways_mm(turned)).map(|way_mm| way_mm / passed.as_secs_f64());
        (!passed.is_zero()).then_some((speeds, *from + passed / 2))
    }

    fn begin(&mut self, reading: Reading) {
        self.doubts = 0;
        self.doubted = None;
        self.window.clear();
        self.last = Some(reading);
        self.window.push_back((reading.asked, self.turned));
    }

    fn add(&mut self, last: Reading, reading: Reading) {
        for (turned, step) in self.turned.iter_mut().zip(steps(last, reading)) {
            *turned += step;
        }
        self.last = Some(reading);
        self.window.push_back((reading.asked, self.turned));
        let is_enough = |(asked, _): &(Instant, [i64; 2])| *asked + WINDOW <= reading.asked;
        while self.window.get(1).is_some_and(is_enough) {
            self.window.pop_front();
        }
    }

    fn is_possible(&self, from: Reading, to: Reading) -> bool {
        // At most: the counts were read between a request and its answer.
        let passed = to
            .answered
            .saturating_duration_since(from.asked)
            .min(MAX_GAP);
        let longest_mm = self.fastest_mm_s * OVERSHOOT * passed.as_secs_f64() + SLACK_MM;
        let ways_mm = self.scale.ways_mm(steps(from, to));
        ways_mm.iter().all(|way_mm| way_mm.abs() <= longest_mm)
    }
}

fn steps(from: Reading, to: Reading) -> [i64; 2] {
    let step = |side: usize| i64::from(to.counts[side].wrapping_sub(from.counts[side]));
    [step(0), step(1)]
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD: Duration = Duration::from_millis(50);

    /// 10 counts per mm, at most 1000 mm/s.
    fn encoders() -> Encoders {
        let scale = Scale {
            counts_per_mm: 10.0,
            wiring: Wiring::default(),
        };
        Encoders::new(scale, 1_000.0)
    }

    /// A reading whose answer took 2 ms.
    fn reading(asked: Instant, counts: [i32; 2]) -> Reading {
        Reading {
            asked,
            answered: asked + Duration::from_millis(2),
            counts,
        }
    }

    /// The verdicts and speeds of readings at 20 Hz.
    fn check(readings: &[[i32; 2]]) -> Vec<(Verdict, Option<[i32; 2]>)> {
        let mut encoders = encoders();
        let mut at = Instant::now();
        let read = |counts: &[i32; 2]| {
            at += PERIOD;
            let verdict = encoders.read(reading(at, *counts));
            let speeds = encoders.speeds_mm_s();
            let rounded = |(speeds, _): ([f64; 2], Instant)| speeds.map(|it| it.round() as i32);
            (verdict, speeds.map(rounded))
        };
        readings.iter().map(read).collect()
    }

    #[test]
    fn speeds_are_the_mean_of_a_tenth_of_a_second() {
        use Verdict::Good;
        let found = check(&[
            [0, 0],
            [100, -50],
            [200, -100],
            [300, -150],
            [300, -150],
            [300, -150],
        ]);
        assert_eq!(
            found,
            [
                (Good, None),
                (Good, Some([200, -100])),
                (Good, Some([200, -100])),
                (Good, Some([200, -100])),
                (Good, Some([100, -50])),
                (Good, Some([0, 0])),
            ]
        );
    }

    #[test]
    fn counts_that_wrap_do_not_jump() {
        let near_end = i32::MAX - 20;
        let found = check(&[
            [near_end, i32::MIN + 20],
            [
                near_end.wrapping_add(100),
                (i32::MIN + 20).wrapping_sub(100),
            ],
        ]);
        assert_eq!(found[1], (Verdict::Good, Some([200, -200])));
    }

    #[test]
    fn one_wrong_reading_is_left_out() {
        // By 65536, by any number, and with a missing digit.
        for wrong in [[65_736, 200], [-65_336, 200], [200, 20_000], [20, 2_000]] {
            let found = check(&[[0, 0], [100, 100], wrong, [300, 300], [400, 400]]);
            assert_eq!(found[2], (Verdict::Doubted, Some([200, 200])), "{wrong:?}");
            assert_eq!(found[3], (Verdict::Good, Some([200, 200])), "{wrong:?}");
            assert_eq!(found[4], (Verdict::Good, Some([200, 200])), "{wrong:?}");
        }
    }

    #[test]
    fn an_answer_that_waits_for_this_process_is_no_jump() {
        let mut encoders = encoders();
        let begin = Instant::now();
        // At 1000 mm/s. The second answer is read 200 ms late, and the third at once.
        for (asked_ms, answered_ms, count) in [(0, 2, 0), (50, 250, 500), (250, 252, 2_500)] {
            let after = |ms| begin + Duration::from_millis(ms);
            let verdict = encoders.read(Reading {
                asked: after(asked_ms),
                answered: after(answered_ms),
                counts: [count, count],
            });
            assert_eq!(verdict, Verdict::Good, "{asked_ms}");
        }
        let (speeds, _) = encoders.speeds_mm_s().unwrap();
        assert_eq!(speeds.map(f64::round), [1_000.0, 1_000.0]);
    }

    #[test]
    fn a_board_that_restarts_counts_anew() {
        use Verdict::{Doubted, Good, Jumped};
        let found = check(&[[9_900, 0], [10_000, 0], [0, 0], [0, 0], [100, 0], [200, 0]]);
        let verdicts: Vec<_> = found.iter().map(|(verdict, _)| *verdict).collect();
        assert_eq!(verdicts, [Good, Good, Doubted, Jumped, Good, Good]);
        assert_eq!(found[3].1, None, "unknown, not a jump");
        assert_eq!(found[5].1, Some([200, 0]));
    }

    #[test]
    fn no_answer_gives_a_speed_far_beyond_the_limit_and_wheels_that_are_so_fast_are_believed() {
        let fast: Vec<_> = (0..20).map(|step| [step * 2_000, 0]).collect();
        let found = check(&fast);
        let speeds: Vec<_> = found.iter().filter_map(|(_, speeds)| *speeds).collect();
        assert!(speeds.contains(&[4_000, 0]), "{found:?}");
        let mut random = fastrand::Rng::with_seed(1);
        let mut encoders = encoders();
        let mut at = Instant::now();
        for step in 0..10_000 {
            at += PERIOD;
            let counts = match random.u8(..10) {
                // Not twice in a row.
                0 if step % 2 == 0 => [random.i32(..), random.i32(..)],
                _ => [step * 400, step * -400],
            };
            encoders.read(reading(at, counts));
            if let Some((speeds, _)) = encoders.speeds_mm_s() {
                let is_near = speeds.iter().all(|speed| speed.abs() <= 1_250.0 + 100.0);
                assert!(is_near, "{step}: {speeds:?}");
            }
        }
    }
}
