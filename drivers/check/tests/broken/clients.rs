//! Each mistake of a client is found, and a correct client passes.

#![allow(clippy::unwrap_used)] // Helpers of tests are tests.

use std::time::Duration;

use amber_check::{ClientPlan, Outcome, Report, run_client};

const CLIENT: &str = env!("CARGO_BIN_EXE_broken-driver");

fn report(mistake: &str, only: &[&str], seconds: u64) -> Report {
    let command = [CLIENT, "client", mistake, "{}"]
        .map(str::to_owned)
        .to_vec();
    let plan = ClientPlan {
        only: only.iter().map(|name| (*name).into()).collect(),
        patience: Duration::from_secs(seconds),
        ..ClientPlan::new(command)
    };
    run_client(&plan, |_| {}).unwrap()
}

#[test]
fn a_client_without_mistakes_passes_everything() {
    let report = report("", &[], 30);
    for check in &report.checks {
        let all = check.line() + &check.explanation();
        assert_eq!(check.outcome, Outcome::Pass, "{all}");
    }
    assert_eq!(report.checks.len(), 16);
}

#[track_caller]
fn finds(mistake: &str, check: &str, words: &str, outcome: Outcome) {
    let report = report(mistake, &[check], 4);
    let checked = report.check(check).unwrap();
    let all = checked.line() + &checked.explanation();
    assert_eq!(checked.outcome, outcome, "{mistake}: {all}");
    assert!(all.contains(words), "{mistake}: no {words:?} in\n{all}");
}

#[test]
fn mistakes_in_what_a_client_sends() {
    use Outcome::{Fail, Note};
    for (mistake, check, words, outcome) in [
        (
            "little-endian",
            "frames",
            "it writes lengths in little-endian order",
            Fail,
        ),
        ("no-device-id", "header", "a header has no deviceID", Fail),
        ("client-ids", "header", "a header has clientIDs", Fail),
        ("no-type", "type", "a message has no known type", Fail),
        ("same-number", "numbers", "two requests have synNum 1", Fail),
        ("no-announcement", "announces", "it does not", Note),
        (
            "no-goodbye",
            "leaves",
            "sent neither UNSUBSCRIBE nor CLIENT_DIED",
            Fail,
        ),
        ("no-pong", "ping", "no PONG", Note),
    ] {
        finds(mistake, check, words, outcome);
    }
}

#[test]
fn misbehaviour_shows_clients_that_trust_the_network() {
    use Outcome::{Fail, Note};
    for (mistake, check, words, outcome) in [
        ("any-answer", "duplicated", "instead of", Note),
        (
            "trusting",
            "junk",
            "exit code 1 instead of exit code 0",
            Fail,
        ),
        (
            "small-buffer",
            "large",
            "exit code 1 instead of exit code 0",
            Fail,
        ),
        ("no-deadline", "lost", "it still runs after 4 s", Fail),
    ] {
        finds(mistake, check, words, outcome);
    }
}
