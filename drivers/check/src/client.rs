//! `amber check-client`: tests a client against a deliberately misbehaving mediator. IO.

mod fake;
mod mediator;

use std::collections::HashSet;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use amber_proto::frame::Frame;
use amber_proto::{Device, DeviceMessage, DeviceType, DriverHdr, MsgType, dummy};
use amber_reflect::{Schemas, read_fields, read_hex};
use amber_terminal::{Failure, note};
use prost::Message;

use self::fake::Fakes;
use self::mediator::{Heard, Misbehaviour, serve};
use crate::bench::{Running, describe};
use crate::limits;
use crate::report::{Checked, Details, Outcome, Report, Shown};
use crate::run::is_wanted;

/// One property of a client.
struct Scenario {
    name: &'static str,
    title: &'static str,
    why: &'static str,
    fix: &'static str,
    /// The run that shows it.
    misbehaviour: Misbehaviour,
    judge: fn(&Seen<'_>) -> Judged,
}

/// The input of one scenario.
struct Seen<'a> {
    /// The run without misbehaviour.
    plain: &'a Heard,
    /// The run of this scenario.
    heard: &'a Heard,
    patience: Duration,
}

/// The outcome, its summary, and what was expected.
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

/// Name, title and reason of each scenario, for `--list`.
pub(crate) fn list() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    let scenarios = SCENARIOS.iter();
    scenarios.map(|scenario| (scenario.name, scenario.title, scenario.why))
}

const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "frames",
        title: "sends datagrams of exactly one frame",
        why: "The mediator drops and counts all other datagrams, without a reply.",
        fix: "send one frame in each datagram: 2 bytes length (big-endian), header, 2 bytes length, \
              message",
        misbehaviour: Misbehaviour::Nothing,
        judge: frames,
    },
    Scenario {
        name: "header",
        title: "names the device by both numbers, and no clients",
        why: "A device has a type and an id; an id of 0 must also be written. Only the mediator \
              sets clientIDs.",
        fix: "set deviceType and deviceID of DriverHdr, even if they are 0",
        misbehaviour: Misbehaviour::Nothing,
        judge: header,
    },
    Scenario {
        name: "type",
        title: "sends messages with a type",
        why: "`type` is required; drivers ignore messages without it.",
        fix: "set type = DATA for requests",
        misbehaviour: Misbehaviour::Nothing,
        judge: message_type,
    },
    Scenario {
        name: "numbers",
        title: "gives each request its own number",
        why: "The number assigns an answer to its request; 0 marks published data.",
        fix: "start synNum at 1 and increase it with each request",
        misbehaviour: Misbehaviour::Nothing,
        judge: numbers,
    },
    Scenario {
        name: "ends-well",
        title: "does its work and exits with 0",
        why: "The other runs are compared with this one.",
        fix: "see the last lines of its stderr below",
        misbehaviour: Misbehaviour::Nothing,
        judge: ends_well,
    },
    Scenario {
        name: "announces",
        title: "contacts the mediator itself",
        why: "The mediator reports dead drivers and unknown devices only to clients that have \
              contacted it (with a PING to 0:0). Other clients run into a timeout.",
        fix: "send a PING to device 0:0 when you connect",
        misbehaviour: Misbehaviour::Nothing,
        judge: announces,
    },
    Scenario {
        name: "leaves",
        title: "says goodbye",
        why: "UDP has no connections. Without CLIENT_DIED, a driver publishes to a client that has \
              left, and motors keep their speed until the mediator notices.",
        fix: "at the end, send CLIENT_DIED to device 0:0, or UNSUBSCRIBE and CLIENT_DIED to each device",
        misbehaviour: Misbehaviour::Nothing,
        judge: leaves,
    },
    Scenario {
        name: "duplicated",
        title: "accepts an answer that comes twice",
        why: "Networks may deliver a datagram twice. The second one is not the answer to the next \
              request.",
        fix: "compare ackNum with the synNum of the open request; ignore other answers",
        misbehaviour: Misbehaviour::Duplicated,
        judge: same_as_plain,
    },
    Scenario {
        name: "reordered",
        title: "accepts answers in any order, and ignores foreign ones",
        why: "Networks and drivers may change the order.",
        fix: "keep a table of open requests by synNum, and look up ackNum in it",
        misbehaviour: Misbehaviour::Reordered,
        judge: reordered,
    },
    Scenario {
        name: "junk",
        title: "ignores invalid datagrams",
        why: "Any program on the network can send them.",
        fix: "catch parse errors, and continue to wait for the answer",
        misbehaviour: Misbehaviour::Junk,
        judge: same_as_plain,
    },
    Scenario {
        name: "large",
        title: "accepts messages of 12000 bytes",
        why: "A laser scan of 682 points has about 7000 bytes.",
        fix: "receive into a buffer of 65536 bytes",
        misbehaviour: Misbehaviour::Large(12_000),
        judge: same_as_plain,
    },
    Scenario {
        name: "largest",
        title: "accepts messages of 32767 bytes",
        why: "This is the maximum length. Clients of the original system accept 16384.",
        fix: "receive into a buffer of 65536 bytes",
        misbehaviour: Misbehaviour::Large(32_767),
        judge: |seen| match same_as_plain(seen) {
            (Outcome::Fail, what, expected) => (Outcome::Note, what, expected),
            other => other,
        },
    },
    Scenario {
        name: "lost",
        title: "does not wait forever for a lost answer",
        why: "UDP loses datagrams.",
        fix: "give each request a deadline (socket.settimeout, select, setSoTimeout)",
        misbehaviour: Misbehaviour::Lost,
        judge: ends_somehow,
    },
    Scenario {
        name: "late",
        title: "survives a late answer",
        why: "A late answer is not the answer to the next request.",
        fix: "compare ackNum with the synNum of the open request; ignore other answers",
        misbehaviour: Misbehaviour::Late,
        judge: ends_somehow,
    },
    Scenario {
        name: "driver-died",
        title: "survives the end of a driver",
        why: "The mediator sends DRIVER_DIED instead of the answer, with the ackNum of the request if \
              there is one.",
        fix: "on type 5 (DRIVER_DIED), fail the open requests to that device",
        misbehaviour: Misbehaviour::DriverDied,
        judge: ends_somehow,
    },
    Scenario {
        name: "ping",
        title: "answers the PING of the mediator",
        why: "If a client answers PINGs, the mediator notices when it is lost, and the robot stops.",
        fix: "on type 2 (PING) from device 0:0, send PONG with ackNum = synNum to 0:0",
        misbehaviour: Misbehaviour::Ping,
        judge: |seen| {
            let heard = seen.heard;
            match (heard.happened, heard.ponged) {
                (false, _) => {
                    not_applicable("no PING was sent: the client did not contact the mediator")
                }
                (true, true) => pass(),
                // A short command may end before the PING arrives.
                (true, false) => noted("no PONG", "a PONG with ackNum 77 to device 0:0"),
            }
        },
    },
];

/// The client to check, and how.
#[derive(Clone, Debug)]
pub struct ClientPlan {
    /// The client: program and arguments, `{}` for the mediator's address,
    /// `{host}` and `{port}` for its parts. If empty, the user starts the client
    /// once for each run.
    pub command: Vec<String>,
    /// The address to listen on.
    pub listen: SocketAddr,
    /// Messages that a user's own devices answer and publish.
    pub answers: Vec<(Device, Vec<u8>)>,
    /// The time limit of one run.
    pub patience: Duration,
    /// The names of the scenarios to run; all if empty.
    pub only: Vec<String>,
    /// The names of the scenarios to skip.
    pub skip: Vec<String>,
    /// The messages of the devices.
    pub schemas: Schemas,
}

impl ClientPlan {
    /// A plan with all scenarios and ten seconds for each run.
    pub fn new(command: Vec<String>) -> Self {
        Self {
            command,
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            answers: vec![],
            patience: Duration::from_secs(10),
            only: vec![],
            skip: vec![],
            schemas: Schemas::built_in(),
        }
    }
}

/// Checks a client; `progress` sees each result at once.
///
/// # Errors
/// The client cannot be started, or the address is not available.
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
    let run = |misbehaviour: Misbehaviour| {
        if command.is_none() {
            let address = socket.local_addr()?;
            let what = SCENARIOS
                .iter()
                .find(|scenario| scenario.misbehaviour == misbehaviour);
            let what = what.map_or("", |scenario| scenario.name);
            note(format_args!(
                "listening on {address}: start the client now ({what})"
            ));
        }
        let fakes = Fakes::new(plan.schemas.clone(), plan.answers.clone());
        serve(
            &socket,
            command,
            misbehaviour,
            fakes,
            plan.patience,
            running,
        )
    };
    let plain = run(Misbehaviour::Nothing)?;
    let mut checks = Vec::new();
    for scenario in SCENARIOS {
        if !is_wanted(scenario.name, &plan.only, &plan.skip) {
            continue;
        }
        let begun = Instant::now();
        let own = match scenario.misbehaviour {
            Misbehaviour::Nothing => None,
            misbehaviour => Some(run(misbehaviour)?),
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
                "datagrams to the address in AMBER_MEDIATOR, or in place of {}",
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
    let shown = |bytes: &Vec<u8>| {
        let text = match Frame::from_datagram(bytes) {
            Ok(frame) => schemas.brief(frame.header, frame.message),
            Err(error) => format!("not a frame: {error}"),
        };
        Shown::new(bytes, text)
    };
    let skip = heard.datagrams.len().saturating_sub(limits::SHOWN_FRAMES);
    let lines: Vec<String> = heard.stderr.lines().map(str::to_owned).collect();
    Details {
        sent: heard.sent.iter().map(shown).collect(),
        received: heard.datagrams.iter().skip(skip).map(shown).collect(),
        expected,
        why: scenario.why.into(),
        fix: scenario.fix.into(),
        stderr: lines[lines.len().saturating_sub(limits::STDERR_LINES)..].to_vec(),
    }
}

/// Header and message of each valid datagram.
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
                return fail(format!("a datagram is not a frame: {error}{hint}"), wanted);
            }
            Ok(frame) if DriverHdr::decode(frame.header).is_err() => {
                return fail("a header is not a DriverHdr", wanted);
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
        // Our mediator treats this frame as its own, the original drops it.
        return fail(what, wanted);
    }
    pass()
}

fn message_type(seen: &Seen<'_>) -> Judged {
    let wanted = "a DriverMsg with one of the seven types";
    for (_, message) in parsed(seen.heard) {
        match dummy::DriverMsg::decode(message) {
            Err(_) => return fail("a message is not a DriverMsg", wanted),
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
            // Commands need no number.
            None => unnumbered += 1,
            Some(0) => return fail("a request has synNum 0", wanted),
            Some(number) if !known.insert(number) => {
                return fail(format!("two requests have synNum {number}"), wanted);
            }
            Some(_) => {}
        }
    }
    match (known.len(), unnumbered) {
        (0, 0) => not_applicable("it sent no request"),
        (_, 0) => pass(),
        (numbered, without) => self::seen(format!("{numbered} with a number, {without} without")),
    }
}

fn ends_well(seen: &Seen<'_>) -> Judged {
    match seen.heard.exit {
        Some(status) if status.success() => pass(),
        Some(status) => fail(describe(status), "exit code 0"),
        None => not_applicable("it does not end by itself, or you started it"),
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
        (false, Some(_)) if heard.subscribed && !heard.unsubscribed => fail(
            "it subscribed, but sent neither UNSUBSCRIBE nor CLIENT_DIED",
            wanted,
        ),
        (false, Some(_)) => noted("it does not", wanted),
    }
}

/// Misbehaviour that must not change the result of a client.
fn same_as_plain(seen: &Seen<'_>) -> Judged {
    let (plain, heard) = (seen.plain, seen.heard);
    if !heard.happened {
        return not_applicable("it sent no request that has an answer");
    }
    let as_before = "the same as in the normal run";
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
                    format!("its output differs: {now:?} instead of {before:?}"),
                    format!("{as_before}, except for values that change by themselves"),
                );
            }
        }
    }
}

/// Judges programs that do not end by themselves.
fn seen_unended(plain: &Heard, heard: &Heard) -> Judged {
    match heard.datagrams.len() * 2 < plain.datagrams.len() {
        true => fail("it sends less than in the normal run", "as many datagrams"),
        false => self::seen("it keeps running"),
    }
}

fn reordered(seen: &Seen<'_>) -> Judged {
    match same_as_plain(seen) {
        (Outcome::Pass, ..) if !seen.heard.overlapped => {
            self::seen("foreign answers; it never has two requests open")
        }
        other => other,
    }
}

/// Misbehaviour after which a client may report an error.
fn ends_somehow(seen: &Seen<'_>) -> Judged {
    let heard = seen.heard;
    if !heard.happened {
        return not_applicable(
            "it sent no request that has an answer, or did not contact the mediator",
        );
    }
    let wanted = "an error message or a retry, and then the end of the program";
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
        (_, None) => self::seen("it keeps running"),
        (_, Some(status)) if status.success() => self::seen("it exits with 0"),
        (_, Some(status)) if status.code().is_none() => fail(describe(status), wanted),
        (_, Some(_)) if words.is_empty() => noted("it ends without an error message", wanted),
        (_, Some(_)) => self::seen(format!("it reports: {words}")),
    }
}

/// Reads a DATA message: `FIELD=VALUE`, or hex.
pub(crate) fn read_message(
    device_type: DeviceType,
    text: &str,
    schemas: &Schemas,
) -> Result<Vec<u8>, Failure> {
    Ok(match text.contains('=') {
        true => read_fields(device_type, [text], schemas)?,
        false => read_hex(text)?,
    })
}

/// Reads a device and its answer: `110:0=FIELD=VALUE`, or `110:0=HEX`.
pub(crate) fn read_answer(text: &str, schemas: &Schemas) -> Result<(Device, Vec<u8>), Failure> {
    let (device, answer) = text.split_once('=').ok_or_else(|| {
        Failure::wrong(format!("'{text}' is not DEVICE=FIELD=VALUE"))
            .hint("an example is 110:0=greeting=hi")
    })?;
    let device: Device = device
        .parse()
        .map_err(|error| Failure::wrong(format!("'{device}': {error}")))?;
    let message = read_message(device.device_type, answer, schemas)?;
    match dummy::DriverMsg::decode(&message[..]) {
        Ok(_) => Ok((device, message)),
        Err(_) => Err(
            Failure::wrong(format!("the answer of {device} is not a DriverMsg"))
                .hint("`amber decode --message HEX` shows the invalid byte"),
        ),
    }
}
