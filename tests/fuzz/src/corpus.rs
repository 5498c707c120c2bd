//! The kept inputs: one file for each target, one input in each line, as hex. IO.
//!
//! `corpus` holds those that reach most, found by `scripts/fuzz --keep`;
//! `regressions` those that once failed, which are kept permanently.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::Target;

impl Target {
    /// Where those of its inputs are kept that reach most.
    pub fn corpus_file(&self) -> PathBuf {
        self.file("corpus")
    }

    fn file(&self, folder: &str) -> PathBuf {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
        folder.join(self.name).with_extension("hex")
    }

    /// Its kept inputs.
    ///
    /// # Errors
    /// There is no file, or it is no hex.
    pub fn corpus(&self) -> io::Result<Vec<Vec<u8>>> {
        let mut text = fs::read_to_string(self.corpus_file())?;
        match fs::read_to_string(self.file("regressions")) {
            Ok(failed) => text.push_str(&failed),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        let lines = text.lines().map(|line| unhex(line).ok_or(line));
        lines
            .collect::<Result<_, _>>()
            .map_err(|line| io::Error::other(format!("no hex: {line}")))
    }

    /// Writes the kept inputs to a folder, one file each, for libFuzzer.
    ///
    /// # Errors
    /// Something cannot be read or written.
    pub fn unpack(&self, folder: &Path) -> io::Result<()> {
        for (i, input) in self.corpus()?.iter().enumerate() {
            fs::write(folder.join(format!("kept-{i:04}")), input)?;
        }
        Ok(())
    }

    /// Keeps the inputs of a folder instead of those that are kept now. Returns
    /// how many there are.
    ///
    /// # Errors
    /// Something cannot be read or written.
    pub fn pack(&self, folder: &Path) -> io::Result<usize> {
        let files = fs::read_dir(folder)?.map(|file| fs::read(file?.path()));
        let inputs: BTreeSet<Vec<u8>> = files.collect::<io::Result<_>>()?;
        let lines: String = inputs.iter().map(|input| hex(input) + "\n").collect();
        fs::write(self.corpus_file(), lines)?;
        Ok(inputs.len())
    }
}

/// Bytes as text.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes().chunks(2);
    digits
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok())
        .collect()
}
