//! Global faults: restarts, reloads, floods. PURE.

use std::net::SocketAddr;
use std::time::Duration;

use amber_core::Core;
use amber_core::supervise::Event as Happened;
use amber_proto::{ClientId, MsgType};

use super::{Event, World};
use crate::clients::{device, made_up, nonsense};
use crate::invariant::{Check, Invariant, holds};
use crate::messages;
use crate::model::Cause;
use crate::weather::about;

const MICROSECOND: Duration = Duration::from_micros(1);
const SECONDS: Duration = Duration::from_secs(2);

impl World {
    pub(super) fn trouble(&mut self) -> Check {
        if self.calm {
            return Ok(());
        }
        let next = about(&mut self.rng, self.weather.trouble);
        self.agenda.plan(next, Event::Trouble);
        match self.rng.u8(0..21) {
            0 => self.crash(),
            1 => self.shut_down()?,
            2..5 => self.reloaded(self.generation, None)?,
            5 | 6 => self.flood_of_addresses(),
            7 => self.flood_of_one(),
            8..11 => self.turn_ids(),
            11 => {
                self.spawns_fail = !self.spawns_fail;
                self.summary
                    .count("times that starting processes failed or recovered");
            }
            12 => {
                self.outage = true;
                self.summary.count("outages of the network");
                let time = Duration::from_millis(self.rng.u64(100..9000));
                self.agenda.plan(time, Event::OutageEnds);
            }
            13..16 => self.hurt_a_process()?,
            16 | 17 => {
                let all: Vec<SocketAddr> = self.clients.keys().copied().collect();
                if let Some(at) = self.rng.choice(&all) {
                    self.summary.count("clients that vanished");
                    self.client_leaves(*at);
                }
            }
            18 => self.flood_of_ports(),
            _ => self.change_a_driver()?,
        }
        Ok(())
    }

    /// Kills the mediator and all its drivers.
    fn crash(&mut self) {
        self.say(|| "the mediator is killed".into());
        self.summary.count("mediators killed");
        self.mediator_is_gone();
    }

    fn mediator_is_gone(&mut self) {
        if let Some(core) = self.core.take() {
            self.summary.add(&core.router().totals());
            let after = Duration::from_millis(self.rng.u64(1..6000));
            self.agenda.plan(after, Event::MediatorStarts);
        }
        self.processes.clear();
        self.children.clear();
    }

    /// Requests the shutdown of the mediator.
    pub(super) fn shut_down(&mut self) -> Check {
        let now = self.agenda.now();
        if self.core.as_ref().is_none_or(Core::is_stopping) {
            return Ok(());
        }
        self.say(|| "the mediator shuts down".into());
        self.summary.count("mediators shut down");
        let patience = self.call(Cause::Other, |core| core.shut_down(now))?;
        let must_end = Event::MustHaveEnded(self.generation);
        self.agenda.plan(patience.unwrap_or_default(), must_end);
        self.settle()?;
        self.look_whether_it_has_ended();
        Ok(())
    }

    /// Ends a mediator that is shutting down once all drivers have ended.
    pub(super) fn look_whether_it_has_ended(&mut self) {
        let ended = |core: &Core| core.is_stopping() && core.is_finished();
        if self.core.as_ref().is_some_and(ended) {
            self.say(|| "the mediator has ended".into());
            self.mediator_is_gone();
        }
    }

    pub(super) fn must_have_ended(&mut self, generation: u32) -> Check {
        let there = self.generation == generation && self.core.is_some();
        holds(Invariant::ProcessesEnd, !there, || {
            let left = self.core.as_ref().map(Core::unfinished);
            format!("the mediator has not ended: {left:?}")
        })
    }

    fn flood_of_addresses(&mut self) {
        self.summary.count("floods of spoofed addresses");
        for _ in 0..self.rng.usize(10..300) {
            let from = made_up(&mut self.rng);
            self.says_anything(from, Duration::from_millis(200));
        }
    }

    /// A program opens a port for each request, or takes a new address.
    fn flood_of_ports(&mut self) {
        self.summary.count("floods of ports of one host");
        let host = self.rng.u8(0..4);
        // All at once, or one after the other.
        let within = *(self.rng.choice(&[MICROSECOND, SECONDS])).unwrap_or(&SECONDS);
        for _ in 0..self.rng.usize(10..300) {
            let port = self.rng.u16(7000..7500);
            let from = match host {
                0 => ([127, 0, 0, 1], port).into(),
                1 => ([192, 168, 1, 1], port).into(),
                2 => ([192, 168, 1, 77], port).into(),
                _ => ([0xfd00, 0, 0, 0, 0, 0, 0, self.rng.u16(1..)], port).into(),
            };
            self.says_anything(from, within);
        }
    }

    /// Sends a datagram from an address soon, whether or not a client is there.
    fn says_anything(&mut self, from: SocketAddr, within: Duration) {
        let bytes = match self.rng.u8(0..5) {
            0 => nonsense(&mut self.rng),
            1 => {
                let kind = [MsgType::Ping, MsgType::Subscribe, MsgType::Pong];
                let kind = *self.rng.choice(&kind).unwrap_or(&MsgType::Ping);
                messages::frame(None, &messages::bytes(kind, self.tokens.fresh(), None))
            }
            _ => {
                let device = device(&mut self.rng);
                let asked = messages::bytes(MsgType::Data, self.tokens.fresh(), None);
                messages::frame(Some(device), &asked)
            }
        };
        let delay = Duration::from_micros(self.rng.u64(0..within.as_micros() as u64));
        self.agenda.plan(delay, Event::ToMediator(from, bytes));
    }

    fn flood_of_one(&mut self) {
        let all: Vec<SocketAddr> = self.clients.keys().copied().collect();
        let Some(from) = self.rng.choice(&all).copied() else {
            return;
        };
        self.summary.count("floods of one client");
        let device = device(&mut self.rng);
        for _ in 0..self.rng.usize(10..600) {
            let asked = messages::opaque(self.tokens.fresh(), self.rng.usize(0..40));
            let bytes = messages::frame(Some(device), &asked);
            let delay = Duration::from_micros(self.rng.u64(0..100_000));
            self.agenda.plan(delay, Event::ToMediator(from, bytes));
        }
    }

    /// Simulates so many earlier clients that ids wrap around.
    fn turn_ids(&mut self) {
        let Some(core) = &mut self.core else {
            return;
        };
        let known = core.router().clients.in_order();
        let id = match self.rng.u8(0..3) {
            0 => i32::MAX - self.rng.i32(0..5),
            1 => 1,
            _ => known.first().map_or(1, |client| client.id.0),
        };
        core.set_next_id(ClientId(id));
        self.summary.count("wraps of the ids");
    }

    fn hurt_a_process(&mut self) -> Check {
        let now = self.agenda.now();
        let all: Vec<u32> = self.processes.keys().copied().collect();
        let Some(pid) = self.rng.choice(&all).copied() else {
            return Ok(());
        };
        let Some(process) = self.processes.get_mut(&pid) else {
            return Ok(());
        };
        match self.rng.u8(0..6) {
            0 => process.vices.hangs = Some(now),
            1 => process.vices.deaf = Some(now),
            2 => process.vices.dies_writing = Some(process.written_bytes + self.rng.usize(0..50)),
            3 => {
                self.summary.count("processes that wrote any bytes");
                let bytes = nonsense(&mut self.rng);
                self.speaks(pid, &bytes);
            }
            4 => {
                self.summary.count("lines on the stderr of a process");
                let (key, line) = (process.key, nonsense(&mut self.rng));
                let line = String::from_utf8_lossy(&line);
                self.call(Cause::Other, |core| core.driver_said(now, key, &line))?;
            }
            _ => {
                self.summary.count("processes killed by an operator");
                self.process_dies(pid, 9);
            }
        }
        Ok(())
    }

    /// An operator on the machine starts, stops or restarts a driver.
    fn change_a_driver(&mut self) -> Check {
        let all: Vec<_> = self.children.keys().copied().collect();
        let Some(key) = self.rng.choice(&all).copied() else {
            return Ok(());
        };
        let stopping = self.core.as_ref().is_none_or(Core::is_stopping);
        let event = match self.rng.u8(0..3) {
            0 => Happened::Stop,
            1 if !stopping => Happened::Start,
            _ if !stopping => Happened::Restart,
            _ => Happened::Stop,
        };
        self.summary
            .count("drivers started, stopped or restarted by an operator");
        self.driver_event(key, event)
    }
}
