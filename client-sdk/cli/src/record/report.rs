//! The final report of a recording. PURE.

use std::path::PathBuf;
use std::time::Duration;

use amber_record::Totals;
use amber_terminal::{Human, duration, fields};
use serde::Serialize;

use crate::recordings::size;

/// A finished file.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Written {
    pub(super) file: PathBuf,
    pub(super) bytes: u64,
    pub(super) messages: u64,
    pub(super) missing_messages: u64,
    pub(super) seconds: f64,
    /// The reason for a snapshot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reason: Option<String>,
}

impl Written {
    pub(super) fn new(file: PathBuf, bytes: u64, totals: Totals, reason: Option<String>) -> Self {
        Self {
            file,
            bytes,
            messages: totals.messages,
            missing_messages: totals.missing,
            seconds: seconds(totals),
            reason,
        }
    }

    /// One line about it.
    pub(super) fn brief(&self) -> String {
        let size = size::shown(self.bytes);
        let time = duration(Duration::from_secs_f64(self.seconds));
        let missing = match self.missing_messages {
            0 => String::new(),
            some => format!(", {some} missing"),
        };
        let why = self.reason.as_ref().map(|why| format!(" ({why})"));
        format!(
            "wrote {}: {} messages{missing}, {time}, {size}{}",
            self.file.display(),
            self.messages,
            why.unwrap_or_default()
        )
    }
}

fn seconds(totals: Totals) -> f64 {
    let ends = totals.first_ns.zip(totals.last_ns);
    let nanos = ends.map_or(0, |(first, last)| last.saturating_sub(first));
    nanos as f64 / 1e9
}

/// The result of a run.
#[derive(Clone, Debug)]
pub(super) struct Outcome {
    pub(super) files: Vec<Written>,
    pub(super) totals: Totals,
    /// The feed has ended in order.
    pub(super) ended: bool,
}

/// The result of `amber record`.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Report {
    state: &'static str,
    files: Vec<Written>,
    seconds: f64,
    messages: u64,
    message_bytes: u64,
    complete: bool,
    missing_messages: u64,
    missing_bytes: u64,
    gaps: u64,
    dropped_by_mediator: u64,
    #[serde(skip)]
    is_snapshot: bool,
    #[serde(skip)]
    is_ended: bool,
}

impl Report {
    pub(super) fn new(outcome: Outcome, is_snapshot: bool) -> Self {
        let Outcome {
            files,
            totals,
            ended,
        } = outcome;
        Self {
            state: "finished",
            files,
            seconds: seconds(totals),
            messages: totals.messages,
            message_bytes: totals.bytes,
            complete: ended && totals.missing == 0,
            missing_messages: totals.missing,
            missing_bytes: totals.missing_bytes,
            gaps: totals.gaps,
            dropped_by_mediator: totals.dropped,
            is_snapshot,
            is_ended: ended,
        }
    }

    /// Whether the feed has ended in order.
    pub(super) fn is_ended(&self) -> bool {
        self.is_ended
    }

    /// One line.
    pub(super) fn brief(&self) -> String {
        let missing = self.missing().map(|missing| format!("; {missing}"));
        format!(
            "recorded {} messages in {}{}",
            self.messages,
            duration(Duration::from_secs_f64(self.seconds)),
            missing.unwrap_or_default()
        )
    }

    fn missing(&self) -> Option<String> {
        let size = size::shown(self.missing_bytes);
        let times = match self.gaps {
            1 => "in one gap".to_owned(),
            gaps => format!("in {gaps} gaps"),
        };
        (self.missing_messages > 0).then(|| {
            format!(
                "{} messages ({size}) are missing {times}",
                self.missing_messages
            )
        })
    }
}

impl Human for Report {
    fn human(&self) -> String {
        let files = self.files.iter().map(|written| {
            let size = size::shown(written.bytes);
            let name = match self.is_snapshot {
                true => "snapshot",
                false => "file",
            };
            (name, Some(format!("{} ({size})", written.file.display())))
        });
        let time = duration(Duration::from_secs_f64(self.seconds));
        let missing = match self.missing() {
            Some(missing) => format!("{missing}: the disk or this machine was too slow"),
            None if self.is_ended => "nothing".to_owned(),
            None => "what came after the connection was lost".to_owned(),
        };
        let dropped = (self.dropped_by_mediator > 0).then(|| {
            let dropped = self.dropped_by_mediator;
            format!("{dropped} messages; `amber status` shows the reason")
        });
        let facts = [
            ("time", Some(time)),
            ("messages", Some(self.messages.to_string())),
            ("missing", Some(missing)),
            ("dropped by the mediator", dropped),
        ];
        let all = files.chain(facts).filter(|(_, value)| value.is_some());
        fields(&all.collect::<Vec<_>>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_said() {
        let totals = Totals {
            messages: 120,
            missing: 7,
            missing_bytes: 1400,
            gaps: 2,
            dropped: 3,
            first_ns: Some(0),
            last_ns: Some(12_000_000_000),
            ..Totals::default()
        };
        let file = Written::new("a.mcap".into(), 5000, totals, None);
        assert_eq!(
            file.brief(),
            "wrote a.mcap: 120 messages, 7 missing, 12s, 5.0 kB"
        );
        let outcome = Outcome {
            files: vec![file],
            totals,
            ended: true,
        };
        let report = Report::new(outcome.clone(), false);
        assert_eq!(
            report.human(),
            "file:                    a.mcap (5.0 kB)\n\
             time:                    12s\n\
             messages:                120\n\
             missing:                 7 messages (1.4 kB) are missing in 2 gaps: the disk or this \
             machine was too slow\n\
             dropped by the mediator: 3 messages; `amber status` shows the reason\n"
        );
        assert!(!report.complete);
        let whole = Totals {
            missing: 0,
            dropped: 0,
            ..totals
        };
        let report = |ended| {
            let totals = whole;
            Report::new(
                Outcome {
                    totals,
                    ended,
                    ..outcome.clone()
                },
                false,
            )
        };
        assert!(report(true).complete && report(true).human().contains("missing:  nothing"));
        assert!(!report(false).complete && report(false).human().contains("connection"));
    }
}
