//! Errors in a description. PURE.

use std::fmt;

use prost_reflect::FileDescriptor;

/// A broken rule: the position, the service, method or field, and the rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Error {
    /// The `.proto` file.
    pub file: String,
    /// The line in the file, from 1, if the descriptors have source locations.
    pub line: Option<u32>,
    /// The broken rule, and the cause.
    pub text: String,
    /// The hint.
    pub hint: Option<String>,
}

impl Error {
    pub(crate) fn new(file: &str, span: &[i32], text: String) -> Self {
        let line = span.first().and_then(|line| u32::try_from(*line).ok());
        Self {
            file: file.to_owned(),
            // Lines count from 0 in descriptors.
            line: line.map(|line| line + 1),
            text,
            hint: None,
        }
    }

    /// An error about the element of a file that has this path.
    pub(crate) fn at(file: &FileDescriptor, path: &[i32], text: String) -> Self {
        let info = file.file_descriptor_proto().source_code_info.as_ref();
        let location = info.and_then(|info| info.location.iter().find(|it| it.path == path));
        let span = location.map_or(&[][..], |location| &location.span);
        Self::new(file.name(), span, text)
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.file, self.text),
            None => write!(f, "{}: {}", self.file, self.text),
        }
    }
}
