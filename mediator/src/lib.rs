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
//! Everything that is decided is decided in the core, which knows no socket, no
//! process and no clock: time is an argument, and what there is to do comes
//! out as data. The [`shell`] is the only place with IO. One thread owns it
//! all, so there are no locks, and nothing is handed from thread to thread.
//!
//! - [`config`]: what can be set, read from TOML and the command line.
//! - [`access`]: who may talk to which device. [`rate`]: how often.
//! - [`router`]: who gets what. [`queue`]: what waits for one driver. [`gate`]: how
//!   much it gets ahead.
//! - [`supervise`]: the life of one driver process, as a state machine.
//! - [`core`]: puts router and supervision together, answers as device 0.
//! - [`origin`]: whether a source address can be true. [`links`]: whether there is a host
//!   behind an address. [`lanes`]: which socket sends.
//! - [`shell`]: sockets, pipes, processes, timers.
//! - [`log`]: lines on stderr that never stall the rest.
//! - [`counters`], [`limits`]: everything that is counted, and every maximum.
//!
//! Four things hold always: a message that is not for the mediator is never
//! decoded (but for the number of a request to a device that cannot be used, and
//! for CLIENT_DIED); what is dropped is counted; nothing that a peer sends can make the core
//! panic; and a client that has never spoken to the mediator itself sees only
//! what drivers send it.
//!
//! In these pages, the first lines of each module say PURE or IO. PURE code only
//! computes: it has no sockets, files, clocks or tasks, and gets the time as an
//! argument. IO code talks to the outside.

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
