//! The progress of `amber record`: a line on a terminal, or JSON. IO.

use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

use amber_proto::{Device, printable_line};
use amber_record::Totals;
use amber_terminal::{Failure, duration, note, print_json};
use serde_json::json;

use super::report::Written;
use crate::file::is_stdout;
use crate::recordings::size;

/// The progress of the recording.
#[derive(Clone, Debug, Default)]
pub(super) struct Progress {
    /// The file that is being written, if it is not for a snapshot.
    pub(super) file: Option<PathBuf>,
    pub(super) file_bytes: u64,
    pub(super) totals: Totals,
    /// Time and bytes in memory, for a snapshot.
    pub(super) held: Option<(Duration, usize)>,
}

/// The output for progress.
pub(super) struct Shown {
    json: bool,
    is_terminal: bool,
}

impl Shown {
    /// `is_terminal` is about stderr.
    pub(super) fn new(json: bool, is_terminal: bool) -> Self {
        Self { json, is_terminal }
    }

    /// The recording begins.
    pub(super) fn started(
        &self,
        devices: &[Device],
        progress: &Progress,
        snapshot: Option<Duration>,
    ) -> Result<(), Failure> {
        if self.json {
            return self.progress_as("started", progress);
        }
        let devices = match devices {
            [] => "all devices".to_owned(),
            some => some
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join(", "),
        };
        let how = match (&progress.file, snapshot) {
            (Some(file), None) if is_stdout(file) => "to stdout".to_owned(),
            (Some(file), None) => format!("to {}", file.display()),
            (_, span) => {
                let span = duration(span.unwrap_or_default());
                format!("in memory, the last {span}; `amber snapshot` writes them")
            }
        };
        note(format!("recording {devices} {how}; Ctrl-C ends"));
        Ok(())
    }

    /// How far it is.
    pub(super) fn progress(&self, progress: &Progress) -> Result<(), Failure> {
        match self.json {
            true => self.progress_as("recording", progress),
            false if self.is_terminal => self.line(&line(progress)),
            false => Ok(()),
        }
    }

    /// Messages are missing now.
    pub(super) fn missing(&self, messages: u64) -> Result<(), Failure> {
        self.clear()?;
        match self.json {
            true => Ok(()),
            false => {
                note(format!(
                    "{messages} messages are missing: the disk or this machine is too slow"
                ));
                Ok(())
            }
        }
    }

    /// A snapshot is written, or could not be.
    pub(super) fn snapshot(&self, written: &Result<Written, Failure>) -> Result<(), Failure> {
        self.clear()?;
        match (written, self.json) {
            (Ok(written), true) => {
                let mut value = json!(written);
                value["state"] = "snapshot".into();
                print_json(&value)
            }
            (Ok(written), false) => {
                note(written.brief());
                Ok(())
            }
            (Err(failure), _) => {
                note(format!("no snapshot: {}", failure.text()));
                Ok(())
            }
        }
    }

    /// Removes the line, so that something else can be written.
    pub(super) fn clear(&self) -> Result<(), Failure> {
        match self.is_terminal && !self.json {
            true => self.line(""),
            false => Ok(()),
        }
    }

    fn progress_as(&self, state: &str, progress: &Progress) -> Result<(), Failure> {
        let Totals {
            messages,
            missing,
            missing_bytes,
            gaps,
            dropped,
            ..
        } = progress.totals;
        let mut value = json!({
            "state": state,
            "file": progress.file,
            "file_bytes": progress.file_bytes,
            "messages": messages,
            "missing_messages": missing,
            "missing_bytes": missing_bytes,
            "gaps": gaps,
            "dropped_by_mediator": dropped,
        });
        if let Some((span, bytes)) = progress.held {
            value["held_seconds"] = span.as_secs_f64().into();
            value["held_bytes"] = bytes.into();
        }
        print_json(&value)
    }

    /// Replaces the line on the terminal.
    fn line(&self, text: &str) -> Result<(), Failure> {
        // If the terminal is closed, the recording goes on.
        let text = printable_line(text);
        let _ = write!(io::stderr().lock(), "\r\x1b[K{text}");
        let _ = io::stderr().flush();
        Ok(())
    }
}

fn line(progress: &Progress) -> String {
    let Totals {
        messages,
        missing,
        first_ns,
        last_ns,
        ..
    } = progress.totals;
    let nanos = last_ns
        .unwrap_or_default()
        .saturating_sub(first_ns.unwrap_or_default());
    let time = duration(Duration::from_nanos(nanos));
    let size = match progress.held {
        Some((span, bytes)) => {
            let bytes = size::shown(bytes as u64);
            format!("{} and {bytes} in memory", duration(span))
        }
        None => size::shown(progress.file_bytes),
    };
    let missing = match missing {
        0 => String::new(),
        missing => format!(", {missing} missing"),
    };
    format!("{time}: {messages} messages{missing}, {size}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_has_time_messages_and_size() {
        let mut progress = Progress {
            file_bytes: 1_500_000,
            totals: Totals {
                messages: 1200,
                first_ns: Some(1_000_000_000),
                last_ns: Some(13_000_000_000),
                ..Totals::default()
            },
            ..Progress::default()
        };
        assert_eq!(line(&progress), "12s: 1200 messages, 1.5 MB");
        progress.totals.missing = 7;
        progress.held = Some((Duration::from_secs(30), 2_000_000));
        assert_eq!(
            line(&progress),
            "12s: 1200 messages, 7 missing, 30s and 2.0 MB in memory"
        );
    }
}
