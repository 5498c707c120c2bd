//! Pictures of places whose view is known.

use amber_map::Map;

use super::super::markers::{SIDE_M, WallMarkers};
use super::*;

const SIZE: Size = Size {
    width: 640,
    height: 480,
};

fn painter() -> Painter {
    let mut painter = Painter::new(Optics::new(SIZE, 70.0), 1);
    painter.set_noise(false);
    painter
}

fn wall(from: (f64, f64), to: (f64, f64)) -> Segment {
    Segment {
        from: Point::new(from.0, from.1),
        to: Point::new(to.0, to.1),
    }
}

/// The brightness of a pixel.
fn at(picture: &Picture, x: usize, y: usize) -> u8 {
    picture.pixels[(y * 640 + x) * 3]
}

#[test]
fn a_wall_is_as_high_as_its_distance_says() {
    let painter = painter();
    let optics = painter.optics;
    // Two metres ahead, from the left to the right.
    let picture = painter.paint(Pose::default(), &[wall((2.0, 9.0), (2.0, -9.0))], &[], 0);
    let rows: Vec<usize> = (0..460)
        .filter(|y| at(&picture, 50, *y) != CEILING[0])
        .collect();
    let top = optics.row(WALL_M, 2.0).ceil() as usize;
    assert_eq!(rows.iter().copied().find(|y| *y > CODE_PX), Some(top));
    let bottom = optics.row(0.0, 2.0);
    let expected = optics.centre_px[1] + 0.25 * optics.focal_px / 2.0;
    assert!((bottom - expected).abs() < 1e-9);
    // The squares of the floor begin below it.
    let below = at(&picture, 50, bottom as usize + 2);
    let squares = FLOOR.map(|colour| shaded(colour, shade(2.0))[0]);
    assert!(
        squares.iter().any(|it| it.abs_diff(below) < 4),
        "{below} {squares:?}"
    );
}

#[test]
fn the_nearest_wall_hides_the_others() {
    let walls = [
        wall((4.0, 9.0), (4.0, -9.0)),
        wall((2.0, 0.5), (2.0, -0.5)),
        wall((-1.0, 9.0), (-1.0, -9.0)),
    ];
    let painter = painter();
    let seen: Vec<_> = walls
        .iter()
        .filter_map(|it| Seen::new(Pose::default(), it, &[]))
        .collect();
    assert_eq!(seen.len(), 2, "what is behind is not seen");
    let columns = painter.columns(&seen, 640);
    let depth = |x: usize| columns[x].unwrap().hit.depth_m;
    assert!((depth(320) - 2.0).abs() < 1e-9 && (depth(10) - 4.0).abs() < 1e-9);
    let edge = painter.optics.centre_px[0] - 0.25 * painter.optics.focal_px;
    assert!((depth(edge.ceil() as usize) - 2.0).abs() < 1e-9);
    assert!((depth(edge.floor() as usize) - 4.0).abs() < 1e-9);
}

#[test]
fn a_wall_beside_the_camera_is_cut_off_behind_it() {
    let painter = painter();
    // Half a metre to the right, from behind to far ahead.
    let walls = [wall((-5.0, -0.5), (20.0, -0.5))];
    let seen: Vec<_> = walls
        .iter()
        .filter_map(|it| Seen::new(Pose::default(), it, &[]))
        .collect();
    let columns = painter.columns(&seen, 640);
    assert!(columns[300].is_none());
    let last = columns[639].unwrap().hit.depth_m;
    let expected = 0.5 / painter.optics.slope(639.0);
    assert!((last - expected).abs() < 1e-9, "{last}");
}

/// A marker is not mirrored, from whichever side its wall is drawn.
#[test]
fn a_marker_is_seen_as_it_is() {
    let painter = painter();
    let ends = [((2.0, 1.5), (2.0, -1.5)), ((2.0, -1.5), (2.0, 1.5))];
    for (from, to) in ends {
        let walls = [wall(from, to)];
        let markers = [WallMarker {
            id: 0,
            pose: Pose::new(2.0, 0.3, 180f64.to_radians()),
        }];
        let picture = painter.paint(Pose::default(), &walls, &markers, 0);
        let focal = painter.optics.focal_px;
        let [cx, cy] = painter.optics.centre_px;
        let cell_px = SIDE_M / 6.0 / 2.0 * focal;
        // Its centre is to the left of the camera, at the same height.
        let centre = cx - 0.3 / 2.0 * focal;
        let rows = ["......", ".#.##.", "..#.#.", "...##.", "...#..", "......"];
        for (row, cells) in rows.iter().enumerate() {
            for (column, cell) in cells.chars().enumerate() {
                let x = centre + (column as f64 - 2.5) * cell_px;
                let y = cy + (row as f64 - 2.5) * cell_px;
                let bright = at(&picture, x.round() as usize, y.round() as usize);
                assert_eq!(bright > 128, cell == '#', "{row} {column}: {bright}");
            }
        }
        let edge = at(
            &picture,
            (centre - 3.5 * cell_px).round() as usize,
            cy.round() as usize,
        );
        assert!(edge > 180, "{edge}");
    }
    // From behind the wall, there is none.
    let walls = [wall((2.0, 1.5), (2.0, -1.5))];
    let away = WallMarker {
        id: 0,
        pose: Pose::new(2.0, 0.3, 0.0),
    };
    let seen = Seen::new(Pose::default(), &walls[0], &[away]).unwrap();
    assert!(seen.markers.is_empty());
}

#[test]
fn a_marker_seen_aslant_keeps_its_order() {
    let markers = [WallMarker {
        id: 0,
        pose: Pose::new(2.0, 0.0, 180f64.to_radians()),
    }];
    let walls = [wall((2.0, 3.0), (2.0, -3.0))];
    let camera = Pose::new(0.5, 1.5, -45f64.to_radians());
    let seen = Seen::new(camera, &walls[0], &markers).unwrap();
    let (_, centre_m) = seen.markers[0];
    // The place to the right of the centre, as one sees it, has a larger column.
    let columns = [-0.1, 0.0, 0.1].map(|right_m| {
        let x = 2.0;
        let y = -right_m;
        let local = camera.local(Point::new(x, y));
        let along_m = 3.0 - y;
        assert!((seen.right_m(along_m, centre_m) - right_m).abs() < 1e-9);
        -local.y / local.x
    });
    assert!(columns[0] < columns[1] && columns[1] < columns[2]);
    let hit = seen.hit(columns[2], false).unwrap();
    assert!((hit.along_m - 3.1).abs() < 1e-9, "{hit:?}");
}

#[test]
fn the_floor_moves_with_the_robot() {
    let painter = painter();
    let row = |camera: Pose| {
        let row = FloorRow::new(&painter.optics, camera, 400);
        (0..640).map(|x| row.square(x)).collect::<Vec<_>>()
    };
    let here = row(Pose::default());
    assert_ne!(here, row(Pose::new(0.4, 0.0, 0.0)));
    // A square further, all are of the other colour.
    let next = row(Pose::new(0.5, 0.0, 0.0));
    assert!(here.iter().zip(&next).all(|(a, b)| a != b));
    assert!(here.contains(&0) && here.contains(&1));
}

#[test]
fn the_code_is_in_the_corner() {
    let picture = painter().paint(Pose::default(), &[], &[], 0xA000_0005);
    let bits: Vec<bool> = (0..32)
        .map(|bit| at(&picture, bit * 8 + 4, 4) > 128)
        .collect();
    let ones: Vec<usize> = (0..32).filter(|bit| bits[*bit]).collect();
    assert_eq!(ones, [0, 2, 29, 31]);
}

#[test]
fn noise_differs_from_picture_to_picture() {
    let map = Map::flat();
    let walls = map.faces();
    let markers = WallMarkers::on(&walls);
    let painter = Painter::new(Optics::new(SIZE, 70.0), 7);
    let camera = map.robots[0];
    let [one, two] = [1, 2].map(|code| painter.paint(camera, &walls, markers.all(), code));
    let differ = one
        .pixels
        .iter()
        .zip(&two.pixels)
        .filter(|(a, b)| a != b)
        .count();
    assert!(differ > 100_000, "{differ}");
    let same = painter.paint(camera, &walls, markers.all(), 1);
    assert_eq!(one, same);
}

#[test]
fn any_place_can_be_painted() {
    let map = Map::flat();
    let walls = map.faces();
    let markers = WallMarkers::on(&walls);
    let size = Size {
        width: 64,
        height: 48,
    };
    let painter = Painter::new(Optics::new(size, 70.0), 1);
    let mut random = fastrand::Rng::with_seed(5);
    for _ in 0..300 {
        let mut coordinate = || random.f64() * 12.0 - 3.0;
        let camera = Pose::new(coordinate(), coordinate(), coordinate());
        let picture = painter.paint(camera, &walls, markers.all(), 0);
        assert_eq!(picture.pixels.len(), 64 * 48 * 3);
    }
}
