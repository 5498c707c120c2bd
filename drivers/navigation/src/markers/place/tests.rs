use super::*;

fn optics() -> Optics {
    Optics::of_view(640, 480, 70f64.to_radians())
}

const MOUNT: Mount = Mount {
    pose: Pose {
        at: Point { x: 0.1, y: 0.0 },
        heading: 0.0,
    },
    height_m: Some(0.25),
    pitch_rad: 0.0,
    upside_down: false,
};

fn marker(x: f64, y: f64, heading: f64) -> Known {
    Known {
        pose: Pose::new(x, y, heading),
        height_m: 0.3,
        side_m: 0.25,
    }
}

/// Markers on the walls of a room, of 6 x 4 m.
fn room() -> BTreeMap<u32, Known> {
    let half = std::f64::consts::PI;
    BTreeMap::from([
        (1, marker(6.0, 1.0, half)),
        (2, marker(6.0, 3.0, half)),
        (3, marker(4.0, 4.0, -half / 2.0)),
        (4, marker(4.5, 0.0, half / 2.0)),
    ])
}

/// What the camera sees of markers, if it is mounted so, with errors of the corners of up to `error_px`.
fn pictured(
    robot: Pose,
    mount: &Mount,
    markers: &BTreeMap<u32, Known>,
    ids: &[u32],
    error_px: f64,
) -> Vec<(u32, [Px; 4])> {
    let optics = optics();
    let scene = Scene {
        optics: &optics,
        mount,
        height_m: mount.height_m.unwrap(),
    };
    let guess = Guess {
        pose: robot,
        extra: [0.0; 3],
    };
    let mut random = fastrand::Rng::with_seed(5);
    ids.iter()
        .map(|id| {
            let corners = markers[id].corners().map(|at| {
                let [x, y] = seen(scene.local(&guess, at));
                let mut error = || error_px * (2.0 * random.f64() - 1.0);
                [
                    optics.centre_px[0] + x * optics.focal_px[0] + error(),
                    optics.centre_px[1] + y * optics.focal_px[1] + error(),
                ]
            });
            (*id, corners)
        })
        .collect()
}

#[track_caller]
fn check(fix: &Fix, truth: Pose, max_m: f64, max_deg: f64) {
    let error_m = fix.pose.at.minus(truth.at).length();
    let error_rad = wrap(fix.pose.heading - truth.heading).abs();
    assert!(
        error_m <= max_m && error_rad.to_degrees() <= max_deg,
        "{fix:?} {truth:?}"
    );
    assert!(error_m < 3.0 * fix.sigma_m + 1e-3, "{fix:?} {error_m}");
    assert!(
        error_rad < 3.0 * fix.sigma_rad + 1e-3,
        "{fix:?} {error_rad}"
    );
}

#[test]
fn two_markers_tell_where_the_robot_is() {
    for robot in [
        Pose::new(2.5, 2.0, 0.0),
        Pose::new(2.2, 1.5, 0.1),
        Pose::new(3.0, 2.6, -0.2),
    ] {
        for error_px in [0.0, 0.25] {
            let found = pictured(robot, &MOUNT, &room(), &[1, 2], error_px);
            let fix = Places::new(room())
                .locate(&optics(), &MOUNT, &found)
                .unwrap();
            check(&fix, robot, 0.05, 1.0);
            assert_eq!(fix.used, [1, 2]);
            assert!((0.005..0.2).contains(&fix.sigma_m), "{fix:?}");
        }
    }
}

#[test]
fn the_camera_may_be_anywhere_on_the_robot() {
    let robot = Pose::new(2.5, 2.0, 0.3);
    for mount in [
        Mount {
            height_m: None,
            ..MOUNT
        },
        Mount {
            pitch_rad: 0.2,
            ..MOUNT
        },
        Mount {
            upside_down: true,
            ..MOUNT
        },
        Mount {
            pose: Pose::new(-0.1, 0.2, -0.3),
            height_m: Some(0.6),
            ..MOUNT
        },
    ] {
        let shown = Mount {
            height_m: mount.height_m.or(Some(0.4)),
            ..mount
        };
        let found = pictured(robot, &shown, &room(), &[1, 2, 3], 0.2);
        let fix = Places::new(room())
            .locate(&optics(), &mount, &found)
            .unwrap();
        check(&fix, robot, 0.05, 1.0);
    }
    // It looks backwards.
    let mount = Mount {
        pose: Pose::new(-0.1, 0.0, std::f64::consts::PI),
        ..MOUNT
    };
    let robot = Pose::new(2.5, 2.0, std::f64::consts::PI);
    let found = pictured(robot, &mount, &room(), &[1, 2], 0.2);
    let fix = Places::new(room())
        .locate(&optics(), &mount, &found)
        .unwrap();
    check(&fix, robot, 0.05, 1.0);
}

#[test]
fn a_wrong_tilt_is_found_out() {
    let robot = Pose::new(2.5, 2.0, 0.1);
    let tilted = Mount {
        pitch_rad: 0.02,
        height_m: Some(0.26),
        ..MOUNT
    };
    let found = pictured(robot, &tilted, &room(), &[1, 2], 0.1);
    let fix = Places::new(room())
        .locate(&optics(), &MOUNT, &found)
        .unwrap();
    check(&fix, robot, 0.05, 1.0);
}

#[test]
fn one_marker_is_enough_only_nearby() {
    let mut places = Places::new(room());
    let near = Pose::new(5.0, 1.3, -0.2);
    let found = pictured(near, &MOUNT, &room(), &[1], 0.1);
    let fix = places.locate(&optics(), &MOUNT, &found).unwrap();
    check(&fix, near, 0.1, 6.0);
    let far = pictured(Pose::new(3.0, 1.3, 0.0), &MOUNT, &room(), &[1], 0.1);
    let error = places.locate(&optics(), &MOUNT, &far).unwrap_err();
    assert_eq!(
        error.to_string(),
        "marker 1 alone is 2.9 m away: two are needed, or one within 1.5 m"
    );
}

#[test]
fn unknown_markers_and_twins_tell_nothing() {
    let mut places = Places::new(room());
    let robot = Pose::new(2.5, 2.0, 0.0);
    let found = pictured(robot, &MOUNT, &room(), &[1, 2], 0.1);
    let unknown = [(30, found[0].1), (31, found[1].1)];
    assert_eq!(
        places.locate(&optics(), &MOUNT, &unknown),
        Err(NoFix::Unknown)
    );
    let twins = [(1, found[0].1), (1, found[1].1)];
    assert_eq!(
        places.locate(&optics(), &MOUNT, &twins),
        Err(NoFix::Unknown)
    );
}

/// The room, in which a marker has moved.
fn with_moved(id: u32, x: f64, y: f64) -> BTreeMap<u32, Known> {
    let mut room = room();
    let known = room.get_mut(&id).unwrap();
    known.pose.at = known.pose.at.plus(Point::new(x, y));
    room
}

#[test]
fn a_marker_that_has_moved_is_found_among_several() {
    let robot = Pose::new(2.5, 2.0, 0.0);
    for (id, x, y) in [(1, 0.0, 0.3), (2, 0.0, -0.4), (3, 0.4, 0.0), (4, -0.3, 0.0)] {
        let mut places = Places::new(room());
        let found = pictured(robot, &MOUNT, &with_moved(id, x, y), &[1, 2, 3, 4], 0.2);
        let fix = places.locate(&optics(), &MOUNT, &found).unwrap();
        check(&fix, robot, 0.05, 1.0);
        assert_eq!(places.moved().collect::<Vec<_>>(), [id]);
        assert!(!fix.used.contains(&id));
        // It alone tells nothing, even nearby.
        let alone = [*found.iter().find(|it| it.0 == id).unwrap()];
        let error = places.locate(&optics(), &MOUNT, &alone).unwrap_err();
        assert_eq!(error, NoFix::Doubted(vec![id]));
        // Somebody puts it back.
        let found = pictured(robot, &MOUNT, &room(), &[1, 2, 3, 4], 0.2);
        for _ in 0..TRUST_AFTER {
            assert_ne!(places.moved().count(), 0);
            places.locate(&optics(), &MOUNT, &found).unwrap();
        }
        assert_eq!(places.moved().count(), 0);
    }
}

#[test]
fn two_markers_that_do_not_fit_give_no_pose() {
    let mut places = Places::new(room());
    let robot = Pose::new(2.5, 2.0, 0.0);
    let found = pictured(robot, &MOUNT, &with_moved(1, 0.0, 0.5), &[1, 2], 0.1);
    let error = places.locate(&optics(), &MOUNT, &found).unwrap_err();
    assert_eq!(
        error.to_string(),
        "markers 1 and 2 do not fit together: one stands elsewhere than in the file"
    );
    // Each of them alone is doubted now, but one that agrees with others is not for long.
    let near = pictured(Pose::new(5.0, 3.0, 0.0), &MOUNT, &room(), &[2], 0.1);
    let error = places.locate(&optics(), &MOUNT, &near).unwrap_err();
    assert_eq!(
        error.to_string(),
        "marker 2 may stand elsewhere than in the file"
    );
    let with_third = pictured(robot, &MOUNT, &room(), &[2, 3], 0.1);
    for _ in 0..TRUST_AFTER {
        let fix = places.locate(&optics(), &MOUNT, &with_third).unwrap();
        check(&fix, robot, 0.05, 1.0);
    }
    assert!(places.locate(&optics(), &MOUNT, &near).is_ok());
}

#[test]
fn no_view_of_markers_gives_a_wrong_pose_that_seems_sure() {
    let mut random = fastrand::Rng::with_seed(11);
    let (mut fixes, mut tries) = (0, 0);
    while tries < 60 {
        let robot = Pose::new(
            1.5 + 3.0 * random.f64(),
            0.7 + 2.6 * random.f64(),
            (random.f64() - 0.5) * 0.8,
        );
        let scene = Scene {
            optics: &optics(),
            mount: &MOUNT,
            height_m: 0.25,
        };
        let guess = Guess {
            pose: robot,
            extra: [0.0; 3],
        };
        let is_seen = |id: &u32| {
            room()[id].corners().iter().all(|at| {
                let [x, y, z] = scene.local(&guess, *at);
                z > 0.3 && (x / z).abs() < 0.68 && (y / z).abs() < 0.5
            })
        };
        let ids: Vec<u32> = [1, 2, 3, 4].into_iter().filter(is_seen).collect();
        if ids.len() < 2 {
            continue;
        }
        tries += 1;
        let found = pictured(robot, &MOUNT, &room(), &ids, 0.3);
        if let Ok(fix) = Places::new(room()).locate(&optics(), &MOUNT, &found) {
            check(&fix, robot, 0.12, 3.0);
            fixes += 1;
        }
    }
    assert!(fixes > 50, "{fixes}");
}
