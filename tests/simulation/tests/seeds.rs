//! A few worlds with each `cargo test`, so that the simulation cannot rot;
//! `scripts/simulate` runs any number.

use std::collections::BTreeSet;
use std::time::Instant;

use amber_simulation::{Failure, Invariant, Log, Summary, simulate};

fn world(seed: u64) -> Summary {
    simulate(Instant::now(), seed, Log::Nothing).unwrap_or_else(|failure| {
        let Failure { step, broken, .. } = *failure;
        panic!(
            "seed {seed}, step {step}: {} is broken: {}\nscripts/simulate --seed {seed} --trace",
            broken.invariant, broken.what
        )
    })
}

#[test]
fn promises_hold_and_each_kind_of_trouble_occurs() {
    let mut all = Summary::default();
    for seed in 1..=14 {
        all.merge(&world(seed));
    }
    for trouble in [
        "datagrams lost under way",
        "datagrams doubled under way",
        "datagrams held up under way",
        "pipes that stalled",
        "writes that a pipe took in part",
        "processes that ended within a frame",
        "processes that died while writing",
        "processes that could not be started",
        "mediators killed",
        "mediators asked to end",
        "reloads",
        "floods of made-up addresses",
        "floods of one client",
        "turns of the ids",
        "clients at an address of one that is still known",
        "refusals that clients hear of",
        "clients_evicted",
        "floods of ports of one host",
        "clients_evicted_for_their_host",
        "subscriptions that flow at the end",
    ] {
        assert!(all.counted(trouble) > 0, "{trouble}: not in these worlds");
    }
}

#[test]
fn a_seed_is_the_same_world_every_time() {
    let (one, again) = (world(6), world(6));
    assert_ne!(one.digest(), 0);
    assert_eq!(one, again);
    assert_ne!(one.digest(), world(5).digest());
}

#[test]
fn promises_have_names_of_their_own() {
    let names: BTreeSet<_> = Invariant::ALL.iter().map(|one| one.name()).collect();
    assert_eq!(names.len(), Invariant::ALL.len());
}

/// What the documentation says is what is checked.
#[test]
fn all_promises_stand_in_the_documentation() {
    let text = include_str!("../../../docs/reliability.md");
    for invariant in Invariant::ALL {
        assert!(
            text.contains(&format!("`{invariant}`")),
            "{invariant} is not in docs/reliability.md"
        );
    }
}
