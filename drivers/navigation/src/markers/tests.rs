//! Markers in pictures that are drawn here: each pixel is the mean of 16 rays.

use std::f64::consts::{FRAC_PI_2, PI};

use proptest::prelude::*;

use super::picture::{length, minus};
use super::projection::{norm, plus, seen, times};
use super::*;

const SIDE_M: f64 = 0.25;

/// A marker in front of the camera, in its optical frame.
#[derive(Clone, Copy, Debug)]
struct Drawn {
    id: u32,
    at: Vector,
    rotation: Rotation,
}

impl Drawn {
    /// One that is turned around an axis, from facing the camera.
    fn new(id: u32, at: Vector, turn: Vector) -> Self {
        let facing = Rotation::around([PI, 0.0, 0.0]);
        Self {
            id,
            at,
            rotation: facing.then(&Rotation::around(turn)),
        }
    }

    fn corners(&self, optics: &Optics) -> [Px; 4] {
        super::pose::CORNERS.map(|[x, y]| {
            let way = self.rotation.turn([x * SIDE_M, y * SIDE_M, 0.0]);
            let [x, y] = seen(plus(self.at, way));
            [
                optics.centre_px[0] + x * optics.focal_px[0],
                optics.centre_px[1] + y * optics.focal_px[1],
            ]
        })
    }

    /// The brightness where a ray meets it, and how far away that is.
    fn brightness(&self, ray: Vector) -> Option<(f64, f64)> {
        let back = self.rotation.turn_back(ray);
        let from = self.rotation.turn_back(times(self.at, -1.0));
        let far = -from[2] / back[2];
        let on_it = plus(from, times(back, far));
        let cell = |part_m: f64| (part_m / SIDE_M * 6.0).floor();
        let (column, row) = (cell(on_it[0] + SIDE_M / 2.0), cell(SIDE_M / 2.0 - on_it[1]));
        let is_on = far > 0.0 && (-1.0..=6.0).contains(&column) && (-1.0..=6.0).contains(&row);
        is_on.then(|| {
            let white = match row < 0.0 || column < 0.0 {
                true => true,
                false => is_white(self.id, row as usize, column as usize).unwrap_or(true),
            };
            (if white { 220.0 } else { 25.0 }, far)
        })
    }
}

/// A picture before it is rounded to bytes.
struct Canvas {
    width: usize,
    height: usize,
    values: Vec<f64>,
}

impl Canvas {
    /// Grey walls with stripes, and markers.
    fn draw(optics: &Optics, (width, height): (usize, usize), markers: &[Drawn]) -> Self {
        let pixel = |x: usize, y: usize| {
            let rays = (0..16).map(|index| {
                let part = |index: usize| (index as f64 + 0.5) / 4.0 - 0.5;
                let at = [x as f64 + part(index % 4), y as f64 + part(index / 4)];
                let ray = [
                    (at[0] - optics.centre_px[0]) / optics.focal_px[0],
                    (at[1] - optics.centre_px[1]) / optics.focal_px[1],
                    1.0,
                ];
                let met = markers.iter().filter_map(|marker| marker.brightness(ray));
                let nearest = met.min_by(|a, b| a.1.total_cmp(&b.1));
                let stripes = if (at[0] * 0.05 + at[1] * 0.02).sin() > 0.9 {
                    110.0
                } else {
                    150.0
                };
                nearest.map_or(stripes, |(brightness, _)| brightness)
            });
            rays.sum::<f64>() / 16.0
        };
        let values = (0..width * height).map(|index| pixel(index % width, index / width));
        Self {
            width,
            height,
            values: values.collect(),
        }
    }

    /// The mean of each pixel and its eight neighbours.
    fn blurred(mut self) -> Self {
        let old = self.values.clone();
        for y in 1..self.height - 1 {
            for x in 1..self.width - 1 {
                let around = (0..9).map(|it| old[(y + it / 3 - 1) * self.width + x + it % 3 - 1]);
                self.values[y * self.width + x] = around.sum::<f64>() / 9.0;
            }
        }
        self
    }

    /// With noise of up to so many steps of the brightness, found.
    fn found(&self, noise: f64) -> Vec<Found> {
        let mut random = fastrand::Rng::with_seed(7);
        let noisy = self.values.iter().map(|value| {
            (value + noise * (2.0 * random.f64() - 1.0))
                .round()
                .clamp(0.0, 255.0) as u8
        });
        let pixels: Vec<u8> = noisy.collect();
        find(Picture::new(self.width, self.height, &pixels).unwrap())
    }
}

const SIZE: (usize, usize) = (320, 240);

fn optics() -> Optics {
    Optics::of_view(SIZE.0, SIZE.1, 50f64.to_radians())
}

/// The largest distance between corners that were found and the true ones.
#[track_caller]
fn error_px(found: &[Found], markers: &[Drawn]) -> f64 {
    let ids: Vec<u32> = found.iter().map(|it| it.id).collect();
    let expected: Vec<u32> = markers.iter().map(|it| it.id).collect();
    assert_eq!(ids, expected, "{markers:?}");
    let pairs = found.iter().zip(markers);
    let errors = pairs.flat_map(|(found, marker)| {
        let corners = marker.corners(&optics());
        let pairs = found.corners.into_iter().zip(corners);
        pairs
            .map(|(found, truth)| length(minus(found, truth)))
            .collect::<Vec<_>>()
    });
    errors.fold(0.0, f64::max)
}

#[test]
fn corners_are_exact_for_any_turn_and_distance() {
    let mut worst: f64 = 0.0;
    for distance_m in [0.55, 0.8, 1.5, 2.8] {
        for (id, turn) in [
            (0, [0.0, 0.0, 0.0]),
            (7, [0.0, 0.0, 0.6]),
            (13, [0.0, 0.0, FRAC_PI_2]),
            (22, [0.0, 0.0, PI + 0.2]),
            (31, [0.0, 0.8, 0.0]),
            (40, [-0.7, 0.3, 0.1]),
            (49, [0.5, -0.5, -1.2]),
        ] {
            let marker = Drawn::new(id, [0.03, -0.02, distance_m], turn);
            let canvas = Canvas::draw(&optics(), SIZE, &[marker]);
            let error_px = error_px(&canvas.found(0.0), &[marker]);
            assert!(error_px < 0.25, "{id} at {distance_m} m: {error_px}");
            worst = worst.max(error_px);
        }
    }
    assert!(worst > 0.0);
}

#[test]
fn markers_are_found_down_to_16_pixels_and_aslant_up_to_60_degrees() {
    let focal_px = optics().focal_px[0];
    for side_px in [16.0, 18.0, 20.0, 24.0] {
        for (id, turn_rad) in [(1, 0.0), (2, 0.3), (3, 0.7)] {
            let at = [0.01, 0.02, SIDE_M * focal_px / side_px];
            let marker = Drawn::new(id, at, [0.0, 0.0, turn_rad]);
            let found = Canvas::draw(&optics(), SIZE, &[marker]).found(4.0);
            assert!(error_px(&found, &[marker]) < 0.5, "{side_px} {turn_rad}");
        }
    }
    for turn in [[0.0, 1.05, 0.0], [0.0, -1.05, 0.0], [1.05, 0.0, 0.0]] {
        let marker = Drawn::new(4, [0.0, 0.0, SIDE_M * focal_px / 40.0], turn);
        let found = Canvas::draw(&optics(), SIZE, &[marker]).found(4.0);
        assert!(error_px(&found, &[marker]) < 0.5, "{turn:?}");
    }
}

#[test]
fn noise_and_blur_do_little_harm() {
    for distance_m in [0.5, 1.0, 2.0] {
        for turn in [[0.0; 3], [0.3, 0.5, 0.4], [0.0, -0.9, 0.0]] {
            let marker = Drawn::new(17, [0.0, 0.0, distance_m], turn);
            let canvas = Canvas::draw(&optics(), SIZE, &[marker]).blurred();
            let error_px = error_px(&canvas.found(8.0), &[marker]);
            assert!(error_px < 0.6, "{distance_m} m, {turn:?}: {error_px}");
        }
    }
}

#[test]
fn all_markers_of_a_picture_are_found_once() {
    let markers: Vec<Drawn> = (0..6)
        .map(|index| {
            let (column, row) = (f64::from(index % 3) - 1.0, f64::from(index / 3) - 0.5);
            Drawn::new(
                index,
                [column * 0.45, row * 0.45, 1.6],
                [0.0, column * 0.3, 0.0],
            )
        })
        .collect();
    let canvas = Canvas::draw(&optics(), SIZE, &markers);
    assert!(error_px(&canvas.found(4.0), &markers) < 0.3);
}

#[test]
fn every_marker_of_the_dictionary_is_told_apart() {
    for id in 0..COUNT {
        let marker = Drawn::new(id, [0.0, 0.0, 0.9], [0.2, 0.3, f64::from(id) * 0.4]);
        let found = Canvas::draw(&optics(), (320, 240), &[marker]).found(4.0);
        assert!(error_px(&found, &[marker]) < 0.3);
    }
}

#[test]
fn markers_that_are_cut_off_or_mirrored_are_none() {
    let cut = Drawn::new(3, [0.44, 0.0, 1.0], [0.0; 3]);
    assert_eq!(Canvas::draw(&optics(), SIZE, &[cut]).found(2.0), []);
    let mut mirrored = Canvas::draw(&optics(), SIZE, &[Drawn::new(3, [0.0, 0.0, 0.8], [0.0; 3])]);
    for row in mirrored.values.chunks_mut(SIZE.0) {
        row.reverse();
    }
    assert_eq!(mirrored.found(2.0), []);
}

#[test]
fn noise_and_floors_show_no_markers() {
    let mut random = fastrand::Rng::with_seed(3);
    for size in [1, 4, 9] {
        let (width, height) = (640, 480);
        let blocks: Vec<u8> = (0..width * height).map(|_| random.u8(..)).collect();
        let pixel = |index: usize| {
            let (x, y) = (index % width / size, index / width / size);
            blocks[y * width + x]
        };
        let pixels: Vec<u8> = (0..width * height).map(pixel).collect();
        assert_eq!(find(Picture::new(width, height, &pixels).unwrap()), []);
        // Cells that are black or white, as those of markers.
        let pixels: Vec<u8> = pixels
            .iter()
            .map(|it| if *it > 128 { 230 } else { 20 })
            .collect();
        assert_eq!(
            find(Picture::new(width, height, &pixels).unwrap()),
            [],
            "{size}"
        );
    }
    let floor = |index: usize| {
        let (x, y) = (index % 640, index / 640);
        let far_m = 100.0 / (y as f64 + 20.0);
        let side_m = (x as f64 - 320.0) * far_m / 400.0;
        let is_dark = ((far_m * 2.0).floor() + (side_m * 2.0).floor()) as i64 % 2 == 0;
        if is_dark { 20 } else { 220 }
    };
    let pixels: Vec<u8> = (0..640 * 480).map(floor).collect();
    assert_eq!(find(Picture::new(640, 480, &pixels).unwrap()), []);
}

#[test]
fn a_pose_from_a_picture_is_near_the_true_one() {
    let marker = Drawn::new(5, [0.2, -0.1, 1.2], [0.2, 0.6, 0.3]);
    let found = Canvas::draw(&optics(), SIZE, &[marker]).found(4.0);
    let pose = poses(&optics(), &found[0].corners, SIDE_M).unwrap().best;
    assert!(
        norm(plus(pose.at, times(marker.at, -1.0))) < 0.03,
        "{pose:?}"
    );
    assert!(pose.rotation.angle_to(&marker.rotation) < 0.05, "{pose:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn no_picture_does_harm(
        width in 1_usize..70,
        height in 1_usize..70,
        seed: u64,
        block in 1_usize..12,
    ) {
        let mut random = fastrand::Rng::with_seed(seed);
        let values: Vec<u8> = (0..width * height).map(|_| *random.choice(&[0, 30, 128, 255]).unwrap_or(&0)).collect();
        let pixels: Vec<u8> = (0..width * height)
            .map(|index| values[index / width / block * width + index % width / block])
            .collect();
        let picture = Picture::new(width, height, &pixels);
        prop_assert!(find(picture.unwrap()).len() <= width * height);
    }

    #[test]
    fn no_corners_do_harm(
        corners in proptest::array::uniform4(proptest::array::uniform2(-1e4..1e4)),
        side_m in 0.01..2.0,
    ) {
        if let Some(poses) = poses(&optics(), &corners, side_m) {
            prop_assert!(poses.best.error_px.is_finite() && poses.best.at[2] > 0.0);
        }
    }
}
