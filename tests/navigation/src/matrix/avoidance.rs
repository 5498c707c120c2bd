//! How the collision monitor stops and slows the robot. PURE.

use std::fmt::Write;
use std::time::Duration;

use super::{Case, Maps, Measured};
use crate::avoid::{self, Clock, Obstacle};
use crate::robot::Blindness;
use crate::{Course, Round, Scanner};

/// Sections 4.4 and 6.4 of the fact sheet.
pub(super) fn add<'a>(maps: &'a Maps, clock: Clock, all: &mut Vec<Case<'a>>) {
    let mut case = |name: String, goal, seeds, measure: Box<dyn Fn(u64) -> Measured + 'a>| {
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
        case(
            format!("{name}, 0.2 to 0.7 m/s"),
            "no contact, stops at 30 to 150 mm up to 0.4 m/s, 1 ms",
            1000,
            Box::new(move |runs| approach(obstacle, runs, clock)),
        );
    }
    for round in Round::ALL {
        for (direction, sign) in [("forwards", 1.0), ("backwards", -1.0)] {
            case(
                format!("{}, {direction}, all of these", round.name),
                "no contact, stops at 30 to 150 mm up to 0.4 m/s",
                1000,
                Box::new(move |runs| around(round, sign, runs)),
            );
        }
    }
    case(
        "along a wall at 60 mm".into(),
        "0.18 m/s, no contact",
        20,
        Box::new(|seeds| passing(seeds, 0.18, |seed| avoid::along_wall(0.06, seed))),
    );
    case(
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
        case(
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
    for (name, kind) in [
        ("laser without echoes, 0.2 to 0.7 m/s", Blindness::NoEcho),
        (
            "laser covered, all too near, 0.2 to 0.7 m/s",
            Blindness::TooNear,
        ),
        (
            "laser with a single beam, 0.2 to 0.7 m/s",
            Blindness::OneBeam,
        ),
    ] {
        case(
            name.into(),
            "no contact, stands in 1.5 s, says so, goes on when it sees",
            350,
            Box::new(move |seeds| {
                let runs: Vec<_> = (0..seeds).map(|seed| avoid::blinded(kind, seed)).collect();
                let contacts: u64 = runs.iter().map(|run| run.contacts).sum();
                let most =
                    |value: fn(&avoid::Blinded) -> f64| runs.iter().map(value).fold(0.0, f64::max);
                let (stop_s, way_m) = (most(|run| run.stop_s), most(|run| run.way_m));
                let said = runs.iter().filter(|run| run.is_said).count();
                let is_over = runs.iter().all(|run| run.is_said && run.goes_on);
                Measured {
                    text: format!(
                        "{contacts} contacts, stands in {stop_s:.2} s after {way_m:.2} m at most, \
                         {said} of {seeds} say so"
                    ),
                    is_met: contacts == 0 && stop_s <= 1.5 && is_over,
                }
            }),
        );
    }
    case(
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
    case(
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
    case(
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
        case(
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
        case(
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
    case(
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
    let approach = |seed: u64| {
        let speed_m_s = speed_m_s(seed, runs);
        let run = avoid::approach(obstacle, Scanner::Urg04Lx, speed_m_s, seed, clock);
        (speed_m_s, run)
    };
    let results: Vec<_> = (0..runs).map(approach).collect();
    stops(&results, Some(1.0))
}

/// The same with a scanner that looks all around, at all obstacles in turn. A box appears where the
/// robot can still stop: a scan of a slow scanner comes late.
fn around(round: Round, sign: f64, runs: u64) -> Measured {
    let slower_s = 1.5 * (round.turn.as_secs_f64() - 0.1);
    let approach = |seed: u64| {
        let speed_m_s = speed_m_s(seed, runs);
        let appears = |away_m: f64| Obstacle::Appears(away_m + speed_m_s * slower_s);
        let obstacle = match seed % 5 {
            0 => Obstacle::Wall,
            1 => Obstacle::Post,
            2 => Obstacle::SlantedWall,
            3 => appears(0.6),
            _ => appears(0.5),
        };
        let scanner = Scanner::Round(round);
        let run = avoid::approach(obstacle, scanner, sign * speed_m_s, seed, || Duration::ZERO);
        (speed_m_s, run)
    };
    let results: Vec<_> = (0..runs).map(approach).collect();
    stops(&results, None)
}

fn speed_m_s(run: u64, runs: u64) -> f64 {
    0.2 + 0.5 * (run as f64 / runs as f64)
}

/// How runs at obstacles end, with their speeds.
fn stops(results: &[(f64, avoid::Run)], limit_ms: Option<f64>) -> Measured {
    let runs = results.len();
    let contacts: u64 = results.iter().map(|(_, run)| run.contacts).sum();
    let all_stopped = results.iter().all(|(_, run)| run.stopped);
    let slow = results.iter().filter(|(speed_m_s, _)| *speed_m_s <= 0.4);
    let stops_mm: Vec<f64> = slow.map(|(_, run)| run.stop_m * 1000.0).collect();
    let least_mm = stops_mm.iter().copied().fold(f64::INFINITY, f64::min);
    let most_mm = stops_mm.iter().copied().fold(0.0, f64::max);
    let mean: Duration = results.iter().map(|(_, run)| run.mean).sum();
    let mean_ms = mean.as_secs_f64() * 1000.0 / runs.max(1) as f64;
    let is_near = least_mm >= 30.0 && most_mm <= 150.0;
    let mut text = format!("{contacts} contacts, stops at {least_mm:.0} to {most_mm:.0} mm");
    if limit_ms.is_some() {
        let _ = write!(text, ", {mean_ms:.3} ms");
    }
    let is_quick = limit_ms.is_none_or(|limit_ms| mean_ms <= limit_ms);
    Measured {
        text,
        is_met: contacts == 0 && all_stopped && is_near && is_quick,
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
