//! The location driver knows where the demo's robot is, from the laser and the wheels alone. The
//! simulated world provides the true pose.

use std::time::Duration;

use amber_client::proxy::LocationServicePoses as PosesUpdate;
use amber_client::{Client, LocationService, MapPose};
use amber_sim::control::SimulationState;
use tempfile::TempDir;
use tokio::time::{sleep, timeout};

use crate::common::{PATIENCE, demo_with, root, wait_for};
use crate::robot::Robot;

const DEVICE: &str = "location:1";
/// The distance from the true position that counts as found.
const NEAR_M: f64 = 0.15;
/// Old clients trust a pose above this quality.
const TRUSTED: f64 = 0.9;

/// A demo with the location driver, and the driver's copy of the map.
struct Located {
    robot: Robot,
    map: TempDir,
}

impl Located {
    fn start() -> Self {
        let map = tempfile::tempdir().unwrap();
        let file = map.path().join("flat.roson");
        std::fs::copy(root().join("drivers/map/maps/flat.roson"), &file).unwrap();
        let driver = format!(
            "{DEVICE}=amber driver location --laser-offset-mm 0 --seed 1 --map {}",
            file.display()
        );
        let robot = Robot::of(demo_with(&driver));
        robot.demo.wait_for_line(&format!("up driver={DEVICE}"));
        Self { robot, map }
    }

    fn trouble(&self) -> Option<String> {
        let troubles = self.robot.demo.describe(DEVICE).troubles;
        troubles.into_iter().next().map(|trouble| trouble.text)
    }

    /// The distance of a pose from the true ones before and after it.
    fn error_m(pose: MapPose, before: &SimulationState, after: &SimulationState) -> f64 {
        let error_m = |state: &SimulationState| (pose.x_m - state.x_m).hypot(pose.y_m - state.y_m);
        error_m(before).min(error_m(after))
    }

    /// Waits until the driver knows the true pose.
    async fn found(&self, location: &LocationService) -> MapPose {
        let finding = async {
            loop {
                let before = self.robot.state();
                let pose = location.pose().await.unwrap();
                let error_m = Self::error_m(pose, &before, &self.robot.state());
                if pose.quality > TRUSTED && error_m < NEAR_M {
                    return pose;
                }
                sleep(Duration::from_millis(50)).await;
            }
        };
        let found = timeout(PATIENCE, finding).await;
        found.unwrap_or_else(|_| panic!("not found: {:#?}", self.robot.demo.output()))
    }
}

/// Whether the pose is of data up to the age that counts fully.
fn is_fresh(update: &PosesUpdate) -> bool {
    let quality = update.quality.as_ref().unwrap();
    let is_fresh = |age_ms: Option<u32>| age_ms.is_some_and(|ms| ms <= 500);
    is_fresh(quality.scan_age_ms) && is_fresh(quality.wheels_age_ms)
}

fn block_on<T>(run: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.unwrap().block_on(run)
}

#[test]
fn a_person_tells_where_a_carried_robot_is() {
    let located = Located::start();
    let here = |x: &str, y: &str, degrees: &str| {
        let words = ["location", "here", x, y, degrees, "--device", DEVICE];
        located.robot.amber(&words)
    };
    block_on(async {
        let client = Client::connect(located.robot.demo.address).await.unwrap();
        let location = client.location(1);
        located.found(&location).await;
        assert!(located.robot.sim(&["place", "5.8,4.8,90"]));
        assert!(here("5.8", "4.8", "90"));
        located.found(&location).await;
        assert!(!here("100", "100", "0"), "outside of the map");
        client.close().await;
    });
}

#[test]
fn the_pose_follows_a_robot_that_drives_through_the_flat() {
    let located = Located::start();
    let location = async || {
        let client = Client::connect(located.robot.demo.address).await.unwrap();
        let location = client.location(1);
        located.found(&location).await;
        location
    };
    block_on(location());
    let begin = located.robot.state();
    let ((track, poses), _) = located.robot.while_wandering(|_| {
        block_on(async {
            let mut updates = location().await.poses().await.unwrap();
            let (mut track, mut poses) = (vec![located.robot.state()], Vec::new());
            let has_seen_enough = |track: &[SimulationState], poses: &[PosesUpdate]| {
                let way_m = track[track.len() - 1].travelled_m - begin.travelled_m;
                way_m >= 2.0 && poses.iter().filter(|it| is_fresh(it)).count() >= 20
            };
            while !has_seen_enough(&track, &poses) {
                let update = timeout(PATIENCE, updates.next()).await;
                poses.push(update.expect("a pose in time").unwrap().message);
                track.push(located.robot.state());
            }
            (track, poses)
        })
    });
    // The true pose is read some time before or after, so only the track is compared.
    let off_track = |pose: &MapPose| {
        let between = |part: &[SimulationState], share: f64| {
            let x_m = part[0].x_m + share * (part[1].x_m - part[0].x_m);
            let y_m = part[0].y_m + share * (part[1].y_m - part[0].y_m);
            (pose.x_m - x_m).hypot(pose.y_m - y_m)
        };
        let shares = (0..=10).map(|tenth| f64::from(tenth) / 10.0);
        let parts = track.windows(2);
        parts
            .flat_map(|part| shares.clone().map(move |share| between(part, share)))
            .fold(f64::INFINITY, f64::min)
    };
    for update in &poses {
        let pose = update.current_location;
        assert!(off_track(&pose) < NEAR_M, "{pose:?}: {track:#?}");
    }
    // On a busy machine, data come late, and the quality says so.
    let fresh: Vec<_> = poses.iter().filter(|update| is_fresh(update)).collect();
    let trusted = (fresh.iter())
        .filter(|update| update.current_location.quality > 0.8)
        .count();
    assert!(trusted * 10 > fresh.len() * 8, "{fresh:#?}");

    // At rest, the time does not matter.
    let truth = located.robot.until("it stands", crate::robot::stands);
    block_on(async {
        let location = location().await;
        let mut poses = location.poses().await.unwrap();
        let last = timeout(PATIENCE, async {
            loop {
                let update = poses.next().await.unwrap().message;
                let pose = update.current_location;
                let error_m = Located::error_m(pose, &truth, &truth);
                let turn = (pose.heading_rad.to_degrees() - truth.heading_deg + 540.0) % 360.0;
                if error_m < 0.05 && (turn - 180.0).abs() < 2.0 {
                    return update;
                }
            }
        });
        let update = last.await.expect("the true pose");
        assert!(update.quality.unwrap().covariance.is_some());
    });
    assert_eq!(located.trouble(), None);
}

#[test]
fn a_robot_that_is_carried_away_finds_itself() {
    let located = Located::start();
    block_on(async {
        let client = Client::connect(located.robot.demo.address).await.unwrap();
        let location = client.location(1);
        located.found(&location).await;
        for place in ["5.5,1.0,115", "1.5,2.6,0"] {
            assert!(located.robot.sim(&["place", place]));
            located.found(&location).await;
        }
        let particles = location.particles().await.unwrap();
        let weights: f32 = particles.iter().map(|one| one.weight()).sum();
        assert!(particles.len() > 100 && (weights - 1.0).abs() < 0.01);
        client.close().await;
    });
}

#[test]
fn a_lost_laser_and_lost_wheels_are_reported_and_lower_the_quality() {
    let located = Located::start();
    block_on(async {
        let client = Client::connect(located.robot.demo.address).await.unwrap();
        let location = client.location(1);
        located.found(&location).await;
        for (device, reason) in [
            ("hokuyo", "no scans from hokuyo:0"),
            ("roboclaw", "no wheel speeds from roboclaw:0"),
        ] {
            assert!(located.robot.sim(&["fault", "unplug", device]));
            wait_for(reason, || {
                located.trouble().filter(|why| why.starts_with(reason))
            });
            let pose = location.pose().await.unwrap();
            assert!(pose.quality < TRUSTED && pose.is_known(), "{pose:?}");
            assert!(located.robot.sim(&["fault", "replug", device]));
            wait_for("no trouble", || located.trouble().is_none().then_some(()));
            located.found(&location).await;
        }
        client.close().await;
    });
}

#[test]
fn an_uploaded_map_is_used_and_an_invalid_one_refused() {
    let located = Located::start();
    let file = located.map.path().join("flat.roson");
    let flat = std::fs::read_to_string(&file).unwrap();
    block_on(async {
        let client = Client::connect(located.robot.demo.address).await.unwrap();
        let location = client.location(1);
        located.found(&location).await;
        let upload = |text: &str| {
            let mut command = located
                .robot
                .demo
                .amber(&["call", DEVICE, "upload-map", text]);
            let output = command.output().unwrap();
            (
                output.status.success(),
                String::from_utf8_lossy(&output.stderr).into_owned(),
            )
        };
        let (is_done, text) = upload("no map");
        assert!(!is_done && text.contains("not a .roson map"), "{text}");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), flat);
        assert!(location.pose().await.unwrap().quality > TRUSTED);
        // The same flat with its line ends removed.
        let other = flat.lines().collect::<String>();
        let (is_done, text) = upload(&other);
        assert!(is_done, "{text}");
        wait_for("the new file", || {
            (std::fs::read_to_string(&file).unwrap() == other).then_some(())
        });
        located.found(&location).await;
        client.close().await;
    });
}

#[test]
fn without_a_map_the_pose_is_zero_until_one_is_uploaded() {
    let robot = Robot::of(demo_with(&format!(
        "{DEVICE}=amber driver location --laser-offset-mm 0"
    )));
    let located = Located {
        robot,
        map: tempfile::tempdir().unwrap(),
    };
    let why = wait_for("trouble", || located.trouble());
    assert!(why.starts_with("no map"), "{why}");
    let flat = std::fs::read_to_string(root().join("drivers/map/maps/flat.roson")).unwrap();
    block_on(async {
        let client = Client::connect(located.robot.demo.address).await.unwrap();
        let location = client.location(1);
        let pose = location.pose().await.unwrap();
        assert!(!pose.is_known() && pose.timestamp_ms.is_none(), "{pose:?}");
        location.upload_map(flat).await.unwrap();
        located.found(&location).await;
        client.close().await;
    });
    drop(located.map);
}
