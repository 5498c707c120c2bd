//! Each part for a simulated minute with each `cargo test`; `scripts/simulate --parts` runs hours.

use std::time::Duration;

use amber_simulation::parts::watch::Cause;
use amber_simulation::parts::{Kind, PARTS, Plan, run};

/// Runs the parts of these kinds, and checks that each cause occurred.
fn check(is_wanted: impl Fn(Kind) -> bool) {
    let plan = Plan {
        duration: Duration::from_secs(60),
        calm_s: 2..4,
        fault_ms: 100..8_000,
    };
    let mut faults = [0; Cause::ALL.len()];
    for (part, seed) in PARTS
        .iter()
        .zip(1..)
        .filter(|(part, _)| is_wanted(part.kind))
    {
        let counts = run(part, &plan, seed, |_| {});
        let counts = counts.unwrap_or_else(|error| panic!("{}: {error}", part.name));
        let due = plan.duration.as_millis() as u64 / part.period_ms;
        let all = counts.readings + counts.missing;
        // The start has taken some of the time, and the last fault may not be over.
        assert!(
            (due / 2..=due * 21 / 20).contains(&all),
            "{}: {counts}",
            part.name
        );
        for (sum, count) in faults.iter_mut().zip(counts.faults) {
            *sum += count;
        }
    }
    assert!(faults.iter().all(|count| *count > 0), "{faults:?}");
}

#[test]
fn no_scan_is_missing_without_a_reported_cause() {
    check(|kind| kind == Kind::Scanner);
}

#[test]
fn no_other_reading_is_missing_without_a_reported_cause() {
    check(|kind| kind != Kind::Scanner);
}

/// The documentation has the limits that are checked.
#[test]
fn the_limits_are_documented() {
    let text = include_str!("../../../docs/hardware.md");
    for part in PARTS {
        let mut row = format!("| {} |", part.name);
        for limit_s in part.limits_s {
            // A bus has no garbage.
            row += &match limit_s {
                0 => "  |".to_owned(),
                limit_s => format!(" {limit_s} |"),
            };
        }
        assert!(text.contains(&row), "missing in docs/hardware.md: {row}");
    }
}
