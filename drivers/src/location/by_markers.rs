//! Poses of a device that finds markers in pictures. IO.
//!
//! They are candidates, as poses of another system are: the scans must agree. A marker whose place in the
//! file is wrong gives the same wrong pose again and again, so no pose counts as more certain than a scan.

use std::time::{Duration, Instant};

use amber_driver::client::Client;
use amber_driver::client::proxy::Markers;
use amber_driver::now;
use amber_map::Pose;
use amber_proto::Device;
use amber_proto::markers::Sightings;
use amber_values::MapPose;
use tokio::time::sleep;

use super::engine::{Engine, Input};

/// An older pose is dropped.
const MAX_AGE_US: i64 = 1_000_000;
/// Clocks of two processes on one machine agree this well.
const SKEW_US: i64 = 50_000;
/// No pose is more certain than this: the map, the file of the markers and the place of the camera on the
/// robot have errors, too.
const MIN_SIGMA_M: f64 = 0.05;
const MIN_SIGMA_RAD: f64 = 0.035;
/// The time until the next attempt to subscribe.
const RETRY: Duration = Duration::from_secs(1);

/// A pose by markers.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Measured {
    age: Duration,
    pose: Pose,
    sigma_m: f64,
    sigma_rad: f64,
}

/// The pose of the robot in a message that arrives at this time, if there is one that can be used. PURE.
fn measured(seen: &Sightings, unix_us: i64) -> Option<Measured> {
    let robot = seen.robot.as_ref()?;
    let numbers = [robot.x?, robot.y?, robot.heading?];
    let sigmas = [robot.position_sigma?, robot.heading_sigma?];
    let all = || numbers.into_iter().chain(sigmas);
    let age_us = unix_us.checked_sub(seen.captured?)?;
    let is_usable = all().all(f64::is_finite)
        && sigmas.into_iter().all(|sigma| sigma >= 0.0)
        && (-SKEW_US..=MAX_AGE_US).contains(&age_us);
    let [x, y, heading] = numbers;
    is_usable.then(|| Measured {
        age: Duration::from_micros(age_us.max(0).unsigned_abs()),
        pose: MapPose::new(x, y, heading).into(),
        sigma_m: sigmas[0].max(MIN_SIGMA_M),
        sigma_rad: sigmas[1].max(MIN_SIGMA_RAD),
    })
}

/// Passes the poses of the device on to the filter, endlessly.
pub(crate) async fn watch(
    client: &Client,
    device: Option<Device>,
    engine: &Engine,
    unix_us: impl Fn() -> i64,
) {
    let Some(device) = device else {
        return;
    };
    let markers = Markers::new(client.device(device));
    loop {
        if let Ok(mut seen) = markers.sightings_updates().await {
            while let Some(update) = seen.next().await {
                let Some(measured) = measured(&update.message, unix_us()) else {
                    continue;
                };
                let taken: Option<Instant> = now().checked_sub(measured.age);
                engine.send(Input::Pose {
                    time: engine.since_start(taken.unwrap_or_else(now)),
                    pose: measured.pose,
                    sigma_m: measured.sigma_m,
                    sigma_rad: measured.sigma_rad,
                });
            }
        }
        sleep(RETRY).await;
    }
}

#[cfg(test)]
mod tests {
    use amber_proto::markers::RobotPose;

    use super::*;

    const NOW_US: i64 = 1_700_000_000_000_000;

    fn seen(age_us: i64, sigma_m: f64) -> Sightings {
        Sightings {
            captured: Some(NOW_US - age_us),
            robot: Some(RobotPose {
                x: Some(1.0),
                y: Some(2.0),
                heading: Some(0.5),
                position_sigma: Some(sigma_m),
                heading_sigma: Some(0.1),
                used: vec![1, 2],
            }),
            ..Sightings::default()
        }
    }

    #[test]
    fn poses_are_taken_with_their_age_and_no_more_certainty_than_there_is() {
        let measured = |age_us, sigma_m| measured(&seen(age_us, sigma_m), NOW_US);
        let found = measured(120_000, 0.01).unwrap();
        assert_eq!(found.age, Duration::from_millis(120));
        assert_eq!(found.pose, Pose::new(1.0, -2.0, -0.5));
        assert_eq!((found.sigma_m, found.sigma_rad), (MIN_SIGMA_M, 0.1));
        assert_eq!(measured(-20_000, 0.2).unwrap().age, Duration::ZERO);
        assert_eq!(measured(0, 0.2).unwrap().sigma_m, 0.2);
        for (age_us, sigma_m) in [
            (1_000_001, 0.1),
            (-50_001, 0.1),
            (i64::MIN, 0.1),
            (0, f64::NAN),
            (0, -1.0),
        ] {
            let mut wrong = seen(0, sigma_m);
            wrong.captured = Some(NOW_US.saturating_sub(age_us));
            assert_eq!(super::measured(&wrong, NOW_US), None, "{age_us} {sigma_m}");
        }
        assert_eq!(super::measured(&Sightings::default(), NOW_US), None);
    }
}
