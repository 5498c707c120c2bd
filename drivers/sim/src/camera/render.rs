//! What a camera on the robot sees: walls, markers on them, floor and ceiling. PURE.
//!
//! The camera is level and the walls are upright, so each column of the picture shows one wall: the
//! nearest one on its ray. At a depth of z (along the axis of the camera) the row y shows the height
//! `h - (y - cy) z / f`. Above the wall there is the ceiling, below it the floor.
//!
//! For programs that see, there is something to hold on to: the floor has squares of half a metre, the
//! walls have level lines each quarter of a metre and upright ones each half metre, and a colour for each
//! direction. What is far is darker.
//! Real pictures have noise, so these have some, too.

use amber_map::{Point, Pose, Segment};

use super::markers::{REACH_M, WallMarker, is_white};
use super::{HEIGHT_M, Size};

/// The height of the walls.
const WALL_M: f64 = 0.8;
/// Nothing is nearer to the camera.
const NEAR_M: f64 = 0.02;
/// The side of a square of the floor, and the distance between lines on walls.
const SQUARE_M: f64 = 0.5;
const LINE_M: f64 = 0.25;
/// The thickness of these lines, and how bright they are.
const LINE_WIDTH_M: f64 = 0.012;
const LINE: f64 = 0.8;
/// The part of the picture that shows the bumper of the robot itself.
const BUMPER: f64 = 0.03;
/// The largest noise, in steps of the brightness.
const NOISE: i8 = 4;
const NOISES: usize = 4_096;
/// The time code: so many squares of so many pixels each.
const CODE_BITS: u32 = 32;
const CODE_PX: usize = 8;

/// Brightness and two differences of colours, as JPEG has them.
type Colour = [u8; 3];

const CEILING: Colour = [205, 128, 128];
const FLOOR: [Colour; 2] = [[150, 118, 136], [95, 120, 134]];
const BUMPER_COLOUR: Colour = [28, 128, 128];
const WHITE: Colour = [235, 128, 128];
const BLACK: Colour = [20, 128, 128];
/// By the direction of the wall.
const WALLS: [Colour; 8] = [
    [160, 112, 150],
    [150, 140, 112],
    [165, 118, 120],
    [140, 146, 134],
    [155, 104, 128],
    [145, 134, 150],
    [170, 124, 110],
    [135, 150, 120],
];

/// A picture, row by row, three bytes per pixel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    /// In pixels.
    pub size: Size,
    /// The pixels.
    pub pixels: Vec<u8>,
}

/// The optics: an ideal camera.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Optics {
    size: Size,
    /// The focal length in pixels.
    focal_px: f64,
    /// The centre: that of the first pixel is at 0.
    centre_px: [f64; 2],
}

impl Optics {
    /// A camera that sees this angle from left to right.
    #[must_use]
    pub fn new(size: Size, view_deg: f64) -> Self {
        let [width, height] = [size.width, size.height].map(f64::from);
        Self {
            size,
            focal_px: width / 2.0 / (view_deg / 2.0).to_radians().tan(),
            centre_px: [(width - 1.0) / 2.0, (height - 1.0) / 2.0],
        }
    }

    /// The calibration, as a file of ROS.
    #[must_use]
    pub fn calibration(&self) -> String {
        let Self {
            size: Size { width, height },
            focal_px: f,
            centre_px: [cx, cy],
        } = self;
        format!(
            "image_width: {width}\nimage_height: {height}\ncamera_name: simulated\ncamera_matrix:\n  rows: 3\n  \
             cols: 3\n  data: [{f:.6}, 0.0, {cx:.1}, 0.0, {f:.6}, {cy:.1}, 0.0, 0.0, 1.0]\n\
             distortion_model: plumb_bob\ndistortion_coefficients:\n  rows: 1\n  cols: 5\n  \
             data: [0.0, 0.0, 0.0, 0.0, 0.0]\nrectification_matrix:\n  rows: 3\n  cols: 3\n  \
             data: [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0]\nprojection_matrix:\n  rows: 3\n  cols: 4\n  \
             data: [{f:.6}, 0.0, {cx:.1}, 0.0, 0.0, {f:.6}, {cy:.1}, 0.0, 0.0, 0.0, 1.0, 0.0]\n"
        )
    }

    /// The way to the right per metre ahead, on the ray of a column.
    fn slope(&self, x: f64) -> f64 {
        (x - self.centre_px[0]) / self.focal_px
    }

    /// The height that a row shows at a depth.
    fn height_m(&self, y: f64, depth_m: f64) -> f64 {
        HEIGHT_M - (y - self.centre_px[1]) * depth_m / self.focal_px
    }

    /// The row at a height and a depth.
    fn row(&self, height_m: f64, depth_m: f64) -> f64 {
        self.centre_px[1] + (HEIGHT_M - height_m) * self.focal_px / depth_m
    }
}

/// A wall as the camera sees it: its ends ahead and to the right.
#[derive(Clone, Debug)]
struct Seen {
    from: [f64; 2],
    to: [f64; 2],
    length_m: f64,
    colour: Colour,
    /// Markers on this side: their ids, and where they are along the wall.
    markers: Vec<(u8, f64)>,
    /// Whether what is farther along the wall is more to the right.
    goes_right: bool,
}

/// Where a ray meets a wall.
#[derive(Clone, Copy, Debug)]
struct Hit {
    depth_m: f64,
    along_m: f64,
}

impl Seen {
    /// `None` if the wall is behind the camera, or without length.
    fn new(camera: Pose, wall: &Segment, markers: &[WallMarker]) -> Option<Self> {
        let local = |point: Point| {
            let local = camera.local(point);
            [local.x, -local.y]
        };
        let (from, to) = (local(wall.from), local(wall.to));
        let way = wall.to.minus(wall.from);
        let length_m = way.length();
        if from[0].max(to[0]) <= NEAR_M || length_m == 0.0 {
            return None;
        }
        let left = Point::new(-way.y, way.x);
        let is_left = left.dot(camera.at.minus(wall.from)) > 0.0;
        let facing = if is_left { left } else { left.times(-1.0) };
        let on_it = markers.iter().filter_map(|marker| {
            let heading = Point::new(marker.pose.heading.cos(), marker.pose.heading.sin());
            let looks_here = heading.dot(facing) > 0.99 * length_m;
            let is_on_it = wall.distance(marker.pose.at) < 1e-6;
            let along_m = marker.pose.at.minus(wall.from).dot(way) / length_m;
            (looks_here && is_on_it).then_some((marker.id, along_m))
        });
        let eighth = (facing.y.atan2(facing.x) / 45f64.to_radians()).round() as i32;
        Some(Self {
            from,
            to,
            length_m,
            colour: WALLS[eighth.rem_euclid(8) as usize],
            markers: on_it.collect(),
            // Seen from its left side, its end is on the left.
            goes_right: !is_left,
        })
    }

    /// The columns on which it may be, from the first to the last.
    fn columns(&self, optics: &Optics) -> (f64, f64) {
        let [near, far] = match self.from[0] <= self.to[0] {
            true => [self.from, self.to],
            false => [self.to, self.from],
        };
        // What is behind the camera is cut off.
        let cut = match near[0] < NEAR_M {
            true => {
                let part = (NEAR_M - near[0]) / (far[0] - near[0]);
                [NEAR_M, near[1] + (far[1] - near[1]) * part]
            }
            false => near,
        };
        let column =
            |[ahead, right]: [f64; 2]| optics.centre_px[0] + right / ahead * optics.focal_px;
        let (a, b) = (column(cut), column(far));
        (a.min(b), a.max(b))
    }

    /// Where a ray meets it; `beyond` also behind its ends.
    fn hit(&self, slope: f64, beyond: bool) -> Option<Hit> {
        let way = [self.to[0] - self.from[0], self.to[1] - self.from[1]];
        let part = (slope * self.from[0] - self.from[1]) / (way[1] - slope * way[0]);
        let depth_m = self.from[0] + part * way[0];
        let is_on_it = beyond || (0.0..=1.0).contains(&part);
        (is_on_it && depth_m > NEAR_M).then_some(Hit {
            depth_m,
            along_m: part * self.length_m,
        })
    }

    /// The way to the right from the centre of a marker, as one sees it.
    fn right_m(&self, along_m: f64, centre_m: f64) -> f64 {
        match self.goes_right {
            true => along_m - centre_m,
            false => centre_m - along_m,
        }
    }
}

/// What one column shows.
#[derive(Clone, Copy, Debug)]
struct Column<'a> {
    wall: &'a Seen,
    hit: Hit,
    /// The rows of its upper and its lower edge.
    top: f64,
    bottom: f64,
    colour: Colour,
    line: Colour,
    /// A marker that may be in it, with where it is along the wall, and the places a quarter of a pixel
    /// to the left and to the right.
    marker: Option<(u8, f64, [Hit; 2])>,
}

impl<'a> Column<'a> {
    fn new(optics: &Optics, x: usize, wall: &'a Seen, hit: Hit) -> Self {
        let beside = |offset: f64| {
            wall.hit(optics.slope(x as f64 + offset), true)
                .unwrap_or(hit)
        };
        let near = |(_, centre_m): &&(u8, f64)| (hit.along_m - centre_m).abs() <= REACH_M;
        let marker = wall.markers.iter().find(near);
        let marker = marker.map(|(id, centre_m)| (*id, *centre_m, [-0.25, 0.25].map(beside)));
        // Upright lines, each half metre along the wall.
        let is_upright = is_on_line(hit.along_m, 2.0 * LINE_M);
        let line = if is_upright { LINE } else { 1.0 };
        let bright = line * shade(hit.depth_m);
        Self {
            wall,
            hit,
            top: optics.row(WALL_M, hit.depth_m),
            bottom: optics.row(0.0, hit.depth_m),
            colour: shaded(wall.colour, bright),
            line: shaded(wall.colour, bright * LINE),
            marker,
        }
    }

    fn colour(&self, optics: &Optics, y: usize) -> Colour {
        let y = y as f64;
        let height_m = optics.height_m(y, self.hit.depth_m);
        if let Some((id, centre_m, beside)) = self.marker
            && (height_m - HEIGHT_M).abs() <= REACH_M + 0.01
        {
            // Four places in the pixel: edges are smooth, and programs find them between pixels.
            let mut white = 0;
            let mut of_marker = 0;
            for hit in beside {
                let right_m = self.wall.right_m(hit.along_m, centre_m);
                for offset in [-0.25, 0.25] {
                    let up_m = optics.height_m(y + offset, hit.depth_m) - HEIGHT_M;
                    if let Some(is_white) = is_white(id, right_m, up_m) {
                        of_marker += 1;
                        white += u32::from(is_white);
                    }
                }
            }
            if of_marker > 0 {
                let paper = mixed(BLACK, WHITE, f64::from(white) / f64::from(of_marker));
                let paper = shaded(paper, shade(self.hit.depth_m / 2.0));
                return mixed(self.colour, paper, f64::from(of_marker) / 4.0);
            }
        }
        match is_on_line(height_m, LINE_M) {
            true => self.line,
            false => self.colour,
        }
    }
}

/// The squares of the floor along one row.
struct FloorRow {
    /// The place on the left, in squares, and the way to the next pixel.
    at: Point,
    step: Point,
    bright: f64,
}

impl FloorRow {
    fn new(optics: &Optics, camera: Pose, y: usize) -> Self {
        let below = (y as f64 - optics.centre_px[1]).max(0.25);
        let depth_m = HEIGHT_M * optics.focal_px / below;
        let place = |x: f64| {
            let right_m = optics.slope(x) * depth_m;
            camera
                .global(Point::new(depth_m, -right_m))
                .times(1.0 / SQUARE_M)
        };
        Self {
            at: place(0.0),
            step: place(1.0).minus(place(0.0)),
            bright: shade(depth_m),
        }
    }

    fn colours(&self) -> [Colour; 2] {
        FLOOR.map(|colour| shaded(colour, self.bright))
    }

    fn square(&self, x: usize) -> usize {
        let place = self.at.plus(self.step.times(x as f64));
        let number = place.x.floor() as i64 + place.y.floor() as i64;
        usize::from(number & 1 == 1)
    }
}

/// Draws pictures.
#[derive(Clone, Debug)]
pub struct Painter {
    optics: Optics,
    noise: Vec<i8>,
}

impl Painter {
    /// A painter for this camera. The seed is that of the noise.
    #[must_use]
    pub fn new(optics: Optics, seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let noise = (0..NOISES).map(|_| random.i8(-NOISE..=NOISE)).collect();
        Self { optics, noise }
    }

    /// Turns noise off, so that the same view gives the same picture.
    pub fn set_noise(&mut self, is_on: bool) {
        if !is_on {
            self.noise.fill(0);
        }
    }

    /// The view from a pose of the camera. The code is written into the picture.
    #[must_use]
    pub fn paint(
        &self,
        camera: Pose,
        walls: &[Segment],
        markers: &[WallMarker],
        code: u32,
    ) -> Picture {
        let optics = &self.optics;
        let [width, height] = [optics.size.width, optics.size.height].map(usize::from);
        let seen: Vec<_> = (walls.iter())
            .filter_map(|wall| Seen::new(camera, wall, markers))
            .collect();
        let columns = self.columns(&seen, width);
        let bumper = (height as f64 * (1.0 - BUMPER)) as usize;
        let horizon = optics.centre_px[1];
        let mut pixels = vec![0; width * height * 3];
        for (y, row) in pixels.chunks_exact_mut(width * 3).enumerate() {
            let floor = FloorRow::new(optics, camera, y);
            let squares = floor.colours();
            let at = y as f64;
            // Another part of the noise for each row and picture.
            let start = (y * 131 + code as usize * 977) % NOISES;
            for (x, pixel) in row.chunks_exact_mut(3).enumerate() {
                let column = columns[x].as_ref();
                let [mut bright, blue, red] = match column {
                    _ if y >= bumper => BUMPER_COLOUR,
                    Some(column) if (column.top..=column.bottom).contains(&at) => {
                        column.colour(optics, y)
                    }
                    _ if at <= horizon => CEILING,
                    _ => squares[floor.square(x)],
                };
                let noise = self.noise[(start + x) % NOISES];
                bright = bright.saturating_add_signed(noise);
                pixel.copy_from_slice(&[bright, blue, red]);
            }
        }
        write_code(&mut pixels, width, code);
        Picture {
            size: optics.size,
            pixels,
        }
    }

    /// The nearest wall of each column.
    fn columns<'a>(&self, seen: &'a [Seen], width: usize) -> Vec<Option<Column<'a>>> {
        let mut nearest: Vec<Option<(&Seen, Hit)>> = vec![None; width];
        for wall in seen {
            let (first, last) = wall.columns(&self.optics);
            let first = first.ceil().max(0.0) as usize;
            let last = (last.floor() + 1.0).clamp(0.0, width as f64) as usize;
            for (x, nearest) in nearest.iter_mut().enumerate().take(last).skip(first) {
                let Some(hit) = wall.hit(self.optics.slope(x as f64), false) else {
                    continue;
                };
                if nearest.is_none_or(|(_, other)| hit.depth_m < other.depth_m) {
                    *nearest = Some((wall, hit));
                }
            }
        }
        let column = |(x, found): (usize, Option<(&'a Seen, Hit)>)| {
            found.map(|(wall, hit)| Column::new(&self.optics, x, wall, hit))
        };
        nearest.into_iter().enumerate().map(column).collect()
    }
}

/// Writes a number into the upper left corner: white squares for ones, the highest bit first.
fn write_code(pixels: &mut [u8], width: usize, code: u32) {
    for bit in 0..CODE_BITS as usize {
        let colour = match (code >> (CODE_BITS as usize - 1 - bit)) & 1 {
            1 => [255, 128, 128],
            _ => [0, 128, 128],
        };
        let x = bit * CODE_PX;
        if x + CODE_PX > width {
            return;
        }
        for y in 0..CODE_PX {
            for pixel in pixels[(y * width + x) * 3..][..CODE_PX * 3].chunks_exact_mut(3) {
                pixel.copy_from_slice(&colour);
            }
        }
    }
}

/// How bright something is that is so far away.
fn shade(depth_m: f64) -> f64 {
    1.0 / (1.0 + 0.12 * depth_m)
}

/// Whether there is a line at this place of a wall.
fn is_on_line(place_m: f64, distance_m: f64) -> bool {
    // A remainder would take most of the time of a picture.
    let lines = place_m / distance_m;
    (lines - lines.floor()) * distance_m < LINE_WIDTH_M
}

fn shaded([bright, blue, red]: Colour, factor: f64) -> Colour {
    // Colours fade with the brightness.
    let colour = |value: u8| (128.0 + (f64::from(value) - 128.0) * factor) as u8;
    [
        (f64::from(bright) * factor) as u8,
        colour(blue),
        colour(red),
    ]
}

fn mixed(from: Colour, to: Colour, part: f64) -> Colour {
    let mix = |index: usize| {
        let (from, to) = (f64::from(from[index]), f64::from(to[index]));
        (from + (to - from) * part).round() as u8
    };
    [mix(0), mix(1), mix(2)]
}

#[cfg(test)]
mod tests;
