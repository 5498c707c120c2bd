//! A simulated robot: a flat world with walls, and the robot's devices behind
//! pseudo-terminals, for whoever has no robot at hand.
//!
//! ```text
//!            any program that speaks to the real devices
//!                 |  serial bytes            |  serial bytes, or TCP
//!           +-----v------+            +------v------+
//!   IO      | pty        |            | pty / tcp   |
//!           +-----+------+            +------+------+
//!   PURE    | roboclaw   |            | hokuyo      |   protocol machines:
//!           +-----+------+            +------+------+   bytes and time in, bytes out
//!                 | what motors shall do     | where beams end
//!           +-----v--------------------------v------+
//!   PURE    | world: robot, motors, walls, contacts |
//!           +---------------------------------------+
//! ```
//!
//! The other devices are alike: a NineDof board on an I2C bus, a StarGazer
//! below the markers of `ceiling`, and servos on a Maestro.
//!
//! The machines and the world know no clock; `simulator` has the only loop.
//! It brings the world up to date before each byte that arrives, so a device
//! never answers with old measurements, and sleeps while nothing moves and
//! nobody measures.
//!
//! Units are metres, radians and seconds inside; angles are counter-clockwise
//! with x ahead and y to the left. What devices speak stands in their modules.
//!
//! In these pages, the first lines of each module say PURE or IO. PURE code only
//! computes: it has no sockets, files, clocks or tasks, and gets the time as an
//! argument. IO code talks to the outside.

pub mod ceiling;
pub mod cli;
pub mod control;
mod folder;
pub mod geometry;
pub mod hokuyo;
pub mod i2c;
mod i2c_port;
pub mod maestro;
pub mod map;
pub mod ninedof;
pub mod pty;
mod ptys;
mod reset_line;
pub mod roboclaw;
pub mod robot;
pub mod simulator;
pub mod stargazer;
pub mod tcp;
mod unix_server;
pub mod wheels;
pub mod world;
