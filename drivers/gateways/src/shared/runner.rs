//! Runs a [`Machine`]: the loop between sockets, Amber and the clock. IO.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime};

use amber_driver::devices::gateway::{self, GatewayLink};
use amber_driver::{Devices, now};
use amber_proto::gateway::{GatewayStatus, Peer};
use amber_proto::{Device, DeviceType};
use amber_robot::feeds::Feeds;
use amber_robot::robot::{News, TripEnd, TripNews, User, UserOrder};
use amber_robot::users::Users;
use tokio::sync::{mpsc, oneshot};

use super::alarm::Alarm;
use super::clock::Now;
use super::emulated::Screen;
use super::event::Event;
use super::gate::Gate;
use super::machine::{Datagram, Machine, Output, Outputs, Session, Socket};
use super::options::Network;
use super::sockets::{Arrival, Sockets};
use super::status::{Question, Status};
use super::tally::Kind;
use super::web::{self, Age, Web};
use crate::limits::{MAX_EVENTS, MAX_PEERS};

/// Datagrams that are handled before timers and events get their turn.
const BATCH: usize = 32;

/// Questions about the status that may wait.
const MAX_QUESTIONS: usize = 16;

/// Serves a protocol on stdin and stdout, as a driver of the mediator does, until stdin ends.
pub fn serve<M: Machine>(machine: M, network: Network) -> ExitCode {
    let (events, received) = mpsc::channel(MAX_EVENTS);
    let (questions, asked) = mpsc::channel(MAX_QUESTIONS);
    let own = own_device();
    let emulated = machine.emulated();
    let screens = emulated
        .iter()
        .map(|&(device, _)| (device, Screen::new(device, events.clone())));
    let setup = Setup {
        machine,
        network,
        received,
        asked,
        screens: screens.collect(),
    };
    let screens = setup.screens.clone();
    let status = Status::new(setup, events, questions);
    let mut devices = Devices::new().add(own, gateway::driver(status));
    for (device, kind) in emulated {
        devices = screens[&device].add_to(devices, kind);
    }
    amber_driver::serve_many(devices)
}

/// Everything that a runner needs.
pub(super) struct Setup<M> {
    pub(super) machine: M,
    network: Network,
    received: mpsc::Receiver<Event>,
    asked: mpsc::Receiver<Question>,
    screens: HashMap<Device, Screen>,
}

/// The task of a gateway.
pub(super) struct Runner<M> {
    machine: M,
    out: Outputs,
    gate: Gate,
    sockets: Sockets,
    web: Web,
    users: Users,
    feeds: Feeds,
    screens: HashMap<Device, Screen>,
    received: mpsc::Receiver<Event>,
    news: mpsc::Receiver<News>,
    asked: mpsc::Receiver<Question>,
    link: GatewayLink,
    started: Instant,
}

impl<M: Machine> Runner<M> {
    pub(super) fn new(setup: Setup<M>, link: GatewayLink) -> Self {
        let seat = setup.machine.seat();
        let (report, news) = mpsc::channel(MAX_EVENTS);
        Self {
            machine: setup.machine,
            out: Outputs::default(),
            gate: setup.network.gate(),
            sockets: Sockets::new(),
            web: Web::new(setup.network.allowed),
            users: Users::new(setup.network.mediator, seat, report.clone()),
            feeds: Feeds::new(link.devices().clone(), setup.network.devices_of, report),
            screens: setup.screens,
            received: setup.received,
            news,
            asked: setup.asked,
            link,
            started: now(),
        }
    }

    /// Runs until it is stopped.
    pub(super) async fn run(mut self, mut stopped: oneshot::Receiver<()>) {
        let alarm = Alarm::new(self.machine.is_precise());
        self.machine.start(self.now(), &mut self.out);
        loop {
            self.perform();
            self.report();
            let due = self.due();
            tokio::select! {
                biased;
                _ = &mut stopped => break,
                // A timer never waits for a flood.
                () = alarm.until(due) => {
                    self.sockets.retry(now());
                    self.web.retry(now());
                    self.machine.handle_timeout(self.now(), &mut self.out);
                }
                Some(news) = self.news.recv() => {
                    self.count_lost();
                    self.count_refused(&news);
                    self.take_event(news.into());
                }
                Some(event) = self.received.recv() => self.take_event(event),
                Some(question) = self.asked.recv() => {
                    let _ = question.send(self.status());
                }
                arrival = self.sockets.receive() => self.take_datagrams(arrival).await,
                event = self.web.next() => self.take_web_event(event),
            }
        }
        self.machine.stop(self.now(), &mut self.out);
        self.perform();
        self.users.end().await;
    }

    fn take_event(&mut self, event: Event) {
        self.machine.handle_event(self.now(), event, &mut self.out);
    }

    /// Handles this datagram and those that wait, up to a batch.
    async fn take_datagrams(&mut self, first: Arrival) {
        let mut next = Some(first);
        for _ in 0..BATCH {
            let Some(arrival) = next else {
                return;
            };
            self.take_datagram(arrival);
            self.perform();
            next = tokio::select! {
                biased;
                arrival = self.sockets.receive() => Some(arrival),
                () = std::future::ready(()) => None,
            };
        }
        if let Some(arrival) = next {
            self.take_datagram(arrival);
        }
    }

    fn take_datagram(&mut self, arrival: Arrival) {
        let now = self.now();
        let Arrival { socket, from, .. } = arrival;
        if self.admits(now, socket, from) {
            let datagram = Datagram {
                socket,
                from,
                bytes: self.sockets.bytes(arrival),
            };
            self.machine.handle_datagram(now, datagram, &mut self.out);
        }
    }

    fn take_web_event(&mut self, event: web::Event) {
        let now = self.now();
        match event {
            web::Event::Text(socket, from, text, age) => {
                if self.admits(now, socket, from) {
                    let datagram = Datagram {
                        socket,
                        from,
                        bytes: &text,
                    };
                    let out = &mut self.out;
                    match age {
                        Age::New => self.machine.handle_datagram(now, datagram, out),
                        Age::Old => self.machine.handle_old_text(now, datagram, out),
                    }
                }
            }
            web::Event::Link(socket, peer, link) => {
                self.machine
                    .handle_link(now, socket, peer, link, &mut self.out);
            }
            web::Event::Refused(from, why) => {
                self.out.tally.dropped(now.elapsed, why, from);
            }
        }
    }

    /// Counts an arrived datagram. `false` if it is dropped.
    fn admits(&mut self, now: Now, socket: Socket, from: SocketAddr) -> bool {
        self.out.tally.received(now.elapsed);
        let is_known = self.machine.knows(socket, from);
        let admitted = self.gate.admit(now.elapsed, socket, from, is_known);
        if let Err(refusal) = admitted {
            self.out.tally.dropped(now.elapsed, refusal.text(), from);
        }
        admitted.is_ok()
    }

    /// Counts the measurements that found no room.
    fn count_lost(&mut self) {
        let elapsed = self.now().elapsed;
        for _ in 0..self.feeds.take_lost() {
            let from = self.machine.protocol();
            (self.out.tally).dropped(elapsed, "measurement while the gateway was busy", from);
        }
    }

    /// Counts a refusal of a device.
    fn count_refused(&mut self, news: &News) {
        if let News::Refused(user, why) = news {
            let elapsed = self.now().elapsed;
            let from = format!("session {}: {why}", user.0);
            (self.out.tally).dropped(elapsed, "motion refused by a device", from);
        }
    }

    /// Performs all outputs.
    fn perform(&mut self) {
        let elapsed = self.now().elapsed;
        while let Some(output) = self.out.take() {
            match output {
                Output::Bind(socket, address, cast) => {
                    self.sockets.bind(now(), socket, address, cast);
                }
                Output::Unbind(socket) => self.sockets.unbind(socket),
                Output::Listen(socket, address, page) => {
                    self.web.listen(now(), socket, address, page);
                }
                Output::Disconnect(socket, peer) => self.web.disconnect(socket, peer),
                Output::Send(socket, to, bytes) => {
                    let is_sent = match self.web.has(socket) {
                        true => self.web.send(socket, to, bytes),
                        false => self.sockets.send(socket, to, &bytes),
                    };
                    match is_sent {
                        true => self.out.tally.sent(),
                        false => self.out.tally.dropped(elapsed, "cannot send", to),
                    }
                }
                Output::Open(user, peer) => {
                    let protocol = self.machine.protocol();
                    let name = match peer {
                        Some(peer) => format!("{protocol} {peer}"),
                        None => protocol.to_owned(),
                    };
                    self.users.open(user, name);
                }
                Output::Close(user) => self.users.close(user),
                Output::Order(user, order) => self.order(user, order),
                Output::Watch(topic) => self.feeds.watch(topic),
                Output::Unwatch(topic) => self.feeds.unwatch(topic),
                Output::Show(device, measurement) => {
                    if let Some(screen) = self.screens.get(&device) {
                        screen.show(measurement);
                    }
                }
                // Without a reader there is nothing to lose.
                Output::Image(_) if self.link.subscriptions() == 0 => {}
                Output::Image(image) => {
                    if let Err(error) = self.link.images(image) {
                        let protocol = self.machine.protocol();
                        tracing::debug!("an image was not published: {error}");
                        (self.out.tally).dropped(elapsed, "image not published", protocol);
                    }
                }
            }
        }
    }

    /// Passes on an order of a user. A trip always has an end.
    fn order(&mut self, user: User, order: UserOrder) {
        let trip = match order {
            UserOrder::Trip(_, trip, _) => Some(trip),
            _ => None,
        };
        if self.users.order(user, order) {
            return;
        }
        let (now, why) = (self.now(), "too many orders wait");
        let session = format!("session {}", user.0);
        self.out.tally.dropped(now.elapsed, why, session);
        if let Some(trip) = trip {
            let ended = TripNews::Ended(TripEnd::Refused(why.into()));
            let event = Event::Trip(user, trip, ended);
            self.machine.handle_event(now, event, &mut self.out);
        }
    }

    /// Reports a taken port to the mediator.
    fn report(&self) {
        match self.sockets.trouble().or(self.web.trouble()) {
            Some(why) => self.link.trouble(why),
            None => self.link.recovered(),
        }
    }

    /// When to call the machine next.
    fn due(&self) -> Option<Instant> {
        let machine = (self.machine.next_timeout()).map(|elapsed| self.started + elapsed);
        [machine, self.sockets.retry_at(), self.web.retry_at()]
            .into_iter()
            .flatten()
            .min()
    }

    fn now(&self) -> Now {
        let unix = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        Now {
            elapsed: now().saturating_duration_since(self.started),
            unix: unix.unwrap_or_default(),
        }
    }

    fn status(&self) -> GatewayStatus {
        let now = self.now();
        let tally = &self.out.tally;
        let sessions = self.machine.sessions(now);
        GatewayStatus {
            protocol: Some(self.machine.protocol().to_owned()),
            sessions: u32::try_from(sessions.len()).ok(),
            rx: Some(tally.received_count()),
            tx: Some(tally.sent_count()),
            bad: Some(tally.total(Kind::Bad)),
            dropped: Some(tally.total(Kind::Dropped)),
            last_rx_ms: tally.silence(now.elapsed).map(millis),
            peers: (sessions.iter().take(MAX_PEERS))
                .map(|session| peer(session, session.user.and_then(|it| self.users.refused(it))))
                .collect(),
            reasons: tally.reasons(),
            listening: (self.sockets.addresses().into_iter())
                .chain(self.web.addresses())
                .map(|address| address.to_string())
                .collect(),
            vehicles: self.machine.vehicles(now),
        }
    }
}

/// The robot does not obey a session that is refused.
fn peer(session: &Session, refused: Option<String>) -> Peer {
    Peer {
        address: Some(session.address.to_string()),
        purpose: Some(session.purpose.clone()),
        age_ms: Some(millis(session.age)),
        silent_ms: Some(millis(session.silence)),
        drives: Some(session.drives && refused.is_none()),
        refused,
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// The device of this gateway: the first of its type among those that the mediator names.
fn own_device() -> Device {
    let mut devices = amber_driver::named_devices().into_iter();
    devices
        .find(|device| device.device_type == DeviceType::GATEWAY)
        .unwrap_or(Device::new(DeviceType::GATEWAY, 0))
}
