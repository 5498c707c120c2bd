//! All faults stop, and everything must work again. PURE.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use amber_core::Core;
use amber_proto::mediator::{self, DriverState, change_driver, reply, request};
use amber_proto::{Device, DeviceMessage, SynNum};
use prost::Message;

use super::{Event, World};
use crate::clients::Client;
use crate::invariant::{Check, Invariant, broken, holds};
use crate::messages;
use crate::process::Process;

/// A client on the mediator's machine, whose messages are delivered directly.
const INSPECTOR: ([u8; 4], u16) = ([127, 0, 0, 1], 9);

/// How often the end waits briefly for frames that were just written.
const LATE: u32 = 50;

/// The maximum interval between publications of a program.
const FRESH: Duration = Duration::from_secs(3);

impl World {
    pub(super) fn calm_down(&mut self) -> Check {
        if self.core.as_ref().is_none_or(Core::is_stopping) {
            // The network recovers within this time.
            self.agenda.plan(Duration::from_secs(1), Event::Calm);
            return Ok(());
        }
        self.say(|| "all faults stop".into());
        self.calm = true;
        self.outage = false;
        self.spawns_fail = false;
        self.weather.calm();
        self.reloaded(self.generation, None)?;
        let now = self.agenda.now();
        let all: Vec<u32> = self.processes.keys().copied().collect();
        for pid in all {
            let Some(process) = self.processes.get_mut(&pid) else {
                continue;
            };
            // A driver that never answered a PING cannot be recognized as hanging.
            if !process.has_ponged && (!process.reads(now) || process.stdin.is_none()) {
                self.process_dies(pid, 1);
            }
        }
        self.last_troubles(now);
        let devices: Vec<Device> = (self.config.drivers.iter())
            .map(|driver| driver.devices[0])
            .collect();
        for device in devices {
            let change = mediator::ChangeDriver {
                device: wire(device),
                action: change_driver::Action::Start.into(),
            };
            self.inspect(request::What::ChangeDriver(change))?;
        }
        Ok(())
    }

    /// One driver that answers PINGs hangs, and one client that answers PINGs ends without a
    /// goodbye: the mediator must notice both.
    fn last_troubles(&mut self, now: Instant) {
        let answers = |process: &&mut Process| process.has_ponged && !process.ended;
        if let Some(process) = self.processes.values_mut().find(answers) {
            process.vices.hangs = Some(now);
            self.summary.count("drivers that hang at the end");
        }
        let there = self.model.who_answered();
        let lost = there.into_iter().find(|at| self.clients.contains_key(at));
        if let Some(at) = lost {
            self.lost = Some(at);
            self.client_leaves(at);
            self.summary.count("clients that are lost at the end");
        }
    }

    /// Sends the mediator a request.
    fn inspect(&mut self, what: request::What) -> Check {
        let mut message = mediator::DriverMsg::data();
        message.set_syn(Some(SynNum(1)));
        message.request = Some(mediator::Request { what: Some(what) });
        let asked = messages::frame(Some(Device::MEDIATOR), &message.encode_to_vec());
        self.datagram(INSPECTOR.into(), &asked)
    }

    pub(super) fn end(&mut self) -> Check {
        let now = self.agenda.now();
        if !self.calm {
            self.agenda.plan(Duration::from_secs(60), Event::End);
            return Ok(());
        }
        if self.waits(now).is_some() && self.late < LATE {
            // Something was just written.
            self.late += 1;
            self.agenda.plan(Duration::from_millis(20), Event::End);
            return Ok(());
        }
        self.check_clients(now)?;
        self.check_drivers(now)?;
        self.check_subscriptions(now)?;
        self.check_unsubscribed(now)?;
        self.ended = true;
        if let Some(core) = &self.core {
            self.summary.add(&core.router().totals());
        }
        let all: Vec<SocketAddr> = self.clients.keys().copied().collect();
        for at in all {
            self.client_leaves(at);
        }
        Ok(())
    }

    /// Checks that silent clients that had answered PINGs are forgotten.
    fn check_clients(&mut self, now: Instant) -> Check {
        for (_, client) in self.clients.values() {
            client.check(now)?;
        }
        let ghost = self
            .model
            .who_answered()
            .find(|at| !self.clients.contains_key(at));
        holds(Invariant::GoodbyeForgets, ghost.is_none(), || {
            format!("{ghost:?} has been silent for a long time, but is still known")
        })
    }

    fn check_drivers(&mut self, now: Instant) -> Check {
        for process in self.processes.values() {
            let hung = process.has_ponged && process.hangs(now) && !process.ended;
            holds(Invariant::HungDriversEnd, !hung, || {
                format!(
                    "process {} answered PINGs and hangs, but is not ended",
                    process.pid
                )
            })?;
        }
        let waits = self.waits(now);
        holds(Invariant::QueuesEmpty, waits.is_none(), || {
            let process = waits.and_then(|pid| self.processes.get(&pid));
            let core = self.core.as_ref();
            let route = process.and_then(|process| core?.router().route(process.key));
            let queue = route.map(|route| (route.queue.len(), route.queue.is_blocked()));
            format!("process {waits:?} reads, but frames are queued for it: {queue:?}")
        })?;
        for (pid, process) in &self.processes {
            let queue = self
                .core
                .as_ref()
                .and_then(|core| core.router().route(process.key));
            let all = queue.is_some_and(|route| route.queue.is_empty());
            if all && process.has_read_all() {
                self.model.has_read_all(*pid)?;
            }
        }
        self.check_states()
    }

    /// A process that reads and has frames queued.
    fn waits(&self, now: Instant) -> Option<u32> {
        let waits = |process: &&Process| {
            let core = self.core.as_ref();
            let route = core.and_then(|core| core.router().route(process.key));
            let empty = route.is_none_or(|route| route.queue.is_empty());
            !empty && process.reads(now) && !process.vices.slow
        };
        self.processes
            .values()
            .find(waits)
            .map(|process| process.pid)
    }

    /// Checks that every wanted driver is up or given up.
    fn check_states(&mut self) -> Check {
        let now = self.agenda.now();
        let Some(core) = &mut self.core else {
            return Err(broken(Invariant::DriversSettle, "there is no mediator"));
        };
        // Not sent, but inspected directly.
        let mut message = mediator::DriverMsg::data();
        message.set_syn(Some(SynNum(1)));
        let what = request::What::ListDrivers(mediator::ListDrivers::default());
        message.request = Some(mediator::Request { what: Some(what) });
        let asked = messages::frame(Some(Device::MEDIATOR), &message.encode_to_vec());
        let from = amber_core::address::ClientAddress {
            socket: 0,
            address: INSPECTOR.into(),
        };
        core.datagram(now, from, &asked);
        let answers: Vec<mediator::DriverMsg> = core.transmit(|outbox, _| {
            (outbox.datagrams())
                .filter(|(to, _)| *to == from)
                .filter_map(|(_, bytes)| {
                    let frame = amber_proto::Frame::from_datagram(&bytes).ok()?;
                    messages::envelope(frame.message)
                })
                .collect()
        });
        let lists = answers.into_iter().filter_map(|answer| answer.reply?.what);
        let drivers: Vec<_> = lists
            .filter_map(|what| match what {
                reply::What::Drivers(list) => Some(list.drivers),
                _ => None,
            })
            .flatten()
            .collect();
        holds(
            Invariant::DriversSettle,
            drivers.len() == self.config.drivers.len(),
            || {
                format!(
                    "{} drivers are listed, {} configured",
                    drivers.len(),
                    self.config.drivers.len()
                )
            },
        )?;
        for driver in drivers {
            let settled = match driver.state() {
                DriverState::Up => {
                    self.summary.count("drivers that are up at the end");
                    true
                }
                // It ended normally and must not be restarted.
                DriverState::Failed | DriverState::Down => {
                    self.summary.count("drivers that are given up at the end");
                    true
                }
                DriverState::Starting | DriverState::Stopping | DriverState::Backoff => false,
            };
            holds(Invariant::DriversSettle, settled, || {
                format!(
                    "{:?} is {:?}: {:?}",
                    driver.devices,
                    driver.state(),
                    driver.reason
                )
            })?;
        }
        Ok(())
    }

    /// Checks that clients that unsubscribed get nothing, even if their last message was lost,
    /// because they repeat it.
    fn check_unsubscribed(&mut self, now: Instant) -> Check {
        if self.crowded {
            return Ok(());
        }
        let mut silent = 0;
        for (at, (_, client)) in &self.clients {
            let Client::Sdk(sdk) = client else { continue };
            for (device, (since, last)) in &sdk.left {
                if *since + 2 * FRESH > now || self.reads_and_speaks(now, *device).is_none() {
                    continue;
                }
                let flows = last.is_some_and(|last| now - last < FRESH / 2);
                holds(Invariant::LeftIsSilent, !flows, || {
                    format!(
                        "{at} unsubscribed from {device} {:?} ago, but still gets data",
                        now - *since
                    )
                })?;
                silent += 1;
            }
        }
        let what = "subscriptions that ended and are silent at the end";
        self.summary.count_many(what, silent);
        Ok(())
    }

    /// Whether the driver of a device reads and publishes.
    fn reads_and_speaks(&self, now: Instant, device: Device) -> Option<()> {
        let key = self.core.as_ref()?.router().driver_of(device)?;
        let process = self.processes.get(self.children.get(&key)?)?;
        let works = !process.ended && process.reads(now) && !process.ignored;
        let well = !process.stdout_closed && process.stdin.is_some() && !process.vices.slow;
        (works && well).then_some(())
    }

    /// Checks that subscribers of running devices get data.
    fn check_subscriptions(&mut self, now: Instant) -> Check {
        if self.crowded {
            // The clients evict each other.
            return Ok(());
        }
        let mut flowing = 0;
        for (at, (_, client)) in &self.clients {
            let Client::Sdk(sdk) = client else { continue };
            for listener in sdk.listeners() {
                if self.reads_and_speaks(now, listener.device).is_none() {
                    continue;
                }
                let fresh = listener.data.is_some_and(|data| now - data < FRESH);
                holds(Invariant::SubscriptionsFlow, fresh, || {
                    format!("{at} is subscribed, but gets nothing: {listener:?}")
                })?;
                flowing += 1;
            }
        }
        self.summary
            .count_many("subscriptions that get data at the end", flowing);
        Ok(())
    }
}

fn wire(device: Device) -> mediator::Device {
    mediator::Device {
        r#type: device.device_type.0,
        id: device.id.0,
    }
}
