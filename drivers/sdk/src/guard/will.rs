//! What a driver tells its guard, and when the guard acts. PURE.
//!
//! A message holds everything that the guard is to write: the length of the rest, then for each write
//! its length and its bytes. Lengths have four bytes, the high one first.

/// What stops everything that a driver moves. Each element is one write to the device.
pub(super) type Will = Vec<Vec<u8>>;

/// The largest message, in bytes. It fits into the buffer of a socket.
const MAX_MESSAGE: usize = 64 * 1024;

/// The size of a length, in bytes.
const LENGTH: usize = 4;

/// Encodes a message.
pub(super) fn message(will: &[Vec<u8>]) -> Vec<u8> {
    let with_length = |bytes: &[u8]| {
        let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        [&length.to_be_bytes()[..], bytes].concat()
    };
    let writes: Vec<_> = will.iter().flat_map(|bytes| with_length(bytes)).collect();
    with_length(&writes)
}

/// The state of a guard.
#[derive(Debug, Default)]
pub(super) struct Watch {
    /// The beginning of a message.
    received: Vec<u8>,
    will: Will,
    has_acted: bool,
}

/// What arrived is not from a driver.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a message of a driver")]
pub(super) struct Garbled;

impl Watch {
    /// The driver has sent something, so it is alive. The newest message counts.
    ///
    /// # Errors
    /// It is not from a driver.
    pub(super) fn handle_bytes(&mut self, bytes: &[u8]) -> Result<(), Garbled> {
        self.has_acted = false;
        self.received.extend(bytes);
        while let Some((length, rest)) = split_length(&self.received) {
            if length > MAX_MESSAGE {
                return Err(Garbled);
            }
            let Some(message) = rest.get(..length) else {
                break;
            };
            self.will = writes(message).ok_or(Garbled)?;
            self.received.drain(..LENGTH + length);
        }
        Ok(())
    }

    /// The driver has sent nothing for too long. Returns what to write now.
    pub(super) fn handle_silence(&mut self) -> &[Vec<u8>] {
        match std::mem::replace(&mut self.has_acted, true) {
            true => &[],
            false => &self.will,
        }
    }

    /// What to write when the driver has ended.
    pub(super) fn will(&self) -> &[Vec<u8>] {
        &self.will
    }
}

fn split_length(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<LENGTH>()?;
    let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
    Some((length, rest))
}

fn writes(mut message: &[u8]) -> Option<Will> {
    let mut will = Will::new();
    while !message.is_empty() {
        let (length, rest) = split_length(message)?;
        let (bytes, rest) = rest.split_at_checked(length)?;
        will.push(bytes.to_vec());
        message = rest;
    }
    Some(will)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn will(writes: &[&[u8]]) -> Will {
        writes.iter().map(|bytes| bytes.to_vec()).collect()
    }

    #[test]
    fn the_newest_whole_message_counts_however_it_arrives() {
        let first = message(&will(&[b"stop left", b"stop right"]));
        let second = message(&will(&[b"stop"]));
        let bytes = [first.clone(), second].concat();
        for at in 0..bytes.len() {
            let mut watch = Watch::default();
            for part in [&bytes[..at], &bytes[at..]] {
                watch.handle_bytes(part).unwrap();
            }
            assert_eq!(watch.will(), will(&[b"stop"]));
        }
        let mut watch = Watch::default();
        watch.handle_bytes(&bytes[..first.len() + 6]).unwrap();
        assert_eq!(watch.will(), will(&[b"stop left", b"stop right"]));
        watch.handle_bytes(&bytes[first.len() + 6..]).unwrap();
        watch.handle_bytes(&message(&[])).unwrap();
        assert_eq!(watch.will(), will(&[]));
    }

    #[test]
    fn silence_is_answered_once_until_there_is_a_sign_of_life() {
        let mut watch = Watch::default();
        assert_eq!(watch.handle_silence(), will(&[]));
        watch.handle_bytes(&message(&will(&[b"stop"]))).unwrap();
        assert_eq!(watch.handle_silence(), will(&[b"stop"]));
        assert_eq!(watch.handle_silence(), will(&[]));
        watch.handle_bytes(&message(&will(&[b"halt"]))).unwrap();
        assert_eq!(watch.handle_silence(), will(&[b"halt"]));
        // The end is another matter.
        assert_eq!(watch.will(), will(&[b"halt"]));
    }

    #[test]
    fn other_bytes_are_recognized() {
        for bytes in [&[0xFF; 4][..], b"\0\0\0\x05\0\0\0\x02x"] {
            assert_eq!(Watch::default().handle_bytes(bytes), Err(Garbled));
        }
    }
}
