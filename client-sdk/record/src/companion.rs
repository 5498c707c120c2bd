//! Messages for other programs, in addition to the recorded ones. PURE.

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
