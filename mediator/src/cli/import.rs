//! `amber import`: from the settings of the original mediator. IO.

use std::path::PathBuf;

use amber_client::cli::{self as client, Failure};
use amber_mediator::config::file;
use amber_mediator::config::import::{ImportError, import};

#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  amber import priv/settings.config > amber.toml
  amber import --directory /opt/amber-erlang-mediator settings.config > amber.toml

What cannot be carried over is said on stderr. Then try `amber mediator -c amber.toml`.")]
pub(crate) struct Options {
    /// The settings of the original mediator (Erlang terms)
    #[arg(value_name = "FILE")]
    settings: PathBuf,
    /// The folder in which the original was started [default: where the new file lies]
    #[arg(long, value_name = "DIR")]
    directory: Option<PathBuf>,
}

impl Options {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let path = self.settings.display();
        let bytes = file::read(&self.settings)
            .map_err(|error| Failure::wrong(format!("cannot read {path}: {error}")))?;
        // Old Erlang wrote Latin-1; comments and texts may hold such letters.
        let text = match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(other) => other
                .into_bytes()
                .iter()
                .map(|byte| char::from(*byte))
                .collect(),
        };
        let imported = import(&text, self.directory.as_deref()).map_err(|error| {
            let hint = match &error {
                ImportError::Syntax(_) => "Erlang's own `file:consult` would not read it either",
                ImportError::Entry { .. } => {
                    "mend the entry, or put `%` in front of its lines to leave it out"
                }
            };
            Failure::wrong(format!("{path}:{error}")).hint(hint)
        })?;
        for note in &imported.notes {
            client::note(format_args!("{path}: {note}"));
        }
        if imported.drivers == 0 {
            client::note(format_args!("{path}: there is no driver in it"));
        }
        client::print(imported.toml.as_bytes())
    }
}
