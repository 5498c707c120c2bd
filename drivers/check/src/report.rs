//! The results of checks, for people and for programs. PURE.

use std::fmt::Write as _;

use amber_reflect::explain::spaced;
use amber_terminal::Human;
use serde::Serialize;

use crate::limits;

/// How a check ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The check passed.
    Pass,
    /// Something optional is missing, or something is unusual but harmless.
    Note,
    /// The program violates the protocol.
    Fail,
    /// The check does not apply to this program.
    NotApplicable,
}

impl Outcome {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Note => "note",
            Self::Fail => "FAIL",
            Self::NotApplicable => "n/a",
        }
    }
}

/// One check and its result.
#[derive(Clone, Debug, Serialize)]
pub struct Checked {
    /// The name for `--only` and `--skip`.
    pub name: &'static str,
    /// The property that is checked.
    pub title: &'static str,
    /// The result.
    pub outcome: Outcome,
    /// The observation in one line.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub summary: String,
    /// Duration in milliseconds.
    pub ms: u64,
    /// Details of a failure or a note.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<Details>,
}

/// Everything that helps to fix a failure.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Details {
    /// The last frames that were sent.
    pub sent: Vec<Shown>,
    /// The last frames that were received.
    pub received: Vec<Shown>,
    /// The expected behaviour.
    pub expected: String,
    /// The reason for the check.
    pub why: String,
    /// The usual fix. Programs may use the old name of the field.
    #[serde(rename = "mend")]
    pub fix: String,
    /// The last lines that the program wrote to stderr.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stderr: Vec<String>,
}

/// Bytes, decoded and in hex.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Shown {
    /// Their meaning.
    pub text: String,
    /// The first of them in hex.
    pub hex: String,
    /// The number of bytes.
    pub bytes: usize,
}

impl Shown {
    /// Bytes with their meaning.
    pub(crate) fn new(bytes: &[u8], text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            hex: spaced(bytes, limits::SHOWN_BYTES),
            bytes: bytes.len(),
        }
    }
}

/// All checks of one program.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The command that was run.
    pub command: Vec<String>,
    /// The device that the driver served.
    pub device: Option<String>,
    /// The checks in their order.
    pub checks: Vec<Checked>,
    /// Checks that passed.
    pub passed: usize,
    /// Checks with a note.
    pub notes: usize,
    /// Checks that failed.
    pub failed: usize,
    /// Checks that did not apply.
    pub not_applicable: usize,
}

impl Report {
    /// Counts the outcomes.
    pub fn new(command: Vec<String>, device: Option<String>, checks: Vec<Checked>) -> Self {
        let count = |outcome| {
            let of = checks.iter().filter(|check| check.outcome == outcome);
            of.count()
        };
        Self {
            passed: count(Outcome::Pass),
            notes: count(Outcome::Note),
            failed: count(Outcome::Fail),
            not_applicable: count(Outcome::NotApplicable),
            command,
            device,
            checks,
        }
    }

    /// The check of this name.
    pub fn check(&self, name: &str) -> Option<&Checked> {
        self.checks.iter().find(|check| check.name == name)
    }

    /// The last line: the number of checks with each result.
    pub fn summary(&self) -> String {
        let mut parts = vec![format!("{} passed", self.passed)];
        for (count, word) in [
            (self.notes, "with a note"),
            (self.failed, "FAILED"),
            (self.not_applicable, "not applicable"),
        ] {
            if count > 0 {
                parts.push(format!("{count} {word}"));
            }
        }
        parts.join(", ") + "\n"
    }
}

impl Checked {
    /// One line for the table.
    pub fn line(&self) -> String {
        let what = if self.summary.is_empty() {
            self.title.to_owned()
        } else {
            format!("{}: {}", self.title, self.summary)
        };
        format!("{:5} {:16} {what}\n", self.outcome.word(), self.name)
    }

    /// The details of a failure or a note, if there are any.
    pub fn explanation(&self) -> String {
        let Some(details) = &self.details else {
            return String::new();
        };
        let mut out = String::new();
        for (label, frames) in [("sent", &details.sent), ("received", &details.received)] {
            if frames.is_empty() {
                let _ = writeln!(out, "        {label:10} nothing");
            }
            for (i, frame) in frames.iter().enumerate() {
                let label = if i == 0 { label } else { "" };
                let _ = writeln!(out, "        {label:10} {}", frame.text);
                let _ = writeln!(
                    out,
                    "        {:10} {} ({} bytes)",
                    "", frame.hex, frame.bytes
                );
            }
        }
        for (label, text) in [
            ("expected", &details.expected),
            ("why", &details.why),
            ("fix", &details.fix),
        ] {
            for (i, line) in wrapped(text, 84).iter().enumerate() {
                let label = if i == 0 { label } else { "" };
                let _ = writeln!(out, "        {label:10} {line}");
            }
        }
        for (i, line) in details.stderr.iter().enumerate() {
            let label = if i == 0 { "stderr" } else { "" };
            let _ = writeln!(out, "        {label:10} {line}");
        }
        out
    }
}

impl Human for Report {
    fn human(&self) -> String {
        let checks = self.checks.iter();
        let lines = checks.map(|check| check.line() + &check.explanation());
        lines.collect::<String>() + "\n" + &self.summary()
    }
}

/// Lines of at most `width` characters, cut between words.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.into()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_shows_all_details() {
        let shown = Shown {
            text: "clients [5]  PONG".into(),
            hex: "00 03".into(),
            bytes: 9,
        };
        let failed = Checked {
            name: "ping",
            title: "answers a PING",
            outcome: Outcome::Fail,
            summary: "ackNum is missing".into(),
            ms: 3,
            details: Some(Details {
                sent: vec![shown.clone()],
                received: vec![],
                expected: "a PONG".into(),
                why: "word ".repeat(30),
                fix: "set it".into(),
                stderr: vec!["oops".into()],
            }),
        };
        let report = Report::new(vec!["x".into()], None, vec![failed]);
        let text = report.human();
        for part in [
            "FAIL  ping             answers a PING: ackNum is missing\n",
            "        sent       clients [5]  PONG\n                   00 03 (9 bytes)\n",
            "        received   nothing\n",
            "        fix        set it\n",
            "        stderr     oops\n",
            "\n0 passed, 1 FAILED\n",
        ] {
            assert!(text.contains(part), "no {part:?} in\n{text}");
        }
        assert!(text.lines().all(|line| line.len() <= 120));
        let json = serde_json::to_value(&report).unwrap();
        assert_eq!(json["checks"][0]["outcome"], "fail");
        assert_eq!(json["failed"], 1);
        assert_eq!(json["checks"][0]["details"]["mend"], "set it");
    }
}
