//! Explains bytes of the protocol one by one, and finds the first invalid one. PURE.

use std::fmt::Write as _;

use amber_proto::Header;
use prost_reflect::{Kind, MessageDescriptor};

use crate::schemas::{MAX_SHOWN as MAX_ELEMENTS, Schemas};

/// The deepest nesting of messages and groups: the limit of protobuf.
const MAX_DEPTH: usize = 100;

/// The longest text or byte string that is shown.
const MAX_SHOWN: usize = 48;

/// A few bytes and their meaning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The offset of the first byte.
    pub offset: usize,
    /// The number of bytes.
    pub length: usize,
    /// The number of enclosing messages.
    pub depth: usize,
    /// The meaning.
    pub text: String,
}

/// The first invalid byte.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Malformed {
    /// Its offset.
    pub offset: usize,
    /// The reason why it is invalid.
    pub why: String,
}

/// One frame of several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explained {
    /// Its offset.
    pub offset: usize,
    /// Its length in bytes.
    pub length: usize,
    /// The position of its header.
    pub header: std::ops::Range<usize>,
    /// The position of its message.
    pub message: std::ops::Range<usize>,
    /// The explanation of every byte.
    pub lines: Vec<Line>,
    /// The reason why its header is not a `DriverHdr`; then it is not a frame.
    pub header_error: Option<Malformed>,
    /// The reason why its message is not a `DriverMsg`. The mediator still forwards it.
    pub message_error: Option<Malformed>,
}

impl Schemas {
    /// Explains consecutive frames. Bytes after the last whole frame are the error.
    pub fn explain(&self, bytes: &[u8]) -> (Vec<Explained>, Option<Malformed>) {
        let mut frames = Vec::new();
        let mut at = 0;
        while at < bytes.len() {
            match self.explain_frame(bytes, at) {
                Ok(frame) => {
                    at += frame.length;
                    let broken = frame.header_error.clone();
                    frames.push(frame);
                    if broken.is_some() {
                        return (frames, broken);
                    }
                }
                Err(error) => return (frames, Some(error)),
            }
        }
        (frames, None)
    }

    /// Explains the frame that begins at `start`.
    ///
    /// # Errors
    /// The frame is incomplete.
    pub fn explain_frame(&self, bytes: &[u8], start: usize) -> Result<Explained, Malformed> {
        let header = part(bytes, start, "header")?;
        let message = part(bytes, header.end, "message")?;
        let mut walk = Walk::new(bytes);
        walk.line(start, 2, 0, format!("header: {} bytes", header.len()));
        let header_error = walk.message(header.clone(), Some(self.header()), 1).err();
        walk.line(
            header.end,
            2,
            0,
            format!("message: {} bytes", message.len()),
        );
        let parsed = Header::parse(&bytes[header.clone()]).unwrap_or_default();
        let schema = self.for_device(parsed.device_type).message();
        let message_error = walk.message(message.clone(), Some(schema), 1).err();
        Ok(Explained {
            offset: start,
            length: message.end - start,
            header,
            message,
            lines: walk.lines,
            header_error,
            message_error,
        })
    }

    /// Explains a message without a frame.
    pub fn explain_message(&self, bytes: &[u8]) -> (Vec<Line>, Option<Malformed>) {
        let mut walk = Walk::new(bytes);
        let error = walk.message(0..bytes.len(), Some(self.message()), 0).err();
        (walk.lines, error)
    }
}

/// Offset, bytes and meaning in columns.
pub fn table(bytes: &[u8], lines: &[Line]) -> String {
    let mut out = String::new();
    for line in lines {
        let end = line.offset + line.length;
        let hex = spaced(&bytes[line.offset..end.min(bytes.len())], 8);
        let indent = "  ".repeat(line.depth);
        let _ = writeln!(out, "{:6}  {hex:26}  {indent}{}", line.offset, line.text);
    }
    out
}

/// `10 01 18 ..`: at most `most` bytes.
pub fn spaced(bytes: &[u8], most: usize) -> String {
    let shown: Vec<_> = bytes
        .iter()
        .take(most)
        .map(|b| format!("{b:02x}"))
        .collect();
    let more = if bytes.len() > most { " .." } else { "" };
    shown.join(" ") + more
}

/// The part after the length at offset `at`.
fn part(bytes: &[u8], at: usize, name: &str) -> Result<std::ops::Range<usize>, Malformed> {
    let malformed = |why| Malformed { offset: at, why };
    let Some(length) = bytes.get(at..at + 2) else {
        let left = bytes.len() - at;
        return Err(malformed(format!(
            "the length of the {name} needs 2 bytes (big-endian), there {} {left}",
            if left == 1 { "is" } else { "are" }
        )));
    };
    let length = usize::from(u16::from_be_bytes([length[0], length[1]]));
    let (start, end) = (at + 2, at + 2 + length);
    if end > bytes.len() {
        let left = bytes.len() - start;
        let mut why = format!("the {name} should have {length} bytes, but only {left} follow");
        let swapped = (length >> 8) | ((length & 0xff) << 8);
        if swapped <= left && length > 0xff {
            let _ = write!(
                why,
                " (in little-endian order it would be {swapped}: are the bytes swapped?)"
            );
        }
        return Err(malformed(why));
    }
    Ok(start..end)
}

/// The known facts about a field.
struct Known {
    name: String,
    kind: Kind,
    list: bool,
}

fn known(descriptor: &MessageDescriptor, number: u32) -> Option<Known> {
    if let Some(field) = descriptor.get_field(number) {
        return Some(Known {
            name: field.name().into(),
            kind: field.kind(),
            list: field.is_list(),
        });
    }
    let extension = descriptor.get_extension(number)?;
    Some(Known {
        name: extension.name().into(),
        kind: extension.kind(),
        list: extension.is_list(),
    })
}

struct Walk<'a> {
    bytes: &'a [u8],
    lines: Vec<Line>,
}

impl<'a> Walk<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            lines: Vec::new(),
        }
    }

    fn line(&mut self, offset: usize, length: usize, depth: usize, text: String) {
        self.lines.push(Line {
            offset,
            length,
            depth,
            text,
        });
    }

    fn message(
        &mut self,
        range: std::ops::Range<usize>,
        descriptor: Option<&MessageDescriptor>,
        depth: usize,
    ) -> Result<(), Malformed> {
        self.fields(range, descriptor, depth, None).map(drop)
    }

    /// Explains the fields of a message, or of a group up to its end. Returns the
    /// offset of their end.
    fn fields(
        &mut self,
        range: std::ops::Range<usize>,
        descriptor: Option<&MessageDescriptor>,
        depth: usize,
        group: Option<u32>,
    ) -> Result<usize, Malformed> {
        let mut at = range.start;
        while at < range.end {
            let start = at;
            let tag = self.varint(&mut at, range.end)?;
            let (number, wire) = ((tag >> 3) as u32, tag & 7);
            if tag > u64::from(u32::MAX) || number == 0 {
                return Err(malformed(start, "invalid field number"));
            }
            let field = descriptor.and_then(|descriptor| known(descriptor, number));
            let name = field
                .as_ref()
                .map_or(format!("unknown field {number}"), |field| {
                    field.name.clone()
                });
            if let Some(field) = &field
                && !fits(&field.kind, field.list, wire)
            {
                return Err(malformed(
                    start,
                    format!(
                        "{name} ({number}) cannot have wire type {wire} ({})",
                        wire_name(wire)
                    ),
                ));
            }
            let kind = field.as_ref().map(|field| &field.kind);
            match wire {
                0 => {
                    let value = self.varint(&mut at, range.end)?;
                    let mut text = format!("{name} = {}", number_text(kind, value));
                    if name == "deviceType"
                        && let Some(known) = amber_proto::DeviceType(value as i32).name()
                    {
                        let _ = write!(text, " ({known})");
                    }
                    self.line(start, at - start, depth, text);
                }
                1 | 5 => {
                    let size = if wire == 1 { 8 } else { 4 };
                    let bytes = self.take(&mut at, size, range.end, &name)?;
                    let text = format!("{name} = {}", fixed_text(kind, bytes));
                    self.line(start, at - start, depth, text);
                }
                2 => {
                    let length_at = at;
                    let length = self.varint(&mut at, range.end)?;
                    let length = usize::try_from(length).unwrap_or(usize::MAX);
                    let body = at;
                    let bytes = self
                        .take(&mut at, length, range.end, &name)
                        .map_err(|error| malformed(length_at, error.why))?;
                    match kind {
                        Some(Kind::Message(inner)) if depth < MAX_DEPTH => {
                            self.line(
                                start,
                                body - start,
                                depth,
                                format!("{name}: {length} bytes"),
                            );
                            self.message(body..at, Some(inner), depth + 1)?;
                        }
                        Some(Kind::String) => match std::str::from_utf8(bytes) {
                            Ok(text) => {
                                let text = format!("{name} = {:?}", cut(text));
                                self.line(start, at - start, depth, text);
                            }
                            Err(error) => {
                                let offset = body + error.valid_up_to();
                                return Err(malformed(
                                    offset,
                                    format!("{name} is not valid UTF-8"),
                                ));
                            }
                        },
                        Some(kind) if *kind != Kind::Bytes => {
                            let list = self.packed(body..at, kind, &name)?;
                            self.line(start, at - start, depth, format!("{name} = [{list}]"));
                        }
                        _ => {
                            let text = format!("{name} = {}", spaced(bytes, MAX_SHOWN / 3));
                            self.line(start, at - start, depth, text);
                        }
                    }
                }
                3 if depth == MAX_DEPTH => return Err(malformed(start, "nested too deeply")),
                3 => {
                    self.line(start, at - start, depth, format!("{name}: a group"));
                    at = self.fields(at..range.end, None, depth + 1, Some(number))?;
                }
                4 if group == Some(number) => {
                    self.line(start, at - start, depth, "end of the group".into());
                    return Ok(at);
                }
                4 => return Err(malformed(start, "end of a group without its start")),
                _ => return Err(malformed(start, format!("invalid wire type {wire}"))),
            }
        }
        match group {
            None => Ok(at),
            Some(_) => Err(malformed(at, "a group has no end")),
        }
    }

    /// The first elements of a packed list as text.
    fn packed(
        &self,
        range: std::ops::Range<usize>,
        kind: &Kind,
        name: &str,
    ) -> Result<String, Malformed> {
        let (mut at, mut shown, mut count) = (range.start, Vec::new(), 0);
        while at < range.end {
            let value = match fixed_size(kind) {
                Some(size) => fixed_text(Some(kind), self.take(&mut at, size, range.end, name)?),
                None => number_text(Some(kind), self.varint(&mut at, range.end)?),
            };
            count += 1;
            if shown.len() < MAX_ELEMENTS {
                shown.push(value);
            }
        }
        if count > shown.len() {
            shown.push(format!("... {count} in total"));
        }
        Ok(shown.join(", "))
    }

    fn varint(&self, at: &mut usize, end: usize) -> Result<u64, Malformed> {
        let start = *at;
        let mut value = 0;
        for i in 0..10 {
            let Some(byte) = self.bytes[..end].get(start + i) else {
                return Err(malformed(start, "a number is incomplete"));
            };
            value |= u64::from(byte & 0x7f) << (7 * i);
            if byte & 0x80 == 0 {
                *at = start + i + 1;
                return Ok(value);
            }
        }
        Err(malformed(start, "a number has more than 10 bytes"))
    }

    fn take(
        &self,
        at: &mut usize,
        length: usize,
        end: usize,
        name: &str,
    ) -> Result<&'a [u8], Malformed> {
        let left = end - *at;
        if length > left {
            let why = format!("{name} should have {length} bytes, but only {left} follow");
            return Err(malformed(*at, why));
        }
        let bytes = &self.bytes[*at..*at + length];
        *at += length;
        Ok(bytes)
    }
}

fn malformed(offset: usize, why: impl Into<String>) -> Malformed {
    Malformed {
        offset,
        why: why.into(),
    }
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(MAX_SHOWN) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.into(),
    }
}

fn fixed_size(kind: &Kind) -> Option<usize> {
    match kind {
        Kind::Double | Kind::Fixed64 | Kind::Sfixed64 => Some(8),
        Kind::Float | Kind::Fixed32 | Kind::Sfixed32 => Some(4),
        _ => None,
    }
}

/// Whether a field of this kind may have this wire type.
fn fits(kind: &Kind, list: bool, wire: u64) -> bool {
    let own = match kind {
        Kind::String | Kind::Bytes | Kind::Message(_) => return matches!(wire, 2..=4),
        kind => match fixed_size(kind) {
            Some(8) => 1,
            Some(_) => 5,
            None => 0,
        },
    };
    wire == own || list && wire == 2
}

fn wire_name(wire: u64) -> &'static str {
    match wire {
        0 => "a number",
        1 => "8 bytes",
        2 => "length and bytes",
        3 => "start of a group",
        4 => "end of a group",
        5 => "4 bytes",
        _ => "unknown",
    }
}

fn number_text(kind: Option<&Kind>, value: u64) -> String {
    let zigzag = (value >> 1) as i64 ^ -((value & 1) as i64);
    match kind {
        Some(Kind::Bool) => (value != 0).to_string(),
        Some(Kind::Int32) => (value as i32).to_string(),
        Some(Kind::Uint32) => (value as u32).to_string(),
        Some(Kind::Int64) => (value as i64).to_string(),
        Some(Kind::Sint32) => (zigzag as i32).to_string(),
        Some(Kind::Sint64) => zigzag.to_string(),
        Some(Kind::Enum(names)) => match names.get_value(value as i32) {
            Some(name) => name.name().to_owned(),
            None => format!("{} (unknown)", value as i32),
        },
        _ => value.to_string(),
    }
}

fn fixed_text(kind: Option<&Kind>, bytes: &[u8]) -> String {
    match (kind, <[u8; 8]>::try_from(bytes), <[u8; 4]>::try_from(bytes)) {
        (Some(Kind::Double), Ok(bytes), _) => f64::from_le_bytes(bytes).to_string(),
        (Some(Kind::Fixed64), Ok(bytes), _) => u64::from_le_bytes(bytes).to_string(),
        (Some(Kind::Sfixed64), Ok(bytes), _) => i64::from_le_bytes(bytes).to_string(),
        (Some(Kind::Float), _, Ok(bytes)) => f32::from_le_bytes(bytes).to_string(),
        (Some(Kind::Fixed32), _, Ok(bytes)) => u32::from_le_bytes(bytes).to_string(),
        (Some(Kind::Sfixed32), _, Ok(bytes)) => i32::from_le_bytes(bytes).to_string(),
        _ => spaced(bytes, 8),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schemas() -> Schemas {
        Schemas::built_in()
    }

    #[test]
    fn a_frame_is_explained_byte_for_byte() {
        let bytes = b"\0\x04\x08\x05\x10\0\0\x08\x10\x01\x18\xac\x02\xa0\x03\x01";
        let (frames, error) = schemas().explain(bytes);
        assert_eq!(error, None);
        assert_eq!(
            table(bytes, &frames[0].lines),
            "     0  00 04                       header: 4 bytes\n     \
             2  08 05                         deviceType = 5 (dummy)\n     \
             4  10 00                         deviceID = 0\n     \
             6  00 08                       message: 8 bytes\n     \
             8  10 01                         type = DATA\n    \
             10  18 ac 02                      synNum = 300\n    \
             13  a0 03 01                      get_status = true\n"
        );
    }

    #[test]
    fn lists_and_messages_within_messages_are_explained() {
        let (lines, error) = schemas().explain_message(
            b"\x10\x01\xca\x02\x16\x0a\x10\0\0\0\0\0\0\xf0\x3f\0\0\0\0\0\0\0\x40\x12\x02\x07\x08",
        );
        assert_eq!(error, None);
        let text: Vec<_> = lines.iter().map(|line| line.text.as_str()).collect();
        assert_eq!(
            text,
            [
                "type = DATA",
                "scan: 22 bytes",
                "angles = [1, 2]",
                "distances = [7, 8]"
            ]
        );
    }

    #[test]
    fn an_error_names_the_invalid_byte() {
        for (bytes, offset, why) in [
            (&b"\0"[..], 0, "the length of the header needs 2 bytes"),
            (b"\x02\0\x08\x05", 0, "in little-endian order it would be 2"),
            (b"\0\x02\x08\x05", 4, "the length of the message needs 2"),
            (
                b"\0\0\0\x05\x10\x01",
                2,
                "should have 5 bytes, but only 2 follow",
            ),
            (
                b"\0\x02\x0a\0\0\0",
                2,
                "deviceType (1) cannot have wire type 2",
            ),
            (b"\0\x01\x08\0\0", 3, "a number is incomplete"),
            (b"\0\x02\x00\x01\0\0", 2, "invalid field number"),
        ] {
            let (_, error) = schemas().explain(bytes);
            let error = error.unwrap();
            assert_eq!(error.offset, offset, "{bytes:02x?}: {error:?}");
            assert!(error.why.contains(why), "{bytes:02x?}: {error:?}");
        }
        for (bytes, offset, why) in [
            (
                &b"\x10\x01\x9a\x03\x05hi"[..],
                4,
                "message should have 5 bytes, but only 2 follow",
            ),
            (
                b"\x10\x01\x9a\x03\x02h\xff",
                6,
                "message is not valid UTF-8",
            ),
            (b"\xff\xff", 0, "a number is incomplete"),
            (b"\x17", 0, "cannot have wire type 7"),
            (b"\x10\x01\xd3\x09\x08\x01", 6, "a group has no end"),
            (b"\x10\x01\xd4\x09", 2, "end of a group without its start"),
            (
                b"\xa2\x01\x02\x0a\0",
                3,
                "frontLeftSpeed (1) cannot have wire type 2",
            ),
        ] {
            let (_, error) = schemas().explain_message(bytes);
            let error = error.unwrap();
            assert_eq!(error.offset, offset, "{bytes:02x?}: {error:?}");
            assert!(error.why.contains(why), "{bytes:02x?}: {error:?}");
        }
    }

    #[test]
    fn an_invalid_message_does_not_end_the_frames() {
        let (frames, error) = schemas().explain(b"\0\0\0\x02\xff\xff\0\0\0\x02\x10\x02");
        assert_eq!((frames.len(), error), (2, None));
        assert_eq!(frames[0].message_error.as_ref().unwrap().offset, 4);
        assert_eq!(frames[1].message_error, None);
    }
}
