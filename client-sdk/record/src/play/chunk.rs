//! The messages of one chunk of a recording. PURE.

use std::collections::HashMap;

use mcap::records::{Record, op};

use crate::chunk::first_record;
use crate::record::MESSAGE_HEADER;

/// The messages of one chunk, in order of time.
#[derive(Default)]
pub(super) struct Chunk {
    /// Time, channel, start and length of each.
    pub(super) messages: Vec<(u64, u16, usize, usize)>,
    pub(super) bytes: Vec<u8>,
    /// Why it has none.
    pub(super) damage: Option<String>,
}

impl Chunk {
    /// The messages in these records. Channels without a number do not matter for playing.
    pub(super) fn of(mut records: &[u8], numbers: &HashMap<u16, u16>) -> Self {
        let mut chunk = Self::default();
        while let Some((opcode, content, length)) = first_record(records) {
            records = &records[length..];
            if opcode != op::MESSAGE {
                continue;
            }
            let Ok(Record::Message { header, .. }) = mcap::parse_record(opcode, content) else {
                continue;
            };
            if let Some(channel) = numbers.get(&header.channel_id) {
                let data = &content[MESSAGE_HEADER..];
                let place = (header.log_time, *channel, chunk.bytes.len(), data.len());
                chunk.messages.push(place);
                chunk.bytes.extend_from_slice(data);
            }
        }
        chunk.messages.sort_by_key(|(time_ns, ..)| *time_ns);
        chunk
    }

    pub(super) fn damaged(what: &str) -> Self {
        Self {
            damage: Some(what.to_owned()),
            ..Self::default()
        }
    }

    /// Time, channel and data of each message.
    pub(super) fn messages(&self) -> impl Iterator<Item = (u64, u16, &[u8])> {
        (0..self.messages.len()).filter_map(|number| self.message(number))
    }

    pub(super) fn message(&self, number: usize) -> Option<(u64, u16, &[u8])> {
        let &(time_ns, id, start, length) = self.messages.get(number)?;
        Some((time_ns, id, &self.bytes[start..start + length]))
    }
}
