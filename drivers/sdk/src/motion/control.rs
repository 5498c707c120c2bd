//! Lease, halt and expiry of one device. PURE.

use std::collections::VecDeque;
use std::fmt;
use std::time::{Duration, Instant};

use amber_proto::ClientId;
use amber_proto::limits::{LEASE_MAX_MS, LEASE_MIN_MS, LEASE_MS, LEASE_NAME};
use amber_proto::motion::lease_request::Action;
use amber_proto::motion::motion_report::News as Kind;
use amber_proto::motion::{
    Halt, HaltRequest, LeaseClient, LeaseRequest, MotionReport, MotionState,
};
use amber_proto::printable_line;

use super::news::News;
use super::{Holder, Motion, StopCause};

/// The maximum number of clients that wait for a lease: people and programs of one robot.
const MAX_WAITING: usize = 16;
/// Why a lease ends whose holder has left.
const IS_GONE: &str = "is gone";
/// While there are leases, the driver looks at the clock this often.
const TICK: Duration = Duration::from_millis(50);
/// A driver that looks so late did not run in between: its machine is busy. Its clients may be just as
/// late, so their leases get another period, once.
const LATE: Duration = Duration::from_millis(100);

/// Lease, halt and expiry of one device.
#[derive(Debug, Default)]
pub(crate) struct Control {
    holder: Option<Lease>,
    waiting: VecDeque<Lease>,
    halt: Option<(String, Option<Instant>)>,
    /// Why the driver cannot move the device for anybody, if it said so.
    blocked: Option<String>,
    /// When the driver looks at the clock next, while there are leases.
    tick: Option<Instant>,
    /// The last command that moves, unless the device was stopped since.
    moving: Option<Moving>,
    stop: Option<Stop>,
    counters: Counters,
    news: News,
}

/// A client that holds the lease or waits for it.
#[derive(Clone, Debug)]
struct Lease {
    client: ClientId,
    /// The client of a driver.
    for_client: Option<ClientId>,
    name: String,
    since: Instant,
    period: Duration,
    until: Instant,
    /// Whether it was extended since the last sign of its client, because this driver was late.
    is_extended: bool,
    was_forced: bool,
}

/// The device must stop, or commands that wait are outdated.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stop {
    /// Why the device must stop; `None` if it need not.
    pub(crate) cause: Option<StopCause>,
    /// The client that moved it.
    pub(crate) client: Option<ClientId>,
    /// Commands of these clients that still wait are outdated.
    pub(crate) outdated: Vec<ClientId>,
}

#[derive(Clone, Copy, Debug)]
struct Moving {
    client: Option<ClientId>,
    until: Option<Instant>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counters {
    for_holder: u64,
    for_halt: u64,
    too_late: u64,
    expired: u64,
}

/// A request to the harness.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Request<'a> {
    Lease {
        request: &'a LeaseRequest,
        for_client: Option<ClientId>,
    },
    Halt(&'a HaltRequest),
    State,
}

/// A request that moves or stops the device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Command {
    pub(crate) motion: Motion,
    pub(crate) client: Option<ClientId>,
    pub(crate) for_client: Option<ClientId>,
    pub(crate) valid_until: Option<Instant>,
}

/// The reason why a command is not carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// Another client holds the lease.
    Held { by: String },
    /// The device is halted.
    Halted { by: String },
    /// The driver cannot move the device, for example because another client moves the wheels.
    Blocked { why: String },
    /// The command is no longer valid.
    TooLate,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Held { by } => write!(f, "{by} holds the lease of this device"),
            Self::Halted { by } => write!(f, "the device was halted by {by}"),
            Self::Blocked { why } => f.write_str(why),
            Self::TooLate => f.write_str("the command came too late: it is no longer valid"),
        }
    }
}

impl Lease {
    fn is_of(&self, client: ClientId) -> bool {
        self.client == client || self.for_client == Some(client)
    }

    fn keep(&mut self, now: Instant) {
        self.until = now + self.period;
        self.is_extended = false;
    }

    /// The driver was late. Extends the lease, once until the next sign of its client.
    fn extend(&mut self, now: Instant) {
        if !self.is_extended {
            self.keep(now);
            self.is_extended = true;
        }
    }

    fn to_wire(&self, now: Instant) -> LeaseClient {
        LeaseClient {
            client_id: self.client.0,
            name: Some(self.name.clone()),
            since_ms: Some(millis(now.saturating_duration_since(self.since))),
            left_ms: Some(millis(self.until.saturating_duration_since(now))),
            for_client: self.for_client.map(|client| client.0),
        }
    }
}

impl Control {
    /// The control of a device that was halted before the driver was restarted.
    pub(crate) fn halted(by: String) -> Self {
        Self {
            halt: Some((by, None)),
            ..Self::default()
        }
    }

    /// A client asks for the lease or a halt. Returns the answer.
    pub(crate) fn request(
        &mut self,
        now: Instant,
        client: ClientId,
        request: Request<'_>,
    ) -> MotionState {
        let for_whom = match request {
            Request::Lease { for_client, .. } => for_client,
            Request::Halt(_) | Request::State => None,
        };
        let done = match request {
            Request::State => Ok(()),
            Request::Halt(request) => self.change_halt(now, client, request),
            Request::Lease {
                request,
                for_client,
            } => self.lease(now, client, for_client, request),
        };
        if self.holder.is_some() || !self.waiting.is_empty() {
            self.tick.get_or_insert(now + TICK);
        }
        MotionState {
            holder: self.holder.as_ref().map(|it| it.to_wire(now)),
            waiting: self.waiting.iter().map(|it| it.to_wire(now)).collect(),
            halt: self.halt_to_wire(now),
            yours: Some(self.is_held_by([Some(client), for_whom])),
            refused: done.err(),
            refused_for_holder: Some(self.counters.for_holder),
            refused_for_halt: Some(self.counters.for_halt),
            too_late: Some(self.counters.too_late),
            expired: Some(self.counters.expired),
        }
    }

    /// A request moves or stops the device.
    pub(crate) fn command(&mut self, now: Instant, command: Command) -> Result<(), Refusal> {
        match command.motion {
            Motion::Nothing => return Ok(()),
            Motion::Stops => {
                self.moving = None;
                return Ok(());
            }
            Motion::Moves | Motion::Errand => {}
        }
        if let Some((by, _)) = &self.halt {
            let refusal = Refusal::Halted { by: by.clone() };
            self.counters.for_halt += 1;
            return Err(self.refuse(now, command, refusal));
        }
        if let Some(why) = self.blocked.clone() {
            self.counters.for_holder += 1;
            return Err(self.refuse(now, command, Refusal::Blocked { why }));
        }
        let is_its = |lease: &Lease| {
            let clients = [command.client, command.for_client];
            clients.into_iter().flatten().any(|it| lease.is_of(it))
        };
        if let Some(holder) = self.holder.as_mut() {
            if !is_its(holder) {
                let by = holder.name.clone();
                self.counters.for_holder += 1;
                return Err(self.refuse(now, command, Refusal::Held { by }));
            }
            holder.keep(now);
        }
        if command.valid_until.is_some_and(|until| until <= now) {
            self.counters.too_late += 1;
            return Err(self.refuse(now, command, Refusal::TooLate));
        }
        self.moving = Some(Moving {
            client: command.client,
            until: command.valid_until,
        });
        // A stop that was not carried out yet is about an earlier command.
        self.stop = None;
        Ok(())
    }

    /// The driver cannot move the device for anybody, or it can again. The lease ends; its holder and
    /// others that ask for it are told why. Whoever takes it by force lets the driver try again.
    pub(crate) fn block(&mut self, now: Instant, why: Option<String>) {
        if let Some(why) = &why {
            self.waiting.clear();
            self.end_lease(now, &format!("cannot move the device: {why}"));
        }
        self.blocked = why;
    }

    /// The holder of the lease.
    pub(crate) fn holder(&self) -> Option<Holder> {
        let lease = self.holder.as_ref()?;
        Some(Holder {
            client: lease.client,
            name: lease.name.clone(),
            was_forced: lease.was_forced,
        })
    }

    /// A client is gone. `stops`: the driver does not stop by itself what the client moved.
    pub(crate) fn client_gone(&mut self, now: Instant, client: ClientId, stops: bool) {
        self.waiting.retain(|it| it.client != client);
        if self.holder.as_ref().is_some_and(|it| it.is_of(client)) {
            self.end_lease(now, IS_GONE);
        }
        if stops {
            self.outdate([client]);
            if self.moving.is_some_and(|it| it.client == Some(client)) {
                self.stop_now(StopCause::ClientGone);
            }
        }
    }

    /// When [`Self::timeout`] is due.
    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        let moving = self.moving.and_then(|moving| moving.until);
        let leases = self.holder.iter().chain(&self.waiting).map(|it| it.until);
        leases.chain(moving).chain(self.tick).min()
    }

    /// Ends what is due. Before this, all requests that have come by now must have been handled: one
    /// of them may keep a lease.
    pub(crate) fn timeout(&mut self, now: Instant) {
        if self
            .tick
            .is_some_and(|tick| now.saturating_duration_since(tick) > LATE)
        {
            let leases = self.holder.iter_mut().chain(&mut self.waiting);
            leases.for_each(|it| it.extend(now));
        }
        self.waiting.retain(|it| it.until > now);
        if let Some(moving) = self.moving
            && moving.until.is_some_and(|until| until <= now)
        {
            self.counters.expired += 1;
            let client = client_words(moving.client);
            self.news.say(now, Kind::Stopped, || {
                format!("stopped: the last command of {client} is no longer valid")
            });
            self.stop_now(StopCause::Expired);
        }
        if self.holder.as_ref().is_some_and(|it| it.until <= now) {
            self.end_lease(now, "did not keep its lease");
        }
        let has_leases = self.holder.is_some() || !self.waiting.is_empty();
        self.tick = has_leases.then(|| now + TICK);
    }

    /// What to do now.
    pub(crate) fn poll_stop(&mut self) -> Option<Stop> {
        self.stop.take()
    }

    /// The next report for the mediator.
    pub(crate) fn poll_report(&mut self, now: Instant) -> Option<MotionReport> {
        let (news, text) = self.news.poll()?;
        Some(MotionReport {
            holder: self.holder.as_ref().map(|it| it.to_wire(now)),
            waiting: u32::try_from(self.waiting.len()).ok(),
            halt: self.halt_to_wire(now),
            news: Some(news.into()),
            text: Some(text),
        })
    }

    fn lease(
        &mut self,
        now: Instant,
        client: ClientId,
        for_client: Option<ClientId>,
        request: &LeaseRequest,
    ) -> Result<(), String> {
        let action = Action::try_from(request.action)
            .map_err(|_| format!("unknown action {}", request.action))?;
        let is_holder = self.holder.as_ref().is_some_and(|it| it.is_of(client));
        let takes = matches!(action, Action::Take | Action::Wait | Action::TakeByForce);
        if let Some(holder) = &mut self.holder
            && !is_holder
            && (takes || action == Action::Keep)
            && for_client.is_some_and(|it| holder.is_of(it))
        {
            // A driver of the holder: it may move the device already.
            holder.keep(now);
            return Ok(());
        }
        let period_ms = request.period_ms.unwrap_or(LEASE_MS);
        let period_ms = period_ms.clamp(LEASE_MIN_MS, LEASE_MAX_MS);
        let period = Duration::from_millis(period_ms.into());
        let lease = || Lease {
            client,
            for_client,
            name: client_name(request.name.as_deref(), client),
            since: now,
            period,
            until: now + period,
            is_extended: false,
            was_forced: action == Action::TakeByForce,
        };
        match (&self.blocked, action) {
            (Some(why), Action::Take | Action::Wait | Action::Keep) => return Err(why.clone()),
            (_, Action::TakeByForce) => self.blocked = None,
            _ => {}
        }
        let held = |holder: &Option<Lease>| match holder {
            Some(holder) => Err(Refusal::Held {
                by: holder.name.clone(),
            }
            .to_string()),
            None => Ok(()),
        };
        match action {
            _ if takes && is_holder => {
                let since = self.holder.as_ref().map_or(now, |it| it.since);
                self.holder = Some(Lease { since, ..lease() });
                Ok(())
            }
            // Those who wait come first.
            Action::Take | Action::Wait if self.holder.is_none() && self.is_next(client) => {
                self.waiting.retain(|it| it.client != client);
                self.grant(now, lease());
                Ok(())
            }
            Action::Take => match self.waiting.front() {
                Some(next) if self.holder.is_none() => {
                    Err(format!("{} waits for the lease of this device", next.name))
                }
                _ => held(&self.holder),
            },
            Action::Wait => {
                let place = self.waiting.iter().position(|it| it.client == client);
                match place {
                    Some(place) => {
                        let since = self.waiting[place].since;
                        self.waiting[place] = Lease { since, ..lease() };
                    }
                    None if self.waiting.len() == MAX_WAITING => {
                        return Err(format!("{MAX_WAITING} clients wait already"));
                    }
                    None => self.waiting.push_back(lease()),
                }
                Ok(())
            }
            Action::TakeByForce => {
                self.waiting.retain(|it| it.client != client);
                let new = lease();
                if let Some(old) = self.holder.take() {
                    let text = format!("{} took the lease from {} by force", new.name, old.name);
                    let cause = StopCause::LeaseLost {
                        how: text.clone(),
                        to: Some(client),
                    };
                    self.stop_motion_of(&old, cause);
                    self.say_lease(now, || text);
                    self.holder = Some(new);
                } else {
                    self.grant(now, new);
                }
                Ok(())
            }
            Action::Keep => match self.holder.as_mut() {
                Some(holder) if is_holder => {
                    holder.keep(now);
                    Ok(())
                }
                Some(_) => held(&self.holder),
                None => Err("nobody holds the lease of this device".into()),
            },
            Action::Release => {
                self.waiting.retain(|it| it.client != client);
                if is_holder {
                    self.end_lease(now, "released the lease");
                }
                Ok(())
            }
        }
    }

    fn is_held_by(&self, clients: [Option<ClientId>; 2]) -> bool {
        let holder = self.holder.as_ref();
        holder.is_some_and(|it| clients.into_iter().flatten().any(|client| it.is_of(client)))
    }

    fn is_next(&self, client: ClientId) -> bool {
        self.waiting.front().is_none_or(|it| it.client == client)
    }

    fn grant(&mut self, now: Instant, lease: Lease) {
        // What others moved before is no longer allowed.
        if self
            .moving
            .is_some_and(|it| !it.client.is_some_and(|it| lease.is_of(it)))
        {
            self.stop_now(StopCause::LeaseLost {
                how: format!("{} holds the lease", lease.name),
                to: Some(lease.client),
            });
        }
        self.say_lease(now, || format!("{} holds the lease", lease.name));
        self.holder = Some(lease);
    }

    /// The lease ends; the next client that waits gets it.
    fn end_lease(&mut self, now: Instant, why: &str) {
        let Some(old) = self.holder.take() else {
            return;
        };
        let cause = match why {
            IS_GONE => StopCause::ClientGone,
            _ => StopCause::LeaseLost {
                how: format!("{} {why}", old.name),
                to: None,
            },
        };
        self.stop_motion_of(&old, cause);
        match self.waiting.pop_front() {
            Some(mut next) => {
                next.since = now;
                next.keep(now);
                let name = next.name.clone();
                self.say_lease(now, || {
                    format!("{} {why}; {name} holds the lease", old.name)
                });
                self.holder = Some(next);
            }
            None => self.say_lease(now, || format!("{} {why}; nobody holds it now", old.name)),
        }
    }

    fn stop_motion_of(&mut self, lease: &Lease, cause: StopCause) {
        self.outdate([Some(lease.client), lease.for_client].into_iter().flatten());
        let is_its = |moving: Moving| moving.client.is_some_and(|it| lease.is_of(it));
        if self.moving.is_some_and(is_its) {
            self.stop_now(cause);
        }
    }

    fn change_halt(
        &mut self,
        now: Instant,
        client: ClientId,
        request: &HaltRequest,
    ) -> Result<(), String> {
        let by = client_name(request.name.as_deref(), client);
        if request.halt {
            // Also if nothing is known to move: it may be something that was there before.
            self.stop_now(StopCause::Halted { by: by.clone() });
            if let Some(stop) = &mut self.stop {
                stop.client.get_or_insert(client);
            }
            if self.halt.is_none() {
                self.news
                    .say(now, Kind::Halted, || format!("halted by {by}"));
                self.halt = Some((by, Some(now)));
            }
            return Ok(());
        }
        if let Some(holder) = self.holder.as_ref().filter(|it| !it.is_of(client)) {
            return Err(Refusal::Held {
                by: holder.name.clone(),
            }
            .to_string());
        }
        if self.halt.take().is_some() {
            (self.news).say(now, Kind::HaltReleased, || format!("halt released by {by}"));
        }
        Ok(())
    }

    fn stop_now(&mut self, cause: StopCause) {
        let stop = self.stop.get_or_insert_default();
        let moving = self.moving.take();
        stop.cause.get_or_insert(cause);
        stop.client = moving.and_then(|moving| moving.client).or(stop.client);
    }

    /// Commands of these clients that wait are older than what has just happened.
    fn outdate(&mut self, clients: impl IntoIterator<Item = ClientId>) {
        self.stop.get_or_insert_default().outdated.extend(clients);
    }

    fn refuse(&mut self, now: Instant, command: Command, refusal: Refusal) -> Refusal {
        self.news.say(now, Kind::Refused, || {
            format!(
                "refused a command of {}: {refusal}",
                client_words(command.client)
            )
        });
        refusal
    }

    fn say_lease(&mut self, now: Instant, text: impl FnOnce() -> String) {
        self.news.say(now, Kind::Lease, text);
    }

    fn halt_to_wire(&self, now: Instant) -> Option<Halt> {
        let (by, since) = self.halt.as_ref()?;
        Some(Halt {
            by: Some(by.clone()),
            since_ms: since.map(|since| millis(now.saturating_duration_since(since))),
        })
    }
}

/// The name of a client for people, in one printable line of at most 100 bytes: the one that it gave
/// itself, else "client 7".
pub(crate) fn client_name(name: Option<&str>, client: ClientId) -> String {
    let line = printable_line(name.unwrap_or_default());
    let mut end = line.len().min(LEASE_NAME);
    while !line.is_char_boundary(end) {
        end -= 1;
    }
    match line[..end].trim() {
        "" => client_words(Some(client)),
        name => name.to_owned(),
    }
}

fn client_words(client: Option<ClientId>) -> String {
    client.map_or("a client".into(), |client| format!("client {client}"))
}

fn millis(duration: Duration) -> u64 {
    duration.as_millis().try_into().unwrap_or(u64::MAX)
}
