//! The drawing of characters for the terminal. PURE.

use std::f64::consts::FRAC_PI_4;
use std::fmt::Write as _;

use amber_client::MapPose;
use amber_proto::printable_line;

use crate::canvas::{Canvas, DOTS_HIGH, DOTS_WIDE, Ink};
use amber_scene::{Bounds, Ground, Located, Place, Scene};

/// The robot by its heading, clockwise from the right in eighths of a turn.
const ARROWS: [char; 8] = ['→', '↘', '↓', '↙', '←', '↖', '↑', '↗'];
/// Without colours, characters stand for dots.
const SIGNS: [(Ink, char); 3] = [(Ink::Particle, '.'), (Ink::Path, 'o'), (Ink::Laser, '*')];
/// The smallest drawing: columns and rows.
const SMALLEST: (usize, usize) = (20, 5);
/// Reasons in the legend have at least this many columns.
const NARROWEST: usize = 40;

/// The scene in at most this many columns and rows, if the legend leaves space. Each line ends with
/// a line feed.
pub(in crate::map) fn draw(
    scene: &Scene,
    columns: usize,
    rows: usize,
    has_colours: bool,
) -> String {
    let legend = legend(scene, columns, has_colours);
    let Some(bounds) = scene.bounds() else {
        return legend;
    };
    // One more for the scale.
    let rows = rows.saturating_sub(legend.lines().count() + 1);
    let mut drawing = Drawing::new(bounds, columns, rows, has_colours);
    drawing.scene(scene);
    format!(
        "{}{}{legend}",
        drawing.canvas.text(has_colours),
        drawing.scale()
    )
}

struct Drawing {
    canvas: Canvas,
    low: Place,
    dots_per_m: f64,
    has_colours: bool,
}

impl Drawing {
    /// As large as possible.
    fn new(bounds: Bounds, columns: usize, rows: usize, has_colours: bool) -> Self {
        let (columns, rows) = (columns.max(SMALLEST.0), rows.max(SMALLEST.1));
        let (width_m, height_m) = bounds.size_m();
        let (wide, high) = ((columns * DOTS_WIDE) as f64, (rows * DOTS_HIGH) as f64);
        let dots_per_m = (wide / width_m).min(high / height_m);
        let fits =
            |length_m: f64, dots: usize| (length_m * dots_per_m / dots as f64).ceil() as usize;
        Self {
            canvas: Canvas::new(
                fits(width_m, DOTS_WIDE).min(columns),
                fits(height_m, DOTS_HIGH).min(rows),
            ),
            low: bounds.low,
            dots_per_m,
            has_colours,
        }
    }

    fn dots(&self, (x_m, y_m): Place) -> Place {
        (
            (x_m - self.low.0) * self.dots_per_m,
            (y_m - self.low.1) * self.dots_per_m,
        )
    }

    fn scene(&mut self, scene: &Scene) {
        if let Ok(map) = &scene.map {
            self.ground(map);
        }
        for particle in scene.particles.iter().flatten() {
            self.point((particle.x().into(), particle.y().into()), Ink::Particle);
        }
        if let Ok(drive) = &scene.drive {
            for leg in drive.path.windows(2) {
                self.path(leg[0], leg[1]);
            }
        }
        for at in scene.scan.iter().flatten() {
            self.point(*at, Ink::Laser);
        }
        if let Ok(drive) = &scene.drive {
            for (target, number) in drive.targets.iter().zip('1'..='9') {
                let (x, y) = self.dots((target.x_m, target.y_m));
                self.canvas.top(x, y, number, Ink::Target);
            }
        }
        if let Ok(located) = &scene.located {
            let (x, y) = self.dots((located.pose.x_m, located.pose.y_m));
            self.canvas.top(x, y, sign(located), Ink::Robot);
        }
    }

    fn ground(&mut self, map: &Ground) {
        for (from, to, width_m) in map.walls() {
            let (from, to) = (self.dots(from), self.dots(to));
            let width = width_m * self.dots_per_m;
            let (across, down) = (to.0 - from.0, to.1 - from.1);
            let length = across.hypot(down).max(f64::MIN_POSITIVE);
            // Two lines, one dot apart.
            let lines = (width.round() as usize).clamp(1, 20);
            for line in 0..lines {
                let off = line as f64 - (lines - 1) as f64 / 2.0;
                let aside = (-down / length * off, across / length * off);
                let moved = |(x, y): Place| (x + aside.0, y + aside.1);
                self.canvas.line(moved(from), moved(to), Ink::Wall);
            }
        }
        for ((x_m, y_m), cell_m) in map.occupied() {
            let low = self.dots((x_m, y_m));
            let count = ((cell_m * self.dots_per_m).ceil() as usize).clamp(1, 50);
            let step = cell_m * self.dots_per_m / count as f64;
            for index in 0..count * count {
                let (column, row) = ((index % count) as f64, (index / count) as f64);
                let x = low.0 + (column + 0.5) * step;
                let y = low.1 + (row + 0.5) * step;
                self.canvas.dot(x, y, Ink::Wall);
            }
        }
    }

    fn point(&mut self, at: Place, ink: Ink) {
        let (x, y) = self.dots(at);
        match SIGNS.iter().find(|(of, _)| *of == ink) {
            Some((_, sign)) if !self.has_colours => self.canvas.top(x, y, *sign, ink),
            _ => self.canvas.dot(x, y, ink),
        }
    }

    fn path(&mut self, from: Place, to: Place) {
        if self.has_colours {
            let (from, to) = (self.dots(from), self.dots(to));
            self.canvas.line(from, to, Ink::Path);
            return;
        }
        let (across, down) = (to.0 - from.0, to.1 - from.1);
        let steps = (across.hypot(down) * self.dots_per_m / DOTS_WIDE as f64).ceil();
        let steps = steps.clamp(1.0, 1_000.0);
        for step in 0..=steps as u32 {
            let share = f64::from(step) / steps;
            self.point((from.0 + share * across, from.1 + share * down), Ink::Path);
        }
    }

    /// A bar of a round length.
    fn scale(&self) -> String {
        let columns_per_m = self.dots_per_m / DOTS_WIDE as f64;
        let longest = self.canvas.size().0 / DOTS_WIDE as f64 / 2.0;
        let length_m = round_length(longest.min(20.0) / columns_per_m);
        let columns = ((length_m * columns_per_m).round() as usize).max(2);
        format!("├{}┤ {length_m} m   x →  y ↓\n", "─".repeat(columns - 2))
    }
}

/// The longest round length up to this one.
pub(super) fn round_length(most_m: f64) -> f64 {
    let lengths = [
        0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1_000.0,
    ];
    let fitting = lengths.into_iter().rev().find(|length| *length <= most_m);
    fitting.unwrap_or(0.1)
}

fn arrow(pose: MapPose) -> char {
    let eighth = (pose.heading_rad / FRAC_PI_4).round().rem_euclid(8.0);
    ARROWS[eighth as usize % ARROWS.len()]
}

/// The meaning of the colours, the pose, and the missing parts.
fn legend(scene: &Scene, columns: usize, has_colours: bool) -> String {
    let mut entries = Vec::new();
    let mut entry = |ink: Ink, sign: &str, name: String| match has_colours {
        true => entries.push(ink.paint(&format!("{sign} {name}"))),
        false => {
            let own = SIGNS.iter().find(|(of, _)| *of == ink);
            let sign = own.map_or(sign.to_owned(), |(_, sign)| sign.to_string());
            entries.push(format!("{sign} {name}"));
        }
    };
    if let Ok(located) = &scene.located {
        let name = if located.is_decided() {
            "robot"
        } else {
            "robot, perhaps"
        };
        entry(Ink::Robot, &sign(located).to_string(), name.into());
    }
    if scene.scan.is_ok() {
        entry(Ink::Laser, "⠶", "laser".into());
    }
    if scene.particles.iter().flatten().next().is_some() {
        entry(Ink::Particle, "⠶", "particles".into());
    }
    if let Ok(drive) = &scene.drive {
        if !drive.path.is_empty() {
            entry(Ink::Path, "⠶", "path".into());
        }
        if !drive.targets.is_empty() {
            entry(Ink::Target, "1", "target".into());
        }
    }
    let mut out = String::new();
    if !entries.is_empty() {
        let _ = writeln!(out, "{}", entries.join("  "));
    }
    for line in words(scene, columns.max(NARROWEST)) {
        let _ = writeln!(out, "{line}");
    }
    out
}

/// The pose, the drive and the missing parts, in lines that are shorter than this.
pub(super) fn words(scene: &Scene, columns: usize) -> Vec<String> {
    let mut lines: Vec<_> = scene.located.iter().flat_map(located).collect();
    lines.extend(scene.drive.iter().map(|drive| {
        let mut line = format!("drive: {}", drive.state);
        if let Some(remaining_m) = drive.remaining_m.filter(|_| !drive.targets.is_empty()) {
            let _ = write!(line, ", {remaining_m:.2} m left");
        }
        if let Some(reason) = &drive.reason {
            let _ = write!(line, " ({reason})");
        }
        line
    }));
    let missing = scene.missing().into_iter();
    lines.extend(missing.map(|(name, why)| format!("no {name}: {why}")));
    let lines = lines.iter().map(|line| printable_line(line));
    lines.flat_map(|line| wrapped(&line, columns)).collect()
}

/// The robot: its direction, or a question mark while its position is unknown.
fn sign(located: &Located) -> char {
    match located.is_decided() {
        true => arrow(located.pose),
        false => '?',
    }
}

/// The pose and its quality.
fn located(it: &Located) -> Vec<String> {
    let Located { pose, quality } = it;
    // A sum, so that -0 becomes 0.
    let heading = pose.heading_rad.to_degrees().round() + 0.0;
    let unknown = match it.is_decided() {
        true => "",
        false => "the position is unknown; perhaps ",
    };
    let mut lines = vec![format!(
        "{unknown}x {:.2} m  y {:.2} m  heading {heading}°  quality {:.2}",
        pose.x_m, pose.y_m, pose.quality
    )];
    if let Some(quality) = quality {
        let part = |name: &str, value: Option<f64>| {
            value.map_or_else(String::new, |value| format!("{name} {value:.2}  "))
        };
        lines.push(format!(
            "{}{}{} particles, {:.0} % injected",
            part("matching", quality.matching),
            part("agreement", quality.agreement),
            quality.particles(),
            quality.injected() * 100.0
        ));
    }
    lines
}

/// Splits a line into parts with fewer characters than this, where possible. A line that the
/// terminal wraps would shift the drawing.
fn wrapped(line: &str, columns: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in line.split_inclusive(' ') {
        let last = lines.last_mut().map_or(0, |last| last.chars().count());
        if last > 0 && last + word.trim_end().chars().count() >= columns {
            lines.push("  ".to_owned());
        }
        if let Some(last) = lines.last_mut() {
            last.push_str(word);
        }
    }
    lines
        .iter()
        .map(|line| line.trim_end().to_owned())
        .collect()
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::Arc;

    use amber_client::values::Target;
    use amber_map::Map;
    use amber_proto::location::{Particle, Quality};

    use super::*;
    use amber_scene::Drive;

    /// The robot in the hall of the flat; it drives to the kitchen.
    pub(crate) fn flat() -> Scene {
        let particle = Particle {
            x: Some(3.0),
            y: Some(2.6),
            ..Particle::default()
        };
        Scene {
            map: Ok(Arc::new(Ground::Walls(Map::flat()))),
            located: Ok(Located {
                pose: MapPose::new(3.5, 2.6, -FRAC_PI_4 * 4.0),
                quality: Some(Quality {
                    matching: Some(0.94),
                    particles: Some(316),
                    ..Quality::default()
                }),
            }),
            scan: Ok(vec![(0.05, 2.6), (3.5, 3.15)]),
            particles: Ok(vec![particle]),
            drive: Ok(Drive {
                state: "following".into(),
                remaining_m: Some(2.345),
                path: vec![(3.5, 2.6), (1.4, 2.6), (1.4, 1.0)],
                targets: vec![Target::new(1.4, 1.0)],
                ..Drive::default()
            }),
        }
    }

    /// The characters of a drawing without colours.
    fn drawn(scene: &Scene, columns: usize, rows: usize) -> Vec<Vec<char>> {
        let text = draw(scene, columns, rows, false);
        text.lines().map(|line| line.chars().collect()).collect()
    }

    /// The character at a place on the map of the flat.
    fn at(drawing: &[Vec<char>], x_m: f64, y_m: f64) -> char {
        // 80 columns are 7.4 m.
        let columns_per_m = 80.0 / 7.4;
        let column = ((x_m + 0.2) * columns_per_m) as usize;
        let row = ((y_m + 0.2) * columns_per_m / 2.0) as usize;
        drawing[row].get(column).copied().unwrap_or(' ')
    }

    fn is_dots(character: char) -> bool {
        ('\u{2801}'..='\u{28ff}').contains(&character)
    }

    #[test]
    fn each_part_is_at_its_place() {
        let drawing = drawn(&flat(), 80, 60);
        assert!(is_dots(at(&drawing, 2.0, 0.0)), "the upper wall");
        assert!(is_dots(at(&drawing, 7.0, 1.5)), "the right wall");
        assert_eq!(at(&drawing, 2.0, 1.0), ' ', "a room");
        assert_eq!(at(&drawing, 1.4, 2.0), 'o', "the path through the door");
        assert_eq!(at(&drawing, 1.4, 1.0), '1', "the target");
        assert_eq!(at(&drawing, 0.05, 2.6), '*', "the laser, above the wall");
        assert_eq!(at(&drawing, 3.5, 2.6), '←', "the robot");
        let text = draw(&flat(), 80, 60, false);
        assert!(text.contains("heading -180°  quality 1.00"), "{text}");
        assert!(text.contains("matching 0.94  316 particles"), "{text}");
        assert!(text.contains("drive: following, 2.35 m left\n"), "{text}");
        assert!(text.contains("┤ 1 m   x →  y ↓\n"), "{text}");
    }

    #[test]
    fn particles_are_dots_and_colours_replace_signs() {
        let mut scene = flat();
        scene.drive = Err("no driver".into());
        assert_eq!(at(&drawn(&scene, 80, 60), 3.0, 2.6), '.');
        let text = draw(&scene, 80, 60, true);
        let [yellow, red, robot] = ["\x1b[33m", "\x1b[31m", "\x1b[1m\x1b[36m←"];
        for colour in [yellow, red, robot] {
            let count = text.matches(colour).count();
            assert!(count > 1, "{colour:?}: drawn and explained");
        }
        assert!(text.contains("no path: no driver\n"), "{text}");
    }

    #[test]
    fn the_drawing_fits_into_the_terminal() {
        let mut scene = flat();
        scene.drive = Err("the reason is a long sentence, ".repeat(6));
        for (columns, rows) in [(80, 24), (200, 50), (60, 40), (45, 30)] {
            let drawing = drawn(&scene, columns, rows);
            assert!(
                drawing.len() <= rows,
                "{columns} x {rows}: {}",
                drawing.len()
            );
            let widest = drawing.iter().map(Vec::len).max();
            assert!(widest <= Some(columns), "{columns} x {rows}: {widest:?}");
        }
        for (columns, rows) in [(0, 0), (1, 1), (1000, 3), (3, 1000)] {
            assert!(!draw(&scene, columns, rows, true).is_empty());
        }
    }

    #[test]
    fn text_of_drivers_cannot_move_the_cursor() {
        let mut scene = flat();
        scene.map = Err("a\n\x1b[2J".into());
        let text = draw(&scene, 80, 24, false);
        assert!(text.contains("no map: a\\n\\x1b[2J\n"), "{text}");
    }

    #[test]
    fn without_map_and_pose_only_the_reasons_are_left() {
        let scene = Scene {
            map: Err("none".into()),
            located: Err("none".into()),
            scan: Err("none".into()),
            particles: Err("none".into()),
            drive: Err("none".into()),
        };
        assert_eq!(draw(&scene, 80, 24, true).lines().count(), 5);
    }
}
