//! Errors in a configuration: the position, and a hint. PURE.

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::text::beginning;

/// The reason why a configuration is invalid.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read {}: {error}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The reason.
        error: io::Error,
    },
    /// The file contains an error.
    #[error("{}:{line}:{column}: {message}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Counted from 1.
        line: usize,
        /// Counted from 1.
        column: usize,
        /// The problem.
        message: String,
        /// How to correct it.
        hint: Option<String>,
    },
    /// An entry is invalid.
    #[error("{place}: {message}")]
    Entry {
        /// The entry.
        place: String,
        /// The problem.
        message: String,
        /// How to correct it.
        hint: Option<String>,
    },
}

impl ConfigError {
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Read { error, .. } if error.kind() == io::ErrorKind::NotFound => {
                Some("`amber mediator -c FILE` names another file".into())
            }
            Self::Read { .. } => None,
            Self::File { hint, .. } | Self::Entry { hint, .. } => hint.clone(),
        }
    }
}

/// A file, to report errors in it.
pub(super) struct At<'a> {
    pub(super) text: &'a str,
    pub(super) path: &'a Path,
}

/// An invalid entry, from a file or the command line.
#[derive(Debug)]
pub(super) struct Wrong {
    /// The place in the file, if known more precisely than the entry.
    span: Option<Range<usize>>,
    message: String,
    hint: Option<String>,
}

impl At<'_> {
    pub(super) fn error(
        &self,
        offset: usize,
        message: String,
        hint: Option<String>,
    ) -> ConfigError {
        let (line, column) = self.line_and_column(offset);
        ConfigError::File {
            path: self.path.into(),
            line,
            column,
            message,
            hint,
        }
    }

    /// A syntax error.
    pub(super) fn toml_error(&self, error: &toml::de::Error) -> ConfigError {
        let offset = error.span().map_or(0, |span| span.start);
        let message = error.message().lines().collect::<Vec<_>>().join(" ");
        self.error(offset, message, file_hint(error.message()))
    }

    /// Both counted from 1.
    pub(super) fn line_and_column(&self, offset: usize) -> (usize, usize) {
        let before = beginning(self.text, offset);
        let line_start = before.rfind('\n').map_or(0, |end| end + 1);
        let line = before.matches('\n').count() + 1;
        (line, before[line_start..].chars().count() + 1)
    }
}

impl Wrong {
    pub(super) fn new(message: impl Into<String>, hint: Option<&str>) -> Self {
        Self {
            span: None,
            message: message.into(),
            hint: hint.map(str::to_owned),
        }
    }

    pub(super) fn at(self, span: Range<usize>) -> Self {
        Self {
            span: Some(span),
            ..self
        }
    }

    /// As an error in a file, in the entry that begins at this offset.
    pub(super) fn within(self, at: &At<'_>, entry: usize) -> ConfigError {
        let offset = self.span.map_or(entry, |span| span.start);
        at.error(offset, self.message, self.hint)
    }

    /// As an error in an entry that is not in a file.
    pub(super) fn in_entry(self, place: &str) -> ConfigError {
        ConfigError::Entry {
            place: place.into(),
            message: self.message,
            hint: self.hint,
        }
    }
}

/// A hint, derived from the text of the error.
fn file_hint(message: &str) -> Option<String> {
    let hint = if message.starts_with("invalid type: map, expected a sequence") {
        "write [[access]] or [[driver]], with two brackets"
    } else if message.starts_with("invalid type: string") && message.ends_with("a sequence") {
        "write a list, such as [\"amber\", \"driver\", \"dummy\"]"
    } else if message == "missing field `action`" {
        "action = \"allow\", or \"deny\""
    } else if message.starts_with("invalid socket address") {
        "write an address and a port, such as \"127.0.0.1:26233\""
    } else if message.starts_with("invalid value: integer") {
        "write a whole number, 0 or more, that is not too large"
    } else {
        return nearest(message);
    };
    Some(hint.into())
}

/// The known name that is most similar to the unknown one, if any. The message has the form
/// "unknown field `a`, expected one of `b`, `c`".
fn nearest(message: &str) -> Option<String> {
    let mut quoted = message
        .strip_prefix("unknown field ")
        .or_else(|| message.strip_prefix("unknown variant "))?
        .split('`')
        .skip(1)
        .step_by(2);
    let wrong = quoted.next()?;
    let (_, nearest) = quoted
        .map(|known| (strsim::damerau_levenshtein(wrong, known), known))
        .filter(|(distance, known)| *distance <= 1 + known.len() / 4)
        .min_by_key(|(distance, _)| *distance)?;
    Some(format!("did you mean `{nearest}`?"))
}
