//! Options of a driver from a TOML file, which its command line overrides. IO. With the feature
//! `options`.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde::de::DeserializeOwned;

/// The reason why the options of a driver are rejected.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OptionsError {
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
        /// The error.
        message: String,
        /// The suggested correction.
        hint: Option<String>,
    },
    /// A required option is missing.
    #[error("{name} is required")]
    Missing {
        /// The option, as on the command line.
        name: &'static str,
        /// How to find its value.
        hint: &'static str,
    },
    /// Another file that an option names cannot be used, such as a map.
    #[error("{problem}")]
    Unusable {
        /// The problem, with the file.
        problem: String,
        /// How to correct it.
        hint: String,
    },
    /// A value is invalid.
    #[error("{name}: {problem}")]
    Value {
        /// The option, as in the file.
        name: &'static str,
        /// The problem, with the valid range.
        problem: String,
    },
}

impl OptionsError {
    /// How to correct it.
    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        match self {
            Self::Read { .. } => Some("--config names a TOML file; all options have defaults"),
            Self::File { hint, .. } => hint.as_deref(),
            Self::Missing { hint, .. } => Some(hint),
            Self::Unusable { hint, .. } => Some(hint),
            Self::Value { .. } => Some("--help shows all options and their defaults"),
        }
    }
}

/// Reads a file; returns the defaults if there is no path.
///
/// # Errors
/// The file cannot be read, or contains an error.
pub fn read<T: DeserializeOwned + Default>(path: Option<&Path>) -> Result<T, OptionsError> {
    let Some(path) = path else {
        return Ok(T::default());
    };
    let text = std::fs::read_to_string(path).map_err(|error| OptionsError::Read {
        path: path.into(),
        error,
    })?;
    parse(&text, path)
}

fn parse<T: DeserializeOwned>(text: &str, path: &Path) -> Result<T, OptionsError> {
    toml::from_str(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start).min(text.len());
        let before = text.get(..at).unwrap_or_default();
        let line_start = before.rfind('\n').map_or(0, |end| end + 1);
        OptionsError::File {
            path: path.into(),
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            message: error.message().lines().collect::<Vec<_>>().join(" "),
            hint: nearest_key(error.message()),
        }
    })
}

/// The known key that resembles the unknown one. Parses the text of the error: "unknown field `a`,
/// expected one of `b`, `c`".
fn nearest_key(message: &str) -> Option<String> {
    let mut quoted = (message.strip_prefix("unknown field ")?.split('`'))
        .skip(1)
        .step_by(2);
    let wrong = quoted.next()?;
    let nearest = quoted.min_by_key(|known| strsim::damerau_levenshtein(wrong, known))?;
    Some(format!("did you mean `{nearest}`?"))
}

/// Checks that a value is within a range.
///
/// # Errors
/// It is not.
pub fn check<T: PartialOrd + std::fmt::Display>(
    name: &'static str,
    value: T,
    range: std::ops::RangeInclusive<T>,
) -> Result<T, OptionsError> {
    if range.contains(&value) {
        return Ok(value);
    }
    let problem = format!("{value} is not within {} to {}", range.start(), range.end());
    Err(OptionsError::Value { name, problem })
}

/// Logs why the options of a driver are rejected, and how to correct them. Returns the exit code of
/// a program that was called in a wrong way.
pub fn rejected(error: &OptionsError) -> ExitCode {
    tracing::error!("{error}");
    if let Some(hint) = error.hint() {
        tracing::error!("hint: {hint}");
    }
    ExitCode::from(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default, serde::Deserialize)]
    #[serde(deny_unknown_fields, default)]
    struct Example {
        port: Option<PathBuf>,
        baud: Option<u32>,
    }

    fn error(text: &str) -> (String, Option<String>) {
        let error = parse::<Example>(text, Path::new("a.toml")).unwrap_err();
        (error.to_string(), error.hint().map(str::to_owned))
    }

    #[test]
    fn the_error_for_an_unknown_key_names_the_nearest_key() {
        let (message, hint) = error("port = \"/dev/x\"\n  buad = 3\n");
        assert!(
            message.starts_with("a.toml:2:3: unknown field `buad`"),
            "{message}"
        );
        assert_eq!(hint.as_deref(), Some("did you mean `baud`?"));
    }

    #[test]
    fn the_error_for_an_invalid_value_names_its_position() {
        let (message, _) = error("port = \"/dev/x\"\nbaud = \"fast\"");
        assert!(message.starts_with("a.toml:2:8: "), "{message}");
    }

    #[test]
    fn a_missing_file_is_an_error_but_a_missing_path_is_not() {
        let error = read::<Example>(Some(Path::new("/nowhere/a.toml"))).unwrap_err();
        assert!(error.to_string().starts_with("cannot read /nowhere/a.toml"));
        let nothing = read::<Example>(None).unwrap();
        assert_eq!((nothing.port, nothing.baud), (None, None));
    }

    #[test]
    fn ranges_are_checked() {
        assert!(check("baud", 5, 1..=5).is_ok());
        let error = check("baud", 6, 1..=5).unwrap_err();
        assert_eq!(error.to_string(), "baud: 6 is not within 1 to 5");
    }
}
