//! The mediator as a device: its answers to requests. PURE.
//!
//! A client that sends a valid message here becomes *announced*: from then on the mediator may
//! send it its own messages. Old programs never do that, so they never get a datagram that the
//! original would not have sent.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use amber_proto::mediator::log_line::Level;
use amber_proto::mediator::{
    self, Counter, CounterHelp, CounterList, DriverList, DriverState, ProcessUsage, Refusal, Reply,
    Statistics, change_driver, refusal, reply, request,
};
use amber_proto::{ClientId, Device, DeviceMessage, DeviceType, MsgType, motion};
use prost::Message;
use tracing::info;

use super::clients::Gone;
use super::lists::{List, Page};
use super::unproved::TooLong;
use super::{Core, Driver, ShellTask, Ticket, absence};
use crate::address::{ClientAddress, DriverKey, PackedAddress};
use crate::config::Admin;
use crate::counters::{Count, DropReason};
use crate::limits;
use crate::router::{Client, ForMediator, Sender};
use crate::supervise::{Event, Restart, State};
use crate::text::beginning;

impl Core {
    /// A client or driver has sent a message to the mediator itself.
    pub(super) fn for_mediator(&mut self, now: Instant, said: ForMediator<'_>) {
        let message = mediator::DriverMsg::decode(said.message).ok();
        let kind = message.as_ref().and_then(DeviceMessage::kind);
        let (Some(message), Some(kind)) = (message, kind) else {
            return self.router.counters.drop(DropReason::MediatorMessage);
        };
        match (said.from, kind) {
            (from, MsgType::Ping) => {
                if !matches!(from, Sender::Driver(_)) {
                    self.announce(now, &said);
                }
                let mut pong = mediator::DriverMsg::of_kind(MsgType::Pong);
                pong.set_ack(message.syn());
                self.router
                    .reply(from, &pong.encode_to_vec(), &mut self.outbox);
            }
            (Sender::Driver(key), MsgType::Pong) => self.driver_event(now, key, Event::Pong),
            (Sender::Driver(key), MsgType::DriverDied) => {
                let why = absence::out_of_order(message.unavailable);
                self.router
                    .driver_says_dead(key, said.about, &why, &mut self.outbox);
            }
            (Sender::Client(from), MsgType::Pong) => {
                if self.router.client_answered(from, message.ack()) {
                    self.carry_out_what_waited(now, from);
                }
            }
            (from @ Sender::Client(_), MsgType::ClientDied) => {
                if let Some(id) = self.router.id_of(from) {
                    self.client_gone(now, id, Gone::SaidSo);
                }
            }
            (Sender::Client(_) | Sender::DriverAsClient(_), MsgType::Subscribe) => {
                if let Some(id) = self.announce(now, &said) {
                    self.events.subscribe(id);
                    self.forget_listeners_that_are_gone();
                    if !self.router.is_proved(said.from) {
                        self.router.ping_client(id, &mut self.outbox);
                    }
                }
            }
            (Sender::Client(_) | Sender::DriverAsClient(_), MsgType::Unsubscribe) => {
                if let Some(id) = self.announce(now, &said) {
                    self.events.unsubscribe(id);
                }
            }
            (Sender::Client(_) | Sender::DriverAsClient(_), MsgType::Data) => {
                let id = self.announce(now, &said);
                let Some(syn) = message.syn() else {
                    // The request has no number, so it cannot be answered.
                    return self.router.counters.drop(DropReason::MediatorMessage);
                };
                if !self.router.may_request(now, said.from) {
                    return;
                }
                if let (Sender::Client(from), false) = (said.from, self.router.is_proved(said.from))
                {
                    return self.ask_for_proof(from, id, said.message);
                }
                let ticket = Ticket {
                    to: said.from,
                    id,
                    syn,
                };
                let bytes = list_bytes(message.max_answer_bytes);
                let what = message.request.and_then(|request| request.what);
                if let Some(list) = self.list_for_others(now, said.from, what.as_ref(), bytes) {
                    return self.reply_with(ticket, &list);
                }
                match self.carry_out(now, ticket, what, bytes) {
                    Ok(Some(reply)) => self.reply(ticket, reply),
                    Ok(None) => {}
                    Err(refusal) => self.reply(ticket, reply::What::Refused(refusal)),
                }
            }
            (Sender::Driver(key), MsgType::Data) => {
                let trouble = message.health.as_ref().map(mediator::Health::trouble);
                match (trouble, &message.description) {
                    (Some(Ok(trouble)), _) => {
                        self.driver_health(now, key, said.about, trouble.as_deref());
                    }
                    (None, Some(description)) => {
                        self.driver_describes(key, said.about, &description.files);
                    }
                    (Some(Err(_)), _) => {
                        self.router.counters.drop(DropReason::MediatorMessage);
                    }
                    (None, None) => {
                        let message = motion::DriverMsg::decode(said.message).ok();
                        match message.and_then(|message| message.motion_report) {
                            Some(report) => self.driver_moves(now, key, said.about, &report),
                            None => self.router.counters.drop(DropReason::MediatorMessage),
                        }
                    }
                }
            }
            (Sender::Driver(_), MsgType::Subscribe | MsgType::Unsubscribe)
            | (Sender::DriverAsClient(_), MsgType::Pong)
            | (Sender::Driver(_) | Sender::DriverAsClient(_), MsgType::ClientDied)
            | (Sender::Client(_) | Sender::DriverAsClient(_), MsgType::DriverDied) => {
                self.router.counters.drop(DropReason::MediatorMessage);
            }
        }
    }

    /// Answers [`ShellTask::MeasureProcesses`].
    pub fn answer_processes(&mut self, ticket: Ticket, processes: Vec<ProcessUsage>, total: u32) {
        let list = mediator::ProcessList { processes, total };
        self.answer_with(ticket, reply::What::Processes(list));
    }

    /// Answers another [`ShellTask`].
    pub fn answer(&mut self, ticket: Ticket, outcome: Result<String, (String, Option<String>)>) {
        self.answer_outcome(
            ticket,
            outcome.map(|done| reply::What::Done(shorten(&done))),
        );
    }

    /// The same, with any reply.
    pub(super) fn answer_outcome(
        &mut self,
        ticket: Ticket,
        outcome: Result<reply::What, (String, Option<String>)>,
    ) {
        let reply = match outcome {
            Ok(reply) => reply,
            Err((message, hint)) => {
                let hint = hint.as_deref().map(shorten);
                let reason = refusal::Reason::Failed;
                reply::What::Refused(refuse(reason, &shorten(&message), hint.as_deref()))
            }
        };
        self.answer_with(ticket, reply);
    }

    pub(super) fn answer_with(&mut self, ticket: Ticket, reply: reply::What) {
        if self.router.id_of(ticket.to) == ticket.id {
            self.reply(ticket, reply);
        } else {
            self.router.counters.drop(DropReason::Unproved);
        }
    }

    /// The source address may be forged: then the answer would flood a third party, because it
    /// is longer than the request. So the mediator sends a PING, and the request waits for the
    /// PONG.
    fn ask_for_proof(&mut self, from: ClientAddress, id: Option<ClientId>, request: &[u8]) {
        match self.unproved.push(from, request) {
            Ok(dropped) => (self.router.counters).drop_many(DropReason::Unproved, dropped),
            Err(TooLong) => return self.router.counters.drop(DropReason::Unproved),
        }
        if let Some(id) = id {
            self.router.ping_client(id, &mut self.outbox);
        }
    }

    fn carry_out_what_waited(&mut self, now: Instant, from: ClientAddress) {
        for request in self.unproved.take(from) {
            let said = ForMediator {
                from: Sender::Client(from),
                about: None,
                message: &request,
                bytes: request.len(),
            };
            self.for_mediator(now, said);
        }
    }

    /// The next client at that address has not sent the waiting request.
    pub(super) fn forget_what_waited(&mut self, from: PackedAddress) {
        let forgotten = self.unproved.forget(from);
        self.router
            .counters
            .drop_many(DropReason::Unproved, forgotten);
    }

    fn announce(&mut self, now: Instant, said: &ForMediator<'_>) -> Option<ClientId> {
        if self.client_tick.is_none() {
            self.client_tick = Some(now + limits::CLIENT_PING_INTERVAL);
            self.timers_changed = true;
        }
        self.router.announce(now, said)
    }

    fn carry_out(
        &mut self,
        now: Instant,
        ticket: Ticket,
        what: Option<request::What>,
        bytes: usize,
    ) -> Result<Option<reply::What>, Refusal> {
        let Some(what) = what else {
            let message = "this mediator does not know the request";
            return Err(refuse(refusal::Reason::BadRequest, message, None));
        };
        let page = |skip| Page { skip, bytes };
        Ok(Some(match what {
            request::What::ListDrivers(list) => self.list_drivers(now, page(list.skip())),
            request::What::DescribeDriver(device) => {
                let key = self.key_of(&device)?;
                reply::What::Driver(self.describe(now, &self.drivers[&key], Detail::Full))
            }
            request::What::GetDescription(device) => {
                let key = self.key_of(&device)?;
                reply::What::Description(self.description_of(key, &device)?)
            }
            request::What::ListClients(list) => self.list_clients(now, page(list.skip())),
            request::What::ListProcesses(list) => {
                let (processes, total) = self.list_processes(page(list.skip()));
                let measure = ShellTask::MeasureProcesses(ticket, processes, total);
                self.tasks.push_back(measure);
                return Ok(None);
            }
            request::What::GetStatistics(_) => {
                let mut statistics = self.statistics(now, ticket.to);
                if statistics.encoded_len() > bytes {
                    statistics.counters.clear();
                    statistics.dropped.clear();
                }
                reply::What::Statistics(statistics)
            }
            request::What::ReadLog(wanted) => reply::What::Log(self.read_log(now, &wanted, bytes)?),
            request::What::ExplainCounters(_) => {
                let counters = page_of(explain_counters(), page(0));
                reply::What::Counters(CounterList { counters })
            }
            request::What::ChangeDriver(change) => {
                self.check_admin(ticket.to)?;
                let key = self.key_of(&change.device)?;
                let device = self.drivers[&key].config.devices[0];
                let (event, done) = match change.action() {
                    change_driver::Action::Start => (Event::Start, "starting"),
                    change_driver::Action::Stop => (Event::Stop, "stopping"),
                    change_driver::Action::Restart => (Event::Restart, "restarting"),
                };
                if event != Event::Stop {
                    self.check_not_stopping()?;
                }
                info!(driver = %device, "{done}, as requested");
                self.log_about(now, key, Level::Info, &format!("{done}, as requested"));
                self.driver_event(now, key, event);
                reply::What::Done(format!("{device}: {done}"))
            }
            request::What::Reload(_) => {
                self.check_admin(ticket.to)?;
                self.check_not_stopping()?;
                self.tasks.push_back(ShellTask::Reload(ticket));
                return Ok(None);
            }
            request::What::Trace(wanted) => {
                self.want_trace(ticket, wanted)?;
                return Ok(None);
            }
            request::What::OpenFeed(wanted) => {
                self.want_feed(ticket, &wanted)?;
                return Ok(None);
            }
            request::What::SetLogLevel(level) => {
                self.check_admin(ticket.to)?;
                self.tasks
                    .push_back(ShellTask::SetLogLevel(ticket, level.filter));
                return Ok(None);
            }
        }))
    }

    fn description_of(
        &self,
        key: DriverKey,
        device: &mediator::Device,
    ) -> Result<mediator::Description, Refusal> {
        let driver = &self.drivers[&key];
        let mut known = driver.config.devices.iter().zip(&driver.descriptions);
        let of_device = known.find(|(known, _)| wire_device(**known) == *device);
        match of_device.and_then(|(_, files)| files.clone()) {
            Some(files) => Ok(mediator::Description { files }),
            None => {
                let hint = "a driver sends it when it starts, if its SDK knows the .proto file";
                let message = "the driver of this device has sent no description";
                Err(refuse(refusal::Reason::Failed, message, Some(hint)))
            }
        }
    }

    fn list_drivers(&self, now: Instant, page: Page) -> reply::What {
        let all = self.drivers.values().filter(|driver| !driver.obsolete);
        let total = all.clone().count() as u32;
        let drivers = all.map(|driver| self.describe(now, driver, Detail::Brief));
        let drivers = page_of(drivers, page);
        reply::What::Drivers(DriverList { drivers, total })
    }

    /// The processes of one answer, not yet measured, and the number of all.
    fn list_processes(&self, page: Page) -> (Vec<ProcessUsage>, u32) {
        // The shell knows its own pid.
        let mediator = ProcessUsage::default();
        let drivers = self.drivers.values().filter_map(|driver| {
            Some(ProcessUsage {
                pid: driver.supervisor.pid()?,
                device: driver.config.devices.first().copied().map(wire_device),
                ..ProcessUsage::default()
            })
        });
        let mut all: Vec<_> = [mediator].into_iter().chain(drivers).collect();
        let total = all.len() as u32;
        all.drain(..all.len().min(page.skip as usize));
        let fit = (page.bytes / limits::PROCESS_BYTES).max(1);
        all.truncate(fit.min(limits::PROCESSES_PER_ANSWER));
        (all, total)
    }

    fn list_clients(&self, now: Instant, page: Page) -> reply::What {
        let total = self.router.clients.len() as u32;
        let all = self.router.clients.in_order().into_iter();
        let clients = all.map(|client| self.client_info(now, client));
        let clients = page_of(clients, page);
        reply::What::Clients(mediator::ClientList { clients, total })
    }

    /// A list for a program on another machine: made once for all of them, and encoded.
    fn list_for_others(
        &mut self,
        now: Instant,
        from: Sender,
        what: Option<&request::What>,
        bytes: usize,
    ) -> Option<Arc<[u8]>> {
        let page = |skip| Page { skip, bytes };
        let list = match (from, what?) {
            (Sender::Client(client), _) if is_loopback(client.address.ip()) => return None,
            (Sender::Client(_), request::What::ListDrivers(list)) => {
                List::Drivers(page(list.skip()))
            }
            (Sender::Client(_), request::What::ListClients(list)) => {
                List::Clients(page(list.skip()))
            }
            _ => return None,
        };
        if let Some(kept) = self.lists.find(now, list) {
            return Some(kept);
        }
        let what = match list {
            List::Drivers(page) => self.list_drivers(now, page),
            List::Clients(page) => self.list_clients(now, page),
        };
        Some(self.lists.keep(now, list, encode_reply(what)))
    }

    fn reply(&mut self, ticket: Ticket, what: reply::What) {
        self.reply_with(ticket, &encode_reply(what));
    }

    /// Sends an encoded reply.
    fn reply_with(&mut self, ticket: Ticket, reply: &[u8]) {
        let mut message = mediator::DriverMsg::data();
        message.set_ack(Some(ticket.syn));
        // Fields are in the order of their numbers, and the reply is last.
        let message = [&message.encode_to_vec(), reply].concat();
        self.router.reply(ticket.to, &message, &mut self.outbox);
    }

    fn check_admin(&self, from: Sender) -> Result<(), Refusal> {
        let local = match from {
            Sender::Client(client) => is_loopback(client.address.ip()),
            Sender::Driver(_) | Sender::DriverAsClient(_) => true,
        };
        if local || self.admin == Admin::Anyone {
            return Ok(());
        }
        Err(refuse(
            refusal::Reason::NotAllowed,
            "changes are allowed only from the mediator's machine",
            Some("run the command there, or set `admin = \"anyone\"` under [mediator]"),
        ))
    }

    fn check_not_stopping(&self) -> Result<(), Refusal> {
        if !self.stopping {
            return Ok(());
        }
        let message = "the mediator is shutting down";
        Err(refuse(refusal::Reason::Failed, message, None))
    }

    pub(super) fn key_of(&self, device: &mediator::Device) -> Result<DriverKey, Refusal> {
        let device = device_of(device);
        self.router
            .driver_of(device)
            .filter(|key| self.drivers.contains_key(key))
            .ok_or_else(|| {
                let message = format!("no driver serves {device}");
                let hint = Some("`amber devices` lists the devices");
                refuse(refusal::Reason::NoSuchDevice, &message, hint)
            })
    }

    fn describe(&self, now: Instant, driver: &Driver, detail: Detail) -> mediator::Driver {
        let supervisor = &driver.supervisor;
        let (state, next_start, reason) = match supervisor.state() {
            State::Down => (DriverState::Down, None, None),
            State::Starting => (DriverState::Starting, None, None),
            State::Up => (DriverState::Up, None, None),
            State::Stopping { .. } => (DriverState::Stopping, None, None),
            State::Backoff { until, reason } => (DriverState::Backoff, Some(*until), Some(reason)),
            State::Failed { reason } => (DriverState::Failed, None, Some(reason)),
        };
        let key = self.router.driver_of(driver.config.devices[0]);
        let counters = key.and_then(|key| self.router.route(key)).map(|route| {
            let (traffic, tally) = (&route.traffic, route.queue.tally());
            mediator::DriverCounters {
                frames_in: Some(tally.queued),
                bytes_in: Some(traffic.bytes_in),
                frames_out: Some(traffic.frames_out),
                bytes_out: Some(traffic.bytes_out),
                dropped_full: Some(tally.dropped_full),
                dropped_down: Some(traffic.dropped_down),
                queued: Some(route.queue.len() as u64),
                stderr_lines: Some(driver.words.lines()),
                stderr_dropped: Some(driver.words.dropped()),
                frames_written: Some(tally.written),
                dropped_client_gone: Some(tally.dropped_client_gone),
                dropped_ended: Some(tally.dropped_driver_gone),
                dropped_stopping: Some(traffic.dropped_stopping),
            }
        });
        let hint = match (supervisor.state(), &driver.hint) {
            (State::Failed { .. }, hint) => {
                let device = driver.config.devices[0];
                let check = hint
                    .as_ref()
                    .map_or(String::new(), |hint| format!("{hint}; "));
                Some(format!("{check}when that is fixed: `amber start {device}`"))
            }
            (_, hint) => hint.clone(),
        };
        let devices_and_health = driver.config.devices.iter().zip(&driver.health);
        let troubles = devices_and_health.filter_map(|(device, health)| {
            health.trouble().map(|trouble| mediator::Trouble {
                device: wire_device(*device),
                text: trouble.text.clone(),
                since_ms: millis(now.duration_since(trouble.since)),
            })
        });
        let mut description = mediator::Driver {
            troubles: troubles.take(limits::TROUBLES).collect(),
            motions: super::motion::list(driver),
            devices: driver
                .config
                .devices
                .iter()
                .map(|device| wire_device(*device))
                .collect(),
            state: state.into(),
            pid: supervisor.pid(),
            state_ms: Some(millis(now.duration_since(supervisor.since()))),
            restarts: Some(supervisor.restarts()),
            last_exit: supervisor.last_exit().map(shorten),
            next_start_ms: next_start.map(|at| millis(at.saturating_duration_since(now))),
            reason: reason.map(|reason| shorten(reason)),
            hint: hint.map(|hint| shorten(&hint)),
            counters,
            answers_ping: Some(supervisor.answers_ping()),
            last_exit_hint: driver.last_exit_hint.as_deref().map(shorten),
            ..mediator::Driver::default()
        };
        if detail == Detail::Full {
            let mut bytes = 0;
            description.command = (driver.config.command.iter())
                .map(|word| shorten(word))
                .take_while(|word| {
                    bytes += word.len() + 2;
                    bytes <= limits::COMMAND_BYTES
                })
                .collect();
            let device = driver.config.devices[0];
            description.last_words = (self.log.last_words(device, limits::LAST_WORDS))
                .map(shorten)
                .collect();
            description.restart_policy = Some(
                match driver.config.policy.restart {
                    Restart::Always => "always",
                    Restart::OnFailure => "on-failure",
                    Restart::Never => "never",
                }
                .into(),
            );
        }
        description
    }

    fn client_info(&self, now: Instant, client: &Client) -> mediator::ClientInfo {
        mediator::ClientInfo {
            id: client.id.0,
            address: client.address().to_string(),
            announced: Some(client.announced),
            silent_ms: Some(millis(self.router.clients.silent_for(now, client))),
            frames_received: Some(client.received),
            frames_sent: Some(client.sent.count()),
            devices: client
                .uses
                .iter()
                .map(|used| wire_device(used.device))
                .collect(),
            proved: Some(client.is_proved()),
        }
    }

    fn statistics(&self, now: Instant, asker: Sender) -> Statistics {
        let counters = self.router.totals();
        let counter = |name: &str, value| Counter {
            name: name.into(),
            value,
        };
        let fullness = self.router.clients.fullness();
        let fullest = fullness.fullest_host;
        Statistics {
            version: Some(env!("CARGO_PKG_VERSION").into()),
            uptime_ms: Some(millis(now.duration_since(self.started))),
            listening: self.listening.clone(),
            clients: Some(self.router.clients.len() as u32),
            drivers: Some(self.drivers.len() as u32),
            counters: (Count::ALL.iter())
                .map(|count| counter(count.name(), counters.counted(*count)))
                .collect(),
            dropped: (DropReason::ALL.iter())
                .map(|drop| counter(drop.name(), counters.dropped(*drop)))
                .collect(),
            client_id: self.router.id_of(asker).map(|id| id.0),
            most_clients: Some(wire_count(fullness.limit)),
            most_clients_per_host: Some(wire_count(fullness.per_host)),
            fullest_host: fullest.map(|(address, _)| name_of_host(address.ip())),
            fullest_host_clients: fullest.map(|(_, clients)| wire_count(clients)),
        }
    }
}

/// A number that may be a setting, and so of any size.
fn wire_count(count: usize) -> u32 {
    count.try_into().unwrap_or(u32::MAX)
}

/// What counts as one host: see [`Host`](crate::address::Host).
fn name_of_host(ip: IpAddr) -> String {
    match ip {
        ip if is_loopback(ip) => "this machine".into(),
        IpAddr::V4(_) => ip.to_string(),
        IpAddr::V6(v6) => {
            let network = std::net::Ipv6Addr::from_bits(v6.to_bits() >> 64 << 64);
            format!("{network}/64")
        }
    }
}

/// The space for a list in an answer that may have so many bytes.
fn list_bytes(max_answer_bytes: Option<u32>) -> usize {
    max_answer_bytes.map_or(limits::LIST_BYTES, |bytes| {
        let rest = (bytes as usize).saturating_sub(limits::AROUND_LIST_BYTES);
        rest.min(limits::LIST_BYTES)
    })
}

fn explain_counters() -> impl Iterator<Item = CounterHelp> {
    let counts = Count::ALL.iter().map(|it| (it.name(), it.help()));
    let drops = DropReason::ALL.iter().map(|it| (it.name(), it.help()));
    let help = |(name, help): (&str, &str)| CounterHelp {
        name: name.into(),
        help: help.into(),
    };
    counts.chain(drops).map(help)
}

#[derive(Clone, Copy, PartialEq)]
enum Detail {
    Brief,
    Full,
}

pub(super) fn wire_device(device: Device) -> mediator::Device {
    mediator::Device {
        r#type: device.device_type.0,
        id: device.id.0,
    }
}

pub(super) fn device_of(device: &mediator::Device) -> Device {
    Device::new(DeviceType(device.r#type), device.id)
}

/// As many entries as fit into one answer, and at least one.
fn page_of<T: Message>(all: impl Iterator<Item = T>, page: Page) -> Vec<T> {
    let mut bytes = 0;
    all.skip(page.skip as usize)
        .take_while(|item| {
            let first = bytes == 0;
            bytes += item.encoded_len() + limits::AROUND_ENTRY_BYTES;
            first || bytes <= page.bytes
        })
        .collect()
}

/// The encoded field of a message that contains the reply.
fn encode_reply(what: reply::What) -> Vec<u8> {
    let message = mediator::DriverMsg {
        reply: Some(Reply { what: Some(what) }),
        ..mediator::DriverMsg::default()
    };
    message.encode_to_vec()
}

pub(super) fn refuse(reason: refusal::Reason, message: &str, hint: Option<&str>) -> Refusal {
    let (message, hint) = (message.to_owned(), hint.map(str::to_owned));
    Refusal {
        reason: reason.into(),
        message,
        hint,
    }
}

pub(super) fn is_loopback(ip: IpAddr) -> bool {
    ip.is_loopback()
}

pub(super) fn millis(duration: Duration) -> u64 {
    duration.as_millis().try_into().unwrap_or(u64::MAX)
}

/// Shortens text, so that answers fit into a datagram.
pub(super) fn shorten(text: &str) -> String {
    beginning(text, limits::TEXT_BYTES).to_owned()
}
