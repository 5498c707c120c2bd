//! Maps of furnished rooms, and of long corridors. PURE.

use super::{Case, Maps, Measured};
use crate::corridor::{Mapped, Shape, mapped};
use crate::exploring::{Exploration, explore, start};
use crate::furnished::{Furnished, furnished};
use crate::{Course, Scanner};
use amber_navigation::explore::State;

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

/// A robot explores the flat, with each scanner.
pub(super) fn add_explorations<'a>(maps: &'a Maps, all: &mut Vec<Case<'a>>) {
    for scanner in Scanner::all() {
        all.push(Case {
            driver: "mapping",
            name: format!("flat, explored, {}", scanner.name()),
            goal: "all finish with 98 % of the area, no contact, rms 30 mm",
            seeds: 10,
            measure: Box::new(move |seeds| explored(maps, scanner, seeds)),
        });
    }
}

fn explored(maps: &Maps, scanner: Scanner, seeds: u64) -> Measured {
    let walls = maps.flat.faces();
    let Some(start) = start(&maps.flat, &walls) else {
        return Measured::default();
    };
    let runs: Vec<Exploration> = (1..=seeds)
        .filter_map(|seed| explore(&walls, start, scanner, seed, 600))
        .collect();
    let most = |value: fn(&Exploration) -> f64| runs.iter().map(value).fold(0.0, f64::max);
    let finished = runs.iter().filter(|run| run.end == State::Finished).count();
    let contacts: u64 = runs.iter().map(|run| run.contacts).sum();
    let least_found = runs.iter().map(|run| run.found).fold(1.0, f64::min);
    let (rms_m, live_m) = (most(|run| run.quality.rms_m), most(|run| run.live_max_m));
    Measured {
        text: format!(
            "{finished} of {seeds} finish, {:.1} % of the area at least, {contacts} contacts, walls {:.0} mm \
             (rms, worst), pose {:.0} mm (worst)",
            100.0 * least_found,
            1000.0 * rms_m,
            1000.0 * live_m,
        ),
        is_met: finished as u64 == seeds && contacts == 0 && least_found >= 0.98 && rms_m <= 0.03,
    }
}

/// With constant errors of the wheels and the track.
pub(super) fn add_corridors(all: &mut Vec<Case<'_>>) {
    // One of 30 scans is one each 0.9 m, as in a log that somebody has thinned out.
    for (name, shape, one_of) in [
        ("corridor of 60 m, there and back", Shape::Straight, 1),
        ("corridor of 60 m, a scan each 0.9 m", Shape::Straight, 30),
        ("corridor of 100 m around a block", Shape::Ring, 1),
        ("corridor of 100 m, a scan each 0.9 m", Shape::Ring, 30),
    ] {
        all.push(Case {
            driver: "mapping",
            name: name.into(),
            goal: "error below 0.5 % of the length, no wrong loop",
            seeds: 10,
            measure: Box::new(move |seeds| {
                let runs: Vec<Mapped> = (1..=seeds).filter_map(|seed| mapped(shape, one_of, seed)).collect();
                let part = |run: &Mapped| 100.0 * run.error_m / run.length_m;
                let bend = |run: &Mapped| run.bend_rad.to_degrees();
                let most = |value: &dyn Fn(&Mapped) -> f64| runs.iter().map(value).fold(0.0, f64::max);
                let good = runs.iter().filter(|run| part(run) < 0.5 && run.wrong == 0).count();
                let sum = |value: fn(&Mapped) -> usize| runs.iter().map(value).sum::<usize>();
                let mut parts: Vec<f64> = runs.iter().map(part).collect();
                parts.sort_by(f64::total_cmp);
                let median = parts.get(parts.len() / 2).copied().unwrap_or(f64::NAN);
                Measured {
                    text: format!(
                        "{good} of {seeds}; error {median:.2} % (median), {:.2} % (worst), bend {:.1}° (worst); \
                         {} loops, {} wrong",
                        most(&part),
                        most(&bend),
                        sum(|run| run.loops),
                        sum(|run| run.wrong),
                    ),
                    is_met: good as u64 == seeds,
                }
            }),
        });
    }
}
