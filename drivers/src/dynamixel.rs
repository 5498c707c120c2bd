//! The packets of Dynamixel servos (protocol 2.0). There is no driver for them yet. PURE.

pub mod protocol;
