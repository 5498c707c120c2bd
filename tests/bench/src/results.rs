//! The measured values. PURE.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::samples::median;

/// A program between load and driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Candidate {
    /// The minimal code, one system call per message.
    Floor,
    /// The minimal code, in batches: the reference.
    FloorBatched,
    /// The mediator.
    Amber,
    /// Another build of the mediator, for comparison.
    Before,
}

impl Candidate {
    /// The candidates that always take part, in this order.
    pub const ALL: [Self; 3] = [Self::Floor, Self::FloorBatched, Self::Amber];

    /// Whether it is a complete mediator.
    pub fn is_mediator(self) -> bool {
        match self {
            Self::Floor | Self::FloorBatched => false,
            Self::Amber | Self::Before => true,
        }
    }
}

impl fmt::Display for Candidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Floor => "floor",
            Self::FloorBatched => "floor -b",
            Self::Amber => "amber",
            Self::Before => "before",
        })
    }
}

/// One quantity of one candidate under one load, with a value per round.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Series {
    /// The load, such as `rtt 64 B`.
    pub load: String,
    /// The quantity with its unit, such as `p50_us`.
    pub quantity: String,
    pub candidate: Candidate,
    /// One value per round.
    pub values: Vec<f64>,
}

/// All measured values.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Results {
    /// In the order of measurement.
    pub series: Vec<Series>,
}

impl Results {
    /// Adds a value of one round.
    pub fn add(&mut self, load: &str, quantity: &str, candidate: Candidate, value: f64) {
        let known = self.series.iter_mut().find(|series| {
            series.load == load && series.quantity == quantity && series.candidate == candidate
        });
        match known {
            Some(series) => series.values.push(value),
            None => self.series.push(Series {
                load: load.into(),
                quantity: quantity.into(),
                candidate,
                values: vec![value],
            }),
        }
    }

    /// Removes the loads that `newer` contains.
    pub fn forget_loads_of(&mut self, newer: &Self) {
        let again = |load: &str| newer.series.iter().any(|series| series.load == load);
        self.series.retain(|series| !again(&series.load));
    }

    /// Adds the rounds of `newer`.
    pub fn extend(&mut self, newer: &Self) {
        for series in &newer.series {
            for value in &series.values {
                self.add(&series.load, &series.quantity, series.candidate, *value);
            }
        }
    }

    /// The values of the rounds.
    pub fn values(&self, load: &str, quantity: &str, candidate: Candidate) -> Option<&[f64]> {
        let series = self.series.iter().find(|series| {
            series.load == load && series.quantity == quantity && series.candidate == candidate
        })?;
        Some(&series.values)
    }

    /// The median over the rounds.
    pub fn median(&self, load: &str, quantity: &str, candidate: Candidate) -> Option<f64> {
        self.values(load, quantity, candidate).map(median)
    }

    /// The value in tables, rounded as there: the median; of lost messages, the most in any round.
    pub fn shown(&self, load: &str, quantity: &str, candidate: Candidate) -> Option<f64> {
        let values = self.values(load, quantity, candidate)?;
        Some(match is_loss(quantity) {
            true => values.iter().copied().fold(0.0, f64::max),
            false => rounded(median(values)),
        })
    }

    /// The ratio between the values shown.
    pub fn ratio(
        &self,
        load: &str,
        quantity: &str,
        candidate: Candidate,
        yardstick: Candidate,
    ) -> Option<f64> {
        let ours = self.shown(load, quantity, candidate)?;
        Some(ours / self.shown(load, quantity, yardstick)?)
    }

    /// The worst of the ratios between `candidate` and `yardstick`, each taken within one round: the
    /// smallest of a rate, the largest of all other quantities.
    pub fn worst_ratio(
        &self,
        load: &str,
        quantity: &str,
        candidate: Candidate,
        yardstick: Candidate,
    ) -> Option<f64> {
        let ours = self.values(load, quantity, candidate)?;
        let theirs = self.values(load, quantity, yardstick)?;
        let ratios = ours.iter().zip(theirs).map(|(a, b)| a / b);
        let ratios = ratios.filter(|ratio| ratio.is_finite());
        match quantity.contains("per_s") {
            true => ratios.reduce(f64::min),
            false => ratios.reduce(f64::max),
        }
    }

    /// The loads, in the order of measurement.
    pub fn loads(&self) -> Vec<&str> {
        let mut loads: Vec<&str> = Vec::new();
        for series in &self.series {
            if !loads.contains(&series.load.as_str()) {
                loads.push(&series.load);
            }
        }
        loads
    }
}

/// Whether a quantity counts lost messages, of which there must be none in any round.
pub fn is_loss(quantity: &str) -> bool {
    quantity == "lost"
}

/// A value as [`number`](crate::chart::number) shows it.
fn rounded(value: f64) -> f64 {
    crate::chart::number(value).parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_those_of_the_values_shown_and_the_worst_is_of_one_round() {
        let mut results = Results::default();
        let (amber, floor) = (Candidate::Amber, Candidate::FloorBatched);
        for (ours, theirs) in [(90.04, 82.14), (150.0, 75.0), (70.0, 90.0)] {
            for quantity in ["us", "per_s"] {
                results.add("a", quantity, amber, ours);
                results.add("a", quantity, floor, theirs);
            }
        }
        assert_eq!(results.shown("a", "us", amber), Some(90.0));
        assert_eq!(results.shown("a", "us", floor), Some(82.1));
        assert_eq!(results.ratio("a", "us", amber, floor), Some(90.0 / 82.1));
        assert_eq!(results.worst_ratio("a", "us", amber, floor), Some(2.0));
        let rate = results.worst_ratio("a", "per_s", amber, floor);
        assert_eq!(rate, Some(70.0 / 90.0));
        assert_eq!(results.ratio("b", "us", amber, floor), None);
    }

    #[test]
    fn of_lost_messages_the_worst_round_is_shown() {
        let mut results = Results::default();
        for lost in [0.0, 0.0, 3.0] {
            results.add("a", "lost", Candidate::Amber, lost);
        }
        assert_eq!(results.shown("a", "lost", Candidate::Amber), Some(3.0));
        assert_eq!(results.median("a", "lost", Candidate::Amber), Some(0.0));
    }

    #[test]
    fn measuring_a_load_again_replaces_or_extends_its_values() {
        let mut old = Results::default();
        old.add("a", "us", Candidate::Amber, 1.0);
        old.add("b", "us", Candidate::Amber, 2.0);
        let mut new = Results::default();
        new.add("a", "us", Candidate::Amber, 3.0);
        let mut both = old.clone();
        both.extend(&new);
        let values = both.values("a", "us", Candidate::Amber);
        assert_eq!(values, Some(&[1.0, 3.0][..]));
        old.forget_loads_of(&new);
        old.extend(&new);
        assert_eq!(old.median("a", "us", Candidate::Amber), Some(3.0));
        assert_eq!(old.loads(), ["b", "a"]);
    }
}
