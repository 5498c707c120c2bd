//! `amber recover`: repairs a recording whose recorder was killed. IO.

use std::io::BufReader;
use std::path::{Path, PathBuf};

use amber_record::{Recovered, recover};
use amber_terminal::{Failure, Human, fields, show};
use serde::Serialize;

use super::super::file;
use super::info::{cannot_read, open};
use super::output::cannot_write;

pub(in super::super) const HELP: &str = "\
Examples:
  amber recover drive.mcap                 (writes drive-recovered.mcap)
  amber recover drive.mcap -o drive.mcap   (replaces the file)

`amber info` and `amber export` also read unfinished files. `amber play` and other programs need the
index that this command adds.";

/// Options of `amber recover`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Unfinished or damaged recording
    file: PathBuf,
    /// File to write [default: the name with -recovered]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(in super::super) fn run(options: &Options, json: bool) -> Result<(), Failure> {
    let to = options
        .output
        .clone()
        .unwrap_or_else(|| recovered(&options.file));
    file::check("-o", &to)?;
    if file::is_stdout(&to) {
        return Err(Failure::wrong("a recovered recording cannot go to stdout")
            .hint("name a file: `-o FILE`"));
    }
    let from = BufReader::new(open(&options.file)?);
    let output = file::Output::create(&to)?;
    // Reading a damaged file is not an error, so this is about the new file, or there is nothing
    // to read at all.
    let done = recover(from, output);
    let (done, output) = done.map_err(|error| match error {
        amber_record::Error::Io(error) => cannot_write(&to, &error),
        other => cannot_read(&options.file, other),
    })?;
    output.finish()?;
    show(
        &Shown {
            file: to,
            recovered: done,
        },
        json,
    )
}

fn recovered(path: &Path) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!("{stem}-recovered.mcap"))
}

#[derive(Serialize)]
struct Shown {
    file: PathBuf,
    #[serde(flatten)]
    recovered: Recovered,
}

impl Human for Shown {
    fn human(&self) -> String {
        let Recovered {
            messages,
            was_finished,
            damage,
        } = &self.recovered;
        let state = match (was_finished, damage) {
            (_, Some(damage)) => format!("damaged: {damage}; what follows is lost"),
            (true, None) => "it was finished already".to_owned(),
            (false, None) => "finished now".to_owned(),
        };
        fields(&[
            ("file", Some(self.file.display().to_string())),
            ("messages", Some(messages.to_string())),
            ("state", Some(state)),
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_new_file_is_beside_the_old_one() {
        let name = |path: &str| recovered(Path::new(path)).display().to_string();
        assert_eq!(name("a/drive.mcap"), "a/drive-recovered.mcap");
        assert_eq!(name("drive"), "drive-recovered.mcap");
    }
}
