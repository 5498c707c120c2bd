//! `amber export --jpeg FOLDER`: the pictures of a recording as files, with a table of them. IO.

use std::collections::HashSet;
use std::fs::{self, OpenOptions};
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use amber_proto::camera::{self, Format, Picture};
use amber_proto::{Device, DeviceType, printable_line};
use amber_record::{Damage, Effect, Entry, Messages, Stored};
use amber_terminal::{Failure, Human, fields, note};
use prost::Message;
use serde::Serialize;

use super::info::{cannot_read, describe, open};
use super::{cannot_write, size};

/// Between two lines of progress: people can read them.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(500);

/// The table of the files.
const INDEX: &str = "index.csv";

/// What was written.
#[derive(Debug, Default, Serialize)]
pub(super) struct Pictures {
    folder: PathBuf,
    pictures: u64,
    bytes: u64,
    damaged: u64,
    /// Messages that should have a picture and cannot be read.
    invalid: u64,
}

/// Writes all pictures of the channels that are wanted.
///
/// # Errors
/// The folder has files already, the recording cannot be read, or it has no pictures.
pub(super) fn write(
    recording: &Path,
    folder: &Path,
    wants: impl Fn(&Stored) -> bool,
) -> Result<Pictures, Failure> {
    let failed = |error| cannot_read(recording, error);
    let mut messages = Messages::new(open(recording)?).map_err(failed)?;
    check(folder)?;
    let expected = messages.expected();
    let mut writer = Writer::new(folder);
    let (mut read, mut done, mut damage) = (0_u64, Ok(()), Vec::new());
    let mut progress = Progress::new();
    while done.is_ok() {
        let next = messages.next(|channels, entry| match entry {
            Entry::Message { channel, data, .. } => {
                read += 1;
                let stored = channels.get(&channel).filter(|it| wants(it));
                done = stored.map_or(Ok(()), |stored| writer.message(stored, data));
            }
            Entry::Damage(found) if found.effect != Effect::Harmless => damage.push(found),
            _ => {}
        });
        if !next.map_err(failed)? {
            break;
        }
        progress.show(&writer.written, read, expected);
    }
    progress.end();
    done?;
    report(recording, &damage);
    let written = writer.finish()?;
    match written.pictures {
        0 => Err(Failure::new("the recording has no such pictures").hint(
            "a camera sends pictures only to clients that ask for them: \
             `amber record --watch camera:0`",
        )),
        _ => Ok(written),
    }
}

/// Refuses a folder with files, so that none is replaced, and pictures of two recordings do not mix.
fn check(folder: &Path) -> Result<(), Failure> {
    let shown = folder.display();
    match fs::read_dir(folder) {
        Ok(mut entries) => match entries.next() {
            None => Ok(()),
            Some(_) => Err(Failure::wrong(format!("{shown} is not empty"))
                .hint("name a new folder, so that no file is replaced")),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(Failure::wrong(format!("cannot use {shown}: {error}"))
            .hint("name a new folder for the pictures")),
    }
}

fn report(recording: &Path, damage: &[Damage]) {
    for damage in damage {
        let path = recording.display();
        note(format!("{path} is damaged: {}", describe(damage)));
    }
}

/// Writes the files.
struct Writer {
    folder: PathBuf,
    /// With the first picture.
    index: Option<csv::Writer<fs::File>>,
    /// A picture may have been sent to several clients in messages of their own.
    known: HashSet<String>,
    written: Pictures,
}

impl Writer {
    fn new(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
            index: None,
            known: HashSet::new(),
            written: Pictures {
                folder: folder.to_owned(),
                ..Pictures::default()
            },
        }
    }

    fn message(&mut self, stored: &Stored, data: &[u8]) -> Result<(), Failure> {
        let device = stored.about.get("device").and_then(|it| it.parse().ok());
        let Some(device) = device.filter(|it: &Device| it.device_type == DeviceType::CAMERA) else {
            return Ok(());
        };
        let is_request = stored
            .about
            .get("direction")
            .is_some_and(|it| it == "to driver");
        if is_request {
            return Ok(());
        }
        let Some((framing, message)) = stored.message(data) else {
            self.written.invalid += 1;
            return Ok(());
        };
        match camera::DriverMsg::decode(&*message) {
            Ok(message) => match message.picture.filter(|_| framing.dropped.is_none()) {
                Some(picture) => self.picture(device, &picture),
                None => Ok(()),
            },
            Err(_) => {
                self.written.invalid += 1;
                Ok(())
            }
        }
    }

    fn picture(&mut self, device: Device, picture: &Picture) -> Result<(), Failure> {
        let name = name(device, picture);
        if !self.known.insert(name.clone()) {
            return Ok(());
        }
        let path = self.folder.join(&name);
        let failed = |error: io::Error| cannot_write(&path, &error);
        if self.index.is_none() {
            self.index = Some(begin(&self.folder)?);
        }
        let mut file = new(&path).map_err(failed)?;
        file.write_all(&head(picture)).map_err(failed)?;
        file.write_all(picture.data()).map_err(failed)?;
        let row = [
            name,
            picture.captured().to_string(),
            picture.sequence().to_string(),
            picture.width().to_string(),
            picture.height().to_string(),
            picture.damaged().to_string(),
        ];
        if let Some(index) = &mut self.index {
            let written = index.write_record(row);
            written.map_err(|error| self.cannot_list(error))?;
        }
        self.written.pictures += 1;
        self.written.bytes += picture.data().len() as u64;
        self.written.damaged += u64::from(picture.damaged());
        Ok(())
    }

    fn finish(mut self) -> Result<Pictures, Failure> {
        if let Some(mut index) = self.index.take() {
            let flushed = index.flush();
            flushed.map_err(|error| cannot_write(&self.folder.join(INDEX), &error))?;
        }
        Ok(self.written)
    }

    fn cannot_list(&self, error: csv::Error) -> Failure {
        let error = super::export::io_error(error);
        cannot_write(&self.folder.join(INDEX), &error)
    }
}

/// Makes the folder and the head of the table.
fn begin(folder: &Path) -> Result<csv::Writer<fs::File>, Failure> {
    fs::create_dir_all(folder).map_err(|error| cannot_write(folder, &error))?;
    let path = folder.join(INDEX);
    let file = new(&path).map_err(|error| cannot_write(&path, &error))?;
    let mut index = csv::Writer::from_writer(file);
    let names = [
        "file",
        "captured_us",
        "sequence",
        "width",
        "height",
        "damaged",
    ];
    let written = index.write_record(names).map_err(super::export::io_error);
    written.map_err(|error| cannot_write(&path, &error))?;
    Ok(index)
}

/// A file that did not exist.
fn new(path: &Path) -> io::Result<fs::File> {
    OpenOptions::new().write(true).create_new(true).open(path)
}

/// The name of its file. Names sort by the time at which the camera took the pictures; the number
/// starts again with each driver process, and several clients may have asked for several sizes.
fn name(device: Device, picture: &Picture) -> String {
    let ending = match picture.format() {
        Format::Jpeg => "jpg",
        Format::Gray8 => "pgm",
    };
    let (us, number) = (picture.captured(), picture.sequence());
    let (id, width) = (device.id, picture.width());
    format!("camera-{id}-{us:016}-{number:06}-{width}.{ending}")
}

/// What a file of this format has before the recorded bytes.
fn head(picture: &Picture) -> Vec<u8> {
    match picture.format() {
        Format::Jpeg => Vec::new(),
        // PGM: pixels need their size before them.
        Format::Gray8 => {
            format!("P5\n{} {}\n255\n", picture.width(), picture.height()).into_bytes()
        }
    }
}

/// A line on a terminal.
struct Progress {
    is_terminal: bool,
    next: Instant,
    is_shown: bool,
}

impl Progress {
    fn new() -> Self {
        Self {
            is_terminal: io::stderr().is_terminal(),
            next: Instant::now() + PROGRESS_INTERVAL,
            is_shown: false,
        }
    }

    fn show(&mut self, written: &Pictures, read: u64, expected: Option<u64>) {
        if !self.is_terminal || Instant::now() < self.next {
            return;
        }
        self.next = Instant::now() + PROGRESS_INTERVAL;
        self.is_shown = true;
        let part = expected.filter(|all| *all > 0);
        let part = part.map(|all| format!("{} %: ", (read * 100 / all).min(100)));
        let size = size::shown(written.bytes);
        let line = format!(
            "{}{} pictures, {size}",
            part.unwrap_or_default(),
            written.pictures
        );
        // If the terminal is closed, the export goes on.
        let _ = write!(io::stderr().lock(), "\r\x1b[K{}", printable_line(&line));
    }

    fn end(&self) {
        if self.is_shown {
            let _ = write!(io::stderr().lock(), "\r\x1b[K");
        }
    }
}

impl Human for Pictures {
    fn human(&self) -> String {
        let some = |count: u64| (count > 0).then(|| count.to_string());
        fields(&[
            ("folder", Some(self.folder.display().to_string())),
            ("pictures", Some(self.pictures.to_string())),
            ("size", Some(size::shown(self.bytes))),
            ("damaged", some(self.damaged)),
            ("invalid", some(self.invalid)),
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_sort_by_time_and_say_what_they_are() {
        let camera = |id| Device::new(DeviceType::CAMERA, id);
        let mut picture = Picture {
            data: Some(b"\xff\xd8"[..].into()),
            format: Some(Format::Jpeg.into()),
            width: Some(640),
            height: Some(480),
            captured: Some(1_700_000_000_123_456),
            sequence: Some(42),
            damaged: None,
        };
        let expected = "camera-0-1700000000123456-000042-640.jpg";
        assert_eq!(name(camera(0), &picture), expected);
        assert!(head(&picture).is_empty());
        picture.format = Some(Format::Gray8.into());
        assert!(name(camera(3), &picture).ends_with("-640.pgm"));
        assert_eq!(head(&picture), b"P5\n640 480\n255\n");
    }

    #[test]
    fn a_folder_with_files_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        assert!(check(folder.path()).is_ok());
        assert!(check(&folder.path().join("new")).is_ok());
        fs::write(folder.path().join("a"), "").unwrap();
        let refused = check(folder.path()).unwrap_err();
        assert!(
            refused.text().ends_with("is not empty"),
            "{}",
            refused.text()
        );
        assert!(check(&folder.path().join("a")).is_err(), "a file");
    }
}
