//! Cuts the samples of a scanner that turns endlessly into turns. PURE.
//!
//! A turn begins and ends at the rear of the robot. So the points of a scan are in the order of their
//! measurement, and the oldest and the newest do not meet in front of the robot.

use std::collections::VecDeque;
use std::time::Duration;

/// The turns over which the time of one is averaged.
const AVERAGED: usize = 3;

/// A head that seems to turn back by at most this is not turning back: angles are rounded.
const JITTER_DEG: f64 = 10.0;

/// Samples that are farther apart have others missing between them.
const MAX_STEP_DEG: f64 = 5.0;

/// How much of a turn must have been measured.
const MIN_COVERED_DEG: f64 = 0.7 * 360.0;

/// The slowest turn, until the time of a turn is known.
const SLOWEST: Duration = Duration::from_secs(1);

/// The maximum number of samples in a turn.
const MAX_SAMPLES: usize = 8_192;

/// A scanner that looks sideways looks farther to the side the farther it sees. Turns are cut as if
/// all were at this distance.
pub const USUAL_MM: u16 = 2_000;

/// One measurement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Where the scanner looks, in degrees clockwise from its front mark: that of its head, or what it
    /// would see from there at [`USUAL_MM`]. It grows all the time.
    pub head_deg: f64,
    /// The direction of what was measured, in degrees. Some scanners look slightly sideways.
    pub angle_deg: f64,
    /// What was measured.
    pub echo: Echo,
    /// The strength of the echo, without a unit.
    pub intensity: u8,
    /// When, since any fixed start.
    pub time: Duration,
}

/// What a scanner has measured in one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Echo {
    /// An object at this distance in millimetres.
    At(u16),
    /// No echo came back.
    Nothing,
    /// The measurement is of no use.
    Invalid,
}

/// How a scanner is mounted on the robot.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Mount {
    /// The direction of its front mark, in degrees to the right of the robot's front.
    pub angle_deg: f64,
    /// Whether it is upside down, and so turns to the left.
    pub is_mirrored: bool,
}

impl Mount {
    /// Where an angle of the scanner is on the robot: degrees to the right, from -180 to below 180.
    #[must_use]
    pub fn on_robot_deg(self, scanner_deg: f64) -> f64 {
        let turned = match self.is_mirrored {
            true => self.angle_deg - scanner_deg,
            false => self.angle_deg + scanner_deg,
        };
        let wrapped = (turned + 180.0).rem_euclid(360.0) - 180.0;
        // Rounding may give 180, which is the same as -180.
        if wrapped < 180.0 { wrapped } else { -180.0 }
    }

    /// How far a head has turned since it passed the rear, in degrees from 0 to below 360.
    fn since_rear_deg(self, head_deg: f64) -> f64 {
        let on_robot_deg = self.on_robot_deg(head_deg);
        match self.is_mirrored {
            true if on_robot_deg == -180.0 => 0.0,
            true => 180.0 - on_robot_deg,
            false => on_robot_deg + 180.0,
        }
    }
}

/// The samples of one turn in the order of their measurement; their angles are on the robot.
#[derive(Clone, Debug, PartialEq)]
pub struct Turn {
    /// At least one.
    pub samples: Vec<Sample>,
    /// When the last one was measured.
    pub ended: Duration,
}

/// Collects the samples of a turn.
#[derive(Clone, Debug)]
pub struct Turns {
    mount: Mount,
    /// Where the head was at the last sample, since the rear, and when.
    last: Option<(f64, Duration)>,
    /// When the head passed the rear. `None`: the beginning of this turn is missing.
    began: Option<Duration>,
    samples: Vec<Sample>,
    covered_deg: f64,
    lengths: VecDeque<Duration>,
    incomplete: u64,
}

impl Turns {
    /// Without samples.
    #[must_use]
    pub fn new(mount: Mount) -> Self {
        Self {
            mount,
            last: None,
            began: None,
            samples: Vec::new(),
            covered_deg: 0.0,
            lengths: VecDeque::new(),
            incomplete: 0,
        }
    }

    /// Forgets all samples and the time of a turn.
    pub fn clear(&mut self) {
        *self = Self {
            incomplete: self.incomplete,
            ..Self::new(self.mount)
        };
    }

    /// The time of one turn: the mean of the last three complete ones.
    #[must_use]
    pub fn turn_time(&self) -> Option<Duration> {
        let count = u32::try_from(self.lengths.len()).ok()?;
        let sum: Duration = self.lengths.iter().sum();
        sum.checked_div(count)
    }

    /// The number of turns that were dropped because too much of them was missing. An interruption counts
    /// once, however long it was.
    #[must_use]
    pub fn incomplete(&self) -> u64 {
        self.incomplete
    }

    /// Adds a sample; returns the turn that ended before it.
    pub fn push(&mut self, sample: Sample) -> Option<Turn> {
        let mut position = self.mount.since_rear_deg(sample.head_deg);
        let mut ended = None;
        if let Some((before, time)) = self.last {
            let passed = sample.time.saturating_sub(time);
            let step = (position - before).rem_euclid(360.0);
            if passed > self.turn_time().unwrap_or(SLOWEST) / 2 {
                // The head may have passed the rear meanwhile, or more than once.
                self.interrupt();
            } else if step > 360.0 - JITTER_DEG {
                position = before;
            } else {
                if before + step >= 360.0 {
                    let part = (360.0 - before) / step;
                    ended = self.cut(time, time + passed.mul_f64(part));
                }
                if step <= MAX_STEP_DEG {
                    self.covered_deg += step;
                }
            }
        }
        self.last = Some((position, sample.time));
        if self.samples.len() == MAX_SAMPLES {
            // The head does not turn.
            self.interrupt();
        }
        self.samples.push(Sample {
            angle_deg: self.mount.on_robot_deg(sample.angle_deg),
            ..sample
        });
        ended
    }

    /// The head passes the rear; the last sample was at `ended`.
    fn cut(&mut self, ended: Duration, passes: Duration) -> Option<Turn> {
        let (covered_deg, began) = (self.covered_deg, self.began);
        let samples = self.begin(Some(passes));
        let began = began?;
        if covered_deg < MIN_COVERED_DEG {
            self.incomplete += 1;
            return None;
        }
        if self.lengths.len() == AVERAGED {
            self.lengths.pop_front();
        }
        self.lengths.push_back(passes.saturating_sub(began));
        Some(Turn { samples, ended })
    }

    /// Drops the turn that has begun.
    fn interrupt(&mut self) {
        self.incomplete += u64::from(self.began.is_some());
        self.begin(None);
    }

    /// Begins a turn, and returns the samples before it.
    fn begin(&mut self, at: Option<Duration>) -> Vec<Sample> {
        self.began = at;
        self.covered_deg = 0.0;
        std::mem::take(&mut self.samples)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE_HZ: f64 = 4_500.0;

    /// The samples of a scanner at this speed, from an angle on.
    fn samples(hz: f64, from_deg: f64, seconds: f64) -> impl Iterator<Item = Sample> {
        let count = (seconds * RATE_HZ) as u32;
        (0..count).map(move |index| {
            let time_s = f64::from(index) / RATE_HZ;
            let head_deg = (from_deg + time_s * hz * 360.0).rem_euclid(360.0);
            Sample {
                head_deg,
                angle_deg: head_deg,
                // Each sample tells its own angle.
                echo: Echo::At((1000.0 + 5.0 * head_deg).round() as u16),
                intensity: 200,
                time: Duration::from_secs_f64(1.0 + time_s),
            }
        })
    }

    fn turns_of(turns: &mut Turns, samples: impl Iterator<Item = Sample>) -> Vec<Turn> {
        samples.filter_map(|sample| turns.push(sample)).collect()
    }

    #[test]
    fn angles_on_the_robot_are_to_the_right_and_below_180() {
        for (mount_deg, is_mirrored, scanner_deg, expected) in [
            (0.0, false, 0.0, 0.0),
            (0.0, false, 90.0, 90.0),
            (0.0, false, 180.0, -180.0),
            (0.0, false, 359.0, -1.0),
            (90.0, false, 100.0, -170.0),
            (0.0, true, 90.0, -90.0),
            (-30.0, true, 200.0, 130.0),
            (0.0, true, 180.0, -180.0),
        ] {
            let mount = Mount {
                angle_deg: mount_deg,
                is_mirrored,
            };
            let found = mount.on_robot_deg(scanner_deg);
            assert!((found - expected).abs() < 1e-9, "{mount:?} {scanner_deg}");
        }
    }

    #[test]
    fn turns_are_cut_at_the_rear_and_hold_every_sample_once() {
        for (angle_deg, is_mirrored) in [(0.0, false), (90.0, false), (-45.0, true), (180.0, true)]
        {
            let mount = Mount {
                angle_deg,
                is_mirrored,
            };
            let mut turns = Turns::new(mount);
            let found = turns_of(&mut turns, samples(10.0, 123.4, 1.0));
            // The first turn is not complete.
            assert!((8..=9).contains(&found.len()), "{mount:?}: {}", found.len());
            for turn in &found {
                let angles: Vec<_> = turn.samples.iter().map(|it| it.angle_deg).collect();
                assert!((449..=451).contains(&angles.len()), "{}", angles.len());
                let (first, last) = match is_mirrored {
                    true => (angles[angles.len() - 1], angles[0]),
                    false => (angles[0], angles[angles.len() - 1]),
                };
                assert!(first < -179.0 && last > 179.0, "{mount:?}: {first} {last}");
                assert!(match is_mirrored {
                    // The rear itself is -180, and the first that is measured.
                    true => angles[1..].is_sorted_by(|a, b| a > b),
                    false => angles.is_sorted_by(|a, b| a < b),
                });
                for sample in &turn.samples {
                    let Echo::At(mm) = sample.echo else {
                        panic!("{sample:?}");
                    };
                    let truth = mount.on_robot_deg((f64::from(mm) - 1000.0) / 5.0);
                    let off = (truth - sample.angle_deg + 180.0).rem_euclid(360.0) - 180.0;
                    assert!(off.abs() < 0.11, "{off}");
                }
            }
        }
    }

    #[test]
    fn the_time_of_a_turn_is_measured_and_follows_the_motor() {
        let mut turns = Turns::new(Mount::default());
        assert_eq!(turns.turn_time(), None);
        turns_of(&mut turns, samples(5.5, 10.0, 1.0));
        let is_near = |turns: &Turns, hz: f64| {
            let found_s = turns.turn_time().unwrap().as_secs_f64();
            assert!((found_s * hz - 1.0).abs() < 0.001, "{found_s} s, {hz} Hz");
        };
        is_near(&turns, 5.5);
        let later = |sample: Sample| Sample {
            time: sample.time + Duration::from_secs(1),
            ..sample
        };
        turns_of(&mut turns, samples(6.0, 190.0, 0.9).map(later));
        is_near(&turns, 6.0);
    }

    #[test]
    fn a_turn_with_a_gap_is_dropped_and_the_next_one_is_complete() {
        // The moments at which samples are missing. Turns begin at 0.03 s, 0.13 s and so on: without
        // a gap, nine are complete.
        for (gap_s, complete, incomplete) in [
            (0.0..0.0, 9, 0),
            (0.30..0.31, 9, 0),
            (0.29..0.335, 8, 1),
            // Longer than half a turn: it may have been any number of turns.
            (0.32..0.40, 7, 1),
            (0.32..0.95, 2, 1),
        ] {
            let mut turns = Turns::new(Mount::default());
            let is_there = |sample: &Sample| {
                let time_s = sample.time.as_secs_f64() - 1.0;
                !gap_s.contains(&time_s)
            };
            let all = samples(10.0, 72.0, 1.0).filter(is_there);
            let found = turns_of(&mut turns, all);
            assert_eq!(found.len(), complete, "{gap_s:?}");
            assert_eq!(turns.incomplete(), incomplete, "{gap_s:?}");
            for turn in &found {
                assert!(turn.samples.len() > 315, "{gap_s:?}");
            }
        }
    }

    #[test]
    fn a_head_that_stands_still_needs_no_memory() {
        let mut turns = Turns::new(Mount::default());
        let still = samples(10.0, 0.0, 10.0).map(|sample| Sample {
            head_deg: 7.0,
            ..sample
        });
        assert_eq!(turns_of(&mut turns, still), []);
        assert!(turns.samples.len() <= MAX_SAMPLES);
    }
}
