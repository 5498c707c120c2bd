use amber_map::{Map, Walls};

use super::*;
use crate::random::gaussian;
use crate::scan::{Beam, Echo};

/// The surfaces of a noisy scan of the flat.
fn seen(walls: &Walls, pose: Pose, random: &mut fastrand::Rng) -> Vec<Surface> {
    let ends: Vec<Point> = (0..682)
        .filter_map(|index| {
            let angle = (f64::from(index) * 0.352 - 120.0).to_radians();
            let distance_m = walls.cast(pose.at, pose.heading + angle, 5.6)?;
            let noise_m = 0.01 * distance_m.max(1.0) * gaussian(random);
            Some(Point::new(distance_m + noise_m, 0.0).turned(angle))
        })
        .collect();
    surfaces_of(&ends, Point::default())
}

/// The standard deviation of a position in the direction in which it is known least.
fn largest_sigma_m(information: &[[f64; 3]; 3]) -> f64 {
    let [x, y, turn] = information;
    // Without knowing the heading.
    let given = |a: f64, b: f64, c: f64| a - b * c / turn[2];
    let (xx, yy) = (given(x[0], x[2], x[2]), given(y[1], y[2], y[2]));
    let xy = given(x[1], x[2], y[2]);
    let least = (xx + yy - (xx - yy).hypot(2.0 * xy)) / 2.0;
    1.0 / least.sqrt()
}

/// Always the same 200 cases. About one in a hundred is beyond three standard deviations, more than
/// there should be; so a test with new random cases each time fails now and then.
#[test]
fn a_scan_that_starts_8_cm_off_finds_its_pose() {
    let walls = Walls::new(Map::flat().faces());
    let mut random = fastrand::Rng::with_seed(1);
    let (mut far_off, mut uncertain) = (Vec::new(), Vec::new());
    for case in 0..200 {
        let mut within = |least: f64, most: f64| least + (most - least) * random.f64();
        let from = Pose::new(within(2.0, 3.8), within(-5.0, -3.8), within(-3.0, 3.0));
        let motion = Pose::new(within(-0.08, 0.08), within(-0.08, 0.08), within(-0.1, 0.1));
        let reference = Reference::new(&seen(&walls, from, &mut random));
        let scan = seen(&walls, from.global_pose(motion), &mut random);
        let found = reference.align(&scan, Pose::default(), None).unwrap();
        let error_m = found.pose.at.minus(motion.at).length();
        // Where a scan sees little along a wall, its pose is less certain there, and says so.
        let sigma_m = largest_sigma_m(&found.information);
        if error_m > f64::max(0.015, 3.0 * sigma_m) {
            far_off.push((case, error_m, sigma_m));
        }
        if sigma_m > 0.01 {
            uncertain.push((case, error_m, sigma_m));
        }
        assert!(
            error_m < f64::max(0.03, 5.0 * sigma_m),
            "{case}: {error_m} {sigma_m} {found:?}"
        );
        assert!(
            (found.pose.heading - motion.heading).abs() < 0.01,
            "{case}: {found:?}"
        );
        assert!(found.overlap > 0.6, "{case}: {found:?}");
    }
    assert!(far_off.len() <= 4, "{far_off:?}");
    assert!(uncertain.len() <= 10, "{uncertain:?}");
}

/// Always the same cases, as above. Along a lone wall, several poses fit. The search then says so, and
/// no loop is closed. Of random cases, one was once wrong by a step of the search.
#[test]
fn a_search_finds_a_pose_far_off_or_says_that_several_fit() {
    let walls = Walls::new(Map::flat().faces());
    let mut random = fastrand::Rng::with_seed(2);
    for case in 0..64 {
        let mut within = |least: f64, most: f64| least + (most - least) * random.f64();
        let from = Pose::new(within(2.0, 3.8), within(-5.0, -3.8), within(-3.0, 3.0));
        let motion = Pose::new(within(-0.4, 0.4), within(-0.4, 0.4), within(-0.3, 0.3));
        let reference = Reference::new(&seen(&walls, from, &mut random));
        let scan = seen(&walls, from.global_pose(motion), &mut random);
        let window = Window {
            pose: Pose::default(),
            reach_m: 0.6,
            reach_rad: 0.4,
        };
        let tables = Tables::new(&reference, Point::default());
        let found = tables.search(&scan, &window).unwrap();
        let error_m = found.pose.at.minus(motion.at).length();
        let is_right = error_m < 0.08 && (found.pose.heading - motion.heading).abs() < 0.04;
        let is_doubted = found.second > loops::MAX_SECOND * found.score;
        assert!(
            is_right || is_doubted,
            "{case}: {error_m} {found:?} {motion:?}"
        );
    }
}

/// The tables for the whole hall would be too large. They once were refused, and no loop was closed.
#[test]
fn a_laser_that_sees_far_finds_its_pose_in_a_large_hall() {
    let corners = [
        (0.0, 0.0),
        (60.0, 0.0),
        (60.0, 40.0),
        (0.0, 40.0),
        (0.0, 0.0),
    ];
    let corner = |(x, y)| Point::new(x, y);
    let mut walls: Vec<Segment> = (corners.windows(2))
        .map(|pair| Segment {
            from: corner(pair[0]),
            to: corner(pair[1]),
        })
        .collect();
    walls.push(Segment {
        from: Point::new(9.0, 6.0),
        to: Point::new(11.0, 7.0),
    });
    let walls = Walls::new(walls);
    let seen = |pose: Pose| {
        let ends = (0..1440).filter_map(|index| {
            let angle = (f64::from(index) * 0.25 - 180.0).to_radians();
            let distance_m = walls.cast(pose.at, pose.heading + angle, 80.0)?;
            Some(Point::new(distance_m, 0.0).turned(angle))
        });
        surfaces_of(&ends.collect::<Vec<_>>(), Point::default())
    };
    let (from, motion) = (Pose::new(6.0, 5.0, 0.3), Pose::new(0.3, -0.2, 0.15));
    let reference = Reference::new(&seen(from));
    let scan = seen(from.global_pose(motion));
    let window = Window {
        pose: Pose::default(),
        reach_m: 0.6,
        reach_rad: 0.4,
    };
    let tables = Tables::new(&reference, Point::default());
    let found = tables.search(&scan, &window).unwrap();
    let error_m = found.pose.at.minus(motion.at).length();
    assert!(error_m < 0.08, "{found:?}");
    assert!(
        (found.pose.heading - motion.heading).abs() < 0.04,
        "{found:?}"
    );
    let fit = reference.align(&scan, found.pose, None).unwrap();
    assert!(fit.pose.at.minus(motion.at).length() < 0.01, "{fit:?}");
}

/// The time between two scans, and the speed of the robot.
const TURN: Duration = Duration::from_millis(100);
const SPEED_M_S: f64 = 0.3;

/// The scans of a robot that drives straight on through the living room, ten in a second.
fn scans(seconds: u32) -> Vec<Scan> {
    let walls = Walls::new(Map::flat().faces());
    let scan = |turn: u32| {
        let start = TURN * turn;
        let x_m = 2.0 + SPEED_M_S * start.as_secs_f64();
        let beam = |index: u32| {
            let angle_rad = (f64::from(index) * 0.352 - 120.0).to_radians();
            let echo = walls.cast(Point::new(x_m, -4.4), angle_rad, 5.6);
            Beam {
                angle_rad,
                echo: echo.map_or(Echo::Nothing, Echo::At),
            }
        };
        Scan {
            start,
            beam_time: Duration::ZERO,
            beams: (0..682).map(beam).collect(),
        }
    };
    (0..10 * seconds).map(scan).collect()
}

#[test]
fn a_correction_moves_what_came_after_it() {
    let mut slam = Slam::new(Config::new(Pose::default()));
    for scan in scans(4) {
        slam.handle_wheels(scan.end(), Wheels::sides(SPEED_M_S, SPEED_M_S));
        slam.add_scan(scan);
    }
    slam.finish();
    let before = slam.poses().to_vec();
    let last = slam.last().unwrap().pose;
    let corrected = before[..3].iter().map(|pose| Pose {
        at: pose.at.plus(Point::new(1.0, 2.0)),
        heading: pose.heading,
    });
    slam.apply(Correction {
        poses: corrected.collect(),
        optimized: Some(graph::Optimized::default()),
        ..Correction::default()
    });
    for (before, after) in before.iter().zip(slam.poses()) {
        let way = after.at.minus(before.at);
        assert!(way.minus(Point::new(1.0, 2.0)).length() < 1e-9, "{way:?}");
    }
    let way = slam.last().unwrap().pose.at.minus(last.at);
    assert!(way.minus(Point::new(1.0, 2.0)).length() < 1e-9, "{way:?}");
}

#[test]
fn scans_wait_for_odometry_and_late_ones_are_counted() {
    let scans = scans(2);
    let mut slam = Slam::new(Config::new(Pose::default()));
    for scan in &scans[..MAX_WAITING] {
        assert_eq!(slam.add_scan(scan.clone()), None);
    }
    assert!(slam.add_scan(scans[MAX_WAITING].clone()).is_some());
    assert_eq!(slam.counters().scans_without_odometry, 1);
    let wheels = Wheels::sides(0.0, 0.0);
    slam.handle_wheels(scans[MAX_WAITING].end(), wheels);
    slam.handle_wheels(Duration::MAX / 2, Wheels::sides(f64::NAN, 0.0));
    assert_eq!(slam.counters().speeds_refused, 1);
    assert!(slam.add_scan(scans[0].clone()).is_some());
    assert!(slam.add_scan(scans[0].clone()).is_some());
    assert!(slam.add_scan(scans[0].clone()).is_some());
    assert_eq!(slam.add_scan(scans[0].clone()), None);
    assert_eq!(slam.counters().scans_late, 1);
}
