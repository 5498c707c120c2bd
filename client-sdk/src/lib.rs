//! Talk to robot devices through the mediator of Amber.

pub mod transport;
