//! The interfaces of devices: what their `.proto` files say beyond the messages. PURE.
//!
//! A `.proto` file describes a device as a protobuf `service` with the options of
//! `interface.proto`. This crate reads such a service from a descriptor pool, checks it, and gives
//! one plain model of it: an [`Interface`] with its [`Method`]s and their [`Field`]s. Generators
//! and tools use this model and nothing else, so a rule is checked in one place.
//!
//! ```
//! let interfaces = amber_schema::built_in().unwrap();
//! let hokuyo = interfaces.iter().find(|interface| interface.name == "hokuyo").unwrap();
//! let scan = hokuyo.method("scan").unwrap();
//! assert_eq!(scan.answer[0].fields[0].unit.as_deref(), Some("deg"));
//! ```
//!
//! [`read`] does the same for a file of your own. The pool must keep custom options: decode it from
//! the bytes of a descriptor set, since `prost_types` drops them.

use amber_proto::DESCRIPTORS;
use prost_reflect::DescriptorPool;

mod error;
mod fields;
mod model;
mod read;
#[cfg(test)]
mod tests;
mod text;
mod unit;

pub use error::Error;
pub use model::{Cardinality, Choice, Field, Interface, Kind, Method, Setting};
pub use read::read;
pub use text::{markdown, text};
pub use unit::is_unit;

/// The descriptors of Amber's own devices.
///
/// # Errors
/// This program is broken.
pub fn built_in_pool() -> Result<DescriptorPool, Error> {
    DescriptorPool::decode(DESCRIPTORS)
        .map_err(|error| Error::new("the built-in schemas", &[], error.to_string()))
}

/// The interfaces of Amber's own devices, by device type.
///
/// # Errors
/// This program is broken.
pub fn built_in() -> Result<Vec<Interface>, Error> {
    let pool = built_in_pool()?;
    let mut interfaces = Vec::new();
    for file in pool.files() {
        interfaces.extend(read(&file)?);
    }
    interfaces.sort_by_key(|interface| interface.device_type);
    Ok(interfaces)
}
