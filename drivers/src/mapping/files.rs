//! The folder for saved maps. IO.

use std::path::{Path, PathBuf};

use amber_map::{Occupancy, ros_map};

use crate::options::OptionsError;
use crate::replace::replace;

/// The folder for saved maps.
#[derive(Clone, Debug)]
pub(super) struct Folder(PathBuf);

/// The files of one map.
#[derive(Clone, Debug)]
pub(super) struct Files {
    name: String,
    pgm: PathBuf,
    yaml: PathBuf,
    roson: PathBuf,
}

impl Folder {
    /// # Errors
    /// It does not exist.
    pub(super) fn new(folder: PathBuf) -> Result<Self, OptionsError> {
        match folder.is_dir() {
            true => Ok(Self(folder)),
            false => Err(OptionsError::Value {
                name: "maps",
                problem: format!("the folder {} does not exist", folder.display()),
            }),
        }
    }

    /// The files of a map with this name.
    ///
    /// # Errors
    /// The name is unusable, or a file exists and must not be replaced.
    pub(super) fn files(&self, name: &str, replace: bool) -> Result<Files, String> {
        // The YAML file for ROS and the map file contain the name.
        let is_bad = |one: char| one.is_control() || "\"\\:#/".contains(one);
        if name.is_empty() || name.starts_with('.') || name.chars().any(is_bad) {
            return Err(format!(
                "the name '{name}' cannot be used: it must not begin with a dot, nor contain \
                 slashes, quotes, backslashes, colons or #"
            ));
        }
        if name.len() > 100 {
            return Err("the name is longer than 100 bytes".into());
        }
        let file = |ending: &str| self.0.join(format!("{name}.{ending}"));
        let files = Files {
            name: name.to_owned(),
            pgm: file("pgm"),
            yaml: file("yaml"),
            roson: file("roson"),
        };
        let existing = (files.all().into_iter()).find(|file| !replace && file.exists());
        if let Some(file) = existing {
            return Err(format!(
                "{} already exists: use another name, or say that it may be replaced",
                file.display()
            ));
        }
        Ok(files)
    }
}

impl Files {
    fn all(&self) -> [&Path; 3] {
        [&self.pgm, &self.yaml, &self.roson]
    }

    /// The paths, for people.
    pub(super) fn names(&self) -> Vec<String> {
        self.all().map(|file| file.display().to_string()).into()
    }

    /// Writes the map.
    ///
    /// # Errors
    /// A file cannot be written.
    pub(super) fn write(&self, grid: &Occupancy, roson: &str) -> Result<(), String> {
        let (yaml, pgm) = ros_map::write(grid, &format!("{}.pgm", self.name));
        // The YAML file comes after the image that it names.
        let contents = [pgm, yaml.into_bytes(), roson.as_bytes().to_vec()];
        for (file, content) in self.all().into_iter().zip(contents) {
            replace(file, &content)
                .map_err(|error| format!("cannot write {}: {error}", file.display()))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stays_in_the_folder_and_existing_files_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let maps = Folder::new(folder.path().to_owned()).unwrap();
        for name in ["", ".", "..", "../a", "/etc/a", "a/b", "a:b", ".a", "a\nb"] {
            assert!(maps.files(name, true).is_err(), "{name}");
        }
        let files = maps.files("v1.2", false).unwrap();
        assert_eq!(files.roson, folder.path().join("v1.2.roson"));
        std::fs::write(&files.yaml, "old").unwrap();
        let error = maps.files("v1.2", false).unwrap_err();
        assert!(error.contains("v1.2.yaml already exists"), "{error}");
        assert!(maps.files("v1.2", true).is_ok());
        assert!(Folder::new(folder.path().join("none")).is_err());
    }
}
