//! The messages between the terminal and the player: lines of JSON. PURE.

use amber_record::GapInfo;
use serde::{Deserialize, Serialize};

/// A command of the user.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Command {
    /// Pause or resume.
    Toggle,
    /// Pause, and play one message.
    Step,
    /// Jump by this many milliseconds.
    JumpMs(i64),
    /// Multiply the rate by this factor.
    Faster(f64),
}

/// A report of the player.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Report {
    /// Its state, a few times per second.
    Status(Status),
    /// An encoded `amber.mediator_proto.Event` of the recording.
    Event(Vec<u8>),
    /// Messages are missing in the recording here.
    Gap(Gap),
    /// A part of the recording is damaged: what is wrong, and the messages that are left out.
    Damaged(String, Gap),
    /// The recording starts again.
    Again,
    /// The recording has ended.
    End,
    /// The file cannot be read here.
    Problem(String),
}

/// The state of the player.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// The time in the recording, in nanoseconds since 1970.
    pub time_ns: u64,
    /// The time since the start of the recording, in seconds.
    pub position_s: f64,
    /// The length of the recording, in seconds.
    pub length_s: f64,
    /// The rate, relative to the recording.
    pub rate: f64,
    /// Whether it is paused.
    pub paused: bool,
    /// Messages that were published to subscribers.
    pub published: u64,
    /// Requests that got an answer.
    pub answered: u64,
    /// Requests and commands that were refused.
    pub refused: u64,
    /// Messages that could not be sent: too long or malformed, or the CPU was overloaded.
    pub not_sent: u64,
}

/// See [`GapInfo`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    /// The first missing message, in nanoseconds since 1970.
    pub first_ns: u64,
    /// The last missing message, in nanoseconds since 1970.
    pub last_ns: u64,
    /// The number of missing messages.
    pub messages: u64,
    pub bytes: u64,
}

impl From<GapInfo> for Gap {
    fn from(gap: GapInfo) -> Self {
        Self {
            first_ns: gap.first_ns,
            last_ns: gap.last_ns,
            messages: gap.messages,
            bytes: gap.bytes,
        }
    }
}

/// One line.
pub(crate) fn line(value: &impl Serialize) -> String {
    let mut line = amber_proto::printable_json(serde_json::to_string(value).unwrap_or_default());
    line.push('\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_again() {
        for command in [
            Command::Toggle,
            Command::JumpMs(-5000),
            Command::Faster(2.0),
        ] {
            assert_eq!(
                serde_json::from_str::<Command>(&line(&command)).unwrap(),
                command
            );
        }
        for report in [
            Report::Status(Status::default()),
            Report::Event(vec![1, 2]),
            Report::Problem("two\nlines".into()),
        ] {
            let line = line(&report);
            assert_eq!(line.matches('\n').count(), 1);
            assert_eq!(serde_json::from_str::<Report>(&line).unwrap(), report);
        }
    }
}
