//! Faults of drivers, clients and the network do not stop the mediator, and affect only the
//! programs concerned.
//!
//! `AMBER_CHAOS_SEED` repeats a run, `AMBER_CHAOS_FOR` makes it longer (`90s`, `3m`);
//! `scripts/chaos` runs this with a release build.

use std::env;
use std::time::Duration;

use amber_chaos::chaos::{Plan, run};

use crate::common::AMBER;

#[test]
fn faults_affect_only_the_programs_concerned() {
    let seed = env::var("AMBER_CHAOS_SEED").map(|text| text.parse().expect("a number"));
    let duration = env::var("AMBER_CHAOS_FOR").map(|text| amber_chaos::duration(&text).unwrap());
    let plan = Plan {
        amber: AMBER.into(),
        seed: seed.unwrap_or_else(|_| fastrand::u64(..1_000_000)),
        duration: duration.unwrap_or(Duration::from_secs(6)),
    };
    let report = run(&plan).unwrap();
    assert!(report.broken.is_empty(), "{report}");
}
