//! The names of recordings. PURE, except for checking whether a path is a folder.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// The ending of MCAP files.
const MCAP: &str = "mcap";

/// How the files of one run are named.
#[derive(Clone, Debug)]
pub(super) struct Names {
    given: Option<PathBuf>,
    is_snapshot: bool,
    is_series: bool,
    number: u32,
}

impl Names {
    /// `given` is what the user wants: a file, a folder, or nothing.
    pub(super) fn new(given: Option<PathBuf>, is_snapshot: bool, is_series: bool) -> Self {
        Self {
            given,
            is_snapshot,
            is_series,
            number: 0,
        }
    }

    /// The name of the next file, at this time.
    pub(super) fn next(&mut self, time: Timestamp, zone: TimeZone) -> PathBuf {
        self.number += 1;
        let date = time.to_zoned_datetime(zone).strftime("%Y-%m-%d_%H-%M-%S");
        let kind = match self.is_snapshot {
            true => "snapshot",
            false => "amber",
        };
        let is_folder =
            |path: &Path| path.is_dir() || path.as_os_str().to_string_lossy().ends_with('/');
        let (folder, stem, is_dated) = match &self.given {
            None => (PathBuf::new(), kind.to_owned(), false),
            Some(path) if is_folder(path) => (path.clone(), kind.to_owned(), false),
            Some(path) if super::super::file::is_stdout(path) => return path.clone(),
            Some(path) => {
                // A name given by the user is kept unchanged if there is only one file.
                if !self.is_snapshot && !self.is_series {
                    return path.clone();
                }
                let is_mcap = path.extension().is_some_and(|it| it == MCAP);
                let stem = match is_mcap {
                    true => path.file_stem(),
                    false => path.file_name(),
                };
                let stem = stem.unwrap_or_default().to_string_lossy().into_owned();
                let folder = path.parent().map(Path::to_owned);
                (folder.unwrap_or_default(), stem, true)
            }
        };
        let mut name = match is_dated && !self.is_snapshot {
            true => stem,
            false => format!("{stem}-{date}"),
        };
        // Snapshots may come several times a second.
        if self.is_series || self.is_snapshot {
            name = format!("{name}-{:03}", self.number);
        }
        folder.join(format!("{name}.{MCAP}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two(given: Option<&str>, is_snapshot: bool, is_series: bool) -> [String; 2] {
        let mut names = Names::new(given.map(PathBuf::from), is_snapshot, is_series);
        let time = Timestamp::from_second(1_700_000_581).unwrap();
        [(); 2].map(|()| {
            let name = names.next(time, TimeZone::UTC);
            name.to_string_lossy().into_owned()
        })
    }

    #[test]
    fn a_file_is_named_as_asked_or_after_the_time() {
        assert_eq!(two(Some("drive.mcap"), false, false)[0], "drive.mcap");
        assert_eq!(two(Some("drive"), false, false)[0], "drive");
        assert_eq!(two(Some("-"), false, false)[0], "-");
        let dated = "amber-2023-11-14_22-23-01.mcap";
        assert_eq!(two(None, false, false)[0], dated);
        assert_eq!(two(Some("/"), false, false)[0], format!("/{dated}"));
        assert_eq!(two(Some("new/"), false, false)[0], format!("new/{dated}"));
    }

    #[test]
    fn files_of_one_run_are_numbered() {
        assert_eq!(
            two(Some("logs/drive.mcap"), false, true),
            ["logs/drive-001.mcap", "logs/drive-002.mcap"]
        );
        // A name may have dots.
        assert_eq!(two(Some("run.7"), false, true)[0], "run.7-001.mcap");
        assert_eq!(
            two(None, false, true)[1],
            "amber-2023-11-14_22-23-01-002.mcap"
        );
        assert_eq!(
            two(Some("bump.mcap"), true, false)[0],
            "bump-2023-11-14_22-23-01-001.mcap"
        );
        assert_eq!(
            two(None, true, false)[1],
            "snapshot-2023-11-14_22-23-01-002.mcap"
        );
    }
}
