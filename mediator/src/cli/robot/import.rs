//! `amber import`: converts the settings of the original mediator. IO.

use std::path::PathBuf;

use amber_mediator::config_file;
use amber_mediator::import::import;
use amber_terminal::Failure;

#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  amber import priv/settings.config > amber.toml
  amber import --directory /opt/amber-erlang-mediator settings.config > amber.toml

Entries that cannot be converted are reported on stderr and left out; the exit code is then 1.
Next, try `amber mediator -c amber.toml`.")]
pub(crate) struct Options {
    /// The settings of the original mediator (Erlang terms)
    #[arg(value_name = "FILE")]
    settings: PathBuf,
    /// The folder in which the original was started [default: the folder of the new file]
    #[arg(long, value_name = "DIR")]
    directory: Option<PathBuf>,
}

impl Options {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let path = self.settings.display();
        let bytes = config_file::read(&self.settings)
            .map_err(|error| Failure::wrong(format!("cannot read {path}: {error}")))?;
        // Old Erlang wrote Latin-1, which may occur in comments and texts.
        let text = match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(other) => other
                .into_bytes()
                .iter()
                .map(|byte| char::from(*byte))
                .collect(),
        };
        let imported = import(&text, self.directory.as_deref()).map_err(|error| {
            Failure::wrong(format!("{path}:{error}"))
                .hint("Erlang's own `file:consult` cannot read it either")
        })?;
        for note in &imported.notes {
            amber_terminal::note(format_args!("{path}: {note}"));
        }
        if imported.drivers == 0 {
            amber_terminal::note(format_args!("{path}: no drivers found"));
        }
        amber_terminal::print(imported.toml.as_bytes())?;
        match imported.left_out {
            0 => Ok(()),
            1 => Err(Failure::new(
                "1 entry was left out; all others were imported",
            )),
            many => Err(Failure::new(format!(
                "{many} entries were left out; all others were imported"
            ))),
        }
        .map_err(|failure| {
            failure.hint("add the drivers by hand, as `[[driver]]`, or fix the entries")
        })
    }
}
