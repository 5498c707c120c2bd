//! The mediator's own messages. PURE.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use amber_core::counters::DropReason;
use amber_proto::limits::OLD_CLIENT_DATAGRAM;
use amber_proto::mediator::{reply, request};
use amber_proto::{Device, DeviceMessage, Frame, Header, MsgType, SynNum};

use super::{Cause, Changes, Model, Owner, Person};
use crate::invariant::{Check, Invariant, broken, holds};
use crate::messages;

impl Model {
    pub(super) fn check_voice(
        &mut self,
        changes: &Changes<'_>,
        voice: &[&(SocketAddr, Vec<u8>)],
    ) -> Check {
        let expected = self.expected_deaths(changes);
        let (mut deaths, mut refusals, mut pongs) = (BTreeSet::new(), 0, 0);
        for (to, bytes) in voice {
            self.check_listener(changes, *to, bytes)?;
            let Ok(frame) = Frame::from_datagram(bytes) else {
                return Err(broken(
                    Invariant::FramesWhole,
                    format!("{to} gets an invalid frame"),
                ));
            };
            let device = Header::parse(frame.header)
                .ok()
                .and_then(|header| header.device());
            let (Some(device), Some(said)) = (device, messages::envelope(frame.message)) else {
                return Err(broken(
                    Invariant::RepliesReachTheNamed,
                    format!("{to} gets an invalid message"),
                ));
            };
            let fits = device != Device::MEDIATOR || bytes.len() <= OLD_CLIENT_DATAGRAM;
            holds(Invariant::BoundsHold, fits, || {
                format!("the mediator sends {} bytes to {to}", bytes.len())
            })?;
            match (said.kind(), device) {
                (Some(MsgType::Ping), Device::MEDIATOR) => {
                    self.cookies.extend(said.syn().map(|syn| (*to, syn)));
                }
                (Some(MsgType::Pong), Device::MEDIATOR) => pongs += 1,
                (Some(MsgType::Data), Device::MEDIATOR) => {
                    check_reply(changes, *to, &said.reply.and_then(|reply| reply.what))?;
                }
                (Some(MsgType::DriverDied), device) => {
                    if is_refusal(changes, *to, device, said.ack()) {
                        refusals += 1;
                    } else {
                        self.death(changes, *to, device)?;
                        deaths.insert((*to, device));
                    }
                }
                _ => {
                    let what = format!("{to} gets a message from {device} that was not sent to it");
                    return Err(broken(Invariant::RepliesReachTheNamed, what));
                }
            }
        }
        let missing = expected.difference(&deaths).next();
        holds(Invariant::DriverDeathTold, missing.is_none(), || {
            let core = &changes.call.core.router().clients;
            let to = missing.map(|it| it.0);
            format!(
                "{missing:?} is not notified: {:?}",
                core.in_order().iter().find(|it| Some(it.address()) == to)
            )
        })?;
        self.check_refusal(changes, refusals)?;
        self.check_pong(changes, pongs)
    }

    /// Checks that the mediator may send messages to this address.
    fn check_listener(&mut self, changes: &Changes<'_>, to: SocketAddr, bytes: &[u8]) -> Check {
        // A request from an unverified address waits for the PONG.
        let pong = changes.asked.is_some_and(|asked| {
            let said = messages::envelope(asked.message).and_then(|said| said.kind());
            (asked.from, asked.device, said) == (to, None, Some(MsgType::Pong))
        });
        if let Some(person) = self.people.get_mut(&to).filter(|it| pong && it.has_asked) {
            person.announced = true;
        }
        let person = self.people.get(&to).or(changes.gone.get(&to));
        let announced = person.is_some_and(|person| person.announced);
        holds(Invariant::OldClientsSeeDriversOnly, announced, || {
            format!("{to} gets a message without having contacted the mediator: {bytes:02x?}")
        })?;
        if person.is_some_and(|person| person.proved) {
            return Ok(());
        }
        let credit = self.credit.entry(to).or_default();
        credit.went += bytes.len() as u64;
        holds(
            Invariant::NoAmplification,
            credit.went <= credit.came,
            || format!("{to} is unverified: {credit:?}"),
        )
    }

    /// A client is notified that a device is unavailable.
    fn death(&mut self, changes: &Changes<'_>, to: SocketAddr, device: Device) -> Check {
        let dead = changes.down.iter().chain(&changes.said_dead);
        let dead = dead.filter_map(|pid| self.lives.get(pid));
        let mut caused = dead.into_iter().any(|life| life.devices.contains(&device));
        let person = self.people.get_mut(&to);
        let mut news = person
            .is_some_and(|person| person.used.contains(&device) && person.told.insert(device));
        if let Cause::Reload(config) = changes.call.cause
            && !config.access.allows(to, device)
        {
            // A lack of access differs from unavailability.
            let used = self
                .people
                .get(&to)
                .is_some_and(|it| it.used.contains(&device));
            (caused, news) = (true, used);
        }
        holds(Invariant::DriverDeathOnce, caused && news, || {
            format!("{to} is notified of the death of {device}: caused {caused}, new {news}")
        })
    }

    /// The deaths of which clients must be notified.
    fn expected_deaths(&self, changes: &Changes<'_>) -> BTreeSet<(SocketAddr, Device)> {
        let mut expected = BTreeSet::new();
        let may_hear = |address: &SocketAddr| match changes.call.cause {
            Cause::Reload(config) => config.access.allows(*address, Device::MEDIATOR),
            _ => true,
        };
        let dead = changes.down.iter().chain(&changes.said_dead);
        for life in dead.filter_map(|pid| self.lives.get(pid)) {
            for ((device, id), owner) in &life.known {
                let Some(Owner::Client(address)) = owner else {
                    continue;
                };
                let waits = |person: &&Person| {
                    person.id == *id
                        && person.announced
                        && person.proved
                        && person.used.contains(device)
                        && !person.told.contains(device)
                };
                if may_hear(address) && self.people.get(address).filter(waits).is_some() {
                    expected.insert((*address, *device));
                }
            }
        }
        expected
    }

    fn check_refusal(&self, changes: &Changes<'_>, refusals: u64) -> Check {
        let Some(asked) = changes.asked.filter(|asked| asked.device.is_some()) else {
            return Ok(());
        };
        let person = self.people.get(&asked.from);
        let may_hear = person.is_some_and(|person| person.announced);
        let must_hear = may_hear && person.is_some_and(|person| person.proved);
        let limited =
            changes.dropped(DropReason::AnswerRateLimited) + changes.dropped(DropReason::Unproved);
        let refused = changes.refused() && !changes.ignored();
        let told = refusals + limited;
        let right = match refused {
            true if must_hear => told == 1,
            true => told <= 1,
            false => refusals == 0,
        };
        holds(Invariant::RefusalTold, right, || {
            format!(
                "{} sent a request to {:?}: {refusals} replies, {limited} suppressed",
                asked.from, asked.device
            )
        })
    }

    fn check_pong(&self, changes: &Changes<'_>, pongs: u64) -> Check {
        let asked = changes
            .asked
            .filter(|asked| asked.device.is_none() && !changes.ignored());
        let ping = asked.filter(|asked| {
            let said = messages::envelope(asked.message).and_then(|said| said.kind());
            said == Some(MsgType::Ping) && changes.dropped(DropReason::AccessDenied) == 0
        });
        let Some(ping) = ping else {
            return holds(Invariant::PingAnswered, pongs == 0, || {
                "a PONG without a PING".into()
            });
        };
        let proved = self
            .people
            .get(&ping.from)
            .is_some_and(|person| person.proved);
        holds(
            Invariant::PingAnswered,
            pongs == 1 || (!proved && pongs == 0),
            || format!("{} sent a PING and got {pongs} PONGs", ping.from),
        )
    }
}

/// Whether this is the reply to the request of this call.
fn is_refusal(changes: &Changes<'_>, to: SocketAddr, device: Device, ack: Option<SynNum>) -> bool {
    changes.asked.is_some_and(|asked| {
        let syn = messages::envelope(asked.message).and_then(|said| said.syn());
        changes.refused() && (asked.from, asked.device, syn) == (to, Some(device), ack)
    })
}

/// Checks that only local programs make changes.
fn check_reply(changes: &Changes<'_>, to: SocketAddr, what: &Option<reply::What>) -> Check {
    let Some(asked) = changes.asked.filter(|asked| asked.from == to) else {
        return Ok(());
    };
    let request = messages::envelope(asked.message).and_then(|said| said.request?.what);
    let changing = matches!(
        request,
        Some(request::What::ChangeDriver(_) | request::What::Reload(_) | request::What::Trace(_))
    );
    let done = matches!(what, Some(reply::What::Done(_)));
    let allowed = to.ip().is_loopback() || !(changing && done);
    holds(Invariant::AccessHolds, allowed, || {
        format!("{to} makes a change: {request:?}")
    })
}
