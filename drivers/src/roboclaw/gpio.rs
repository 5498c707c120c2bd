//! Lines beside the bus, as files of the kernel. IO.

use std::path::PathBuf;

use super::logic::{Line, Lines};

/// The file of each line that there is; all are active low.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gpio {
    /// Resets both controllers.
    pub reset: Option<PathBuf>,
    /// Lit while all is well.
    pub green: Option<PathBuf>,
    /// Lit while something is wrong.
    pub red: Option<PathBuf>,
}

impl Gpio {
    /// Which lines there are.
    pub fn lines(&self) -> Lines {
        Lines {
            reset: self.reset.is_some(),
            green: self.green.is_some(),
            red: self.red.is_some(),
        }
    }

    /// Makes a line active or not.
    ///
    /// # Errors
    /// Its file cannot be written.
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
