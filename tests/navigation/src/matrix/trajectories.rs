//! How closely the trajectory follower drives. PURE.

use super::{Case, Measured};
use crate::goto::{Tracking, follow};
use crate::robot::Sensors;
use crate::routes;

/// Section 5.4 of the fact sheet.
pub(super) fn add(all: &mut Vec<Case<'_>>) {
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
