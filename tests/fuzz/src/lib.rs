//! Fuzz targets for everything that reads untrusted bytes: no input causes a
//! panic, unbounded growth or a broken invariant.
//!
//! Each target is a plain function from bytes to a verdict (it panics when
//! something is wrong). Three things feed them:
//!
//! - `cargo test -p amber-fuzz`: the kept `corpus`, and a number of inputs made
//!   from it at random, from a seed that a failure prints;
//! - `scripts/fuzz TARGET --inputs 10000000`: as many random inputs, optimised and with the checks
//!   of debug builds;
//! - `scripts/fuzz TARGET`: libFuzzer, which is led by the code that inputs
//!   reach, and keeps those that reach more.

#![allow(clippy::unwrap_used, clippy::expect_used)]

pub mod corpus;
pub mod mutate;
pub mod run;
mod targets;

pub use self::targets::targets;
/// Reading structure out of random bytes.
pub use amber_drivers::fuzz::Input;

/// Something that reads foreign bytes.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// What it is called, also the folder of its corpus.
    pub name: &'static str,
    /// Feeds it; panics when something is wrong.
    pub run: fn(&[u8]),
    /// How many inputs of another target take as long as one of this.
    pub cost: u64,
}

impl Target {
    /// The target of this name.
    pub fn named(name: &str) -> Option<Self> {
        targets().find(|target| target.name == name)
    }
}
