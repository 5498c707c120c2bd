//! Tests of drives, contacts and beams.

use std::f64::consts::PI;
use std::fs;
use std::io::{self, Write};
use std::path::Path;

use amber_map::{Map, MapPose};
use proptest::prelude::*;

use super::*;

fn speeds(left_mm_s: f64, right_mm_s: f64) -> [Drive; 4] {
    [left_mm_s, right_mm_s, left_mm_s, right_mm_s].map(|speed| Drive::Speed {
        qpps: speed * 4.947_066,
        acceleration_qpps2: None,
    })
}

fn run(world: &mut World, seconds: f64, drives: impl Into<Drives> + Copy) {
    for _ in 0..(seconds / STEP.as_secs_f64()).round() as usize {
        world.step(drives);
    }
}

fn box_of(size_m: f64) -> Vec<Segment> {
    let half = size_m / 2.0;
    let corners =
        [(-half, -half), (half, -half), (half, half), (-half, half)].map(|(x, y)| Point::new(x, y));
    (0..4)
        .map(|index| Segment {
            from: corners[index],
            to: corners[(index + 1) % 4],
        })
        .collect()
}

fn in_box(size_m: f64) -> World {
    World::new(box_of(size_m), Pose::default(), 1).unwrap()
}

#[test]
fn three_seconds_at_300_mm_per_second_are_900_mm() {
    let mut world = in_box(10.0);
    run(&mut world, 3.0, speeds(300.0, 300.0));
    assert!((world.wheel_speeds()[0] - 0.3).abs() < 0.003);
    run(&mut world, 2.0, speeds(0.0, 0.0));
    let pose = world.pose();
    assert!((pose.at.x - 0.9).abs() < 0.027, "{pose:?}");
    assert!(pose.at.y.abs() < 1e-9);
    assert!((world.travelled_m() - pose.at.x).abs() < 1e-6);
    assert_eq!(world.contacts(), 0);
    assert!(world.is_at_rest(speeds(0.0, 0.0)));
}

#[test]
fn faster_right_wheels_turn_the_robot_left() {
    let mut world = in_box(10.0);
    run(&mut world, 2.0, speeds(-100.0, 100.0));
    run(&mut world, 1.0, speeds(0.0, 0.0));
    let pose = world.pose();
    let expected = 2.0 * 0.2 / TRACK_M;
    assert!((pose.heading / expected - 1.0).abs() < 0.03, "{pose:?}");
    assert!(pose.at.length() < 1e-6);
}

#[test]
fn a_robot_at_a_wall_stops_with_one_contact() {
    let mut world = in_box(3.0);
    run(&mut world, 10.0, speeds(500.0, 500.0));
    assert!((world.pose().at.x - (1.5 - OUTLINE.half_length_m)).abs() < 1e-4);
    assert_eq!(world.contacts(), 1);
    assert!(world.is_touching());
    run(&mut world, 1.0, speeds(-500.0, -500.0));
    assert!(!world.is_touching());
    run(&mut world, 3.0, speeds(500.0, 500.0));
    assert_eq!(world.contacts(), 2);
}

#[test]
fn wheels_pressed_against_a_wall_stop_and_draw_current() {
    let mut world = in_box(3.0);
    run(&mut world, 10.0, speeds(500.0, 500.0));
    let before = world.readings();
    run(&mut world, 1.0, speeds(500.0, 500.0));
    for (now, before) in world.readings().into_iter().zip(before) {
        assert!(now.speed_qpps.abs() < 20, "{now:?}");
        assert!(now.current_a > 5.0, "{now:?}");
        assert!((now.pulses - before.pulses).abs() < 20, "{now:?}");
    }
    // Without power there is no current, and it can still drive backwards.
    run(&mut world, 0.1, [Drive::RELEASED; 4]);
    let currents = world.readings().map(|reading| reading.current_a);
    assert_eq!(currents, [0.0; 4]);
    run(&mut world, 2.0, speeds(-500.0, -500.0));
    assert!((world.wheel_speeds()[0] + 0.5).abs() < 0.01);
}

#[test]
fn a_box_on_the_floor_is_seen_and_stops_the_robot() {
    let mut world = in_box(10.0);
    let small: Vec<Segment> = box_of(0.3)
        .into_iter()
        .map(|wall| Segment {
            from: wall.from.plus(Point::new(1.0, 0.0)),
            to: wall.to.plus(Point::new(1.0, 0.0)),
        })
        .collect();
    world.add_walls(&small).unwrap();
    let ahead_m = world.beam(Duration::ZERO, 0.0, 9.0).unwrap();
    assert!((ahead_m - 0.85).abs() < 1e-9, "{ahead_m}");
    run(&mut world, 4.0, speeds(400.0, 400.0));
    assert_eq!(world.contacts(), 1);
    assert_eq!(world.add_walls(&box_of(1.0)), Err(StartError::OnWall));
    assert_eq!(world.walls().segments().len(), 8);
}

#[test]
fn a_robot_slides_along_a_wall() {
    let start = Pose::new(0.0, 0.0, -0.3);
    let mut world = World::new(box_of(4.0), start, 1).unwrap();
    run(&mut world, 10.0, speeds(300.0, 300.0));
    let pose = world.pose();
    assert!(pose.at.x > 1.5, "{pose:?}");
    assert!(world.contacts() > 0);
}

#[test]
fn beams_are_sent_from_where_the_robot_was() {
    let mut world = in_box(10.0);
    run(&mut world, 1.0, speeds(0.0, 0.0));
    assert_eq!(world.beam(world.now(), 0.0, 30.0), Some(5.0));
    run(&mut world, 1.0, speeds(500.0, 500.0));
    let before = world.now();
    let ahead = world.beam(before, 0.0, 30.0).unwrap();
    assert!((ahead - (5.0 - world.pose().at.x)).abs() < 1e-9);
    run(&mut world, 0.2, speeds(500.0, 500.0));
    assert!((world.beam(before, 0.0, 30.0).unwrap() - ahead).abs() < 1e-9);
    assert!(world.beam(world.now(), 0.0, 30.0).unwrap() < ahead - 0.08);
    assert_eq!(world.beam(world.now(), 0.0, 1.0), None);
}

#[test]
fn the_same_seed_gives_the_same_world() {
    let drive = |seed| {
        let mut world = World::new(box_of(5.0), Pose::default(), seed).unwrap();
        run(&mut world, 1.0, speeds(200.0, 250.0));
        world.readings().map(|reading| reading.speed_qpps)
    };
    assert_eq!(drive(7), drive(7));
    assert_ne!(drive(7), drive(8));
}

#[test]
fn a_robot_does_not_start_on_a_wall() {
    let on_wall = Pose::new(1.4, 0.0, 0.0);
    let error = World::new(box_of(3.0), on_wall, 1).unwrap_err();
    assert_eq!(error, StartError::OnWall);
    let mut world = in_box(3.0);
    assert_eq!(world.place(on_wall), Err(StartError::OnWall));
    world.place(Pose::new(1.0, 1.0, PI)).unwrap();
    assert_eq!(world.pose(), Pose::new(1.0, 1.0, PI));
}

#[test]
fn a_start_is_found_inside() {
    assert!(find_start(&box_of(3.0), &[]).unwrap().at.length() < 0.2);
    let given = Pose::new(0.5, 0.5, 1.0);
    assert_eq!(find_start(&box_of(3.0), &[given]), Ok(given));
    assert_eq!(find_start(&box_of(0.3), &[]), Err(StartError::NoRoom));
    // A corner that is open on two sides has more space, but is not inside.
    let mut walls = box_of(3.0);
    walls.push(Segment {
        from: Point::new(9.0, -9.0),
        to: Point::new(9.0, -8.0),
    });
    assert!(find_start(&walls, &[]).unwrap().at.length() < 0.2);
}

#[test]
fn a_start_is_found_inside_the_maze_of_old_maps() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/maps");
    if !folder.is_dir() {
        let _ = writeln!(
            io::stderr(),
            "SKIP maps: {} does not exist",
            folder.display()
        );
        return;
    }
    for name in ["Test7", "MazeRoboLabFullMap", "MazeRoboLabSplitIntoRooms8"] {
        let text = fs::read_to_string(folder.join(format!("{name}.roson"))).unwrap();
        let map = Map::parse(&text).expect(name);
        let nodes = map.nodes.iter().map(|at| Pose {
            at: *at,
            heading: 0.0,
        });
        let candidates: Vec<_> = map.robots.iter().copied().chain(nodes).collect();
        let start = find_start(&map.walls, &candidates).expect(name);
        let MapPose { x_m: x, y_m: y, .. } = start.into();
        assert!(
            (0.0..3.0).contains(&x) && (0.0..4.9).contains(&y),
            "{name}: {x} {y}"
        );
        // Walls of the laboratory outside the maze.
        assert!(x < 2.35 || y > 3.26 || name == "Test7", "{name}: {x} {y}");
    }
}

proptest! {
    #[test]
    fn nothing_drives_through_walls(
        seed in any::<u64>(),
        drives in prop::collection::vec((-2800.0..2800.0, -2800.0..2800.0, 0.05..1.0), 1..25),
    ) {
        let map = Map::flat();
        let start = find_start(&map.walls, &map.robots).unwrap();
        let mut world = World::new(map.walls.clone(), start, seed).unwrap();
        let walls = Walls::new(map.walls);
        for (left, right, seconds) in drives {
            for _ in 0..(seconds / STEP.as_secs_f64()) as usize {
                let before = world.pose();
                world.step(speeds(left, right));
                let after = world.pose();
                prop_assert!(walls.is_free(OUTLINE, after), "{after:?}");
                prop_assert!(walls.is_open(before.at, after.at), "{before:?} {after:?}");
                prop_assert!(after.at.minus(before.at).length() < 0.1);
            }
        }
        let at = world.pose().at;
        prop_assert!((0.0..7.0).contains(&at.x) && (-5.6..0.0).contains(&at.y));
    }

    #[test]
    fn nothing_drives_sideways_through_walls(
        ways in prop::collection::vec((-2.0..2.0, -2.0..2.0, -3.0..3.0, 0.05..1.0), 1..25),
    ) {
        let map = Map::flat();
        let start = find_start(&map.walls, &map.robots).unwrap();
        let mut world = World::new(map.walls.clone(), start, 1).unwrap();
        let walls = Walls::new(map.walls);
        for (ahead, left, turn, seconds) in ways {
            for _ in 0..(seconds / STEP.as_secs_f64()) as usize {
                let before = world.pose();
                world.step(body(ahead, left, turn));
                let after = world.pose();
                prop_assert!(walls.is_free(OUTLINE, after), "{after:?}");
                prop_assert!(walls.is_open(before.at, after.at), "{before:?} {after:?}");
            }
        }
    }
}

fn body(ahead_m_s: f64, left_m_s: f64, turn_rad_s: f64) -> Drives {
    Drives::Body(BodySpeed {
        ahead_m_s,
        left_m_s,
        turn_rad_s,
    })
}

#[test]
fn a_robot_on_omni_wheels_drives_sideways_and_brakes() {
    let mut world = in_box(10.0);
    run(&mut world, 5.0, body(0.0, 0.2, 0.0));
    assert!(!world.is_at_rest(body(0.0, 0.0, 0.0)));
    run(&mut world, 1.0, body(0.0, 0.0, 0.0));
    assert!(world.is_at_rest(body(0.0, 0.0, 0.0)));
    assert!(!world.is_at_rest(body(0.0, 0.0, 0.1)));
    let pose = world.pose();
    assert!(pose.at.x.abs() < 1e-9 && pose.heading == 0.0, "{pose:?}");
    // What it slips at the start, it slides at the end.
    assert!((pose.at.y - 1.0).abs() < 0.002, "{pose:?}");
    assert_eq!(world.wheel_speeds(), [0.0; 4]);
    // A quarter of a circle of 0.4 m, with its side ahead.
    run(&mut world, PI, body(0.0, 0.2, 0.5));
    run(&mut world, 1.0, body(0.0, 0.0, 0.0));
    let pose = world.pose();
    assert!((pose.heading - PI / 2.0).abs() < 0.01, "{pose:?}");
    assert!((pose.at.x + 0.4).abs() < 0.01, "{pose:?}");
    assert!((pose.at.y - 1.4).abs() < 0.01, "{pose:?}");
}

#[test]
fn omni_wheels_slip_at_a_wall() {
    let mut world = in_box(3.0);
    run(&mut world, 10.0, body(0.0, 0.3, 0.0));
    let pose = world.pose();
    assert!((pose.at.y - (1.5 - OUTLINE.half_width_m)).abs() < 1e-3);
    assert_eq!((world.contacts(), world.is_touching()), (1, true));
    // Along the wall, it slides on.
    run(&mut world, 2.0, body(0.2, 0.3, 0.0));
    assert!((world.pose().at.x - 0.4).abs() < 0.05, "{:?}", world.pose());
    run(&mut world, 1.0, body(0.0, -0.3, 0.0));
    assert!(!world.is_touching());
    assert!(world.pose().at.y < pose.at.y - 0.2);
}
