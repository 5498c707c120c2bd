//! The calibration file. IO.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::calibration::Calibration;

/// Loads the file; returns an empty calibration if there is no file.
///
/// # Errors
/// The file cannot be read or is invalid.
pub(super) fn load(path: &Path) -> Result<Calibration, String> {
    match fs::read_to_string(path) {
        Ok(text) => Calibration::from_toml(&text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Calibration::default()),
        Err(error) => Err(error.to_string()),
    }
}

/// Replaces the file atomically: readers see either the old or the new file, even after a power
/// cut.
pub(super) fn save(path: &Path, calibration: &Calibration) -> io::Result<()> {
    let fresh = beside(path);
    let mut file = File::create(&fresh)?;
    file.write_all(calibration.to_toml().as_bytes())?;
    file.sync_all()?;
    fs::rename(&fresh, path)?;
    // The directory entry needs its own sync.
    match path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
    {
        Some(folder) => File::open(folder)?.sync_all(),
        None => File::open(".")?.sync_all(),
    }
}

/// A file name in the same folder, unique to this process.
fn beside(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}", std::process::id()));
    path.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_saved_calibration_is_loaded_and_leaves_no_other_files() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ninedof.toml");
        assert_eq!(load(&path), Ok(Calibration::default()));
        for bias in [1.0, 2.0] {
            let calibration = Calibration::default().with_gyro([bias; 3]);
            save(&path, &calibration).unwrap();
            assert_eq!(load(&path), Ok(calibration));
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_failed_save_keeps_the_old_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("none").join("ninedof.toml");
        assert!(save(&path, &Calibration::default()).is_err());
        let path = folder.path().join("broken.toml");
        fs::write(&path, "[gyro]\nbias = 1\n").unwrap();
        let why = load(&path).unwrap_err();
        assert!(why.contains("unknown field `bias`"), "{why}");
    }
}
