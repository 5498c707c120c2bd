//! The files of a map. IO.

use std::path::{Path, PathBuf};

use amber_map::{Occupancy, ros_map};
use amber_terminal::Failure;

use crate::file;

/// The names of the files.
#[derive(Clone, Debug)]
pub(in crate::map) struct Files {
    /// The name without folder and extension.
    pub(super) name: String,
    pgm: PathBuf,
    yaml: PathBuf,
    roson: PathBuf,
}

impl Files {
    /// Checks that the files can be written later.
    ///
    /// # Errors
    /// The name is unusable, its folder does not exist, or a file exists and `force` is not set.
    pub(super) fn new(output: &Path, force: bool) -> Result<Self, Failure> {
        let shown = output.display();
        let Some(name) = output.file_name().and_then(|name| name.to_str()) else {
            return Err(Failure::wrong(format!(
                "-o {shown}: it must end with a name"
            )));
        };
        let ending = output.extension().and_then(|ending| ending.to_str());
        if let Some(ending @ ("pgm" | "yaml" | "roson")) = ending {
            return Err(
                Failure::wrong(format!("-o {shown}: give the name without .{ending}"))
                    .hint("the command adds .pgm, .yaml and .roson"),
            );
        }
        // The YAML file for ROS and the map file contain the name.
        if name
            .chars()
            .any(|one| one.is_control() || "\"\\:#".contains(one))
        {
            return Err(Failure::wrong(format!(
                "-o {shown}: the name must not contain quotes, backslashes, colons or #"
            )));
        }
        let folder = match output.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        if !folder.is_dir() {
            return Err(Failure::wrong(format!(
                "the folder {} does not exist",
                folder.display()
            )));
        }
        let file = |ending: &str| output.with_file_name(format!("{name}.{ending}"));
        let new = Self {
            name: name.to_owned(),
            pgm: file("pgm"),
            yaml: file("yaml"),
            roson: file("roson"),
        };
        if let Some(file) = new.all().into_iter().find(|file| !force && file.exists()) {
            return Err(Failure::wrong(format!("{} already exists", file.display()))
                .hint("use another name, or --force to replace the map"));
        }
        Ok(new)
    }

    /// All files.
    pub(super) fn all(&self) -> [&Path; 3] {
        [&self.pgm, &self.yaml, &self.roson]
    }

    /// Writes the map.
    pub(super) fn write(&self, grid: &Occupancy, roson: &[u8]) -> Result<(), Failure> {
        let (yaml, pgm) = ros_map::write(grid, &format!("{}.pgm", self.name));
        // The YAML file comes after the image that it names.
        file::write(&self.pgm, &pgm)?;
        file::write(&self.yaml, yaml.as_bytes())?;
        file::write(&self.roson, roson)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn existing_files_are_kept_without_force() {
        let folder = tempfile::tempdir().unwrap();
        let output = folder.path().join("v1.2");
        let files = Files::new(&output, false).unwrap();
        assert_eq!(files.all()[2], folder.path().join("v1.2.roson"));
        std::fs::write(files.all()[1], "old").unwrap();
        let error = format!("{:?}", Files::new(&output, false).unwrap_err());
        assert!(error.contains("v1.2.yaml already exists"), "{error}");
        assert!(Files::new(&output, true).is_ok());
    }

    #[test]
    fn unusable_names_are_refused_before_the_robot_drives() {
        for name in ["flat.roson", "a/b", "/", "..", "a:b", "a\"b"] {
            assert!(Files::new(Path::new(name), true).is_err(), "{name}");
        }
    }
}
