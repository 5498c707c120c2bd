//! Copies the readable part of a damaged recording to a finished one. PURE except for the files.

use std::collections::HashMap;
use std::io::{Read, Write};

use crate::Error;
use crate::messages::{Entry, Messages};
use crate::recording::END;
use crate::writer::{Compression, Writer};

/// The result of a recovery.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Recovered {
    /// The number of messages.
    pub messages: u64,
    /// Whether the file was finished, so that there was nothing to repair.
    pub was_finished: bool,
    /// The damage that ended reading.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub damage: Option<String>,
}

/// Copies a recording as far as it can be read.
///
/// # Errors
/// The new file cannot be written, or the old one has no readable part.
pub fn recover<W: Write>(from: impl Read, to: W) -> Result<(Recovered, W), Error> {
    let mut messages = Messages::new(from);
    let mut writer = Writer::new(to, Compression::None)?;
    let (mut recovered, mut ids) = (Recovered::default(), HashMap::<u16, u16>::new());
    let (mut has_end, mut read_any) = (false, false);
    loop {
        let mut written: Result<(), Error> = Ok(());
        let next = messages.next(|channels, entry| {
            read_any = true;
            written = (|| {
                match entry {
                    Entry::Message {
                        channel,
                        mut header,
                        data,
                    } => {
                        let id = match (ids.get(&channel), channels.get(&channel)) {
                            (Some(id), _) => *id,
                            (None, Some(stored)) => {
                                let schema = match stored.schema_encoding.is_empty() {
                                    true => 0,
                                    false => writer.add_schema(
                                        &stored.schema,
                                        &stored.schema_encoding,
                                        &stored.descriptors,
                                    )?,
                                };
                                let (topic, encoding) = (&stored.topic, &stored.encoding);
                                let id =
                                    writer.add_channel(schema, topic, encoding, &stored.about)?;
                                ids.insert(channel, id);
                                id
                            }
                            // A message without its channel cannot be used.
                            (None, None) => return Ok(()),
                        };
                        header.channel_id = id;
                        writer.add_with(&header, |out| out.extend_from_slice(data))?;
                        recovered.messages += 1;
                    }
                    Entry::Metadata(metadata) => {
                        has_end |= metadata.name == END;
                        writer.add_metadata(&metadata)?;
                    }
                    Entry::End => recovered.was_finished = true,
                }
                Ok(())
            })();
        });
        written?;
        match next {
            Ok(true) => {}
            Ok(false) => break,
            Err(error) if read_any => {
                recovered.damage = Some(error.to_string());
                break;
            }
            Err(error) => return Err(error),
        }
    }
    if !has_end {
        let facts = [
            ("complete", "no"),
            (
                "end",
                "recovered: the recorder was killed, or the file was damaged",
            ),
        ];
        let facts = facts.map(|(key, value)| (key.to_owned(), value.to_owned()));
        writer.add_metadata(&mcap::records::Metadata {
            name: END.to_owned(),
            metadata: facts.into_iter().collect(),
        })?;
    }
    Ok((recovered, writer.finish()?))
}
