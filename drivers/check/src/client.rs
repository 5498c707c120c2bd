//! `amber check-client`: a mediator that puts a client through its paces. IO.

mod fake;
mod mediator;

use std::collections::HashSet;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use amber_client::cli::explain::spaced;
use amber_client::cli::{Failure, Schemas, note, read_fields, read_hex};
use amber_proto::frame::Frame;
use amber_proto::{Device, DeviceMessage, DriverHdr, MsgType, dummy};
use prost::Message;

use self::fake::Fakes;
use self::mediator::{Heard, Mischief, serve};
use crate::bench::{Running, describe};
use crate::limits;
use crate::report::{Checked, Details, Outcome, Report, Shown};

/// One thing that is seen in a run.
struct Scenario {
    name: &'static str,
    title: &'static str,
    why: &'static str,
    mend: &'static str,
    /// Which run it is seen in.
    mischief: Mischief,
    judge: fn(&Seen<'_>) -> Judged,
}

/// What one scenario looks at.
struct Seen<'a> {
    /// The run without mischief.
    plain: &'a Heard,
    /// The run of this scenario.
    heard: &'a Heard,
    patience: Duration,
}

/// How it ended, in words, and what should have been.
type Judged = (Outcome, String, String);

fn pass() -> Judged {
    (Outcome::Pass, String::new(), String::new())
}

fn seen(what: impl Into<String>) -> Judged {
    (Outcome::Pass, what.into(), String::new())
}

fn not_applicable(why: impl Into<String>) -> Judged {
    (Outcome::NotApplicable, why.into(), String::new())
}

fn fail(what: impl Into<String>, expected: impl Into<String>) -> Judged {
    (Outcome::Fail, what.into(), expected.into())
}

fn noted(what: impl Into<String>, expected: impl Into<String>) -> Judged {
    (Outcome::Note, what.into(), expected.into())
}

/// Name, title and reason of everything that is looked at, for `--list`.
pub(crate) fn list() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    let scenarios = SCENARIOS.iter();
    scenarios.map(|scenario| (scenario.name, scenario.title, scenario.why))
}

const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "frames",
        title: "sends datagrams of exactly one frame",
        why: "The mediator drops everything else, and tells nobody but its counters.",
        mend: "one datagram is: 2 bytes length (big-endian), header, 2 bytes length, message",
        mischief: Mischief::Nothing,
        judge: frames,
    },
    Scenario {
        name: "header",
        title: "names the device by both numbers, and no clients",
        why: "A device is its type and its id; an id of 0 must be written, too. clientIDs are the \
              mediator's business.",
        mend: "set deviceType and deviceID of DriverHdr, also when they are 0",
        mischief: Mischief::Nothing,
        judge: header,
    },
    Scenario {
        name: "type",
        title: "sends messages with a type",
        why: "`type` is required; drivers skip messages without.",
        mend: "set type = DATA for requests",
        mischief: Mischief::Nothing,
        judge: message_type,
    },
    Scenario {
        name: "numbers",
        title: "gives each request a number of its own",
        why: "Only the number says which question an answer belongs to; 0 marks published data.",
        mend: "count synNum up from 1 for each request",
        mischief: Mischief::Nothing,
        judge: numbers,
    },
    Scenario {
        name: "ends-well",
        title: "does its work and ends with exit code 0",
        why: "This is what the other runs are compared with.",
        mend: "its last words below may say why",
        mischief: Mischief::Nothing,
        judge: ends_well,
    },
    Scenario {
        name: "announces",
        title: "speaks to the mediator itself",
        why: "Only who has done so (a PING to 0:0) is told when a driver dies or a device is \
              unknown; others find out by waiting.",
        mend: "send a PING to device 0:0 when you connect",
        mischief: Mischief::Nothing,
        judge: announces,
    },
    Scenario {
        name: "leaves",
        title: "says good-bye",
        why: "UDP has no hang-up. Without CLIENT_DIED a driver goes on publishing to nobody, and \
              motors keep their speed until somebody notices.",
        mend: "send CLIENT_DIED to device 0:0, or UNSUBSCRIBE and CLIENT_DIED to each device, at \
               the end",
        mischief: Mischief::Nothing,
        judge: leaves,
    },
    Scenario {
        name: "duplicated",
        title: "takes an answer that comes twice",
        why: "Networks may deliver a datagram twice. The second one must not be taken for the \
              answer to the next question.",
        mend: "compare ackNum with the number of the open request; forget answers to none",
        mischief: Mischief::Duplicated,
        judge: same_as_plain,
    },
    Scenario {
        name: "reordered",
        title: "takes answers in any order, and ignores those to others",
        why: "Networks and drivers may change the order.",
        mend: "keep a table of open requests by synNum, and look ackNum up in it",
        mischief: Mischief::Reordered,
        judge: reordered,
    },
    Scenario {
        name: "junk",
        title: "ignores datagrams that make no sense",
        why: "Anybody on the network can send them.",
        mend: "catch the errors of parsing, and go on waiting for the answer",
        mischief: Mischief::Junk,
        judge: same_as_plain,
    },
    Scenario {
        name: "large",
        title: "takes messages of 12000 bytes",
        why: "A laser scan of 682 points has some 7000 bytes.",
        mend: "receive into a buffer of 65536 bytes",
        mischief: Mischief::Large(12_000),
        judge: same_as_plain,
    },
    Scenario {
        name: "largest",
        title: "takes messages of 32767 bytes",
        why: "That is the longest that may come. Clients of the original system take 16384.",
        mend: "receive into a buffer of 65536 bytes",
        mischief: Mischief::Large(32_767),
        judge: |seen| match same_as_plain(seen) {
            (Outcome::Fail, what, expected) => (Outcome::Note, what, expected),
            other => other,
        },
    },
    Scenario {
        name: "lost",
        title: "does not wait for ever for an answer that is lost",
        why: "UDP loses datagrams.",
        mend: "give each request a deadline (socket.settimeout, select, setSoTimeout)",
        mischief: Mischief::Lost,
        judge: ends_somehow,
    },
    Scenario {
        name: "late",
        title: "survives an answer that comes too late",
        why: "It must not be taken for the answer to the next question.",
        mend: "compare ackNum with the number of the open request; forget answers to none",
        mischief: Mischief::Late,
        judge: ends_somehow,
    },
    Scenario {
        name: "driver-died",
        title: "survives the news that a driver has died",
        why: "DRIVER_DIED comes instead of the answer, with its ackNum where there is one.",
        mend: "on type 5 (DRIVER_DIED) fail the open requests of that device",
        mischief: Mischief::DriverDied,
        judge: ends_somehow,
    },
    Scenario {
        name: "ping",
        title: "answers the mediator's PING",
        why: "A client that answers is noticed when it is lost, and the robot stops.",
        mend: "on type 2 (PING) from device 0:0 send PONG with ackNum = synNum to 0:0",
        mischief: Mischief::Ping,
        judge: |seen| {
            let heard = seen.heard;
            match (heard.happened, heard.ponged) {
                (false, _) => not_applicable("it was not asked: only announced clients are"),
                (true, true) => pass(),
                // It may have had no time: short commands end before the PING comes.
                (true, false) => noted("no PONG", "a PONG with ackNum 77 to device 0:0"),
            }
        },
    },
];

/// What is to be checked, and how.
#[derive(Clone, Debug)]
pub struct ClientPlan {
    /// The client: program and arguments, `{}` for the mediator's address,
    /// `{host}` and `{port}` for its parts. Empty:
    /// somebody starts it by hand, once for each run.
    pub command: Vec<String>,
    /// Where to listen.
    pub listen: SocketAddr,
    /// Whole messages of a user's own devices, which answer and publish them.
    pub answers: Vec<(Device, Vec<u8>)>,
    /// How long one run may take.
    pub patience: Duration,
    /// The names of what is wanted; all when empty.
    pub only: Vec<String>,
    /// The names of what is not.
    pub skip: Vec<String>,
    /// How messages are shown.
    pub schemas: Schemas,
}

impl ClientPlan {
    /// A plan for everything, with ten seconds for each run.
    ///
    /// # Errors
    /// The schemas in this program are broken.
    pub fn new(command: Vec<String>) -> Result<Self, Failure> {
        Ok(Self {
            command,
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            answers: vec![],
            patience: Duration::from_secs(10),
            only: vec![],
            skip: vec![],
            schemas: Schemas::load()?,
        })
    }

    fn wants(&self, name: &str) -> bool {
        let has = |names: &[String]| names.iter().any(|known| known == name);
        (self.only.is_empty() || has(&self.only)) && !has(&self.skip)
    }
}

/// Checks a client; `progress` sees each result when it is there.
///
/// # Errors
/// The client cannot be started, or the address is not to be had.
pub fn run_client(plan: &ClientPlan, progress: impl FnMut(&Checked)) -> io::Result<Report> {
    run_client_with(plan, &Running::default(), progress)
}

pub(crate) fn run_client_with(
    plan: &ClientPlan,
    running: &Running,
    mut progress: impl FnMut(&Checked),
) -> io::Result<Report> {
    let socket = UdpSocket::bind(plan.listen)?;
    let command = (!plan.command.is_empty()).then_some(plan.command.as_slice());
    let run = |mischief: Mischief| {
        if command.is_none() {
            let address = socket.local_addr()?;
            let what = SCENARIOS
                .iter()
                .find(|scenario| scenario.mischief == mischief);
            let what = what.map_or("", |scenario| scenario.name);
            note(format_args!(
                "listening on {address}: start the client now ({what})"
            ));
        }
        let fakes = Fakes::new(plan.answers.clone());
        serve(&socket, command, mischief, fakes, plan.patience, running)
    };
    let plain = run(Mischief::Nothing)?;
    let mut checks = Vec::new();
    for scenario in SCENARIOS {
        if !plan.wants(scenario.name) {
            continue;
        }
        let begun = Instant::now();
        let own = match scenario.mischief {
            Mischief::Nothing => None,
            mischief => Some(run(mischief)?),
        };
        let heard = own.as_ref().unwrap_or(&plain);
        let seen = Seen {
            plain: &plain,
            heard,
            patience: plan.patience,
        };
        let (outcome, summary, expected) = match (plain.datagrams.is_empty(), scenario.name) {
            (true, "frames") => fail(
                "it sent nothing",
                "datagrams to the address in AMBER_MEDIATOR, or where {} stands",
            ),
            (true, _) => not_applicable("it sent nothing"),
            (false, _) => (scenario.judge)(&seen),
        };
        let checked = Checked {
            name: scenario.name,
            title: scenario.title,
            outcome,
            summary,
            ms: begun.elapsed().as_millis().try_into().unwrap_or(u64::MAX),
            details: matches!(outcome, Outcome::Fail | Outcome::Note)
                .then(|| details(scenario, heard, expected, &plan.schemas)),
        };
        progress(&checked);
        checks.push(checked);
    }
    Ok(Report::new(plan.command.clone(), None, checks))
}

fn details(scenario: &Scenario, heard: &Heard, expected: String, schemas: &Schemas) -> Details {
    let shown = |bytes: &Vec<u8>| Shown {
        text: match Frame::from_datagram(bytes) {
            Ok(frame) => schemas.brief(frame.header, frame.message),
            Err(error) => format!("no frame: {error}"),
        },
        hex: spaced(bytes, limits::SHOWN_BYTES),
        bytes: bytes.len(),
    };
    let skip = heard.datagrams.len().saturating_sub(limits::SHOWN_FRAMES);
    let lines: Vec<String> = heard.stderr.lines().map(str::to_owned).collect();
    Details {
        sent: heard.sent.iter().map(shown).collect(),
        received: heard.datagrams.iter().skip(skip).map(shown).collect(),
        expected,
        why: scenario.why.into(),
        mend: scenario.mend.into(),
        stderr: lines[lines.len().saturating_sub(limits::STDERR_LINES)..].to_vec(),
    }
}

/// Header and message of each datagram that is a frame.
fn parsed(heard: &Heard) -> impl Iterator<Item = (DriverHdr, &[u8])> {
    heard.datagrams.iter().filter_map(|bytes| {
        let frame = Frame::from_datagram(bytes).ok()?;
        Some((DriverHdr::decode(frame.header).ok()?, frame.message))
    })
}

fn frames(seen: &Seen<'_>) -> Judged {
    for bytes in &seen.heard.datagrams {
        let wanted = "every datagram is one whole frame";
        match Frame::from_datagram(bytes) {
            Err(error) => {
                let hint = match crate::diagnose::noise(bytes) {
                    crate::diagnose::Mistake::HalfFrame | crate::diagnose::Mistake::Noise(_) => {
                        String::new()
                    }
                    mistake => format!(" ({})", mistake.summary()),
                };
                return fail(format!("a datagram is no frame: {error}{hint}"), wanted);
            }
            Ok(frame) if DriverHdr::decode(frame.header).is_err() => {
                return fail("a header is no DriverHdr", wanted);
            }
            Ok(_) => {}
        }
    }
    self::seen(format!("{} frames", seen.heard.datagrams.len()))
}

fn header(seen: &Seen<'_>) -> Judged {
    let wanted = "deviceType and deviceID, and no clientIDs";
    for (header, _) in parsed(seen.heard) {
        let what = match (header.device_type, header.device_id) {
            (Some(_), Some(_)) if header.client_ids.is_empty() => continue,
            (Some(_), Some(_)) => "a header has clientIDs",
            (Some(_), None) => "a header has no deviceID",
            (None, _) => "a header has no deviceType",
        };
        // Device types without an id mean the mediator to us; to the original nobody.
        return fail(what, wanted);
    }
    pass()
}

fn message_type(seen: &Seen<'_>) -> Judged {
    let wanted = "a DriverMsg with one of the seven types";
    for (_, message) in parsed(seen.heard) {
        match dummy::DriverMsg::decode(message) {
            Err(_) => return fail("a message is no DriverMsg", wanted),
            Ok(message) if message.kind().is_none() => {
                return fail("a message has no known type", wanted);
            }
            Ok(_) => {}
        }
    }
    pass()
}

fn numbers(seen: &Seen<'_>) -> Judged {
    let wanted = "different numbers above 0";
    let (mut known, mut unnumbered) = (HashSet::new(), 0);
    for (_, message) in parsed(seen.heard) {
        let Ok(message) = dummy::DriverMsg::decode(message) else {
            continue;
        };
        if !matches!(message.kind(), Some(MsgType::Data | MsgType::Ping)) {
            continue;
        }
        match message.syn_num {
            // Commands need none.
            None => unnumbered += 1,
            Some(0) => return fail("a request has synNum 0", wanted),
            Some(number) if !known.insert(number) => {
                return fail(format!("two requests have synNum {number}"), wanted);
            }
            Some(_) => {}
        }
    }
    match (known.len(), unnumbered) {
        (0, 0) => not_applicable("it asked nothing"),
        (_, 0) => pass(),
        (numbered, without) => self::seen(format!("{numbered} with a number, {without} without")),
    }
}

fn ends_well(seen: &Seen<'_>) -> Judged {
    match seen.heard.exit {
        Some(status) if status.success() => pass(),
        Some(status) => fail(describe(status), "exit code 0"),
        None => not_applicable("it goes on by itself, or was started by hand"),
    }
}

fn announces(seen: &Seen<'_>) -> Judged {
    match seen.heard.announced {
        true => pass(),
        false => noted("it does not", "a PING to device 0:0"),
    }
}

fn leaves(seen: &Seen<'_>) -> Judged {
    let heard = seen.heard;
    let wanted = "CLIENT_DIED at the end";
    match (heard.left, heard.exit) {
        (true, _) => pass(),
        (false, None) => not_applicable("it did not end by itself"),
        (false, Some(_)) if heard.subscribed && !heard.unsubscribed => {
            fail("it subscribed and neither unsubscribed nor left", wanted)
        }
        (false, Some(_)) => noted("it does not", wanted),
    }
}

/// Mischief that a client should not even notice.
fn same_as_plain(seen: &Seen<'_>) -> Judged {
    let (plain, heard) = (seen.plain, seen.heard);
    if !heard.happened {
        return not_applicable("it asked nothing that has an answer");
    }
    let as_before = "the same as in the run without mischief";
    match (plain.exit, heard.exit) {
        (None, None) => return seen_unended(plain, heard),
        (Some(_), None) => {
            let seconds = seen.patience.as_secs();
            return fail(format!("it did not end within {seconds} s"), as_before);
        }
        (None, Some(now)) => return fail(format!("it ended ({})", describe(now)), as_before),
        (Some(before), Some(now)) if before != now => {
            return fail(
                format!("{} instead of {}", describe(now), describe(before)),
                as_before,
            );
        }
        (Some(_), Some(_)) => {}
    }
    let (mut before, mut now) = (plain.stdout.lines(), heard.stdout.lines());
    loop {
        match (before.next(), now.next()) {
            (None, None) => return pass(),
            (before, now) if before == now => {}
            (before, now) => {
                let (before, now) = (before.unwrap_or("nothing"), now.unwrap_or("nothing"));
                return noted(
                    format!("it prints something else: {now:?} instead of {before:?}"),
                    format!("{as_before}, unless it prints what changes by itself"),
                );
            }
        }
    }
}

/// Programs that go on for ever are seen to go on.
fn seen_unended(plain: &Heard, heard: &Heard) -> Judged {
    match heard.datagrams.len() * 2 < plain.datagrams.len() {
        true => fail("it says less than without mischief", "that it goes on"),
        false => self::seen("it goes on"),
    }
}

fn reordered(seen: &Seen<'_>) -> Judged {
    match same_as_plain(seen) {
        (Outcome::Pass, ..) if !seen.heard.overlapped => {
            self::seen("answers to others; it never has two questions open")
        }
        other => other,
    }
}

/// Mischief after which a client may well report an error.
fn ends_somehow(seen: &Seen<'_>) -> Judged {
    let heard = seen.heard;
    if !heard.happened {
        return not_applicable("it asked nothing that has an answer, or is not announced");
    }
    let wanted = "an error or another try, and an end";
    let mut lines = heard.stderr.lines();
    let error = lines
        .clone()
        .find(|line| line.to_lowercase().starts_with("error"));
    let words = error.or(lines.next_back()).unwrap_or_default();
    match (seen.plain.exit, heard.exit) {
        (Some(_), None) => {
            let seconds = seen.patience.as_secs();
            fail(format!("it still runs after {seconds} s"), wanted)
        }
        (_, None) => self::seen("it goes on"),
        (_, Some(status)) if status.success() => self::seen("it got over it"),
        (_, Some(status)) if status.code().is_none() => fail(describe(status), wanted),
        (_, Some(_)) if words.is_empty() => noted("it ends without a word", wanted),
        (_, Some(_)) => self::seen(format!("it says: {words}")),
    }
}

/// Which device answers what: `110:0=FIELD=VALUE`, or `110:0=HEX`.
pub(crate) fn read_answer(text: &str, schemas: &Schemas) -> Result<(Device, Vec<u8>), Failure> {
    let (device, answer) = text.split_once('=').ok_or_else(|| {
        Failure::wrong(format!("'{text}' is no DEVICE=FIELD=VALUE")).hint("110:0=greeting=hi")
    })?;
    let device: Device = device
        .parse()
        .map_err(|error| Failure::wrong(format!("'{device}': {error}")))?;
    let message = match answer.contains('=') {
        true => read_fields(device.device_type, [answer], schemas)?,
        false => read_hex(answer)?,
    };
    match dummy::DriverMsg::decode(&message[..]) {
        Ok(_) => Ok((device, message)),
        Err(_) => Err(
            Failure::wrong(format!("the answer of {device} is no DriverMsg"))
                .hint("`amber decode --message HEX` shows where it is wrong"),
        ),
    }
}
