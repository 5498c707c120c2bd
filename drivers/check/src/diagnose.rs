//! Finds the mistake that explains wrong bytes. PURE.

use amber_proto::frame::check_prefix;
use amber_proto::{DriverHdr, DriverMsg, Frame, Header, MsgType, Packet, dummy};
use prost::Message;

/// A mistake in a driver, as far as its bytes show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mistake {
    /// Text on stdout.
    Prints(String),
    /// Writes lengths with swapped bytes.
    WritesLittleEndian,
    /// Expects lengths with swapped bytes.
    ReadsLittleEndian,
    /// 0a became 0d 0a.
    TranslatesNewlines,
    /// Lengths that include their own two bytes.
    LengthsCountThemselves,
    /// Lengths of four bytes.
    FourByteLengths,
    /// Lengths as varints: `writeDelimitedTo` and the like.
    VarintLengths,
    /// Messages without lengths.
    NoLengths,
    /// The length in front of the header is not the length of the header.
    HeaderLength {
        /// The length in the frame.
        says: usize,
        /// The real length.
        is: usize,
    },
    /// Only a part of a frame.
    HalfFrame,
    /// Bytes without a known explanation.
    Noise(String),
    /// Writes answers only when the program ends.
    Buffers,
    /// The header of the answer has no clientIDs.
    NoClientIds,
    /// The header of the answer names the device, like that of a client, and no client.
    DeviceInsteadOfClients,
    /// The header of the answer names other clients.
    OtherClients(Vec<i32>),
    /// The answer goes to the first of several clients only.
    FirstClientOnly,
    /// The answer has the number of the request in synNum.
    SynInsteadOfAck,
    /// The answer has no ackNum.
    NoAck,
    /// The answer has another ackNum.
    OtherAck(u32),
    /// The answer has another type than expected.
    OtherType(Option<i32>),
    /// The answer is not a `DriverMsg`.
    NoDriverMsg,
    /// Two answers to one request.
    Twice,
    /// The answer comes in pieces, for a client that does not join any.
    InPieces,
}

impl Mistake {
    /// The mistake in one line.
    pub fn summary(&self) -> String {
        match self {
            Self::Prints(text) => format!("text on stdout: {text:?}"),
            Self::WritesLittleEndian => "it writes lengths in little-endian order".into(),
            Self::ReadsLittleEndian => "it reads lengths in little-endian order".into(),
            Self::TranslatesNewlines => {
                "it writes 0d 0a instead of 0a: stdout is in text mode".into()
            }
            Self::LengthsCountThemselves => "the lengths include their own two bytes".into(),
            Self::FourByteLengths => "lengths have four bytes instead of two".into(),
            Self::VarintLengths => "lengths are varints instead of two bytes".into(),
            Self::NoLengths => "a message without header and lengths".into(),
            Self::HeaderLength { says, is } => {
                format!("the length of the header is {says}, but the header has {is} bytes")
            }
            Self::HalfFrame => "only a part of a frame".into(),
            Self::Noise(why) => format!("bytes that are not a frame ({why})"),
            Self::Buffers => {
                "the answer came only after stdin was closed: stdout is buffered".into()
            }
            Self::NoClientIds => "the header of the answer has no clientIDs".into(),
            Self::DeviceInsteadOfClients => {
                "the header of the answer names the device, but no client".into()
            }
            Self::OtherClients(ids) => format!("the answer is for clients {ids:?}"),
            Self::FirstClientOnly => "only the first of several clients gets an answer".into(),
            Self::SynInsteadOfAck => "the answer has the number in synNum instead of ackNum".into(),
            Self::NoAck => "the answer has no ackNum".into(),
            Self::OtherAck(ack) => format!("the ackNum of the answer is {ack}"),
            Self::OtherType(None) => "the answer has no known type".into(),
            Self::OtherType(Some(number)) => match MsgType::try_from(*number) {
                Ok(kind) => format!("the answer is a {}", kind.as_str_name()),
                Err(_) => format!("the answer is of type {number}"),
            },
            Self::NoDriverMsg => "the answer is not a DriverMsg".into(),
            Self::Twice => "a request was answered twice".into(),
            Self::InPieces => "the answer comes in pieces, but the client joins none".into(),
        }
    }

    /// The usual fix.
    pub fn fix(&self) -> &'static str {
        match self {
            Self::Prints(_) => {
                "print to stderr: stdout carries the protocol. (Python: keep sys.stdout.buffer, then \
                 set sys.stdout = sys.stderr; Java: keep System.out, then call \
                 System.setOut(System.err); C: fprintf(stderr, ...); Node: console.error.) This also \
                 helps against libraries that print a banner."
            }
            Self::WritesLittleEndian => {
                "write both lengths in big-endian order, high byte first: struct.pack(\">H\", n), \
                 writeUInt16BE, DataOutputStream.writeShort, htons"
            }
            Self::ReadsLittleEndian => {
                "read both lengths in big-endian order, high byte first: struct.unpack(\">H\", b), \
                 readUInt16BE, DataInputStream.readUnsignedShort, ntohs"
            }
            Self::TranslatesNewlines => {
                "use binary streams: sys.stdin.buffer and sys.stdout.buffer in Python, \
                 process.stdout.write(Buffer) in Node, _setmode(_fileno(stdout), _O_BINARY) on Windows"
            }
            Self::LengthsCountThemselves => {
                "each length counts only the bytes after it, not its own two"
            }
            Self::FourByteLengths => {
                "write each length as exactly two bytes: an unsigned 16-bit number, not an int"
            }
            Self::VarintLengths => {
                "do not use writeDelimitedTo/parseDelimitedFrom: write a big-endian 16-bit length, \
                 then the serialized message"
            }
            Self::NoLengths => {
                "write whole frames: 2 bytes length, header, 2 bytes length, message"
            }
            Self::HeaderLength { .. } => {
                "set all ids first, serialize the header, and write the length of the result in front of \
                 it; do the same with the message"
            }
            Self::HalfFrame => {
                "write the whole frame at once and flush; check that no length is larger than the part after it"
            }
            Self::Noise(_) => {
                "write only frames to stdout: 2 bytes length, header, 2 bytes length, message; if several \
                 threads write, hold a lock for each whole frame"
            }
            Self::Buffers => {
                "flush stdout after each frame: sys.stdout.buffer.flush(), fflush(stdout), out.flush(); \
                 line ends do not flush a pipe"
            }
            Self::NoClientIds | Self::DeviceInsteadOfClients => {
                "copy clientIDs from the header of the request to the header of the answer"
            }
            Self::OtherClients(_) => {
                "store the header with its request until you have answered it; a single variable (\"the \
                 last client\") mixes clients up"
            }
            Self::FirstClientOnly => "copy the whole list clientIDs, not only its first entry",
            Self::SynInsteadOfAck | Self::NoAck | Self::OtherAck(_) => {
                "set answer.ackNum = request.synNum, and leave out synNum in the answer"
            }
            Self::OtherType(_) => {
                "answer PING with PONG (3) and a DATA request with DATA (1); `type` is required"
            }
            Self::NoDriverMsg => {
                "serialize a DriverMsg, with the fields of the device as extensions"
            }
            Self::InPieces => {
                "send pieces only to clients whose last request or SUBSCRIBE has the field `joins`"
            }
            Self::Twice => {
                "look for two places that answer (a base class and your own code?), or for two threads that \
                 read the same queue"
            }
        }
    }
}

/// Checks an answer for the expected `ids`, type and `ack`.
///
/// # Errors
/// The mistake in the answer.
pub fn judge(packet: &Packet, ids: &[i32], kind: MsgType, ack: Option<u32>) -> Result<(), Mistake> {
    let Ok(message) = dummy::DriverMsg::decode(packet.message.clone()) else {
        return Err(Mistake::NoDriverMsg);
    };
    if message.r#type != Some(kind.into()) {
        return Err(Mistake::OtherType(message.r#type));
    }
    let base = DriverMsg::decode(packet.message.clone()).unwrap_or_default();
    if base.piece.is_some() {
        return Err(Mistake::InPieces);
    }
    match (ack, message.ack_num) {
        (Some(wanted), Some(got)) if wanted == got => {}
        (Some(wanted), None | Some(0)) if message.syn_num == Some(wanted) => {
            return Err(Mistake::SynInsteadOfAck);
        }
        (Some(_), None) => return Err(Mistake::NoAck),
        (Some(_) | None, Some(got)) if got != 0 || ack.is_some() => {
            return Err(Mistake::OtherAck(got));
        }
        _ => {}
    }
    let got = &packet.header.client_ids;
    if got == ids {
        return Ok(());
    }
    Err(match (got.as_slice(), packet.header.device_type) {
        ([], Some(_)) => Mistake::DeviceInsteadOfClients,
        ([], None) => Mistake::NoClientIds,
        ([one], _) if ids.len() > 1 && *one == ids[0] => Mistake::FirstClientOnly,
        _ => Mistake::OtherClients(got.clone()),
    })
}

impl Mistake {
    /// The mistake behind this one, if wrong lengths made other bytes look like a
    /// frame. `recent` is everything that was received.
    pub fn or_of_bytes(self, recent: &[u8]) -> Self {
        if !matches!(self, Self::NoDriverMsg | Self::OtherType(_)) {
            return self;
        }
        match noise(recent) {
            Self::HalfFrame | Self::Noise(_) | Self::Prints(_) => self,
            better => better,
        }
    }
}

/// Explains bytes that are not a frame, or only a part of one.
pub fn noise(bytes: &[u8]) -> Mistake {
    let why = match check_prefix(bytes) {
        Err(error) => error.to_string(),
        Ok(()) => "incomplete".into(),
    };
    if let Some(text) = text(bytes) {
        return Mistake::Prints(text);
    }
    let complete = |frames: Option<usize>| frames.is_some_and(|count| count > 0);
    if complete(frames(bytes, |b| fixed(b, 2, little_endian, 0))) {
        return Mistake::WritesLittleEndian;
    }
    if complete(frames(bytes, |b| fixed(b, 4, big_endian, 0))) {
        return Mistake::FourByteLengths;
    }
    if complete(frames(bytes, |b| fixed(b, 2, big_endian, 2))) {
        return Mistake::LengthsCountThemselves;
    }
    if bytes.windows(2).any(|pair| pair == b"\r\n") {
        let mut unix = Vec::with_capacity(bytes.len());
        for (i, byte) in bytes.iter().enumerate() {
            if *byte != b'\r' || bytes.get(i + 1) != Some(&b'\n') {
                unix.push(*byte);
            }
        }
        if complete(frames(&unix, |b| fixed(b, 2, big_endian, 0))) {
            return Mistake::TranslatesNewlines;
        }
    }
    if complete(frames(bytes, varint_delimited)) {
        return Mistake::VarintLengths;
    }
    if let Some(mistake) = header_length(bytes) {
        return mistake;
    }
    if DriverMsg::decode(bytes).is_ok_and(|message| is_known(message.r#type)) && bytes.len() > 1 {
        return Mistake::NoLengths;
    }
    match why.as_str() {
        "incomplete" => Mistake::HalfFrame,
        _ => Mistake::Noise(why),
    }
}

/// The text at the start of the bytes, if there is any.
fn text(bytes: &[u8]) -> Option<String> {
    let start = &bytes[..bytes.len().min(80)];
    let lossy = String::from_utf8_lossy(start);
    let is_text =
        |c: &char| !c.is_control() && *c != '\u{fffd}' || matches!(c, '\n' | '\r' | '\t' | '\x1b');
    let text: String = lossy.chars().take_while(is_text).collect();
    let line = text.trim_start().lines().next().unwrap_or_default();
    // Two letters may be a length; random bytes rarely begin with three.
    (line.chars().count() >= 3).then(|| line.to_owned())
}

/// The number of frames in the bytes, if `part` splits off each part; `None` if
/// bytes are left over.
fn frames<'a>(
    mut bytes: &'a [u8],
    part: impl Fn(&'a [u8]) -> Option<(&'a [u8], &'a [u8])>,
) -> Option<usize> {
    let mut count = 0;
    while !bytes.is_empty() {
        let (header, rest) = part(bytes)?;
        let (message, rest) = part(rest)?;
        if !is_frame(header, message) {
            return None;
        }
        bytes = rest;
        count += 1;
    }
    Some(count)
}

fn is_frame(header: &[u8], message: &[u8]) -> bool {
    let known = dummy::DriverMsg::decode(message).is_ok_and(|m| m.r#type.is_some_and(is_known));
    Header::parse(header).is_ok() && DriverHdr::decode(header).is_ok() && known
}

fn is_known(number: i32) -> bool {
    MsgType::try_from(number).is_ok()
}

type Number = fn(&[u8]) -> usize;

fn fixed(bytes: &[u8], size: usize, number: Number, own: usize) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_at_checked(size)?;
    rest.split_at_checked(number(length).checked_sub(own)?)
}

fn big_endian(bytes: &[u8]) -> usize {
    bytes
        .iter()
        .fold(0, |sum, byte| sum << 8 | usize::from(*byte))
}

fn little_endian(bytes: &[u8]) -> usize {
    bytes
        .iter()
        .rev()
        .fold(0, |sum, byte| sum << 8 | usize::from(*byte))
}

fn varint_delimited(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut rest = bytes;
    let length = prost::decode_length_delimiter(&mut rest).ok()?;
    rest.split_at_checked(length)
}

/// A frame that would be valid with another first length.
fn header_length(bytes: &[u8]) -> Option<Mistake> {
    let says = big_endian(bytes.get(..2)?);
    let rest = &bytes[2..];
    (0..=rest.len().min(64)).find_map(|is| {
        let (header, rest) = rest.split_at_checked(is)?;
        let (message, rest) = fixed(rest, 2, big_endian, 0)?;
        // The rest is empty, or begins like another frame.
        let fits = rest.is_empty() || Frame::from_stream(rest).is_none() || rest[0] == 0;
        (is != says && fits && is_frame(header, message))
            .then_some(Mistake::HeaderLength { says, is })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(ids: &[i32], message: &'static [u8]) -> Packet {
        Packet {
            header: DriverHdr {
                client_ids: ids.to_vec(),
                ..DriverHdr::default()
            },
            message: message.into(),
        }
    }

    #[test]
    fn answers_are_judged() {
        for (ids, message, mistake) in [
            (&[5][..], &b"\x10\x03\x20\x07"[..], None),
            (&[], b"\x10\x03\x20\x07", Some(Mistake::NoClientIds)),
            (
                &[6],
                b"\x10\x03\x20\x07",
                Some(Mistake::OtherClients(vec![6])),
            ),
            (&[5], b"\x10\x03\x18\x07", Some(Mistake::SynInsteadOfAck)),
            (
                &[5],
                b"\x10\x03\x18\x07\x20\0",
                Some(Mistake::SynInsteadOfAck),
            ),
            (&[5], b"\x10\x03", Some(Mistake::NoAck)),
            (&[5], b"\x10\x03\x20\x08", Some(Mistake::OtherAck(8))),
            (&[5], b"\x10\x02\x20\x07", Some(Mistake::OtherType(Some(2)))),
            (&[5], b"\x20\x07", Some(Mistake::OtherType(None))),
            (&[5], b"\xff", Some(Mistake::NoDriverMsg)),
        ] {
            let judged = judge(&packet(ids, message), &[5], MsgType::Pong, Some(7));
            assert_eq!(judged.err(), mistake, "{ids:?} {message:02x?}");
        }
        let judged = judge(&packet(&[5], b"\x10\x03"), &[5, 6], MsgType::Pong, None);
        assert_eq!(judged, Err(Mistake::FirstClientOnly));
        let mut device = packet(&[], b"\x10\x03");
        device.header.device_type = Some(5);
        let judged = judge(&device, &[5], MsgType::Pong, None);
        assert_eq!(judged, Err(Mistake::DeviceInsteadOfClients));
        for (message, fine) in [(&b"\x10\x03\x20\0"[..], true), (b"\x10\x03\x20\x01", false)] {
            let judged = judge(&packet(&[5], message), &[5], MsgType::Pong, None);
            assert_eq!(judged.is_ok(), fine);
        }
    }

    #[test]
    fn wrong_frames_are_recognized() {
        for (bytes, mistake) in [
            (
                &b"driver ready\n"[..],
                Mistake::Prints("driver ready".into()),
            ),
            (
                b"\x03\0\x1a\x01\x05\x04\0\x10\x03\x20\x07",
                Mistake::WritesLittleEndian,
            ),
            (
                b"\0\x05\x1a\x01\x05\0\x06\x10\x03\x20\x07",
                Mistake::LengthsCountThemselves,
            ),
            (
                b"\0\0\0\x03\x1a\x01\x05\0\0\0\x04\x10\x03\x20\x07",
                Mistake::FourByteLengths,
            ),
            (
                b"\x03\x1a\x01\x05\x04\x10\x03\x20\x07",
                Mistake::VarintLengths,
            ),
            (
                b"\0\x03\x1a\x01\x05\0\x04\x10\x03\x20\x0d\x0a",
                Mistake::TranslatesNewlines,
            ),
            (
                b"\0\x04\x1a\x01\x05\0\x04\x10\x03\x20\x07",
                Mistake::HeaderLength { says: 4, is: 3 },
            ),
            (
                b"\0\x01\x1a\x01\x05\0\x04\x10\x03\x20\x07",
                Mistake::HeaderLength { says: 1, is: 3 },
            ),
            (b"\x10\x03\x20\x07", Mistake::NoLengths),
            (b"\0\x03\x1a\x01\x05\0", Mistake::HalfFrame),
        ] {
            assert_eq!(noise(bytes), mistake, "{bytes:02x?}");
        }
        assert!(matches!(noise(b"\xff\xff\xff\xff\xff"), Mistake::Noise(_)));
        for bytes in [&b""[..], b"\0", b"a"] {
            noise(bytes); // no panic
        }
    }
}
