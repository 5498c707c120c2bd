//! The traits of drivers for Amber's own devices, generated from their descriptions.
//!
//! One module for each device, with its messages. A driver of the Dummy implements
//! [`dummy::DummyDriver`] and runs with `amber_driver::serve(dummy::driver(MyDummy))`. For a device
//! of your own, `amber_sdk::device!` generates the same from its `.proto` file.
//!
//! A driver that lacks a method of the description does not compile:
//!
//! ```compile_fail,E0046
//! use amber_driver::Outcome;
//! use amber_driver::devices::dummy::DummyDriver;
//!
//! struct Half;
//!
//! impl DummyDriver for Half {
//!     async fn enable(&mut self, _: bool, _: Outcome) {}
//!     async fn message(&mut self, _: String, _: Outcome) {}
//!     // `status` is missing.
//! }
//! ```

#![allow(
    missing_docs,
    unused_imports,
    clippy::doc_lazy_continuation,
    clippy::doc_markdown
)]

include!(concat!(env!("OUT_DIR"), "/devices.rs"));

#[cfg(test)]
pub(crate) mod tests;
