//! Long runs without libFuzzer: inputs made from the corpus at random, by a seed. IO.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use fastrand::Rng;

use crate::Target;
use crate::corpus::hex;
use crate::mutate::mutated;

/// What a run has found.
#[derive(Clone, Copy, Debug)]
pub struct Summary {
    /// The number of inputs.
    pub inputs: u64,
    /// The time of all.
    pub took: Duration,
}

impl Target {
    /// Feeds random inputs to the target.
    ///
    /// # Errors
    /// The corpus cannot be read, or an input fails. The message has the input.
    pub fn run_many(&self, inputs: u64, seed: u64) -> Result<Summary, String> {
        let corpus = self.corpus().map_err(|error| error.to_string())?;
        let mut random = Rng::with_seed(seed);
        let begin = Instant::now();
        for number in 0..inputs {
            let input = mutated(&mut random, &corpus);
            self.feed(&input)
                .map_err(|failure| format!("input {number} of seed {seed}: {failure}"))?;
        }
        Ok(Summary {
            inputs,
            took: begin.elapsed(),
        })
    }

    /// Feeds one input to the target.
    ///
    /// # Errors
    /// The target panics. The message has the input.
    pub fn feed(&self, input: &[u8]) -> Result<(), String> {
        let fed = catch_unwind(AssertUnwindSafe(|| (self.run)(input)));
        fed.map_err(|_| format!("{} fails with this input: {}", self.name, hex(input)))
    }
}
