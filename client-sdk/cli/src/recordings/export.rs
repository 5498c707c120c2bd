//! `amber export`: messages of a recording as JSON lines or as a table, or its pictures. IO.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;

use amber_proto::Device;
use amber_record::{Damage, Effect, Entry, Error, Form, Messages, Stored, Table, json_line};
use amber_terminal::{Failure, note, show};
use serde_json::Value;

use super::info::{cannot_read, describe, open};
use super::{cannot_write, pictures};
use crate::file;

pub(in super::super) const HELP: &str = "\
Examples:
  amber export drive.mcap --jsonl > drive.jsonl
  amber export drive.mcap --csv --topic currentSpeed -o speeds.csv
  amber export drive.mcap --csv roboclaw
  amber export drive.mcap --jpeg pictures camera:0

In a table, text that a spreadsheet would take for a formula gets a ' before it, and control
characters are escaped; --raw leaves all text as it was sent.

With --jpeg, each picture becomes a file in a new folder, named by the time at which the camera took
it, and index.csv lists them.

A table has one column for each field that occurs; a list fills one cell, and long data is only
counted. Choose a single topic for
a table without empty cells. `amber info` lists the topics.";

/// Options of `amber export`.
#[derive(Clone, Debug, clap::Args)]
#[command(group(clap::ArgGroup::new("format").required(true)))]
pub struct Options {
    /// Recording
    file: PathBuf,
    /// Devices to export, e.g. hokuyo roboclaw:0 [default: all]
    #[arg(value_parser = amber_terminal::device)]
    devices: Vec<Device>,
    /// Write a table (CSV)
    #[arg(long, group = "format")]
    csv: bool,
    /// Write one JSON object per line
    #[arg(long, group = "format")]
    jsonl: bool,
    /// Write each picture of cameras as a file into this new folder, with a table of them
    #[arg(
        long,
        group = "format",
        value_name = "FOLDER",
        conflicts_with = "output"
    )]
    jpeg: Option<PathBuf>,
    /// Write text into the table exactly as it was sent. Spreadsheets may run it as a formula
    #[arg(long, requires = "csv")]
    raw: bool,
    /// Only topics with this text, e.g. /hokuyo/0/scan (may be given several times)
    #[arg(long, value_name = "TEXT")]
    topic: Vec<String>,
    /// File to write [default: stdout]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(in super::super) fn run(options: &Options, json: bool) -> Result<(), Failure> {
    if let Some(folder) = &options.jpeg {
        let written = pictures::write(&options.file, folder, |stored| options.wants(stored))?;
        return show(&written, json);
    }
    let path = options.output.clone().unwrap_or_else(|| "-".into());
    let mut output = file::Output::create(&path)?;
    let written = match options.csv {
        true => table(options, &mut output),
        false => lines(options, &mut output),
    };
    let done = match written {
        Err(Problem::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
        Err(Problem::Output(error)) => return Err(cannot_write(&path, &error)),
        Err(Problem::Input(error)) => return Err(cannot_read(&options.file, error)),
        Err(Problem::Open(failure)) => return Err(failure),
        Ok(written) => written,
    };
    for damage in &done.damage {
        let path = options.file.display();
        note(format!("{path} is damaged: {}", describe(damage)));
    }
    if done.unreadable > 0 {
        note(format!(
            "{} messages have no usable schema and were left out",
            done.unreadable
        ));
    }
    if done.rows == 0 {
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
pub(super) fn io_error(error: csv::Error) -> io::Error {
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

/// What was read.
#[derive(Default)]
struct Done {
    rows: u64,
    /// Messages that cannot be read.
    unreadable: u64,
    damage: Vec<Damage>,
}

fn lines(options: &Options, output: &mut impl Write) -> Result<Done, Problem> {
    read(options, Form::Whole, |_, topic, time_ns, value| {
        writeln!(output, "{}", json_line(time_ns, topic, &value))
    })
}

/// Reads the file twice: the heading needs all columns.
fn table(options: &Options, output: &mut impl Write) -> Result<Done, Problem> {
    let mut columns = Table::new();
    columns.set_raw(options.raw);
    read(options, Form::Cells, |_, _, _, value| {
        columns.add_columns(&value);
        Ok(())
    })?;
    let mut output = csv::Writer::from_writer(output);
    let fixed = ["time_ns", "topic"].map(str::to_owned);
    let names = columns.columns().iter().map(|name| columns.text(name));
    output.write_record(
        fixed
            .into_iter()
            .map(Cow::Owned)
            .chain(names)
            .map(Cow::into_owned),
    )?;
    let done = read(options, Form::Cells, |_, topic, time_ns, value| {
        let fixed = [time_ns.to_string(), columns.text(topic).into_owned()];
        let row = fixed.into_iter().chain(columns.row(&value));
        output.write_record(row).map_err(io_error)
    })?;
    output.flush()?;
    Ok(done)
}

/// Reads all messages that are wanted.
fn read(
    options: &Options,
    form: Form,
    mut each: impl FnMut(u16, &str, u64, Value) -> io::Result<()>,
) -> Result<Done, Problem> {
    let file: File = open(&options.file).map_err(Problem::Open)?;
    let mut messages = Messages::new(file).map_err(Problem::Input)?;
    let (mut table, mut done) = (Table::new(), Done::default());
    let mut failed = None;
    while messages
        .next(|channels, entry| {
            let (channel, header, data) = match entry {
                Entry::Message {
                    channel,
                    header,
                    data,
                    ..
                } => (channel, header, data),
                Entry::Damage(damage) if damage.effect != Effect::Harmless => {
                    done.damage.push(damage);
                    return;
                }
                _ => return,
            };
            let stored = channels
                .get(&channel)
                .filter(|stored| options.wants(stored));
            let Some(stored) = stored else {
                return;
            };
            match table.value(channel, stored, data, form) {
                Some(value) => {
                    done.rows += 1;
                    failed = each(channel, &stored.topic, header.log_time, value).err();
                }
                None => done.unreadable += 1,
            }
        })
        .map_err(Problem::Input)?
    {
        if let Some(error) = failed.take() {
            return Err(error.into());
        }
    }
    match failed {
        Some(error) => Err(error.into()),
        None => Ok(done),
    }
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
            jpeg: None,
            raw: false,
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
