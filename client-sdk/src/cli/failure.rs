//! What a verb ends with when it did not work out. IO.

use std::io::Write;
use std::process::ExitCode;

use amber_proto::{Device, printable};

use crate::error::{Error, Reason};

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
    AnswerIsNo,
    WrongRequest,
    /// Whoever read our output has had enough: no error.
    NobodyReads,
}

impl Failure {
    /// The answer is no: nobody answers, a driver is down. Exit code 1.
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            kind: Kind::AnswerIsNo,
            text: text.into(),
            hint: None,
            timed_out: None,
        }
    }

    /// The request was wrong. Exit code 2.
    pub fn wrong(text: impl Into<String>) -> Self {
        Self {
            kind: Kind::WrongRequest,
            ..Self::new(text)
        }
    }

    /// Adds what to try.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The device that did not answer in time, where that is the failure.
    pub(crate) fn timed_out(&self) -> Option<Device> {
        self.timed_out
    }

    /// The same failure with its reason.
    pub(crate) fn because(self, why: &str, hint: String) -> Self {
        Self {
            text: format!("{}: {why}", self.text),
            hint: Some(hint),
            ..self
        }
    }

    pub(crate) fn nobody_reads() -> Self {
        Self {
            kind: Kind::NobodyReads,
            ..Self::new("nobody reads the output")
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

/// Ends a command: prints an error with its hint to stderr and gives the exit
/// code, 0 done, 1 the answer is no, 2 the request was wrong.
pub fn exit_code(result: Result<(), Failure>) -> ExitCode {
    let Err(failure) = result else {
        return ExitCode::SUCCESS;
    };
    let code = match failure.kind {
        Kind::AnswerIsNo => 1,
        Kind::WrongRequest => 2,
        Kind::NobodyReads => return ExitCode::SUCCESS,
    };
    let mut err = std::io::stderr().lock();
    // When stderr is closed, too, the exit code is all that is left to say it.
    let _ = writeln!(err, "error: {}", printable(&failure.text));
    if let Some(hint) = failure.hint {
        let _ = writeln!(err, "hint: {}", printable(&hint));
    }
    ExitCode::from(code)
}
