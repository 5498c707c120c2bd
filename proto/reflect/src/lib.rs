//! The messages of any robot device by its description: those of Amber's own devices, and yours.
//!
//! [`Schemas`] reads and writes messages by their `.proto` files, which come from Amber
//! ([`Schemas::built_in`]), from files ([`Schemas::with`]) or from the descriptors that a driver
//! sends ([`Schemas::from_descriptors`]). [`explain`] explains each byte of a frame.
//!
//! ```
//! let interfaces = amber_reflect::built_in();
//! let hokuyo = interfaces.iter().find(|interface| interface.name == "hokuyo").unwrap();
//! let scan = hokuyo.method("scan").unwrap();
//! assert_eq!(scan.answer[0].fields[0].unit.as_deref(), Some("deg"));
//!
//! let message = amber_reflect::Schemas::built_in().brief_message(b"\x10\x01\xa0\x03\x01");
//! assert_eq!(message, "DATA  get_status: true");
//! ```

#![warn(missing_docs)]

pub mod arguments;
mod error;
pub mod explain;
pub mod help;
mod motion;
mod schemas;
mod source;
mod streams;
mod value;
mod words;

use std::sync::LazyLock;

use amber_proto::DESCRIPTORS;
use amber_schema::Interface;
use prost_reflect::DescriptorPool;

pub use error::Error;
pub use motion::Motion;
pub use schemas::{MAX_DESCRIPTOR_BYTES, Schemas, hex, human};
pub use source::source;
pub use streams::StreamRequest;
pub use words::{read_fields, read_hex, read_raw};

/// The descriptors of Amber's own devices.
pub fn built_in_pool() -> &'static DescriptorPool {
    static POOL: LazyLock<DescriptorPool> = LazyLock::new(|| {
        DescriptorPool::decode(DESCRIPTORS)
            .expect("amber-proto has the descriptors it was built from")
    });
    &POOL
}

/// The interfaces of Amber's own devices, by device type.
pub fn built_in() -> &'static [Interface] {
    static INTERFACES: LazyLock<Vec<Interface>> = LazyLock::new(|| {
        amber_schema::read_all(built_in_pool(), &[]).expect("the build has checked every rule")
    });
    &INTERFACES
}
