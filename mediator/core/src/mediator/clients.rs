//! Detects lost clients and reports them. PURE.

use std::fmt;
use std::net::SocketAddr;
use std::time::Instant;

use amber_proto::ClientId;
use amber_proto::mediator::{Event as Notice, event::Kind};
use tracing::{debug, info, warn};

use super::{Core, notice};
use crate::counters::{Count, DropReason};
use crate::limits;
use crate::rate::{Digest, Rate, RateLimit};
use crate::router::{Client, RoomFor, Silence, Unreachable};

/// The reason why a client is gone.
#[derive(Clone, Copy, Debug)]
pub(super) enum Gone {
    SaidSo,
    Lost,
    Unreachable(Unreachable),
    Evicted(RoomFor, SocketAddr),
    Forgotten,
}

impl fmt::Display for Gone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::SaidSo => "left",
            Self::Lost => "no longer answers",
            Self::Unreachable(Unreachable::PortClosed) => "has closed its port",
            Self::Unreachable(Unreachable::NoRoute) => "is unreachable",
            Self::Forgotten => "was silent for long and held nothing",
            Self::Evicted(room, newcomer) => {
                let why = match room {
                    RoomFor::AnyHost => "the table was full",
                    RoomFor::ItsHost => "its host had too many clients",
                };
                return write!(f, "was evicted for {newcomer} because {why}");
            }
        })
    }
}

/// Rate limits for logs and events about lost clients.
#[derive(Debug, Default)]
pub(super) struct ClientNews {
    events: RateLimit,
    evictions: Digest,
    host_evictions: Digest,
}

impl Core {
    pub(super) fn look_for_silent_clients(&mut self, now: Instant) {
        self.timers_changed = true;
        for (id, silence) in self.router.clients.silent(now) {
            match silence {
                Silence::Ping => self.router.ping_client(id, &mut self.outbox),
                Silence::Lost => self.client_gone(now, id, Gone::Lost),
            }
        }
        self.client_tick =
            (self.router.clients.any_announced()).then(|| now + limits::CLIENT_PING_INTERVAL);
    }

    /// Forgets the clients that have been silent for long and hold nothing. Each is forgotten
    /// after once to twice this time.
    pub(super) fn forget_abandoned_clients(&mut self, now: Instant) {
        let silence = self.limits.forget_clients;
        for id in self.router.clients.abandoned(now, silence) {
            let listens = self.events.has(id) || self.tracers.iter().any(|it| it.is(id));
            if !listens {
                self.router.counters.count(Count::ClientsForgotten);
                self.client_gone(now, id, Gone::Forgotten);
            }
        }
        self.forget_at(now);
    }

    /// Plans the next time to forget clients; none if it is too far away.
    pub(super) fn forget_at(&mut self, now: Instant) {
        self.timers_changed = true;
        self.forget_tick = now.checked_add(self.limits.forget_clients);
    }

    pub(super) fn client_gone(&mut self, now: Instant, id: ClientId, why: Gone) {
        if let Some(client) = self.router.client_gone(id) {
            self.say_client_gone(now, &client, why);
        }
    }

    pub(super) fn say_client_gone(&mut self, now: Instant, client: &Client, why: Gone) {
        let (id, address) = (client.id, client.address());
        self.events.unsubscribe(id);
        self.forget_what_waited(client.address);
        match why {
            Gone::Lost | Gone::Unreachable(_) if !client.uses.is_empty() => {
                info!(client = %address, id = id.0, "client gone: {why}");
            }
            // Every command does so when it exits, and the loss of a client without uses affects
            // no device.
            Gone::SaidSo | Gone::Lost | Gone::Unreachable(_) | Gone::Forgotten => {
                debug!(client = %address, id = id.0, "client gone: {why}");
            }
            // Someone may be forging thousands of addresses.
            Gone::Evicted(RoomFor::AnyHost, newcomer) => {
                if let Some(clients) = self.client_news.evictions.happened(now) {
                    warn!(
                        last = %address,
                        %newcomer,
                        clients,
                        "too many clients: some were evicted; \
                         `clients` under [limits] sets the limit"
                    );
                }
            }
            // A program may open a port for each request.
            Gone::Evicted(RoomFor::ItsHost, newcomer) => {
                if let Some(clients) = self.client_news.host_evictions.happened(now) {
                    warn!(
                        last = %address,
                        %newcomer,
                        clients,
                        "too many clients of one host: some were evicted; \
                         does a program open a port for each request? \
                         `clients_per_host` under [limits] sets the limit"
                    );
                }
            }
        }
        let rate = Rate::per_second(limits::CLIENT_EVENTS_PER_SECOND);
        if !self.client_news.events.pass(now, rate) {
            return self.router.counters.drop(DropReason::EventRateLimited);
        }
        self.notify(Notice {
            client_id: Some(id.0),
            text: Some(format!("{address} {why}")),
            ..notice(Kind::ClientGone)
        });
    }
}
