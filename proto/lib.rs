//! The wire protocol of Amber.
//!
//! Clients send UDP datagrams to the mediator. The mediator uses stdin and stdout of one
//! process per driver. Everywhere a frame looks like this:
//!
//! ```text
//! +--------+-----------+--------+------------------------------------+
//! | u16 BE | DriverHdr | u16 BE | DriverMsg                          |
//! | length | who       | length | type, synNum, ackNum + extensions  |
//! +--------+-----------+--------+------------------------------------+
//! ```
//!
//! A datagram holds exactly one frame, a stream any number of them.
//!
//! - [`frame`] and [`header`] read and write bytes without allocation: for the mediator.
//! - [`codec`] reads and writes owned packets on any stream: for the SDKs.
//! - [`feed`] is the format of the feeds that a mediator writes for recorders.
//! - [`pieces`] cuts and joins messages that are longer than a frame: for the SDKs.
//! - [`ids`] has the numbers and names, [`limits`] every maximum.
//! - One module per device has its messages, generated from the `.proto` file of that name,
//!   each with a `DriverMsg` that has the device's extensions. `amber_sdk::device!` does the
//!   same for your own device.
//!
//! The first lines of each module contain PURE or IO. PURE code only
//! computes: it has no sockets, files, clocks or tasks, and gets the time as an
//! argument. IO code uses sockets, files, clocks and processes.

#![warn(missing_docs)]

pub mod codec;
pub mod feed;
pub mod frame;
pub mod header;
pub mod ids;
pub mod limits;
pub mod pieces;

mod health;
mod message;
mod printable;

pub use codec::{FrameCodec, Packet};
pub use frame::Frame;
pub use generated::amber::{
    DriverHdr, DriverMsg, Joins, MissingPieces, Piece, Receipt, driver_msg::MsgType,
};
pub use header::{Header, HeaderBytes};
pub use ids::{ClientId, Device, DeviceId, DeviceType, SynNum};
pub use message::DeviceMessage;
pub use printable::{printable, printable_cell, printable_json, printable_line};
/// The runtime of the generated code.
pub use prost;

/// The schemas as a serialized `FileDescriptorSet`, not folded: with `extend`, as other
/// languages see them. For tools that use reflection.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));

// The fields that the messages of every device may have; see proto/motion.proto.
pub use generated::amber::motion_proto as motion;
device_message!(motion::DriverMsg);
// The orders of devices that have some; see proto/order.proto.
pub use generated::amber::order_proto as order;

// `DeviceType`'s constants, and a module of messages for each device.
include!(concat!(env!("OUT_DIR"), "/devices.rs"));

#[allow(
    missing_docs,
    unreachable_pub,
    clippy::doc_lazy_continuation,
    clippy::large_enum_variant
)]
mod generated {
    include!(concat!(env!("OUT_DIR"), "/_all.rs"));
}
