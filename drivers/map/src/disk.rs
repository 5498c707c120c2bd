//! Reads the files of maps. IO.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use crate::{MapFile, MapFileError};

/// The longest file of a map, in bytes: enough for a building with every brick, or for an image with
/// the most pixels. Devices and damaged files must not take all memory.
const MAX_FILE_BYTES: u64 = 32 * 1024 * 1024;

impl MapFile {
    /// Reads a map from the disk, and the image of a map of ROS.
    ///
    /// # Errors
    /// As [`MapFile::read`]. A file that is not a regular one, such as a device or a pipe, or that is
    /// too long, cannot be read.
    pub fn open(path: &Path) -> Result<Self, MapFileError> {
        Self::read(path, read)
    }
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    // Opening a pipe would wait for its other end.
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut bytes = Vec::new();
    File::open(path)?
        .take(MAX_FILE_BYTES + 1)
        .read_to_end(&mut bytes)?;
    match bytes.len() as u64 > MAX_FILE_BYTES {
        true => Err(io::Error::other("it is longer than 32 MiB")),
        false => Ok(bytes),
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn devices_pipes_and_endless_files_are_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let (long, link) = (folder.path().join("long"), folder.path().join("link"));
        File::create(&long)
            .unwrap()
            .set_len(MAX_FILE_BYTES + 1)
            .unwrap();
        symlink("/dev/zero", &link).unwrap();
        let socket = folder.path().join("socket");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        for (image, why) in [
            ("/dev/zero", "regular"),
            ("link", "regular"),
            ("socket", "regular"),
            ("long", "longer than 32 MiB"),
        ] {
            let yaml = folder.path().join("map.yaml");
            let text = format!(
                "image: {image}\nresolution: 0.05\norigin: [0, 0, 0]\nnegate: 0\n\
                 occupied_thresh: 0.65\nfree_thresh: 0.196\n"
            );
            fs::write(&yaml, text).unwrap();
            let error = MapFile::open(&yaml).unwrap_err().to_string();
            assert!(error.contains(why), "{image}: {error}");
        }
        assert!(
            MapFile::open(&link)
                .unwrap_err()
                .to_string()
                .contains("regular")
        );
    }
}
