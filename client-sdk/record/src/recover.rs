//! Copies what can be read of a damaged recording to a finished one. PURE except for the files.

use std::collections::{BTreeMap, HashMap};
use std::io::{Read, Seek, Write};

use mcap::records::{MessageHeader, Metadata};
use prost::Message;

use crate::chunk::Check;
use crate::damage::{Damage, Effect};
use crate::export::{Form, Table};
use crate::messages::{Entry, Messages, Stored};
use crate::recording::{END, GAPS, GapFact, gaps};
use crate::scan::Attached;
use crate::writer::{Compression, PROTOBUF, Writer};
use crate::{Descriptors, Error, limits};

/// What to do with messages whose checksum is wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unverified {
    /// They are lost.
    #[default]
    Leave,
    /// They are copied, in chunks without a checksum.
    Keep,
}

/// The result of a recovery.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Recovered {
    /// The number of messages in the new file.
    pub messages: u64,
    /// Those of them that no checksum confirms, although the file has checksums.
    pub unverified: u64,
    /// Whether the file was finished.
    pub was_finished: bool,
    /// Whether something is lost.
    pub has_lost: bool,
    /// How many messages are lost, if the index of the file tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost_messages: Option<u64>,
    /// The damaged parts, at most 1000 of them, in order of their place.
    pub damage: Vec<Damage>,
    /// The number of all damaged parts.
    pub damaged_parts: u64,
}

/// Copies all of a recording that can be read.
///
/// # Errors
/// The new file cannot be written, or the old one is no recording.
pub fn recover<W: Write>(
    from: impl Read + Seek,
    to: W,
    unverified: Unverified,
) -> Result<(Recovered, W), Error> {
    let mut messages = Messages::new(from)?;
    let mut copy = Copy {
        writer: Writer::new(to, Compression::None)?,
        unverified,
        channels: HashMap::new(),
        table: Table::new(),
        seen_ns: None,
        open: Vec::new(),
        end: None,
        done: Recovered::default(),
    };
    loop {
        let mut next = None;
        if !messages.next(|_, entry| next = Some(Copied::of(entry)))? {
            break;
        }
        match next {
            Some(Copied::Message(header, data, check)) => {
                copy.message(&messages, header, &data, check)?;
            }
            Some(Copied::Metadata(metadata)) => copy.metadata(metadata)?,
            Some(Copied::Attachment(attached)) => {
                copy.writer.add_attachment(&attached, |out| {
                    messages.attachment(&attached, |bytes| out(bytes))
                })?;
            }
            Some(Copied::Damage(damage)) => copy.damage(damage),
            Some(Copied::End) => copy.done.was_finished = true,
            None => {}
        }
    }
    copy.finish(messages.expected(), messages.has_ending())
}

/// An entry with its own bytes.
enum Copied {
    Message(MessageHeader, Vec<u8>, Check),
    Metadata(Metadata),
    Attachment(Attached),
    Damage(Damage),
    End,
}

impl Copied {
    fn of(entry: Entry<'_>) -> Self {
        match entry {
            Entry::Message {
                header,
                data,
                check,
                ..
            } => Self::Message(header, data.to_vec(), check),
            Entry::Metadata(metadata) => Self::Metadata(metadata),
            Entry::Attachment(attached) => Self::Attachment(attached),
            Entry::Damage(damage) => Self::Damage(damage),
            Entry::End => Self::End,
        }
    }
}

/// The new file.
struct Copy<W> {
    writer: Writer<W>,
    unverified: Unverified,
    /// The numbers of channels: those that readers can decode, and the others.
    channels: HashMap<(u16, bool), u16>,
    table: Table,
    /// The last message so far.
    seen_ns: Option<u64>,
    /// Lost parts whose end is the next message.
    open: Vec<Damage>,
    end: Option<BTreeMap<String, String>>,
    done: Recovered,
}

impl<W: Write> Copy<W> {
    fn message<F: Read + Seek>(
        &mut self,
        messages: &Messages<F>,
        mut header: MessageHeader,
        data: &[u8],
        check: Check,
    ) -> Result<(), Error> {
        if check == Check::Wrong && self.unverified == Unverified::Leave {
            return Ok(());
        }
        let time_ns = header.log_time;
        self.close(Some(time_ns))?;
        let id = header.channel_id;
        let stored = messages.channels().get(&id);
        let is_doubtful = messages.is_doubtful(id);
        let is_readable = !is_doubtful
            || stored.is_some_and(|stored| {
                stored.encoding == PROTOBUF
                    && self.table.value(id, stored, data, Form::Whole).is_some()
            });
        let is_ours = messages.writer().starts_with("amber");
        header.channel_id = self.channel(id, stored, is_readable, is_ours)?;
        let is_verified = matches!(check, Check::Right | Check::Absent);
        self.writer.set_crc(is_verified)?;
        self.writer
            .add_with(&header, |out| out.extend_from_slice(data))?;
        self.done.messages += 1;
        self.done.unverified += u64::from(!is_verified);
        self.seen_ns = Some(self.seen_ns.map_or(time_ns, |seen| seen.max(time_ns)));
        Ok(())
    }

    /// The number of a channel in the new file. What nobody can read gets a schema without fields.
    fn channel(
        &mut self,
        id: u16,
        stored: Option<&Stored>,
        is_readable: bool,
        is_ours: bool,
    ) -> Result<u16, Error> {
        if let Some(known) = self.channels.get(&(id, is_readable)) {
            return Ok(*known);
        }
        let encoding = match stored {
            Some(stored) if is_readable || !is_ours => stored.encoding.clone(),
            _ if is_ours => PROTOBUF.to_owned(),
            _ => String::new(),
        };
        let writer = &mut self.writer;
        let schema = match stored {
            Some(stored) if is_readable && stored.schema_encoding.is_empty() => 0,
            Some(stored) if is_readable => {
                let (name, encoding) = (&stored.schema, &stored.schema_encoding);
                writer.add_schema(name, encoding, &stored.descriptors)?
            }
            _ if encoding == PROTOBUF => {
                let made = Descriptors::facts("unreadable", &[]);
                writer.add_schema(&made.name, PROTOBUF, &made.set)?
            }
            _ => 0,
        };
        let lost = format!("/recovered/channel/{id}");
        let topic = stored.map_or(&lost, |stored| &stored.topic);
        let about = stored
            .map(|stored| stored.about.clone())
            .unwrap_or_default();
        let made = writer.add_channel(schema, topic, &encoding, &about)?;
        self.channels.insert((id, is_readable), made);
        Ok(made)
    }

    fn metadata(&mut self, metadata: Metadata) -> Result<(), Error> {
        // What it says about the end may be wrong now.
        if metadata.name == END {
            self.end = Some(metadata.metadata);
            return Ok(());
        }
        self.writer.add_metadata(&metadata)
    }

    fn damage(&mut self, mut damage: Damage) {
        if damage.effect == Effect::Doubtful && self.unverified == Unverified::Leave {
            damage.effect = Effect::Lost;
        }
        if damage.effect == Effect::Harmless {
            return self.list(damage);
        }
        damage.first_ns = damage.first_ns.or(self.seen_ns);
        self.open.push(damage);
    }

    /// Writes the lost parts so far. The next message has this time.
    fn close(&mut self, next_ns: Option<u64>) -> Result<(), Error> {
        for mut damage in std::mem::take(&mut self.open) {
            damage.first_ns = damage.first_ns.or(next_ns);
            damage.last_ns = damage.last_ns.or(next_ns).or(self.seen_ns);
            damage.last_ns = damage.last_ns.max(damage.first_ns);
            if damage.effect == Effect::Lost {
                self.done.has_lost = true;
                self.gap(&damage)?;
            }
            self.list(damage);
        }
        Ok(())
    }

    fn list(&mut self, damage: Damage) {
        self.done.damaged_parts += 1;
        if self.done.damage.len() < limits::LISTED {
            self.done.damage.push(damage);
        }
    }

    /// States in the file what is missing.
    fn gap(&mut self, damage: &Damage) -> Result<(), Error> {
        let made = gaps();
        let schema = self.writer.add_schema(&made.name, PROTOBUF, &made.set)?;
        let none = BTreeMap::new();
        let channel = (self.writer).add_channel(schema, GAPS, PROTOBUF, &none)?;
        let fact = GapFact {
            first_ns: damage.first_ns,
            last_ns: damage.last_ns,
            messages: Some(damage.messages),
            bytes: Some(damage.bytes),
        };
        self.writer.set_crc(true)?;
        let time_ns = damage.first_ns.unwrap_or_default();
        (self.writer).add(channel, time_ns, |out| {
            out.extend_from_slice(&fact.encode_to_vec());
        })
    }

    fn finish(mut self, expected: Option<u64>, has_ending: bool) -> Result<(Recovered, W), Error> {
        self.close(None)?;
        let Recovered {
            messages,
            unverified,
            was_finished,
            ..
        } = self.done;
        self.done.was_finished = was_finished || has_ending;
        if let Some(expected) = expected {
            let lost = expected.saturating_sub(messages);
            self.done.has_lost |= lost > 0;
            self.done.lost_messages = self.done.has_lost.then_some(lost);
        }
        let mut facts = self.end.take();
        let why = match (&facts, self.done.has_lost) {
            (_, true) => Some("recovered: a part of the file was damaged, and is lost"),
            (None, false) => Some("recovered: the recorder was killed, or the file was damaged"),
            (Some(_), false) => None,
        };
        let facts = facts.get_or_insert_default();
        if let Some(why) = why {
            facts.insert("complete".to_owned(), "no".to_owned());
            facts.insert("end".to_owned(), why.to_owned());
        }
        if self.done.has_lost {
            let parts = self.done.damaged_parts.to_string();
            facts.insert("damaged_parts".to_owned(), parts);
        }
        if unverified > 0 {
            facts.insert("unverified_messages".to_owned(), unverified.to_string());
        }
        self.writer.add_metadata(&Metadata {
            name: END.to_owned(),
            metadata: std::mem::take(facts),
        })?;
        Ok((self.done, self.writer.finish()?))
    }
}
