//! Runs the checks one after the other, with as few starts of the driver as
//! possible. IO.

use std::fmt::Display;
use std::io;
use std::time::{Duration, Instant};

use amber_proto::frame::Frame;
use amber_proto::pieces::Joiner;
use amber_proto::{Device, DriverHdr, DriverMsg, MsgType, Packet, dummy};
use amber_reflect::Schemas;
use amber_schema::{Interface, Kind};
use prost::Message;

use crate::bench::{Bench, Logged, Running, Trouble};
use crate::checks::{self, Check};
use crate::devices::{self, Answer, Ask};
use crate::diagnose::{self, Mistake};
use crate::report::{Checked, Details, Outcome, Report, Shown};
use crate::{limits, plausible};

/// The driver to check, and how.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The driver: program and arguments. `amber` is this program itself.
    pub command: Vec<String>,
    /// The device that it serves.
    pub device: Device,
    /// The description of the device, if there is one.
    pub interface: Option<Interface>,
    /// Requests that it answers, each with a name for people and as an encoded
    /// DATA message without a number.
    pub requests: Vec<(String, Vec<u8>)>,
    /// The time limit for an answer, and for the end of the driver.
    pub timeout: Duration,
    /// The names of the checks to run; all if empty.
    pub only: Vec<String>,
    /// The names of the checks to skip.
    pub skip: Vec<String>,
    /// Shows the stderr of the driver.
    pub verbose: bool,
    /// The messages of the device.
    pub schemas: Schemas,
}

impl Plan {
    /// A plan with all checks and a timeout of five seconds, for a device of Amber or an unknown
    /// one.
    pub fn new(command: Vec<String>, device: Device) -> Self {
        let schemas = Schemas::built_in();
        Self {
            interface: devices::interface(&schemas, device.device_type).cloned(),
            command,
            device,
            requests: vec![],
            timeout: Duration::from_secs(5),
            only: vec![],
            skip: vec![],
            verbose: false,
            schemas,
        }
    }
}

/// Checks a driver; `progress` sees each result at once.
///
/// # Errors
/// The driver cannot be started.
pub fn run(plan: &Plan, progress: impl FnMut(&Checked)) -> io::Result<Report> {
    run_with(plan, &Running::default(), progress)
}

pub(crate) fn run_with(
    plan: &Plan,
    running: &Running,
    mut progress: impl FnMut(&Checked),
) -> io::Result<Report> {
    let mut run = Run {
        plan,
        bench: None,
        running: running.clone(),
        probe: None,
        life: None,
        next_syn: 100,
        died_late: None,
        has_died_late: false,
    };
    // An error here means that the program cannot be started.
    run.fresh()?;
    let mut checked = Vec::new();
    for check in checks::ALL {
        if !is_wanted(check.name, &plan.only, &plan.skip) {
            continue;
        }
        let result = run.check(check);
        if let (Some(details), Some(before)) = (run.died_late.take(), checked.last_mut()) {
            blame(before, details);
            progress(before);
        }
        progress(&result);
        checked.push(result);
    }
    let device = Some(plan.device.to_string());
    Ok(Report::new(plan.command.clone(), device, checked))
}

/// Whether a check is to be run: all are if `only` is empty.
pub(crate) fn is_wanted(name: &str, only: &[String], skip: &[String]) -> bool {
    let has = |names: &[String]| names.iter().any(|known| known == name);
    (only.is_empty() || has(only)) && !has(skip)
}

/// The driver ended because of a check that had passed.
fn blame(before: &mut Checked, details: Details) {
    before.outcome = Outcome::Fail;
    before.summary = "the driver ended shortly after this check".into();
    before.details = Some(details);
}

/// The result of a check without a failure.
pub(crate) enum Verdict {
    Pass,
    Seen(String),
    Note(String),
    NotApplicable(String),
}

/// The expectations for a driver whose pipes fail.
pub(crate) const READS: &str = "the driver reads its stdin";
pub(crate) const ONLY_FRAMES: &str = "only frames on stdout";

/// The failure of a check.
#[derive(Clone, Debug)]
pub(crate) struct Finding {
    pub(crate) summary: String,
    pub(crate) expected: String,
    /// A fix that is more specific than the general one of the check.
    pub(crate) fix: Option<String>,
    /// Optional: only a note.
    pub(crate) note: bool,
    /// The driver has ended.
    pub(crate) ended: bool,
}

impl Finding {
    pub(crate) fn new(summary: impl Into<String>, expected: impl Into<String>) -> Self {
        Self {
            summary: summary.into(),
            expected: expected.into(),
            fix: None,
            note: false,
            ended: false,
        }
    }

    pub(crate) fn of(mistake: &Mistake, expected: impl Into<String>) -> Self {
        Self {
            fix: Some(mistake.fix().into()),
            ..Self::new(mistake.summary(), expected)
        }
    }

    pub(crate) fn fix(self, fix: impl Into<String>) -> Self {
        Self {
            fix: Some(fix.into()),
            ..self
        }
    }

    /// Adds when it was found.
    pub(crate) fn during(self, what: impl Display) -> Self {
        Self {
            summary: format!("{what}: {}", self.summary),
            ..self
        }
    }

    /// Turns the finding into a note: the behaviour is optional.
    pub(crate) fn note(self) -> Self {
        Self { note: true, ..self }
    }
}

pub(crate) type Checking = Result<Verdict, Finding>;

/// A message that this driver answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Probe {
    Ping,
    Request(Vec<u8>),
}

impl Probe {
    /// The message with a number.
    pub(crate) fn message(&self, syn: u32) -> Vec<u8> {
        match self {
            Self::Ping => with_syn(b"\x10\x02", syn),
            Self::Request(message) => with_syn(message, syn),
        }
    }

    pub(crate) fn answer(&self) -> MsgType {
        match self {
            Self::Ping => MsgType::Pong,
            Self::Request(_) => MsgType::Data,
        }
    }
}

pub(crate) fn with_syn(message: &[u8], syn: u32) -> Vec<u8> {
    let number = dummy::DriverMsg {
        syn_num: Some(syn),
        ..Default::default()
    };
    [message, &number.encode_to_vec()].concat()
}

pub(crate) fn with_ack(message: &[u8], ack: u32) -> Vec<u8> {
    let number = dummy::DriverMsg {
        ack_num: Some(ack),
        ..Default::default()
    };
    [message, &number.encode_to_vec()].concat()
}

pub(crate) fn from_clients(ids: &[i32]) -> DriverHdr {
    DriverHdr {
        client_ids: ids.to_vec(),
        ..DriverHdr::default()
    }
}

/// See the [module](self).
pub(crate) struct Run<'a> {
    pub(crate) plan: &'a Plan,
    bench: Option<Bench>,
    running: Running,
    /// The first checks find it.
    pub(crate) probe: Option<Probe>,
    /// The check that found no probe.
    pub(crate) life: Option<&'static str>,
    next_syn: u32,
    /// The end of the driver after the previous check had passed.
    died_late: Option<Details>,
    /// Whether such an end was reported: only the first one is.
    has_died_late: bool,
}

impl Run<'_> {
    fn check(&mut self, check: &Check) -> Checked {
        let begun = Instant::now();
        if let Some(bench) = &mut self.bench {
            bench.begin();
        }
        let is_reused = self.bench.is_some();
        let mut result = self.result(check);
        // A driver may end a while after the check that caused it. Then this check
        // passes with a new process.
        if let Err(finding) = &result
            && finding.ended
            && is_reused
        {
            let expected = "a driver that keeps running";
            let details = self.details(
                check,
                &Finding {
                    expected: expected.into(),
                    ..finding.clone()
                },
            );
            self.bench = None;
            let again = self.result(check);
            if again.is_ok() {
                if !self.has_died_late {
                    self.has_died_late = true;
                    self.died_late = Some(details);
                }
                result = again;
            }
        }
        let mut checked = self.checked(check, result);
        checked.ms = begun.elapsed().as_millis().try_into().unwrap_or(u64::MAX);
        checked
    }

    fn result(&mut self, check: &Check) -> Checking {
        let dead = self.life == Some("start");
        match (dead || check.needs_probe && self.probe.is_none(), self.life) {
            (true, Some(blamed)) => {
                let why = format!("skipped, because '{blamed}' failed");
                Ok(Verdict::NotApplicable(why))
            }
            // The first checks did not run.
            (true, None) => checks::ping(self).and_then(|_| (check.run)(self)),
            (false, _) => (check.run)(self),
        }
    }

    fn checked(&mut self, check: &Check, result: Checking) -> Checked {
        let mut checked = Checked {
            name: check.name,
            title: check.title,
            outcome: Outcome::Pass,
            summary: String::new(),
            ms: 0,
            details: None,
        };
        match result {
            Ok(Verdict::Pass) => {}
            Ok(Verdict::Seen(summary)) => checked.summary = summary,
            Ok(Verdict::Note(summary)) => {
                checked.outcome = Outcome::Note;
                checked.summary = summary;
            }
            Ok(Verdict::NotApplicable(why)) => {
                checked.outcome = Outcome::NotApplicable;
                checked.summary = why;
            }
            Err(finding) => {
                checked.outcome = if finding.note {
                    Outcome::Note
                } else {
                    Outcome::Fail
                };
                checked.details = Some(self.details(check, &finding));
                checked.summary = finding.summary;
                // The next check starts a new driver.
                self.bench = None;
            }
        }
        checked
    }

    fn details(&self, check: &Check, finding: &Finding) -> Details {
        let mut details = Details {
            expected: finding.expected.clone(),
            why: check.why.into(),
            fix: finding.fix.clone().unwrap_or_else(|| check.fix.into()),
            ..Details::default()
        };
        let Some(bench) = &self.bench else {
            return details;
        };
        for logged in &bench.log {
            match logged {
                Logged::Sent(bytes) => details.sent.push(self.shown(bytes)),
                Logged::Received(bytes) => details.received.push(self.shown(bytes)),
            }
        }
        if !bench.leftover().is_empty() {
            let shown = Shown::new(bench.leftover(), "bytes that are not a frame");
            details.received.push(shown);
        }
        for frames in [&mut details.sent, &mut details.received] {
            let surplus = frames.len().saturating_sub(limits::SHOWN_FRAMES);
            frames.drain(..surplus);
        }
        // Its last lines may still be on their way.
        bench.hear_out(match finding.ended {
            true => self.plan.timeout,
            false => limits::QUIET,
        });
        details.stderr = bench.last_words();
        details
    }

    fn shown(&self, bytes: &[u8]) -> Shown {
        let text = match Frame::from_stream(bytes) {
            Some(frame) => self.plan.schemas.brief(frame.header, frame.message),
            None => "an incomplete frame".into(),
        };
        Shown::new(bytes, text)
    }

    /// Whether the driver answers every request from its start on.
    pub(crate) fn always_answers(&self) -> bool {
        let interface = self.plan.interface.as_ref();
        interface.is_some_and(|interface| interface.always_answers)
    }

    /// The requests that it can answer.
    pub(crate) fn asks(&self) -> Vec<Ask> {
        let plan = self.plan;
        let interface = plan.interface.iter();
        let method = |message: &[u8]| {
            let mut described = interface.clone();
            let (method, _) = described.find_map(|it| plan.schemas.requested(it, message))?;
            matches!(method.kind, Kind::Ask { .. }).then(|| Box::new(method.clone()))
        };
        let own = plan.requests.iter().map(|(name, message)| Ask {
            name: name.clone(),
            message: message.clone(),
            answer: method(message).map_or(Answer::Any, Answer::Of),
        });
        let interface = plan.interface.iter();
        let described = interface.flat_map(|it| devices::asks(it, &plan.schemas));
        own.chain(described).collect()
    }

    /// Starts a new process of the driver.
    pub(crate) fn fresh(&mut self) -> io::Result<&mut Bench> {
        self.bench = None;
        let plan = self.plan;
        let bench = Bench::start(&plan.command, plan.device, plan.verbose, &self.running)?;
        Ok(self.bench.insert(bench))
    }

    /// Starts a new process of the driver within a check.
    pub(crate) fn restart(&mut self) -> Result<&mut Bench, Finding> {
        self.fresh().map_err(|error| {
            Finding::new(format!("the driver cannot be started again: {error}"), "")
        })
    }

    /// The driver; starts it if it does not run.
    pub(crate) fn bench(&mut self) -> Result<&mut Bench, Finding> {
        match self.bench {
            None => self.restart(),
            Some(ref mut bench) => Ok(bench),
        }
    }

    pub(crate) fn stop(&mut self) {
        self.bench = None;
    }

    /// A new request number.
    pub(crate) fn syn(&mut self) -> u32 {
        self.syns(1)
    }

    /// The first of several new request numbers.
    pub(crate) fn syns(&mut self, count: u32) -> u32 {
        let first = self.next_syn + 1;
        self.next_syn += count;
        first
    }

    /// The message that this driver answers. Checks that need one run only if there
    /// is one.
    pub(crate) fn probe(&self) -> Probe {
        self.probe.clone().unwrap_or(Probe::Ping)
    }

    pub(crate) fn send(&mut self, ids: &[i32], message: &[u8]) -> Result<(), Finding> {
        self.send_with(&from_clients(ids), message)
    }

    /// Sends a frame with this header.
    pub(crate) fn send_with(&mut self, header: &DriverHdr, message: &[u8]) -> Result<(), Finding> {
        let wait = self.plan.timeout;
        let sent = self.bench()?.send(header, message, wait);
        sent.map_err(|trouble| self.trouble(trouble, READS))
    }

    /// Writes raw bytes.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), Finding> {
        let wait = self.plan.timeout;
        let written = self.bench()?.write(bytes, wait);
        written.map_err(|trouble| self.trouble(trouble, READS))
    }

    /// The next frame for a client or the mediator.
    pub(crate) fn receive(&mut self, wait: Duration) -> Result<Option<Packet>, Finding> {
        let received = self.bench()?.receive(wait);
        received.map_err(|trouble| self.trouble(trouble, ONLY_FRAMES))
    }

    /// The same for a client that joins pieces. The check `pieces` judges them.
    pub(crate) fn receive_joined(&mut self, wait: Duration) -> Result<Option<Packet>, Finding> {
        let mut joiner = Joiner::default();
        let deadline = Instant::now() + wait;
        loop {
            let now = Instant::now();
            let Some(packet) = self.receive(deadline.saturating_duration_since(now))? else {
                return Ok(None);
            };
            let base = DriverMsg::decode(packet.message.clone()).unwrap_or_default();
            let Some(piece) = base.piece else {
                return Ok(Some(packet));
            };
            if let Some(joined) = joiner.piece(now, (), &piece) {
                return Ok(Some(Packet {
                    header: packet.header,
                    message: joined.message,
                }));
            }
        }
    }

    /// Sends a request if the driver answers any, and judges the answer.
    pub(crate) fn ask_if_possible(&mut self, ids: &[i32]) -> Result<bool, Finding> {
        match self.probe.clone() {
            Some(probe) => self.ask(ids, &probe).map(|_| true),
            None => Ok(false),
        }
    }

    /// Sends a request, and judges the answer.
    pub(crate) fn ask(&mut self, ids: &[i32], probe: &Probe) -> Result<Packet, Finding> {
        let syn = self.syn();
        self.ask_with(ids, probe, syn)
    }

    pub(crate) fn ask_with(
        &mut self,
        ids: &[i32],
        probe: &Probe,
        syn: u32,
    ) -> Result<Packet, Finding> {
        self.send(ids, &probe.message(syn))?;
        self.expect(ids, probe, syn)
    }

    /// Waits for the answer to a request.
    pub(crate) fn expect(
        &mut self,
        ids: &[i32],
        probe: &Probe,
        syn: u32,
    ) -> Result<Packet, Finding> {
        let expected = expected(ids, probe.answer(), Some(syn));
        match self.receive(self.plan.timeout)? {
            None => Err(Finding::new(
                format!("no answer within {} s", self.plan.timeout.as_secs_f32()),
                expected,
            )),
            Some(packet) => match diagnose::judge(&packet, ids, probe.answer(), Some(syn)) {
                Ok(()) => Ok(packet),
                Err(mistake) => Err(self.mistaken(mistake, expected)),
            },
        }
    }

    /// A wrong answer.
    pub(crate) fn mistaken(&self, mistake: Mistake, expected: String) -> Finding {
        let recent = self.bench.as_ref().map_or(&[][..], Bench::recent);
        Finding::of(&mistake.or_of_bytes(recent), expected)
    }

    /// Sends a request, and returns all other frames until its answer and shortly
    /// after.
    pub(crate) fn fence(&mut self) -> Result<Vec<Packet>, Finding> {
        // An id that no check uses.
        const UNUSED: i32 = 2_000_000_001;
        let (probe, syn) = (self.probe(), self.syn());
        self.send(&[UNUSED], &probe.message(syn))?;
        let mut before = Vec::new();
        let deadline = Instant::now() + self.plan.timeout;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let Some(packet) = self.receive(left)? else {
                self.await_end_of_crash()?;
                return Err(Finding::new(
                    "the driver does not answer any more after that",
                    expected(&[UNUSED], probe.answer(), Some(syn)),
                ));
            };
            if diagnose::judge(&packet, &[UNUSED], probe.answer(), Some(syn)).is_ok() {
                break;
            }
            before.push(packet);
        }
        // Fast publications must not prolong this.
        let deadline = Instant::now() + limits::QUIET;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.receive(left)? {
                Some(packet) if !left.is_zero() => before.push(packet),
                _ => return Ok(before),
            }
        }
    }

    /// Waits for the end of a silent driver that has printed something: a crash that prints a
    /// long backtrace takes seconds on a busy machine, and its exit code says more than silence.
    fn await_end_of_crash(&mut self) -> Result<(), Finding> {
        if self.bench()?.last_words().is_empty() {
            return Ok(());
        }
        let deadline = Instant::now() + self.plan.timeout;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() || self.receive(left)?.is_none() {
                return Ok(());
            }
        }
    }

    /// Checks that the values of a message fit the description of the device.
    pub(crate) fn plausible(
        &self,
        which: &str,
        message: &[u8],
        check: impl FnOnce(&Interface, &Schemas, &plausible::Values) -> plausible::Plausibility,
    ) -> Result<(), Finding> {
        let Some(interface) = &self.plan.interface else {
            return Ok(());
        };
        let schemas = &self.plan.schemas;
        let checked = plausible::values(schemas, message).and_then(|values| {
            check(interface, schemas, &values)?;
            plausible::ranges(interface, schemas, &values)
        });
        checked.map_err(|wrong| {
            Finding::new(
                format!("{which} is not plausible: {}", wrong.what),
                wrong.expected,
            )
            .fix("compare with the comments in the .proto file of the device: lists, units, ranges")
        })
    }

    /// Checks that the driver sends nothing.
    pub(crate) fn expect_silence(&mut self, what: &str) -> Result<(), Finding> {
        match self.fence()?.first() {
            None => Ok(()),
            Some(packet) => {
                let message = self.plan.schemas.brief_message(&packet.message);
                Err(Finding::new(
                    format!("it answers {what}: {message}"),
                    "no answer, and a driver that keeps running",
                ))
            }
        }
    }

    /// The finding for a broken connection.
    pub(crate) fn trouble(&mut self, trouble: Trouble, expected: &str) -> Finding {
        match trouble {
            Trouble::Ended(how) => Finding {
                ended: true,
                ..Finding::new(format!("the driver has ended ({how})"), expected)
            }
            .fix(
                "see the last lines of its stderr below; the driver must ignore messages that it \
                 cannot parse or does not know, and must not exit",
            ),
            Trouble::Flood => Finding::new("the driver writes endlessly", expected)
                .fix("write only answers and publications to stdout"),
            Trouble::DoesNotRead => Finding::new("the driver does not read its stdin", expected)
                .fix("read in a loop until stdin ends, and do slow work in another thread"),
            Trouble::Noise { rest, recent } => {
                let mistake = match diagnose::noise(&rest) {
                    Mistake::HalfFrame | Mistake::Noise(_) if recent.len() > rest.len() => {
                        match diagnose::noise(&recent) {
                            Mistake::HalfFrame | Mistake::Noise(_) => diagnose::noise(&rest),
                            better => better,
                        }
                    }
                    mistake => mistake,
                };
                Finding::of(&mistake, expected)
            }
        }
    }
}

/// The expected answer in words.
pub(crate) fn expected(ids: &[i32], kind: MsgType, ack: Option<u32>) -> String {
    let kind = kind.as_str_name();
    let to = match ids {
        [] => "a header without clientIDs (it is for the mediator)".to_owned(),
        ids => format!("clientIDs {ids:?} in the header"),
    };
    match ack {
        Some(ack) => format!("{kind} with ackNum {ack} and {to}"),
        None => format!("{kind} without ackNum and {to}"),
    }
}
