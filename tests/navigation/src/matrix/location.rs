//! How well the location driver tracks and finds the robot. PURE.

use std::fmt::Write;
use std::time::Duration;

use amber_map::{Map, Segment};

use super::{Case, Maps, Measured};
use crate::avoid::Clock;
use crate::standing::{Begins, Stood, stand};
use crate::{Course, Round, Scanner, Scenario, Summary, config, office_floor, run};
use amber_navigation::location::{Config, LocationMap};

/// Section 2.6 of the fact sheet, with the goals of the project.
pub(super) fn add<'a>(maps: &'a Maps, clock: Clock, all: &mut Vec<Case<'a>>) {
    let mut case = |place: &str, map: &Map, walls: Vec<Segment>, seeds: u64, only: &[&str]| {
        let Some(course) = Course::new(map, walls) else {
            return;
        };
        for scenario in Scenario::ALL {
            if !only.is_empty() && !only.contains(&scenario.name) {
                continue;
            }
            let course = course.clone();
            all.push(Case {
                driver: "location",
                name: format!("{place}, {}", scenario.name),
                goal: goal(&scenario),
                seeds,
                measure: Box::new(move |seeds| track(&course, &scenario, seeds, clock)),
            });
        }
        for (name, begins, seconds) in [
            ("standing start", Begins::Unknown, 6),
            ("carried while standing", Begins::Carried, 10),
        ] {
            let course = course.clone();
            all.push(Case {
                driver: "location",
                name: format!("{place}, {name}"),
                goal: "none decided and wrong, p above 0.9 and wrong below 1 in 1000",
                seeds: 50,
                measure: Box::new(move |seeds| standing(&course, begins, seconds, seeds)),
            });
        }
    };
    if let Some(rooms) = &maps.rooms {
        case("lab", rooms, rooms.walls.clone(), 50, &[]);
    }
    case("flat", &maps.flat, maps.flat.faces(), 10, &[]);
    let floor = office_floor();
    case(
        "floor",
        &floor,
        floor.walls.clone(),
        4,
        &["tracking", "global start"],
    );
    for round in Round::ALL {
        for name in ["tracking, no bias", "global start"] {
            let Some((course, scenario)) =
                Course::new(&maps.flat, maps.flat.faces()).zip(Scenario::named(name))
            else {
                continue;
            };
            let scanner = Scanner::Round(round);
            let scenario = Scenario {
                scanner,
                ..scenario
            };
            all.push(Case {
                driver: "location",
                name: format!("flat, {name}, {}", scanner.name()),
                goal: goal(&scenario),
                seeds: 10,
                measure: Box::new(move |seeds| track(&course, &scenario, seeds, clock)),
            });
        }
    }
}

/// Robots that stand at random places.
fn standing(course: &Course, begins: Begins, seconds: u64, seeds: u64) -> Measured {
    let config = Config::new(crate::MOUNT);
    let map = LocationMap::from_walls(
        &course.walls,
        &course.inside,
        config.cell_m,
        config.limit_m(),
    );
    let Ok(map) = map else {
        return Measured::default();
    };
    let runs: Vec<Stood> = (1..=seeds)
        .map(|seed| stand(course, &map, begins, seconds, seed))
        .collect();
    let count = |is: fn(&Stood) -> bool| runs.iter().filter(|run| is(run)).count();
    let soon = count(|run| run.right_s.is_some_and(|right_s| right_s <= 5.0));
    let (wrong, open) = (count(|run| run.is_wrong), count(|run| !run.is_decided));
    let certain: u64 = runs.iter().map(|run| run.certain).sum();
    let certain_and_wrong: u64 = runs.iter().map(|run| run.certain_and_wrong).sum();
    Measured {
        text: format!(
            "{soon} of {seeds} right within 5 s, {open} undecided, {wrong} wrong; p above 0.9 and wrong: \
             {certain_and_wrong} of {certain}"
        ),
        is_met: wrong == 0 && certain_and_wrong * 1000 <= certain,
    }
}

fn goal(scenario: &Scenario) -> &'static str {
    if scenario.search_starts().is_some() {
        return match scenario.kidnap_at {
            Some(_) => "98 % within 4 s, all found",
            None => "98 % within 3 s, all within 15 s",
        };
    }
    if scenario.changed {
        "rms 40 mm, none lost"
    } else if scenario.short_beams > 0.1 || scenario.track != 1.0 {
        "rms 10 mm, none lost"
    } else {
        "rms 5 mm, p95 10 mm, 0.5°, no jump"
    }
}

fn track(course: &Course, scenario: &Scenario, seeds: u64, clock: Clock) -> Measured {
    let mut times = Vec::new();
    let mut bytes = 0;
    let scores: Vec<_> = (1..=seeds)
        .map(|seed| {
            let config = config(scenario, seed);
            let score = run(course, scenario, config, seed, |location, now| {
                let start = clock();
                let estimate = location.update(now);
                times.push(clock() - start);
                estimate
            });
            bytes = bytes.max(score.bytes);
            score
        })
        .collect();
    let sum = Summary::new(&scores);
    let all_found = sum.found == sum.runs;
    let is_searching = scenario.search_starts().is_some();
    let is_met = match (is_searching, goal(scenario)) {
        (true, _) => {
            let limits_s = match scenario.kidnap_at {
                Some(_) => (4.0, scenario.length.as_secs_f64()),
                None => (3.0, 15.0),
            };
            sum.found_within(limits_s.0) >= 0.98 && sum.found_within(limits_s.1) >= 1.0
        }
        (false, "rms 40 mm, none lost") => all_found && sum.rms_mm <= 40.0,
        (false, "rms 10 mm, none lost") => all_found && sum.rms_mm <= 10.0,
        (false, _) => {
            let is_exact = sum.rms_mm <= 5.0 && sum.p95_mm <= 10.0 && sum.heading_p95_deg <= 0.5;
            all_found && is_exact && sum.jumps == 0
        }
    };
    let mut text = format!(
        "rms {:.1} mm, p95 {:.1} mm, {:.2}°, {} jumps, {}/{} found",
        sum.rms_mm, sum.p95_mm, sum.heading_p95_deg, sum.jumps, sum.found, sum.runs
    );
    if is_searching {
        let middle_s = sum.search_s.get(sum.search_s.len() / 2);
        let last_s = sum.search_s.last();
        let _ = write!(
            text,
            " in {:.1} s (median), {:.1} s (longest)",
            middle_s.copied().unwrap_or(f64::NAN),
            last_s.copied().unwrap_or(f64::NAN)
        );
    }
    let ms = |time: Duration| time.as_secs_f64() * 1000.0;
    let mean_ms = times.iter().copied().map(ms).sum::<f64>() / times.len().max(1) as f64;
    let worst_ms = times.iter().copied().map(ms).fold(0.0, f64::max);
    let _ = write!(
        text,
        "; {mean_ms:.2} ms (mean), {worst_ms:.1} ms (worst), {:.1} MB",
        bytes as f64 / 1e6
    );
    Measured { text, is_met }
}
