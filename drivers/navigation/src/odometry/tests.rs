use std::f64::consts::PI;

use proptest::prelude::*;

use super::*;

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn new() -> Odometry {
    Odometry::new(SkidSteer::default())
}

fn odometry(samples: impl IntoIterator<Item = (u64, f64, f64)>) -> Odometry {
    let mut odometry = new();
    for (time_ms, left, right) in samples {
        odometry.handle_wheels(ms(time_ms), Wheels::sides(left, right));
    }
    odometry
}

#[track_caller]
fn assert_near(a: Pose, b: Pose) {
    let near = a.at.minus(b.at).length() < 1e-9 && (a.heading - b.heading).abs() < 1e-9;
    assert!(near, "{a:?} {b:?}");
}

#[test]
fn equal_speeds_are_a_straight_line_and_a_faster_right_side_turns_left() {
    let straight = odometry([(0, 0.2, 0.2), (500, 0.2, 0.2), (1000, 0.2, 0.2)]);
    let motion = straight.motion(ms(0), ms(500));
    assert_near(motion.pose, Pose::new(0.1, 0.0, 0.0));
    let left = odometry([(1001, 0.0, 0.42), (1501, 0.0, 0.42), (2001, 0.0, 0.42)]);
    let motion = left.motion(ms(1001), ms(2001));
    assert_near(motion.pose, Pose::default().along_arc(0.21, 1.0));
    assert!((motion.turns_rad - 1.0).abs() < 1e-9 && motion.unknown_s == 0.0);
}

#[test]
fn speeds_change_linearly_between_samples() {
    let odometry = odometry([(0, 0.0, 0.0), (500, 0.5, 0.5), (1000, 1.0, 1.0)]);
    let way_m = odometry.motion(ms(0), ms(1000)).pose.at.x;
    assert!((way_m - 0.5).abs() < 1e-9);
    assert!((odometry.twist(ms(250)).forward_m_s - 0.25).abs() < 1e-9);
}

#[test]
fn a_path_back_and_forth_has_a_length() {
    let odometry = odometry([(0, 0.4, 0.4), (400, -0.4, -0.4)]);
    let motion = odometry.motion(ms(0), ms(400));
    assert_near(motion.pose, Pose::default());
    assert!((motion.path_m - 0.08).abs() < 1e-9, "{motion:?}");
}

#[test]
fn speeds_hold_for_a_short_time() {
    let held = odometry([(0, 1.0, 1.0)]);
    let gap = odometry([(0, 1.0, 1.0), (1000, 1.0, 1.0)]);
    for odometry in [held, gap] {
        let motion = odometry.motion(ms(0), ms(1000));
        assert!((motion.pose.at.x - 0.5).abs() < 1e-9, "{motion:?}");
        assert!((motion.unknown_s - 0.5).abs() < 1e-9, "{motion:?}");
        assert_eq!(odometry.twist(ms(499)), Twist::new(1.0, 0.0));
        assert_eq!(odometry.twist(ms(501)), Twist::STOP);
    }
    assert_eq!(new().motion(ms(0), ms(1000)).unknown_s, 1.0);
}

#[test]
fn a_circle_returns_to_its_start() {
    let drive = SkidSteer::default();
    let mut odometry = Odometry::new(drive);
    // One turn in 4 s.
    let wheels = drive.wheels(Twist::new(0.3, PI / 2.0));
    for step in 0..=80 {
        odometry.handle_wheels(ms(50 * step), wheels);
    }
    let pose = odometry.pose_at(ms(4000));
    assert!(pose.at.length() < 1e-9, "{pose:?}");
    assert!((pose.heading - 2.0 * PI).abs() < 1e-9);
    let half = odometry.pose_at(ms(3000));
    assert!((half.heading - 1.5 * PI).abs() < 1e-9);
}

#[test]
fn poses_are_interpolated_and_extrapolated() {
    let odometry = odometry([1000, 1100, 1200].map(|time| (time, 0.5, 0.5)));
    for (time, x) in [(900, 0.0), (1050, 0.025), (1150, 0.075), (1300, 0.15)] {
        assert!((odometry.pose_at(ms(time)).at.x - x).abs() < 1e-9, "{time}");
    }
    // Without measurements it stands still after a while.
    assert!((odometry.pose_at(ms(60_000)).at.x - 0.35).abs() < 1e-9);
}

#[test]
fn useless_samples_are_refused() {
    let mut odometry = new();
    assert!(odometry.handle_wheels(ms(20_000), Wheels::STOP));
    assert!(!odometry.handle_wheels(ms(9_990), Wheels::STOP));
    assert!(!odometry.handle_wheels(ms(20_001), Wheels::sides(f64::NAN, 0.0)));
    assert_eq!(odometry.latest(), Some(ms(20_000)));
    for time_ms in 0..10_000 {
        odometry.handle_wheels(ms(20_000 + time_ms), Wheels::STOP);
    }
    assert!(odometry.samples.len() <= MAX_SAMPLES);
    assert!(!odometry.handle_wheels(ms(26_500), Wheels::STOP));
}

#[test]
fn a_late_sample_does_not_replace_the_latest() {
    let odometry = odometry([(1000, 0.5, 0.5), (900, 9.0, 9.0)]);
    assert_eq!(odometry.latest(), Some(ms(1000)));
    assert_eq!(odometry.latest_twist(), Twist::new(0.5, 0.0));
}

proptest! {
    #[test]
    fn the_order_of_arrival_does_not_matter(
        mut samples in prop::collection::vec((0..2000u64, -1.0..1.0, -1.0..1.0), 1..20),
    ) {
        samples.sort_by_key(|sample| sample.0);
        samples.dedup_by_key(|sample| sample.0);
        let motion = |samples: &[(u64, f64, f64)]| {
            odometry(samples.iter().copied()).motion(ms(100), ms(1900))
        };
        let sorted = motion(&samples);
        samples.reverse();
        prop_assert_eq!(sorted, motion(&samples));
    }

    #[test]
    fn a_motion_is_the_sum_of_its_parts(
        samples in prop::collection::vec((1..1000u64, -1.0..1.0, -1.0..1.0), 2..5),
        middle_share in 0.0..1.0,
    ) {
        let mut end_ms = 0;
        let odometry = odometry(samples.into_iter().map(|(gap_ms, left, right)| {
            end_ms += gap_ms;
            (end_ms, left, right)
        }).collect::<Vec<_>>());
        let middle_ms = (end_ms as f64 * middle_share) as u64;
        let whole = odometry.motion(ms(0), ms(end_ms));
        let first = odometry.motion(ms(0), ms(middle_ms));
        let second = odometry.motion(ms(middle_ms), ms(end_ms));
        let sum = first.pose.global_pose(second.pose);
        prop_assert!(sum.at.minus(whole.pose.at).length() < 1e-9, "{sum:?} {whole:?}");
        prop_assert!((sum.heading - whole.pose.heading).abs() < 1e-9);
        let parts = |value: fn(&Motion) -> f64| {
            let near = (value(&first) + value(&second) - value(&whole)).abs() < 1e-9;
            near && value(&first) >= 0.0 && value(&second) >= 0.0
        };
        prop_assert!(parts(|motion| motion.path_m), "{first:?} {second:?} {whole:?}");
        prop_assert!(parts(|motion| motion.turns_rad));
        prop_assert!(parts(|motion| motion.time_s));
        prop_assert!(parts(|motion| motion.unknown_s), "{first:?} {second:?} {whole:?}");
        let back = odometry.motion(ms(end_ms), ms(0)).pose;
        let origin = whole.pose.global_pose(back);
        prop_assert!(origin.at.length() < 1e-9 && origin.heading.abs() < 1e-9);
    }
}
