//! The mediator of Amber, as a library: the binary `amber` and the tests run it.
//!
//! ```text
//!                 +---------------------- core (pure) ---------------------+
//!  datagrams ---> |  router: clients, devices, queues     supervise: state |
//!  driver frames->|  core: the two together, and the mediator as a device  |
//!  exits, time -->|                                                        |
//!                 +------+-------------------+----------------------+------+
//!                        v                   v                      v
//!                  datagrams out      bytes for pipes      processes to start and end
//! ```
//!
//! All decisions are made in the core. It has no sockets, processes or clock: time is an
//! argument, and the actions to perform are return values. The [`shell`] is the only place with
//! IO. One thread owns everything, so there are no locks, and no data is passed between
//! threads.
//!
//! - [`config`]: the settings, read from TOML and the command line.
//! - [`access`]: which addresses may use which device. [`rate`]: how often.
//! - [`router`]: which frame goes where. [`queue`]: the frames that wait for one driver.
//!   [`gate`]: how much a driver gets ahead.
//! - [`supervise`]: the life of one driver process, as a state machine.
//! - [`core`]: combines router and supervision, and answers as device 0.
//! - [`origin`]: whether a source address is genuine. [`links`]: whether a host uses an
//!   address. [`lanes`]: which socket sends.
//! - [`shell`]: sockets, pipes, processes, timers.
//! - [`log`]: lines on stderr that never block the rest.
//! - [`counters`], [`limits`]: all counters and all maxima.
//!
//! Four promises hold: the mediator does not decode messages for others (except the number of a
//! request to an unavailable device, and CLIENT_DIED); it counts every drop; no input from a
//! peer can make the core panic; and a client that has never contacted the mediator itself sees
//! only what drivers send it.
//!
//! In these pages, the first lines of each module say PURE or IO. PURE code only computes: it
//! has no sockets, files, clocks or tasks, and gets the time as an argument. IO code talks to
//! the outside.

pub mod access;
pub mod config;
pub mod core;
pub mod counters;
pub mod gate;
mod hash;
pub mod lanes;
pub mod limits;
pub mod links;
pub mod log;
pub mod moment;
pub mod origin;
pub mod queue;
pub mod rate;
pub mod router;
pub mod shell;
pub mod supervise;
