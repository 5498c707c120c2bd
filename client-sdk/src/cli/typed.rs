//! Messages out of what people type. PURE.

use amber_proto::{DeviceType, dummy};
use bytes::Bytes;
use prost::Message;
use serde_json::Map;

use super::Failure;
use super::reflect::Schemas;

/// A DATA message out of `FIELD=VALUE`s.
///
/// # Errors
/// What is no FIELD=VALUE, a field that no schema has, or a value that does not fit.
pub fn read_fields<'a>(
    asked: DeviceType,
    words: impl IntoIterator<Item = &'a str>,
    schemas: &Schemas,
) -> Result<Vec<u8>, Failure> {
    let mut fields = Map::new();
    for word in words {
        let (name, value) = word.split_once('=').ok_or_else(|| {
            Failure::wrong(format!("'{word}' is no FIELD=VALUE")).hint("set_led=true")
        })?;
        // What is no JSON is a text.
        let value = serde_json::from_str(value).unwrap_or_else(|_| value.into());
        fields.insert(name.into(), value);
    }
    schemas.encode(asked, &fields)
}

/// A message in hex. What is no `DriverMsg` cannot get a number, so nothing
/// could ever answer it.
pub(super) fn read_raw(hex: &str) -> Result<Bytes, Failure> {
    let bytes = read_hex(hex)?;
    match dummy::DriverMsg::decode(&bytes[..]) {
        Ok(_) => Ok(bytes.into()),
        Err(_) => Err(Failure::wrong("these bytes are no DriverMsg, so they have no answer").hint(
            "`amber decode --message HEX` shows where they are wrong; 1001 is an empty DATA message",
        )),
    }
}

/// Bytes that are written as hex; blanks, colons, commas and `0x` between them
/// do not count.
///
/// # Errors
/// It is no hex, or half a byte is missing.
pub fn read_hex(text: &str) -> Result<Vec<u8>, Failure> {
    let bare = text.replace("0x", "").replace("\\x", "");
    let bare = bare
        .chars()
        .filter(|c| !c.is_whitespace() && !matches!(c, ':' | ',' | '_' | '-' | '|'));
    let digits: Option<Vec<_>> = bare.map(|digit| digit.to_digit(16)).collect();
    match digits {
        Some(digits) if digits.len().is_multiple_of(2) => Ok(digits
            .chunks(2)
            .map(|pair| (pair[0] << 4 | pair[1]) as u8)
            .collect()),
        _ => Err(Failure::wrong(format!("'{text}' is no hex"))
            .hint("two digits per byte, e.g. 1001 for an empty DATA message")),
    }
}
