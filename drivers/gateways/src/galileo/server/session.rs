//! A session: the data for its client, and the times when it is due. PURE.

use std::net::SocketAddr;
use std::time::Duration;

use amber_robot::bucket::Bucket;
use amber_robot::robot::User;

use crate::galileo::codec::{Frame, Op, SessionId};
use crate::galileo::limits::{PING_PERIOD, QUIET, REPORT_PERIOD, SILENCE, UNPROVEN};
use crate::galileo::mapping::Path;
use crate::galileo::records::Joiner;
use crate::galileo::server::SOCKET;
use crate::shared::clock::Now;
use crate::shared::machine::Outputs;

pub(super) struct Session {
    pub(super) id: SessionId,
    pub(super) user: User,
    pub(super) path: Path,
    /// The connect datagram of the client.
    pub(super) connect: Vec<u8>,
    pub(super) purpose: String,
    pub(super) opened: Duration,
    pub(super) heard: Duration,
    /// The client has sent a frame with the id, so its address is genuine.
    pub(super) is_proven: bool,
    pub(super) is_local: bool,
    pub(super) pinged: Duration,
    pub(super) reported: Duration,
    /// The index of the next BINARY frame, in both directions.
    pub(super) next_out: u32,
    pub(super) next_in: Option<u32>,
    pub(super) has_index: bool,
    pub(super) joiner: Joiner,
    /// Whether the client speaks JSON.
    pub(super) speaks_text: bool,
    pub(super) datagrams: Bucket,
    pub(super) bytes: Bucket,
    pub(super) orders: Bucket,
}

impl Session {
    pub(super) fn frame(&self, op: Op<'_>) -> Vec<u8> {
        Frame::Session { id: self.id, op }.encode()
    }

    /// Sends a frame, unless the session gets too much.
    pub(super) fn send(&mut self, now: Now, to: SocketAddr, op: Op<'_>, out: &mut Outputs) {
        let frame = self.frame(op);
        let length = u32::try_from(frame.len()).unwrap_or(u32::MAX);
        let fits = self.datagrams.take(now.elapsed) && self.bytes.take_many(now.elapsed, length);
        match fits {
            true => out.send(SOCKET, to, frame),
            false => out.tally.dropped(now.elapsed, "session gets too much", to),
        }
    }

    /// Whether the session uses a client at the mediator.
    pub(super) fn gives_orders(&self) -> bool {
        matches!(self.path, Path::CmdVel | Path::Goal | Path::Device(_))
    }

    /// The time from which the client may get data without having sent a frame.
    fn quiet_until(&self) -> Option<Duration> {
        match (self.is_proven, self.is_local) {
            (true, _) => Some(self.opened),
            (false, true) => Some(self.opened + QUIET),
            (false, false) => None,
        }
    }

    pub(super) fn may_get_data(&self, now: Now) -> bool {
        self.quiet_until().is_some_and(|until| until <= now.elapsed)
    }

    /// When the session ends unless its client sends something.
    pub(super) fn ends(&self) -> Duration {
        match self.is_proven || self.is_local {
            true => self.heard + SILENCE,
            false => self.opened + UNPROVEN,
        }
    }

    pub(super) fn ping_due(&self) -> Option<Duration> {
        Some(self.quiet_until()?.max(self.pinged + PING_PERIOD))
    }

    pub(super) fn report_due(&self) -> Option<Duration> {
        let has_rate = matches!(self.path, Path::Odom | Path::Status);
        let quiet_until = self.quiet_until().filter(|_| has_rate)?;
        Some(quiet_until.max(self.reported + REPORT_PERIOD))
    }
}
