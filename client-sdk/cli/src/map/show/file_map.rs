//! Reads the map of a file. IO.

use std::path::Path;
use std::sync::Arc;

use amber_map::MapFile;
use amber_scene::Ground;
use amber_terminal::{Failure, note};

/// The map in a file: .roson, or YAML with the image that it names.
pub(super) fn read(path: &Path) -> Result<Arc<Ground>, Failure> {
    let map = MapFile::open(path);
    let map =
        map.map_err(|error| Failure::wrong(error.to_string()).hint(error.hint().to_owned()))?;
    if let Some(doubt) = map.doubt() {
        note(format_args!("warning: {doubt}"));
    }
    Ok(Arc::new(match map {
        MapFile::Roson { map, .. } => Ground::Walls(map),
        MapFile::Grid { grid, .. } => Ground::Grid(grid),
    }))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use amber_map::Map;

    use super::*;

    #[test]
    fn a_file_that_is_no_map_is_explained() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("flat.roson"), Map::flat().to_roson()).unwrap();
        assert!(matches!(
            &*read(&path("flat.roson")).unwrap(),
            Ground::Walls(_)
        ));
        fs::write(path("picture.png"), b"\x89PNG\xff").unwrap();
        fs::write(path("broken.roson"), "{").unwrap();
        let yaml = "image: lab.pgm\nresolution: 0.05\norigin: [0, 0, 0]\nnegate: 0\n\
                    occupied_thresh: 0.65\nfree_thresh: 0.196\n";
        fs::write(path("lab.yaml"), yaml).unwrap();
        for (name, part) in [
            ("none.roson", "cannot read"),
            ("picture.png", "not text"),
            ("broken.roson", "not a .roson map"),
            ("lab.yaml", "lab.pgm"),
        ] {
            let why = format!("{:?}", read(&path(name)).unwrap_err());
            assert!(why.contains(part), "{name}: {why}");
        }
        fs::write(path("lab.pgm"), b"P5 2 1 255 \x00\xfe").unwrap();
        assert!(matches!(
            &*read(&path("lab.yaml")).unwrap(),
            Ground::Grid(_)
        ));
    }
}
