use amber_map::{Map, Walls};

use super::*;
use crate::scan::{Beam, Echo};

const START: Pose = Pose::new(3.5, -2.6, 0.3);

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn flat() -> LocationMap {
    let map = Map::flat();
    LocationMap::from_walls(&map.faces(), &map.nodes, 0.02, 0.5).unwrap()
}

/// At a known place in the flat, at time 0.
fn placed() -> Location {
    let mut location = Location::new(flat(), Config::new(Pose::default()));
    location.place(ms(0), START, 0.03, 0.03);
    location
}

fn scan(time_ms: u64, pose: Pose) -> Scan {
    scan_in(&Walls::new(Map::flat().faces()), time_ms, pose)
}

fn scan_in(walls: &Walls, time_ms: u64, pose: Pose) -> Scan {
    let beams = (-120..=120).map(|degree: i32| {
        let angle_rad = f64::from(degree).to_radians();
        let distance_m = walls.cast(pose.at, pose.heading + angle_rad, 5.6);
        Beam {
            angle_rad,
            echo: distance_m.map_or(Echo::Nothing, Echo::At),
        }
    });
    Scan {
        start: ms(time_ms),
        beam_time: Duration::ZERO,
        beams: beams.collect(),
    }
}

fn at_rest(location: &mut Location, time_ms: u64) {
    location.handle_wheels(ms(time_ms), Wheels::STOP);
}

fn error_m(estimate: Estimate) -> f64 {
    estimate.pose.at.minus(START.at).length()
}

#[test]
fn a_scan_waits_for_odometry_but_not_for_long() {
    let mut location = placed();
    assert_eq!(
        (location.next_timeout(), location.update(ms(5))),
        (None, None)
    );
    location.handle_scan(scan(100, START));
    assert_eq!(location.next_timeout(), Some(ms(200)));
    assert_eq!(location.update(ms(199)), None);
    at_rest(&mut location, 101);
    assert_eq!(location.next_timeout(), Some(ms(100)));
    assert!(error_m(location.update(ms(199)).unwrap()) < 0.02);
    assert_eq!(location.counters().scans_without_odometry, 0);

    location.handle_scan(scan(300, START));
    assert!(location.update(ms(400)).is_some());
    assert_eq!(location.counters().scans_without_odometry, 1);
}

#[test]
fn measurements_may_arrive_in_any_order() {
    let drive = |order: [usize; 6]| {
        let mut location = placed();
        for index in order {
            match index {
                0 => location.handle_scan(scan(100, START)),
                1 => location.handle_scan(scan(200, START)),
                _ => at_rest(&mut location, [0, 90, 150, 250][index - 2]),
            }
        }
        assert!(location.update(ms(300)).is_some());
        location.update(ms(300)).unwrap()
    };
    let expected = drive([0, 1, 2, 3, 4, 5]);
    assert_eq!(expected.time, ms(200));
    assert_eq!(drive([5, 1, 4, 0, 3, 2]), expected);
    assert_eq!(drive([1, 0, 5, 4, 3, 2]), expected);
}

#[test]
fn late_and_surplus_scans_are_counted() {
    let mut location = placed();
    for time_ms in [100, 200, 300, 400, 500, 600] {
        location.handle_scan(scan(time_ms, START));
    }
    assert_eq!(location.counters().scans_dropped, 2);
    at_rest(&mut location, 0);
    at_rest(&mut location, 700);
    while location.next_timeout().is_some() {
        location.update(ms(800));
    }
    assert_eq!(location.counters().scans, 4);
    location.handle_scan(scan(350, START));
    assert_eq!(location.update(ms(800)), None);
    assert_eq!(location.counters().scans_late, 1);
    location.handle_wheels(ms(800), Wheels::sides(f64::NAN, 0.0));
    assert_eq!(location.counters().speeds_refused, 1);
}

#[test]
fn a_hint_moves_the_robot_and_scans_from_before_it_do_not_count() {
    let elsewhere = Pose::new(5.8, -4.8, -90_f64.to_radians());
    let hint = |at| Hint {
        pose: Pose { at, ..elsewhere },
        sigma_m: 0.3,
        sigma_rad: 0.3,
    };
    let mut location = placed();
    at_rest(&mut location, 0);
    at_rest(&mut location, 9000);
    location.handle_scan(scan(100, START));
    assert!(location.update(ms(200)).is_some());

    // Outside of the map, so nothing changes.
    let before = location.estimate();
    assert!(!location.handle_hint(ms(250), hint(Point::new(100.0, 100.0))));
    assert_eq!(location.estimate(), before);

    // About there: the robot stands 0.2 m away. A scan from before still waits.
    location.handle_scan(scan(240, START));
    let near = elsewhere.at.plus(Point::new(-0.2, 0.1));
    assert!(location.handle_hint(ms(250), hint(near)));
    assert_eq!(location.estimate(), None);
    assert_eq!(location.update(ms(400)), None);
    assert_eq!(location.counters().scans_late, 1);
    let scans = (1..=30).map(|number| 300 + 100 * number);
    for time_ms in scans {
        location.handle_scan(scan(time_ms, elsewhere));
        location.update(ms(time_ms + 50));
    }
    let found = location.estimate().unwrap();
    let error_m = found.pose.at.minus(elsewhere.at).length();
    assert!(
        error_m < 0.05 && found.quality > 0.6,
        "{error_m} m, {}",
        found.quality
    );
}

#[test]
fn a_scan_without_echoes_changes_nothing() {
    let mut location = placed();
    let before = location.estimate();
    let mut blind = scan(100, START);
    blind.beams.truncate(10);
    location.handle_scan(blind);
    location.handle_scan(Scan {
        start: ms(110),
        ..Scan::default()
    });
    assert_eq!(location.update(ms(500)), None);
    assert_eq!(location.update(ms(500)), None);
    assert_eq!(location.counters().scans_blind, 2);
    assert_eq!(location.estimate(), before);
}

#[test]
fn at_rest_the_estimate_stays_and_the_particles_keep_their_variety() {
    let mut location = placed();
    let mut run = |from_ms: u64, to_ms: u64, pose: Pose| {
        for time_ms in (from_ms..to_ms).step_by(100) {
            at_rest(&mut location, time_ms);
            at_rest(&mut location, time_ms + 1);
            location.handle_scan(scan(time_ms, pose));
            location.update(ms(time_ms + 1));
        }
        location.clone()
    };
    let early = run(0, 2000, START);
    let late = run(2000, 60_000, START);
    let way_m = |a: Estimate, b: Estimate| a.pose.at.minus(b.pose.at).length();
    let (first, last) = (early.estimate().unwrap(), late.estimate().unwrap());
    assert!(
        way_m(first, last) < 0.002 && error_m(last) < 0.01,
        "{last:?}"
    );
    assert!(last.quality > 0.9 && last.time == ms(59_900), "{last:?}");
    let spread_m = heaviest(late.particles()).unwrap().spread_m();
    assert!(spread_m > 0.002, "{spread_m}");

    // A robot that is carried away while its wheels stand still notices it.
    let carried = Pose::new(5.5, -1.0, 2.0);
    let found = run(60_000, 64_000, carried).estimate().unwrap();
    assert!(found.pose.at.minus(carried.at).length() < 0.05, "{found:?}");
}

#[test]
fn the_quality_is_low_until_the_pose_is_decided() {
    let mut location = Location::new(flat(), Config::new(Pose::default()));
    assert_eq!((location.estimate(), location.pose_at(ms(0))), (None, None));
    at_rest(&mut location, 0);
    let mut qualities = Vec::new();
    for time_ms in (0..3000).step_by(100) {
        at_rest(&mut location, time_ms + 1);
        location.handle_scan(scan(time_ms, START));
        let estimate = location.update(ms(time_ms + 1)).unwrap();
        assert_eq!(estimate.decided, estimate.quality >= 0.3, "{estimate:?}");
        qualities.push(estimate.quality);
    }
    assert!(qualities[0] < 0.3 && qualities[1] < 0.3, "{qualities:?}");
    assert!(qualities[29] > 0.9, "{qualities:?}");
    assert!(error_m(location.estimate().unwrap()) < 0.02);
}

#[test]
fn the_pose_is_extrapolated_by_odometry() {
    let mut location = placed();
    for time_ms in [0, 500] {
        location.handle_wheels(ms(time_ms), Wheels::sides(0.2, 0.2));
    }
    let pose = location.pose_at(ms(500)).unwrap();
    let expected = START.at.plus(Point::new(0.1, 0.0).turned(START.heading));
    assert!(pose.at.minus(expected).length() < 1e-9, "{pose:?}");
}

#[test]
fn the_covariance_covers_the_direction_that_the_walls_do_not_show() {
    // A corridor without ends.
    let wall = |y| amber_map::Segment {
        from: Point::new(-20.0, y),
        to: Point::new(20.0, y),
    };
    let map = LocationMap::from_walls(&[wall(0.0), wall(1.0)], &[Point::new(0.0, 0.5)], 0.02, 0.5);
    let mut location = Location::new(map.unwrap(), Config::new(Pose::default()));
    location.place(ms(0), Pose::new(0.0, 0.5, 0.0), 0.1, 0.03);
    let walls = Walls::new(vec![wall(0.0), wall(1.0)]);
    let beams = (-110..=110).map(|degree: i32| {
        let angle_rad = f64::from(degree).to_radians();
        let distance_m = walls.cast(Point::new(0.0, 0.5), angle_rad, 5.0);
        Beam {
            angle_rad,
            echo: distance_m.map_or(Echo::Nothing, Echo::At),
        }
    });
    location.handle_scan(Scan {
        start: ms(100),
        beam_time: Duration::ZERO,
        beams: beams.collect(),
    });
    let estimate = location.update(ms(1000)).unwrap();
    let sigma_m = |axis: usize| estimate.covariance[axis][axis].sqrt();
    assert!(sigma_m(1) < 0.02 && sigma_m(0) > 0.05, "{estimate:?}");
}

#[test]
fn a_measured_pose_attracts_particles_and_a_wrong_one_does_little_harm() {
    let mut location = Location::new(flat(), Config::new(Pose::default()));
    at_rest(&mut location, 0);
    location.handle_pose(ms(0), START, 0.05, 0.05);
    let near = |location: &Location| {
        let cluster = heaviest(location.particles()).unwrap();
        cluster.pose.at.minus(START.at).length() < 0.1 && cluster.mass > 0.05
    };
    assert!(near(&location));
    let mut location = placed();
    at_rest(&mut location, 0);
    for time_ms in (0..3000).step_by(100) {
        at_rest(&mut location, time_ms + 1);
        location.handle_pose(ms(time_ms), Pose::new(5.5, -1.0, 2.0), 0.05, 0.05);
        location.handle_scan(scan(time_ms, START));
        location.update(ms(time_ms + 1));
    }
    assert_eq!(location.counters().poses, 30);
    let estimate = location.estimate().unwrap();
    assert!(error_m(estimate) < 0.05, "{estimate:?}");
}

#[test]
fn an_occupancy_grid_serves_as_a_map() {
    let map = Map::flat();
    let layout = crate::grid::Layout::around_walls(&map.faces(), 0.5, 0.05).unwrap();
    let walls = crate::grid::Occupancy::from_walls(layout, &map.faces());
    let located = LocationMap::from_occupancy(&walls, 0.5);
    assert!(located.free().is_free(located.field(), START.at));
    let mut location = Location::new(located, Config::new(Pose::default()));
    for time_ms in (0..3000).step_by(100) {
        at_rest(&mut location, time_ms + 1);
        location.handle_scan(scan(time_ms, START));
        location.update(ms(time_ms + 1));
    }
    let estimate = location.estimate().unwrap();
    assert!(estimate.decided && error_m(estimate) < 0.05, "{estimate:?}");
}

/// In a corridor without ends, all poses along it fit equally well, so the weights stay equal.
#[test]
fn the_number_of_particles_is_bounded() {
    let wall = |y| amber_map::Segment {
        from: Point::new(-20.0, y),
        to: Point::new(20.0, y),
    };
    let map = LocationMap::from_walls(&[wall(0.0), wall(1.0)], &[Point::new(0.0, 0.5)], 0.02, 0.5);
    let mut location = Location::new(map.unwrap(), Config::new(Pose::default()));
    location.place(ms(0), Pose::new(0.0, 0.5, 0.0), 0.1, 0.03);
    let max = Config::new(Pose::default()).size.max;
    for time_ms in (0..20_000).step_by(100) {
        location.handle_pose(ms(time_ms), Pose::new(0.0, 0.5, 0.0), 3.0, 3.0);
        let count = location.particles().len();
        assert!(count <= max, "{count}");
    }
}

#[test]
fn beams_are_not_fitted_to_the_far_side_of_a_wall() {
    // The robot faces a wall with two faces, 0.1 m apart, which seems 25 mm too far away. It starts
    // between the poses at which the beams end at the near and at the far face.
    const FACE_M: f64 = 2.35;
    let truth = Pose::new(1.41, -1.5, 0.2);
    let mut location = Location::new(flat(), Config::new(Pose::default()));
    // It turns a little: at rest, nothing would be fitted.
    let turning = Wheels::sides(-0.05, 0.05);
    let turn = 0.1 * 0.1 / SkidSteer::default().track_m;
    let start = Pose::new(truth.at.x + 0.06, truth.at.y, truth.heading - turn);
    location.place(ms(0), start, 0.01, 0.01);
    let mut seen = scan(100, truth);
    for beam in &mut seen.beams {
        let end = |distance_m| {
            let way = Point::new(distance_m, 0.0).turned(truth.heading + beam.angle_rad);
            truth.at.plus(way)
        };
        if let Some(distance_m) = beam.distance_m()
            && (end(distance_m).x - FACE_M).abs() < 0.01
        {
            beam.echo = Echo::At(distance_m + 0.025);
        }
    }
    location.handle_wheels(ms(0), turning);
    location.handle_wheels(ms(110), turning);
    location.handle_scan(seen);
    let estimate = location.update(ms(120)).unwrap();
    let error_m = estimate.pose.at.minus(truth.at).length();
    assert!(error_m < 0.04, "{error_m} {estimate:?}");
}

/// Scans of a robot at rest for some seconds, ten per second; the last estimate.
fn rest_at(
    location: &mut Location,
    seen: impl Fn(u64) -> Scan,
    from_ms: u64,
    to_ms: u64,
) -> Estimate {
    let mut last = None;
    for time_ms in (from_ms..to_ms).step_by(100) {
        at_rest(location, time_ms);
        at_rest(location, time_ms + 1);
        location.handle_scan(seen(time_ms));
        last = location.update(ms(time_ms + 1)).or(last);
    }
    last.unwrap()
}

#[test]
fn a_carried_robot_is_never_sure_of_the_old_place() {
    let map = |x, y, degrees: f64| Pose::from(amber_map::MapPose::new(x, y, degrees.to_radians()));
    let (here, there) = (map(1.4, 1.06, -90.0), map(5.8, 4.8, 90.0));
    let mut location = Location::new(flat(), Config::new(Pose::default()));
    location.place(ms(0), here, 0.02, 0.02);
    let before = rest_at(&mut location, |time_ms| scan(time_ms, here), 0, 2000);
    assert!(before.quality > 0.9, "{before:?}");
    // Nothing arrives while it is carried, for longer than scans are compared.
    for time_ms in (7000..10_000).step_by(100) {
        let estimate = rest_at(
            &mut location,
            |time_ms| scan(time_ms, there),
            time_ms,
            time_ms + 100,
        );
        let is_right = estimate.pose.at.minus(there.at).length() < 0.1;
        assert!(
            is_right || estimate.quality < 0.9,
            "{time_ms}: {estimate:?}"
        );
    }
    let found = location.estimate().unwrap();
    assert!(found.decided && found.quality > 0.9, "{found:?}");
    assert!(found.pose.at.minus(there.at).length() < 0.1, "{found:?}");
}

#[test]
fn a_robot_before_a_door_that_closes_is_never_sure_of_another_place() {
    let flat_map = amber_map::Map::flat();
    for gate in &flat_map.gates {
        let (from, to) = (gate.from, gate.to);
        let along = to.minus(from);
        let across = Point::new(-along.y, along.x).times(1.0 / along.length());
        for side in [1.0, -1.0] {
            let middle = from.plus(along.times(0.5));
            let toward = across.times(-side);
            let truth = Pose {
                at: middle.plus(across.times(side * 0.3)),
                heading: toward.y.atan2(toward.x),
            };
            let mut closed = flat_map.faces();
            let door = across.times(side * 0.05);
            closed.push(amber_map::Segment {
                from: from.plus(door),
                to: to.plus(door),
            });
            let closed = Walls::new(closed);
            let mut location = Location::new(flat(), Config::new(Pose::default()));
            location.place(ms(0), truth, 0.02, 0.02);
            rest_at(&mut location, |time_ms| scan(time_ms, truth), 0, 1000);
            for time_ms in (1000..4000).step_by(100) {
                let estimate = rest_at(
                    &mut location,
                    |time_ms| scan_in(&closed, time_ms, truth),
                    time_ms,
                    time_ms + 100,
                );
                let is_right = estimate.pose.at.minus(truth.at).length() < 0.25;
                assert!(
                    is_right || !estimate.decided,
                    "{time_ms} ms at {truth:?}: {estimate:?}"
                );
            }
        }
    }
}

#[test]
fn a_robot_that_is_lifted_while_it_stops_finds_itself_without_driving() {
    let map = |x, y, degrees: f64| Pose::from(amber_map::MapPose::new(x, y, degrees.to_radians()));
    let (start, there) = (map(3.0, 2.6, 180.0), map(2.0, 2.6, -3.0));
    let mut location = Location::new(flat(), Config::new(Pose::default()));
    location.place(ms(0), start, 0.02, 0.02);
    let mut pose = start;
    for time_ms in (0..1000).step_by(100) {
        location.handle_wheels(ms(time_ms), Wheels::sides(-0.3, -0.3));
        location.handle_scan(scan(time_ms, pose));
        location.update(ms(time_ms));
        pose = pose.global_pose(Pose::new(-0.03, 0.0, 0.0));
    }
    // The wheels stop between two scans, and the robot is elsewhere in the second one.
    location.handle_wheels(ms(960), Wheels::sides(-0.3, -0.3));
    let found = rest_at(&mut location, |time_ms| scan(time_ms, there), 1000, 4000);
    assert!(found.decided, "{found:?}");
    assert!(found.pose.at.minus(there.at).length() < 0.1, "{found:?}");
}

#[test]
fn a_robot_that_is_carried_slowly_finds_itself_without_driving() {
    let map = |x, y, degrees: f64| Pose::from(amber_map::MapPose::new(x, y, degrees.to_radians()));
    let (start, end) = (map(1.4, 1.06, -90.0), map(2.0, 2.6, 60.0));
    let mut location = Location::new(flat(), Config::new(Pose::default()));
    location.place(ms(0), start, 0.02, 0.02);
    rest_at(&mut location, |time_ms| scan(time_ms, start), 0, 1000);
    // 0.14 m/s and 12 degrees/s.
    let carried = |time_ms: u64| {
        let part = (time_ms - 1000) as f64 / 12_000.0;
        Pose {
            at: start.at.plus(end.at.minus(start.at).times(part)),
            heading: start.heading + part * wrap(end.heading - start.heading),
        }
    };
    rest_at(
        &mut location,
        |time_ms| scan(time_ms, carried(time_ms)),
        1000,
        13_000,
    );
    let found = rest_at(&mut location, |time_ms| scan(time_ms, end), 13_000, 17_000);
    assert!(found.decided, "{found:?}");
    assert!(found.pose.at.minus(end.at).length() < 0.1, "{found:?}");
}

#[test]
fn a_robot_that_is_lifted_in_the_middle_of_a_scan_finds_itself_without_driving() {
    let map = |x, y, degrees: f64| Pose::from(amber_map::MapPose::new(x, y, degrees.to_radians()));
    let ways = [
        (map(2.5, 2.6, 0.0), map(1.5, 2.6, 0.0)),
        (map(1.2, 2.6, 0.0), map(2.0, 2.6, 0.0)),
        (map(3.2, 2.6, 180.0), map(2.0, 2.6, 0.0)),
    ];
    for (number, (here, there)) in ways.into_iter().enumerate() {
        for split in [60, 120, 180] {
            let mut location = Location::new(flat(), Config::new(Pose::default()));
            location.place(ms(0), here, 0.02, 0.02);
            let seen = |time_ms: u64| {
                let (mut before, after) = (scan(time_ms, here), scan(time_ms, there));
                match time_ms {
                    ..1000 => before,
                    1000 => {
                        before.beams[split..].copy_from_slice(&after.beams[split..]);
                        before
                    }
                    _ => after,
                }
            };
            let found = rest_at(&mut location, seen, 0, 5000);
            let is_there = found.pose.at.minus(there.at).length() < 0.1;
            assert!(found.decided && is_there, "{number}, {split}: {found:?}");
        }
    }
}

#[test]
fn a_start_beside_a_wall_is_not_lost_because_the_far_side_fits_first() {
    let places = [
        Pose::new(4.666_759, -1.435_327, 3.485_557),
        Pose::new(5.455_108, -0.364_889, 0.772_132),
    ];
    for truth in places {
        let mut location = Location::new(flat(), Config::new(Pose::default()));
        let found = rest_at(&mut location, |time_ms| scan(time_ms, truth), 0, 1000);
        let error_m = found.pose.at.minus(truth.at).length();
        assert!(found.decided && error_m < 0.05, "{truth:?}: {found:?}");
    }
}

/// Two rooms of 3 m x 2 m that look the same, and a wide wall between them.
fn twins() -> Vec<amber_map::Segment> {
    let mut walls = Vec::new();
    for x in [0.0, 4.0] {
        let corners = [
            (0.0, 0.0),
            (3.0, 0.0),
            (3.0, 2.0),
            (1.0, 2.0),
            (1.0, 1.7),
            (0.0, 1.7),
            (0.0, 0.0),
        ];
        walls.extend(corners.windows(2).map(|pair| amber_map::Segment {
            from: Point::new(x + pair[0].0, pair[0].1),
            to: Point::new(x + pair[1].0, pair[1].1),
        }));
    }
    walls
}

#[test]
fn between_rooms_that_look_alike_nothing_is_decided_without_a_hint() {
    let inside = [Point::new(1.5, 1.0), Point::new(5.5, 1.0)];
    let map = LocationMap::from_walls(&twins(), &inside, 0.02, 0.5).unwrap();
    let truth = Pose::new(5.6, 0.9, 0.3);
    let walls = Walls::new(twins());
    let seen = |time_ms| scan_in(&walls, time_ms, truth);
    let mut location = Location::new(map, Config::new(Pose::default()));
    let estimate = rest_at(&mut location, seen, 0, 3000);
    assert!(!estimate.decided && estimate.quality < 0.3, "{estimate:?}");
    assert!((estimate.mass - 0.5).abs() < 0.2, "{estimate:?}");
    let at = |x: f64| Hint {
        pose: Pose::new(x, 1.1, 0.0),
        sigma_m: 0.25,
        sigma_rad: 0.26,
    };
    assert!(
        !location.handle_hint(ms(3000), at(20.0)),
        "outside of the map"
    );
    assert!(location.handle_hint(ms(3000), at(5.4)));
    let estimate = rest_at(&mut location, seen, 3000, 4500);
    let error_m = estimate.pose.at.minus(truth.at).length();
    assert!(estimate.decided && error_m < 0.05, "{estimate:?}");
}

#[test]
fn a_wrong_hint_is_not_believed() {
    let mut location = Location::new(flat(), Config::new(Pose::default()));
    let wrong = Pose::new(5.5, -1.0, 2.0);
    let hint = Hint {
        pose: wrong,
        sigma_m: 0.2,
        sigma_rad: 0.2,
    };
    assert!(location.handle_hint(Duration::ZERO, hint));
    for time_ms in (0..4000).step_by(100) {
        let estimate = rest_at(
            &mut location,
            |time_ms| scan(time_ms, START),
            time_ms,
            time_ms + 100,
        );
        assert!(!estimate.decided || error_m(estimate) < 0.1, "{estimate:?}");
    }
    assert!(location.estimate().unwrap().decided);
}
