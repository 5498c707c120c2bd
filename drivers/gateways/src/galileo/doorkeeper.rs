//! Rejects clients that guess tokens or sessions, and limits the number of sessions. PURE.
//!
//! The server and the proxy have one each, with the same rules.

use std::net::SocketAddr;
use std::time::Duration;

use amber_robot::bucket::Buckets;

use super::codec::{Frame, Op, SessionId, encode_reply};
use super::limits::{
    MAX_SESSIONS, MAX_SESSIONS_PER_IP, STRANGER_RATE, VANISHED, WRONG_IDS, WRONG_IDS_SILENCE,
    WRONG_IDS_WINDOW, WRONG_TOKEN_SILENCE, WRONG_TOKENS,
};
use super::token::Token;
use crate::shared::clock::Now;
use crate::shared::machine::{Outputs, Socket};
use crate::shared::offences::Offences;

/// The conditions for a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Door {
    /// The required token; `None` admits all clients.
    pub token: Option<Token>,
    /// The maximum number of sessions.
    pub max_sessions: u32,
    /// The maximum number of sessions of one IP address.
    pub max_sessions_per_ip: u32,
}

impl Default for Door {
    fn default() -> Self {
        Self {
            token: None,
            max_sessions: MAX_SESSIONS,
            max_sessions_per_ip: MAX_SESSIONS_PER_IP,
        }
    }
}

/// Answers clients without a session, within limits, and ignores clients that guess.
#[derive(Debug)]
pub struct Doorkeeper {
    door: Door,
    socket: Socket,
    wrong_tokens: Offences,
    wrong_ids: Offences,
    /// Answers to addresses without a session.
    answers: Buckets<SocketAddr>,
}

impl Doorkeeper {
    /// Answers go through this socket.
    #[must_use]
    pub fn new(door: Door, socket: Socket) -> Self {
        Self {
            door,
            socket,
            wrong_tokens: Offences::new(WRONG_TOKENS - 1, WRONG_TOKEN_SILENCE, WRONG_TOKEN_SILENCE),
            wrong_ids: Offences::new(WRONG_IDS, WRONG_IDS_WINDOW, WRONG_IDS_SILENCE),
            answers: Buckets::new(STRANGER_RATE),
        }
    }

    /// Whether this address has guessed too many tokens to connect now. Then it gets no answer.
    pub fn ignores(&self, now: Now, from: SocketAddr, out: &mut Outputs) -> bool {
        let is_silenced = self.wrong_tokens.is_silenced(now.elapsed, from.ip());
        if is_silenced {
            out.tally
                .dropped(now.elapsed, "too many wrong tokens", from);
        }
        is_silenced
    }

    /// Whether this is the token; wrong tokens are counted.
    pub fn accepts(&mut self, now: Now, from: SocketAddr, token: &str) -> bool {
        let is_right = (self.door.token.as_ref()).is_none_or(|right| right.is(token));
        if !is_right {
            self.wrong_tokens.note(now.elapsed, from.ip());
        }
        is_right
    }

    /// Whether there is room for one more session of this address in addition to these.
    ///
    /// # Errors
    /// The reason why there is none.
    pub fn has_room<'a>(
        &self,
        from: SocketAddr,
        sessions: impl ExactSizeIterator<Item = &'a SocketAddr>,
    ) -> Result<(), &'static str> {
        if sessions.len() >= self.door.max_sessions as usize {
            return Err("too many sessions");
        }
        let of_ip = sessions.filter(|it| it.ip() == from.ip()).count();
        match of_ip >= self.door.max_sessions_per_ip as usize {
            true => Err("too many sessions of one address"),
            false => Ok(()),
        }
    }

    /// The session whose place a new session of this address may take, of sessions with the times
    /// when they were last heard: the one that has been silent longest.
    #[must_use]
    pub fn vanished(
        now: Now,
        from: SocketAddr,
        sessions: impl Iterator<Item = (SocketAddr, Duration)>,
    ) -> Option<SocketAddr> {
        let silent =
            sessions.filter(|(it, heard)| it.ip() == from.ip() && now.since(*heard) >= VANISHED);
        let longest = silent.min_by_key(|(_, heard)| *heard);
        longest.map(|(address, _)| address)
    }

    /// Tells a client that it gets no session. The caller counts the reason.
    pub fn refuse(&mut self, now: Now, from: SocketAddr, out: &mut Outputs) {
        if self.answers.take(now.elapsed, from) {
            out.send(self.socket, from, encode_reply(None));
        }
    }

    /// A frame of a session that does not exist, such as after a restart: the client learns at once
    /// that it must connect again.
    pub fn refuse_id(
        &mut self,
        now: Now,
        from: SocketAddr,
        id: SessionId,
        op: Op<'_>,
        out: &mut Outputs,
    ) {
        if self.wrong_ids.is_silenced(now.elapsed, from.ip()) {
            let reason = "too many unknown sessions";
            return out.tally.dropped(now.elapsed, reason, from);
        }
        self.wrong_ids.note(now.elapsed, from.ip());
        out.tally.bad(now.elapsed, "unknown session", from);
        if op != Op::Close && self.answers.take(now.elapsed, from) {
            let close = Frame::Session { id, op: Op::Close };
            out.send(self.socket, from, close.encode());
        }
    }
}
