//! `amber export`: messages of a recording as JSON lines or as a table. IO.

use std::fs::File;
use std::io::{self, BufReader, Write};
use std::path::{Path, PathBuf};

use amber_proto::Device;
use amber_record::{Entry, Error, Messages, Stored, Table, json_line};
use amber_terminal::{Failure, note};
use serde_json::Value;

use super::super::file;
use super::info::{cannot_read, open};
use super::output::cannot_write;

pub(in super::super) const HELP: &str = "\
Examples:
  amber export drive.mcap --jsonl > drive.jsonl
  amber export drive.mcap --csv --topic currentSpeed -o speeds.csv
  amber export drive.mcap --csv roboclaw

A table has one column for each field that occurs; a list fills one cell. Choose a single topic for
a table without empty cells. `amber info` lists the topics.";

/// Options of `amber export`.
#[derive(Clone, Debug, clap::Args)]
#[command(group(clap::ArgGroup::new("format").required(true)))]
pub struct Options {
    /// Recording
    file: PathBuf,
    /// Devices to export, e.g. hokuyo roboclaw:0 [default: all]
    devices: Vec<Device>,
    /// Write a table (CSV)
    #[arg(long, group = "format")]
    csv: bool,
    /// Write one JSON object per line
    #[arg(long, group = "format")]
    jsonl: bool,
    /// Only topics with this text, e.g. /hokuyo/0/scan (may be given several times)
    #[arg(long, value_name = "TEXT")]
    topic: Vec<String>,
    /// File to write [default: stdout]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(in super::super) fn run(options: &Options) -> Result<(), Failure> {
    let path = options.output.clone().unwrap_or_else(|| "-".into());
    let mut output = file::Output::create(&path)?;
    let written = match options.csv {
        true => table(options, &mut output),
        false => lines(options, &mut output),
    };
    let (rows, unreadable) = match written {
        Err(Problem::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
        Err(Problem::Output(error)) => return Err(cannot_write(&path, &error)),
        Err(Problem::Input(error)) => return Err(cannot_read(&options.file, error)),
        Err(Problem::Open(failure)) => return Err(failure),
        Ok(written) => written,
    };
    if unreadable > 0 {
        note(format!(
            "{unreadable} messages have no usable schema and were left out"
        ));
    }
    if rows == 0 {
        return Err(
            Failure::new("the recording has no such messages").hint(format!(
                "`amber info {}` lists the topics",
                options.file.display()
            )),
        );
    }
    output.finish()
}

/// An error of the export.
enum Problem {
    Output(io::Error),
    Input(Error),
    Open(Failure),
}

impl From<csv::Error> for Problem {
    fn from(error: csv::Error) -> Self {
        Self::Output(io_error(error))
    }
}

/// The error itself: `io::Error::from` would hide what kind it is.
fn io_error(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    }
}

impl From<io::Error> for Problem {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

/// The numbers of rows, and of messages that cannot be read.
type Done = Result<(u64, u64), Problem>;

fn lines(options: &Options, output: &mut impl Write) -> Done {
    read(options, |_, topic, time_ns, value| {
        writeln!(output, "{}", json_line(time_ns, topic, &value))
    })
}

/// Reads the file twice: the heading needs all columns.
fn table(options: &Options, output: &mut impl Write) -> Done {
    let mut columns = Table::new();
    read(options, |_, _, _, value| {
        columns.add_columns(&value);
        Ok(())
    })?;
    let mut output = csv::Writer::from_writer(output);
    let fixed = ["time_ns", "topic"].map(str::to_owned);
    output.write_record(fixed.iter().chain(columns.columns()))?;
    let done = read(options, |_, topic, time_ns, value| {
        let fixed = [time_ns.to_string(), topic.to_owned()];
        let row = fixed.into_iter().chain(columns.row(&value));
        output.write_record(row).map_err(io_error)
    })?;
    output.flush()?;
    Ok(done)
}

/// Reads all messages that are wanted.
fn read(options: &Options, mut each: impl FnMut(u16, &str, u64, Value) -> io::Result<()>) -> Done {
    let file: File = open(&options.file).map_err(Problem::Open)?;
    let mut messages = Messages::new(BufReader::new(file));
    let (mut table, mut rows, mut unreadable) = (Table::new(), 0, 0);
    let (mut failed, mut read_any) = (None, false);
    loop {
        let next = messages.next(|channels, entry| {
            read_any = true;
            let Entry::Message {
                channel,
                header,
                data,
            } = entry
            else {
                return;
            };
            let stored = channels
                .get(&channel)
                .filter(|stored| options.wants(stored));
            let Some(stored) = stored else {
                return;
            };
            match table.value(channel, stored, data) {
                Some(value) => {
                    rows += 1;
                    failed = each(channel, &stored.topic, header.log_time, value).err();
                }
                None => unreadable += 1,
            }
        });
        match (failed.take(), next) {
            (Some(error), _) => return Err(error.into()),
            (None, Ok(true)) => {}
            (None, Ok(false)) => return Ok((rows, unreadable)),
            (None, Err(Error::Mcap(error))) if read_any => {
                note(format!(
                    "{} is damaged: {error}; what follows is lost",
                    shown(&options.file)
                ));
                return Ok((rows, unreadable));
            }
            (None, Err(error)) => return Err(Problem::Input(error)),
        }
    }
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

impl Options {
    fn wants(&self, stored: &Stored) -> bool {
        let device = stored.about.get("device").map(String::as_str);
        let is_of_device = self.devices.is_empty()
            || self
                .devices
                .iter()
                .any(|wanted| Some(wanted.to_string().as_str()) == device);
        let has_topic = |text: &String| stored.topic.contains(text.as_str());
        is_of_device && (self.topic.is_empty() || self.topic.iter().any(has_topic))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_and_topics_choose_messages() {
        let stored = |device: &str, topic: &str| Stored {
            topic: topic.into(),
            encoding: "protobuf".into(),
            about: [("device".to_owned(), device.to_owned())].into(),
            schema: String::new(),
            schema_encoding: String::new(),
            descriptors: Vec::new(),
        };
        let options = |devices: &[&str], topics: &[&str]| Options {
            file: "a.mcap".into(),
            devices: devices
                .iter()
                .map(|device| device.parse().unwrap())
                .collect(),
            csv: false,
            jsonl: true,
            topic: topics.iter().map(|topic| (*topic).to_owned()).collect(),
            output: None,
        };
        let scan = stored("hokuyo:0", "/hokuyo/0/scan");
        assert!(options(&[], &[]).wants(&scan));
        assert!(options(&["hokuyo"], &[]).wants(&scan));
        assert!(!options(&["roboclaw"], &[]).wants(&scan));
        assert!(options(&["hokuyo"], &["speed", "scan"]).wants(&scan));
        assert!(!options(&[], &["speed"]).wants(&scan));
    }
}
