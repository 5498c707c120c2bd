//! What the driver says about the battery. PURE.

use std::time::{Duration, Instant};

use amber_proto::battery_state::BatteryState;
use amber_proto::battery_state::battery_state::Health;

use super::charge::Cells;

/// A state that is older than this is none.
const MAX_AGE: Duration = Duration::from_secs(5);
/// The voltage dips when the wheels start: it must stay low this long.
const LOW_FOR: Duration = Duration::from_secs(10);
/// It recovers without load: the battery counts as charged only well above the limit.
const CHARGED_FOR: Duration = Duration::from_secs(10);
const CHARGED_SHARE: f64 = 1.05;

/// What is known about the battery in advance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Settings {
    pub(super) cells: Option<Cells>,
    /// It is low below this voltage.
    pub(super) low_mv: Option<u32>,
}

#[derive(Debug)]
pub(super) struct BatteryLogic {
    settings: Settings,
    started: Instant,
    measured: Option<(Instant, BatteryState)>,
    problem: String,
    is_low: bool,
    /// Since when the voltage says the opposite of `is_low`.
    changes_since: Option<Instant>,
}

impl BatteryLogic {
    pub(super) fn new(settings: Settings, now: Instant) -> Self {
        Self {
            settings,
            started: now,
            measured: None,
            problem: "the battery has not been measured yet".into(),
            is_low: false,
            changes_since: None,
        }
    }

    /// The other device reports the battery, or why it does not.
    pub(super) fn handle(&mut self, now: Instant, measured: Result<BatteryState, String>) {
        let mut state = match measured {
            Ok(state) => state,
            Err(problem) => {
                self.problem = problem;
                return;
            }
        };
        self.follow(now, state.voltage);
        if let (Some(cells), Some(mv)) = (self.settings.cells, state.voltage) {
            state.charge = state.charge.or(Some(cells.charge_percent(mv)));
            state.cells = Some(cells.number);
            state.chemistry = Some(cells.chemistry.told().into());
        }
        if self.is_low && !matches!(state.health, Some(other) if is_fault(other)) {
            state.health = Some(Health::Low.into());
        }
        self.measured = Some((now, state));
    }

    /// Notices a low battery, and one that is charged again.
    fn follow(&mut self, now: Instant, voltage: Option<u32>) {
        let (Some(low_mv), Some(mv)) = (self.settings.low_mv, voltage) else {
            return;
        };
        let (changes, long) = match self.is_low {
            false => (mv < low_mv, LOW_FOR),
            true => (
                f64::from(mv) > f64::from(low_mv) * CHARGED_SHARE,
                CHARGED_FOR,
            ),
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

    /// The state.
    ///
    /// # Errors
    /// It is unknown: the reason.
    pub(super) fn state(&self, now: Instant) -> Result<BatteryState, &str> {
        match &self.measured {
            Some((then, state)) if now.saturating_duration_since(*then) <= MAX_AGE => Ok(*state),
            _ => Err(&self.problem),
        }
    }

    /// What is wrong, as a sentence for people.
    pub(super) fn trouble(&self, now: Instant) -> Option<String> {
        match self.state(now) {
            Ok(state) if state.health == Some(Health::Low.into()) => {
                // Not the voltage itself: it changes all the time, and each change is reported.
                let limit = match self.settings.low_mv.filter(|_| self.is_low) {
                    Some(mv) => format!("below {:.1} V", f64::from(mv) / 1000.0),
                    None => "its device says so".to_owned(),
                };
                Some(format!("the battery is low ({limit}): charge it"))
            }
            Ok(_) => None,
            // The other driver may start later.
            Err(_) if now.saturating_duration_since(self.started) <= MAX_AGE => None,
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
    use crate::battery::charge::Chemistry;

    struct Bench {
        logic: BatteryLogic,
        now: Instant,
    }

    impl Bench {
        fn new(settings: Settings) -> Self {
            let now = Instant::now();
            Self {
                logic: BatteryLogic::new(settings, now),
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

    const UNKNOWN: Settings = Settings {
        cells: None,
        low_mv: None,
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
        let settings = Settings {
            cells: Some(cells),
            low_mv: Some(10_500),
        };
        let state = Bench::new(settings).stays(12_060, 1);
        let told = (state.charge, state.cells, state.chemistry());
        let expected = (Some(80.0), Some(3), Chemistry::LiPo.told());
        assert_eq!(told, expected);
        assert_eq!(state.time, Some(5));
    }

    #[test]
    fn a_low_voltage_counts_when_it_stays_until_the_battery_is_charged() {
        let mut bench = Bench::new(Settings {
            cells: None,
            low_mv: Some(11_000),
        });
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
}
