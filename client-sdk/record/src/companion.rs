//! Messages for other programs, beside those that are recorded. PURE.

use amber_proto::Device;

/// Makes messages for other programs from those that are recorded: see [`Recording::accompany`].
///
/// [`Recording::accompany`]: crate::Recording::accompany
pub trait Companion: Send {
    /// Whether it reads what the driver of this device sends.
    fn reads(&self, device: Device) -> bool;

    /// A message that a driver has sent. Of each channel, it gets at most 50 messages per second.
    fn message(&mut self, time_ns: u64, device: Device, message: &[u8]) -> Vec<Beside>;

    /// An encoded `amber.mediator_proto.Event`.
    fn event(&mut self, time_ns: u64, event: &[u8]) -> Vec<Beside>;

    /// Another file begins: what a reader of this file alone needs.
    fn begin(&mut self) -> Vec<Beside>;
}

/// A message beside the recorded ones.
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
