//! `amber info`: shows the contents of a recording. IO.

use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::Duration;

use amber_proto::{Device, printable_line};
use amber_record::{ChannelInfo, Damage, Effect, Error, Info, Messages, Stored};
use amber_terminal::{Failure, Human, Names, duration, fields, show, table, usual};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::Serialize;

use super::size;

pub(in super::super) const HELP: &str = "\
Examples:
  amber info drive.mcap
  amber info drive.mcap --json";

/// Options of `amber info`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Recording
    file: PathBuf,
}

pub(in super::super) fn run(options: &Options, json: bool) -> Result<(), Failure> {
    let path = &options.file;
    let mut file = open(path)?;
    let bytes = file.seek(SeekFrom::End(0)).unwrap_or_default();
    let info = Info::read(file).map_err(|error| cannot_read(path, error))?;
    let shown = Shown {
        file: path.clone(),
        bytes,
        complete: info.is_complete(),
        info,
    };
    show(&shown, json)
}

/// The types of the devices in a recording by their names. Empty if it cannot be read, or comes through
/// a pipe, which can be read only once.
pub(in super::super) fn devices_in(path: &Path) -> Names {
    let file = path.is_file().then(|| File::open(path).ok()).flatten();
    let Some(mut messages) = file.and_then(|file| Messages::new(file).ok()) else {
        return Names::new();
    };
    while messages.next(|_, _| {}).unwrap_or(false) {}
    let named = |channel: &Stored| {
        let device: Device = channel.about.get("device")?.parse().ok()?;
        // Other programs have topics of their own.
        let is_own = channel.schema.starts_with("amber.recorded.");
        let channel = Some(channel).filter(|_| is_own)?;
        let name = channel.topic.split('/').nth(1)?;
        Some((usual(name), device.device_type))
    };
    messages.channels().values().filter_map(named).collect()
}

/// Opens a recording. What comes through a pipe is first copied to the temporary folder.
pub(super) fn open(path: &Path) -> Result<File, Failure> {
    if path.is_dir() {
        return Err(Failure::wrong(format!("{} is a folder", path.display())));
    }
    let opened = File::open(path).and_then(|mut file| match file.stream_position() {
        Ok(_) => Ok(file),
        Err(_) => {
            let mut copy = tempfile::tempfile()?;
            io::copy(&mut file, &mut copy)?;
            Ok(copy)
        }
    });
    let shown = path.display();
    opened.map_err(|error| Failure::wrong(format!("cannot read {shown}: {error}")))
}

/// A recording cannot be read.
pub(super) fn cannot_read(path: &Path, error: Error) -> Failure {
    let path = path.display();
    match error {
        Error::Io(error) => Failure::new(format!("cannot read {path}: {error}")),
        Error::Mcap(error) => Failure::wrong(format!("{path} is not a recording: {error}"))
            .hint("recordings are MCAP files, as `amber record` writes them"),
    }
}

#[derive(Serialize)]
struct Shown {
    file: PathBuf,
    bytes: u64,
    complete: bool,
    #[serde(flatten)]
    info: Info,
}

impl Human for Shown {
    fn human(&self) -> String {
        let Info {
            messages,
            others,
            first_ns,
            last_ns,
            finished,
            damage,
            attachments,
            channels,
            gaps,
            metadata,
        } = &self.info;
        let fact = |record: &str, name: &str| metadata.get(record)?.get(name).cloned();
        let length = last_ns.unwrap_or_default() - first_ns.unwrap_or_default();
        let length = Duration::from_nanos(length);
        let size = size::shown(self.bytes);
        let missing: u64 = gaps.iter().map(|gap| gap.messages).sum();
        let bytes: u64 = gaps.iter().map(|gap| gap.bytes).sum();
        let is_damaged = damage.iter().any(|it| it.effect != Effect::Harmless);
        let complete = match (finished, missing, fact("amber.end", "end")) {
            _ if self.complete => "yes".to_owned(),
            _ if is_damaged => {
                "no: it is damaged; `amber recover` copies all that is intact".into()
            }
            (false, ..) => {
                "no: the recorder was killed; run `amber recover` to repair the file".into()
            }
            (_, _, Some(why)) if why.starts_with("recovered") => format!("no: {why}"),
            (_, 1.., _) => {
                let bytes = size::shown(bytes);
                format!("no: {missing} messages ({bytes}) are missing")
            }
            (_, _, Some(why)) => format!("no: {why}"),
            _ => "unknown: it does not say".into(),
        };
        let mut out = fields(&[
            ("file", Some(format!("{} ({size})", self.file.display()))),
            ("start", first_ns.map(local)),
            ("length", Some(duration(length))),
            ("messages", Some(messages.to_string())),
            (
                "others",
                (*others > 0).then(|| format!("{others} (events, and those for viewers)")),
            ),
            ("complete", Some(complete)),
            ("snapshot", fact("amber.snapshot", "reason")),
            ("next file", fact("amber.end", "next_file")),
            ("mediator", fact("amber.start", "mediator_version")),
        ]);
        for gap in gaps {
            let start = gap.first_ns.saturating_sub(first_ns.unwrap_or_default());
            let length = gap.last_ns.saturating_sub(gap.first_ns);
            let [start, length] = [start, length].map(|nanos| nanos as f64 / 1e9);
            let (messages, bytes) = (messages_of(gap.messages), size::shown(gap.bytes));
            out += &format!("gap:       {messages} ({bytes}) at {start:.3} s, for {length:.3} s\n");
        }
        for damage in damage {
            out += &format!("damage:    {}\n", describe(damage));
        }
        for (name, bytes) in attachments {
            let bytes = size::shown(*bytes);
            out += &format!("attached:  {} ({bytes})\n", printable_line(name));
        }
        let rows: Vec<_> = channels.iter().map(row).collect();
        out + "\n"
            + &table(
                ["TOPIC", "MESSAGES", "PER SECOND", "BYTES", "SCHEMA"],
                &rows,
            )
    }
}

/// A number of messages, where 0 means that it is not known.
pub(super) fn messages_of(count: u64) -> String {
    match count {
        0 => "an unknown number of messages".to_owned(),
        1 => "1 message".to_owned(),
        count => format!("{count} messages"),
    }
}

/// A damaged part in one line.
pub(super) fn describe(damage: &Damage) -> String {
    let effect = match damage.effect {
        Effect::Harmless => "no message is lost".to_owned(),
        Effect::Doubtful => format!("{} may be wrong", messages_of(damage.messages)),
        Effect::Lost => format!("{} lost", messages_of(damage.messages)),
    };
    let times = match (damage.first_ns, damage.last_ns) {
        (Some(first), Some(last)) if first < last => {
            format!(", {} to {}", local(first), local(last))
        }
        (Some(at), _) | (None, Some(at)) => format!(", {}", local(at)),
        (None, None) => String::new(),
    };
    printable_line(&format!("{damage}: {effect}{times}")).into_owned()
}

fn row(channel: &ChannelInfo) -> [String; 5] {
    let ends = channel.first_ns.zip(channel.last_ns);
    let seconds = ends.map_or(0.0, |(first, last)| (last - first) as f64 / 1e9);
    // Intervals, which are one less than messages.
    let rate = match channel.messages {
        2.. if seconds > 0.0 => format!("{:.1}", (channel.messages - 1) as f64 / seconds),
        _ => "-".into(),
    };
    [
        channel.topic.clone(),
        channel.messages.to_string(),
        rate,
        size::shown(channel.bytes),
        channel.schema.clone(),
    ]
}

fn local(nanos: u64) -> String {
    let time = i64::try_from(nanos / 1_000_000).unwrap_or(i64::MAX);
    let time = Timestamp::from_millisecond(time).unwrap_or(Timestamp::MAX);
    let time = time.to_zoned_datetime(TimeZone::system());
    time.strftime("%Y-%m-%d %H:%M:%S%.3f").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recording_is_summed_up() {
        let mut info = Info {
            messages: 11,
            first_ns: Some(1_700_000_000_000_000_000),
            last_ns: Some(1_700_000_001_000_000_000),
            finished: true,
            channels: vec![ChannelInfo {
                topic: "/hokuyo/0/scan".into(),
                schema: "amber.recorded.Hokuyo".into(),
                messages: 11,
                bytes: 75_000,
                first_ns: Some(0),
                last_ns: Some(1_000_000_000),
            }],
            ..Info::default()
        };
        let end = [("complete".to_owned(), "yes".to_owned())];
        info.metadata.insert("amber.end".into(), end.into());
        let shown = |info: &Info| {
            Shown {
                file: "a.mcap".into(),
                bytes: 80_000,
                complete: info.is_complete(),
                info: info.clone(),
            }
            .human()
        };
        let text = shown(&info);
        assert!(text.contains("complete:  yes\n"), "{text}");
        let row = "/hokuyo/0/scan  11        10.0        75.0 kB  amber.recorded.Hokuyo\n";
        assert!(text.ends_with(row), "{text}");
        info.gaps.push(amber_record::GapInfo {
            first_ns: 1_700_000_000_500_000_000,
            last_ns: 1_700_000_000_750_000_000,
            messages: 7,
            bytes: 1400,
        });
        info.metadata.clear();
        let text = shown(&info);
        assert!(
            text.contains("no: 7 messages (1.4 kB) are missing\n"),
            "{text}"
        );
        assert!(
            text.contains("7 messages (1.4 kB) at 0.500 s, for 0.250 s\n"),
            "{text}"
        );
        info.finished = false;
        assert!(shown(&info).contains("amber recover"), "{}", shown(&info));
    }
}
