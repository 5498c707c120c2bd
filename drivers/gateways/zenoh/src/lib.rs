//! A fleet of Amber robots over Eclipse Zenoh.
//!
//! ```text
//!   robot r1                          anywhere                  operator
//!   drivers - mediator - amber-zenoh ---- Zenoh router(s) ---- any program with Zenoh
//!                        (client)         (TLS, access)
//! ```
//!
//! On each robot, `amber-zenoh robot` is a client of the mediator and of a Zenoh router. It publishes
//! the data of the devices, accepts requests and orders for them, and announces robot and devices.
//! The keys are in [`keys`].
//!
//! - **Messages are Amber's own**, so a device behaves the same in the fleet. Programs can request
//!   the description of an unknown device.
//! - **The robot controls motion** ([`robot::orders`]): one operator drives, a command is valid for
//!   half a second by the robot's own clock, and everything stops when the operator is gone.
//! - **A stop never waits for the network** ([`robot`]).
//! - **Nothing is lost silently**: messages are numbered, and drops are counted; see the counters
//!   of `info`.
//!
//! The first lines of each module contain PURE or IO. PURE code only computes; IO code talks to the
//! outside.

pub mod access;
pub mod certificate;
pub mod config;
pub mod counters;
pub mod diagnosis;
pub mod doctor;
pub mod fleet;
pub mod health;
pub mod keys;
pub mod limits;
pub mod names;
pub mod pacing;
pub mod private;
pub mod problem;
pub mod quota;
pub mod remote;
pub mod robot;
pub mod ros;
pub mod router;
pub mod seat;
pub mod session;
pub mod stamp;
