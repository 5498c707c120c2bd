//! A map that is being made: its grid, fetched in parts, and the robot on it. IO in
//! [`Growing::follow`].

use std::sync::Arc;

use amber_client::values::Target;
use amber_client::{Error, MappingService, Result};
use amber_map::Occupancy;
use amber_map::tiles::Mosaic;
use amber_proto::mapping::{Grid, Points, Progress};

use crate::scene::{Drive, Ground, Located, Part, Place, Scene};

/// The most requests for one change: more tiles come with the next one.
const MAX_REQUESTS: usize = 200;

/// The grid of a growing map.
#[derive(Clone, Debug, Default)]
pub struct Growing {
    mosaic: Mosaic,
    /// The grid, unless it has changed since.
    built: Option<Option<Arc<Ground>>>,
}

impl Growing {
    /// Whether the grid has changed, according to the driver.
    #[must_use]
    pub fn is_outdated(&self, progress: &Progress) -> bool {
        let known = (self.mosaic.map(), self.mosaic.number());
        (progress.map(), progress.grid()) != known
    }

    /// Asks the driver for what has changed. What came before an error stays.
    ///
    /// # Errors
    /// There is no answer, or an invalid one.
    pub async fn follow(&mut self, mapping: &MappingService) -> Result<()> {
        for _ in 0..MAX_REQUESTS {
            let asked = Grid {
                map: Some(self.mosaic.map()),
                number: Some(self.mosaic.number()),
                ..Grid::default()
            };
            let grid = mapping.grid(asked).await?;
            let left = grid.left();
            self.take(grid).map_err(|message| Error::BadAnswer {
                device: mapping.address(),
                message,
            })?;
            if left == 0 {
                break;
            }
        }
        Ok(())
    }

    /// Takes an answer of the driver.
    ///
    /// # Errors
    /// It is invalid.
    pub fn take(&mut self, grid: Grid) -> std::result::Result<(), String> {
        let begun = self.mosaic.begin(grid.map(), grid.resolution());
        begun.map_err(|error| error.to_string())?;
        for tile in &grid.tiles {
            let added = self.mosaic.add(tile.x(), tile.y(), tile.png());
            added.map_err(|error| error.to_string())?;
        }
        self.mosaic.end(grid.number());
        self.built = None;
        Ok(())
    }

    /// The grid so far.
    pub fn occupancy(&mut self) -> Option<Occupancy> {
        match self.ground().as_deref() {
            Some(Ground::Grid(grid)) => Some(grid.clone()),
            _ => None,
        }
    }

    /// The same to draw. A large grid takes some time.
    pub fn ground(&mut self) -> Option<Arc<Ground>> {
        let build = || {
            let grid = self.mosaic.occupancy();
            grid.map(|grid| Arc::new(Ground::Grid(grid)))
        };
        self.built.get_or_insert_with(build).clone()
    }
}

impl Scene {
    /// The grid of a growing map and the robot on it. `drives` says who drives, unless the robot
    /// explores.
    #[must_use]
    pub fn of_growing(ground: Option<Arc<Ground>>, progress: &Progress, drives: &str) -> Self {
        let waits = || "there is no scan yet".to_owned();
        let located = progress.location.map(|location| Located {
            pose: location.into(),
            quality: None,
        });
        let scan = located.as_ref().and(progress.scan.as_ref()).map(places);
        Self {
            map: ground.ok_or_else(|| "it is drawn after the first metres".to_owned()),
            located: located.ok_or_else(waits),
            scan: scan.ok_or_else(waits),
            particles: Part::Ok(Vec::new()),
            drive: Ok(drive(progress, drives)),
        }
    }
}

fn drive(progress: &Progress, drives: &str) -> Drive {
    use amber_proto::mapping::progress::Exploration;

    let state = match progress.exploration() {
        Exploration::Never | Exploration::StoppedEarly => drives,
        _ => progress.words(),
    };
    let target = progress.target.as_ref().map(|target| Target {
        radius_m: target.radius(),
        ..Target::new(target.x(), target.y())
    });
    Drive {
        state: state.to_owned(),
        remaining_m: progress.remaining,
        path: progress.path.as_ref().map(places).unwrap_or_default(),
        targets: target.into_iter().collect(),
        ..Drive::default()
    }
}

/// Points in metres.
fn places(points: &Points) -> Vec<Place> {
    let m = |cm: i32| f64::from(cm) / 100.0;
    let pairs = points.xs.iter().zip(&points.ys);
    pairs.map(|(x_cm, y_cm)| (m(*x_cm), m(*y_cm))).collect()
}

#[cfg(test)]
mod tests {
    use amber_map::tiles::Tiles;
    use amber_map::{Cell, Layout, Point};
    use amber_proto::mapping::{Location, Tile};

    use super::*;

    /// A room of 2 m x 2 m around the origin, as a driver sends it.
    fn room() -> Grid {
        let layout = Layout {
            low: Point::new(-1.0, -1.0),
            cell_m: 0.1,
            columns: 20,
            rows: 20,
        };
        let cells = (0..layout.cells()).map(|cell| {
            let (column, row) = (cell % 20, cell / 20);
            match [0, 19].contains(&column) || [0, 19].contains(&row) {
                true => Cell::Occupied,
                false => Cell::Free,
            }
        });
        let mut tiles = Tiles::new(7);
        let room = Occupancy::from_cells(layout, cells.collect()).unwrap();
        tiles.update(&room).unwrap();
        let part = tiles.since(0, 0, usize::MAX);
        Grid {
            map: Some(7),
            number: Some(part.number),
            left: Some(0),
            resolution: Some(0.1),
            tiles: (part.tiles.iter())
                .map(|tile| Tile {
                    x: Some(tile.x),
                    y: Some(tile.y),
                    png: Some(tile.png.to_vec().into()),
                })
                .collect(),
        }
    }

    fn progress() -> Progress {
        Progress {
            map: Some(7),
            grid: Some(4),
            words: Some("growing".into()),
            location: Some(Location {
                x: Some(0.5),
                alfa: Some(-1.5),
                p: Some(0.9),
                ..Location::default()
            }),
            scan: Some(Points {
                xs: vec![0, 10],
                ys: vec![-60, -61],
            }),
            ..Progress::default()
        }
    }

    #[test]
    fn the_grid_the_robot_and_its_scan_are_one_scene() {
        let mut growing = Growing::default();
        assert!(growing.is_outdated(&progress()));
        growing.take(room()).unwrap();
        assert!(!growing.is_outdated(&progress()));
        let scene = Scene::of_growing(growing.ground(), &progress(), "by hand");
        let size = scene.map.as_ref().unwrap().bounds().unwrap().size_m();
        assert!((size.0 - 1.9).abs() < 1e-9, "{size:?}");
        assert_eq!(scene.scan.as_deref().unwrap()[1], (0.1, -0.61));
        assert_eq!(scene.located.unwrap().pose.quality, 0.9);
        assert_eq!(scene.drive.unwrap().state, "by hand");
    }

    #[test]
    fn before_the_first_scan_the_reasons_are_shown() {
        let scene = Scene::of_growing(None, &Progress::default(), "by hand");
        let missing: Vec<_> = scene.missing().into_iter().map(|(name, _)| name).collect();
        assert_eq!(missing, ["map", "pose", "laser"]);
    }

    #[test]
    fn an_invalid_tile_is_an_error() {
        let mut grid = room();
        grid.tiles[0].png = Some(b"no picture".to_vec().into());
        assert!(Growing::default().take(grid).is_err());
    }
}
