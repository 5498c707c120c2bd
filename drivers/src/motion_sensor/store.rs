//! The calibration file. IO.

use std::fs;
use std::io;
use std::path::Path;

use super::calibration::Calibration;
use crate::replace::replace;

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

/// Replaces the file.
pub(super) fn save(path: &Path, calibration: &Calibration) -> io::Result<()> {
    replace(path, calibration.to_toml().as_bytes())
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
