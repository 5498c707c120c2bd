//! What a check found, for people and for programs. PURE.

use std::fmt::Write as _;

use amber_client::cli::Human;
use serde::Serialize;

/// How a check ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// All is well.
    Pass,
    /// Something optional is missing, or unusual but harmless.
    Note,
    /// The protocol is not kept.
    Fail,
    /// There is nothing to check here.
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

/// One check and how it ended.
#[derive(Clone, Debug, Serialize)]
pub struct Checked {
    /// The name for `--only` and `--skip`.
    pub name: &'static str,
    /// What should hold.
    pub title: &'static str,
    /// How it ended.
    pub outcome: Outcome,
    /// What was seen, in one line.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub summary: String,
    /// Milliseconds that it took.
    pub ms: u64,
    /// More, when there is something to mend.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<Details>,
}

/// All that helps to mend something.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Details {
    /// What was sent, the last frames.
    pub sent: Vec<Shown>,
    /// What came back, the last frames.
    pub received: Vec<Shown>,
    /// What should have come.
    pub expected: String,
    /// Why that matters.
    pub why: String,
    /// How it is usually mended.
    pub mend: String,
    /// The last lines that the program wrote to stderr.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stderr: Vec<String>,
}

/// Bytes, decoded and as they are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Shown {
    /// What they mean.
    pub text: String,
    /// The first of them in hex.
    pub hex: String,
    /// How many they are.
    pub bytes: usize,
}

/// All checks of one program.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// What was run.
    pub command: Vec<String>,
    /// In whose place it stood.
    pub device: Option<String>,
    /// One after the other.
    pub checks: Vec<Checked>,
    /// How many passed.
    pub passed: usize,
    /// How many have a note.
    pub notes: usize,
    /// How many failed.
    pub failed: usize,
    /// How many did not apply.
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

    /// The last line: how many of each.
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

    /// What there is to mend, if anything.
    pub fn explanation(&self) -> String {
        let Some(details) = &self.details else {
            return String::new();
        };
        let mut out = String::new();
        for (label, frames) in [("to it", &details.sent), ("from it", &details.received)] {
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
            ("mend it", &details.mend),
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

/// Lines of at most so many characters, cut between words.
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
    fn a_failure_says_all_that_helps() {
        let shown = Shown {
            text: "clients [5]  PONG".into(),
            hex: "00 03".into(),
            bytes: 9,
        };
        let failed = Checked {
            name: "ping",
            title: "a PING is answered",
            outcome: Outcome::Fail,
            summary: "ackNum is missing".into(),
            ms: 3,
            details: Some(Details {
                sent: vec![shown.clone()],
                received: vec![],
                expected: "a PONG".into(),
                why: "word ".repeat(30),
                mend: "set it".into(),
                stderr: vec!["oops".into()],
            }),
        };
        let report = Report::new(vec!["x".into()], None, vec![failed]);
        let text = report.human();
        for part in [
            "FAIL  ping             a PING is answered: ackNum is missing\n",
            "        to it      clients [5]  PONG\n                   00 03 (9 bytes)\n",
            "        from it    nothing\n",
            "        stderr     oops\n",
            "\n0 passed, 1 FAILED\n",
        ] {
            assert!(text.contains(part), "{part:?} is not in\n{text}");
        }
        assert!(text.lines().all(|line| line.len() <= 120));
        let json = serde_json::to_value(&report).unwrap();
        assert_eq!(json["checks"][0]["outcome"], "fail");
        assert_eq!(json["failed"], 1);
    }
}
