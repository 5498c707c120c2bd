//! A drawing of characters: braille dots above marks, in colour if the terminal supports it. PURE.

use anstyle::{AnsiColor, Style};

/// A braille character is two dots wide and four high, so that dots are about
/// as far apart in both directions.
pub(super) const DOTS_WIDE: usize = 2;
pub(super) const DOTS_HIGH: usize = 4;
/// The bits of the dots by row and column.
const DOTS: [[u8; DOTS_WIDE]; DOTS_HIGH] = [[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]];
const BRAILLE: u32 = 0x2800;

/// The layer of a dot or a mark. If a character has several, the last of these layers sets its
/// colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Ink {
    /// Text, and anything without its own colour.
    #[default]
    Plain,
    Wall,
    Particle,
    Path,
    Laser,
    Target,
    Robot,
}

impl Ink {
    fn style(self) -> Style {
        match self {
            Self::Plain | Self::Wall => Style::new(),
            Self::Particle => AnsiColor::Yellow.on_default(),
            Self::Path => AnsiColor::Green.on_default(),
            Self::Laser => AnsiColor::Red.on_default(),
            Self::Target => AnsiColor::Green.on_default().bold(),
            Self::Robot => AnsiColor::Cyan.on_default().bold(),
        }
    }

    /// A text in this colour.
    pub(super) fn paint(self, text: &str) -> String {
        match self.style() {
            style if style.is_plain() => text.to_owned(),
            style => format!("{style}{text}{style:#}"),
        }
    }
}

/// Characters in columns and rows.
#[derive(Clone, Debug)]
pub(super) struct Canvas {
    columns: usize,
    cells: Vec<Cell>,
}

#[derive(Clone, Copy, Debug)]
struct Cell {
    /// The character to show if there are no dots.
    mark: char,
    dots: u8,
    ink: Ink,
}

impl Canvas {
    /// The size is at least one character.
    pub(super) fn new(columns: usize, rows: usize) -> Self {
        let (columns, rows) = (columns.max(1), rows.max(1));
        let empty = Cell {
            mark: ' ',
            dots: 0,
            ink: Ink::Plain,
        };
        Self {
            columns,
            cells: vec![empty; columns * rows],
        }
    }

    fn rows(&self) -> usize {
        self.cells.len() / self.columns
    }

    /// The width and the height in dots.
    pub(super) fn size(&self) -> (f64, f64) {
        let size = (self.columns * DOTS_WIDE, self.rows() * DOTS_HIGH);
        (size.0 as f64, size.1 as f64)
    }

    /// The dot at a point: column and row.
    fn dot_at(&self, x: f64, y: f64) -> Option<(usize, usize)> {
        let (width, height) = self.size();
        let is_in = (0.0..width).contains(&x) && (0.0..height).contains(&y);
        is_in.then_some((x as usize, y as usize))
    }

    fn cell(&mut self, column: usize, row: usize) -> Option<&mut Cell> {
        let is_in = column < self.columns;
        is_in.then(|| self.cells.get_mut(row * self.columns + column))?
    }

    /// Sets the dot at a point, in dots to the right and down.
    pub(super) fn dot(&mut self, x: f64, y: f64, ink: Ink) {
        let Some((x, y)) = self.dot_at(x, y) else {
            return;
        };
        if let Some(cell) = self.cell(x / DOTS_WIDE, y / DOTS_HIGH) {
            cell.dots |= DOTS[y % DOTS_HIGH][x % DOTS_WIDE];
            cell.ink = cell.ink.max(ink);
        }
    }

    /// Sets the dots between two points.
    pub(super) fn line(&mut self, from: (f64, f64), to: (f64, f64), ink: Ink) {
        let (across, down) = (to.0 - from.0, to.1 - from.1);
        let Some((first, last)) = self.inside(from, (across, down)) else {
            return;
        };
        let steps = (across.abs().max(down.abs()) * (last - first))
            .ceil()
            .max(1.0);
        for step in 0..=steps as u32 {
            let share = first + (last - first) * f64::from(step) / steps;
            self.dot(from.0 + share * across, from.1 + share * down, ink);
        }
    }

    /// The part of a line that is inside, as shares of its length; `None` if nothing is.
    fn inside(&self, from: (f64, f64), way: (f64, f64)) -> Option<(f64, f64)> {
        let (width, height) = self.size();
        let mut part = (0.0_f64, 1.0_f64);
        for (from, way, end) in [(from.0, way.0, width), (from.1, way.1, height)] {
            let (a, b) = (-from / way, (end - from) / way);
            if way == 0.0 {
                (0.0..end).contains(&from).then_some(())?;
            } else {
                part = (part.0.max(a.min(b)), part.1.min(a.max(b)));
            }
        }
        // NaN and infinity set no dots.
        (part.0 <= part.1 && way.0.is_finite() && way.1.is_finite()).then_some(part)
    }

    /// Puts a character below the dots at a point.
    pub(super) fn mark(&mut self, x: f64, y: f64, mark: char) {
        if let Some((x, y)) = self.dot_at(x, y)
            && let Some(cell) = self.cell(x / DOTS_WIDE, y / DOTS_HIGH)
        {
            cell.mark = mark;
        }
    }

    /// Puts a text below the dots, centred at a point.
    pub(super) fn label(&mut self, x: f64, y: f64, text: &str) {
        let Some((x, y)) = self.dot_at(x, y) else {
            return;
        };
        let start = (x / DOTS_WIDE).saturating_sub(text.chars().count() / 2);
        for (column, mark) in (start..).zip(text.chars()) {
            if let Some(cell) = self.cell(column, y / DOTS_HIGH) {
                cell.mark = mark;
            }
        }
    }

    /// Puts a character at a point, instead of its dots.
    pub(super) fn top(&mut self, x: f64, y: f64, mark: char, ink: Ink) {
        if let Some((x, y)) = self.dot_at(x, y)
            && let Some(cell) = self.cell(x / DOTS_WIDE, y / DOTS_HIGH)
            && ink >= cell.ink
        {
            *cell = Cell { mark, dots: 0, ink };
        }
    }

    /// The lines, each with a line end.
    pub(super) fn text(&self, has_colours: bool) -> String {
        let mut out = String::new();
        for row in self.cells.chunks(self.columns) {
            let used = row.iter().rposition(|cell| cell.character() != ' ');
            let used = &row[..used.map_or(0, |last| last + 1)];
            for same in used.chunk_by(|a, b| a.ink == b.ink) {
                let text: String = same.iter().map(Cell::character).collect();
                match has_colours {
                    true => out.push_str(&same[0].ink.paint(&text)),
                    false => out.push_str(&text),
                }
            }
            out.push('\n');
        }
        out
    }
}

impl Cell {
    fn character(&self) -> char {
        match self.dots {
            0 => self.mark,
            dots => char::from_u32(BRAILLE + u32::from(dots)).unwrap_or(self.mark),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dots_of_one_character_add_up_and_the_highest_ink_colours_it() {
        let mut canvas = Canvas::new(3, 1);
        canvas.dot(2.0, 0.0, Ink::Laser);
        canvas.dot(3.9, 3.9, Ink::Wall);
        canvas.dot(6.0, 0.0, Ink::Wall);
        assert_eq!(canvas.text(false), " ⢁\n");
        assert_eq!(canvas.text(true), " \x1b[31m⢁\x1b[0m\n");
    }

    #[test]
    fn a_line_has_no_holes_and_ends_at_the_edge() {
        let mut canvas = Canvas::new(4, 1);
        canvas.line((-5.0, 0.5), (1e12, 0.5), Ink::Wall);
        canvas.line((0.0, 3.5), (100.0, 3.5), Ink::Wall);
        assert!(
            canvas.text(false).starts_with("⣉"),
            "{}",
            canvas.text(false)
        );
        let mut canvas = Canvas::new(4, 1);
        canvas.line((0.5, 0.5), (7.5, 0.5), Ink::Wall);
        assert_eq!(canvas.text(false), "⠉⠉⠉⠉\n");
    }

    #[test]
    fn marks_are_below_dots_and_tops_above() {
        let mut canvas = Canvas::new(5, 1);
        canvas.label(4.0, 0.0, "12345");
        canvas.dot(2.0, 0.0, Ink::Wall);
        canvas.dot(4.0, 0.0, Ink::Laser);
        canvas.top(4.0, 0.0, 'R', Ink::Robot);
        canvas.top(4.0, 0.0, 'x', Ink::Target);
        assert_eq!(canvas.text(false), "1⠁R45\n");
    }

    #[test]
    fn invalid_places_and_sizes_do_no_harm() {
        let mut canvas = Canvas::new(0, 0);
        for place in [f64::NAN, f64::INFINITY, -1.0, 1e300] {
            canvas.dot(place, place, Ink::Wall);
            canvas.mark(place, 0.0, 'x');
            canvas.label(0.0, place, "text");
            canvas.top(place, place, 'x', Ink::Robot);
            canvas.line((place, 0.0), (0.0, place), Ink::Wall);
        }
        assert_eq!(canvas.text(false).lines().count(), 1);
    }
}
