//! A few worlds with each `cargo test`, so that the simulation keeps working; `scripts/simulate`
//! runs any number.

use std::collections::BTreeSet;
use std::time::Instant;

use amber_simulation::{Failure, Invariant, Log, Summary, simulate};

fn world(seed: u64) -> Summary {
    simulate(Instant::now(), seed, Log::Nothing).unwrap_or_else(|failure| {
        let Failure { step, broken, .. } = *failure;
        panic!(
            "seed {seed}, step {step}: {} is violated: {}\nscripts/simulate --seed {seed} --trace",
            broken.invariant, broken.what
        )
    })
}

#[test]
fn invariants_hold_and_each_kind_of_fault_occurs() {
    let mut all = Summary::default();
    for seed in 1..=14 {
        all.merge(&world(seed));
    }
    for trouble in [
        "datagrams lost in transit",
        "datagrams duplicated in transit",
        "datagrams delayed in transit",
        "pipes that stalled",
        "partial writes to a pipe",
        "processes that ended within a frame",
        "processes that died while writing",
        "processes that could not be started",
        "mediators killed",
        "mediators shut down",
        "reloads",
        "floods of spoofed addresses",
        "floods of one client",
        "wraps of the ids",
        "clients at the address of a client that is still known",
        "refusals received by clients",
        "clients_evicted",
        "floods of ports of one host",
        "clients_evicted_for_their_host",
        "subscriptions that get data at the end",
    ] {
        assert!(
            all.counted(trouble) > 0,
            "{trouble}: did not occur in these worlds"
        );
    }
}

#[test]
fn a_seed_always_gives_the_same_world() {
    let (one, again) = (world(6), world(6));
    assert_ne!(one.digest(), 0);
    assert_eq!(one, again);
    assert_ne!(one.digest(), world(5).digest());
}

#[test]
fn invariants_have_unique_names() {
    let names: BTreeSet<_> = Invariant::ALL.iter().map(|one| one.name()).collect();
    assert_eq!(names.len(), Invariant::ALL.len());
}

/// Checks that the documentation lists every invariant.
#[test]
fn all_invariants_are_documented() {
    let text = include_str!("../../../docs/reliability.md");
    for invariant in Invariant::ALL {
        assert!(
            text.contains(&format!("`{invariant}`")),
            "{invariant} is missing in docs/reliability.md"
        );
    }
}
