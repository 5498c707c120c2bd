use std::f64::consts::{FRAC_PI_2, PI};

use amber_map::{Map, Walls};

use super::*;
use crate::kinematics::Twist;
use crate::scan::{Beam, Echo};

const MOUNT: Pose = Pose::new(0.1, 0.0, 0.0);
const TRACK_M: f64 = 0.42;
/// The time of a turn of the laser, and between two of its 240 beams of one degree.
const TURN: Duration = Duration::from_millis(100);
const BEAM_TIME: Duration = Duration::from_micros(278);
/// The laser measures from this moment on.
const FIRST: Duration = Duration::from_secs(1);

/// What becomes of the speeds of both sides.
type Reported = fn(f64, f64) -> (f64, f64);

/// A robot, as it really is.
#[derive(Clone, Copy)]
struct Truth {
    mount: Pose,
    is_mirrored: bool,
    track_m: f64,
    delay: Duration,
    /// The reported speeds of both sides.
    wheels: Reported,
    gyro: bool,
    /// A mast on the robot: its direction to the left of the laser's front, its width in degrees, and
    /// its distance.
    mast: Option<(f64, f64, f64)>,
}

const TRUTH: Truth = Truth {
    mount: MOUNT,
    is_mirrored: false,
    track_m: TRACK_M,
    delay: Duration::ZERO,
    wheels: |left, right| (left, right),
    gyro: false,
    mast: None,
};

fn config() -> Config {
    Config {
        track_m: TRACK_M,
        ..Config::new(MOUNT)
    }
}

/// The motion: pieces of straight ways and turns to both sides, and a rest.
fn twist(time_s: f64) -> Twist {
    if time_s < 2.0 {
        return Twist::STOP;
    }
    match (time_s - 2.0) % 12.0 {
        ..3.0 => Twist::new(0.25, 0.0),
        3.0..5.0 => Twist::new(0.1, 0.9),
        5.0..6.0 => Twist::new(0.0, 0.0),
        6.0..8.0 => Twist::new(0.0, -0.9),
        8.0..11.0 => Twist::new(-0.25, 0.0),
        _ => Twist::new(0.1, 0.5),
    }
}

/// A measurement.
enum Arrival {
    Wheels(Duration, Wheels),
    TurnRate(Duration, f64),
    Scan(Scan),
}

/// Lets a robot drive for so many seconds in the living room of the flat.
fn drive(truth: Truth, config: Config, seconds: u64) -> Geometry {
    let mut geometry = Geometry::new(config.clone());
    drive_with(truth, &config, seconds, |arrival| match arrival {
        Arrival::Wheels(time, wheels) => geometry.handle_wheels(time, wheels),
        Arrival::TurnRate(time, rad_s) => geometry.handle_turn_rate(time, rad_s),
        Arrival::Scan(scan) => geometry.handle_scan(scan),
    });
    geometry
}

fn drive_with(truth: Truth, config: &Config, seconds: u64, mut arrive: impl FnMut(Arrival)) {
    let walls = Walls::new(Map::flat().faces());
    let step = Duration::from_millis(10);
    let mut poses = vec![Pose::new(2.6, -4.4, 0.0)];
    let pose_at = |poses: &[Pose], time: Duration| {
        let index = (time.as_nanos() / step.as_nanos()) as usize;
        let rest_s = (time - step * index as u32).as_secs_f64();
        let twist = twist(time.as_secs_f64());
        poses[index].along_arc(twist.forward_m_s * rest_s, twist.turn_rad_s * rest_s)
    };
    let mut scan_start = FIRST;
    for index in 1..=(seconds * 100) as u32 {
        let (now, last) = (step * index, poses[index as usize - 1]);
        let moved = twist((now - step).as_secs_f64());
        poses.push(last.along_arc(moved.forward_m_s * 0.01, moved.turn_rad_s * 0.01));
        if index % 2 == 0 {
            // Where the speed jumps, its middle.
            let before = twist((now - step).as_secs_f64());
            let after = twist(now.as_secs_f64());
            let twist = Twist::new(
                f64::midpoint(before.forward_m_s, after.forward_m_s),
                f64::midpoint(before.turn_rad_s, after.turn_rad_s),
            );
            let half = twist.turn_rad_s * truth.track_m / 2.0;
            let (left, right) = (truth.wheels)(twist.forward_m_s - half, twist.forward_m_s + half);
            arrive(Arrival::Wheels(now, Wheels::sides(left, right)));
            if truth.gyro {
                arrive(Arrival::TurnRate(now, twist.turn_rad_s + 0.01));
            }
        }
        if scan_start + BEAM_TIME * 241 > now {
            continue;
        }
        let beams = (0..=240_u32).map(|beam| {
            let angle_rad = (f64::from(beam) - 120.0).to_radians();
            let laser = pose_at(&poses, scan_start + BEAM_TIME * beam).global_pose(truth.mount);
            let side = if truth.is_mirrored { -1.0 } else { 1.0 };
            let echo = walls.cast(laser.at, laser.heading + side * angle_rad, 5.6);
            let mast = truth.mast.filter(|(left_deg, width_deg, _)| {
                (angle_rad.to_degrees() - left_deg).abs() <= width_deg / 2.0
            });
            let echo = mast.map(|(_, _, distance_m)| distance_m).or(echo);
            Beam {
                // As the messages are read.
                angle_rad: if config.is_mirrored {
                    -angle_rad
                } else {
                    angle_rad
                },
                echo: echo.map_or(Echo::Nothing, Echo::At),
            }
        });
        arrive(Arrival::Scan(Scan {
            start: scan_start + truth.delay - config.scan_delay,
            beam_time: BEAM_TIME,
            beams: beams.collect(),
        }));
        scan_start += TURN;
    }
}

/// The only finding, and its lines.
fn only(truth: Truth, config: Config) -> (Fault, Vec<String>) {
    let findings = drive(truth, config, 30).findings();
    let [finding] = &findings.found[..] else {
        panic!("{findings:#?}");
    };
    (finding.fault, finding.lines.clone())
}

fn near(estimate: Option<Estimate>, expected: f64, error: f64) {
    let estimate = estimate.unwrap();
    let off = (estimate.value - expected).abs();
    assert!(off <= error, "{estimate:?} is not {expected}");
}

#[test]
fn a_right_robot_is_right() {
    let geometry = drive(TRUTH, config(), 30);
    let findings = geometry.findings();
    assert!(findings.is_right(), "{findings:#?}");
    near(findings.scan_delay_ms, 0.0, 8.0);
    near(findings.laser_angle_deg, 0.0, 0.4);
    near(findings.track_mm, 420.0, 6.0);
    let counters = geometry.counters();
    assert!(counters.scans > 200, "{counters:?}");
    assert!(counters.scans_at_rest > 0, "{counters:?}");
}

#[test]
fn a_watch_rests_after_enough_motion_and_checks_again_later() {
    let mut watch = Watch::new(config());
    let replay = |watch: &mut Watch, start: Duration, truth: Truth| {
        drive_with(truth, &config(), 150, |arrival| match arrival {
            Arrival::Wheels(time, wheels) => watch.handle_wheels(start + time, wheels),
            Arrival::TurnRate(time, rad_s) => watch.handle_turn_rate(start + time, rad_s),
            Arrival::Scan(mut scan) => {
                scan.start += start;
                watch.handle_scan(&scan);
            }
        });
    };
    replay(&mut watch, Duration::ZERO, TRUTH);
    assert!(watch.findings().is_right(), "{:?}", watch.findings());
    let scans = watch.counters().scans;
    assert!((300..1_100).contains(&scans), "{scans}");
    let bumped = Truth {
        mount: Pose {
            heading: 0.2,
            ..MOUNT
        },
        ..TRUTH
    };
    // It rests.
    replay(&mut watch, Duration::from_secs(200), bumped);
    assert!(watch.findings().is_right());
    assert_eq!(watch.counters().scans, scans);
    replay(&mut watch, Duration::from_secs(1_000), bumped);
    assert_eq!(watch.findings().found[0].fault, Fault::LaserAngle);
    watch.restart();
    assert_eq!(watch.findings().found, []);
    assert_eq!(watch.findings().missing().len(), 2);
}

#[test]
fn nothing_is_found_before_the_robot_has_turned() {
    let findings = drive(TRUTH, config(), 5).findings();
    assert_eq!(findings.found, []);
    assert_eq!(findings.track_mm, None);
    assert!(!findings.is_right());
}

#[test]
fn a_laser_upside_down_looks_like_swapped_wheels_without_a_gyroscope() {
    let mirrored = Truth {
        is_mirrored: true,
        ..TRUTH
    };
    let swapped = Truth {
        wheels: |left, right| (right, left),
        ..TRUTH
    };
    let line = vec!["laser_mirrored = true".to_owned()];
    for truth in [mirrored, swapped] {
        let found = only(truth, config());
        assert_eq!(found, (Fault::LaserMirroredOrWheelsSwapped, line.clone()));
    }
    let with_gyro = |truth: Truth| {
        let truth = Truth {
            gyro: true,
            ..truth
        };
        only(truth, config())
    };
    assert_eq!(with_gyro(mirrored), (Fault::LaserMirrored, line));
    assert_eq!(with_gyro(swapped), (Fault::WheelsSwapped, Vec::new()));
}

#[test]
fn a_laser_upside_down_may_have_an_angle() {
    let truth = Truth {
        mount: Pose {
            heading: 0.3,
            ..MOUNT
        },
        is_mirrored: true,
        gyro: true,
        ..TRUTH
    };
    let (fault, lines) = only(truth, config());
    assert_eq!(fault, Fault::LaserMirrored);
    let [mirrored, angle] = &lines[..] else {
        panic!("{lines:?}");
    };
    assert_eq!(mirrored, "laser_mirrored = true");
    let angle_deg: f64 = angle
        .strip_prefix("laser_angle_deg = ")
        .unwrap()
        .parse()
        .unwrap();
    assert!((angle_deg + 0.3_f64.to_degrees()).abs() < 1.0, "{angle}");
    // The lines are right.
    let config = Config {
        mount: truth.mount,
        is_mirrored: true,
        ..config()
    };
    let findings = drive(truth, config, 30).findings();
    assert!(findings.is_right(), "{findings:#?}");
}

#[test]
fn a_laser_that_is_not_upside_down_is_found_as_well() {
    let config = Config {
        is_mirrored: true,
        ..config()
    };
    let truth = Truth {
        gyro: true,
        ..TRUTH
    };
    let line = vec!["laser_mirrored = false".to_owned()];
    assert_eq!(only(truth, config), (Fault::LaserMirrored, line));
}

#[test]
fn a_wrong_delay_is_measured_in_both_directions() {
    for (true_ms, configured_ms) in [(120, 0), (0, 120), (150, 60)] {
        let truth = Truth {
            delay: Duration::from_millis(true_ms),
            ..TRUTH
        };
        let config = Config {
            scan_delay: Duration::from_millis(configured_ms),
            ..config()
        };
        let geometry = drive(truth, config, 30);
        let findings = geometry.findings();
        let [finding] = &findings.found[..] else {
            panic!("{true_ms} {configured_ms} {findings:#?}");
        };
        assert_eq!(finding.fault, Fault::ScanDelay);
        assert_eq!(finding.lines.len(), 1, "{finding:?}");
        near(findings.scan_delay_ms, true_ms as f64, 8.0);
        near(findings.track_mm, 420.0, 6.0);
    }
}

#[test]
fn a_wrong_angle_is_measured() {
    for degrees in [-20.0_f64, 5.0] {
        let truth = Truth {
            mount: Pose {
                heading: -degrees.to_radians(),
                ..MOUNT
            },
            ..TRUTH
        };
        let findings = drive(truth, config(), 30).findings();
        let [finding] = &findings.found[..] else {
            panic!("{findings:#?}");
        };
        assert_eq!(finding.fault, Fault::LaserAngle);
        near(findings.laser_angle_deg, degrees, 0.6);
    }
}

#[test]
fn a_wrong_track_is_measured() {
    let truth = Truth {
        track_m: 0.5,
        ..TRUTH
    };
    let findings = drive(truth, config(), 30).findings();
    let [finding] = &findings.found[..] else {
        panic!("{findings:#?}");
    };
    assert_eq!(finding.fault, Fault::Track);
    near(findings.track_mm, 500.0, 6.0);
}

#[test]
fn wrong_signs_of_wheels_are_found() {
    let one_side: [Reported; 2] = [|left, right| (-left, right), |left, right| (left, -right)];
    for (wheels, side) in one_side
        .into_iter()
        .zip(["the left side", "the right side"])
    {
        let findings = drive(Truth { wheels, ..TRUTH }, config(), 30).findings();
        let [finding] = &findings.found[..] else {
            panic!("{side}: {findings:#?}");
        };
        assert_eq!(finding.fault, Fault::SideReversed);
        assert!(finding.sentence.contains(side), "{finding:?}");
    }
    let all = Truth {
        wheels: |left, right| (-left, -right),
        gyro: true,
        ..TRUTH
    };
    assert_eq!(only(all, config()), (Fault::WheelsReversed, Vec::new()));
    // Swapped wheels turn the robot in the same way: which of them it is must be known first.
    for seconds in 1..30 {
        let found = drive(all, config(), seconds).findings().found;
        let is_right = |it: &Finding| it.fault == Fault::WheelsReversed;
        assert!(found.iter().all(is_right), "after {seconds} s: {found:?}");
    }
    let backwards = Truth {
        mount: Pose {
            heading: PI,
            ..MOUNT
        },
        ..TRUTH
    };
    assert_eq!(only(backwards, config()).0, Fault::LaserBackwards);
}

#[test]
fn a_laser_that_looks_to_the_side_by_configuration_is_right() {
    let mount = Pose::new(-0.05, 0.1, FRAC_PI_2);
    let findings = drive(Truth { mount, ..TRUTH }, Config { mount, ..config() }, 30).findings();
    assert!(findings.is_right(), "{findings:#?}");
}

#[test]
fn scans_without_wheel_speeds_count() {
    let mut geometry = Geometry::new(config());
    let beam = Beam {
        angle_rad: 0.0,
        echo: Echo::Nothing,
    };
    for index in 0..20 {
        geometry.handle_scan(Scan {
            start: TURN * index,
            beam_time: Duration::ZERO,
            beams: vec![beam],
        });
    }
    assert_eq!(geometry.counters().scans_without_odometry, 4);
    assert_eq!(geometry.findings().found, []);
}

#[test]
fn a_mast_within_view_is_found_and_leaves_the_rest_right() {
    let truth = Truth {
        mast: Some((-95.0, 9.0, 0.12)),
        ..TRUTH
    };
    let masked = Config {
        masked_deg: vec![(-40.0, -30.5)],
        ..config()
    };
    for (config, line) in [
        (config(), "laser_masked_deg = \"89:101\""),
        // What is hidden already stays so.
        (masked, "laser_masked_deg = \"-40:-30.5,89:101\""),
    ] {
        let findings = drive(truth, config, 30).findings();
        let [finding] = &findings.found[..] else {
            panic!("{findings:#?}");
        };
        assert_eq!(finding.fault, Fault::LaserSeesRobot);
        assert_eq!(finding.lines, [line]);
        assert!(finding.sentence.contains("at 120 mm"), "{finding:?}");
        near(findings.scan_delay_ms, 0.0, 8.0);
        near(findings.laser_angle_deg, 0.0, 0.6);
        near(findings.track_mm, 420.0, 6.0);
        assert_eq!(findings.missing(), [""; 0]);
    }
}
