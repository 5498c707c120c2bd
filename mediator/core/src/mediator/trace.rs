//! Traces: copies of a driver's frames for clients. PURE.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use amber_proto::mediator::{self, Refusal, refusal, reply, traced};
use amber_proto::{ClientId, Device, DeviceMessage, DeviceType, SynNum};
use prost::Message;

use super::control::{refuse, wire_device};
use super::{Core, ShellTask, Ticket};
use crate::address::DriverKey;
use crate::counters::DropReason;
use crate::limits;
use crate::router::{Copied, Direction};

/// A client that traces one driver.
#[derive(Clone, Debug)]
pub(super) struct Tracer {
    client: ClientId,
    device: Device,
    driver: DriverKey,
    lost: u64,
    /// The start of the current second, and the number of frames shown in it.
    since: Instant,
    shown: u32,
}

impl Tracer {
    /// Whether this client traces.
    pub(super) fn is(&self, client: ClientId) -> bool {
        self.client == client
    }
}

impl Core {
    /// A client asks for a trace, or for its end.
    pub(super) fn want_trace(
        &mut self,
        ticket: Ticket,
        wanted: mediator::Trace,
    ) -> Result<(), Refusal> {
        let is_local = |it: SocketAddr| super::control::is_loopback(it.ip());
        // Frames to a driver go through its pipe, and would be traced themselves.
        if !ticket.client().is_some_and(is_local) {
            return Err(refuse(
                refusal::Reason::NotAllowed,
                "only clients on the mediator's machine may trace",
                Some("run `amber trace` there"),
            ));
        }
        self.key_of(&wanted.device)?;
        self.tasks.push_back(ShellTask::Trace(ticket, wanted));
        Ok(())
    }

    /// Answers [`ShellTask::Trace`]: starts or ends the trace if the client may see all frames, as a
    /// recorder may.
    pub fn begin_trace(
        &mut self,
        now: Instant,
        ticket: Ticket,
        wanted: &mediator::Trace,
        is_allowed: bool,
    ) {
        let reply = match self.trace(now, ticket, wanted, is_allowed) {
            Ok(done) => reply::What::Done(done),
            Err(refusal) => reply::What::Refused(refusal),
        };
        self.answer_with(ticket, reply);
    }

    fn trace(
        &mut self,
        now: Instant,
        ticket: Ticket,
        wanted: &mediator::Trace,
        is_allowed: bool,
    ) -> Result<String, Refusal> {
        let client = ticket.id.filter(|_| is_allowed);
        let Some(client) = client else {
            return Err(refuse(
                refusal::Reason::NotAllowed,
                "only programs of the mediator's user may trace",
                Some("run `amber trace` as this user, e.g. with sudo"),
            ));
        };
        let driver = self.key_of(&wanted.device)?;
        let device = Device::new(DeviceType(wanted.device.r#type), wanted.device.id);
        self.forget_tracers_that_are_gone();
        self.tracers
            .retain(|tracer| (tracer.client, tracer.device) != (client, device));
        if wanted.off() {
            self.tap_who_is_traced();
            return Ok(format!("{device}: no longer traced"));
        }
        if self.tracers.len() == limits::TRACERS {
            let message = format!("there are already {} traces", limits::TRACERS);
            return Err(refuse(
                refusal::Reason::Failed,
                &message,
                Some("stop one of them"),
            ));
        }
        self.tracers.push(Tracer {
            client,
            device,
            driver,
            lost: 0,
            since: now,
            shown: 0,
        });
        self.tap_who_is_traced();
        Ok(format!("{device}: traced"))
    }

    /// Sends the copies of this turn. The shell calls it before it sends datagrams.
    pub fn send_traced(&mut self, now: Instant) {
        if self.router.tap.is_empty() {
            return;
        }
        self.forget_tracers_that_are_gone();
        let (copies, missed) = self.router.tap.take();
        let time_us = (self.events.since_epoch()).and_then(|time| time.as_micros().try_into().ok());
        for tracer in &mut self.tracers {
            for (_, count) in missed.iter().filter(|(driver, _)| *driver == tracer.driver) {
                tracer.lost += count;
                self.router
                    .counters
                    .drop_many(DropReason::TraceFrames, *count);
            }
        }
        for copied in copies {
            for tracer in self
                .tracers
                .iter_mut()
                .filter(|tracer| tracer.driver == copied.driver)
            {
                if !tracer.may_be_shown(now) {
                    tracer.lost += 1;
                    self.router.counters.drop(DropReason::TraceFrames);
                    continue;
                }
                let message = show(tracer, &copied, time_us);
                self.router
                    .tell_client(tracer.client, &message, &mut self.outbox);
            }
        }
    }

    /// Clients disappear in many ways; their traces end here.
    fn forget_tracers_that_are_gone(&mut self) {
        let before = self.tracers.len();
        let router = &self.router;
        self.tracers
            .retain(|tracer| router.knows(tracer.client) && router.route(tracer.driver).is_some());
        if self.tracers.len() < before {
            self.tap_who_is_traced();
        }
    }

    fn tap_who_is_traced(&mut self) {
        for key in self.keys() {
            let traced = self.tracers.iter().any(|tracer| tracer.driver == key);
            self.router.set_tapped(key, traced);
        }
    }
}

impl Tracer {
    fn may_be_shown(&mut self, now: Instant) -> bool {
        if now.duration_since(self.since) >= Duration::from_secs(1) {
            (self.since, self.shown) = (now, 0);
        }
        self.shown += 1;
        self.shown <= limits::TRACE_FRAMES_PER_SECOND
    }
}

fn show(tracer: &Tracer, copied: &Copied, time_us: Option<u64>) -> Vec<u8> {
    let direction = match copied.direction {
        Direction::ToDriver => traced::Direction::ToDriver,
        Direction::FromDriver => traced::Direction::FromDriver,
    };
    let cut = copied.message.len() < copied.message_bytes;
    // A driver may write headers of any length; those of the mediator are short.
    let header = &copied.header[..copied.header.len().min(limits::LIST_BYTES / 4)];
    let mut message = mediator::DriverMsg::data();
    message.set_ack(Some(SynNum(0)));
    message.traced = Some(mediator::Traced {
        device: wire_device(tracer.device),
        direction: direction.into(),
        header: header.to_vec().into(),
        message: copied.message.clone().into(),
        message_bytes: cut.then_some(copied.message_bytes as u32),
        time_us,
        lost: Some(tracer.lost),
    });
    message.encode_to_vec()
}
