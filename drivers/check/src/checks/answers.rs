//! Starting, and answering requests. IO.

use std::time::Duration;

use amber_proto::pieces::Ability;
use amber_proto::{DriverHdr, MsgType};
use amber_schema::{Harmless, Method};

use crate::bench::{Trouble, frame};
use crate::devices::{Answer, Ask};
use crate::diagnose::{Mistake, judge, noise};
use crate::run::{
    Checking, Finding, ONLY_FRAMES, Probe, Run, Verdict, expected, from_clients, with_syn,
};
use crate::{limits, plausible};

/// The client in most checks.
pub(super) const CLIENT: &[i32] = &[5];

const PING: &[u8] = b"\x10\x02";

pub(crate) fn start(run: &mut Run<'_>) -> Checking {
    // The driver has time to print until it answers, or for a while.
    let ping = with_syn(PING, run.syn());
    let wait = run.plan.timeout.min(Duration::from_secs(2));
    // The check 'ping' judges the answer.
    let bench = run.bench()?;
    let sent = bench.send(&from_clients(CLIENT), &ping, wait);
    let received = sent.and_then(|()| bench.receive(wait));
    if let Err(Trouble::Ended(how)) = received {
        run.life = Some("start");
        let what = format!("the driver exited right after its start ({how})");
        return Err(Finding::new(what, "a process that waits for frames")
            .fix("see the last lines of its stderr below, or run the command by hand"));
    }
    let received = received.map_err(|trouble| run.trouble(trouble, ONLY_FRAMES))?;
    if received.is_some() {
        run.receive(limits::QUIET)?;
    }
    Ok(Verdict::Pass)
}

/// Looks for a message that the driver answers: a PING, or else a request.
pub(crate) fn ping(run: &mut Run<'_>) -> Checking {
    let syn = run.syn();
    let wanted = expected(CLIENT, MsgType::Pong, Some(syn));
    run.life = Some("ping");
    run.send(CLIENT, &with_syn(PING, syn))?;
    if let Some(packet) = run.receive(run.plan.timeout)? {
        judge(&packet, CLIENT, MsgType::Pong, Some(syn))
            .map_err(|mistake| run.mistaken(mistake, wanted.clone()))?;
        if run
            .receive(limits::QUIET)?
            .is_some_and(|second| second == packet)
        {
            return Err(Finding::of(&Mistake::Twice, wanted));
        }
        (run.probe, run.life) = (Some(Probe::Ping), None);
        return Ok(Verdict::Pass);
    }
    // The driver may answer requests, but not PINGs.
    let silent = format!("no answer within {} s", run.plan.timeout.as_secs_f32());
    let asks = run.asks().into_iter();
    for ask in asks.filter(|ask| ask.answer != Answer::Nothing) {
        let probe = Probe::Request(ask.message);
        let syn = run.syn();
        run.send(CLIENT, &probe.message(syn))?;
        let Some(packet) = run.receive(run.plan.timeout)? else {
            continue;
        };
        if let Err(mistake) = judge(&packet, CLIENT, MsgType::Data, Some(syn)) {
            run.life = Some("requests");
            let wanted = expected(CLIENT, MsgType::Data, Some(syn));
            return Err(Finding::of(&mistake, wanted));
        }
        (run.probe, run.life) = (Some(probe), None);
        return Ok(Verdict::Note(format!(
            "{silent}, but '{}' is answered: the mediator cannot notice when the driver hangs",
            ask.name
        )));
    }
    let log = run.bench()?.log.clone();
    let mistake = why_silent(run, syn)?;
    // The report shows the message without an answer.
    run.bench()?.log = log;
    if let Some(mistake) = mistake {
        return Err(Finding::of(&mistake, wanted));
    }
    Err(Finding::new(silent, wanted).fix(
        "read stdin, flush stdout after each frame, and write lengths as two bytes, high byte \
         first. For a driver of the original system that does not answer PINGs, add `--as hokuyo` \
         (its device type) or `--request HEX`.",
    ))
}

/// Checks for two mistakes that make an otherwise correct driver silent.
fn why_silent(run: &mut Run<'_>, syn: u32) -> Result<Option<Mistake>, Finding> {
    // A frame whose lengths are the same both ways: 0101.
    run.restart()?;
    let header = filled(&[0x1a, 0x01, 0x05], 0x101);
    let message = filled(&with_syn(PING, syn), 0x101);
    let bytes = [&[1, 1], &header[..], &[1, 1], &message[..]].concat();
    let wait = run.plan.timeout;
    let bench = run.bench()?;
    if bench.write(&bytes, wait).is_ok() {
        // The lengths of the answer may also be swapped.
        let received = bench.receive(wait);
        if !matches!(received, Ok(None)) {
            return Ok(Some(Mistake::ReadsLittleEndian));
        }
    }
    // The driver may write a buffered answer when it ends.
    let bench = run.restart()?;
    let bytes = frame(&from_clients(CLIENT), &with_syn(PING, syn));
    if bench.write(&bytes, wait).is_err() {
        return Ok(None);
    }
    // Gives the driver time to read the frame.
    let _ = bench.receive(Duration::from_millis(500));
    bench.close_stdin();
    bench.wait_end(wait);
    let answers = bench.rest();
    if !answers.is_empty() {
        return Ok(Some(Mistake::Buffers));
    }
    Ok(match noise(bench.recent()) {
        Mistake::HalfFrame | Mistake::Noise(_) => None,
        mistake => Some(mistake),
    })
}

/// A message of exactly this length, padded with an unknown field.
pub(crate) fn filled(message: &[u8], length: usize) -> Vec<u8> {
    let mut out = message.to_vec();
    // Field 150, bytes: two bytes of tag, one to three of length.
    let rest = length.saturating_sub(out.len());
    let body = match rest {
        0..3 => return out,
        3..=130 => rest - 3,
        131..=16_387 => rest - 4,
        _ => rest - 5,
    };
    out.extend([0xb2, 0x09]);
    let mut left = body;
    // For 131 and 16387, the length of the body takes one byte more.
    let bytes = match rest {
        0..=130 => 1,
        131..=16_387 => 2,
        _ => 3,
    };
    for i in 0..bytes {
        let more = if i + 1 < bytes { 0x80 } else { 0 };
        out.push((left & 0x7f) as u8 | more);
        left >>= 7;
    }
    out.resize(out.len() + body, b'.');
    out
}

pub(crate) fn requests(run: &mut Run<'_>) -> Checking {
    let asks = run.asks();
    if asks.is_empty() {
        return Ok(Verdict::NotApplicable(match &run.plan.interface {
            None => "no known requests: add `--as hokuyo` or `--request HEX`".into(),
            Some(interface) => format!(
                "the description of {} has no request with `reads` or `harmless`: add one of them, \
                 or `--request FIELD=VALUE`",
                interface.name
            ),
        }));
    }
    let may_be_silent = run.plan.interface.is_some() && !run.always_answers();
    let mut answered = Vec::new();
    for ask in &asks {
        if ask.answer == Answer::Nothing {
            let syn = run.syn();
            run.send(CLIENT, &with_syn(&ask.message, syn))?;
            run.expect_silence(&format!("'{}'", ask.name))?;
        } else if !request(run, ask, may_be_silent)? {
            return Ok(Verdict::Note(format!(
                "no answer to '{}', which is correct if the device is not connected",
                ask.name
            )));
        }
        answered.push(ask.name.clone());
    }
    let not_asked = not_asked(run, &asks);
    Ok(Verdict::Seen(match not_asked.is_empty() {
        true => answered.join(", "),
        false => format!(
            "{}; not sent because they may move or change something: {}",
            answered.join(", "),
            not_asked.join(", ")
        ),
    }))
}

/// The requests of the description that this program does not send on its own.
fn not_asked<'a>(run: &Run<'a>, asks: &[Ask]) -> Vec<&'a str> {
    let is_asked = |method: &Method| {
        let of = |ask: &Ask| matches!(&ask.answer, Answer::Of(of) if of.name == method.name);
        asks.iter().any(of)
    };
    let interface = run.plan.interface.iter();
    let methods = interface.flat_map(|interface| &interface.methods);
    let unknown = methods.filter(|method| method.harmless == Harmless::Unknown);
    let unknown = unknown.filter(|method| !is_asked(method));
    unknown.map(|method| method.command.as_str()).collect()
}

/// Whether the driver answered.
fn request(run: &mut Run<'_>, ask: &Ask, may_be_silent: bool) -> Result<bool, Finding> {
    let syn = run.syn();
    let mut wanted = expected(CLIENT, MsgType::Data, Some(syn));
    // As the SDKs do: the answer may be longer than a frame.
    let joins = Ability::of_client(false).to_append();
    run.send(CLIENT, &[&with_syn(&ask.message, syn)[..], &joins].concat())?;
    let Some(packet) = run.receive_joined(run.plan.timeout)? else {
        if may_be_silent {
            return Ok(false);
        }
        let seconds = run.plan.timeout.as_secs_f32();
        let what = format!("no answer to '{}' within {seconds} s", ask.name);
        return Err(Finding::new(what, wanted));
    };
    if may_be_silent && judge(&packet, CLIENT, MsgType::DriverDied, Some(syn)).is_ok() {
        return Ok(false);
    }
    judge(&packet, CLIENT, MsgType::Data, Some(syn))
        .map_err(|mistake| Finding::of(&mistake, wanted.clone()))?;
    let which = format!("the answer to '{}'", ask.name);
    run.plausible(&which, &packet.message, |_, _, _| Ok(()))?;
    if let Answer::Of(method) = &ask.answer {
        let values = run.plan.schemas.values(&packet.message);
        let values = values.unwrap_or_default();
        let (needed, missing) = plausible::required(method, &run.plan.schemas, &values);
        if !missing.is_empty() {
            wanted += &format!(", with {}", needed.join(" and "));
            let what = match missing == needed {
                true => format!("{which} has none of its fields"),
                false => format!("{which} has no {}", missing.join(" and no ")),
            };
            return Err(Finding::new(what, wanted).fix(
                "set the fields as extensions of DriverMsg, with the numbers in the device's .proto",
            ));
        }
    }
    Ok(true)
}

pub(crate) fn no_number(run: &mut Run<'_>) -> Checking {
    let mut note = None;
    if run.probe() == Probe::Ping {
        let wanted = expected(CLIENT, MsgType::Pong, None);
        run.send(CLIENT, PING)?;
        match run.receive(run.plan.timeout)? {
            None => note = Some("no answer to a PING without synNum".to_owned()),
            Some(packet) => judge(&packet, CLIENT, MsgType::Pong, None)
                .map_err(|mistake| Finding::of(&mistake, wanted))?,
        }
    }
    for ask in run.asks() {
        run.send(CLIENT, &ask.message)?;
    }
    for packet in run.fence()? {
        let wanted = "no answer, or one without ackNum";
        judge(&packet, CLIENT, MsgType::Data, None)
            .map_err(|mistake| Finding::of(&mistake, wanted))?;
        note =
            Some("it answers a request without synNum, and no caller can match that answer".into());
    }
    Ok(note.map_or(Verdict::Pass, Verdict::Note))
}

pub(crate) fn mediator_ping(run: &mut Run<'_>) -> Checking {
    if run.probe() != Probe::Ping {
        return Ok(Verdict::NotApplicable("it does not answer PINGs".into()));
    }
    let syn = run.syn();
    let wanted = expected(&[], MsgType::Pong, Some(syn));
    run.send_with(&DriverHdr::default(), &with_syn(PING, syn))?;
    match run.receive(run.plan.timeout)? {
        None => Err(Finding::new("no answer", wanted)),
        Some(packet) => match judge(&packet, &[], MsgType::Pong, Some(syn)) {
            Ok(()) => Ok(Verdict::Pass),
            Err(mistake) => Err(Finding::of(&mistake, wanted)),
        },
    }
}

#[cfg(test)]
mod tests {
    use amber_proto::{DriverHdr, dummy};
    use prost::Message;

    use super::*;

    #[test]
    fn messages_have_the_length_that_was_asked_for() {
        let ping = with_syn(PING, 7);
        for length in [
            20, 127, 128, 129, 134, 135, 136, 200, 257, 16_390, 16_391, 16_392, 32_767,
        ] {
            let message = filled(&ping, length);
            assert_eq!(message.len(), length);
            assert_eq!(
                dummy::DriverMsg::decode(&message[..]).unwrap().syn_num,
                Some(7)
            );
        }
        let header = filled(&[0x1a, 0x01, 0x05], 0x101);
        assert_eq!(DriverHdr::decode(&header[..]).unwrap().client_ids, [5]);
    }
}
