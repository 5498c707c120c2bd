//! The feed that a mediator writes for recorders: all messages between clients and drivers. PURE.
//!
//! A client on the mediator's machine asks for a feed (`OpenFeed` in `mediator.proto`) and
//! gets the path of a Unix stream socket. There it reads records until the end of the stream:
//!
//! ```text
//! +--------+------+-------------------+----------------+
//! | u32 LE | u8   | u64 LE            | depends on the |
//! | length | kind | ns since 1970     | kind           |
//! +--------+------+-------------------+----------------+
//! ```
//!
//! The length counts everything after it. [`Writer`] appends records to a buffer without
//! allocating for each, [`Record::parse`] reads them. The mediator never waits for a recorder:
//! frames that do not fit into its buffer are left out, and a [`Gap`] records how many.

#[cfg(test)]
mod tests;

use crate::limits::MAX_FEED_RECORD;
use crate::{ClientId, Device, DeviceType};

/// Length of the length field, in bytes.
const LENGTH: usize = 4;

/// The direction of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Direction {
    /// From a client to the driver of a device.
    ToDriver,
    /// From the driver of a device to clients.
    FromDriver,
}

/// The content of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What<'a> {
    /// The first record: the version of the mediator.
    Start(&'a str),
    /// A client or driver has this id from now on. The text is its address, or the device of the
    /// driver.
    Peer(ClientId, &'a str),
    /// The client or driver with this id is gone.
    PeerGone(ClientId),
    /// A frame.
    Frame(Recorded<'a>),
    /// An encoded `amber.mediator_proto.Event`.
    Event(&'a [u8]),
    /// Frames that the mediator dropped since the last such record.
    Dropped(Dropped<'a>),
    /// Frames that are missing from this feed.
    Gap(Gap),
    /// The last record: nothing is missing after it.
    End,
    /// A kind that is unknown to this version.
    Unknown(u8),
}

/// A frame in a feed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recorded<'a> {
    /// Its direction.
    pub direction: Direction,
    /// The device that receives or sends the frame.
    pub device: Device,
    /// The reason why the mediator dropped it: the name of a counter in `amber status`. Empty if
    /// it was forwarded.
    pub dropped: &'a str,
    /// The ids of the sender, or of the receivers, in the order of the header. Four bytes each.
    clients: &'a [u8],
    /// The message, unchanged.
    pub message: &'a [u8],
}

impl<'a> Recorded<'a> {
    /// The sender of a frame to a driver, if it is known, or the receivers of one from a driver.
    pub fn clients(&self) -> impl ExactSizeIterator<Item = ClientId> + Clone + use<'a> {
        let ids = self.clients.as_chunks().0.iter();
        ids.map(|id| ClientId(i32::from_le_bytes(*id)))
    }
}

/// Frames that the mediator dropped for one reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dropped<'a> {
    /// The device of the driver that did not get them, if it is known.
    pub device: Option<Device>,
    /// The name of the counter in `amber status`.
    pub reason: &'a str,
    /// Their number.
    pub count: u64,
}

/// Frames that are missing from a feed because its reader was too slow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gap {
    /// When the first of them came, in nanoseconds since 1970.
    pub first_ns: u64,
    /// When the last of them came, in nanoseconds since 1970.
    pub last_ns: u64,
    /// Their number.
    pub messages: u64,
    /// The bytes of their messages.
    pub bytes: u64,
}

/// A record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Nanoseconds since 1970, never going back within a feed.
    pub time_ns: u64,
    /// Its content.
    pub what: What<'a>,
}

/// The reason why bytes are not a feed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FeedError {
    /// A length that no record has.
    #[error("a record of {0} bytes")]
    Length(usize),
    /// A record that ends too early, or has an impossible value.
    #[error("an invalid record of kind {0}")]
    Record(u8),
}

impl<'a> Record<'a> {
    /// Reads the record at the start of a buffer, and returns the number of its bytes; `None` if
    /// it is not complete yet.
    ///
    /// # Errors
    /// The bytes are not a feed. Later records cannot be found.
    pub fn parse(bytes: &'a [u8]) -> Result<Option<(Self, usize)>, FeedError> {
        let Some((length, rest)) = bytes.split_first_chunk::<LENGTH>() else {
            return Ok(None);
        };
        let length = u32::from_le_bytes(*length) as usize;
        if !(9..=MAX_FEED_RECORD).contains(&length) {
            return Err(FeedError::Length(length));
        }
        let Some(record) = rest.get(..length) else {
            return Ok(None);
        };
        let mut reader = Reader(&record[1..]);
        let wrong = FeedError::Record(record[0]);
        let time_ns = reader.u64().ok_or(wrong)?;
        let what = reader.what(record[0]).ok_or(wrong)?;
        Ok(Some((Self { time_ns, what }, LENGTH + length)))
    }
}

/// Appends records to a buffer.
#[derive(Debug)]
pub struct Writer<'a> {
    /// The buffer.
    pub bytes: &'a mut Vec<u8>,
    /// The time of the records, in nanoseconds since 1970.
    pub time_ns: u64,
}

impl Writer<'_> {
    /// See [`What::Start`].
    pub fn start(&mut self, version: &str) {
        self.record(0, &[version.as_bytes()]);
    }

    /// See [`What::Peer`].
    pub fn peer(&mut self, id: ClientId, address: &str) {
        self.record(1, &[&id.0.to_le_bytes(), address.as_bytes()]);
    }

    /// See [`What::PeerGone`].
    pub fn peer_gone(&mut self, id: ClientId) {
        self.record(2, &[&id.0.to_le_bytes()]);
    }

    /// See [`What::Frame`].
    pub fn frame(
        &mut self,
        direction: Direction,
        device: Device,
        dropped: &str,
        clients: impl IntoIterator<Item = ClientId>,
        message: &[u8],
    ) {
        let start = self.begin(3);
        // The names of counters are short.
        let dropped = &dropped.as_bytes()[..dropped.len().min(u8::MAX.into())];
        let [t0, t1, t2, t3] = device.device_type.0.to_le_bytes();
        let [i0, i1, i2, i3] = device.id.0.to_le_bytes();
        let reason_length = dropped.len() as u8;
        let fixed = [
            direction as u8,
            t0,
            t1,
            t2,
            t3,
            i0,
            i1,
            i2,
            i3,
            reason_length,
        ];
        self.bytes.extend_from_slice(&fixed);
        self.bytes.extend_from_slice(dropped);
        let count_at = self.bytes.len();
        self.bytes.extend_from_slice(&[0; 2]);
        let mut count: u16 = 0;
        // A header of 65 535 bytes cannot name more.
        for id in clients.into_iter().take(u16::MAX.into()) {
            self.bytes.extend_from_slice(&id.0.to_le_bytes());
            count += 1;
        }
        self.bytes[count_at..count_at + 2].copy_from_slice(&count.to_le_bytes());
        self.bytes.extend_from_slice(message);
        self.end(start);
    }

    /// See [`What::Event`].
    pub fn event(&mut self, event: &[u8]) {
        self.record(4, &[event]);
    }

    /// See [`What::Dropped`].
    pub fn dropped(&mut self, dropped: &Dropped<'_>) {
        let Dropped {
            device,
            reason,
            count,
        } = *dropped;
        let known = [u8::from(device.is_some())];
        let device = device.unwrap_or(Device::MEDIATOR);
        let kind = device.device_type.0.to_le_bytes();
        let id = device.id.0.to_le_bytes();
        let count = count.to_le_bytes();
        self.record(5, &[&known, &kind, &id, &count, reason.as_bytes()]);
    }

    /// See [`What::Gap`].
    pub fn gap(&mut self, gap: &Gap) {
        let numbers = [gap.first_ns, gap.last_ns, gap.messages, gap.bytes].map(u64::to_le_bytes);
        self.record(6, &[numbers.as_flattened()]);
    }

    /// See [`What::End`].
    pub fn finish(&mut self) {
        self.record(7, &[]);
    }

    fn record(&mut self, kind: u8, parts: &[&[u8]]) {
        let start = self.begin(kind);
        for part in parts {
            self.bytes.extend_from_slice(part);
        }
        self.end(start);
    }

    fn begin(&mut self, kind: u8) -> usize {
        let start = self.bytes.len();
        let mut fixed = [0; LENGTH + 9];
        fixed[LENGTH] = kind;
        fixed[LENGTH + 1..].copy_from_slice(&self.time_ns.to_le_bytes());
        self.bytes.extend_from_slice(&fixed);
        start
    }

    fn end(&mut self, start: usize) {
        let length = (self.bytes.len() - start - LENGTH) as u32;
        self.bytes[start..start + LENGTH].copy_from_slice(&length.to_le_bytes());
    }
}

/// Takes values from the start of a record.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn what(&mut self, kind: u8) -> Option<What<'a>> {
        Some(match kind {
            0 => What::Start(self.text()?),
            1 => What::Peer(ClientId(self.i32()?), self.text()?),
            2 => What::PeerGone(ClientId(self.i32()?)),
            3 => {
                let direction = match self.array::<1>()? {
                    [0] => Direction::ToDriver,
                    [1] => Direction::FromDriver,
                    _ => return None,
                };
                let device = self.device()?;
                let [reason_length] = self.array()?;
                let dropped = std::str::from_utf8(self.take(reason_length.into())?).ok()?;
                let count = u16::from_le_bytes(self.array()?);
                let clients = self.take(4 * usize::from(count))?;
                What::Frame(Recorded {
                    direction,
                    device,
                    dropped,
                    clients,
                    message: self.0,
                })
            }
            4 => What::Event(self.0),
            5 => {
                let [known] = self.array()?;
                let device = self.device()?;
                let count = self.u64()?;
                What::Dropped(Dropped {
                    device: (known == 1).then_some(device),
                    reason: self.text()?,
                    count,
                })
            }
            6 => What::Gap(Gap {
                first_ns: self.u64()?,
                last_ns: self.u64()?,
                messages: self.u64()?,
                bytes: self.u64()?,
            }),
            7 => What::End,
            unknown => What::Unknown(unknown),
        })
    }

    fn device(&mut self) -> Option<Device> {
        let kind = DeviceType(self.i32()?);
        Some(Device::new(kind, self.i32()?))
    }

    fn text(&mut self) -> Option<&'a str> {
        std::str::from_utf8(self.0).ok()
    }

    fn i32(&mut self) -> Option<i32> {
        self.array().map(i32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }
}
