//! Attacks and their results. PURE, except for the attacks that it runs.

use std::fmt;

use crate::attacks;
use crate::site::Programs;

/// What an attack needs to know.
#[derive(Clone, Debug)]
pub struct Context {
    pub programs: Programs,
    /// Whether the attack is to be short.
    pub quick: bool,
    /// Where everything random comes from.
    pub seed: u64,
}

impl Context {
    /// One of two values: for the short form, and for the long one.
    pub fn pick<T>(&self, quick: T, full: T) -> T {
        if self.quick { quick } else { full }
    }
}

/// One attack.
#[derive(Clone, Copy, Debug)]
pub struct Attack {
    pub name: &'static str,
    /// What must hold.
    pub expected: &'static str,
    /// Does it. An error means that the attack could not be made.
    pub run: fn(&Context) -> anyhow::Result<Seen>,
}

/// What was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// In words.
    pub text: String,
    /// What it means.
    pub verdict: Verdict,
}

/// Whether a promise holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It does.
    Pass,
    /// It does not.
    Fail,
    /// This machine does not permit the attack.
    Skip,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pass => "PASS",
            Self::Fail => "FAIL",
            Self::Skip => "SKIP",
        })
    }
}

impl Seen {
    /// What was seen, and whether it is what was expected.
    pub fn new(holds: bool, text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            verdict: if holds { Verdict::Pass } else { Verdict::Fail },
        }
    }

    /// The attack is not possible here.
    pub fn skip(reason: impl Into<String>) -> Self {
        Self {
            text: reason.into(),
            verdict: Verdict::Skip,
        }
    }
}

/// The value in the middle.
///
/// # Panics
/// There is none.
pub fn median_of<T: Ord>(mut values: Vec<T>) -> T {
    values.sort_unstable();
    values.swap_remove(values.len() / 2)
}

/// All attacks, in the order in which they run.
pub fn all() -> Vec<Attack> {
    let topics = [
        attacks::forged::ATTACKS,
        attacks::edge::ATTACKS,
        attacks::receivers::ATTACKS,
        attacks::work::ATTACKS,
        attacks::fairness::ATTACKS,
        attacks::processes::ATTACKS,
        attacks::control::ATTACKS,
        attacks::files::ATTACKS,
        attacks::ports::ATTACKS,
        attacks::pages::ATTACKS,
    ];
    topics.concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_attack_has_a_name_of_its_own_and_stands_in_the_documentation() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(folder.join("../../docs/reliability.md")).unwrap();
        let mut names: Vec<_> = all().iter().map(|attack| attack.name).collect();
        for name in &names {
            assert!(text.contains(&format!("| `{name}`")), "{name}");
        }
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(median_of(vec![3, 1, 2]), 2);
        assert_eq!(median_of(vec![7]), 7);
    }
}
