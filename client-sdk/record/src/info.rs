//! The contents of a recording. PURE except for the file.

use std::collections::BTreeMap;
use std::io::{Read, Seek};

use prost::Message;
use serde::Serialize;

use crate::damage::{Damage, Effect};
use crate::descriptors::PACKAGE;
use crate::messages::{Entry, Messages};
use crate::recording::{END, GAPS, GapFact, OWN_TOPICS};
use crate::{Error, limits};

/// The content of a recording.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Info {
    /// Messages between clients and drivers, as the recorder counts them.
    pub messages: u64,
    /// All others: events, and what is made for viewers.
    pub others: u64,
    /// The first message, in nanoseconds since 1970.
    pub first_ns: Option<u64>,
    /// The last message, in nanoseconds since 1970.
    pub last_ns: Option<u64>,
    /// Whether the file was finished. Otherwise `amber recover` finishes it.
    pub finished: bool,
    /// The damaged parts, at most 1000 of them. Messages whose checksum is wrong are counted as
    /// messages, too.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub damage: Vec<Damage>,
    /// Attachments: their names and lengths.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<(String, u64)>,
    /// The channels, by topic.
    pub channels: Vec<ChannelInfo>,
    /// The times of which messages are missing because the recorder was too slow.
    pub gaps: Vec<GapInfo>,
    /// The metadata: `amber.start`, `amber.end` and others.
    pub metadata: BTreeMap<String, BTreeMap<String, String>>,
}

/// One channel of a recording.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ChannelInfo {
    /// The topic.
    pub topic: String,
    /// The full name of the message.
    pub schema: String,
    /// The number of messages.
    pub messages: u64,
    /// The number of stored bytes.
    pub bytes: u64,
    /// The first message, in nanoseconds since 1970.
    pub first_ns: Option<u64>,
    /// The last message, in nanoseconds since 1970.
    pub last_ns: Option<u64>,
}

/// A time of which messages are missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct GapInfo {
    /// The first missing message, in nanoseconds since 1970.
    pub first_ns: u64,
    /// The last missing message, in nanoseconds since 1970.
    pub last_ns: u64,
    /// The number of missing messages, or 0 if it is not known.
    pub messages: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl From<&GapFact> for GapInfo {
    fn from(gap: &GapFact) -> Self {
        Self {
            first_ns: gap.first_ns.unwrap_or_default(),
            last_ns: gap.last_ns.unwrap_or_default(),
            messages: gap.messages.unwrap_or_default(),
            bytes: gap.bytes.unwrap_or_default(),
        }
    }
}

impl Info {
    /// Reads a whole file. It need not be finished.
    ///
    /// # Errors
    /// The file cannot be read, or is not an MCAP file.
    pub fn read(file: impl Read + Seek) -> Result<Self, Error> {
        let mut messages = Messages::new(file)?;
        let (mut info, mut channels) = (Self::default(), BTreeMap::<u16, ChannelInfo>::new());
        while messages.next(|stored, entry| match entry {
            Entry::Message {
                channel,
                header,
                data,
                ..
            } => {
                let time_ns = header.log_time;
                let known = channels.entry(channel).or_default();
                known.messages += 1;
                known.bytes += data.len() as u64;
                span(&mut known.first_ns, &mut known.last_ns, time_ns);
                span(&mut info.first_ns, &mut info.last_ns, time_ns);
                let is_gap = stored.get(&channel).is_some_and(|it| it.topic == GAPS);
                let gap = is_gap.then(|| GapFact::decode(data).ok()).flatten();
                info.gaps.extend(gap.as_ref().map(GapInfo::from));
            }
            Entry::Metadata(metadata) => {
                info.metadata.insert(metadata.name, metadata.metadata);
            }
            Entry::Attachment(attached) => {
                info.attachments
                    .push((attached.header.name, attached.bytes));
            }
            Entry::Damage(damage) if info.damage.len() < limits::LISTED => {
                info.damage.push(damage);
            }
            Entry::Damage(_) => {}
            Entry::End => info.finished = true,
        })? {}
        info.finished |= messages.has_ending();
        for (id, mut channel) in channels {
            if let Some(stored) = messages.channels().get(&id) {
                channel.topic.clone_from(&stored.topic);
                channel.schema.clone_from(&stored.schema);
            } else {
                channel.topic = format!("channel {id} without a name");
            }
            let stored = messages.channels().get(&id);
            let is_own =
                channel.schema.starts_with(PACKAGE) && !channel.topic.starts_with(OWN_TOPICS);
            let is_of_device = is_own || stored.is_some_and(|it| it.about.contains_key("device"));
            match is_of_device {
                true => info.messages += channel.messages,
                false => info.others += channel.messages,
            }
            info.channels.push(channel);
        }
        info.channels.sort_by(|a, b| a.topic.cmp(&b.topic));
        Ok(info)
    }

    /// Whether the recording is marked as complete.
    pub fn is_complete(&self) -> bool {
        let end = self.metadata.get(END);
        let complete = end.and_then(|end| end.get("complete"));
        let is_whole = self.damage.iter().all(|it| it.effect == Effect::Harmless);
        self.finished && is_whole && complete.is_some_and(|complete| complete == "yes")
    }
}

fn span(first: &mut Option<u64>, last: &mut Option<u64>, time_ns: u64) {
    *first = Some(first.map_or(time_ns, |first| first.min(time_ns)));
    *last = Some(last.map_or(time_ns, |last| last.max(time_ns)));
}
