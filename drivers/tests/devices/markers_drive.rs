//! Finds the markers in pictures of the simulated camera, as the driver does, from places all over the
//! flat, and compares them with the truth and with what OpenCV finds.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use amber_drivers::camera::http::Answer;
use amber_drivers::camera::jpeg::Jpeg;
use amber_drivers::camera::pixels::{Recipe, make};
use amber_map::{Map, Point, Pose, Walls, wrap};
use amber_navigation::markers::{Found, Known, Mount, NoFix, Optics, Picture, Places, Px, find};
use amber_proto::camera::Format;
use amber_sim::Devices;
use amber_sim::camera::markers::{SIDE_M, WallMarker, WallMarkers};
use amber_sim::camera::{self, AHEAD_M, DEVICE, HEIGHT_M, VIEW_DEG};
use amber_sim::ceiling::Ceiling;
use amber_sim::robot::{Config, RobotTwin};

const MS: Duration = Duration::from_millis(1);
const SIZE: (usize, usize) = (640, 480);
/// Places that are tried.
const VIEWPOINTS: usize = 8;

fn optics() -> Optics {
    Optics::of_view(SIZE.0, SIZE.1, VIEW_DEG.to_radians())
}

/// Where the camera is on the simulated robot.
fn mount() -> Mount {
    Mount {
        pose: Pose::new(AHEAD_M, 0.0, 0.0),
        height_m: Some(HEIGHT_M),
        ..Mount::default()
    }
}

/// The markers of the flat.
fn markers() -> WallMarkers {
    WallMarkers::on(&Map::flat().faces())
}

fn known(marker: &WallMarker) -> Known {
    Known {
        pose: marker.pose,
        height_m: HEIGHT_M,
        side_m: SIDE_M,
    }
}

fn places() -> BTreeMap<u32, Known> {
    let all = markers();
    let known = all.all().iter().map(|it| (u32::from(it.id), known(it)));
    known.collect()
}

/// The pixels of the corners of a marker, clockwise from its upper left one.
fn corners(robot: Pose, marker: &WallMarker) -> [Px; 4] {
    let optics = optics();
    let camera = Pose {
        at: robot.global(Point::new(AHEAD_M, 0.0)),
        ..robot
    };
    let half = SIDE_M / 2.0;
    [(half, -half), (-half, -half), (-half, half), (half, half)].map(|(left, down)| {
        // Seen from the front, what is to the left of the direction of the marker is to the right.
        let on_wall = marker.pose.global(Point::new(0.0, -left));
        let at = camera.local(on_wall);
        [
            optics.centre_px[0] - at.y / at.x * optics.focal_px[0],
            optics.centre_px[1] + down / at.x * optics.focal_px[1],
        ]
    })
}

/// Places of the robot from which markers are seen well, with their numbers: whole, not too far away, not
/// aslant, and with nothing in between.
fn viewpoints(count: usize) -> Vec<(Pose, Vec<u32>)> {
    let map = Map::flat();
    let walls = Walls::new(map.faces());
    let markers = markers();
    let seen = |robot: Pose| -> Vec<u32> {
        let camera = robot.global(Point::new(AHEAD_M, 0.0));
        let is_seen = |marker: &&WallMarker| {
            let aslant = marker.pose.local(camera);
            let way = marker.pose.at.minus(camera).length();
            let in_picture = corners(robot, marker)
                .iter()
                .all(|[x, y]| (15.0..625.0).contains(x) && (30.0..450.0).contains(y));
            let ahead = robot.local(marker.pose.at).x > 0.4;
            // The whole of it, with its white edge.
            let is_open = [-0.18, 0.0, 0.18]
                .into_iter()
                .all(|beside| walls.is_open(camera, marker.pose.global(Point::new(0.01, beside))));
            ahead && way < 4.0 && in_picture && aslant.x > 0.6 * aslant.y.abs() && is_open
        };
        let seen = markers.all().iter().filter(is_seen);
        seen.map(|marker| marker.id.into()).collect()
    };
    let cells = (0..20 * 17).map(|cell| (f64::from(cell % 20), f64::from(cell / 20)));
    let at = cells.map(|(column, row)| Point::new(0.4 + 0.33 * column, -0.4 - 0.31 * row));
    let free: Vec<_> = at.filter(|at| walls.clearance_m(*at) > 0.35).collect();
    let headings = (0..36).map(|step| (f64::from(step) * 10.0 + 3.0).to_radians());
    let poses = headings.flat_map(|heading| free.iter().map(move |at| Pose { at: *at, heading }));
    let good = poses.map(|pose| (pose, seen(pose)));
    let good: Vec<_> = good.filter(|(_, seen)| seen.len() == count).collect();
    let step = (good.len() / VIEWPOINTS).max(1);
    good.into_iter().step_by(step).take(VIEWPOINTS).collect()
}

/// What the camera of a robot at this place shows.
fn pixels(robot: Pose) -> Vec<u8> {
    let twin = RobotTwin::new(Config {
        start: robot,
        walls: Map::flat().faces(),
        seed: 1,
        speed: 1.0,
        ceiling: Ceiling::default(),
        devices: Devices {
            camera: camera::Options {
                address: Some(([127, 0, 0, 1], 0).into()),
                ..camera::Options::default()
            },
            ..Devices::default()
        },
    });
    let (mut twin, mut now, mut answer) = (twin.unwrap(), Duration::ZERO, Answer::default());
    twin.advance(now);
    twin.handle_bytes(now, DEVICE, b"GET /stream HTTP/1.1\r\nHost: robot\r\n\r\n");
    let jpeg: Jpeg = loop {
        now += 20 * MS;
        twin.advance(now);
        while let Some(bytes) = twin.poll_output(now, DEVICE) {
            answer.push(&bytes).unwrap();
        }
        if let Some(jpeg) = answer.poll() {
            break jpeg;
        }
        assert!(now < 2_000 * MS, "no picture");
    };
    let recipe = Recipe {
        divisor: 1,
        quality: None,
        format: Format::Gray8,
    };
    make(&jpeg, recipe).unwrap().data.to_vec()
}

fn found(pixels: &[u8]) -> Vec<Found> {
    find(Picture::new(SIZE.0, SIZE.1, pixels).unwrap())
}

fn distance(one: Px, other: Px) -> f64 {
    (one[0] - other[0]).hypot(one[1] - other[1])
}

fn locate(places: &mut Places, found: &[Found]) -> Result<amber_navigation::markers::Fix, NoFix> {
    let seen: Vec<_> = found.iter().map(|it| (it.id, it.corners)).collect();
    places.locate(&optics(), &mount(), &seen)
}

#[test]
fn two_markers_tell_where_the_robot_is() {
    let viewpoints = viewpoints(2);
    assert!(viewpoints.len() >= 4, "{viewpoints:?}");
    let all = markers();
    for (robot, ids) in viewpoints {
        let found = found(&pixels(robot));
        for id in ids {
            let marker = &all.all()[id as usize];
            let seen = found.iter().find(|it| it.id == id);
            let seen = seen.unwrap_or_else(|| panic!("{id} is not found from {robot:?}"));
            let pairs = seen.corners.into_iter().zip(corners(robot, marker));
            let error_px = pairs
                .map(|(one, other)| distance(one, other))
                .fold(0.0, f64::max);
            assert!(error_px < 0.5, "{id} from {robot:?}: {error_px} px");
        }
        let fix = locate(&mut Places::new(places()), &found).unwrap();
        let error_m = fix.pose.at.minus(robot.at).length();
        let error_deg = wrap(fix.pose.heading - robot.heading).to_degrees().abs();
        assert!(error_m <= 0.05 && error_deg <= 1.0, "{fix:?} {robot:?}");
        assert!(error_m <= 3.0 * fix.sigma_m, "{fix:?} {robot:?}");
    }
}

#[test]
fn no_place_in_the_flat_gives_a_wrong_pose() {
    let map = Map::flat();
    let mut fixes = 0;
    for (index, at) in (0_u32..).zip(map.nodes) {
        let heading = f64::from(index) * 1.3;
        let robot = Pose { at, heading };
        let found = found(&pixels(robot));
        if let Ok(fix) = locate(&mut Places::new(places()), &found) {
            let error_m = fix.pose.at.minus(robot.at).length();
            assert!(
                error_m <= 3.0 * fix.sigma_m && error_m < 0.2,
                "{fix:?} {robot:?}"
            );
            fixes += 1;
        }
    }
    assert!(fixes > 0);
}

#[test]
fn a_marker_that_has_moved_is_noticed() {
    let (robot, ids) = viewpoints(2).swap_remove(0);
    let found = found(&pixels(robot));
    // The file is wrong about one of both.
    let mut wrong = places();
    let known = wrong.get_mut(&ids[0]).unwrap();
    known.pose.at = known.pose.global(Point::new(0.0, 0.6));
    let mut places = Places::new(wrong);
    let error = locate(&mut places, &found).unwrap_err();
    assert!(
        matches!(error, NoFix::Disagree(_) | NoFix::Ambiguous(_)),
        "{error}"
    );
}

/// What OpenCV finds in a picture: the corners of each marker.
fn by_opencv(pixels: &[u8], folder: &Path) -> BTreeMap<u32, [Px; 4]> {
    let path = folder.join("picture.pgm");
    let mut file = format!("P5\n{} {}\n255\n", SIZE.0, SIZE.1).into_bytes();
    file.extend_from_slice(pixels);
    fs::write(&path, file).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/foreign_markers.py");
    let output = Command::new("python3")
        .arg("-B")
        .arg(script)
        .arg(&path)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8(output.stdout).unwrap();
    let lines = said.lines().map(|line| {
        let numbers: Vec<f64> = line.split(' ').map(|it| it.parse().unwrap()).collect();
        let corners: Vec<Px> = numbers[1..].chunks(2).map(|it| [it[0], it[1]]).collect();
        (numbers[0] as u32, corners.try_into().unwrap())
    });
    lines.collect()
}

/// Whether Python has OpenCV; says so if not.
fn has_opencv() -> bool {
    let import = Command::new("python3")
        .args(["-B", "-c", "import cv2.aruco"])
        .output();
    let has = import.as_ref().is_ok_and(|output| output.status.success());
    if !has {
        // Not eprintln!, whose output a passing test hides.
        let _ = writeln!(std::io::stderr(), "SKIP foreign cv2: {import:?}");
    }
    has
}

#[test]
fn opencv_finds_the_same_markers() {
    if !has_opencv() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut compared = 0;
    for (robot, ids) in viewpoints(2).into_iter().chain(viewpoints(1)) {
        let pixels = pixels(robot);
        let ours = found(&pixels);
        let theirs = by_opencv(&pixels, folder.path());
        for id in ids {
            let own = ours.iter().find(|it| it.id == id).unwrap();
            let Some(their) = theirs.get(&id) else {
                panic!("OpenCV does not find {id} from {robot:?}, but {theirs:?}");
            };
            for (own, their) in own.corners.iter().zip(their) {
                let apart_px = distance(*own, *their);
                assert!(apart_px < 1.0, "{id} from {robot:?}: {own:?} {their:?}");
            }
            compared += 1;
        }
        // Nothing that OpenCV does not know of.
        assert!(
            ours.iter().all(|it| theirs.contains_key(&it.id)),
            "{ours:?} {theirs:?}"
        );
    }
    assert!(compared >= 10, "{compared}");
}

/// The commands of the page that says how to print markers.
#[test]
fn printed_markers_are_found() {
    if !has_opencv() {
        return;
    }
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/markers.md");
    let page = fs::read_to_string(page).unwrap();
    let (_, block) = page.split_once("```python\n").unwrap();
    let (program, _) = block.split_once("```").unwrap();
    // The same picture in a form that is read here.
    let program = format!("{program}    cv2.imwrite(f\"{{number}}.pgm\", white)\n");
    let folder = tempfile::tempdir().unwrap();
    let mut python = Command::new("python3");
    let output = python
        .args(["-B", "-c", &program])
        .current_dir(folder.path())
        .output();
    assert!(output.as_ref().unwrap().status.success(), "{output:?}");
    for id in 0..8 {
        assert!(folder.path().join(format!("marker{id}.png")).exists());
        let file = fs::read(folder.path().join(format!("{id}.pgm"))).unwrap();
        const SIDE: usize = 800;
        let pixels = &file[file.len() - SIDE * SIDE..];
        let found = find(Picture::new(SIDE, SIDE, pixels).unwrap());
        let ids: Vec<_> = found.iter().map(|it| it.id).collect();
        assert_eq!(ids, [id]);
        // The upper left corner of the first black pixel.
        assert!(
            distance(found[0].corners[0], [99.5, 99.5]) < 0.1,
            "{found:?}"
        );
    }
}
