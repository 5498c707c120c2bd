//! `amber recover`: copies what is intact of a recording that is unfinished or damaged. IO.

use std::path::{Path, PathBuf};

use amber_record::{Recovered, Unverified, recover};
use amber_terminal::{Failure, Human, fields, show};
use serde::Serialize;

use super::cannot_write;
use super::info::{cannot_read, describe, open};
use crate::file;

pub(in super::super) const HELP: &str = "\
Examples:
  amber recover drive.mcap                 (writes drive-recovered.mcap)
  amber recover drive.mcap -o drive.mcap   (replaces the file, if nothing is lost)

A damaged part of the file is left out, and everything else is copied. The command lists the
times of which messages are lost, and the new file has them in /amber/gaps. If something is
lost, the exit code is 1.

`amber info` and `amber export` also read unfinished and damaged files. `amber play` and other
programs need the index that this command adds.";

/// Options of `amber recover`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Unfinished or damaged recording
    file: PathBuf,
    /// File to write [default: the name with -recovered]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Also copy the messages of chunks whose checksum is wrong: some of them may be wrong
    #[arg(long)]
    unverified: bool,
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
    let from = open(&options.file)?;
    let is_same = file::is_same(&from, &to);
    let output = file::Output::create_from(&from, &to)?;
    let unverified = match options.unverified {
        true => Unverified::Keep,
        false => Unverified::Leave,
    };
    // Reading a damaged file is not an error, so this is about the new file, or there is nothing
    // to read at all.
    let done = recover(from, output, unverified);
    let (done, output) = done.map_err(|error| match error {
        amber_record::Error::Io(error) => cannot_write(&to, &error),
        other => cannot_read(&options.file, other),
    })?;
    let has_lost = done.has_lost;
    let is_replaced = !(is_same && has_lost);
    if is_replaced {
        output.finish()?;
    }
    let shown = Shown {
        file: to,
        recovered: done,
    };
    show(&shown, json)?;
    match (has_lost, is_replaced) {
        (false, _) => Ok(()),
        (true, true) => Err(Failure::new("a part of the recording is lost")),
        (true, false) => {
            let text = format!(
                "a part of the recording would be lost, so {} was not replaced",
                shown.file.display()
            );
            Err(Failure::new(text).hint("name another file: `-o FILE`"))
        }
    }
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
            unverified,
            was_finished,
            has_lost,
            lost_messages,
            damage,
            damaged_parts,
        } = &self.recovered;
        let state = match (was_finished, has_lost) {
            (_, true) => "a part is lost",
            (true, false) => "it was finished already",
            (false, false) => "finished now",
        };
        let count = |count: &u64| (*count > 0).then(|| count.to_string());
        let mut out = fields(&[
            ("file", Some(self.file.display().to_string())),
            ("messages", Some(messages.to_string())),
            ("lost", lost_messages.map(|lost| format!("{lost} messages"))),
            ("unverified", count(unverified)),
            ("state", Some(state.to_owned())),
        ]);
        for damage in damage {
            out += &format!("damage: {}\n", describe(damage));
        }
        let more = damaged_parts.saturating_sub(damage.len() as u64);
        if more > 0 {
            out += &format!("damage: {more} more parts\n");
        }
        out
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
