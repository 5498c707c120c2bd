//! Reads at any place of a file, through one buffer. PURE except for the file.

use std::io::{self, Read, Seek, SeekFrom};

use crate::limits;

/// A file of which a part is in memory.
pub(crate) struct Window<F> {
    file: F,
    size: u64,
    /// The place of the buffer in the file.
    at: u64,
    buffer: Vec<u8>,
}

impl<F: Read + Seek> Window<F> {
    pub(crate) fn new(mut file: F) -> io::Result<Self> {
        let size = file.seek(SeekFrom::End(0))?;
        Ok(Self {
            file,
            size,
            at: 0,
            buffer: Vec::new(),
        })
    }

    /// The length of the file when it was opened.
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// The bytes at a place: as many as wanted, at most [`limits::READ_BYTES`], unless the file ends.
    pub(crate) fn peek(&mut self, at: u64, length: usize) -> io::Result<&[u8]> {
        let room = self.size.saturating_sub(at).min(length as u64) as usize;
        let is_here = |from: u64, have: usize| {
            at.checked_sub(from)
                .is_some_and(|skip| skip + room as u64 <= have as u64)
        };
        if !is_here(self.at, self.buffer.len()) {
            let fill = self.size.saturating_sub(at).min(limits::READ_BYTES as u64);
            let mut buffer = std::mem::take(&mut self.buffer);
            buffer.resize(fill as usize, 0);
            self.fill(at, &mut buffer)?;
            (self.buffer, self.at) = (buffer, at);
        }
        let skip = (at - self.at).min(self.buffer.len() as u64) as usize;
        Ok(&self.buffer[skip..][..room.min(self.buffer.len() - skip)])
    }

    /// All these bytes; fewer if the file ends.
    pub(crate) fn read(&mut self, at: u64, length: u64) -> io::Result<Vec<u8>> {
        let room = self.size.saturating_sub(at).min(length) as usize;
        if room <= limits::READ_BYTES / 2 {
            return Ok(self.peek(at, room)?.to_vec());
        }
        let mut bytes = vec![0; room];
        self.fill(at, &mut bytes)?;
        Ok(bytes)
    }

    /// Lets `each` have all these bytes, piece by piece.
    pub(crate) fn pass(
        &mut self,
        mut at: u64,
        end: u64,
        mut each: impl FnMut(&[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        let end = end.min(self.size);
        while at < end {
            let length = (end - at).min(limits::READ_BYTES as u64) as usize;
            let bytes = self.peek(at, length)?;
            at += bytes.len() as u64;
            each(bytes)?;
        }
        Ok(())
    }

    fn fill(&mut self, at: u64, bytes: &mut [u8]) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(at))?;
        self.file.read_exact(bytes)
    }
}
