//! Whole drives to points. PURE.

use std::fmt::Write;
use std::time::Duration;

use amber_map::{Map, MapPose, Pose};
use amber_navigation::drive_to_point::Target;
use amber_navigation::planner::Planner;

use super::{Case, Maps, Measured};
use crate::goto::{Closes, Crossing, Door, Errand, Incident, Run, start_at, targets, tour};
use crate::robot::{Blindness, Poses};
use crate::{Round, Scanner, routes};

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
pub(super) fn add<'a>(maps: &'a Maps, all: &mut Vec<Case<'a>>) {
    let mut case = |name: &str, errand: Errand, seeds, goal: Goal| {
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
    case("flat", flat.clone(), 20, all_rooms);
    for round in Round::ALL {
        let errand = flat.clone().with_scanner(Scanner::Round(round));
        case(&format!("flat, {}", round.name), errand, 20, all_rooms);
    }
    case(
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
    case(
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
            case(name, flat.clone().with(Incident::Door(door)), 20, goal);
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
        case(
            name,
            flat.clone().with(Incident::Crossing(at, crossing)),
            20,
            goal,
        );
    }
    for (name, blind) in [
        ("flat, laser without echoes", Blindness::NoEcho),
        ("flat, laser covered, all too near", Blindness::TooNear),
        ("flat, laser with a single beam", Blindness::OneBeam),
    ] {
        let incident = Incident::Blind(at, blind);
        let goal = stops("no contact, stops in 1.2 s", 1.2);
        case(name, flat.clone().with(incident).until_s(14), 50, goal);
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
        case(name, flat.clone().with(incident).until_s(14), 20, goal);
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
                case(&name, errand.clone(), 20, goal);
            }
            case(&name, errand.located(), 20, goal);
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
        case("lab, unavailable", unavailable.located(), 20, goal);
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
        case("lab, tour of all rooms", errand.clone(), 20, goal);
        case("lab, tour of all rooms", errand.clone().located(), 20, goal);
        let middle = route[route.len() / 2].at;
        let carried = start_at(&rooms.walls, middle);
        case(
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
