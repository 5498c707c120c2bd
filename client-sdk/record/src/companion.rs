//! Messages for other programs, in addition to the recorded ones. PURE.

use std::ops::Range;

use amber_proto::Device;

/// Converts recorded messages for other programs: see [`Recording::accompany`].
///
/// [`Recording::accompany`]: crate::Recording::accompany
pub trait Companion: Send {
    /// Whether it reads the messages of the driver of this device.
    fn reads(&self, device: Device) -> bool;

    /// A message that a driver has sent. Of each channel, it gets at most 50 messages per second.
    fn message(&mut self, time_ns: u64, device: Device, message: &[u8]) -> Vec<Beside>;

    /// An encoded `amber.mediator_proto.Event`.
    fn event(&mut self, time_ns: u64, event: &[u8]) -> Vec<Beside>;

    /// Whether messages of this device may have a part that is too large to be in the file twice.
    fn carries(&self, _: Device) -> bool {
        false
    }

    /// Another form of a message with such a part; `None` if this message is to be recorded as it is.
    /// Then the file has the carrier instead of the message. [`Companion::message`] gets the message
    /// as well, for what else is to be written, and all carriers of a device have one topic.
    fn carrier(&mut self, _: u64, _: Device, _: &[u8]) -> Option<Carrier> {
        None
    }

    /// Another file begins: returns the messages that a reader of this file alone needs.
    fn begin(&mut self) -> Vec<Beside>;
}

/// A message in addition to the recorded ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Beside {
    /// The topic.
    pub topic: String,
    /// The full name of the message.
    pub schema: &'static str,
    /// A `google.protobuf.FileDescriptorSet` with the message and everything that it uses.
    pub descriptors: &'static [u8],
    /// The encoded message.
    pub data: Vec<u8>,
}

/// A message for other programs with the large part of a recorded one, such as the file of a picture.
/// The recorded message can be read from it again, byte for byte: see [`Stored::message`].
///
/// [`Stored::message`]: crate::Stored::message
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Carrier {
    /// The topic. Its last part is the name of the first field of the recorded message.
    pub topic: String,
    /// The full name of the message.
    pub schema: &'static str,
    /// A `google.protobuf.FileDescriptorSet` with the message and everything that it uses.
    pub descriptors: &'static [u8],
    /// The encoded message without the large part.
    pub head: Vec<u8>,
    /// The number of its field, of type bytes, for the large part.
    pub field: u32,
    /// Where this part is in the recorded message.
    pub part: Range<usize>,
}
