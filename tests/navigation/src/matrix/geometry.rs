//! Whether wrong geometry is found, and only where it is wrong. PURE.

use std::fmt::Write;
use std::time::Duration;

use amber_map::{Map, Segment};
use amber_navigation::geometry::{Estimate, Fault};

use super::{Case, Maps, Measured};
use crate::Course;
use crate::geometry::{Checked, Wrong, check};

/// How long the robot drives.
const LENGTH: Duration = Duration::from_secs(40);

/// A tour by hand through each map, with each fault.
pub(super) fn add<'a>(maps: &'a Maps, all: &mut Vec<Case<'a>>) {
    let mut case = |place: &str, map: &Map, walls: Vec<Segment>| {
        let Some(course) = Course::new(map, walls) else {
            return;
        };
        for wrong in Wrong::ALL {
            let course = course.clone();
            all.push(Case {
                driver: "geometry",
                name: format!("{place}, {}", wrong.name),
                goal: match wrong.fault {
                    Some(_) => "all found, no false alarm",
                    None => "no false alarm",
                },
                seeds: 50,
                measure: Box::new(move |seeds| measure(&course, &wrong, seeds)),
            });
        }
    };
    case("flat", &maps.flat, maps.flat.faces());
    if let Some(rooms) = &maps.rooms {
        case("lab", rooms, rooms.walls.clone());
    }
}

fn measure(course: &Course, wrong: &Wrong, seeds: u64) -> Measured {
    let runs: Option<Vec<Checked>> = (1..=seeds)
        .map(|seed| check(&course.by_hand(seed), LENGTH, wrong, seed))
        .collect();
    let Some(runs) = runs else {
        return Measured::default();
    };
    let alarms = runs.iter().filter(|run| !run.false_alarms.is_empty());
    let alarms = alarms.count() as u64;
    let known = runs.iter().filter(|run| run.last.is_right()).count();
    let mut times_s: Vec<f64> = runs.iter().filter_map(|run| run.found_s).collect();
    times_s.sort_by(f64::total_cmp);
    let found = times_s.len() as u64;
    let mut text = String::new();
    if wrong.fault.is_some() {
        let middle_s = times_s.get(times_s.len() / 2).copied().unwrap_or(f64::NAN);
        let last_s = times_s.last().copied().unwrap_or(f64::NAN);
        let _ = write!(
            text,
            "{found} of {seeds} found in {middle_s:.0} s (median), {last_s:.0} s (longest)"
        );
    } else {
        let _ = write!(text, "{known} of {seeds} known and right");
    }
    let _ = write!(text, ", {alarms} false alarms");
    if let Some(worst) = worst(wrong, &runs) {
        let _ = write!(text, ", {worst}");
    }
    Measured {
        text,
        is_met: alarms == 0 && (wrong.fault.is_none() || found == seeds),
    }
}

/// The largest error of an estimate.
fn worst(wrong: &Wrong, runs: &[Checked]) -> Option<String> {
    let truth = wrong.truth()?;
    let (unit, estimate): (_, fn(&Checked) -> Option<Estimate>) = match wrong.fault? {
        Fault::ScanDelay => ("ms", |run| run.last.scan_delay_ms),
        Fault::LaserAngle => ("°", |run| run.last.laser_angle_deg),
        _ => ("mm", |run| run.last.track_mm),
    };
    let estimates = runs.iter().filter_map(estimate);
    let (error, sigmas) = estimates.fold((0.0, 0.0), |(error, sigmas): (f64, f64), estimate| {
        let off = (estimate.value - truth).abs();
        (error.max(off), sigmas.max(off / estimate.sigma))
    });
    Some(format!(
        "error up to {error:.1} {unit}, {sigmas:.1} standard deviations"
    ))
}
