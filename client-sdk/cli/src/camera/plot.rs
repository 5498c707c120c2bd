//! A picture drawn with characters: half blocks with two colours each, or braille dots. PURE.

use std::fmt::Write as _;

use anstyle::{Ansi256Color, Color, RgbColor, Style};

use super::pixels::{Colour, Pixels};
use crate::canvas::{Canvas, DOTS_HIGH, DOTS_WIDE, Ink};

/// The colours of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Colours {
    /// None: bright places have dots.
    Dots,
    /// The 240 of the palette of xterm that no user changes.
    Palette,
    /// All.
    All,
}

impl Colours {
    /// What terminals say of themselves: whether they have colours, and the variable COLORTERM.
    pub(super) fn of(has_colours: bool, colorterm: &str) -> Self {
        match (has_colours, colorterm) {
            (false, _) => Self::Dots,
            (true, "truecolor" | "24bit") => Self::All,
            (true, _) => Self::Palette,
        }
    }

    /// The width in pixels that a drawing with so many columns needs: twice as many as it shows, so
    /// that their means are smooth.
    pub(super) fn width_px(self, columns: usize) -> usize {
        match self {
            Self::Dots => columns * DOTS_WIDE,
            Self::Palette | Self::All => columns * 2,
        }
    }
}

/// The picture in at most this many columns and rows; lines end with a line end.
pub(super) fn draw(pixels: &Pixels, (columns, rows): (usize, usize), colours: Colours) -> String {
    match colours {
        Colours::Dots => dots(pixels, (columns, rows)),
        Colours::Palette => blocks(pixels, (columns, rows), palette),
        Colours::All => blocks(pixels, (columns, rows), |[red, green, blue]| {
            RgbColor(red, green, blue).into()
        }),
    }
}

/// The largest size with the shape of the picture that fits.
fn fit((width, height): (usize, usize), (most_wide, most_high): (usize, usize)) -> (usize, usize) {
    let (most_wide, most_high) = (most_wide.max(1), most_high.max(1));
    // As wide as possible, unless that is too high.
    match height * most_wide > most_high * width {
        true => ((width * most_high / height).max(1), most_high),
        false => (most_wide, (height * most_wide / width).max(1)),
    }
}

/// Each character shows two pixels, one above the other: the upper one in the colour of the text, and
/// the lower one in that of the background.
fn blocks(pixels: &Pixels, (columns, rows): (usize, usize), colour: fn(Colour) -> Color) -> String {
    let (wide, high) = fit(pixels.size(), (columns, rows * 2));
    let mut out = String::new();
    for row in (0..high).step_by(2) {
        let mut last = Style::new();
        for column in 0..wide {
            let at = |row| colour(pixels.mean((column, wide), (row, high)));
            let lower = (row + 1 < high).then(|| at(row + 1));
            let style = Style::new().fg_color(Some(at(row))).bg_color(lower);
            if style != last {
                // Each style sets all that the last one has set.
                let _ = write!(out, "{style}");
                last = style;
            }
            out.push('▀');
        }
        let _ = writeln!(out, "{last:#}");
    }
    out
}

/// Brightness as the density of dots: the thresholds of a pattern decide which of them are set.
fn dots(pixels: &Pixels, (columns, rows): (usize, usize)) -> String {
    const PATTERN: [[u8; 4]; 4] = [[0, 8, 2, 10], [12, 4, 14, 6], [3, 11, 1, 9], [15, 7, 13, 5]];
    let (wide, high) = fit(pixels.size(), (columns * DOTS_WIDE, rows * DOTS_HIGH));
    let mut canvas = Canvas::new(wide.div_ceil(DOTS_WIDE), high.div_ceil(DOTS_HIGH));
    for row in 0..high {
        for column in 0..wide {
            let bright = brightness(pixels.mean((column, wide), (row, high)));
            if bright > 8 + 16 * PATTERN[row % 4][column % 4] {
                canvas.dot(column as f64, row as f64, Ink::Plain);
            }
        }
    }
    canvas.text(false)
}

/// As people see it.
fn brightness([red, green, blue]: Colour) -> u8 {
    let [red, green, blue] = [red, green, blue].map(u32::from);
    u8::try_from((299 * red + 587 * green + 114 * blue) / 1000).unwrap_or(u8::MAX)
}

/// The nearest colour of the palette: a cube of 6 x 6 x 6 colours, and 24 shades of grey.
fn palette(colour: Colour) -> Color {
    const LEVELS: [u8; 6] = [0, 95, 135, 175, 215, 255];
    let nearest = |value: u8| {
        let levels = LEVELS.iter().enumerate();
        let nearest = levels.min_by_key(|(_, level)| level.abs_diff(value));
        nearest.map_or(0, |(index, _)| index)
    };
    let cube = colour.map(nearest);
    let shade = (usize::from(brightness(colour)).saturating_sub(3) / 10).min(23);
    let grey = u8::try_from(8 + 10 * shade).unwrap_or(u8::MAX);
    let off = |other: Colour| -> u32 {
        let pairs = colour.into_iter().zip(other);
        pairs.map(|(a, b)| u32::from(a.abs_diff(b)).pow(2)).sum()
    };
    let index = match off([grey; 3]) < off(cube.map(|index| LEVELS[index])) {
        true => 232 + shade,
        false => 16 + 36 * cube[0] + 6 * cube[1] + cube[2],
    };
    Ansi256Color(u8::try_from(index).unwrap_or(u8::MAX)).into()
}

#[cfg(test)]
mod tests {
    use amber_proto::camera::{Format, Picture};

    use super::*;

    fn grey(width: u32, height: u32, bytes: &[u8]) -> Pixels {
        let picture = Picture {
            data: Some(bytes.to_vec().into()),
            format: Some(Format::Gray8.into()),
            width: Some(width),
            height: Some(height),
            ..Picture::default()
        };
        Pixels::of(&picture).unwrap()
    }

    #[test]
    fn a_picture_keeps_its_shape() {
        for (picture, most, expected) in [
            ((640, 480), (80, 80), (80, 60)),
            ((640, 480), (200, 60), (80, 60)),
            ((480, 640), (80, 80), (60, 80)),
            ((4, 4), (80, 40), (40, 40)),
            ((640, 1), (80, 40), (80, 1)),
            ((1, 640), (80, 40), (1, 40)),
            ((640, 480), (0, 0), (1, 1)),
        ] {
            assert_eq!(fit(picture, most), expected, "{picture:?} {most:?}");
        }
    }

    #[test]
    fn a_character_shows_two_pixels() {
        let pixels = grey(2, 2, &[0, 255, 128, 128]);
        let drawn = draw(&pixels, (2, 5), Colours::All);
        let expected = "\x1b[38;2;0;0;0m\x1b[48;2;128;128;128m▀\
                        \x1b[38;2;255;255;255m\x1b[48;2;128;128;128m▀\x1b[0m\n";
        assert_eq!(drawn, expected);
        // The lower half of the last row is empty, and equal neighbours share their colours.
        let drawn = draw(&grey(2, 1, &[9, 9]), (2, 1), Colours::All);
        assert_eq!(drawn, "\x1b[38;2;9;9;9m▀▀\x1b[0m\n");
        let drawn = draw(&grey(1, 2, &[0, 255]), (1, 1), Colours::Palette);
        assert_eq!(drawn, "\x1b[38;5;16m\x1b[48;5;231m▀\x1b[0m\n");
    }

    #[test]
    fn the_nearest_colour_of_the_palette_is_taken() {
        for (colour, expected) in [
            ([0, 0, 0], 16),
            ([255, 255, 255], 231),
            ([255, 0, 0], 196),
            ([100, 100, 210], 62),
            ([128, 128, 128], 244),
            ([9, 9, 9], 232),
            ([240, 240, 240], 255),
        ] {
            let expected: Color = Ansi256Color(expected).into();
            assert_eq!(palette(colour), expected, "{colour:?}");
        }
    }

    #[test]
    fn without_colours_bright_places_have_dots() {
        let pixels = grey(4, 4, &[0, 0, 255, 255].repeat(4));
        assert_eq!(draw(&pixels, (2, 1), Colours::Dots), " ⣿\n");
        // Of grey, about half of the dots are set.
        let drawn = draw(&grey(4, 4, &[128; 16]), (2, 1), Colours::Dots);
        let dots = |char: char| (u32::from(char) & 0xFF).count_ones();
        assert_eq!(drawn.trim_end().chars().map(dots).sum::<u32>(), 8);
        assert_eq!(draw(&grey(4, 4, &[8; 16]), (2, 1), Colours::Dots), "\n");
    }

    #[test]
    fn terminals_say_which_colours_they_have() {
        for (has_colours, colorterm, expected) in [
            (false, "truecolor", Colours::Dots),
            (true, "truecolor", Colours::All),
            (true, "24bit", Colours::All),
            (true, "", Colours::Palette),
        ] {
            assert_eq!(Colours::of(has_colours, colorterm), expected);
        }
    }
}
