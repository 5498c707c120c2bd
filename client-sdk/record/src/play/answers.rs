//! The recorded answers to requests. PURE except for the files.
//!
//! Nothing is indexed in advance: the chunks around the position of the player are read when a
//! client sends a request, and the last ones are kept. The index of the file shows which chunks
//! have requests of this kind, so even rare requests are found immediately.

use std::collections::{BTreeSet, HashSet};
use std::io::{Read, Seek};
use std::sync::Arc;

use amber_proto::Device;
use amber_proto::feed::Direction;

use super::chunk::Chunk;
use super::limits;
use super::recorded::{Named, Recorded, What};
use super::wire::{fields, key, outer};
use crate::Error;

/// Finds the recorded answers to requests.
pub struct Answers<F> {
    recorded: Arc<Recorded>,
    files: Vec<F>,
    /// The last chunks that were used, the newest at the end.
    cached: Vec<(usize, Arc<Chunk>)>,
    unanswered: HashSet<(Device, Vec<u8>)>,
}

/// A recorded request.
struct Asked {
    device: Device,
    time_ns: u64,
    client: i32,
    syn: u64,
}

impl<F: Read + Seek> Answers<F> {
    /// The initial state, without requests. The files are in the order of [`Recorded::join`].
    pub fn new(recorded: Arc<Recorded>, files: Vec<F>) -> Self {
        Self {
            recorded,
            files,
            cached: Vec::new(),
            unanswered: HashSet::new(),
        }
    }

    /// The recorded answer to the same request, [key](super::key) by key, nearest to a time.
    ///
    /// # Errors
    /// The file is damaged or cannot be read.
    pub fn to(
        &mut self,
        device: Device,
        request: &[u8],
        time_ns: u64,
    ) -> Result<Option<Vec<u8>>, Error> {
        let wanted = (device, request.to_vec());
        if self.unanswered.contains(&wanted) {
            return Ok(None);
        }
        let is = |direction: Direction| What::Frames(device, direction);
        let asks = (self.recorded).channels_where(|it| it.what == is(Direction::ToDriver));
        let says = (self.recorded).channels_where(|it| it.what == is(Direction::FromDriver));
        let later = self.recorded.chunks_with(&says);
        // Only the channels with the first field of the request.
        let asks = self.with_first_field(asks, request);
        let found = self.nearest(&asks, time_ns, |this, chunk| {
            let asked = this.asked(chunk, &asks, request, time_ns);
            for asked in asked {
                if let Some(answer) = this.answer(&later, &asked)? {
                    return Ok(Some((asked.time_ns.abs_diff(time_ns), answer)));
                }
            }
            Ok(None)
        })?;
        if found.is_none() && self.unanswered.len() < limits::UNANSWERED {
            self.unanswered.insert(wanted);
        }
        Ok(found)
    }

    /// The message nearest to a time that a device sent with all of these fields, whether it was
    /// published or an answer. `name` is that of the first field.
    ///
    /// # Errors
    /// The file is damaged or cannot be read.
    pub fn said(
        &mut self,
        device: Device,
        name: &str,
        wanted: &[u32],
        time_ns: u64,
    ) -> Result<Option<Vec<u8>>, Error> {
        let what = What::Frames(device, Direction::FromDriver);
        let says = (self.recorded).channels_where(|it| it.what == what && it.name() == name);
        let recorded = self.recorded.clone();
        self.nearest(&says, time_ns, |_, chunk| {
            let all = chunk.messages().filter(|(_, id, _)| says.contains(id));
            let messages = all.filter_map(|(at_ns, id, data)| {
                let (framing, message) = recorded.channels[&id].stored.message(data)?;
                let numbers: Vec<_> = fields(&message)?
                    .iter()
                    .map(|(number, _)| *number)
                    .collect();
                let has_all = wanted.iter().all(|number| numbers.contains(number));
                (has_all && framing.dropped.is_none()).then(|| (at_ns.abs_diff(time_ns), message))
            });
            let nearest = messages.min_by_key(|(distance, _)| *distance);
            Ok(nearest.map(|(distance, message)| (distance, message.into_owned())))
        })
    }

    /// The nearest of what `find` finds in chunks with these channels, with its distance.
    fn nearest(
        &mut self,
        channels: &BTreeSet<u16>,
        time_ns: u64,
        mut find: impl FnMut(&mut Self, &Chunk) -> Result<Option<(u64, Vec<u8>)>, Error>,
    ) -> Result<Option<Vec<u8>>, Error> {
        let mut places: Vec<_> = (self.recorded.chunks_with(channels).into_iter())
            .map(|place| {
                let chunk = self.recorded.chunk(place);
                let before_ns = chunk.message_start_time.saturating_sub(time_ns);
                let behind_ns = time_ns.saturating_sub(chunk.message_end_time);
                (before_ns.max(behind_ns), place)
            })
            .collect();
        places.sort_unstable();
        let mut best: Option<(u64, Vec<u8>)> = None;
        for (distance, place) in places.into_iter().take(limits::SEARCHED_CHUNKS) {
            if best.as_ref().is_some_and(|(best, _)| *best < distance) {
                break;
            }
            let chunk = self.chunk(place)?;
            if let Some(found) = find(self, &chunk)?
                && best.as_ref().is_none_or(|(best, _)| found.0 < *best)
            {
                best = Some(found);
            }
        }
        Ok(best.map(|(_, message)| message))
    }

    /// The channels of requests that begin with the same field. All, if the field is not known.
    fn with_first_field(&self, asks: BTreeSet<u16>, request: &[u8]) -> BTreeSet<u16> {
        let kind = crate::topic::kind_of(&[b"\x10\x01", request].concat());
        let crate::topic::Kind::Field(number) = kind else {
            return asks;
        };
        let of_field = |id: &u16| match self.recorded.channels[id].field {
            Named::Field(known) => known == number,
            Named::Type => false,
            Named::Nothing => true,
        };
        asks.into_iter().filter(of_field).collect()
    }

    /// The same requests in a chunk, the nearest first.
    fn asked(
        &self,
        chunk: &Chunk,
        asks: &BTreeSet<u16>,
        request: &[u8],
        time_ns: u64,
    ) -> Vec<Asked> {
        let all = chunk.messages().filter(|(_, id, _)| asks.contains(id));
        let same = all.filter_map(|(at_ns, id, data)| {
            let (framing, message) = self.recorded.channels[&id].stored.message(data)?;
            let syn = outer(&message)?.syn;
            let is_same = framing.dropped.is_none() && syn != 0 && key(&message)? == request;
            let What::Frames(device, _) = self.recorded.channels[&id].what else {
                return None;
            };
            is_same.then_some(Asked {
                device,
                time_ns: at_ns,
                client: *framing.clients.first()?,
                syn,
            })
        });
        let mut same: Vec<_> = same.collect();
        same.sort_by_key(|asked| asked.time_ns.abs_diff(time_ns));
        same
    }

    /// The answer to a recorded request: the first message behind it with its number for its
    /// client, unless the client uses the number again before.
    fn answer(&mut self, later: &[usize], asked: &Asked) -> Result<Option<Vec<u8>>, Error> {
        let recorded = self.recorded.clone();
        let behind = |place: &&usize| recorded.chunk(**place).message_end_time >= asked.time_ns;
        let behind = later.iter().filter(behind).take(limits::CHUNKS_TO_ANSWER);
        for place in behind {
            let chunk = self.chunk(*place)?;
            for (at_ns, id, data) in chunk.messages() {
                let Some(channel) = recorded.channels.get(&id) else {
                    continue;
                };
                let What::Frames(device, direction) = channel.what else {
                    continue;
                };
                if device != asked.device || at_ns < asked.time_ns {
                    continue;
                }
                let Some((framing, message)) = channel.stored.message(data) else {
                    continue;
                };
                let is_theirs = framing.clients.contains(&asked.client);
                let Some(outer) = outer(&message).filter(|_| is_theirs) else {
                    continue;
                };
                match direction {
                    Direction::FromDriver if outer.ack == asked.syn => {
                        return Ok(Some(message.into_owned()));
                    }
                    Direction::ToDriver if outer.syn == asked.syn && at_ns > asked.time_ns => {
                        return Ok(None);
                    }
                    _ => {}
                }
            }
        }
        Ok(None)
    }

    fn chunk(&mut self, place: usize) -> Result<Arc<Chunk>, Error> {
        let at = self.cached.iter().position(|(cached, _)| *cached == place);
        let chunk = match at {
            Some(at) => self.cached.remove(at).1,
            None => Arc::new(self.recorded.read_chunk(&mut self.files, place)?),
        };
        self.cached.push((place, chunk.clone()));
        while self.cached.len() > 1 && self.cached_bytes() > limits::CACHED_BYTES {
            self.cached.remove(0);
        }
        Ok(chunk)
    }

    /// The bytes of the chunks in memory.
    pub(super) fn cached_bytes(&self) -> usize {
        self.cached.iter().map(|(_, chunk)| chunk.bytes.len()).sum()
    }
}
