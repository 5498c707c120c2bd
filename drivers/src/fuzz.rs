//! What fuzz targets share: reading structure out of random bytes. PURE.
//!
//! The targets of a driver and of its simulated device lie in the folder of the driver; `tests/fuzz`
//! runs them.

/// A name, and what reads the bytes; it panics when something is wrong.
pub type Target = (&'static str, fn(&[u8]));

/// Bytes that are used up from the front; behind their end there are zeros.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a>(pub &'a [u8]);

impl<'a> Input<'a> {
    /// Whether all is used up.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// One byte.
    pub fn byte(&mut self) -> u8 {
        let (byte, rest) = self.0.split_first().unwrap_or((&0, &[]));
        self.0 = rest;
        *byte
    }

    /// Yes or no.
    pub fn flag(&mut self) -> bool {
        self.byte() & 1 == 0
    }

    /// Two bytes.
    pub fn number(&mut self) -> u16 {
        u16::from_be_bytes([self.byte(), self.byte()])
    }

    /// A piece: its length, and so many bytes, or what is left.
    pub fn piece(&mut self) -> &'a [u8] {
        let length = usize::from(self.byte()).min(self.0.len());
        let (piece, rest) = self.0.split_at(length);
        self.0 = rest;
        piece
    }
}
