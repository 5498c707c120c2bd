//! The map file: read at the start, replaced by an upload. IO.

use std::fs;
use std::path::Path;

use amber_map::Map;
use amber_navigation::location::{Config, LocationMap};

use crate::replace::replace;

/// Reads a map and prepares it for localization. The error says what to do.
pub(crate) fn load(path: &Path, config: &Config) -> Result<LocationMap, String> {
    let name = path.display();
    let text = fs::read_to_string(path).map_err(|error| format!("cannot read {name}: {error}"))?;
    from_roson(&text, config).map_err(|why| format!("{name}: {why}"))
}

/// Prepares the text of a .roson file for localization.
pub(crate) fn from_roson(text: &str, config: &Config) -> Result<LocationMap, String> {
    let map = Map::parse(text).map_err(|error| error.to_string())?;
    LocationMap::from_walls(&map.faces(), &map.nodes, config.cell_m, config.limit_m())
        .map_err(|error| error.to_string())
}

/// Replaces the file by an uploaded map. Without a file, only logs it.
pub(crate) fn store(path: Option<&Path>, text: &str) -> Result<(), String> {
    let Some(path) = path else {
        tracing::warn!("the uploaded map is lost when the driver ends: there is no --map FILE");
        return Ok(());
    };
    let name = path.display();
    replace(path, text.as_bytes()).map_err(|error| format!("cannot write {name}: {error}"))
}
