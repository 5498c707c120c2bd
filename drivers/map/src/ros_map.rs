//! Maps of ROS map_server: an image (PGM or PNG) and a YAML file that describes it. PURE.
//!
//! ```
//! use amber_map::ros_map::Description;
//!
//! let yaml = "image: a.pgm\nresolution: 0.05\norigin: [-1, -2, 0]\nnegate: 0\n\
//!             occupied_thresh: 0.65\nfree_thresh: 0.196\n";
//! let description: Description = yaml.parse()?;
//! // Read the file `description.image`, relative to the folder of the YAML file.
//! let image = b"P5 2 1 255 \x00\xfe";
//! let occupancy = description.occupancy(image)?;
//! assert!(occupancy.is_occupied(0, 0) && !occupancy.is_occupied(1, 0));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The frame of these maps is that of [`Pose`](crate::Pose): x to the right, y up, angles
//! counter-clockwise.

mod image;

use std::fmt::Write as _;
use std::str::FromStr;

use serde::Deserialize;

use self::image::Image;
pub use self::image::ImageError;
use crate::geometry::Point;
use crate::grid::{Cell, GridError, Layout, Occupancy};
use crate::map::MAX_EXTENT_M;

/// The grey values of a written image, as map_saver of ROS writes them.
const OCCUPIED: u8 = 0;
const FREE: u8 = 254;
const UNKNOWN: u8 = 205;
/// The thresholds for these values.
const OCCUPIED_THRESH: f64 = 0.65;
const FREE_THRESH: f64 = 0.196;
/// A smaller rotation of the map does not count: it moves a wall 10 m away by 1 cm.
const MAX_YAW_RAD: f64 = 1e-3;
/// In the mode `raw`, larger values are unknown.
const RAW_MAX: f64 = 100.0;

/// The content of the YAML file.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Description {
    /// The file of the image, relative to the folder of the YAML file.
    pub image: String,
    /// The side length of a pixel in metres.
    pub resolution: f64,
    /// The lower left corner of the image in metres, and its rotation, which must be 0. Some programs
    /// write that it is not a number: this is 0.
    #[serde(deserialize_with = "origin")]
    pub origin: [f64; 3],
    /// Whether light pixels are occupied, instead of dark ones.
    #[serde(default, deserialize_with = "flag")]
    pub negate: bool,
    /// Pixels with a higher occupancy, 0 to 1, are occupied.
    pub occupied_thresh: f64,
    /// Pixels with a lower occupancy are free; all others are unknown.
    pub free_thresh: f64,
    /// The meaning of pixels.
    #[serde(default)]
    pub mode: Mode,
}

/// The meaning of pixels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Free, occupied or unknown.
    #[default]
    Trinary,
    /// The same here: a probability between the thresholds is unknown.
    Scale,
    /// The occupancy in percent; larger values are unknown.
    Raw,
}

/// The reason why a map is rejected.
#[derive(Debug, thiserror::Error)]
pub enum RosMapError {
    /// The YAML file is invalid.
    #[error("{0}")]
    Yaml(String),
    /// A value is invalid.
    #[error("{key}: {problem}")]
    Value {
        /// The key in the YAML file.
        key: &'static str,
        problem: String,
    },
    /// The map is too large, or too far away.
    #[error("resolution or origin: coordinates of the map must be at most {MAX_EXTENT_M} m")]
    Extent,
    /// The image is invalid.
    #[error("image: {0}")]
    Image(#[from] ImageError),
    /// The map is too large.
    #[error(transparent)]
    Grid(#[from] GridError),
}

impl FromStr for Description {
    type Err = RosMapError;

    fn from_str(yaml: &str) -> Result<Self, RosMapError> {
        let new: Self = serde_saphyr::from_str(yaml).map_err(|error| {
            // The text goes on with an excerpt of the file.
            let text = error.to_string();
            RosMapError::Yaml(text.lines().next().unwrap_or_default().to_owned())
        })?;
        new.check()?;
        Ok(new)
    }
}

impl Description {
    fn check(&self) -> Result<(), RosMapError> {
        let value = |key, problem: String| Err(RosMapError::Value { key, problem });
        if !(self.resolution > 0.0 && self.resolution.is_finite()) {
            return value("resolution", format!("{} is not positive", self.resolution));
        }
        if !self.origin.into_iter().all(f64::is_finite) {
            return value("origin", "not finite".into());
        }
        if self.origin[2].abs() > MAX_YAW_RAD {
            return value(
                "origin",
                "a rotated map cannot be used: set the third number to 0".into(),
            );
        }
        let share = 0.0..=1.0;
        for (key, threshold) in [
            ("occupied_thresh", self.occupied_thresh),
            ("free_thresh", self.free_thresh),
        ] {
            if !share.contains(&threshold) {
                return value(key, format!("{threshold} is not within 0 to 1"));
            }
        }
        if self.free_thresh > self.occupied_thresh {
            return value("free_thresh", "larger than occupied_thresh".into());
        }
        Ok(())
    }

    /// The map in an image: the bytes of a PGM or PNG file.
    ///
    /// # Errors
    /// The image is invalid or too large.
    pub fn occupancy(&self, image: &[u8]) -> Result<Occupancy, RosMapError> {
        self.of_image(&Image::parse(image)?)
    }

    /// A problem of a map that can be read: places that are unknown to the program that wrote the
    /// image count as free.
    #[must_use]
    pub fn doubt(&self, image: &[u8]) -> Option<String> {
        if self.mode == Mode::Raw || self.negate || self.cell(Some(UNKNOWN)) != Cell::Free {
            return None;
        }
        let pixels = Image::parse(image).ok()?.pixels;
        let unknown = pixels.iter().filter(|grey| **grey == Some(UNKNOWN)).count();
        let percent = (100.0 * unknown as f64 / pixels.len().max(1) as f64).ceil();
        let free_thresh = self.free_thresh;
        (unknown > 0).then(|| {
            format!(
                "free_thresh: with {free_thresh}, the grey value {UNKNOWN} means free, which is \
                 {percent} % of the map. Most programs write it for unknown places: set free_thresh to \
                 {FREE_THRESH}"
            )
        })
    }

    fn of_image(&self, image: &Image) -> Result<Occupancy, RosMapError> {
        let layout = Layout {
            low: Point::new(self.origin[0], self.origin[1]),
            cell_m: self.resolution,
            columns: image.columns,
            rows: image.rows,
        };
        // As in a .roson file.
        let corners = [layout.low, layout.high()];
        let numbers = corners.into_iter().flat_map(|it| [it.x, it.y]);
        if !numbers
            .into_iter()
            .all(|number| number.abs() <= MAX_EXTENT_M)
        {
            return Err(RosMapError::Extent);
        }
        // The first row of an image is the upper one.
        let rows = image.pixels.chunks_exact(image.columns).rev();
        let cells = rows.flatten().map(|grey| self.cell(*grey));
        Ok(Occupancy::from_cells(layout, cells.collect())?)
    }

    fn cell(&self, grey: Option<u8>) -> Cell {
        let Some(grey) = grey.map(f64::from) else {
            return Cell::Unknown;
        };
        let occupancy = match self.mode {
            Mode::Raw if grey > RAW_MAX => return Cell::Unknown,
            Mode::Raw => grey / RAW_MAX,
            Mode::Trinary | Mode::Scale if self.negate => grey / 255.0,
            Mode::Trinary | Mode::Scale => (255.0 - grey) / 255.0,
        };
        if occupancy > self.occupied_thresh {
            Cell::Occupied
        } else if occupancy < self.free_thresh {
            Cell::Free
        } else {
            Cell::Unknown
        }
    }
}

/// Writes a map: the text of the YAML file, and the image as PGM. `image` is the name of its file.
#[must_use]
pub fn write(occupancy: &Occupancy, image: &str) -> (String, Vec<u8>) {
    let layout = occupancy.layout();
    let mut yaml = String::new();
    let Point { x, y } = layout.low;
    let cell_m = layout.cell_m;
    // Writing to a string does not fail.
    let _ = write!(
        yaml,
        "image: {image}\nresolution: {cell_m}\norigin: [{x}, {y}, 0]\nnegate: 0\n\
         occupied_thresh: {OCCUPIED_THRESH}\nfree_thresh: {FREE_THRESH}\n"
    );
    let mut pgm = format!("P5\n{} {}\n255\n", layout.columns, layout.rows).into_bytes();
    pgm.extend(pixels(occupancy));
    (yaml, pgm)
}

/// The image of a map as PNG, with the same grey values as that of [`write()`].
///
/// # Errors
/// The picture could not be made, because of a lack of memory.
pub fn png(occupancy: &Occupancy) -> Result<Vec<u8>, png::EncodingError> {
    let layout = occupancy.layout();
    // At most MAX_CELLS.
    let (columns, rows) = (layout.columns as u32, layout.rows as u32);
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, columns, rows);
    encoder.set_color(png::ColorType::Grayscale);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_compression(png::Compression::High);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(&pixels(occupancy).collect::<Vec<_>>())?;
    writer.finish()?;
    Ok(file)
}

/// The grey values of an image, from the upper row down.
fn pixels(occupancy: &Occupancy) -> impl Iterator<Item = u8> {
    let layout = occupancy.layout();
    (0..layout.rows).rev().flat_map(move |row| {
        (0..layout.columns).map(move |column| match occupancy.cell(column, row) {
            Cell::Occupied => OCCUPIED,
            Cell::Free => FREE,
            Cell::Unknown => UNKNOWN,
        })
    })
}

/// Reads the picture of [`png()`], with its upper left corner and the side length of a pixel in metres.
///
/// # Errors
/// The picture or a number is invalid.
pub fn from_png(
    png: &[u8],
    upper_left: Point,
    resolution_m: f64,
) -> Result<Occupancy, RosMapError> {
    let mut description = Description {
        image: String::new(),
        resolution: resolution_m,
        origin: [upper_left.x, upper_left.y, 0.0],
        negate: false,
        occupied_thresh: OCCUPIED_THRESH,
        free_thresh: FREE_THRESH,
        mode: Mode::Trinary,
    };
    description.check()?;
    let image = Image::parse(png)?;
    description.origin[1] -= image.rows as f64 * resolution_m;
    description.of_image(&image)
}

/// Programs write 0 and 1, also as 0.0 and 1.0; people also write false and true.
fn flag<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Flag {
        Bool(bool),
        Number(f64),
    }
    match Flag::deserialize(deserializer)? {
        Flag::Bool(flag) => Ok(flag),
        Flag::Number(0.0) => Ok(false),
        Flag::Number(1.0) => Ok(true),
        Flag::Number(number) => Err(serde::de::Error::custom(format!(
            "negate: {number} is not 0 or 1"
        ))),
    }
}

/// The rotation may be no number, as C spells it.
fn origin<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<[f64; 3], D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Yaw {
        Number(f64),
        Word(String),
    }
    let (x, y, yaw) = <(f64, f64, Yaw)>::deserialize(deserializer)?;
    let yaw = match yaw {
        Yaw::Number(yaw) if yaw.is_nan() => 0.0,
        Yaw::Number(yaw) => yaw,
        Yaw::Word(word)
            if word
                .trim_start_matches(['-', '+'])
                .eq_ignore_ascii_case("nan") =>
        {
            0.0
        }
        Yaw::Word(word) => {
            return Err(serde::de::Error::custom(format!(
                "origin: '{word}' is no number"
            )));
        }
    };
    Ok([x, y, yaw])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const YAML: &str = "image: lab.pgm\nresolution: 0.050000\norigin: [-1.0, 2.0, 0.0]\n\
                        negate: 0\noccupied_thresh: 0.65\nfree_thresh: 0.196\n";

    #[test]
    fn the_first_row_is_the_upper_one_and_dark_is_occupied() {
        let description: Description = YAML.parse().unwrap();
        assert_eq!(description.image, "lab.pgm");
        let image = b"P2\n# by a program\n3 2\n255\n0 254 205\n254 254 0\n";
        let map = description.occupancy(image).unwrap();
        let row = |row| [0, 1, 2].map(|column| map.cell(column, row));
        assert_eq!(row(1), [Cell::Occupied, Cell::Free, Cell::Unknown]);
        assert_eq!(row(0), [Cell::Free, Cell::Free, Cell::Occupied]);
        let layout = map.layout();
        assert_eq!((layout.low, layout.cell_m), (Point::new(-1.0, 2.0), 0.05));
    }

    #[test]
    fn negate_and_mode_change_the_meaning() {
        let cell = |from: &str, to: &str, grey: u8| {
            let description: Description = YAML.replace(from, to).parse().unwrap();
            description.cell(Some(grey))
        };
        assert_eq!(cell("negate: 0", "negate: 1", 255), Cell::Occupied);
        assert_eq!(cell("negate: 0", "negate: true", 0), Cell::Free);
        assert_eq!(cell("negate: 0", "negate: 1.0", 255), Cell::Occupied);
        assert_eq!(cell("negate: 0", "negate: 0.0", 0), Cell::Occupied);
        assert_eq!(cell("negate: 0\n", "", 0), Cell::Occupied);
        let raw = |grey| cell("negate: 0", "negate: 0\nmode: raw", grey);
        assert_eq!(
            [0, 100, 50, 255].map(raw),
            [Cell::Free, Cell::Occupied, Cell::Unknown, Cell::Unknown]
        );
    }

    #[test]
    fn a_rotation_that_is_none_is_accepted() {
        for yaw in ["0.0001", "-1e-4", "-nan", "nan", "NaN", "0"] {
            let yaml = YAML.replace("2.0, 0.0]", &format!("2.0, {yaw}]"));
            let description: Description = yaml.parse().unwrap();
            assert_eq!(description.origin[..2], [-1.0, 2.0], "{yaw}");
        }
    }

    #[test]
    fn a_threshold_that_makes_unknown_places_free_is_doubtful() {
        let doubt = |from: &str, to: &str, image: &[u8]| {
            let description: Description = YAML.replace(from, to).parse().unwrap();
            description.doubt(image)
        };
        let image = b"P2 4 1 255 0 254 205 254";
        let found = doubt("0.196", "0.25", image).unwrap();
        let part =
            "free_thresh: with 0.25, the grey value 205 means free, which is 25 % of the map.";
        assert!(found.starts_with(part), "{found}");
        assert_eq!(doubt("", "", image), None);
        assert_eq!(doubt("0.196", "0.25", b"P2 2 1 255 0 254"), None);
        let raw = "negate: 0\nmode: raw";
        assert_eq!(doubt("negate: 0", raw, image), None);
    }

    #[test]
    fn a_map_is_as_near_as_one_of_walls() {
        let image = b"P2 2 1 255 0 254";
        for (from, to) in [
            ("resolution: 0.050000", "resolution: 1e300"),
            ("resolution: 0.050000", "resolution: 5001"),
            ("[-1.0, 2.0", "[1e308, 2.0"),
            ("[-1.0, 2.0", "[-1.0, -10001"),
            ("[-1.0, 2.0", "[9999.95, 2.0"),
        ] {
            let description: Description = YAML.replace(from, to).parse().unwrap();
            let found = description.occupancy(image);
            assert!(matches!(found, Err(RosMapError::Extent)), "{to}: {found:?}");
        }
        let far: Description = YAML.replace("-1.0", "9999.8").parse().unwrap();
        assert!(far.occupancy(image).is_ok());
    }

    #[test]
    fn errors_name_the_key_and_the_line() {
        for (from, to, parts) in [
            ("resolution: 0.05", "resolution: big", &["line 2"][..]),
            (
                "resolution: 0.050000",
                "resolution: 0",
                &["resolution: 0 is not"],
            ),
            ("resolution: 0.050000\n", "", &["resolution"]),
            ("2.0, 0.0]", "2.0, 0.5]", &["origin: a rotated map"]),
            ("2.0, 0.0]", "2.0, north]", &["origin", "'north'"]),
            ("2.0, 0.0]", "2.0]", &["line 3"]),
            ("thresh: 0.196", "thresh: 0.7", &["free_thresh: larger"]),
            ("thresh: 0.65", "thresh: 65", &["occupied_thresh: 65"]),
            ("negate: 0", "negate: 2", &["negate"]),
            ("negate: 0", "negate: 0\nmode: odd", &["odd"]),
        ] {
            let yaml = YAML.replace(from, to);
            let error = yaml.parse::<Description>().unwrap_err().to_string();
            for part in parts {
                assert!(error.contains(part), "{to}: {error}");
            }
        }
    }

    proptest! {
        #[test]
        fn a_written_map_can_be_read(
            columns in 1..20usize,
            rows in 1..20usize,
            seed in any::<u64>(),
        ) {
            let layout = Layout { low: Point::new(-1.25, 0.1), cell_m: 0.05, columns, rows };
            let cells = (0..layout.cells()).map(|index| {
                match (seed >> (index % 64)) % 3 {
                    0 => Cell::Free,
                    1 => Cell::Occupied,
                    _ => Cell::Unknown,
                }
            });
            let map = Occupancy::from_cells(layout, cells.collect()).unwrap();
            let (yaml, pgm) = write(&map, "map.pgm");
            let description: Description = yaml.parse().unwrap();
            prop_assert_eq!(&description.image, "map.pgm");
            prop_assert_eq!(&description.occupancy(&pgm).unwrap(), &map);
            let upper_left = Point::new(layout.low.x, layout.high().y);
            let back = from_png(&png(&map).unwrap(), upper_left, layout.cell_m).unwrap();
            prop_assert!((back.layout().low.y - layout.low.y).abs() < 1e-9);
            for row in 0..rows {
                for column in 0..columns {
                    prop_assert_eq!(back.cell(column, row), map.cell(column, row));
                }
            }
        }

        #[test]
        fn arbitrary_text_does_no_harm(text in ".{0,200}") {
            let _ = text.parse::<Description>();
        }
    }
}
