//! `amber logs`: the stderr output of drivers and the mediator's messages about them. IO.

use std::time::Duration;

use amber_client::{LogEntry, LogReader, LogStart, Mediator};
use amber_proto::mediator::LogLine;
use amber_proto::mediator::log_line::{Level, Source};
use amber_proto::{Device, printable_line};
use amber_terminal::{Failure, has_colours, local_time, note, print, print_json, utc_time};
use anstyle::{AnsiColor, Style};
use serde::Serialize;
use tokio::time::sleep;

use super::devices::name;

pub(super) const HELP: &str = "\
The mediator keeps the last lines of each driver, even after it ends. Lines marked [amber] are from
the mediator itself. Times are local; with --json they are UTC.

Examples:
  amber logs
  amber logs hokuyo --follow
  amber logs --since 5m
  amber logs --since yesterday
  amber logs roboclaw -n 20 --json";

/// Options of `amber logs`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Only lines about the driver of this device, e.g. hokuyo or 4:0
    #[arg(value_parser = amber_terminal::device)]
    device: Option<Device>,
    /// Also show new lines, until Ctrl-C
    #[arg(short, long)]
    follow: bool,
    /// Only lines newer than this, e.g. 30s, 5m, 2h, yesterday or '2026-11-23 14:03'
    #[arg(long, value_name = "TIME", value_parser = amber_terminal::since)]
    since: Option<Duration>,
    /// Only the newest lines, at most this many
    #[arg(short = 'n', long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=1000))]
    lines: Option<u32>,
}

/// Time between attempts while the mediator does not answer.
const RETRY: Duration = Duration::from_millis(500);

pub(super) async fn run(mediator: Mediator, options: &Options, json: bool) -> Result<(), Failure> {
    let start = LogStart {
        device: options.device,
        since: options.since,
        last: options.lines,
    };
    let mut reader = LogReader::new(mediator, start);
    let colours = has_colours();
    let show = |entry: &LogEntry| match json {
        true => print_json(&as_json(entry)),
        false => print(as_text(entry, colours).as_bytes()),
    };
    if options.follow {
        return follow(reader, show).await;
    }
    let mut is_any = false;
    while let Some(entry) = reader.next_now().await? {
        show(&entry)?;
        is_any = true;
    }
    if !is_any && !json {
        note("no lines");
    }
    Ok(())
}

/// Shows old and new lines, until Ctrl-C. Only the first answer decides whether there is a mediator:
/// an interruption may come at any time after it, also while old lines are shown.
async fn follow(
    mut reader: LogReader,
    show: impl Fn(&LogEntry) -> Result<(), Failure>,
) -> Result<(), Failure> {
    if let Some(entry) = reader.next_now().await? {
        show(&entry)?;
    }
    let mut is_interrupted = false;
    loop {
        match reader.next().await {
            Ok(entry) => {
                is_interrupted = false;
                show(&entry)?;
            }
            Err(error) => {
                if !std::mem::replace(&mut is_interrupted, true) {
                    note(format!("interrupted: {error}; retrying"));
                }
                sleep(RETRY).await;
            }
        }
    }
}

/// One object per line of the log, and per gap.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Shown<'a> {
    Line {
        time: String,
        number: u64,
        device: String,
        source: &'static str,
        level: Option<&'static str>,
        text: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        cut_bytes: Option<u32>,
    },
    Missing {
        missing: u64,
    },
    Restarted {
        restarted: &'static str,
    },
}

fn as_json(entry: &LogEntry) -> Shown<'_> {
    match entry {
        LogEntry::Line(line) => Shown::Line {
            time: utc_time(line.time_ms),
            number: line.number,
            device: name(&line.device),
            source: match line.source() {
                Source::Driver => "driver",
                Source::Mediator => "mediator",
            },
            level: level(line).map(|level| match level {
                Level::Error => "error",
                Level::Warn => "warn",
                Level::Info => "info",
            }),
            text: &line.text,
            cut_bytes: line.cut_bytes,
        },
        LogEntry::Missing(missing) => Shown::Missing { missing: *missing },
        LogEntry::Restarted => Shown::Restarted {
            restarted: "mediator",
        },
    }
}

/// The text of drivers is escaped here, because the colours are not.
fn as_text(entry: &LogEntry, colours: bool) -> String {
    let line = match entry {
        LogEntry::Line(line) => line,
        LogEntry::Missing(1) => return "... 1 line missing ...\n".into(),
        LogEntry::Missing(count) => return format!("... {count} lines missing ...\n"),
        LogEntry::Restarted => return "... the mediator was restarted ...\n".into(),
    };
    let (time, device) = (local_time(line.time_ms), name(&line.device));
    let from = match line.source() {
        Source::Driver => "",
        Source::Mediator => " [amber]",
    };
    let cut = match line.cut_bytes() {
        0 => String::new(),
        bytes => format!(" [{bytes} bytes more]"),
    };
    let style = match level(line) {
        Some(Level::Error) if colours => Style::new().fg_color(Some(AnsiColor::Red.into())),
        Some(Level::Warn) if colours => Style::new().fg_color(Some(AnsiColor::Yellow.into())),
        _ => Style::new(),
    };
    let text = printable_line(&line.text);
    format!("{time} {device}{from}: {style}{text}{style:#}{cut}\n")
}

/// A newer mediator may know more levels.
fn level(line: &LogLine) -> Option<Level> {
    line.level.and_then(|level| Level::try_from(level).ok())
}

#[cfg(test)]
mod tests {
    use amber_proto::mediator::Device as WireDevice;

    use super::*;

    fn line(source: Source, level: Option<Level>, text: &str) -> LogEntry {
        LogEntry::Line(LogLine {
            number: 3,
            device: WireDevice { r#type: 4, id: 0 },
            time_ms: 1_700_000_581_042,
            source: source.into(),
            level: level.map(Into::into),
            text: text.into(),
            cut_bytes: None,
        })
    }

    /// Without the time, which depends on the time zone.
    fn text(entry: &LogEntry, colours: bool) -> String {
        as_text(entry, colours)["2023-11-14 22:23:01.042 ".len()..].to_owned()
    }

    #[test]
    fn lines_of_drivers_and_of_the_mediator_differ() {
        let warning = line(Source::Driver, Some(Level::Warn), "WARN it is hot");
        assert_eq!(text(&warning, false), "hokuyo:0: WARN it is hot\n");
        let coloured = "hokuyo:0: \x1b[33mWARN it is hot\x1b[0m\n";
        assert_eq!(text(&warning, true), coloured);
        let up = line(Source::Mediator, Some(Level::Info), "up");
        assert_eq!(text(&up, true), "hokuyo:0 [amber]: up\n");
    }

    #[test]
    fn foreign_text_cannot_use_the_terminal() {
        let evil = line(Source::Driver, None, "a\x1b[2J\rb\nc");
        assert_eq!(text(&evil, true), "hokuyo:0: a\\x1b[2J\\rb\\nc\n");
    }

    #[test]
    fn what_is_missing_is_shown() {
        let LogEntry::Line(mut long) = line(Source::Driver, None, "a") else {
            panic!("a line");
        };
        long.cut_bytes = Some(9);
        let long = LogEntry::Line(long);
        assert_eq!(text(&long, false), "hokuyo:0: a [9 bytes more]\n");
        let gap = |count| as_text(&LogEntry::Missing(count), true);
        assert_eq!(gap(1), "... 1 line missing ...\n");
        assert_eq!(gap(12), "... 12 lines missing ...\n");
    }

    #[test]
    fn programs_get_one_object_per_line_in_utc() {
        let json = |entry| serde_json::to_string(&as_json(&entry)).unwrap() + "\n";
        let up = line(Source::Mediator, Some(Level::Info), "up");
        let expected = "{\"time\":\"2023-11-14T22:23:01.042Z\",\"number\":3,\
            \"device\":\"hokuyo:0\",\"source\":\"mediator\",\"level\":\"info\",\"text\":\"up\"}\n";
        assert_eq!(json(up), expected);
        assert_eq!(json(LogEntry::Missing(4)), "{\"missing\":4}\n");
        let restarted = "{\"restarted\":\"mediator\"}\n";
        assert_eq!(json(LogEntry::Restarted), restarted);
    }
}
