//! A grid that grows, in pieces for others: the changed tiles of a map that is being made. PURE.
//!
//! ```
//! use amber_map::tiles::{Mosaic, Tiles};
//! use amber_map::{Cell, Layout, Occupancy, Point};
//!
//! let layout = Layout { low: Point::new(0.0, 0.0), cell_m: 0.05, columns: 1, rows: 1 };
//! let mut tiles = Tiles::new(7);
//! tiles.update(&Occupancy::from_cells(layout, vec![Cell::Free])?)?;
//! // The other side asks for what is new.
//! let mut mosaic = Mosaic::default();
//! let part = tiles.since(mosaic.map(), mosaic.number(), 1200);
//! mosaic.begin(tiles.map(), tiles.cell_m())?;
//! for tile in part.tiles {
//!     mosaic.add(tile.x, tile.y, &tile.png)?;
//! }
//! mosaic.end(part.number);
//! assert_eq!(mosaic.occupancy().unwrap().cell(0, 63), Cell::Unknown);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Tiles have fixed places on the plane, so a wall that does not move stays in its tile while the map
//! grows. Each change of a tile has a number, and numbers only rise: whoever has all changes up to
//! one asks for those above it. Lost answers do no harm.
//!
//! The numbers of tiles count in the map frame: x to the right, y DOWN.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::geometry::Point;
use crate::grid::{Cell, GridError, Layout, MAX_CELLS, Occupancy};
use crate::ros_map::{self, RosMapError};

/// The cells along one side of a tile.
pub const SIDE: usize = 64;
/// Tiles farther away than this are refused: a map of 10 km in cells of 5 mm ends earlier.
const MAX_PLACE: i32 = 50_000;

/// The place of a tile: y first, so that they are in reading order.
type Place = (i32, i32);

/// The tiles of a map that is being made.
#[derive(Clone, Debug)]
pub struct Tiles {
    map: u32,
    cell_m: f64,
    number: u32,
    tiles: BTreeMap<Place, Kept>,
}

#[derive(Clone, Debug)]
struct Kept {
    /// Of its last change.
    number: u32,
    cells: Arc<[Cell]>,
    png: Arc<[u8]>,
}

/// A tile as a picture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tile {
    /// The number of its place, to the right.
    pub x: i32,
    /// The number of its place, down.
    pub y: i32,
    /// A PNG file with the grey values of [`ros_map::png`].
    pub png: Arc<[u8]>,
}

/// Tiles that fit into one message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// In the order of their changes.
    pub tiles: Vec<Tile>,
    /// The receiver has all changes up to this one.
    pub number: u32,
    /// The number of changed tiles that did not fit.
    pub left: usize,
}

impl Tiles {
    /// Begins a map without tiles. `map` is not 0.
    #[must_use]
    pub fn new(map: u32) -> Self {
        Self {
            map,
            cell_m: 0.0,
            number: 0,
            tiles: BTreeMap::new(),
        }
    }

    /// The number of the map. It rises when the size of the cells changes.
    #[must_use]
    pub fn map(&self) -> u32 {
        self.map
    }

    /// The side length of a cell in metres; 0 before the first grid.
    #[must_use]
    pub fn cell_m(&self) -> f64 {
        self.cell_m
    }

    /// The number of the last change.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Takes a new grid. Its lower left corner is best at a multiple of its cells: otherwise it is
    /// moved by less than half a cell.
    ///
    /// # Errors
    /// A picture could not be made, because of a lack of memory.
    pub fn update(&mut self, grid: &Occupancy) -> Result<(), png::EncodingError> {
        let cell_m = grid.layout().cell_m;
        if self.cell_m != cell_m {
            if self.cell_m != 0.0 {
                self.map = self.map.wrapping_add(1).max(1);
            }
            self.tiles.clear();
            self.cell_m = cell_m;
        }
        let mut fresh = cut(grid);
        // What the new grid does not cover is unknown.
        for place in self.tiles.keys() {
            let unknown = || vec![Cell::Unknown; SIDE * SIDE];
            fresh.entry(*place).or_insert_with(unknown);
        }
        for (place, cells) in fresh {
            let kept = self.tiles.get(&place).map(|kept| &kept.cells[..]);
            let is_empty = || cells.iter().all(|cell| *cell == Cell::Unknown);
            if kept.map_or_else(is_empty, |kept| kept == cells) {
                continue;
            }
            let png = picture(&cells)?.into();
            self.number += 1;
            let (number, cells) = (self.number, cells.into());
            self.tiles.insert(place, Kept { number, cells, png });
        }
        Ok(())
    }

    /// The changes after `number` of this map, with pictures of at most so many bytes together, but
    /// at least one. Whoever has another map gets all.
    #[must_use]
    pub fn since(&self, map: u32, number: u32, bytes: usize) -> Part {
        let number = if map == self.map { number } else { 0 };
        let mut changed: Vec<_> = (self.tiles.iter())
            .filter(|(_, kept)| kept.number > number)
            .collect();
        changed.sort_by_key(|(_, kept)| kept.number);
        let mut size = 0;
        let fitting = changed.iter().take_while(|(_, kept)| {
            let is_first = size == 0;
            size += kept.png.len();
            is_first || size <= bytes
        });
        let fitting = fitting.count();
        let sent = &changed[..fitting];
        let tiles = sent.iter().map(|((y, x), kept)| Tile {
            x: *x,
            y: *y,
            png: kept.png.clone(),
        });
        Part {
            tiles: tiles.collect(),
            number: match sent.last() {
                Some((_, kept)) if fitting < changed.len() => kept.number,
                _ => self.number,
            },
            left: changed.len() - fitting,
        }
    }
}

/// The cells of a grid by tiles. Those of one tile are ordered as in [`Occupancy::from_cells`].
fn cut(grid: &Occupancy) -> BTreeMap<Place, Vec<Cell>> {
    let layout = grid.layout();
    let first = |low_m: f64| (low_m / layout.cell_m).round() as i64;
    let (left, bottom) = (first(layout.low.x), first(layout.low.y));
    let side = SIDE as i64;
    let mut tiles = BTreeMap::new();
    for row in 0..layout.rows {
        // Rows count upwards in the plane, and tiles downwards.
        let up = bottom + row as i64;
        let (y, tile_row) = (-1 - up.div_euclid(side), up.rem_euclid(side) as usize);
        for column in 0..layout.columns {
            let cell = grid.cell(column, row);
            if cell == Cell::Unknown {
                continue;
            }
            let right = left + column as i64;
            let (x, tile_column) = (right.div_euclid(side), right.rem_euclid(side) as usize);
            let place = (y as i32, x as i32);
            let cells = tiles
                .entry(place)
                .or_insert_with(|| vec![Cell::Unknown; SIDE * SIDE]);
            cells[tile_row * SIDE + tile_column] = cell;
        }
    }
    tiles
}

fn picture(cells: &[Cell]) -> Result<Vec<u8>, png::EncodingError> {
    // The layout has as many cells.
    match Occupancy::from_cells(tile_layout(Point::default(), 1.0), cells.to_vec()) {
        Ok(grid) => ros_map::png(&grid),
        Err(_) => Ok(Vec::new()),
    }
}

fn tile_layout(low: Point, cell_m: f64) -> Layout {
    Layout {
        low,
        cell_m,
        columns: SIDE,
        rows: SIDE,
    }
}

/// The tiles of a map that somebody else makes.
#[derive(Clone, Debug, Default)]
pub struct Mosaic {
    map: u32,
    number: u32,
    cell_m: f64,
    tiles: BTreeMap<Place, Vec<Cell>>,
}

/// The reason why a part is refused.
#[derive(Debug, thiserror::Error)]
pub enum MosaicError {
    /// The size of the cells is invalid.
    #[error("cells of {0} m")]
    Cells(f64),
    /// A tile is too far away, or there are too many.
    #[error("the map is too large")]
    TooLarge,
    /// A picture has another size.
    #[error("a tile has {0} x {1} pixels")]
    Size(usize, usize),
    /// A picture is invalid.
    #[error(transparent)]
    Picture(#[from] RosMapError),
}

impl Mosaic {
    /// The number of the map; 0 if there is none.
    #[must_use]
    pub fn map(&self) -> u32 {
        self.map
    }

    /// The last change of which this has everything.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Begins an answer. If it is about another map, the old one is forgotten.
    ///
    /// # Errors
    /// The size of the cells is invalid.
    pub fn begin(&mut self, map: u32, cell_m: f64) -> Result<(), MosaicError> {
        // Before the first grid it is 0.
        if !(0.0..=10.0).contains(&cell_m) {
            return Err(MosaicError::Cells(cell_m));
        }
        if (map, cell_m) != (self.map, self.cell_m) {
            *self = Self {
                map,
                cell_m,
                ..Self::default()
            };
        }
        Ok(())
    }

    /// Adds or replaces a tile.
    ///
    /// # Errors
    /// It is invalid.
    pub fn add(&mut self, x: i32, y: i32, png: &[u8]) -> Result<(), MosaicError> {
        let place = (y, x);
        let is_far = [x, y]
            .into_iter()
            .any(|at| !(-MAX_PLACE..MAX_PLACE).contains(&at));
        let is_full =
            !self.tiles.contains_key(&place) && (self.tiles.len() + 1) * SIDE * SIDE > MAX_CELLS;
        if is_far || is_full {
            return Err(MosaicError::TooLarge);
        }
        if self.cell_m == 0.0 {
            return Err(MosaicError::Cells(self.cell_m));
        }
        let grid = ros_map::from_png(png, Point::default(), self.cell_m)?;
        let Layout { columns, rows, .. } = *grid.layout();
        if (columns, rows) != (SIDE, SIDE) {
            return Err(MosaicError::Size(columns, rows));
        }
        let cells = (0..SIDE).flat_map(|row| (0..SIDE).map(move |column| (column, row)));
        let cells = cells.map(|(column, row)| grid.cell(column, row)).collect();
        self.tiles.insert(place, cells);
        Ok(())
    }

    /// Ends an answer: everything up to this change is there.
    pub fn end(&mut self, number: u32) {
        self.number = number;
    }

    /// The whole grid, in whole tiles; `None` without tiles.
    ///
    /// Tiles that are far apart make a large grid: it is cut off beyond [`MAX_CELLS`].
    #[must_use]
    pub fn occupancy(&self) -> Option<Occupancy> {
        let (&(top, _), _) = self.tiles.first_key_value()?;
        let (&(bottom, _), _) = self.tiles.last_key_value()?;
        let columns = self.tiles.keys().map(|(_, x)| *x);
        let (left, right) = (columns.clone().min()?, columns.max()?);
        let count = |first: i32, last: i32| (last - first) as usize + 1;
        let (wide, high) = (count(left, right), count(top, bottom));
        if wide * high * SIDE * SIDE > MAX_CELLS {
            return None;
        }
        let tile_m = SIDE as f64 * self.cell_m;
        let layout = Layout {
            low: Point::new(f64::from(left) * tile_m, -f64::from(bottom + 1) * tile_m),
            cell_m: self.cell_m,
            columns: wide * SIDE,
            rows: high * SIDE,
        };
        let mut cells = vec![Cell::Unknown; layout.cells()];
        for ((y, x), tile) in &self.tiles {
            let (column, row) = (count(left, *x) - 1, count(*y, bottom) - 1);
            for (at, line) in tile.chunks_exact(SIDE).enumerate() {
                let start = layout.index(column * SIDE, row * SIDE + at);
                cells[start..start + SIDE].copy_from_slice(line);
            }
        }
        Occupancy::from_cells(layout, cells).ok()
    }
}

/// A layout with its lower left corner at a multiple of its cells, which covers another one.
///
/// # Errors
/// It has too many cells.
pub fn aligned(layout: &Layout) -> Result<Layout, GridError> {
    let cell_m = layout.cell_m;
    let down = |low_m: f64| (low_m / cell_m).floor() * cell_m;
    let low = Point::new(down(layout.low.x), down(layout.low.y));
    let (columns, rows) = (layout.columns + 1, layout.rows + 1);
    match columns * rows > MAX_CELLS {
        true => Err(GridError::TooLarge((columns * rows) as f64)),
        false => Ok(Layout {
            low,
            cell_m,
            columns,
            rows,
        }),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const CELL_M: f64 = 0.025;
    /// What fits into a message.
    const BYTES: usize = 1200;

    /// A room of this size in cells, with its lower left corner at these cells.
    fn room(left: i32, bottom: i32, columns: usize, rows: usize) -> Occupancy {
        let layout = Layout {
            low: Point::new(f64::from(left), f64::from(bottom)).times(CELL_M),
            cell_m: CELL_M,
            columns,
            rows,
        };
        let cells = (0..layout.cells()).map(|cell| {
            let (column, row) = (cell % columns, cell / columns);
            let is_wall = [0, columns - 1].contains(&column) || [0, rows - 1].contains(&row);
            if is_wall { Cell::Occupied } else { Cell::Free }
        });
        Occupancy::from_cells(layout, cells.collect()).unwrap()
    }

    /// Asks until nothing is left. Returns the number of tiles.
    fn follow(mosaic: &mut Mosaic, tiles: &Tiles) -> usize {
        let mut count = 0;
        loop {
            let part = tiles.since(mosaic.map(), mosaic.number(), BYTES);
            let bytes: usize = part.tiles.iter().map(|tile| tile.png.len()).sum();
            assert!(bytes <= BYTES || part.tiles.len() == 1, "{bytes}");
            count += part.tiles.len();
            mosaic.begin(tiles.map(), tiles.cell_m()).unwrap();
            for tile in &part.tiles {
                mosaic.add(tile.x, tile.y, &tile.png).unwrap();
            }
            mosaic.end(part.number);
            if part.left == 0 {
                return count;
            }
        }
    }

    fn assert_same(mosaic: &Mosaic, grid: &Occupancy) {
        let found = mosaic.occupancy().unwrap();
        let layout = grid.layout();
        let mut known = 0;
        for row in 0..layout.rows {
            for column in 0..layout.columns {
                let (x, y) = found.layout().cell_at(layout.centre(column, row)).unwrap();
                assert_eq!(found.cell(x, y), grid.cell(column, row), "{column} {row}");
                known += usize::from(grid.cell(column, row) != Cell::Unknown);
            }
        }
        let all = (0..found.layout().rows)
            .flat_map(|row| (0..found.layout().columns).map(move |column| (column, row)));
        let all = all.filter(|(column, row)| found.cell(*column, *row) != Cell::Unknown);
        assert_eq!(all.count(), known, "nothing else is known");
    }

    #[test]
    fn a_follower_gets_the_grid_in_small_parts_and_then_only_what_has_changed() {
        let mut tiles = Tiles::new(3);
        let mut mosaic = Mosaic::default();
        assert_eq!(follow(&mut mosaic, &tiles), 0);
        assert!(mosaic.occupancy().is_none());
        let grid = room(-100, -70, 300, 200);
        tiles.update(&grid).unwrap();
        let all = follow(&mut mosaic, &tiles);
        assert!((20..=30).contains(&all), "{all}");
        assert_same(&mosaic, &grid);
        // The same again.
        tiles.update(&grid).unwrap();
        assert_eq!(follow(&mut mosaic, &tiles), 0);
        // The room grows to the right: the left part stays.
        let grid = room(-100, -70, 310, 200);
        tiles.update(&grid).unwrap();
        let some = follow(&mut mosaic, &tiles);
        assert!(some <= all / 2, "{some} of {all}");
        assert_same(&mosaic, &grid);
        // A correction moves it: what is left behind becomes unknown.
        let grid = room(10, 5, 50, 40);
        tiles.update(&grid).unwrap();
        follow(&mut mosaic, &tiles);
        assert_same(&mosaic, &grid);
    }

    #[test]
    fn larger_cells_and_another_map_begin_again() {
        let mut tiles = Tiles::new(3);
        let mut mosaic = Mosaic::default();
        tiles.update(&room(0, 0, 100, 100)).unwrap();
        follow(&mut mosaic, &tiles);
        let fine = room(0, 0, 30, 30);
        let layout = Layout {
            cell_m: 2.0 * CELL_M,
            ..*fine.layout()
        };
        let cells = vec![Cell::Free; layout.cells()];
        let coarse = Occupancy::from_cells(layout, cells).unwrap();
        tiles.update(&coarse).unwrap();
        assert_eq!((tiles.map(), follow(&mut mosaic, &tiles)), (4, 1));
        assert_same(&mosaic, &coarse);
        let mut tiles = Tiles::new(9);
        tiles.update(&fine).unwrap();
        follow(&mut mosaic, &tiles);
        assert_same(&mosaic, &fine);
    }

    #[test]
    fn invalid_tiles_are_refused() {
        let mut mosaic = Mosaic::default();
        assert!(mosaic.begin(1, f64::NAN).is_err());
        mosaic.begin(1, CELL_M).unwrap();
        let small = ros_map::png(&room(0, 0, 10, 10)).unwrap();
        let right = ros_map::png(&room(0, 0, SIDE, SIDE)).unwrap();
        assert!(matches!(
            mosaic.add(0, 0, &small),
            Err(MosaicError::Size(10, 10))
        ));
        assert!(mosaic.add(0, 0, b"no picture").is_err());
        assert!(mosaic.add(i32::MAX, 0, &right).is_err());
        mosaic.add(0, 0, &right).unwrap();
        // Far apart, they would need too much memory.
        mosaic.add(40_000, 40_000, &right).unwrap();
        assert!(mosaic.occupancy().is_none());
    }

    proptest! {
        #[test]
        fn every_place_and_size_survives(
            left in -200..200i32, bottom in -200..200i32, columns in 2..150usize, rows in 2..150usize
        ) {
            let mut tiles = Tiles::new(1);
            let grid = room(left, bottom, columns, rows);
            tiles.update(&grid).unwrap();
            let mut mosaic = Mosaic::default();
            follow(&mut mosaic, &tiles);
            assert_same(&mosaic, &grid);
        }

        #[test]
        fn an_aligned_layout_covers_the_other_one(
            left_m in -9.0..9.0f64, low_m in -9.0..9.0f64, columns in 1..99usize, rows in 1..99usize
        ) {
            let low = Point::new(left_m, low_m);
            let layout = Layout { low, cell_m: CELL_M, columns, rows };
            let new = aligned(&layout).unwrap();
            prop_assert!(new.low.x <= low.x && new.low.y <= low.y);
            prop_assert!(new.high().x >= layout.high().x - 1e-9);
            prop_assert!(new.high().y >= layout.high().y - 1e-9);
            let cells = new.low.x / CELL_M;
            prop_assert!((cells - cells.round()).abs() < 1e-6);
        }
    }
}
