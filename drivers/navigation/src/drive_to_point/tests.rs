//! Tests of the lists, the owner and the states; the runs in the simulated world are in `tests/`.

use super::*;
use crate::collision::Felt;

const CLIENT: ClientId = ClientId(7);

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn target(x: f64, y: f64) -> Target {
    Target {
        at: Point::new(x, y),
        radius_m: 0.25,
    }
}

/// A robot in a room of 4 m x 4 m, at its centre, with a wall behind which nothing is reachable.
fn driver() -> DriveToPoint {
    let corners = [
        (-2.0, -2.0),
        (2.0, -2.0),
        (2.0, 2.0),
        (-2.0, 2.0),
        (-2.0, -2.0),
    ];
    let mut walls: Vec<Segment> = corners
        .windows(2)
        .map(|pair| Segment {
            from: Point::new(pair[0].0, pair[0].1),
            to: Point::new(pair[1].0, pair[1].1),
        })
        .collect();
    walls.push(Segment {
        from: Point::new(1.0, -2.0),
        to: Point::new(1.0, 2.0),
    });
    let mut config = Config::new(Pose::default());
    // Its scans are empty.
    config.collision.large_rooms = true;
    let mut driver = DriveToPoint::new(config, &walls).unwrap();
    stand_at(&mut driver, 1000, Pose::default());
    driver
}

/// Half a second at a pose, with fresh scans and wheels; returns the last state.
fn stand_at(driver: &mut DriveToPoint, from_ms: u64, pose: Pose) -> State {
    for time in (from_ms..from_ms + 500).step_by(50) {
        let beams = (0..100).map(|index| crate::scan::Beam {
            angle_rad: f64::from(index) * 0.04 - 2.0,
            echo: crate::scan::Echo::Nothing,
        });
        driver.handle_scan(&Scan {
            start: ms(time),
            beam_time: Duration::ZERO,
            beams: beams.collect(),
        });
        driver.handle_wheels(ms(time), Wheels::STOP);
        driver.handle_pose(PoseReading {
            time: ms(time),
            pose,
            quality: 1.0,
        });
        driver.step(ms(time));
    }
    driver.state()
}

fn events(driver: &mut DriveToPoint) -> Vec<Event> {
    std::iter::from_fn(|| driver.poll_event())
        .filter(|event| !matches!(event, Event::State(_)))
        .collect()
}

#[test]
fn targets_are_visited_in_order() {
    let mut driver = driver();
    let targets = [target(-1.0, 0.0), target(0.5, 0.0)];
    driver.set_targets(ms(1500), CLIENT, &targets);
    assert_eq!(driver.next_targets().collect::<Vec<_>>(), targets);
    assert_eq!(stand_at(&mut driver, 1500, Pose::default()), State::Turning);
    assert!(driver.path().is_some_and(|path| path.length_m() > 0.9));
    // Carried to the first target: the pose must be sure first.
    let there = Pose::new(-0.9, 0.0, 0.0);
    stand_at(&mut driver, 2000, there);
    assert_eq!(driver.visited_targets(), [targets[0]]);
    assert_eq!(driver.next_targets().collect::<Vec<_>>(), [targets[1]]);
    assert_eq!(driver.state(), State::Following);
    stand_at(&mut driver, 2500, Pose::new(0.4, 0.0, 0.0));
    assert_eq!(driver.visited_targets(), targets);
    assert_eq!(driver.state(), State::Idle);
    let expected = [
        Event::Visited(targets[0]),
        Event::Visited(targets[1]),
        Event::Finished,
    ];
    assert_eq!(events(&mut driver), expected);
}

#[test]
fn unreachable_and_invalid_targets_are_skipped_and_not_visited() {
    let mut driver = driver();
    let targets = [
        target(1.5, 0.0),
        target(f64::NAN, 0.0),
        target(1e308, 0.0),
        Target {
            radius_m: 0.0,
            ..target(0.0, 0.0)
        },
        target(-1.0, 0.0),
    ];
    driver.set_targets(ms(1500), CLIENT, &targets);
    driver.step(ms(1500));
    let skipped: Vec<_> = driver.skipped_targets().iter().map(|it| it.1).collect();
    let closed = Skipped::Unreachable(NoPath::Closed(0.4));
    let invalid = Skipped::Invalid;
    assert_eq!(skipped, [invalid, invalid, invalid, closed]);
    assert_eq!(driver.next_targets().collect::<Vec<_>>(), [targets[4]]);
    assert!(driver.visited_targets().is_empty());
}

#[test]
fn the_targets_end_with_their_client() {
    for (any_client_stops, other_stops) in [(false, false), (true, true)] {
        let mut driver = driver();
        driver.config.any_client_stops = any_client_stops;
        driver.set_targets(ms(1500), CLIENT, &[target(-1.0, 0.0)]);
        driver.handle_client_left(ms(1500), ClientId(8));
        assert_eq!(driver.next_targets().count() == 0, other_stops);
        driver.handle_client_left(ms(1500), CLIENT);
        assert_eq!(driver.next_targets().count(), 0);
        assert_eq!(driver.step(ms(1510)).wheels, Wheels::STOP);
        assert_eq!(driver.state(), State::Idle);
    }
}

#[test]
fn new_targets_replace_the_old_ones_and_none_stop_the_robot() {
    let mut driver = driver();
    driver.set_targets(ms(1500), CLIENT, &[target(0.0, 0.0), target(-1.0, 0.0)]);
    stand_at(&mut driver, 1500, Pose::default());
    assert_eq!(driver.visited_targets().len(), 1);
    driver.set_targets(ms(2000), ClientId(8), &[target(0.5, 0.5)]);
    assert!(driver.visited_targets().is_empty());
    driver.handle_client_left(ms(2000), CLIENT);
    assert_eq!(driver.next_targets().count(), 1, "they belong to client 8");
    driver.set_targets(ms(2500), CLIENT, &[]);
    assert_eq!(driver.next_targets().count(), 0);
    assert_eq!(driver.step(ms(2000)).wheels, Wheels::STOP);
}

#[test]
fn without_a_sure_pose_the_robot_stands_still() {
    let mut driver = driver();
    driver.set_targets(ms(1500), CLIENT, &[target(-1.0, 0.0)]);
    assert_ne!(
        stand_at(&mut driver, 1500, Pose::default()),
        State::PoseJumped
    );
    driver.handle_pose(PoseReading {
        time: ms(2000),
        pose: Pose::new(0.0, 1.5, 0.0),
        quality: 1.0,
    });
    assert_eq!(driver.step(ms(2000)).wheels, Wheels::STOP);
    assert_eq!(driver.state(), State::PoseJumped);
    assert_eq!(driver.step(ms(2700)).wheels, Wheels::STOP);
    assert_eq!(driver.state(), State::PoseLost);
    let mut fresh = DriveToPoint::new(Config::new(Pose::default()), &[]).unwrap();
    fresh.set_targets(ms(0), CLIENT, &[target(1.0, 0.0)]);
    fresh.step(ms(0));
    assert_eq!((fresh.state(), fresh.pose()), (State::NoPose, None));
}

#[test]
fn a_robot_that_does_not_get_on_gives_up() {
    let mut driver = driver();
    let far = target(-1.5, 0.0);
    driver.set_targets(ms(1500), CLIENT, &[far]);
    let mut now = 1500;
    while stand_at(&mut driver, now, Pose::default()) != State::Idle && now < 90_000 {
        now += 500;
    }
    assert_eq!(driver.skipped_targets(), [(far, Skipped::NoProgress(5))]);
    assert!(driver.visited_targets().is_empty());
    assert!(now < 60_000, "{now}");
}

#[test]
fn what_the_robot_touches_is_an_obstacle_for_some_time() {
    let mut driver = driver();
    let touch = |felt, angle_rad| Touch {
        felt,
        angle_rad,
        arc_rad: 0.0,
    };
    driver.handle_touches(
        ms(1500),
        &[
            touch(Felt::Bumper, 0.0),
            touch(Felt::WheelDrop, std::f64::consts::FRAC_PI_2),
        ],
    );
    let found: Vec<Point> = driver.sure_obstacles().collect();
    let front = Point::new(driver.config.collision.outline.half_length_m, 0.0);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].minus(front).length() < 0.01, "{found:?}");
    driver.remember_obstacles(ms(21_499), Pose::default());
    assert_eq!(driver.sure_obstacles().count(), 1);
    driver.remember_obstacles(ms(21_500), Pose::default());
    assert_eq!(driver.sure_obstacles().count(), 0);
}

#[test]
fn while_the_laser_sees_nothing_the_robot_waits_and_keeps_its_targets() {
    let mut driver = DriveToPoint::new(Config::new(Pose::default()), &[]).unwrap();
    stand_at(&mut driver, 1000, Pose::default());
    let far = target(-1.5, 0.0);
    driver.set_targets(ms(1500), CLIENT, &[far]);
    for now in (1500..90_000).step_by(500) {
        let state = stand_at(&mut driver, now, Pose::default());
        assert_eq!(state, State::Blocked);
    }
    assert_eq!(driver.step(ms(90_000)), Decision::stop(Reason::Blind));
    assert_eq!(driver.next_targets().collect::<Vec<_>>(), [far]);
}

/// Some seconds without a decided pose, in which all beams see the same. Returns the angle by which the
/// robot has turned, and the states.
fn undecided(
    driver: &mut DriveToPoint,
    from_ms: u64,
    seconds: u64,
    quality: f64,
    echo: crate::scan::Echo,
) -> (f64, Vec<State>) {
    let (mut wheels, mut states) = (Wheels::STOP, Vec::new());
    let before = driver.monitor().odometry().pose_at(ms(from_ms)).heading;
    let (mut turned_rad, mut last) = (0.0, before);
    for time in (from_ms..from_ms + seconds * 1000).step_by(50) {
        let beams = (0..100).map(|index| crate::scan::Beam {
            angle_rad: f64::from(index) * 0.04 - 2.0,
            echo,
        });
        driver.handle_wheels(ms(time), wheels);
        driver.handle_scan(&Scan {
            start: ms(time),
            beam_time: Duration::ZERO,
            beams: beams.collect(),
        });
        driver.handle_pose(PoseReading {
            time: ms(time),
            pose: Pose::default(),
            quality,
        });
        wheels = driver.step(ms(time)).wheels;
        let heading = driver.monitor().odometry().pose_at(ms(time)).heading;
        turned_rad += amber_map::wrap(heading - last);
        last = heading;
        if states.last() != Some(&driver.state()) {
            states.push(driver.state());
        }
    }
    (turned_rad, states)
}

#[test]
fn an_undecided_robot_turns_once_and_drives_when_it_knows() {
    let nothing = crate::scan::Echo::Nothing;
    let mut driver = undecided_driver(nothing);
    driver.set_targets(ms(2500), CLIENT, &[target(-1.0, 0.0)]);
    let (turned_rad, _) = undecided(&mut driver, 2500, 1, 0.1, nothing);
    assert_eq!(turned_rad, 0.0, "most poses are decided at rest");
    undecided(&mut driver, 3500, 1, 0.1, nothing);
    let (turned_rad, states) = undecided(&mut driver, 4500, 14, 0.1, nothing);
    assert!(
        (TAU - 0.1..TAU + 0.3).contains(&turned_rad.abs()),
        "{turned_rad}"
    );
    assert_eq!(states.last(), Some(&State::NoPose), "{states:?}");
    let (turned_rad, _) = undecided(&mut driver, 18_500, 5, 0.1, nothing);
    assert_eq!(turned_rad, 0.0, "once");
    assert_eq!(driver.next_targets().count(), 1, "the target stays");
    let state = stand_at(&mut driver, 23_500, Pose::default());
    assert!(
        matches!(state, State::Turning | State::Following),
        "{state:?}"
    );
}

#[test]
fn an_undecided_robot_stands_without_a_target_a_pose_or_room() {
    let nothing = crate::scan::Echo::Nothing;
    let near = crate::scan::Echo::At(0.12);
    for (has_target, quality, echo) in [
        (false, 0.1, nothing),
        (true, 0.0, nothing),
        (true, 0.1, near),
    ] {
        let mut driver = undecided_driver(echo);
        if has_target {
            driver.set_targets(ms(2500), CLIENT, &[target(-1.0, 0.0)]);
        }
        let (turned_rad, states) = undecided(&mut driver, 2500, 8, quality, echo);
        assert_eq!(turned_rad, 0.0, "{has_target} {quality} {states:?}");
    }
}

/// A robot that has lost its pose at rest.
fn undecided_driver(echo: crate::scan::Echo) -> DriveToPoint {
    let mut driver = driver();
    undecided(&mut driver, 1500, 1, 0.1, echo);
    driver
}

#[test]
fn what_is_not_on_the_map_keeps_a_distance_from_a_turn() {
    // The corner of the robot sweeps a circle. The obstacle is just outside of it.
    for (outside_m, turns) in [(0.012, false), (0.03, true)] {
        let mut driver = driver();
        let outline = driver.config.collision.outline;
        let corner_m = outline.half_length_m.hypot(outline.half_width_m);
        let beside = crate::scan::Echo::At(corner_m + outside_m);
        for time in (1500..2000).step_by(50) {
            let beams = (0..100).map(|index| {
                let angle_rad = f64::from(index) * 0.04 - 2.0;
                crate::scan::Beam {
                    angle_rad,
                    echo: match (1.5..1.7).contains(&angle_rad) {
                        true => beside,
                        false => crate::scan::Echo::Nothing,
                    },
                }
            });
            driver.handle_scan(&Scan {
                start: ms(time),
                beam_time: Duration::ZERO,
                beams: beams.collect(),
            });
            driver.handle_wheels(ms(time), Wheels::STOP);
        }
        let found = driver.turn(ms(2000), Pose::default(), std::f64::consts::PI);
        assert_eq!(found == Some(1.0), turns, "{outside_m} {found:?}");
    }
}
