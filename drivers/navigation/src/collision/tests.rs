//! Tests of the rules; the runs in the simulated world are in `tests/`.

use std::f64::consts::PI;

use proptest::prelude::*;

use super::rules::CREEP_M_S;
use super::*;
use crate::kinematics::SkidSteer;
use crate::scan::Beam;

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// A scan of 682 beams of these points, taken at once from the centre of the robot.
fn scan_of(taken: Duration, distance_m: impl Fn(f64) -> Option<f64>) -> Scan {
    let beams = (0..682).map(|index| {
        let angle_rad = (f64::from(index) - 340.5) * 2.0 * PI / 1024.0;
        let echo = distance_m(angle_rad).map_or(Echo::Nothing, Echo::At);
        Beam { angle_rad, echo }
    });
    Scan {
        start: taken,
        beam_time: Duration::ZERO,
        beams: beams.collect(),
    }
}

/// A wall across the way ahead.
fn wall_ahead(distance_m: f64) -> impl Fn(f64) -> Option<f64> {
    move |angle| {
        let length_m = distance_m / angle.cos();
        (angle.cos() > 0.05 && length_m < 5.0).then_some(length_m)
    }
}

/// A wall to the left, parallel to the robot.
fn wall_left(distance_m: f64) -> impl Fn(f64) -> Option<f64> {
    move |angle| {
        let length_m = distance_m / angle.sin();
        (angle.sin() > 0.05 && length_m < 5.0).then_some(length_m)
    }
}

/// For the rules that do not depend on where the robot has looked.
fn monitor(view: impl Fn(f64) -> Option<f64>) -> Monitor {
    with(true, view)
}

fn with(reverses_blindly: bool, view: impl Fn(f64) -> Option<f64>) -> Monitor {
    let mut monitor = Monitor::new(Config {
        reverses_blindly,
        // Most of these rooms have a single wall or post.
        large_rooms: true,
        ..Config::new(Pose::default())
    });
    monitor.handle_wheels(ms(1000), Wheels::STOP);
    monitor.handle_scan(&scan_of(ms(1000), view));
    monitor
}

fn decide(monitor: &mut Monitor, left: f64, right: f64) -> Decision {
    monitor.handle_command(ms(1000), Wheels::sides(left, right));
    monitor.step(ms(1000))
}

#[test]
fn a_remembered_point_counts_as_nearer_but_never_as_touched() {
    let monitor = Monitor::new(Config::new(Pose::default()));
    for (x, y, expected_x, expected_y) in [
        (-0.225, 0.0, -0.21, 0.0),
        (-0.19, 0.1, -0.186, 0.1),
        (-0.1, -0.2, -0.1, -0.185),
        // In the footprint.
        (-0.1, 0.1, -0.1, 0.1),
    ] {
        let found = monitor.drifted(Point::new(x, y));
        let expected = Point::new(expected_x, expected_y);
        assert!(
            found.minus(expected).length() < 1e-9,
            "{found:?} {expected:?}"
        );
    }
}

#[test]
fn an_empty_room_passes_commands_unchanged() {
    let mut monitor = monitor(|_| None);
    let decision = decide(&mut monitor, 0.5, 0.3);
    assert_eq!(decision.wheels, Wheels::sides(0.5, 0.3));
    assert_eq!((decision.scale, decision.reason), (1.0, Reason::Free));
}

#[test]
fn near_a_wall_the_robot_slows_down_and_then_stops() {
    let mut last_m_s = f64::INFINITY;
    for distance_mm in (0..2000).step_by(10).rev() {
        let mut monitor = monitor(wall_ahead(0.185 + f64::from(distance_mm) / 1000.0));
        let decision = decide(&mut monitor, 0.7, 0.7);
        let speed_m_s = decision.wheels.fastest_m_s();
        assert!(speed_m_s <= last_m_s + 1e-9, "{distance_mm} mm");
        let stopping_m = speed_m_s * 0.25 + speed_m_s * speed_m_s / 2.0;
        if speed_m_s > 0.0 {
            assert!(stopping_m + 0.08 <= f64::from(distance_mm) / 1000.0 + 1e-9);
        }
        last_m_s = speed_m_s;
        if distance_mm <= 80 {
            assert_eq!(decision.reason, Reason::Blocked);
        }
        if distance_mm > 600 {
            assert_eq!(decision.reason, Reason::Free);
        }
    }
}

#[test]
fn from_a_wall_the_robot_may_retreat_and_turn_if_its_corners_have_room() {
    // 30 mm in front of the wall: backwards yes, forwards no, and the corners need 63 mm.
    let mut near = monitor(wall_ahead(0.215));
    assert_eq!(decide(&mut near, 0.1, 0.1).reason, Reason::Blocked);
    assert_eq!(decide(&mut near, -0.1, -0.1).scale, 1.0);
    assert!(
        decide(&mut near, -0.3, 0.3).scale < 0.3,
        "a corner comes near"
    );
    // Where the monitor stops the robot, it can turn.
    let mut stopped = monitor(wall_ahead(0.27));
    assert_eq!(decide(&mut stopped, 0.1, 0.1).reason, Reason::Blocked);
    assert_eq!(decide(&mut stopped, -0.1, 0.1).scale, 1.0);
    assert_eq!(decide(&mut stopped, 0.1, -0.1).scale, 1.0);
}

/// The robot stands slanted in the corner of a room: its left side looks into the corner, and its
/// front left and rear left corners are this far from the walls.
fn slanted_corner(room_m: f64) -> [(f64, f64); 2] {
    [50.0_f64, 140.0].map(|degrees| {
        let direction = degrees.to_radians();
        let reach_m = 0.185 * direction.cos().abs() + 0.165 * direction.sin().abs();
        (direction, reach_m + room_m)
    })
}

#[test]
fn slanted_in_a_corner_only_the_turn_away_from_both_walls_passes() {
    for room_m in [0.01, 0.003, -0.003] {
        let walls = slanted_corner(room_m);
        let mut monitor = monitor(|angle| {
            let hits = walls.iter().filter_map(|(direction, away_m)| {
                let cos = (angle - direction).cos();
                (cos > 0.05).then_some(away_m / cos)
            });
            hits.min_by(f64::total_cmp)
        });
        // Where the laser does not look, the map says that the wall is 20 mm nearer.
        let (direction, away_m) = walls[1];
        let behind = (-50..20).map(|step| {
            let along_m = f64::from(step) * 0.01;
            Point::new(away_m - 0.02, along_m).turned(direction)
        });
        let is_hidden = |point: &Point| point.y.atan2(point.x).abs() > 2.1;
        monitor.set_known(ms(1000), behind.filter(is_hidden));
        let right = decide(&mut monitor, 0.2, -0.2);
        assert!(right.wheels.left_m_s() > CREEP_M_S, "{room_m}: {right:?}");
        for (left, right) in [(0.2, 0.2), (-0.2, -0.2), (-0.2, 0.2)] {
            let decision = decide(&mut monitor, left, right);
            assert_eq!(decision.reason, Reason::Blocked, "{room_m}: {left} {right}");
        }
        let out = monitor.way_out(ms(1000)).expect("a way out");
        assert!(out.turn_rad_s < 0.0, "{out:?}");
        assert!(monitor.turn_room_m(ms(1000), 0.1) < room_m.max(0.0));
    }
}

#[test]
fn a_parallel_wall_limits_the_speed_but_does_not_stop() {
    for gap_m in [0.005, 0.01, 0.06, 0.1] {
        let mut monitor = monitor(wall_left(0.165 + gap_m));
        let decision = decide(&mut monitor, 0.4, 0.4);
        assert_eq!(decision.reason, Reason::Limit, "{gap_m}");
        assert!((decision.wheels.fastest_m_s() - 0.2).abs() < 1e-9);
    }
    let mut far = monitor(wall_left(0.165 + 0.16));
    assert_eq!(decide(&mut far, 0.4, 0.4).reason, Reason::Free);
    // Towards the wall is something else.
    let mut near = monitor(wall_left(0.165 + 0.01));
    assert!(decide(&mut near, 0.2, 0.3).scale < 0.2);
}

#[test]
fn old_scans_slow_down_and_then_stop() {
    for (age_ms, scale) in [(0, 1.0), (300, 1.0), (450, 0.5), (600, 0.0), (60_000, 0.0)] {
        let mut monitor = monitor(|_| None);
        let now = ms(1000 + age_ms);
        monitor.handle_command(now, Wheels::sides(0.3, 0.3));
        let decision = monitor.step(now);
        assert!((decision.scale - scale).abs() < 1e-9, "{age_ms}");
        assert_eq!(decision.reason == Reason::Free, scale == 1.0);
    }
    let mut without = Monitor::new(Config::new(Pose::default()));
    assert_eq!(decide(&mut without, 0.3, 0.3).reason, Reason::NoScan);
}

#[test]
fn an_old_command_stops_the_wheels() {
    let mut monitor = monitor(|_| None);
    monitor.handle_command(ms(1000), Wheels::sides(0.3, 0.3));
    for (time, moves) in [(1000, true), (1500, true), (1501, false)] {
        monitor.handle_scan(&scan_of(ms(time), |_| None));
        let decision = monitor.step(ms(time));
        assert_eq!(decision.wheels.fastest_m_s() > 0.0, moves, "{time}");
    }
    assert_eq!(monitor.step(ms(1501)).reason, Reason::CommandTimeout);
}

#[test]
fn backwards_is_slow() {
    let mut monitor = monitor(|_| None);
    let decision = decide(&mut monitor, -0.4, -0.4);
    assert_eq!(decision.reason, Reason::Reverse);
    assert!((decision.wheels.left_m_s() + 0.15).abs() < 1e-9);
}

#[test]
fn backwards_the_robot_drives_only_where_it_has_looked() {
    let room = |_| Some(2.0);
    let mut monitor = with(false, room);
    assert_eq!(decide(&mut monitor, -0.1, -0.1).reason, Reason::Unseen);
    assert_eq!(decide(&mut monitor, 0.3, 0.2).scale, 1.0);
    assert_eq!(decide(&mut monitor, -0.1, 0.1).scale, 1.0);
    // A turn by more than half shows what was behind.
    for time in (1050..5000).step_by(50) {
        monitor.handle_wheels(ms(time), Wheels::sides(-0.2, 0.2));
        monitor.handle_scan(&scan_of(ms(time), room));
    }
    monitor.handle_wheels(ms(5000), Wheels::STOP);
    monitor.handle_scan(&scan_of(ms(5000), room));
    monitor.handle_command(ms(5000), Wheels::sides(-0.1, -0.1));
    assert_eq!(monitor.step(ms(5000)).scale, 1.0);
}

#[test]
fn away_from_an_obstacle_the_robot_backs_up_slowly_without_a_look() {
    for distance_m in [0.002, 0.03, 0.1] {
        let mut near = with(false, wall_ahead(0.185 + distance_m));
        let decision = decide(&mut near, -0.1, -0.1);
        assert_eq!(decision.reason, Reason::Retreat, "{distance_m} m");
        assert!((decision.wheels.left_m_s() + 0.045).abs() < 1e-9);
    }
    // Farther away it has room to turn, and can look.
    let mut far = with(false, wall_ahead(0.185 + 0.2));
    assert_eq!(decide(&mut far, -0.1, -0.1).reason, Reason::Unseen);
    // Between two walls it has not.
    let narrow = |angle: f64| Some((0.2 / angle.sin().abs()).min(3.0));
    let mut between = with(false, narrow);
    assert_eq!(decide(&mut between, -0.1, -0.1).reason, Reason::Retreat);
}

#[test]
fn fast_curves_are_slowed_down() {
    let mut monitor = monitor(|_| None);
    let decision = decide(&mut monitor, 0.2, 1.2);
    assert_eq!(decision.reason, Reason::Lateral);
    let twist = SkidSteer::default().twist(decision.wheels);
    assert!((twist.forward_m_s * twist.turn_rad_s - 1.5).abs() < 1e-9);
}

#[test]
fn a_fast_robot_brakes_before_it_follows_a_command_that_would_be_free() {
    let mut monitor = monitor(wall_ahead(0.185 + 0.1));
    monitor.handle_wheels(ms(1001), Wheels::sides(0.5, 0.5));
    monitor.handle_command(ms(1001), Wheels::sides(-0.2, 0.2));
    assert_eq!(monitor.step(ms(1001)).reason, Reason::Momentum);
    // Braking by driving backwards is welcome.
    monitor.handle_command(ms(1001), Wheels::sides(-0.1, -0.1));
    assert_eq!(monitor.step(ms(1001)).scale, 1.0);
}

#[test]
fn a_robot_that_was_carried_away_waits_for_a_new_scan() {
    let mut monitor = monitor(wall_ahead(0.25));
    assert_eq!(decide(&mut monitor, 0.1, 0.1).reason, Reason::Blocked);
    assert!(monitor.seen(ms(1000)).count() > 100);
    monitor.forget();
    assert_eq!(monitor.seen(ms(1000)).count(), 0);
    assert_eq!(decide(&mut monitor, 0.1, 0.1).reason, Reason::NoScan);
    monitor.handle_scan(&scan_of(ms(1050), |_| None));
    assert_eq!(decide(&mut monitor, 0.1, 0.1).reason, Reason::Free);
}

#[test]
fn walls_of_a_map_count_where_the_laser_does_not_look() {
    let mut monitor = monitor(|_| None);
    assert_eq!(decide(&mut monitor, -0.1, -0.1).scale, 1.0);
    monitor.set_known(ms(1000), [Point::new(-0.25, 0.0)].into_iter());
    assert_eq!(decide(&mut monitor, -0.1, -0.1).reason, Reason::Blocked);
    monitor.set_known(ms(1000), std::iter::empty());
    assert_eq!(decide(&mut monitor, -0.1, -0.1).scale, 1.0);
}

#[test]
fn useless_late_and_invalid_input_is_counted() {
    let mut monitor = monitor(wall_ahead(1.0));
    let mut covered = scan_of(ms(1100), |_| None);
    covered
        .beams
        .iter_mut()
        .for_each(|beam| beam.echo = Echo::Invalid);
    monitor.handle_scan(&covered);
    monitor.handle_scan(&Scan::default());
    monitor.handle_scan(&scan_of(ms(900), |_| None));
    monitor.handle_command(ms(1000), Wheels::sides(f64::NAN, 0.0));
    monitor.handle_scan(&scan_of(ms(1200), |_| None));
    let expected = Counters {
        useless_scans: 2,
        blind_scans: 1,
        late_scans: 1,
        invalid_commands: 1,
    };
    assert_eq!(monitor.counters(), expected);
    assert_eq!(monitor.scanned(), Some(ms(1000)));
}

#[test]
fn a_blind_laser_makes_the_robot_crawl_and_stop_until_it_sees_again() {
    let mut monitor = monitor(wall_ahead(3.0));
    for time in (1100..3000).step_by(100) {
        monitor.handle_wheels(ms(time), Wheels::sides(0.3, 0.3));
        monitor.handle_scan(&scan_of(ms(time), |_| None));
        monitor.handle_command(ms(time), Wheels::sides(0.3, 0.3));
        let decision = monitor.step(ms(time));
        let speed_m_s = decision.wheels.fastest_m_s();
        match time {
            ..1400 => assert_eq!(speed_m_s, 0.3),
            1400..2100 => assert!((speed_m_s - 0.1).abs() < 1e-9, "{decision:?}"),
            _ => assert_eq!(decision, Decision::stop(Reason::Blind)),
        }
    }
    assert!(monitor.is_blind(ms(2900)));
    monitor.handle_scan(&scan_of(ms(3000), wall_ahead(2.0)));
    monitor.handle_command(ms(3000), Wheels::sides(0.3, 0.3));
    assert_eq!(monitor.step(ms(3000)).scale, 1.0);
}

#[test]
fn a_laser_that_never_saw_anything_lets_the_robot_drive_only_in_large_rooms() {
    for (large_rooms, reason) in [(false, Reason::Blind), (true, Reason::Free)] {
        let mut monitor = Monitor::new(Config {
            large_rooms,
            ..Config::new(Pose::default())
        });
        monitor.handle_wheels(ms(1000), Wheels::STOP);
        monitor.handle_scan(&scan_of(ms(1000), |_| None));
        assert_eq!(decide(&mut monitor, 0.3, 0.3).reason, reason);
    }
}

#[test]
fn wheels_that_do_not_turn_are_reported() {
    let mut monitor = monitor(|_| None);
    let mut stopped = None;
    for time in (1000..4000).step_by(50) {
        monitor.handle_scan(&scan_of(ms(time), |_| None));
        monitor.handle_wheels(ms(time), Wheels::STOP);
        monitor.handle_command(ms(time), Wheels::sides(0.3, 0.3));
        if monitor.step(ms(time)).reason == Reason::Stuck {
            stopped.get_or_insert(time);
            monitor.handle_command(ms(time), Wheels::sides(-0.1, -0.1));
            assert_eq!(monitor.step(ms(time)).scale, 1.0, "the way back is free");
            let mut careful = monitor.clone();
            careful.config.reverses_blindly = false;
            let decision = careful.step(ms(time));
            assert_eq!(decision.reason, Reason::Retreat, "also without a look");
        }
    }
    let stopped = stopped.expect("stuck");
    assert!((2000..=2100).contains(&stopped), "{stopped}");
}

#[test]
fn without_new_speeds_the_wheels_are_not_reported_as_stuck() {
    let mut monitor = monitor(|_| None);
    for time in (1000..4000).step_by(50) {
        monitor.handle_scan(&scan_of(ms(time), |_| None));
        monitor.handle_command(ms(time), Wheels::sides(0.3, 0.3));
        assert_ne!(monitor.step(ms(time)).reason, Reason::Stuck, "{time}");
    }
}

#[test]
fn speeds_from_before_the_command_do_not_count_as_stuck() {
    let mut monitor = monitor(|_| None);
    for time in (1000..4000).step_by(50) {
        monitor.handle_scan(&scan_of(ms(time), |_| None));
        // Answers come late, and the robot drives for a short time again and again.
        let is_driving = time % 1000 >= 100;
        let speed_m_s = if is_driving { 0.3 } else { 0.0 };
        monitor.handle_wheels(ms(time), Wheels::sides(speed_m_s, speed_m_s));
        monitor.handle_command(ms(time), Wheels::sides(0.3, 0.3));
        assert_ne!(monitor.step(ms(time)).reason, Reason::Stuck, "{time}");
    }
}

#[test]
fn wheels_that_turn_while_the_laser_sees_no_motion_are_reported() {
    let view = |angle: f64| wall_ahead(1.5)(angle).or(Some(2.0));
    let mut monitor = monitor(view);
    let mut stopped = None;
    for time in (1000..4000).step_by(100) {
        monitor.handle_scan(&scan_of(ms(time), view));
        monitor.handle_wheels(ms(time), Wheels::sides(0.2, 0.2));
        monitor.handle_command(ms(time), Wheels::sides(0.2, 0.2));
        if monitor.step(ms(time)).reason == Reason::Stuck {
            stopped.get_or_insert(time);
        }
    }
    let stopped = stopped.expect("stuck");
    assert!((2000..=2300).contains(&stopped), "{stopped}");
}

#[test]
fn slipping_wheels_and_bumps_are_reported() {
    let mut slipping = monitor(|_| None);
    let mut reasons = Vec::new();
    for time in (1000..1700).step_by(50) {
        slipping.handle_scan(&scan_of(ms(time), |_| None));
        slipping.handle_imu(ms(time), Imu::default());
        slipping.handle_wheels(ms(time), Wheels::sides(-0.2, 0.2));
        slipping.handle_command(ms(time), Wheels::sides(-0.2, 0.2));
        reasons.push(slipping.step(ms(time)).reason);
    }
    assert_eq!(reasons[0], Reason::Free);
    assert_eq!(reasons.last(), Some(&Reason::Slip));

    let mut hit = monitor(|_| None);
    for (ahead_m_s2, reason) in [
        (0.0, Reason::Free),
        (5.0, Reason::Free),
        (-2.0, Reason::Bump),
    ] {
        let imu = Imu {
            ahead_m_s2,
            ..Imu::default()
        };
        hit.handle_imu(ms(1000), imu);
        assert_eq!(decide(&mut hit, 0.2, 0.2).reason, reason);
    }
    hit.handle_scan(&scan_of(ms(2100), |_| None));
    hit.handle_command(ms(2100), Wheels::sides(0.2, 0.2));
    assert_eq!(hit.step(ms(2100)).reason, Reason::Free);
}

#[test]
fn a_robot_that_touches_something_may_only_drive_away() {
    let front = Touch {
        felt: Felt::Bumper,
        angle_rad: 0.0,
        arc_rad: PI / 2.0,
    };
    let mut monitor = with(false, |_| None);
    monitor.handle_touches(ms(1000), &[front]);
    for (left, right, reason) in [
        (0.2, 0.2, Reason::Touched),
        (0.2, 0.1, Reason::Touched),
        (-0.2, 0.2, Reason::Touched),
        // Slowly, as it has never looked behind it.
        (-0.2, -0.2, Reason::Retreat),
    ] {
        let decision = decide(&mut monitor, left, right);
        assert_eq!(decision.reason, reason, "{left} {right}");
        let drives = reason == Reason::Retreat;
        assert_eq!(decision.wheels != Wheels::STOP, drives, "{left} {right}");
    }
    monitor.handle_touches(ms(1400), &[]);
    assert_eq!(decide(&mut monitor, 0.2, 0.2).reason, Reason::Free);
    assert_eq!(decide(&mut monitor, -0.2, -0.2).reason, Reason::Unseen);
}

#[test]
fn a_bumper_that_should_be_there_and_is_silent_stops_the_wheels() {
    let mut monitor = Monitor::new(Config {
        has_bumper: true,
        large_rooms: true,
        ..Config::new(Pose::default())
    });
    let mut reason = |time, touches: Option<&[Touch]>| {
        monitor.handle_wheels(ms(time), Wheels::STOP);
        monitor.handle_scan(&scan_of(ms(time), |_| None));
        if let Some(touches) = touches {
            monitor.handle_touches(ms(time), touches);
        }
        monitor.handle_command(ms(time), Wheels::sides(0.2, 0.2));
        monitor.step(ms(time)).reason
    };
    assert_eq!(reason(1000, None), Reason::Unfelt);
    assert_eq!(reason(1100, Some(&[])), Reason::Free);
    assert_eq!(reason(2100, None), Reason::Free);
    assert_eq!(reason(2200, None), Reason::Unfelt);
    assert_eq!(reason(2300, Some(&[])), Reason::Free);
}

proptest! {
    #[test]
    fn the_safe_speed_fulfils_the_law(
        distance in 0.0..3.0, braking in 0.3..3.0, reaction in 0.01..0.5,
    ) {
        let speed = safe_speed_m_s(distance, braking, reaction);
        let way = speed * reaction + speed * speed / (2.0 * braking);
        prop_assert!((way - distance).abs() < 1e-9);
    }

    #[test]
    fn the_monitor_only_scales_the_command(
        left in -1.2..1.2,
        right in -1.2..1.2,
        distances in prop::collection::vec(0.1..5.0, 682),
    ) {
        let view = |angle: f64| {
            let index = (angle * 1024.0 / (2.0 * PI) + 340.5).round() as usize;
            // Blocks of ten beams, so that they count.
            distances.get(index / 10 * 10).copied()
        };
        let decision = decide(&mut monitor(view), left, right);
        prop_assert!((0.0..=1.0).contains(&decision.scale));
        let expected = Wheels::sides(left, right).scaled(decision.scale);
        for (found, expected) in decision.wheels.all_m_s().into_iter().zip(expected.all_m_s()) {
            prop_assert!((found - expected).abs() < 1e-9);
        }
    }
}
