//! Who looks on at the frames of a driver, and what they are shown. PURE.

use std::time::{Duration, Instant, SystemTime};

use amber_proto::mediator::{self, Refusal, refusal, traced};
use amber_proto::{ClientId, Device, DeviceMessage, DeviceType, SynNum};
use prost::Message;

use super::control::{refuse, wire_device};
use super::{Core, Ticket};
use crate::counters::Drop;
use crate::limits;
use crate::router::{Copied, Direction, DriverKey, Sender};

/// Somebody who looks on at one driver.
#[derive(Clone, Debug)]
pub(super) struct Tracer {
    client: ClientId,
    device: Device,
    driver: DriverKey,
    lost: u64,
    /// The second that runs, and what was shown in it.
    since: Instant,
    shown: u32,
}

impl Core {
    /// Begins or ends a trace.
    pub(super) fn trace(
        &mut self,
        now: Instant,
        ticket: Ticket,
        wanted: &mediator::Trace,
    ) -> Result<String, Refusal> {
        let client = match ticket.to {
            Sender::Client(client) if super::control::is_loopback(client.address.ip()) => {
                self.router.id_of(ticket.to)
            }
            // What a driver is shown goes through its pipe, and would be traced.
            _ => None,
        };
        let Some(client) = client else {
            return Err(refuse(
                refusal::Reason::NotAllowed,
                "frames are shown to clients on the mediator's own machine only",
                Some("run `amber trace` there"),
            ));
        };
        let driver = self.key_of(&wanted.device)?;
        let device = Device::new(DeviceType(wanted.device.r#type), wanted.device.id);
        self.forget_tracers_that_are_gone();
        self.tracers
            .retain(|tracer| (tracer.client, tracer.device) != (client, device));
        if wanted.off() {
            self.tap_who_is_traced();
            return Ok(format!("{device}: not traced any more"));
        }
        if self.tracers.len() == limits::TRACERS {
            let message = format!("{} traces run already", limits::TRACERS);
            return Err(refuse(
                refusal::Reason::Failed,
                &message,
                Some("end one of them"),
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

    /// Shows what was copied in this turn. The shell calls it before it sends.
    pub fn send_traced(&mut self, now: Instant) {
        if self.router.tap.is_empty() {
            return;
        }
        self.forget_tracers_that_are_gone();
        let (copies, missed) = self.router.tap.take();
        let since_epoch = (self.wall_clock)().duration_since(SystemTime::UNIX_EPOCH);
        let time_us = since_epoch
            .ok()
            .and_then(|time| time.as_micros().try_into().ok());
        for tracer in &mut self.tracers {
            for (_, count) in missed.iter().filter(|(driver, _)| *driver == tracer.driver) {
                tracer.lost += count;
                self.router.counters.drop_many(Drop::TraceFrames, *count);
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
                    self.router.counters.drop(Drop::TraceFrames);
                    continue;
                }
                let message = show(tracer, &copied, time_us);
                self.router
                    .tell_client(tracer.client, &message, &mut self.outbox);
            }
        }
    }

    /// Clients come and go by many ways; who is not known any more looks no more.
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
    // A header is as long as a driver likes; ours are short.
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
