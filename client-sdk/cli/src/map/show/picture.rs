//! The PNG picture. PURE.

use std::io;

use amber_client::picture::canvas::{Canvas, Colour, LINE_HEIGHT, text_width};
use amber_map::{Cell, DistanceField, FreeSpace, Layout, Map, Occupancy};

use super::plot::{round_length, words};
use amber_scene::{Bounds, Ground, Located, Place, Scene, place_to_plane};

/// The largest drawing, without the legend, in pixels.
const MAX_WIDTH: f64 = 900.0;
const MAX_HEIGHT: f64 = 760.0;
/// A narrow map leaves space for the legend.
const MIN_WIDTH: f64 = 620.0;
const MARGIN: f64 = 16.0;
const LINE: f64 = LINE_HEIGHT + 5.0;
/// Thin walls are at least this wide.
const WALL_WIDTH: f64 = 3.0;
/// The length of a robot, and of its arrow if that is large enough to see.
const ROBOT_M: f64 = 0.37;
const MIN_ARROW: f64 = 9.0;
/// Free space is found on a grid of this many cells along the longer side.
const FREE_CELLS: f64 = 600.0;

const BACKGROUND: Colour = [226, 226, 222];
const FREE: Colour = [255, 255, 255];
const WALL: Colour = [56, 60, 66];
const LASER: Colour = [214, 40, 32];
const PARTICLE: Colour = [246, 170, 28];
const PATH: Colour = [40, 150, 70];
const ROBOT: Colour = [32, 88, 168];
const GUESS: Colour = [130, 134, 140];
const TEXT: Colour = [72, 78, 86];

/// The scene as a PNG file: y is down, as on the map.
///
/// # Errors
/// The file could not be created, because of a bug or a lack of memory.
pub(super) fn png(scene: &Scene, bounds: Bounds) -> io::Result<Vec<u8>> {
    let (width_m, height_m) = bounds.size_m();
    let pixels_per_m = (MAX_WIDTH / width_m).min(MAX_HEIGHT / height_m);
    let size = (
        (width_m * pixels_per_m).max(MIN_WIDTH),
        height_m * pixels_per_m,
    );
    let columns = (size.0 - 2.0 * MARGIN) / text_width("x");
    let lines = words(scene, columns as usize);
    let mut picture = Picture::new(bounds.low, pixels_per_m, size, lines.len() + 2);
    picture.scene(scene, bounds);
    picture.frame();
    picture.legend(scene, &lines);
    picture.canvas.png()
}

struct Picture {
    canvas: Canvas,
    low: Place,
    pixels_per_m: f64,
    /// The position of the legend.
    bottom: f64,
    right: f64,
}

impl Picture {
    /// With space for lines below the drawing.
    fn new(low: Place, pixels_per_m: f64, (right, bottom): Place, lines: usize) -> Self {
        let height = bottom + lines as f64 * LINE + MARGIN;
        Self {
            canvas: Canvas::new(right.ceil() as usize, height.ceil() as usize, BACKGROUND),
            low,
            pixels_per_m,
            bottom,
            right,
        }
    }

    fn pixels(&self, (x_m, y_m): Place) -> Place {
        (
            (x_m - self.low.0) * self.pixels_per_m,
            (y_m - self.low.1) * self.pixels_per_m,
        )
    }

    fn scene(&mut self, scene: &Scene, bounds: Bounds) {
        if let Ok(map) = &scene.map {
            self.ground(map, bounds);
        }
        if let Ok(drive) = &scene.drive {
            for leg in drive.path.windows(2) {
                let (from, to) = (self.pixels(leg[0]), self.pixels(leg[1]));
                self.canvas.line(from, to, 3.0, PATH);
            }
        }
        for at in scene.scan.iter().flatten() {
            let at = self.pixels(*at);
            self.canvas.disc(at, 2.2, LASER);
        }
        if let Ok(drive) = &scene.drive {
            for (target, number) in drive.targets.iter().zip(1..) {
                let at = self.pixels((target.x_m, target.y_m));
                let radius = (target.radius_m * self.pixels_per_m).clamp(4.0, MAX_WIDTH);
                self.canvas.circle(at, radius, 2.0, PATH);
                // Next to the target, because the path ends at its centre.
                let beside = (at.0 + radius + 5.0, at.1 - LINE_HEIGHT / 2.0);
                self.canvas.text(beside, &number.to_string(), PATH);
            }
        }
        if let Ok(located) = &scene.located {
            let pose = located.pose;
            let at = self.pixels((pose.x_m, pose.y_m));
            let size = (ROBOT_M / 2.0 * self.pixels_per_m).max(MIN_ARROW);
            let (_, colour) = robot(located);
            self.canvas.arrow(at, pose.heading_rad, size, colour);
        }
        // A small cloud of particles is hidden by the arrow.
        for particle in scene.particles.iter().flatten() {
            let at = self.pixels((particle.x().into(), particle.y().into()));
            self.canvas.disc(at, 1.6, PARTICLE);
        }
    }

    fn ground(&mut self, map: &Ground, bounds: Bounds) {
        match map {
            Ground::Walls(walls) => self.free(free_space(walls, bounds)),
            Ground::Grid(grid) => self.free(|at| grid_colour(grid, at)),
        }
        for (from, to, width_m) in map.walls() {
            let (from, to) = (self.pixels(from), self.pixels(to));
            let width = (width_m * self.pixels_per_m).max(WALL_WIDTH);
            self.canvas.line(from, to, width, WALL);
        }
    }

    /// Paints the places on the map that have a colour.
    fn free(&mut self, colour: impl Fn(amber_map::Point) -> Option<Colour>) {
        let (low, scale, bottom) = (self.low, self.pixels_per_m, self.bottom);
        self.canvas.fill(|(x, y)| {
            if y > bottom {
                return None;
            }
            colour(place_to_plane((x / scale + low.0, y / scale + low.1)))
        });
    }

    /// The directions of the axes.
    fn frame(&mut self) {
        const LENGTH: f64 = 40.0;
        let corner = (MARGIN / 2.0, MARGIN / 2.0);
        let ends = [(corner.0 + LENGTH, corner.1), (corner.0, corner.1 + LENGTH)];
        for (end, (direction_rad, name)) in ends
            .into_iter()
            .zip([(0.0, "x"), (std::f64::consts::FRAC_PI_2, "y")])
        {
            self.canvas.line(corner, end, 1.5, TEXT);
            self.canvas.arrow(end, direction_rad, 6.0, TEXT);
            let beside = match name {
                "x" => (end.0 + 10.0, end.1 - LINE_HEIGHT / 2.0),
                _ => (end.0 - text_width(name) / 2.0, end.1 + 8.0),
            };
            self.canvas.text(beside, name, TEXT);
        }
    }

    /// The meaning of the colours, the scale, the pose, and the missing parts.
    fn legend(&mut self, scene: &Scene, lines: &[String]) {
        let top = self.bottom + MARGIN / 2.0;
        let middle = top + LINE_HEIGHT / 2.0;
        let mut left = MARGIN;
        let mut entry =
            |canvas: &mut Canvas, shown: bool, name: &str, draw: &dyn Fn(&mut Canvas, Place)| {
                if shown {
                    draw(canvas, (left + 8.0, middle));
                    canvas.text((left + 22.0, top), name, TEXT);
                    left += 22.0 + text_width(name) + 20.0;
                }
            };
        let canvas = &mut self.canvas;
        let located = scene.located.as_ref();
        let (name, colour) = located.map_or(("", ROBOT), robot);
        entry(canvas, scene.map.is_ok(), "wall", &|canvas, (x, y)| {
            canvas.line((x - 7.0, y), (x + 7.0, y), 5.0, WALL);
        });
        entry(canvas, located.is_ok(), name, &|canvas, at| {
            canvas.arrow(at, 0.0, 9.0, colour);
        });
        entry(canvas, scene.scan.is_ok(), "laser", &|canvas, (x, y)| {
            for off in [-5.0, 0.0, 5.0] {
                canvas.disc((x + off, y), 2.2, LASER);
            }
        });
        entry(
            canvas,
            scene.particles.is_ok(),
            "particles",
            &|canvas, (x, y)| {
                for (across, down) in [
                    (-5.0, -2.0),
                    (0.0, 3.0),
                    (4.0, -3.0),
                    (-1.0, -5.0),
                    (6.0, 3.0),
                ] {
                    canvas.disc((x + across, y + down), 1.6, PARTICLE);
                }
            },
        );
        let drive = scene.drive.as_ref().ok();
        let has_path = drive.is_some_and(|drive| !drive.path.is_empty());
        entry(canvas, has_path, "path", &|canvas, (x, y)| {
            canvas.line((x - 7.0, y), (x + 7.0, y), 3.0, PATH);
        });
        let has_target = drive.is_some_and(|drive| !drive.targets.is_empty());
        entry(canvas, has_target, "target", &|canvas, at| {
            canvas.circle(at, 7.0, 2.0, PATH);
        });
        self.scale(top + LINE);
        for (line, row) in lines.iter().zip(2_u32..) {
            let at = (MARGIN, top + f64::from(row) * LINE);
            self.canvas.text(at, line, TEXT);
        }
    }

    /// A bar of a round length.
    fn scale(&mut self, top: f64) {
        let length_m = round_length(self.right / 3.0 / self.pixels_per_m);
        let (left, y) = (MARGIN, top + LINE_HEIGHT / 2.0);
        let right = left + length_m * self.pixels_per_m;
        self.canvas.line((left, y), (right, y), 2.0, TEXT);
        for x in [left, right] {
            self.canvas.line((x, y - 4.0), (x, y + 4.0), 2.0, TEXT);
        }
        let text = format!("{length_m} m");
        self.canvas.text((right + 8.0, top), &text, TEXT);
    }
}

/// The name and the colour of the robot: grey while its position is unknown.
fn robot(located: &Located) -> (&'static str, Colour) {
    match located.is_decided() {
        true => ("robot", ROBOT),
        false => ("robot, perhaps", GUESS),
    }
}

/// The area that the walls enclose.
fn free_space(map: &Map, bounds: Bounds) -> impl Fn(amber_map::Point) -> Option<Colour> + use<> {
    let (width_m, height_m) = bounds.size_m();
    let cell_m = width_m.max(height_m) / FREE_CELLS;
    let faces = map.faces();
    let layout = Layout::around_walls(&faces, 2.0 * cell_m, cell_m);
    let free = layout.map(|layout| {
        let field = DistanceField::from_walls(layout, &faces, 2.0 * cell_m);
        // Walls have no holes for cells that are this far from them.
        (FreeSpace::new(&field, 0.75 * cell_m, &map.nodes), field)
    });
    move |at| {
        let (space, field) = free.as_ref().ok()?;
        space.is_free(field, at).then_some(FREE)
    }
}

fn grid_colour(grid: &Occupancy, at: amber_map::Point) -> Option<Colour> {
    let (column, row) = grid.layout().cell_at(at)?;
    match grid.cell(column, row) {
        Cell::Unknown => None,
        Cell::Free => Some(FREE),
        Cell::Occupied => Some(WALL),
    }
}

#[cfg(test)]
mod tests {
    use super::super::plot::tests::flat;
    use super::*;

    /// A picture read again: the colour at a place on the map of the flat.
    struct Pixels {
        width: usize,
        height: usize,
        bytes: Vec<u8>,
    }

    impl Pixels {
        fn of(scene: &Scene) -> Self {
            let file = png(scene, scene.bounds().unwrap()).unwrap();
            let mut reader = png::Decoder::new(io::Cursor::new(file))
                .read_info()
                .unwrap();
            let (width, height) = (reader.info().width, reader.info().height);
            let mut bytes = vec![0; (width * height * 3) as usize];
            reader.next_frame(&mut bytes).unwrap();
            Self {
                width: width as usize,
                height: height as usize,
                bytes,
            }
        }

        fn at(&self, x_m: f64, y_m: f64) -> Colour {
            let pixels_per_m = MAX_WIDTH / 7.4;
            let (column, row) = ((x_m + 0.2) * pixels_per_m, (y_m + 0.2) * pixels_per_m);
            let start = (row as usize * self.width + column as usize) * 3;
            self.bytes[start..start + 3].try_into().unwrap()
        }
    }

    #[test]
    fn each_part_is_at_its_place_and_y_is_down() {
        let picture = Pixels::of(&flat());
        assert_eq!(picture.width, 900);
        for (x_m, y_m, colour) in [
            (2.0, 0.0, WALL),
            (7.0, 1.5, WALL),
            (5.0, 5.6, WALL),
            (5.0, 4.0, FREE),
            (1.4, 2.0, PATH),
            (2.5, 2.6, PATH),
            (3.5, 3.15, LASER),
            (3.0, 2.6, PARTICLE),
            (3.45, 2.6, ROBOT),
            (-0.1, 3.0, BACKGROUND),
            (0.1, 0.1, BACKGROUND),
        ] {
            assert_eq!(picture.at(x_m, y_m), colour, "{x_m}, {y_m}");
        }
    }

    #[test]
    fn a_grid_has_its_three_kinds_of_cells() {
        let mut scene = flat();
        let layout = Layout {
            low: amber_map::Point::new(0.0, -5.6),
            cell_m: 0.1,
            columns: 70,
            rows: 56,
        };
        let mut cells = vec![Cell::Free; layout.cells()];
        cells[layout.index(10, 0)] = Cell::Occupied;
        cells[layout.index(20, 5)] = Cell::Unknown;
        let grid = Occupancy::from_cells(layout, cells).unwrap();
        scene.map = Ok(std::sync::Arc::new(Ground::Grid(grid)));
        let file = png(&scene, scene.bounds().unwrap()).unwrap();
        assert!(file.starts_with(b"\x89PNG"));
        let plane = |x_m, y_m| place_to_plane((x_m, y_m));
        let Ok(Ground::Grid(grid)) = scene.map.as_deref() else {
            unreachable!("it was set above")
        };
        assert_eq!(grid_colour(grid, plane(1.05, 5.55)), Some(WALL));
        assert_eq!(grid_colour(grid, plane(2.05, 5.05)), None);
        assert_eq!(grid_colour(grid, plane(3.05, 3.05)), Some(FREE));
        assert_eq!(grid_colour(grid, plane(9.0, 9.0)), None);
    }

    #[test]
    fn reasons_make_the_picture_higher_not_wider() {
        let whole = Pixels::of(&flat());
        let mut scene = flat();
        scene.scan = Err("a long reason ".repeat(20));
        let longer = Pixels::of(&scene);
        assert_eq!(longer.width, whole.width);
        assert!(longer.height > whole.height + 2 * LINE as usize);
    }
}
