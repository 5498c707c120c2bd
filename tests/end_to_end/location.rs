//! The location driver knows where the demo's robot is, from the laser and the wheels alone. The
//! simulated world provides the true pose.

use std::time::Duration;

use amber_client::{Client, LocationService, MapPose};
use amber_sim::control::State;
use tempfile::TempDir;
use tokio::time::{sleep, timeout};

use crate::common::{PATIENCE, demo_with, root, wait_for};
use crate::robot::Robot;

const DEVICE: &str = "location:0";
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
    fn error_m(pose: MapPose, before: &State, after: &State) -> f64 {
        let error_m = |state: &State| (pose.x_m - state.x_m).hypot(pose.y_m - state.y_m);
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

fn block_on<T>(run: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.unwrap().block_on(run)
}

#[test]
fn the_pose_follows_a_robot_that_drives_through_the_flat() {
    let located = Located::start();
    let client = block_on(async {
        let client = Client::connect(located.robot.demo.address).await.unwrap();
        located.found(&client.location(0)).await;
        client
    });
    drop(client);
    let (errors, _) = located.robot.while_wandering(|| {
        located.robot.until("it drives", crate::robot::drives);
        block_on(async {
            let client = Client::connect(located.robot.demo.address).await.unwrap();
            let location = client.location(0);
            let mut poses = location.poses().await.unwrap();
            let mut errors = Vec::new();
            for _ in 0..60 {
                let before = located.robot.state();
                let pose = poses.next().await.unwrap().message;
                let after = located.robot.state();
                let heading = pose.location.heading_rad.to_degrees() - after.heading_deg;
                errors.push((
                    Located::error_m(pose.location, &before, &after),
                    (heading + 540.0).rem_euclid(360.0) - 180.0,
                    pose.location.quality,
                ));
                assert!(pose.quality.unwrap().covariance.is_some());
            }
            client.close().await;
            errors
        })
    });
    // A busy machine delays single readings of the true pose.
    let near = errors.iter().filter(|(error_m, ..)| *error_m < NEAR_M);
    assert!(near.count() >= 57, "{errors:?}");
    let trusted = errors.iter().filter(|(.., quality)| *quality > 0.8);
    assert!(trusted.count() >= 50, "{errors:?}");
    assert_eq!(located.trouble(), None);
}

#[test]
fn a_robot_that_is_carried_away_finds_itself() {
    let located = Located::start();
    block_on(async {
        let client = Client::connect(located.robot.demo.address).await.unwrap();
        let location = client.location(0);
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
        let location = client.location(0);
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
        let location = client.location(0);
        located.found(&location).await;
        let upload = |text: &str| located.robot.amber(&["call", DEVICE, "upload-map", text]);
        assert!(!upload("no map"), "refused");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), flat);
        assert!(location.pose().await.unwrap().quality > TRUSTED);
        // The same flat with its line ends removed.
        let other = flat.lines().collect::<String>();
        assert!(upload(&other));
        assert_eq!(std::fs::read_to_string(&file).unwrap(), other);
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
        let location = client.location(0);
        let pose = location.pose().await.unwrap();
        assert!(!pose.is_known() && pose.timestamp_ms.is_none(), "{pose:?}");
        location.upload_map(flat).await.unwrap();
        located.found(&location).await;
        client.close().await;
    });
    drop(located.map);
}

#[test]
fn the_driver_keeps_the_protocol() {
    let check = |more: &[&str]| {
        let mut command = std::process::Command::new(crate::common::AMBER);
        command.args(["check", "--as", "location", "--"]);
        command.args([crate::common::AMBER, "driver", "location"]);
        command.args(more).output().unwrap()
    };
    let output = check(&["--laser-offset-mm", "100"]);
    assert!(output.status.success(), "{output:?}");
    let output = check(&[]);
    assert!(!output.status.success());
}
