//! All runs with their goals: `scripts/bench nav` prints the table. PURE.
//!
//! Goals are those of the original's fact sheet and of the project. A goal that is not met is a line
//! with "no"; docs/notes/location.md and docs/notes/driving.md have the experiments.

use std::fmt::Write;
use std::time::Duration;

use amber_map::{Map, MapPose, Pose, Segment};

use super::avoid::{self, Clock, Obstacle};
use super::goto::{
    Closes, Crossing, Door, Errand, Incident, Run, Tracking, follow, start_at, targets, tour,
};
use super::robot::{Poses, Sensors};
use super::{Course, Scenario, Summary, config, office_floor, routes, run};
use crate::drive_to_point::Target;
use crate::planner::Planner;

/// The maps of the runs. Those of the original laboratory are not part of the repository.
#[derive(Clone, Debug)]
pub struct Maps {
    /// The flat of `amber demo`.
    pub flat: Map,
    /// `MazeRoboLabFullMap`.
    pub lab: Option<Map>,
    /// `MazeRoboLabSplitIntoRooms8`: the laboratory with nodes in its rooms.
    pub rooms: Option<Map>,
}

/// Runs of the same kind with different seeds.
pub struct Case<'a> {
    /// The driver under test.
    pub driver: &'static str,
    /// The course of events.
    pub name: String,
    /// The goal.
    pub goal: &'static str,
    /// The usual number of seeds.
    pub seeds: u64,
    measure: Box<dyn Fn(u64) -> Measured + 'a>,
}

/// The result of a [`Case`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured {
    /// The figures.
    pub text: String,
    /// Whether they reach the goal.
    pub is_met: bool,
}

impl Case<'_> {
    /// Runs the seeds from 0.
    #[must_use]
    pub fn measure(&self, seeds: u64) -> Measured {
        (self.measure)(seeds)
    }
}

impl std::fmt::Debug for Case<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.driver, self.name)
    }
}

/// All cases on these maps. `clock` measures the time of computations.
#[must_use]
pub fn cases(maps: &Maps, clock: Clock) -> Vec<Case<'_>> {
    let mut all = Vec::new();
    location(maps, clock, &mut all);
    monitor(maps, clock, &mut all);
    trajectories(&mut all);
    errands(maps, &mut all);
    all
}

/// Section 2.6 of the fact sheet, with the goals of the project.
fn location<'a>(maps: &'a Maps, clock: Clock, all: &mut Vec<Case<'a>>) {
    let mut add = |place: &str, map: &Map, walls: Vec<Segment>, seeds: u64, only: &[&str]| {
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
    };
    if let Some(rooms) = &maps.rooms {
        add("lab", rooms, rooms.walls.clone(), 50, &[]);
    }
    add("flat", &maps.flat, maps.flat.faces(), 10, &[]);
    let floor = office_floor();
    add(
        "floor",
        &floor,
        floor.walls.clone(),
        4,
        &["tracking", "global start"],
    );
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

/// Sections 4.4 and 6.4 of the fact sheet.
fn monitor<'a>(maps: &'a Maps, clock: Clock, all: &mut Vec<Case<'a>>) {
    let mut add = |name: String, goal, seeds, measure: Box<dyn Fn(u64) -> Measured + 'a>| {
        all.push(Case {
            driver: "collision_avoidance",
            name,
            goal,
            seeds,
            measure,
        });
    };
    for (name, obstacle) in [
        ("wall", Obstacle::Wall),
        ("post of 30 mm", Obstacle::Post),
        ("wall at 45°", Obstacle::SlantedWall),
        ("box appears at 0.6 m", Obstacle::Appears(0.6)),
        ("box appears at 0.5 m", Obstacle::Appears(0.5)),
    ] {
        add(
            format!("{name}, 0.2 to 0.7 m/s"),
            "no contact, stops at 30 to 150 mm up to 0.4 m/s, 1 ms",
            1000,
            Box::new(move |runs| approach(obstacle, runs, clock)),
        );
    }
    add(
        "along a wall at 60 mm".into(),
        "0.18 m/s, no contact",
        20,
        Box::new(|seeds| passing(seeds, 0.18, |seed| avoid::along_wall(0.06, seed))),
    );
    add(
        "gate of 0.51 m, centred".into(),
        "never stops",
        20,
        Box::new(|seeds| passing(seeds, 0.05, |seed| avoid::gate(0.0, seed))),
    );
    for (name, goal, limit_ms, measure) in [
        (
            "silent client",
            "0.5 s and a period",
            520,
            avoid::silence as fn(u64) -> Duration,
        ),
        ("laser off", "0.6 s", 620, avoid::laser_off),
        ("blocked wheels", "reported in 1.5 s", 1500, avoid::stuck),
        (
            "stuck against something low",
            "reported in 1.5 s",
            1500,
            avoid::pressed,
        ),
    ] {
        add(
            name.into(),
            goal,
            20,
            Box::new(move |seeds| {
                let worst = (0..seeds).map(measure).max().unwrap_or_default();
                Measured {
                    text: format!("{:.3} s at most", worst.as_secs_f64()),
                    is_met: worst <= Duration::from_millis(limit_ms),
                }
            }),
        );
    }
    add(
        "box at 0.5 m after the last command at 0.4 m/s".into(),
        "no contact",
        100,
        Box::new(|seeds| {
            let runs: Vec<_> = (0..seeds)
                .map(|seed| avoid::last_command(0.5, seed))
                .collect();
            let contacts: u64 = runs.iter().map(|run| run.contacts).sum();
            let least_m = runs
                .iter()
                .map(|run| run.stop_m)
                .fold(f64::INFINITY, f64::min);
            Measured {
                text: format!("{contacts} contacts, stops at {:.0} mm", least_m * 1000.0),
                is_met: contacts == 0 && runs.iter().all(|run| run.stopped),
            }
        }),
    );
    add(
        "a scan that blocks the way".into(),
        "zero command within a scan and 20 ms",
        100,
        Box::new(|seeds| {
            let worst = (0..seeds).map(avoid::reaction).max().unwrap_or_default();
            Measured {
                text: format!("{:.3} s at most", worst.as_secs_f64()),
                is_met: worst <= Duration::from_millis(120),
            }
        }),
    );
    add(
        "2 to 12 mm from walls, away from them".into(),
        "every motion passes, no contact",
        200,
        Box::new(|seeds| {
            let runs: Vec<_> = (0..seeds).filter_map(avoid::leave).collect();
            let contacts: u64 = runs.iter().map(|run| run.contacts).sum();
            let left = runs
                .iter()
                .filter(|run| run.to_m >= f64::min(run.from_m + 0.01, 0.015))
                .count();
            Measured {
                text: format!("{left} of {} leave, {contacts} contacts", runs.len()),
                is_met: contacts == 0 && left == runs.len(),
            }
        }),
    );
    for (name, is_behind) in [
        ("a gate closes ahead", false),
        ("a gate closes behind, and the robot comes back", true),
    ] {
        add(
            name.into(),
            "no contact, passes when it is open",
            100,
            Box::new(move |seeds| {
                let runs: Vec<_> = (0..seeds)
                    .map(|seed| avoid::closing_gate(is_behind, seed))
                    .collect();
                let contacts: u64 = runs.iter().map(|run| run.contacts).sum();
                let passed = runs.iter().filter(|run| run.passed).count();
                let stops_m = runs.iter().map(|run| run.stop_m);
                let least_m = stops_m.fold(f64::INFINITY, f64::min);
                Measured {
                    text: format!(
                        "{contacts} contacts, stops at {:.0} mm, {passed} of {seeds} pass",
                        least_m * 1000.0
                    ),
                    is_met: contacts == 0 && passed == runs.len(),
                }
            }),
        );
    }
    let rooms = maps.rooms.as_ref();
    if let Some(course) = rooms.and_then(|rooms| Course::new(rooms, rooms.walls.clone())) {
        add(
            "lab, a lap by hand".into(),
            "mean 0.2 m/s, no contact",
            20,
            Box::new(move |seeds| {
                let runs: Vec<_> = (0..seeds).map(|seed| avoid::lap(&course, seed)).collect();
                let mean_m_s =
                    runs.iter().map(|run| run.mean_m_s).sum::<f64>() / runs.len().max(1) as f64;
                let contacts: u64 = runs.iter().map(|run| run.contacts).sum();
                let least = |value: fn(&avoid::Lap) -> f64| {
                    runs.iter().map(value).fold(f64::INFINITY, f64::min)
                };
                let (slowest_m_s, clearance_m) =
                    (least(|run| run.mean_m_s), least(|run| run.clearance_m));
                Measured {
                    text: format!(
                        "{:.1} m, mean {mean_m_s:.3} m/s, slowest lap {slowest_m_s:.3} m/s, {contacts} \
                         contacts, clearance {:.0} mm",
                        course.length_m(),
                        1000.0 * clearance_m
                    ),
                    is_met: contacts == 0 && mean_m_s >= 0.2 && slowest_m_s > 0.0,
                }
            }),
        );
    }
    let flat = &maps.flat;
    add(
        "random driver in the flat, a minute each".into(),
        "no contact",
        100,
        Box::new(move |seeds| {
            let walls = flat.faces();
            let runs =
                (0..seeds).map(|seed| avoid::random_driver(&walls, flat.robots[0], 60, seed));
            let (mut contacts, mut way_m, mut clearance_m) = (0, 0.0, f64::INFINITY);
            for run in runs {
                contacts += run.touched.len();
                way_m += run.way_m;
                clearance_m = f64::min(clearance_m, run.clearance_m);
            }
            Measured {
                text: format!(
                    "{contacts} contacts, {way_m:.0} m, clearance {:.0} mm",
                    clearance_m * 1000.0
                ),
                is_met: contacts == 0,
            }
        }),
    );
}

fn approach(obstacle: Obstacle, runs: u64, clock: Clock) -> Measured {
    let speed_m_s = |run: u64| 0.2 + 0.5 * (run as f64 / runs as f64);
    let results: Vec<_> = (0..runs)
        .map(|seed| {
            (
                speed_m_s(seed),
                avoid::approach(obstacle, speed_m_s(seed), seed, clock),
            )
        })
        .collect();
    let contacts: u64 = results.iter().map(|(_, run)| run.contacts).sum();
    let all_stopped = results.iter().all(|(_, run)| run.stopped);
    let slow = results.iter().filter(|(speed_m_s, _)| *speed_m_s <= 0.4);
    let stops_mm: Vec<f64> = slow.map(|(_, run)| run.stop_m * 1000.0).collect();
    let least_mm = stops_mm.iter().copied().fold(f64::INFINITY, f64::min);
    let most_mm = stops_mm.iter().copied().fold(0.0, f64::max);
    let mean: Duration = results.iter().map(|(_, run)| run.mean).sum();
    let mean_ms = mean.as_secs_f64() * 1000.0 / runs.max(1) as f64;
    let is_near = least_mm >= 30.0 && most_mm <= 150.0;
    Measured {
        text: format!(
            "{contacts} contacts, stops at {least_mm:.0} to {most_mm:.0} mm, {mean_ms:.3} ms"
        ),
        is_met: contacts == 0 && all_stopped && is_near && mean_ms <= 1.0,
    }
}

/// The slowest of runs that must not stop.
fn passing(seeds: u64, limit_m_s: f64, run: impl Fn(u64) -> (f64, u64)) -> Measured {
    let results: Vec<_> = (0..seeds).map(run).collect();
    let slowest_m_s = results.iter().map(|it| it.0).fold(f64::INFINITY, f64::min);
    let contacts: u64 = results.iter().map(|it| it.1).sum();
    Measured {
        text: format!("{slowest_m_s:.3} m/s, {contacts} contacts"),
        is_met: slowest_m_s >= limit_m_s && contacts == 0,
    }
}

/// Section 5.4 of the fact sheet.
fn trajectories(all: &mut Vec<Case<'_>>) {
    for (path, corners) in [("small", &routes::SMALL), ("large", &routes::LARGE)] {
        for (what, track_m, sensors, limit_mm) in [
            ("true pose", 0.42, Sensors::EXACT, 25.0),
            ("20 mm of noise", 0.42, Sensors::NOISY, 25.0),
            ("Location", 0.42, Sensors::LOCATED, 25.0),
            ("Location, track 0.33 m", 0.33, Sensors::LOCATED, 40.0),
            ("Location, track 0.525 m", 0.525, Sensors::LOCATED, 40.0),
        ] {
            let is_exact = track_m == 0.42;
            all.push(Case {
                driver: "pid_follow_trajectory",
                name: format!("{path} rectangle, {what}"),
                goal: if is_exact {
                    "rms 25 mm, max 70 mm, end 50 mm, 1.4 × length / 0.35"
                } else {
                    "rms 40 mm"
                },
                seeds: 20,
                measure: Box::new(move |seeds| {
                    let runs: Vec<Tracking> = (0..seeds)
                        .map(|seed| follow(corners, 0.1, track_m, sensors, seed))
                        .collect();
                    let most =
                        |value: fn(&Tracking) -> f64| runs.iter().map(value).fold(0.0, f64::max);
                    let finished = runs.iter().all(|run| run.finished);
                    let (rms_mm, max_mm) =
                        (most(|run| run.rms_m) * 1000.0, most(|run| run.max_m) * 1000.0);
                    let end_mm = most(|run| run.end_m) * 1000.0;
                    let time = most(|run| run.time_s / run.length_m * 0.35);
                    let is_close = !is_exact || (max_mm <= 70.0 && end_mm <= 50.0 && time <= 1.4);
                    Measured {
                        text: format!(
                            "rms {rms_mm:.0} mm, max {max_mm:.0} mm, end {end_mm:.0} mm, {time:.2}{}",
                            if finished { "" } else { ", not all finished" }
                        ),
                        is_met: finished && rms_mm <= limit_mm && is_close,
                    }
                }),
            });
        }
    }
}

/// The goals of an errand.
#[derive(Clone, Copy, Debug, Default)]
struct Goal {
    text: &'static str,
    visited: usize,
    skipped: usize,
    /// The time, the clearance and the mean speed, if they are demanded.
    time_s: Option<f64>,
    clearance_m: f64,
    mean_m_s: f64,
    stop_s: Option<f64>,
    skipped_s: Option<f64>,
}

/// Section 3.4 of the fact sheet, and the whole chain.
fn errands<'a>(maps: &'a Maps, all: &mut Vec<Case<'a>>) {
    let mut add = |name: &str, errand: Errand, seeds, goal: Goal| {
        let place = match errand.sensors.poses {
            Poses::Location { .. } => format!("{name}, Location"),
            Poses::Noisy { .. } => name.to_owned(),
        };
        all.push(Case {
            driver: "drive_to_point",
            name: place,
            goal: goal.text,
            seeds,
            measure: Box::new(move |seeds| drive(&errand, goal, seeds)),
        });
    };
    let (walls, start) = (maps.flat.faces(), maps.flat.robots[0]);
    let flat = Errand::new(&walls, start, &targets(&routes::FLAT)).located();
    let at = Duration::from_secs(8);
    let bedroom = Pose::from(MapPose::new(5.5, 1.3, 1.0));
    let all_rooms = Goal {
        text: "all visited, no contact, clearance 20 mm",
        visited: routes::FLAT.len(),
        clearance_m: 0.02,
        ..Goal::default()
    };
    add("flat", flat.clone(), 20, all_rooms);
    add(
        "flat, kidnapped",
        flat.clone().with(Incident::Kidnap(at, bedroom)),
        20,
        Goal {
            text: "all visited, no contact, stops in 0.5 s",
            clearance_m: 0.0,
            stop_s: Some(0.5),
            ..all_rooms
        },
    );
    add(
        "flat, box on the path",
        flat.clone().with(Incident::Box(at, 0.8)),
        20,
        Goal {
            text: "all visited, no contact",
            clearance_m: 0.0,
            ..all_rooms
        },
    );
    let stops = |text, stop_s| Goal {
        text,
        stop_s: Some(stop_s),
        ..Goal::default()
    };
    // The door of the first room.
    if let Some(at) = maps.flat.gates.first().copied() {
        let some = |text, visited, skipped| Goal {
            text,
            visited,
            skipped,
            clearance_m: 0.0,
            ..all_rooms
        };
        for (name, closes, opens, goal) in [
            (
                "flat, a door closes ahead",
                Closes::Ahead(0.7),
                None,
                some("its room skipped, no contact", routes::FLAT.len() - 1, 1),
            ),
            (
                "flat, a door closes ahead for 10 s",
                Closes::Ahead(0.7),
                Some(Duration::from_secs(10)),
                some("all visited, no contact", routes::FLAT.len(), 0),
            ),
            (
                "flat, a door closes behind",
                Closes::Behind,
                None,
                some("all others skipped, no contact", 1, routes::FLAT.len() - 1),
            ),
        ] {
            let door = Door { at, closes, opens };
            add(name, flat.clone().with(Incident::Door(door)), 20, goal);
        }
    }
    for (name, crossing) in [
        ("flat, a person crosses", Crossing::PERSON),
        ("flat, a vehicle crosses", Crossing::VEHICLE),
    ] {
        let goal = Goal {
            text: "all visited, no contact",
            clearance_m: 0.0,
            ..all_rooms
        };
        add(
            name,
            flat.clone().with(Incident::Crossing(at, crossing)),
            20,
            goal,
        );
    }
    for (name, incident, goal) in [
        (
            "flat, laser off",
            Incident::LaserOff(at),
            stops("stops in 0.6 s and braking", 0.65),
        ),
        (
            "flat, Location off",
            Incident::PoseOff(at),
            stops("stops in 1 s", 1.0),
        ),
        (
            "flat, targets cleared",
            Incident::Cleared(at),
            stops("stops in 0.15 s", 0.15),
        ),
    ] {
        add(name, flat.clone().with(incident).until_s(14), 20, goal);
    }
    if let Some(lab) = &maps.lab {
        let paths: [(&str, &[(f64, f64)]); 7] = [
            ("basic", &routes::BASIC),
            ("simple", &routes::SIMPLE),
            ("second", &routes::SECOND),
            ("third", &routes::THIRD),
            ("local_minimum", &routes::LOCAL_MINIMUM),
            ("longer", &routes::LONGER),
            ("longest", &routes::LONGEST),
        ];
        for (name, path) in paths {
            let route = targets(path);
            let start = start_at(&lab.walls, route[0].at);
            let errand = Errand::new(&lab.walls, start, &route);
            let goal = Goal {
                text: match path == routes::BASIC {
                    true => "all visited in 48 s, no contact, clearance 20 mm",
                    false => {
                        "all visited in length / 0.19 m/s + 4 s a target, no contact, clearance 20 mm"
                    }
                },
                visited: route.len(),
                time_s: match path == routes::BASIC {
                    // That of the fact sheet; its path is a bit shorter.
                    true => Some(48.0),
                    false => length_m(lab, &route)
                        .map(|length_m| length_m / 0.19 + 4.0 * route.len() as f64),
                },
                clearance_m: 0.02,
                ..Goal::default()
            };
            let name = format!("lab, {name}");
            if path == routes::BASIC {
                add(&name, errand.clone(), 20, goal);
            }
            add(&name, errand.located(), 20, goal);
        }
        let route = targets(&routes::UNAVAILABLE);
        let start = start_at(&lab.walls, route[0].at);
        let goal = Goal {
            text: "the first visited, the second skipped in 5 s",
            visited: 1,
            skipped: 1,
            skipped_s: Some(5.0),
            ..Goal::default()
        };
        let unavailable = Errand::new(&lab.walls, start, &route);
        add("lab, unavailable", unavailable.located(), 20, goal);
    }
    if let Some(rooms) = &maps.rooms {
        let route = tour(rooms);
        let Some(first) = route.first() else { return };
        let start = start_at(&rooms.walls, first.at);
        let errand = Errand::new(&rooms.walls, start, &route);
        let goal = Goal {
            text: "all visited, no contact, 0.25 m/s",
            visited: route.len(),
            mean_m_s: 0.25,
            ..Goal::default()
        };
        add("lab, tour of all rooms", errand.clone(), 20, goal);
        add("lab, tour of all rooms", errand.clone().located(), 20, goal);
        let middle = route[route.len() / 2].at;
        let carried = start_at(&rooms.walls, middle);
        add(
            "lab, tour of all rooms, kidnapped",
            errand.located().with(Incident::Kidnap(at, carried)),
            20,
            Goal {
                text: "all visited, no contact, stops in 0.5 s",
                mean_m_s: 0.0,
                stop_s: Some(0.5),
                ..goal
            },
        );
    }
}

/// The length of the paths from the first target to the last one.
fn length_m(map: &Map, route: &[Target]) -> Option<f64> {
    let planner = Planner::new(Default::default(), &map.walls).ok()?;
    route.windows(2).try_fold(0.0, |sum_m, pair| {
        let path = planner.plan(pair[0].at, pair[1].at, pair[1].radius_m, &[]);
        Some(sum_m + path.ok()?.length_m())
    })
}

fn drive(errand: &Errand, goal: Goal, seeds: u64) -> Measured {
    let runs: Vec<Run> = (0..seeds).map(|seed| errand.run(seed)).collect();
    let least = |value: fn(&Run) -> f64| runs.iter().map(value).fold(f64::INFINITY, f64::min);
    let most = |value: fn(&Run) -> f64| runs.iter().map(value).fold(0.0, f64::max);
    let contacts: u64 = runs.iter().map(|run| run.contacts).sum();
    let is_done = |run: &&Run| run.visited == goal.visited && run.skipped == goal.skipped;
    let done = runs.iter().filter(is_done).count();
    let (time_s, clearance_m) = (most(|run| run.time_s), least(|run| run.clearance_m));
    let speeds_m_s: Vec<f64> = runs.iter().map(Run::mean_m_s).collect();
    let mean_m_s = speeds_m_s.iter().sum::<f64>() / seeds.max(1) as f64;
    let slowest_m_s = speeds_m_s.iter().copied().fold(f64::INFINITY, f64::min);
    let stop_s = most(|run| run.stop_s.unwrap_or(f64::INFINITY));
    let skipped_s = most(|run| run.skipped_s.unwrap_or(f64::INFINITY));
    let mut text = String::new();
    if goal.visited > 0 {
        let limit = goal
            .time_s
            .map_or_else(String::new, |limit_s| format!(" of {limit_s:.1} s"));
        let _ = write!(
            text,
            "{done}/{seeds} done in up to {time_s:.1} s{limit}, mean {mean_m_s:.3} m/s, slowest run \
             {slowest_m_s:.3} m/s, "
        );
    }
    let _ = write!(
        text,
        "{contacts} contacts, clearance {:.0} mm",
        clearance_m * 1000.0
    );
    if goal.stop_s.is_some() {
        let _ = write!(text, ", stops in {stop_s:.2} s");
    }
    if goal.skipped_s.is_some() {
        let _ = write!(text, ", skipped in {skipped_s:.2} s");
    }
    let is_within = |value: f64, limit: Option<f64>| limit.is_none_or(|limit| value <= limit);
    Measured {
        is_met: contacts == 0
            && (goal.visited == 0 || done == runs.len())
            && is_within(time_s, goal.time_s)
            && clearance_m >= goal.clearance_m
            && mean_m_s >= goal.mean_m_s
            && is_within(stop_s, goal.stop_s)
            && is_within(skipped_s, goal.skipped_s),
        text,
    }
}
