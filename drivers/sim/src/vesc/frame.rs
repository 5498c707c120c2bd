//! Frames: a start byte, the length, the payload, its CRC16 and an end byte. PURE.

use crate::roboclaw::crc16;

/// The longest payload that the firmware takes.
const MAX_PAYLOAD: usize = 512;

/// A frame around a payload.
#[must_use]
pub fn framed(payload: &[u8]) -> Vec<u8> {
    let length = payload.len().to_be_bytes();
    let head = match payload.len() {
        ..=255 => [&[2], &length[7..]].concat(),
        _ => [&[3], &length[6..]].concat(),
    };
    [&head[..], payload, &crc16(payload).to_be_bytes(), &[3]].concat()
}

/// The bytes that have arrived.
#[derive(Clone, Debug, Default)]
pub(super) struct Input(Vec<u8>);

impl Input {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.0.extend(bytes);
    }

    /// The next payload. Bytes that begin no valid frame are skipped one by one.
    pub(super) fn next_payload(&mut self) -> Option<Vec<u8>> {
        while let Some(start) = self.0.first() {
            let (head, length) = match start {
                2 => (2, self.0.get(1).copied().map(usize::from)),
                3 => (
                    3,
                    self.0
                        .get(1..3)
                        .map(|it| u16::from_be_bytes([it[0], it[1]]).into()),
                ),
                _ => {
                    self.0.remove(0);
                    continue;
                }
            };
            let length = length?;
            let lengths = match head {
                2 => 1..=255,
                _ => 255..=MAX_PAYLOAD,
            };
            if lengths.contains(&length) {
                let frame = self.0.get(..head + length + 3)?;
                let payload = frame[head..head + length].to_vec();
                if frame[head + length..] == [&crc16(&payload).to_be_bytes()[..], &[3]].concat() {
                    self.0.drain(..head + length + 3);
                    return Some(payload);
                }
            }
            self.0.remove(0);
        }
        None
    }
}
