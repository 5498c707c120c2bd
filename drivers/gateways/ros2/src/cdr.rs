//! The bytes of messages: CDR as DDS and ROS 2 use it (XCDR1). PURE.
//!
//! Four bytes define the byte order, then all fields follow. A number begins at a multiple of its
//! size, counted from the end of these four bytes. A text has its length with a NUL at its end; a
//! list has its length; an array of fixed length has none.

use std::mem::size_of;

/// Before a message in little-endian order.
const LITTLE_ENDIAN: [u8; 4] = [0, 1, 0, 0];
/// Some writers fill the last word up.
const MAX_PADDING: usize = 3;

/// A message as the payload of a put, query or reply.
#[must_use]
pub fn encode<M: Cdr>(message: &M) -> Vec<u8> {
    let mut writer = Writer {
        bytes: LITTLE_ENDIAN.to_vec(),
    };
    message.write(&mut writer);
    writer.bytes
}

/// Reads a payload.
///
/// # Errors
/// It is not this message. No input makes it panic, or take more memory than a few times the
/// length of the input.
pub fn decode<M: Cdr>(payload: &[u8]) -> Result<M, CdrError> {
    let (order, body) = payload.split_at_checked(4).ok_or(CdrError::TooShort)?;
    let is_big_endian = match order {
        // The last two bytes are unused options.
        [0, 1, ..] => false,
        [0, 0, ..] => true,
        _ => return Err(CdrError::Representation([order[0], order[1]])),
    };
    let mut reader = Reader {
        body,
        at: 0,
        is_big_endian,
    };
    let message = M::read(&mut reader)?;
    match reader.remaining() {
        0..=MAX_PADDING => Ok(message),
        bytes => Err(CdrError::TooLong(bytes)),
    }
}

/// The reason why a payload is not the expected message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CdrError {
    /// It ends within the message.
    #[error("the message ends too early")]
    TooShort,
    /// There are bytes after the message.
    #[error("{0} bytes follow the message")]
    TooLong(usize),
    /// It is not plain CDR.
    #[error("unknown representation {0:02x?}: expected CDR")]
    Representation([u8; 2]),
    /// A text without a NUL at its end, or that is not UTF-8.
    #[error("invalid text")]
    Text,
    /// A bool that is neither 0 nor 1.
    #[error("invalid bool {0}")]
    Bool(u8),
}

/// A type that CDR can carry.
pub trait Cdr: Sized {
    /// The least number of bytes of a value, so that a wrong length is noticed before memory is
    /// taken for it.
    const MIN_BYTES: usize;

    /// Appends the value.
    fn write(&self, to: &mut Writer);

    /// Reads a value.
    ///
    /// # Errors
    /// It is missing or invalid.
    fn read(from: &mut Reader<'_>) -> Result<Self, CdrError>;

    /// Appends the elements of a list.
    fn write_all(elements: &[Self], to: &mut Writer) {
        for element in elements {
            element.write(to);
        }
    }

    /// Reads so many elements of a list.
    ///
    /// # Errors
    /// One is missing or invalid.
    fn read_all(from: &mut Reader<'_>, count: usize) -> Result<Vec<Self>, CdrError> {
        (0..count).map(|_| Self::read(from)).collect()
    }
}

/// A message that is being written.
#[derive(Debug)]
pub struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    fn number<const N: usize>(&mut self, little_endian: [u8; N]) {
        let body = self.bytes.len() - LITTLE_ENDIAN.len();
        let aligned = body.next_multiple_of(N) + LITTLE_ENDIAN.len();
        self.bytes.resize(aligned, 0);
        self.bytes.extend_from_slice(&little_endian);
    }

    fn length(&mut self, length: usize) {
        // Amber's messages are far shorter.
        let length = u32::try_from(length).unwrap_or(u32::MAX);
        self.number(length.to_le_bytes());
    }
}

/// A message that is being read.
#[derive(Debug)]
pub struct Reader<'a> {
    body: &'a [u8],
    at: usize,
    is_big_endian: bool,
}

impl Reader<'_> {
    fn remaining(&self) -> usize {
        self.body.len() - self.at
    }

    fn take(&mut self, bytes: usize) -> Result<&[u8], CdrError> {
        let rest = &self.body[self.at..];
        let taken = rest.get(..bytes).ok_or(CdrError::TooShort)?;
        self.at += bytes;
        Ok(taken)
    }

    /// The bytes of a number, in little-endian order.
    fn number<const N: usize>(&mut self) -> Result<[u8; N], CdrError> {
        let padding = self.at.next_multiple_of(N) - self.at;
        self.take(padding)?;
        let mut bytes = [0; N];
        bytes.copy_from_slice(self.take(N)?);
        if self.is_big_endian {
            bytes.reverse();
        }
        Ok(bytes)
    }

    /// The length of a list whose elements have at least so many bytes.
    fn length(&mut self, min_bytes: usize) -> Result<usize, CdrError> {
        let length = u32::from_le_bytes(self.number()?) as usize;
        match length.checked_mul(min_bytes.max(1)) {
            Some(bytes) if bytes <= self.remaining() => Ok(length),
            _ => Err(CdrError::TooShort),
        }
    }
}

macro_rules! numbers {
    ($($number:ty),*) => {
        $(
            impl Cdr for $number {
                const MIN_BYTES: usize = size_of::<$number>();

                fn write(&self, to: &mut Writer) {
                    to.number(self.to_le_bytes());
                }

                fn read(from: &mut Reader<'_>) -> Result<Self, CdrError> {
                    from.number().map(Self::from_le_bytes)
                }
            }
        )*
    };
}

numbers!(i8, u16, i16, u32, i32, f32, f64);

/// A list of bytes, such as a picture, is copied at once.
impl Cdr for u8 {
    const MIN_BYTES: usize = 1;

    fn write(&self, to: &mut Writer) {
        to.bytes.push(*self);
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, CdrError> {
        from.number().map(Self::from_le_bytes)
    }

    fn write_all(elements: &[Self], to: &mut Writer) {
        to.bytes.extend_from_slice(elements);
    }

    fn read_all(from: &mut Reader<'_>, count: usize) -> Result<Vec<Self>, CdrError> {
        from.take(count).map(<[Self]>::to_vec)
    }
}

impl Cdr for bool {
    const MIN_BYTES: usize = 1;

    fn write(&self, to: &mut Writer) {
        u8::from(*self).write(to);
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, CdrError> {
        match u8::read(from)? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(CdrError::Bool(other)),
        }
    }
}

impl Cdr for String {
    const MIN_BYTES: usize = 4;

    /// A NUL within the text ends it, because it does so for all readers.
    fn write(&self, to: &mut Writer) {
        let text = self.split('\0').next().unwrap_or_default();
        to.length(text.len() + 1);
        to.bytes.extend_from_slice(text.as_bytes());
        to.bytes.push(0);
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, CdrError> {
        let length = from.length(1)?;
        match from.take(length)? {
            // Some writers leave the NUL of an empty text out.
            [] => Ok(Self::new()),
            [text @ .., 0] => {
                let text = std::str::from_utf8(text).map_err(|_| CdrError::Text)?;
                Ok(text.to_owned())
            }
            _ => Err(CdrError::Text),
        }
    }
}

impl<T: Cdr> Cdr for Vec<T> {
    const MIN_BYTES: usize = 4;

    fn write(&self, to: &mut Writer) {
        to.length(self.len());
        T::write_all(self, to);
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, CdrError> {
        let length = from.length(T::MIN_BYTES)?;
        T::read_all(from, length)
    }
}

impl<T: Cdr + Copy + Default, const N: usize> Cdr for [T; N] {
    const MIN_BYTES: usize = N * T::MIN_BYTES;

    fn write(&self, to: &mut Writer) {
        for element in self {
            element.write(to);
        }
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, CdrError> {
        let mut array = [T::default(); N];
        for element in &mut array {
            *element = T::read(from)?;
        }
        Ok(array)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn numbers_are_aligned_from_behind_the_first_four_bytes() {
        let bytes = encode(&Mixed {
            flag: true,
            wide: 1.0,
            text: "ab".into(),
            list: vec![7, 8],
        });
        let expected = [
            &[0, 1, 0, 0][..],
            &[1, 0, 0, 0, 0, 0, 0, 0],
            &1f64.to_le_bytes(),
            &[3, 0, 0, 0, b'a', b'b', 0, 0],
            &[2, 0, 0, 0, 7, 8],
        ]
        .concat();
        assert_eq!(bytes, expected);
    }

    #[test]
    fn wrong_payloads_are_refused() {
        let check = |payload: &[u8], error| assert_eq!(decode::<Mixed>(payload), Err(error));
        let right = encode(&Mixed::default());
        check(&[], CdrError::TooShort);
        check(&right[..right.len() - 1], CdrError::TooShort);
        check(&[&right[..], &[0; 4]].concat(), CdrError::TooLong(4));
        check(&[0, 3, 0, 0, 1], CdrError::Representation([0, 3]));
        check(&[0, 1, 0, 0, 2], CdrError::Bool(2));
        let padded = [&right[..], &[0; 3]].concat();
        assert_eq!(decode(&padded), Ok(Mixed::default()));
        // A list that says to be longer than the payload takes no memory.
        assert_eq!(
            decode::<Vec<f64>>(&[0, 1, 0, 0, 255, 255, 255, 255]),
            Err(CdrError::TooShort)
        );
        let unended = [0, 1, 0, 0, 2, 0, 0, 0, b'a', b'b'];
        assert_eq!(decode::<String>(&unended), Err(CdrError::Text));
        let latin = [0, 1, 0, 0, 2, 0, 0, 0, 0xe4, 0];
        assert_eq!(decode::<String>(&latin), Err(CdrError::Text));
    }

    #[test]
    fn big_endian_messages_are_read() {
        let bytes = [0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 5, 0, 0, 0, 6];
        assert_eq!(decode(&bytes), Ok(vec![5u32, 6]));
    }

    #[test]
    fn a_text_ends_at_a_nul() {
        assert_eq!(encode(&"a\0b".to_owned()), encode(&"a".to_owned()));
        assert_eq!(decode(&[0, 1, 0, 0, 0, 0, 0, 0]), Ok(String::new()));
    }

    #[derive(Clone, Debug, Default, PartialEq)]
    struct Mixed {
        flag: bool,
        wide: f64,
        text: String,
        list: Vec<u8>,
    }

    impl Cdr for Mixed {
        const MIN_BYTES: usize = 17;

        fn write(&self, to: &mut Writer) {
            self.flag.write(to);
            self.wide.write(to);
            self.text.write(to);
            self.list.write(to);
        }

        fn read(from: &mut Reader<'_>) -> Result<Self, CdrError> {
            Ok(Self {
                flag: Cdr::read(from)?,
                wide: Cdr::read(from)?,
                text: Cdr::read(from)?,
                list: Cdr::read(from)?,
            })
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            flag: bool,
            wide in -1e9..1e9f64,
            text in "[a-zäß/ ]{0,20}",
            list: Vec<u8>,
        ) {
            let mixed = Mixed { flag, wide, text, list };
            prop_assert_eq!(decode::<Mixed>(&encode(&mixed)), Ok(mixed));
        }

        #[test]
        fn any_bytes_are_read_or_refused(payload: Vec<u8>) {
            let _ = decode::<Mixed>(&payload);
            let _ = decode::<Vec<String>>(&payload);
        }
    }
}
