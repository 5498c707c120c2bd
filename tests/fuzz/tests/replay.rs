//! Every kept input, and inputs made from them: what CI runs in a few seconds.
//!
//! Each run makes the same inputs. `AMBER_FUZZ_SEED=123 cargo test -p amber-fuzz` makes others, and
//! `AMBER_FUZZ_INPUTS=100000` more. New inputs are found by `scripts/fuzz`.

use std::env;

use amber_fuzz::mutate::mutated;
use amber_fuzz::{Target, targets};
use fastrand::Rng;

/// For each target; some two seconds without optimisation.
const INPUTS: u64 = 2_000;

fn setting(name: &str) -> Option<u64> {
    env::var(name).ok().map(|text| text.parse().expect(name))
}

fn feed(target: Target, seed: Option<u64>, input: &[u8]) {
    if let Err(failure) = target.feed(input) {
        let seed = seed.map_or("kept".into(), |seed| format!("seed {seed}"));
        panic!("{failure} ({seed})");
    }
}

#[test]
fn kept_inputs_do_no_harm() {
    for target in targets() {
        let corpus = target.corpus().expect("every target has a corpus");
        assert!(!corpus.is_empty(), "{} has no corpus", target.name);
        for input in corpus {
            feed(target, None, &input);
        }
    }
}

#[test]
fn random_inputs_do_no_harm() {
    let seed = setting("AMBER_FUZZ_SEED").unwrap_or(1);
    let inputs = setting("AMBER_FUZZ_INPUTS").unwrap_or(INPUTS);
    for target in targets() {
        let mut random = Rng::with_seed(seed);
        let corpus = target.corpus().expect("every target has a corpus");
        for _ in 0..inputs / target.cost {
            feed(target, Some(seed), &mutated(&mut random, &corpus));
        }
    }
}

#[test]
fn a_corpus_without_a_target_is_not_kept() {
    let first = targets().next().expect("a target");
    let folder = first.corpus_file();
    let folder = folder.parent().expect("a folder");
    for file in std::fs::read_dir(folder).expect("a corpus") {
        let name = file.expect("a file").path().with_extension("");
        let name = name
            .file_name()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        assert!(Target::named(&name).is_some(), "no target {name}");
    }
}
