//! What the robot senses that keeps it from driving, or from driving ahead. PURE.

use std::time::{Duration, Instant};

use super::protocol::Sensors;
use crate::wheels::Sides;

/// How long something is taken to be there after it was sensed: a bumper bounces.
const LASTS: Duration = Duration::from_millis(300);

/// A reason not to drive. The first ones matter most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hindrance {
    /// A wheel hangs in the air.
    Drop,
    /// The robot stands on its dock.
    Dock,
    /// A charger is plugged in.
    Charger,
    /// There is no floor in front of the robot.
    Cliff,
    /// The bumper is pressed.
    Bumper,
}

impl Hindrance {
    const ALL: [Self; 5] = [
        Self::Drop,
        Self::Dock,
        Self::Charger,
        Self::Cliff,
        Self::Bumper,
    ];

    /// What it is and what to do, for people.
    pub fn text(self) -> &'static str {
        match self {
            Self::Drop => "a wheel hangs in the air: put the robot on the ground",
            Self::Dock => "the robot stands on its dock: pull it off by hand",
            Self::Charger => "a charger is plugged into the robot: pull it out",
            Self::Cliff => {
                "there is no floor in front of the robot: it drives only back or turns. If there is, \
                 clean its cliff sensors"
            }
            Self::Bumper => {
                "the bumper is pressed: the robot drives only back or turns. If nothing is there, see \
                 whether the bumper is stuck"
            }
        }
    }

    /// Whether the robot must not drive at these speeds.
    fn forbids(self, sides: Sides) -> bool {
        match self {
            Self::Drop | Self::Dock | Self::Charger => sides != Sides::default(),
            Self::Cliff | Self::Bumper => sides.left_mm_s.saturating_add(sides.right_mm_s) > 0,
        }
    }

    fn is_sensed(self, sensors: &Sensors) -> bool {
        match self {
            Self::Drop => sensors.drops.contains(&true),
            Self::Dock => sensors.docked,
            Self::Charger => sensors.charger,
            Self::Cliff => sensors.cliffs.contains(&true),
            Self::Bumper => sensors.bumps.contains(&true),
        }
    }
}

/// What is there now.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hindrances {
    /// When each was sensed last.
    sensed: [Option<Instant>; 5],
}

impl Hindrances {
    /// Adds what the robot senses.
    pub fn sense(&mut self, now: Instant, sensors: &Sensors) {
        for (hindrance, sensed) in Hindrance::ALL.iter().zip(&mut self.sensed) {
            if hindrance.is_sensed(sensors) {
                *sensed = Some(now);
            } else if sensed.is_some_and(|then| now >= then + LASTS) {
                *sensed = None;
            }
        }
    }

    /// The most important one.
    pub fn first(&self) -> Option<Hindrance> {
        self.all().next()
    }

    /// Why the robot must not drive at these speeds.
    pub fn against(&self, sides: Sides) -> Option<Hindrance> {
        self.all().find(|hindrance| hindrance.forbids(sides))
    }

    fn all(&self) -> impl Iterator<Item = Hindrance> {
        let all = Hindrance::ALL.iter().zip(&self.sensed);
        all.filter_map(|(hindrance, sensed)| sensed.is_some().then_some(*hindrance))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sides(left_mm_s: i32, right_mm_s: i32) -> Sides {
        Sides {
            left_mm_s,
            right_mm_s,
        }
    }

    #[test]
    fn what_is_in_front_forbids_only_the_way_ahead() {
        let ahead = [sides(100, 100), sides(300, -200), sides(0, 1)];
        let others = [sides(-100, -100), sides(200, -200), sides(-300, 200)];
        for hindrance in Hindrance::ALL {
            assert!(!hindrance.forbids(sides(0, 0)), "{hindrance:?}");
            assert!(ahead.iter().all(|it| hindrance.forbids(*it)));
            let is_in_front = matches!(hindrance, Hindrance::Cliff | Hindrance::Bumper);
            assert!(
                others
                    .iter()
                    .all(|it| hindrance.forbids(*it) != is_in_front)
            );
        }
    }

    #[test]
    fn a_bumper_that_bounces_is_pressed_and_the_most_important_is_told() {
        let mut hindrances = Hindrances::default();
        let begin = Instant::now();
        let after = |ms| begin + Duration::from_millis(ms);
        let free = Sensors::default();
        let bumps = Sensors {
            bumps: [true, false],
            ..free
        };
        let lifted = Sensors {
            drops: [true; 2],
            ..bumps
        };
        for (ms, sensors, first) in [
            (0, free, None),
            (15, bumps, Some(Hindrance::Bumper)),
            (30, free, Some(Hindrance::Bumper)),
            (300, lifted, Some(Hindrance::Drop)),
            (615, free, None),
        ] {
            hindrances.sense(after(ms), &sensors);
            assert_eq!(hindrances.first(), first, "{ms}");
        }
        hindrances.sense(after(700), &bumps);
        assert_eq!(hindrances.against(sides(-10, -10)), None);
        assert_eq!(hindrances.against(sides(10, 10)), Some(Hindrance::Bumper));
    }
}
