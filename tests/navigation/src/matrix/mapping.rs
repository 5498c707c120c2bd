//! Maps of furnished rooms. PURE.

use super::{Case, Maps, Measured};
use crate::Course;
use crate::furnished::{Furnished, furnished};

/// With thin and uneven things, people, glass and bumps.
pub(super) fn add<'a>(maps: &'a Maps, all: &mut Vec<Case<'a>>) {
    let Some(course) = Course::new(&maps.flat, maps.flat.faces()) else {
        return;
    };
    all.push(Case {
        driver: "mapping",
        name: "flat, furnished: .roson and grid".into(),
        goal: "the .roson locates as well as the grid, to 3 %",
        seeds: 10,
        measure: Box::new(move |seeds| {
            let runs: Vec<Furnished> = (1..=seeds)
                .filter_map(|seed| furnished(&course, seed))
                .collect();
            let mean = |value: fn(&Furnished) -> f64| {
                100.0 * runs.iter().map(value).sum::<f64>() / runs.len().max(1) as f64
            };
            let sum = |value: fn(&Furnished) -> u64| runs.iter().map(value).sum::<u64>();
            let (grid, roson) = (mean(|run| run.grid.good), mean(|run| run.roson.good));
            let lost = sum(|run| run.roson.lost);
            let most = runs.iter().map(|run| run.bytes).max().unwrap_or_default();
            Measured {
                text: format!(
                    "straight walls are {:.0} % of the cells, with things {:.0} %; p above 0.6: {grid:.1} % on the grid, \
                     {roson:.1} % on the .roson, {:.1} % on straight walls; lost {}, {lost}, {}; at most {most} bytes",
                    mean(|run| run.walls),
                    mean(|run| run.segments),
                    mean(|run| run.straight.good),
                    sum(|run| run.grid.lost),
                    sum(|run| run.straight.lost),
                ),
                is_met: runs.len() as u64 == seeds && roson >= grid - 3.0 && most < 32_000,
            }
        }),
    });
}
