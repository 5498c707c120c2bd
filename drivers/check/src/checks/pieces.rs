//! Answers that are longer than a frame, and travel in pieces. IO.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use amber_proto::limits::{MAX_LONG, MAX_PIECES, PIECE_BYTES};
use amber_proto::pieces::Ability;
use amber_proto::{DriverMsg, MissingPieces, MsgType, Packet, Piece};
use bytes::Bytes;
use prost::Message;

use crate::devices::{Answer, Ask};
use crate::diagnose::judge;
use crate::limits;
use crate::run::{Checking, Finding, Run, Verdict, expected, with_syn};

/// The client that asks, and another one.
const CLIENT: i32 = 61;
const OTHER: i32 = 62;

/// How often it is tried: a driver keeps a message only for half a second, and this machine may be
/// slow.
const TRIES: u32 = 5;

const RULES: &str = "pieces as docs/PROTOCOL.md describes them in `Longer messages`";

pub(super) fn pieces(run: &mut Run<'_>) -> Checking {
    let asks = run.asks().into_iter();
    for ask in asks.filter(|ask| ask.answer != Answer::Nothing) {
        let Some(long) = long_answer(run, &ask, None)? else {
            continue;
        };
        called_for(run, &ask, long.number)?;
        only_on_request(run, &ask, &long)?;
        return Ok(Verdict::Seen(format!(
            "'{}': {} bytes in {} pieces",
            ask.name,
            long.bytes(),
            long.count
        )));
    }
    Ok(Verdict::NotApplicable(
        "no answer was longer than a frame".into(),
    ))
}

/// A client on another computer.
fn usual() -> Ability {
    Ability::of_client(false)
}

/// A message whose pieces have arrived.
struct Long {
    number: u32,
    count: u32,
    /// The whole messages, by the index of their piece.
    messages: BTreeMap<u32, Bytes>,
    data: BTreeMap<u32, Bytes>,
}

impl Long {
    fn begin(piece: &Piece) -> Self {
        Self {
            number: piece.message(),
            count: piece.count(),
            messages: BTreeMap::new(),
            data: BTreeMap::new(),
        }
    }

    /// Adds a piece; the reason if it breaks a rule.
    fn add(&mut self, packet: &Packet, most: usize) -> Result<(), String> {
        let (base, piece) = piece_of(packet).ok_or("a piece is not a DriverMsg")?;
        let (index, count) = (piece.index(), piece.count());
        let data = piece.data.unwrap_or_default();
        let which = format!("piece {index} of {count}");
        if packet.header.client_ids != [CLIENT] {
            let ids = &packet.header.client_ids;
            return Err(format!("{which} is for clients {ids:?}"));
        }
        if base.r#type() != MsgType::Data {
            return Err(format!("{which} has type {}", base.r#type().as_str_name()));
        }
        if base.syn_num.is_some() || base.ack_num.is_some() {
            return Err(format!(
                "{which} has a synNum or ackNum of its own: only the joined message has one"
            ));
        }
        if piece.stream.is_some() {
            return Err(format!("{which} of an answer has a `stream`"));
        }
        if !(2..=MAX_PIECES).contains(&count) || index >= count {
            return Err(format!(
                "there is a {which}; the count is 2 to {MAX_PIECES}, and indices begin with 0"
            ));
        }
        if (piece.message.unwrap_or_default(), count) != (self.number, self.count) {
            return Err("the pieces of one answer have several numbers or counts".into());
        }
        if data.is_empty() || data.len() > most {
            let length = data.len();
            return Err(format!("{which} has {length} bytes, not 1 to {most}"));
        }
        let others = self.data.iter().filter(|(it, _)| **it + 1 != count);
        let length = others.map(|(_, data)| data.len()).next();
        let fits = match (length, index + 1 == count) {
            (None, _) => true,
            (Some(length), true) => data.len() <= length,
            (Some(length), false) => data.len() == length,
        };
        if !fits {
            return Err(format!(
                "{which} has {} bytes, and an earlier one {}: only the last one may be shorter",
                data.len(),
                length.unwrap_or_default()
            ));
        }
        if self.data.insert(index, data).is_some() {
            return Err(format!("{which} came twice"));
        }
        self.messages.insert(index, packet.message.clone());
        if self.bytes() > MAX_LONG {
            return Err(format!("the answer has more than {MAX_LONG} bytes"));
        }
        Ok(())
    }

    fn is_whole(&self) -> bool {
        self.data.len() == self.count as usize
    }

    fn bytes(&self) -> usize {
        self.data.values().map(Bytes::len).sum()
    }

    fn is_newer_than(&self, number: u32) -> bool {
        (1..1 << 31).contains(&self.number.wrapping_sub(number))
    }
}

/// The base fields of a message, and its piece.
fn piece_of(packet: &Packet) -> Option<(DriverMsg, Piece)> {
    let base = DriverMsg::decode(packet.message.clone()).ok()?;
    let piece = base.piece.clone()?;
    Some((base, piece))
}

fn send(run: &mut Run<'_>, ask: &Ask, joins: Option<Ability>) -> Result<u32, Finding> {
    let syn = run.syn();
    let joins = joins.map(Ability::to_append).unwrap_or_default();
    let message = [&with_syn(&ask.message, syn)[..], &joins].concat();
    run.send(&[CLIENT], &message)?;
    Ok(syn)
}

/// The answer to a request of a client that joins pieces; `None` if it fits into a frame. `before` is the
/// number of the long message before it.
fn long_answer(run: &mut Run<'_>, ask: &Ask, before: Option<u32>) -> Result<Option<Long>, Finding> {
    let joins = usual();
    let syn = send(run, ask, Some(joins))?;
    let counts_on = || {
        let what = format!("the answers to '{}' do not count upwards", ask.name);
        Finding::new(
            what,
            "a larger `message` in the pieces of each long message",
        )
    };
    let mut long: Option<Long> = None;
    let mut has_old_pieces = false;
    loop {
        let Some(packet) = run.receive(run.plan.timeout)? else {
            return match long {
                Some(Long { data, count, .. }) => {
                    let what = format!("only {} of {count} pieces came", data.len());
                    Err(Finding::new(what, RULES))
                }
                None if has_old_pieces => Err(counts_on()),
                // The check `requests` judges devices that do not answer.
                None => Ok(None),
            };
        };
        let Some((_, piece)) = piece_of(&packet) else {
            return Ok(None);
        };
        // They may be late answers to calls.
        if before == Some(piece.message()) {
            has_old_pieces = true;
            continue;
        }
        let long = long.get_or_insert_with(|| Long::begin(&piece));
        let added = long.add(&packet, joins.piece_bytes);
        added.map_err(|wrong| Finding::new(wrong, RULES))?;
        if before.is_some_and(|before| !long.is_newer_than(before)) {
            return Err(counts_on());
        }
        if long.is_whole() {
            let joined = Packet {
                header: packet.header,
                message: long.data.values().flatten().copied().collect(),
            };
            judge(&joined, &[CLIENT], MsgType::Data, Some(syn)).map_err(|mistake| {
                let wanted = expected(&[CLIENT], MsgType::Data, Some(syn));
                Finding::of(&mistake, wanted).during("the joined message")
            })?;
            break;
        }
    }
    Ok(long)
}

/// A client gets again the pieces that it calls for, and no other client does.
fn called_for(run: &mut Run<'_>, ask: &Ask, mut before: u32) -> Result<(), Finding> {
    let mut tried = 0;
    loop {
        let Some(long) = long_answer(run, ask, Some(before))? else {
            return Ok(()); // this time, it fits into a frame
        };
        before = long.number;
        let wanted = [0, long.count - 1];
        call(run, OTHER, &long, &wanted)?;
        call(run, CLIENT, &long, &wanted)?;
        let mut again = Vec::new();
        while again.len() < wanted.len()
            && let Some(packet) = run.receive(Duration::from_secs(1))?
        {
            again.push(packet);
        }
        tried += 1;
        if again.is_empty() && tried < TRIES {
            continue;
        }
        let is_right = |index: &u32| {
            let mut again = again.iter();
            again.any(|it| {
                it.header.client_ids == [CLIENT] && long.messages.get(index) == Some(&it.message)
            })
        };
        if !wanted.iter().all(is_right) || again.len() > wanted.len() {
            let what = match again.iter().find(|it| it.header.client_ids != [CLIENT]) {
                Some(packet) => format!(
                    "a client calls for pieces, and clients {:?} get them",
                    packet.header.client_ids
                ),
                None => format!(
                    "it answers a call for 2 of {} pieces with {} messages",
                    long.count,
                    again.len()
                ),
            };
            return Err(Finding::new(
                what,
                format!(
                    "pieces 0 and {} again, for client {CLIENT} only",
                    long.count - 1
                ),
            )
            .fix(
                "keep a long message for half a second after its last piece; on a message with \
                 `missing`, send these pieces again to that client, if it is one of those that the \
                 message went to",
            ));
        }
        return Ok(());
    }
}

fn call(run: &mut Run<'_>, client: i32, long: &Long, index: &[u32]) -> Result<(), Finding> {
    let call = DriverMsg {
        r#type: MsgType::Data.into(),
        missing: Some(MissingPieces {
            message: Some(long.number),
            index: index.to_vec(),
        }),
        ..DriverMsg::default()
    };
    run.send(&[client], &call.encode_to_vec())
}

/// A client that joins no pieces, or only shorter messages, gets none. It is the one that has got some
/// before: its last request counts.
fn only_on_request(run: &mut Run<'_>, ask: &Ask, long: &Long) -> Result<(), Finding> {
    let short = Ability {
        longest: long.bytes() / 2,
        piece_bytes: PIECE_BYTES,
    };
    for (joins, whose) in [
        (
            None,
            "a client whose last request has no `joins`".to_owned(),
        ),
        (
            Some(short),
            format!("a client that joins at most {} bytes", short.longest),
        ),
    ] {
        let syn = send(run, ask, joins)?;
        let deadline = Instant::now() + limits::PUBLISHED;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let Some(packet) = run.receive(left)? else {
                break;
            };
            if piece_of(&packet).is_some() {
                return Err(Finding::new(
                    format!("it sends pieces to {whose}"),
                    "no pieces: such clients cannot join them",
                )
                .fix("keep what each client joins: `joins` of its last request or SUBSCRIBE"));
            }
            if judge(&packet, &[CLIENT], MsgType::Data, Some(syn)).is_ok() {
                break;
            }
        }
    }
    Ok(())
}
