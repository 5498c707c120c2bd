//! Datagrams in transit: lost, duplicated, delayed. PURE.

use std::net::SocketAddr;
use std::time::Duration;

use amber_core::router::Unreachable;

use super::{Event, SENT, World};
use crate::invariant::Check;
use crate::weather::{about, happens};

impl World {
    /// A client sends a datagram to the mediator.
    pub(super) fn send_to_mediator(&mut self, from: SocketAddr, bytes: Vec<u8>) {
        self.summary.count("datagrams sent by clients");
        for delay in self.ways() {
            self.agenda
                .plan(delay, Event::ToMediator(from, bytes.clone()));
        }
    }

    /// The mediator sends a datagram.
    pub(super) fn send_to_client(&mut self, to: SocketAddr, bytes: Vec<u8>) {
        self.summary.count(SENT);
        for delay in self.ways() {
            self.agenda.plan(delay, Event::ToClient(to, bytes.clone()));
        }
    }

    /// The delays of the copies of a datagram that arrive.
    fn ways(&mut self) -> Vec<Duration> {
        if self.outage || happens(&mut self.rng, self.weather.loss) {
            self.summary.count("datagrams lost in transit");
            return Vec::new();
        }
        if self.calm {
            // Datagrams stay in order.
            return vec![self.weather.delay];
        }
        let twice = happens(&mut self.rng, self.weather.duplication);
        if twice {
            self.summary.count("datagrams duplicated in transit");
        }
        let mut ways = Vec::new();
        for _ in 0..1 + u8::from(twice) {
            let detour = happens(&mut self.rng, self.weather.detour);
            if detour {
                self.summary.count("datagrams delayed in transit");
            }
            let time = match detour {
                true => self.weather.detour_delay,
                false => self.weather.delay,
            };
            ways.push(about(&mut self.rng, time));
        }
        ways
    }

    pub(super) fn datagram_for_mediator(&mut self, from: SocketAddr, bytes: &[u8]) -> Check {
        if self.core.is_some() {
            return self.datagram(from, bytes);
        }
        self.summary.count("datagrams for a missing mediator");
        if happens(&mut self.rng, self.weather.refusal) {
            let delay = about(&mut self.rng, self.weather.delay);
            self.agenda.plan(delay, Event::Refused(from));
        }
        Ok(())
    }

    pub(super) fn datagram_for_client(&mut self, to: SocketAddr, bytes: &[u8]) -> Check {
        if self.clients.contains_key(&to) {
            return self.client_receives(to, bytes);
        }
        self.summary.count("datagrams for a missing client");
        if self.lost != Some(to) && happens(&mut self.rng, self.weather.refusal) {
            let made_up = to.ip().is_ipv4() && to.to_string().starts_with("10.");
            let how = match made_up || self.rng.u8(0..4) == 0 {
                true => Unreachable::NoRoute,
                false => Unreachable::PortClosed,
            };
            let delay = about(&mut self.rng, self.weather.delay);
            self.agenda
                .plan(delay, Event::Unreachable(self.generation, to, how));
        }
        Ok(())
    }
}
