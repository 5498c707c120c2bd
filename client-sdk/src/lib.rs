//! Programs for a robot: use its devices, or write a driver, through the mediator of Amber.
//!
//! ```no_run
//! #[amber_sdk::main]
//! async fn main(robot: amber_sdk::Robot) -> amber_sdk::Result<()> {
//!     let target = amber_sdk::Target::new(1.4, 1.0); // metres
//!     let end = robot.drive_to_point(0).drive_to(target).await?;
//!     println!("{end}");
//!     Ok(())
//! }
//! ```
//!
//! # Start
//!
//! ```sh
//! amber demo            # in one terminal: a mediator with a simulated robot
//! cargo add amber-sdk   # in another, in your package: nothing else is needed
//! cargo run
//! ```
//!
//! The robot is the one on this machine. `AMBER_MEDIATOR=192.168.1.7 cargo run` uses another one.
//! [`macro@main`] makes the runtime, connects, and prints an error with a hint; at the end, or at Ctrl-C,
//! what the program has set in motion stops.
//!
//! # What is here
//!
//! - [`Robot`]: the connection, with a method for each kind of device: `robot.roboclaw(0)` are wheels,
//!   `robot.hokuyo(0)` is a laser scanner. The [devices] have methods for all that they can do, with
//!   units, errors, and the effect of dropping a future.
//! - [`Subscription`]: what a device publishes, as a `Stream`.
//! - [`lease`]: nobody else moves the robot. [`Lease`] is one that was taken.
//! - [`Error`]: why a request failed, with the device and a hint. New versions may know more reasons.
//! - [`device!`]: your own devices, from a `.proto` file.
//! - [`blocking`]: the same without async.
//! - `driver`: write a driver.
//! - [`proto`]: messages, frames, numbers and names on the wire. [`values`]: scans, poses, speeds.
//!
//! # Features
//!
//! | feature | what it adds |
//! |---|---|
//! | `device` (by default) | [`device!`] |
//! | `driver` | the module `driver`: traits of drivers, and the process around them |
//! | `options` | the module `driver::options`: options of a driver from a TOML file |
//! | `picture` | the module `picture`: scans as PNG files, and a canvas for other pictures |
//!
//! # How it works
//!
//! ```text
//!   your program                         a task                   mediator
//!   Robot, devices  --- orders ------>  pending     calls     ---  UDP  --->
//!   calls           <-- answers ------  subscriptions         <--  or a  ---
//!   Subscriptions   <-- queues -------  liveness                   driver's pipe
//! ```
//!
//! [`Client`], which every [`Robot`] is, is a cheap handle. One task owns the transport and all tables.
//! It ends when you drop the last handle, and informs the mediator.
//!
//! - **Requests.** Each request has a deadline (one second by default), because
//!   UDP loses datagrams. Failures usually show earlier: the mediator reports an
//!   unknown device or a dead driver, and [`Error`] tells them apart. Nothing is
//!   retried automatically.
//! - **Commands**, such as [`devices::Roboclaw::drive`], are requests without an answer. They wait
//!   until the driver has reported that it carries them out, which takes a round trip; a
//!   refusal is an error. A driver that does not report, such as one of the original
//!   system, is waited for once, for a quarter of a second. A program that must not wait
//!   uses [`devices::Roboclaw::without_waiting`], which passes refusals on later.
//! - **Runtime.** [`macro@main`] runs tokio 1 in one thread. A program with its own runtime uses
//!   [`Robot::connect`] within it: handles are `Send` and `Sync`.
//! - **Subscriptions.** A [`Subscription`] resumes after a restart of the driver
//!   or the mediator, and reports what you missed.
//! - **Dropping.** Dropping a future cancels its request if it is not sent yet.
//!   Dropping a subscription unsubscribes. Neither blocks.
//! - **Raw messages**: [`Client::device`] takes bytes, or any message that implements
//!   [`proto::DeviceMessage`].
//!
//! Mediators and drivers of the original system also work, but report less. See [`Announcement`].
//!
//! # Where to go next
//!
//! - [Ten small programs][gallery], to copy: a square, a wall, the battery, a picture, a rule...
//! - [Devices][devices-page]: requests, streams and units of all devices.
//! - [Who drives?][who-drives]: leases, commands that expire, and halts.
//! - [Write a driver][write-a-driver], in Rust or any other language.
//! - [Compared with tonic, Zenoh and Viam][rust-programs]: the same program with each.
//! - [What remains stable between versions][compatibility].
//!
//! [gallery]: https://example.org/amber/blob/HEAD/docs/gallery.md
//! [devices-page]: https://example.org/amber/blob/HEAD/docs/devices.md
//! [who-drives]: https://example.org/amber/blob/HEAD/docs/who-drives.md
//! [write-a-driver]: https://example.org/amber/blob/HEAD/docs/write-a-driver.md
//! [rust-programs]: https://example.org/amber/blob/HEAD/docs/rust-programs.md
//! [compatibility]: https://example.org/amber/blob/HEAD/docs/compatibility.md

#![warn(missing_docs, clippy::print_stderr, clippy::print_stdout)]

// Generated code has the paths of a program that uses this crate.
extern crate self as amber_sdk;

mod robot;
mod run;

/// Compiles the Rust examples of these pages.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
#[doc = include_str!("../../README.md")]
#[doc = include_str!("../../docs/navigation.md")]
#[doc = include_str!("../../docs/driving.md")]
#[doc = include_str!("../../docs/who-drives.md")]
#[doc = include_str!("../../docs/robot.md")]
#[doc = include_str!("../../docs/rust-programs.md")]
struct Pages;

#[doc(inline)]
pub use amber_client::{
    Announcement, Client, DEFAULT_DEADLINE, Error, Event, Interruption, Lease, LogEntry, LogReader,
    LogStart, MediatorAddress, Result, Subscription, Update, address, blocking, error, lease,
    scan::{Point, Scan, ScanError},
    sources, subscription,
};

/// The clients of Amber's own devices, and what their methods take and return.
///
/// The methods of [`Robot`] make them: `robot.roboclaw(0)` is a [`Roboclaw`](devices::Roboclaw). Each
/// has a method for each request, generated from the description of the device.
#[doc(inline)]
pub use amber_client::proxy as devices;

#[doc(inline)]
pub use amber_client::proxy::{
    Attitude, DriveEnd, MapPose, OrderState, Proxy, Target, TrajectoryPoint, Trip, Vector,
    WheelSpeeds, new_order_id,
};

#[cfg(feature = "picture")]
#[doc(inline)]
pub use amber_client::picture;

/// Messages, frames, numbers and names on the wire: the crate `amber-proto`.
pub use amber_proto as proto;
/// Values of devices, such as scans and poses: the crate `amber-values`.
pub use amber_values as values;

#[cfg(feature = "driver")]
#[doc(inline)]
pub use amber_driver as driver;

#[doc(hidden)]
pub use amber_client::generated;

pub use robot::Robot;
pub use run::{Outcome, run};

/// Makes a program of `async fn main(robot: Robot)`.
///
/// The function gets the robot that the environment variable `AMBER_MEDIATOR` names, or the one on this
/// machine. It may return nothing, or a [`Result`] with any error. When it ends, or at Ctrl-C, the
/// program leaves the robot, so that what it has set in motion stops. An error is printed with a hint,
/// and the exit code is 1. [`run`] is the same as a function.
///
/// ```no_run
/// #[amber_sdk::main]
/// async fn main(robot: amber_sdk::Robot) -> amber_sdk::Result<()> {
///     let status = robot.dummy(0).status().await?;
///     println!("{}", status.message);
///     Ok(())
/// }
/// ```
///
/// Arguments, and another function, are errors of the compiler:
///
/// ```compile_fail
/// #[amber_sdk::main]
/// fn main(robot: amber_sdk::Robot) {}
/// ```
pub use amber_sdk_macros::main;

/// A module for a device of your own, from its `.proto` file: its messages, its clients, and with the
/// feature `driver` the trait of its drivers.
///
/// The path begins at the folder of your `Cargo.toml`. The name of the module is the last part of the
/// package that the file names. No `protoc` and no build script are needed.
///
/// ```ignore
/// amber_sdk::device!("lamp.proto");
///
/// #[amber_sdk::main]
/// async fn main(robot: amber_sdk::Robot) -> amber_sdk::Result<()> {
///     let lamp = lamp::Lamp::of(&robot, 0);
///     lamp.set_brightness(40).await
/// }
/// ```
///
/// `lamp::DriverMsg` has the base fields and the fields that the file adds with `extend
/// amber.DriverMsg`; the other messages of the file are next to it. If the file describes the device by
/// a `service` with the option `amber.device`, each `rpc` is a method, with its comment as
/// documentation:
///
/// - The fields of a request are arguments, if at most one of them is optional. Otherwise the
///   message is the argument. A table (`amber.columns`) is a slice of tuples. The period of a stream
///   and the duration of a request are a `Duration`.
/// - The field of an answer is the result; several fields are a struct, such as
///   `LampState` for the method `State`.
/// - A message with a class (`amber.value`) is this class of [`values`]. For a message
///   of your own, implement `From` or `TryFrom` between the two, or `Row` for a table.
/// - `lamp::blocking::Lamp` has the same methods for programs without async.
/// - `lamp::LampDriver` is the trait of the drivers, and `lamp::driver` makes a driver of it, for
///   `amber_sdk::driver::serve`.
///
/// The file may import the files next to it with the same package, `drivermsg.proto`,
/// `interface.proto` and the files of Amber's devices. All but the first are built in.
#[cfg(feature = "device")]
pub use amber_sdk_macros::device;

/// Waits. It is `tokio::time::sleep`, for programs that need nothing else of tokio.
pub async fn sleep(duration: std::time::Duration) {
    tokio::time::sleep(duration).await;
}
