//! Buffers of written frames, kept for the next frames. PURE.
//!
//! The allocator treats long buffers as rare and takes several times as long for them as for
//! short ones. The buffer that was used last comes first, because the cache still has it.

use crate::limits::{LONG_WAITING_FRAME, SPARE_BYTES};

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Spare {
    buffers: Vec<Vec<u8>>,
    /// The capacity of all of them.
    bytes: usize,
}

impl Spare {
    /// An empty buffer with room for this many bytes, and at most twice as many.
    pub(super) fn take(&mut self, bytes: usize) -> Vec<u8> {
        if bytes >= LONG_WAITING_FRAME
            && let Some(buffer) = self.buffers.pop()
        {
            self.bytes -= buffer.capacity();
            // Otherwise the lengths of frames have changed, and this one is of no use.
            if (bytes..=2 * bytes).contains(&buffer.capacity()) {
                return buffer;
            }
        }
        Vec::with_capacity(bytes)
    }

    /// Keeps a buffer that is not needed any more, if it is long and there is room.
    pub(super) fn keep(&mut self, mut buffer: Vec<u8>) {
        let bytes = buffer.capacity();
        if bytes >= LONG_WAITING_FRAME && self.bytes + bytes <= SPARE_BYTES {
            buffer.clear();
            self.bytes += bytes;
            self.buffers.push(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: usize = LONG_WAITING_FRAME;

    #[test]
    fn a_kept_buffer_is_used_again_and_is_empty() {
        let mut spare = Spare::default();
        let mut buffer = spare.take(LONG);
        buffer.resize(LONG, 7);
        let bytes = buffer.as_ptr();
        spare.keep(buffer);
        let again = spare.take(LONG);
        assert_eq!((again.as_ptr(), again.len()), (bytes, 0));
        let other = spare.take(LONG);
        assert_ne!(other.as_ptr(), bytes);
    }

    #[test]
    fn buffers_of_other_lengths_are_not_used() {
        let mut spare = Spare::default();
        for (kept, wanted) in [(LONG, LONG + 1), (2 * LONG + 1, LONG)] {
            spare.keep(Vec::with_capacity(kept));
            assert_eq!(spare.take(wanted).capacity(), wanted);
            assert_eq!((spare.bytes, spare.buffers.len()), (0, 0));
        }
        spare.keep(Vec::with_capacity(LONG - 1));
        assert_eq!(spare.buffers.len(), 0, "it is short");
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let mut spare = Spare::default();
        let bytes = SPARE_BYTES / 4 - 1;
        for _ in 0..9 {
            spare.keep(Vec::with_capacity(bytes));
        }
        assert_eq!((spare.buffers.len(), spare.bytes), (4, 4 * bytes));
    }
}
