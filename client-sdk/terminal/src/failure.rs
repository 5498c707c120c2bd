//! The failure of a command. IO.

use std::io::Write;
use std::process::ExitCode;

use amber_client::Error;
use amber_client::error::Reason;
use amber_proto::{Device, printable};

/// An error for people, and for programs an exit code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    kind: Kind,
    text: String,
    hint: Option<String>,
    /// The device that did not answer in time.
    timed_out: Option<Device>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Failed,
    Invalid,
    /// The reader of our output has closed it, which is not an error.
    OutputClosed,
}

impl Failure {
    /// The command failed: no answer, a driver that is down. Exit code 1.
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            kind: Kind::Failed,
            text: text.into(),
            hint: None,
            timed_out: None,
        }
    }

    /// The command line is invalid. Exit code 2.
    pub fn wrong(text: impl Into<String>) -> Self {
        Self {
            kind: Kind::Invalid,
            ..Self::new(text)
        }
    }

    /// Adds a hint.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The text of the failure, without the hint.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The device that did not answer in time, if that is the failure.
    pub fn timed_out(&self) -> Option<Device> {
        self.timed_out
    }

    /// The same failure with its reason.
    pub fn because(self, why: &str, hint: String) -> Self {
        Self {
            text: format!("{}: {why}", self.text),
            hint: Some(hint),
            ..self
        }
    }

    pub(crate) fn output_closed() -> Self {
        Self {
            kind: Kind::OutputClosed,
            ..Self::new("the output is closed")
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let wrong = matches!(
            &error,
            Error::TooLong { .. }
                | Error::UnknownHost { .. }
                | Error::Refused {
                    reason: Reason::BadRequest | Reason::NoSuchDevice,
                    ..
                }
        );
        let timed_out = match error {
            Error::TimedOut { device, .. } => Some(device),
            _ => None,
        };
        let failure = match wrong {
            true => Self::wrong(error.to_string()),
            false => Self::new(error.to_string()),
        };
        Self {
            hint: error.hint(),
            timed_out,
            ..failure
        }
    }
}

impl From<amber_reflect::Error> for Failure {
    fn from(error: amber_reflect::Error) -> Self {
        Self {
            hint: error.hint,
            ..Self::wrong(error.text)
        }
    }
}

/// Prints an error with its hint to stderr, and returns the exit code: 0 for success,
/// 1 for a failure, 2 for an invalid command line.
pub fn exit_code(result: Result<(), Failure>) -> ExitCode {
    let Err(failure) = result else {
        return ExitCode::SUCCESS;
    };
    let code = match failure.kind {
        Kind::Failed => 1,
        Kind::Invalid => 2,
        Kind::OutputClosed => return ExitCode::SUCCESS,
    };
    let mut err = std::io::stderr().lock();
    // If stderr is closed, only the exit code reports the failure.
    let _ = writeln!(err, "error: {}", printable(&failure.text));
    if let Some(hint) = failure.hint {
        let _ = writeln!(err, "hint: {}", printable(&hint));
    }
    ExitCode::from(code)
}
