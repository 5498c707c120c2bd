//! GPIO lines, as files of the kernel. IO.

use std::path::PathBuf;

use super::logic::{Line, Lines};

/// The file of each connected line; all lines are active low.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gpio {
    /// Resets both controllers.
    pub reset: Option<PathBuf>,
    /// Lit while there are no problems.
    pub green: Option<PathBuf>,
    /// Lit while there is a problem.
    pub red: Option<PathBuf>,
}

impl Gpio {
    /// The lines that are connected.
    pub fn lines(&self) -> Lines {
        Lines {
            reset: self.reset.is_some(),
            green: self.green.is_some(),
            red: self.red.is_some(),
        }
    }

    /// Sets a line active or inactive.
    ///
    /// # Errors
    /// The file of the line cannot be written.
    pub async fn set(&self, line: Line, active: bool) -> std::io::Result<()> {
        let path = match line {
            Line::Reset => &self.reset,
            Line::Green => &self.green,
            Line::Red => &self.red,
        };
        let Some(path) = path else { return Ok(()) };
        let level = if active { "0\n" } else { "1\n" };
        tokio::fs::write(path, level).await
    }
}
