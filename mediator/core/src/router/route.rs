//! The router's view of one driver. PURE.

use std::collections::BTreeSet;
use std::time::Instant;

use amber_proto::mediator::Unavailable;
use amber_proto::{ClientId, Device};

use super::Uses;
use crate::queue::Queue;
use crate::rate::RateLimit;

/// Traffic of a driver, for `amber status`; its queue counts the frames for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Bytes for its stdin.
    pub bytes_in: u64,
    /// Frames from its stdout.
    pub frames_out: u64,
    /// Bytes from its stdout.
    pub bytes_out: u64,
    /// Frames for it that came while it did not run.
    pub dropped_down: u64,
    /// Frames from its stdout that came while it was being stopped, included in `frames_out`.
    pub dropped_stopping: u64,
}

/// The router's view of a driver.
#[derive(Debug)]
pub struct Route {
    /// The devices that it serves; at least one.
    pub devices: Vec<Device>,
    /// Its id in the number space of the clients, while its process runs.
    pub id: Option<ClientId>,
    /// The frames that wait for it.
    pub queue: Queue,
    pub traffic: Traffic,
    /// The reason why it is unavailable, while its process does not run.
    pub(super) absence: Option<Unavailable>,
    /// The devices of other drivers that it uses.
    pub(super) uses: Uses,
    /// Users that were not told that it is unavailable.
    pub(super) untold: BTreeSet<ClientId>,
    /// It has contacted the mediator as a client.
    pub(super) announced: bool,
    /// Limits how fast it may send requests to the mediator.
    pub(super) requests: RateLimit,
    pub(super) warned_of_long_messages: bool,
    pub(super) over_long: u64,
    /// When a log message last named it as part of an endless exchange.
    pub(super) loop_named: Option<Instant>,
    /// It is in [`Router::dirty`].
    pub(super) dirty: bool,
    /// Its frames are copied.
    pub(super) tapped: bool,
}

impl Route {
    /// A driver that does not run yet.
    pub(super) fn new(devices: Vec<Device>, queue: Queue) -> Self {
        Self {
            devices,
            id: None,
            queue,
            traffic: Traffic::default(),
            absence: None,
            uses: Uses::default(),
            untold: BTreeSet::new(),
            announced: false,
            requests: RateLimit::default(),
            warned_of_long_messages: false,
            over_long: 0,
            loop_named: None,
            dirty: false,
            tapped: false,
        }
    }
}
