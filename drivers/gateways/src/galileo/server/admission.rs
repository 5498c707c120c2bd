//! Admission of sessions: tokens, limits, and ids. PURE.

use std::net::SocketAddr;

use amber_robot::bucket::Bucket;
use amber_robot::limits::ORDER_RATE;
use amber_robot::robot::User;

use super::session::Session;
use super::{SOCKET, Server};
use crate::galileo::codec::{Bad, Op, SessionId, Url, encode_reply};
use crate::galileo::doorkeeper::Doorkeeper;
use crate::galileo::limits::{DUPLICATE, SESSION_BYTES, SESSION_RATE};
use crate::galileo::mapping::Path;
use crate::galileo::records::Joiner;
use crate::shared::clock::Now;
use crate::shared::machine::{Output, Outputs};

/// The reason why a client gets no session.
enum Refused {
    Bad(Bad),
    Because(&'static str),
}

impl Server {
    pub(super) fn connect(&mut self, now: Now, from: SocketAddr, bytes: &[u8], out: &mut Outputs) {
        if self.doorkeeper.ignores(now, from, out) {
            return;
        }
        if let Some(session) = self.sessions.get(&from)
            && session.connect == bytes
            && !session.is_proven
            && now.since(session.opened) < DUPLICATE
        {
            out.tally.dropped(now.elapsed, "repeated connect", from);
            return;
        }
        match self.admitted(now, from, bytes, out) {
            Ok((url, path)) => self.open(now, from, bytes, &url, path, out),
            Err(reason) => {
                match reason {
                    Refused::Bad(bad) => out.tally.bad(now.elapsed, bad.text(), from),
                    Refused::Because(reason) => out.tally.dropped(now.elapsed, reason, from),
                }
                self.doorkeeper.refuse(now, from, out);
            }
        }
    }

    fn admitted(
        &mut self,
        now: Now,
        from: SocketAddr,
        bytes: &[u8],
        out: &mut Outputs,
    ) -> Result<(Url, Path), Refused> {
        let url = Url::parse(bytes).map_err(Refused::Bad)?;
        let given = url.parameter("token").unwrap_or_default();
        if !self.doorkeeper.accepts(now, from, given) {
            return Err(Refused::Because("wrong token"));
        }
        let path = Path::parse(&url.path).ok_or(Refused::Because("unknown path"))?;
        if let Path::Device(device) = path
            && let Some(allowed) = &self.config.devices
            && !allowed.contains(&device)
        {
            return Err(Refused::Because("device not allowed"));
        }
        // A client that connects again replaces its old session.
        if self.sessions.contains_key(&from) {
            self.end(now, from, out);
        }
        let mut room = self.doorkeeper.has_room(from, self.sessions.keys());
        if room.is_err()
            && let Some(gone) = self.vanished(now, from)
        {
            if let Some(session) = self.sessions.get_mut(&gone) {
                session.send(now, gone, Op::Close, out);
            }
            self.end(now, gone, out);
            room = self.doorkeeper.has_room(from, self.sessions.keys());
        }
        room.map_err(Refused::Because)?;
        Ok((url, path))
    }

    fn vanished(&self, now: Now, from: SocketAddr) -> Option<SocketAddr> {
        let sessions = self.sessions.iter();
        let heard = sessions.map(|(address, session)| (*address, session.heard));
        Doorkeeper::vanished(now, from, heard)
    }

    fn open(
        &mut self,
        now: Now,
        from: SocketAddr,
        connect: &[u8],
        url: &Url,
        path: Path,
        out: &mut Outputs,
    ) {
        let Some(id) = self.fresh_id() else {
            return out.tally.dropped(now.elapsed, "no random numbers", from);
        };
        self.last_user = self.last_user.wrapping_add(1);
        let user = User(self.last_user);
        let ip = from.ip().to_canonical();
        let session = Session {
            id,
            user,
            path,
            connect: connect.to_owned(),
            purpose: url.path.clone(),
            opened: now.elapsed,
            heard: now.elapsed,
            is_proven: false,
            is_local: self
                .config
                .local
                .iter()
                .any(|network| network.contains(&ip)),
            pinged: now.elapsed,
            reported: now.elapsed,
            next_out: 0,
            next_in: None,
            has_index: !self.config.without_index.contains(&url.path),
            joiner: Joiner::default(),
            speaks_text: true,
            datagrams: Bucket::new(SESSION_RATE),
            bytes: Bucket::new(SESSION_BYTES),
            orders: Bucket::new(ORDER_RATE),
        };
        tracing::info!(client = %from, "session opened: {}", url.path);
        out.send(SOCKET, from, encode_reply(Some(id)));
        if session.gives_orders() {
            out.push(Output::Open(user, Some(from)));
        }
        for topic in self.topics(path) {
            out.push(Output::Watch(topic));
        }
        self.sessions.insert(from, session);
    }

    /// Ids are random, not zero, and unique.
    fn fresh_id(&mut self) -> Option<SessionId> {
        const TRIES: usize = 100;
        let ids = std::iter::repeat_with(|| SessionId((self.ids)())).take(TRIES);
        let sessions = &self.sessions;
        let is_used = |id: &SessionId| sessions.values().any(|session| session.id == *id);
        ids.into_iter().find(|id| id.0 != [0; 4] && !is_used(id))
    }
}
