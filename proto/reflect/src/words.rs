//! Parses messages from the command line. PURE.

use amber_proto::{DeviceType, dummy};
use bytes::Bytes;
use prost::Message;
use serde_json::Map;

use crate::{Error, Schemas};

/// A DATA message from `FIELD=VALUE` words.
///
/// # Errors
/// A word is not FIELD=VALUE, a field is unknown, or a value is invalid.
pub fn read_fields<'a>(
    asked: DeviceType,
    words: impl IntoIterator<Item = &'a str>,
    schemas: &Schemas,
) -> Result<Vec<u8>, Error> {
    let mut fields = Map::new();
    for word in words {
        let (name, value) = word.split_once('=').ok_or_else(|| {
            Error::new(format!("'{word}' is not FIELD=VALUE")).hint("an example is set_led=true")
        })?;
        // Anything that is not JSON is a text.
        let value = serde_json::from_str(value).unwrap_or_else(|_| value.into());
        fields.insert(name.into(), value);
    }
    schemas.encode(asked, &fields)
}

/// A message in hex. Only a `DriverMsg` can have a request number, and so an answer.
pub fn read_raw(hex: &str) -> Result<Bytes, Error> {
    let bytes = read_hex(hex)?;
    match dummy::DriverMsg::decode(&bytes[..]) {
        Ok(_) => Ok(bytes.into()),
        Err(_) => Err(Error::new("these bytes are not a DriverMsg").hint(
            "`amber decode --message HEX` shows the invalid byte; 1001 is an empty DATA message",
        )),
    }
}

/// Reads hex; spaces, colons, commas and `0x` are ignored.
///
/// # Errors
/// The text is not hex, or has an odd number of digits.
pub fn read_hex(text: &str) -> Result<Vec<u8>, Error> {
    hex_bytes(text).ok_or_else(|| {
        Error::new(format!("invalid hex '{text}'"))
            .hint("write two digits per byte, e.g. 1001 for an empty DATA message")
    })
}

pub(crate) fn hex_bytes(text: &str) -> Option<Vec<u8>> {
    let bare = text.replace("0x", "").replace("\\x", "");
    let bare = bare
        .chars()
        .filter(|c| !c.is_whitespace() && !matches!(c, ':' | ',' | '_' | '-' | '|'));
    let digits: Vec<_> = bare
        .map(|digit| digit.to_digit(16))
        .collect::<Option<_>>()?;
    let pair = |pair: &[u32]| (pair[0] << 4 | pair[1]) as u8;
    (digits.len().is_multiple_of(2)).then(|| digits.chunks(2).map(pair).collect())
}
