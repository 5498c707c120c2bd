//! The interfaces of devices: the part of their `.proto` files beyond the messages. PURE.
//!
//! A `.proto` file describes a device as a protobuf `service` with the options of
//! `interface.proto`. This crate reads such a service from a descriptor pool, checks it, and gives
//! one plain model of it: an [`Interface`] with its [`Method`]s and their [`Field`]s. Generators
//! and tools use this model and nothing else, so a rule is checked in one place.
//!
//! [`read`] reads one file, [`read_all`] all files of a pool. The pool must keep custom options:
//! decode it from the bytes of a descriptor set, since `prost_types` drops them. The interfaces of
//! Amber's own devices are in `amber_reflect::built_in`.

#![warn(missing_docs)]

mod error;
mod fields;
mod model;
mod read;
#[cfg(test)]
mod tests;
mod text;
mod unit;

pub use error::Error;
pub use model::{Cardinality, Choice, Field, Harmless, Interface, Kind, Method, Moves, Setting};
pub use read::{read, read_all};
pub use text::{markdown, text};
pub use unit::{conversion, is_unit};
