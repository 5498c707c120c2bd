//! What a driver says about the battery. PURE.

use std::time::{Duration, Instant};

use amber_proto::battery_state::BatteryState;
use amber_proto::battery_state::battery_state::Health;

use super::cells::Pack;

/// A battery recovers without load: it counts as charged only well above the limit.
const CHARGED_FOR: Duration = Duration::from_secs(10);
const CHARGED_SHARE: f64 = 1.05;
/// How full the battery is follows its mean voltage over about this time, and not each start of a motor.
const MEAN_OVER_S: f64 = 10.0;

/// How often a battery is measured, and what follows from that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// The time between two measurements.
    pub period: Duration,
    /// The voltage dips when the wheels start: it must stay low this long.
    pub low_for: Duration,
    /// A state that is older than this is none.
    pub max_age: Duration,
}

/// The battery as clients see it.
#[derive(Debug)]
pub struct BatteryLogic {
    pack: Pack,
    pace: Pace,
    started: Instant,
    measured: Option<(Instant, BatteryState)>,
    problem: String,
    /// The mean voltage without load, and when it was computed.
    mean_mv: Option<(Instant, f64)>,
    is_low: bool,
    /// Since when the voltage says the opposite of `is_low`.
    changes_since: Option<Instant>,
}

impl BatteryLogic {
    /// Nothing is measured yet.
    #[must_use]
    pub fn new(pack: Pack, pace: Pace, now: Instant) -> Self {
        Self {
            pack,
            pace,
            started: now,
            measured: None,
            problem: "the battery has not been measured yet".into(),
            mean_mv: None,
            is_low: false,
            changes_since: None,
        }
    }

    /// The battery was measured, or could not be.
    pub fn handle(&mut self, now: Instant, measured: Result<BatteryState, String>) {
        let mut state = match measured {
            Ok(state) => state,
            Err(problem) => {
                self.problem = problem;
                return;
            }
        };
        match state.voltage.filter(|_| state.present != Some(false)) {
            Some(mv) => self.judge(now, mv, &mut state),
            // The next battery may be another one.
            None => (self.mean_mv, self.is_low, self.changes_since) = (None, false, None),
        }
        self.measured = Some((now, state));
    }

    /// Adds what follows from the voltage.
    fn judge(&mut self, now: Instant, mv: u32, state: &mut BatteryState) {
        // Negative while the battery is used.
        let load_ma = -f64::from(state.current.unwrap_or_default());
        let rest_mv = f64::from(mv) + load_ma * f64::from(self.pack.resistance_mohm) / 1000.0;
        self.follow(now, rest_mv);
        let mean_mv = self.mean(now, rest_mv);
        if let Some(cells) = self.pack.cells {
            state.charge = state.charge.or(Some(cells.charge_percent(mean_mv)));
            state.cells = Some(cells.number);
            state.chemistry = Some(cells.chemistry.told().into());
        }
        if self.is_low && !matches!(state.health, Some(other) if is_fault(other)) {
            state.health = Some(Health::Low.into());
        } else if self.pack.low_mv.is_some() && state.health.is_none() {
            state.health = Some(Health::Good.into());
        }
    }

    /// Notices a low battery, and one that is charged again.
    fn follow(&mut self, now: Instant, mv: f64) {
        let Some(low_mv) = self.pack.low_mv.map(f64::from) else {
            return;
        };
        let (changes, long) = match self.is_low {
            false => (mv < low_mv, self.pace.low_for),
            true => (mv > low_mv * CHARGED_SHARE, CHARGED_FOR),
        };
        if !changes {
            self.changes_since = None;
            return;
        }
        let since = *self.changes_since.get_or_insert(now);
        if now.saturating_duration_since(since) >= long {
            self.is_low = !self.is_low;
            self.changes_since = None;
        }
    }

    /// The mean voltage, with this one.
    fn mean(&mut self, now: Instant, mv: f64) -> f64 {
        let mean = self.mean_mv.map_or(mv, |(then, mean)| {
            let passed_s = now.saturating_duration_since(then).as_secs_f64();
            mv + (mean - mv) * (-passed_s / MEAN_OVER_S).exp()
        });
        self.mean_mv = Some((now, mean));
        mean
    }

    /// The state.
    ///
    /// # Errors
    /// It is unknown: the reason.
    pub fn state(&self, now: Instant) -> Result<BatteryState, &str> {
        let max_age = self.pace.max_age;
        match &self.measured {
            Some((then, state)) if now.saturating_duration_since(*then) <= max_age => Ok(*state),
            _ => Err(&self.problem),
        }
    }

    /// What is wrong, as a sentence for people.
    #[must_use]
    pub fn trouble(&self, now: Instant) -> Option<String> {
        match self.state(now) {
            Ok(state) if state.health == Some(Health::Low.into()) => {
                // Not the voltage itself: it changes all the time, and each change is reported.
                let limit = match self.pack.low_mv.filter(|_| self.is_low) {
                    Some(mv) => format!("below {:.1} V", f64::from(mv) / 1000.0),
                    None => "its device says so".to_owned(),
                };
                Some(format!("the battery is low ({limit}): charge it"))
            }
            Ok(state) if state.present == Some(false) => {
                Some("there is no battery, or it is switched off".to_owned())
            }
            Ok(_) => None,
            // The device may start later.
            Err(_) if now.saturating_duration_since(self.started) <= self.pace.max_age => None,
            Err(problem) => Some(problem.to_owned()),
        }
    }
}

/// Whether another device has found something worse than a low voltage.
fn is_fault(health: i32) -> bool {
    [Health::Overvoltage, Health::Overheated, Health::Dead]
        .iter()
        .any(|fault| health == i32::from(*fault))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gauge::cells::{Cells, Chemistry};

    struct Bench {
        logic: BatteryLogic,
        now: Instant,
    }

    impl Bench {
        fn new(pack: Pack) -> Self {
            let now = Instant::now();
            Self {
                logic: BatteryLogic::new(pack, PACE, now),
                now,
            }
        }

        /// The voltage stays so for some seconds, measured each second.
        fn stays(&mut self, mv: u32, seconds: u32) -> BatteryState {
            for _ in 0..seconds {
                self.now += Duration::from_secs(1);
                self.logic.handle(self.now, Ok(measured(mv)));
            }
            self.logic.state(self.now).unwrap()
        }

        fn trouble(&self) -> Option<String> {
            self.logic.trouble(self.now)
        }
    }

    fn measured(mv: u32) -> BatteryState {
        BatteryState {
            voltage: Some(mv),
            present: Some(true),
            health: Some(Health::Good.into()),
            time: Some(5),
            ..BatteryState::default()
        }
    }

    const SECOND: Duration = Duration::from_secs(1);
    const PACE: Pace = Pace {
        period: SECOND,
        low_for: Duration::from_secs(10),
        max_age: Duration::from_secs(5),
    };
    const UNKNOWN: Pack = Pack {
        cells: None,
        low_mv: None,
        resistance_mohm: 0,
    };
    const LOW_BELOW_11_V: Pack = Pack {
        low_mv: Some(11_000),
        ..UNKNOWN
    };

    #[test]
    fn an_unknown_battery_is_passed_on_as_it_was_measured() {
        let mut bench = Bench::new(UNKNOWN);
        assert_eq!(bench.stays(3_000, 60), measured(3_000));
        assert_eq!(bench.trouble(), None, "nobody knows when it is low");
    }

    #[test]
    fn known_cells_tell_how_full_it_is() {
        let cells = Cells {
            number: 3,
            chemistry: Chemistry::LiPo,
        };
        let pack = Pack {
            cells: Some(cells),
            low_mv: Some(10_500),
            ..UNKNOWN
        };
        let state = Bench::new(pack).stays(12_060, 1);
        let told = (state.charge, state.cells, state.chemistry());
        let expected = (Some(80.0), Some(3), Chemistry::LiPo.told());
        assert_eq!(told, expected);
        assert_eq!(state.time, Some(5));
    }

    #[test]
    fn a_low_voltage_counts_when_it_stays_until_the_battery_is_charged() {
        let mut bench = Bench::new(LOW_BELOW_11_V);
        // The wheels start.
        bench.stays(12_000, 3);
        bench.stays(10_500, 9);
        let state = bench.stays(11_500, 3);
        assert_eq!((state.health(), bench.trouble()), (Health::Good, None));
        let state = bench.stays(10_900, 15);
        assert_eq!(state.health(), Health::Low);
        assert_eq!(
            bench.trouble().as_deref(),
            Some("the battery is low (below 11.0 V): charge it")
        );
        // Without load it recovers a little.
        assert_eq!(bench.stays(11_300, 60).health(), Health::Low);
        let state = bench.stays(12_400, 15);
        assert_eq!((state.health(), bench.trouble()), (Health::Good, None));
    }

    #[test]
    fn a_low_battery_of_the_other_device_counts_at_once() {
        let mut bench = Bench::new(UNKNOWN);
        let state = BatteryState {
            health: Some(Health::Low.into()),
            ..measured(10_000)
        };
        bench.logic.handle(bench.now, Ok(state));
        assert_eq!(
            bench.trouble().as_deref(),
            Some("the battery is low (its device says so): charge it")
        );
    }

    #[test]
    fn without_measurements_the_state_is_unknown() {
        let mut bench = Bench::new(UNKNOWN);
        let why = |bench: &Bench| bench.logic.state(bench.now).unwrap_err().to_owned();
        assert_eq!(why(&bench), "the battery has not been measured yet");
        assert_eq!(bench.trouble(), None, "the other driver may still start");
        bench.stays(12_000, 1);
        for seconds in 1..=7 {
            bench.now += Duration::from_secs(1);
            bench.logic.handle(bench.now, Err("no answer".into()));
            // One lost answer is no trouble.
            assert_eq!(bench.trouble().is_some(), seconds > 5, "{seconds}");
        }
        assert_eq!(why(&bench), "no answer");
        assert_eq!(bench.trouble().as_deref(), Some("no answer"));
        bench.stays(12_000, 1);
        assert_eq!(bench.trouble(), None);
    }

    #[test]
    fn the_charge_does_not_follow_each_start_of_a_motor() {
        let cells = Cells {
            number: 3,
            chemistry: Chemistry::LiPo,
        };
        let pack = Pack {
            cells: Some(cells),
            ..UNKNOWN
        };
        let mut bench = Bench::new(pack);
        let charge = |state: BatteryState| state.charge.unwrap();
        assert_eq!(charge(bench.stays(12_060, 1)), 80.0);
        let dipped = charge(bench.stays(11_260, 1));
        assert!((75.0..80.0).contains(&dipped), "{dipped}");
        assert!(charge(bench.stays(11_190, 60)) <= 21.0);
    }

    #[test]
    fn with_the_resistance_a_load_does_not_count() {
        let mut bench = Bench::new(Pack {
            resistance_mohm: 80,
            ..LOW_BELOW_11_V
        });
        let mut loaded = |current| {
            for _ in 0..20 {
                bench.now += SECOND;
                let state = BatteryState {
                    current: Some(current),
                    ..measured(10_500)
                };
                bench.logic.handle(bench.now, Ok(state));
            }
            bench.logic.state(bench.now).unwrap().health()
        };
        assert_eq!(loaded(-10_000), Health::Good);
        assert_eq!(loaded(-1_000), Health::Low);
    }

    #[test]
    fn without_a_battery_nothing_is_said_of_it() {
        let mut bench = Bench::new(LOW_BELOW_11_V);
        bench.stays(10_000, 15);
        let none = BatteryState {
            present: Some(false),
            health: None,
            ..measured(20)
        };
        bench.logic.handle(bench.now, Ok(none));
        assert_eq!(bench.logic.state(bench.now), Ok(none));
        let trouble = bench.trouble();
        assert_eq!(
            trouble.as_deref(),
            Some("there is no battery, or it is switched off")
        );
        // A new one is not low, although the old one was.
        let state = bench.stays(11_300, 1);
        assert_eq!((state.health(), bench.trouble()), (Health::Good, None));
    }
}
