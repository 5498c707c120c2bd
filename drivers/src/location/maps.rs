//! The map file: read at the start, replaced by an upload. IO.

use std::path::Path;

use amber_driver::devices::location as message;
use amber_map::{GridError, MapFile};
use amber_navigation::location::{Config, LocationMap};

use super::answer;

use crate::replace::replace;

/// A map in both forms.
#[derive(Debug)]
pub(crate) struct Loaded {
    /// For localization.
    pub(crate) map: LocationMap,
    /// For clients, or the reason why they cannot get it.
    pub(crate) message: Result<message::Map, String>,
}

/// Reads a map and prepares it for localization. The error contains a hint.
pub(crate) fn load(path: &Path, config: &Config) -> Result<Loaded, String> {
    let file = MapFile::open(path).map_err(|error| error.to_string())?;
    if let Some(doubt) = file.doubt() {
        tracing::warn!("{doubt}");
    }
    let loaded = of_file(file, config);
    loaded.map_err(|error| format!("{}: {error}", path.display()))
}

/// Prepares the text of a .roson file for localization.
pub(crate) fn from_roson(text: &str, config: &Config) -> Result<Loaded, String> {
    let file = MapFile::roson(text.to_owned()).map_err(|error| error.to_string())?;
    of_file(file, config).map_err(|error| error.to_string())
}

fn of_file(file: MapFile, config: &Config) -> Result<Loaded, GridError> {
    let limit_m = config.limit_m();
    Ok(match file {
        MapFile::Roson { text, map } => Loaded {
            map: LocationMap::from_walls(&map.faces(), &map.nodes, config.cell_m, limit_m)?,
            message: answer::roson(&text, &map),
        },
        MapFile::Grid { grid, .. } => Loaded {
            map: LocationMap::from_occupancy(&grid, limit_m),
            message: answer::grid(&grid),
        },
    })
}

/// Replaces the file by an uploaded map. Without a file, only logs it.
pub(crate) fn store(path: Option<&Path>, text: &str) -> Result<(), String> {
    let Some(path) = path else {
        tracing::warn!("the uploaded map is lost when the driver ends: there is no --map FILE");
        return Ok(());
    };
    let name = path.display();
    if MapFile::is_ros(path) {
        return Err(format!(
            "{name} is a map of ROS, but an upload is a .roson map"
        ));
    }
    replace(path, text.as_bytes()).map_err(|error| format!("cannot write {name}: {error}"))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use amber_map::{Layout, Map, Occupancy, Point, Pose, ros_map};

    use super::*;

    const FLAT: &str = include_str!("../../map/maps/flat.roson");

    fn config() -> Config {
        Config::new(Pose::default())
    }

    #[test]
    fn both_formats_give_the_same_walls() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("flat.roson"), FLAT).unwrap();
        let faces = Map::flat().faces();
        let layout = Layout::around_walls(&faces, 0.5, 0.02).unwrap();
        let (yaml, pgm) = ros_map::write(&Occupancy::from_walls(layout, &faces), "image.pgm");
        fs::write(path("flat.yaml"), yaml).unwrap();
        fs::write(path("image.pgm"), pgm).unwrap();
        let lines = load(&path("flat.roson"), &config()).unwrap();
        let cells = load(&path("flat.yaml"), &config()).unwrap();
        for (x, y) in [(1.5, -2.6), (3.0, -1.0), (5.5, -1.0)] {
            let at = Point::new(x, y);
            let [line_m, cell_m] = [&lines, &cells].map(|it| it.map.field().distance_m(at));
            assert!((line_m - cell_m).abs() < 0.02, "{at:?}: {line_m} {cell_m}");
        }
        assert_eq!(lines.message.unwrap().roson(), FLAT);
        assert!(cells.message.unwrap().grid.is_some());
    }

    #[test]
    fn errors_name_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("broken.roson"), "{").unwrap();
        fs::write(path("broken.yaml"), "image: a.pgm").unwrap();
        let yaml = "image: a.pgm\nresolution: 0.1\norigin: [0, 0, 0]\nnegate: 0\n\
                    occupied_thresh: 0.6\nfree_thresh: 0.2\n";
        fs::write(path("lab.yaml"), yaml).unwrap();
        for (name, part) in [
            ("none.roson", "cannot read"),
            ("broken.roson", "not a .roson map"),
            ("broken.yaml", "resolution"),
            ("lab.yaml", "a.pgm"),
        ] {
            let why = load(&path(name), &config()).unwrap_err();
            assert!(why.contains(part), "{why}");
            assert!(why.contains(&*folder.path().to_string_lossy()), "{why}");
        }
    }

    #[test]
    fn an_upload_replaces_the_file_but_not_a_map_of_ros() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lab.roson");
        store(Some(&path), FLAT).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), FLAT);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        let yaml = folder.path().join("lab.yaml");
        assert!(store(Some(&yaml), FLAT).unwrap_err().contains("of ROS"));
        assert!(store(Some(&folder.path().join("none/lab.roson")), FLAT).is_err());
        assert_eq!(store(None, FLAT), Ok(()));
    }
}
