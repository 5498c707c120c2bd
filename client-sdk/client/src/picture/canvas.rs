//! A picture to draw on: lines, discs, arrows and text with smooth edges. PURE.

use std::convert::Infallible;
use std::io;

use embedded_graphics::Drawable;
use embedded_graphics::Pixel;
use embedded_graphics::draw_target::DrawTarget;
use embedded_graphics::geometry::{OriginDimensions, Point, Size};
use embedded_graphics::mono_font::iso_8859_1::FONT_9X15;
use embedded_graphics::mono_font::{MonoFont, MonoTextStyle};
use embedded_graphics::pixelcolor::BinaryColor;
use embedded_graphics::text::{Baseline, Text};

/// Each pixel is the mean of this many by this many dots, for smooth edges.
const FINE: usize = 3;
/// The widest and the highest picture in pixels: it takes 100 MB while it is drawn.
const MAX_SIZE: usize = 2_000;
const FONT: MonoFont = FONT_9X15;

/// The height of a line of text in pixels.
pub const LINE_HEIGHT: f64 = FONT.character_size.height as f64;

/// Red, green and blue.
pub type Colour = [u8; 3];

/// A point in pixels: to the right and down from the upper left corner.
pub type Place = (f64, f64);

/// A picture. All lengths are in pixels; parts outside of it are not drawn.
#[derive(Clone, Debug)]
pub struct Canvas {
    width: usize,
    height: usize,
    /// The dots by rows.
    dots: Vec<Colour>,
}

/// The width of a text in pixels.
#[must_use]
pub fn text_width(text: &str) -> f64 {
    let width = FONT.character_size.width + FONT.character_spacing;
    text.chars().count() as f64 * f64::from(width)
}

impl Canvas {
    /// A picture of one colour. It has 1 to 2000 pixels in each direction; other sizes become the
    /// nearest of these.
    #[must_use]
    pub fn new(width: usize, height: usize, background: Colour) -> Self {
        let (width, height) = (width.clamp(1, MAX_SIZE), height.clamp(1, MAX_SIZE));
        Self {
            width,
            height,
            dots: vec![background; width * height * FINE * FINE],
        }
    }

    /// Paints each place that gets a colour.
    pub fn fill(&mut self, colour: impl FnMut(Place) -> Option<Colour>) {
        let (width, height) = (self.width as f64, self.height as f64);
        self.paint((0.0, 0.0), (width, height), colour);
    }

    /// Paints a full circle.
    pub fn disc(&mut self, centre: Place, radius: f64, colour: Colour) {
        self.around(centre, radius, colour, |across, down| {
            across.hypot(down) < radius
        });
    }

    /// Draws a circle with a line of this width.
    pub fn circle(&mut self, centre: Place, radius: f64, width: f64, colour: Colour) {
        let half = width / 2.0;
        self.around(centre, radius + half, colour, |across, down| {
            (across.hypot(down) - radius).abs() < half
        });
    }

    /// Draws a straight line with round ends.
    pub fn line(&mut self, from: Place, to: Place, width: f64, colour: Colour) {
        let half = width / 2.0;
        let (across, down) = (to.0 - from.0, to.1 - from.1);
        let square = across * across + down * down;
        let low = (from.0.min(to.0) - half, from.1.min(to.1) - half);
        let high = (from.0.max(to.0) + half, from.1.max(to.1) + half);
        self.paint(low, high, |(x, y)| {
            let (x, y) = (x - from.0, y - from.1);
            let share = if square > 0.0 {
                ((x * across + y * down) / square).clamp(0.0, 1.0)
            } else {
                0.0
            };
            let off = (x - share * across).hypot(y - share * down);
            (off < half).then_some(colour)
        });
    }

    /// Paints a rectangle.
    pub fn rectangle(&mut self, low: Place, high: Place, colour: Colour) {
        self.paint(low, high, |(x, y)| {
            let is_in = (low.0..high.0).contains(&x) && (low.1..high.1).contains(&y);
            is_in.then_some(colour)
        });
    }

    /// Paints an arrow head. Its direction is clockwise from the right, in radians; its tip is `size`
    /// from its centre.
    pub fn arrow(&mut self, centre: Place, direction_rad: f64, size: f64, colour: Colour) {
        let (sin, cos) = direction_rad.sin_cos();
        self.around(centre, size, colour, |across, down| {
            let ahead = across * cos + down * sin;
            let aside = (down * cos - across * sin).abs();
            -ahead < size * 0.8 - aside * 0.5 && aside < (size - ahead) * 0.45
        });
    }

    /// Writes a line of text from its upper left corner. Characters outside of ISO 8859-1 become `?`.
    pub fn text(&mut self, at: Place, text: &str, colour: Colour) {
        // The font counts in 32-bit numbers.
        let near = -(MAX_SIZE as f64)..MAX_SIZE as f64;
        if !(near.contains(&at.0) && near.contains(&at.1)) {
            return;
        }
        let mut pixels = TextPixels {
            canvas: self,
            colour,
        };
        let style = MonoTextStyle::new(&FONT, BinaryColor::On);
        let at = Point::new(at.0.round() as i32, at.1.round() as i32);
        let text = Text::with_baseline(text, at, style, Baseline::Top);
        let Ok(_) = text.draw(&mut pixels);
    }

    /// The picture as a PNG file.
    ///
    /// # Errors
    /// The file could not be created, because of a bug or a lack of memory.
    pub fn png(&self) -> io::Result<Vec<u8>> {
        let mut file = Vec::new();
        // At most MAX_SIZE.
        let mut encoder = png::Encoder::new(&mut file, self.width as u32, self.height as u32);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        let mut writer = encoder.write_header()?;
        writer.write_image_data(&self.pixels())?;
        writer.finish()?;
        Ok(file)
    }

    /// Paints a shape around a centre.
    fn around(
        &mut self,
        centre: Place,
        reach: f64,
        colour: Colour,
        is_in: impl Fn(f64, f64) -> bool,
    ) {
        let low = (centre.0 - reach, centre.1 - reach);
        let high = (centre.0 + reach, centre.1 + reach);
        self.paint(low, high, |(x, y)| {
            is_in(x - centre.0, y - centre.1).then_some(colour)
        });
    }

    /// Paints the dots of a rectangle that get a colour.
    fn paint(&mut self, low: Place, high: Place, mut colour: impl FnMut(Place) -> Option<Colour>) {
        let fine = FINE as f64;
        // A cast maps NaN to 0 and saturates.
        let span = |low: f64, high: f64, count: usize| {
            let end = ((high * fine).ceil().max(0.0) as usize).min(count * FINE);
            (low * fine).floor().max(0.0) as usize..end
        };
        let columns = span(low.0, high.0, self.width);
        for row in span(low.1, high.1, self.height) {
            for column in columns.clone() {
                let place = ((column as f64 + 0.5) / fine, (row as f64 + 0.5) / fine);
                if let Some(colour) = colour(place) {
                    self.dots[row * self.width * FINE + column] = colour;
                }
            }
        }
    }

    /// Red, green and blue of each pixel by rows.
    fn pixels(&self) -> Vec<u8> {
        let mut pixels = Vec::with_capacity(self.width * self.height * 3);
        for row in 0..self.height {
            for column in 0..self.width {
                let mut sums = [0; 3];
                for fine_row in row * FINE..(row + 1) * FINE {
                    let start = (fine_row * self.width + column) * FINE;
                    for colour in &self.dots[start..start + FINE] {
                        for (sum, part) in sums.iter_mut().zip(colour) {
                            *sum += usize::from(*part);
                        }
                    }
                }
                pixels.extend(sums.map(|sum| (sum / (FINE * FINE)) as u8));
            }
        }
        pixels
    }
}

/// Pixels of characters, for the crate that has the font.
struct TextPixels<'a> {
    canvas: &'a mut Canvas,
    colour: Colour,
}

impl OriginDimensions for TextPixels<'_> {
    fn size(&self) -> Size {
        // At most MAX_SIZE.
        Size::new(self.canvas.width as u32, self.canvas.height as u32)
    }
}

impl DrawTarget for TextPixels<'_> {
    type Color = BinaryColor;
    type Error = Infallible;

    fn draw_iter<I>(&mut self, pixels: I) -> Result<(), Infallible>
    where
        I: IntoIterator<Item = Pixel<BinaryColor>>,
    {
        for Pixel(Point { x, y }, is_on) in pixels {
            if is_on.is_on() {
                let low = (f64::from(x), f64::from(y));
                let high = (low.0 + 1.0, low.1 + 1.0);
                self.canvas.rectangle(low, high, self.colour);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHITE: Colour = [255; 3];
    const BLACK: Colour = [0; 3];

    fn at(canvas: &Canvas, column: usize, row: usize) -> Colour {
        let start = (row * canvas.width + column) * 3;
        canvas.pixels()[start..start + 3].try_into().unwrap()
    }

    #[test]
    fn shapes_are_where_they_are_drawn() {
        let mut canvas = Canvas::new(60, 40, WHITE);
        canvas.disc((10.0, 10.0), 3.0, BLACK);
        canvas.line((20.0, 5.0), (40.0, 5.0), 2.0, BLACK);
        canvas.circle((50.0, 30.0), 8.0, 2.0, BLACK);
        for (column, row, colour) in [
            (10, 10, BLACK),
            (15, 10, WHITE),
            (30, 5, BLACK),
            (30, 8, WHITE),
            (50, 30, WHITE),
            (57, 30, BLACK),
        ] {
            assert_eq!(at(&canvas, column, row), colour, "{column}, {row}");
        }
    }

    #[test]
    fn an_arrow_points_clockwise_from_the_right() {
        let turns = [
            (0.0, (18, 10)),
            (90.0, (10, 18)),
            (-90.0, (10, 2)),
            (180.0, (2, 10)),
        ];
        for (direction_deg, tip) in turns {
            let mut canvas = Canvas::new(21, 21, WHITE);
            canvas.arrow((10.5, 10.5), f64::to_radians(direction_deg), 10.0, BLACK);
            for (_, (column, row)) in turns {
                let expected = (column, row) == tip;
                assert_eq!(
                    at(&canvas, column, row) == BLACK,
                    expected,
                    "{direction_deg}"
                );
            }
        }
    }

    #[test]
    fn text_has_the_announced_size() {
        let text = "x 3.5 m, 90°";
        let mut canvas = Canvas::new(text_width(text) as usize, LINE_HEIGHT as usize, WHITE);
        canvas.text((0.0, 0.0), text, BLACK);
        let dark = |canvas: &Canvas| canvas.dots.iter().filter(|dot| **dot == BLACK).count();
        let whole = dark(&canvas);
        let mut larger = Canvas::new(canvas.width + 50, canvas.height + 50, WHITE);
        larger.text((20.0, 20.0), text, BLACK);
        assert_eq!(dark(&larger), whole, "nothing is cut off");
        assert!(whole > 500);
    }

    #[test]
    fn all_sizes_and_places_work() {
        let mut canvas = Canvas::new(0, 1, WHITE);
        for place in [
            (-1e9, -1e9),
            (1e9, 1e9),
            (f64::NAN, f64::INFINITY),
            (0.0, 0.0),
        ] {
            canvas.disc(place, 5.0, BLACK);
            canvas.line(place, (3.0, 3.0), 1.0, BLACK);
            canvas.circle(place, 1.0, 1.0, BLACK);
            canvas.arrow(place, 0.0, 9.0, BLACK);
            canvas.text(place, "text", BLACK);
            canvas.rectangle(place, (2.0, 2.0), BLACK);
        }
        assert!(canvas.png().unwrap().starts_with(b"\x89PNG"));
    }
}
