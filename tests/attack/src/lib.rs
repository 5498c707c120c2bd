//! Attacks on a real mediator, with expected and actual results.
//!
//! ```text
//!   attackers --- UDP, forged packets ---\
//!   innocent clients -------- UDP ------- mediator --- pipes --- honest drivers
//!                                          |    \------ pipes --- hostile drivers
//!                                     signals, files
//! ```
//!
//! - [`suite`] says what an attack is, and lists all. [`attacks`] has them, by topic.
//! - [`site`] runs a mediator, [`peer`] has the clients, [`driver`] the drivers.
//! - [`net`] makes networks for attacks from other machines, [`packet`] builds
//!   packets with forged sources, [`wire`] builds frames.
//!
//! Everything is bounded in time and number. Thresholds are counts and ratios with
//! room for a busy machine; the measured values stand in the report.

pub mod attacks;
pub mod driver;
pub mod net;
pub mod packet;
pub mod peer;
pub mod site;
pub mod suite;
pub mod wire;
