//! Errors in a description, a message or a word. PURE.

/// An error in user input: a file, a description, a value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct Error {
    /// The position and the problem.
    pub text: String,
    /// The hint.
    pub hint: Option<String>,
}

impl Error {
    /// An error without a hint.
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            hint: None,
        }
    }

    /// Adds a hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl From<amber_schema::Error> for Error {
    fn from(error: amber_schema::Error) -> Self {
        Self {
            text: error.to_string(),
            hint: error.hint,
        }
    }
}
