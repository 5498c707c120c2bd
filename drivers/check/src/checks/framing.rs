//! Frames in pieces and in groups, as a pipe delivers them. IO.

use std::collections::BTreeMap;
use std::thread;
use std::time::Duration;

use super::answers::{CLIENT, filled};
use crate::bench::frame;
use crate::diagnose::{Mistake, judge, noise};
use crate::run::{Checking, Finding, Run, Verdict, expected, from_clients};

pub(super) fn bytewise(run: &mut Run<'_>) -> Checking {
    let probe = run.probe();
    let one = frame(&from_clients(CLIENT), &probe.message(run.syn())).len();
    // Byte by byte; in two pieces, cut at every byte; and with the first bytes of
    // the next frame, up to every byte.
    in_pieces(run, 1, &vec![1; one])?;
    for at in 1..one {
        in_pieces(run, 1, &[at, one - at])?;
        in_pieces(run, 2, &[one + at, one - at])?;
    }
    Ok(Verdict::Pass)
}

/// Sends this many requests in pieces of these lengths.
fn in_pieces(run: &mut Run<'_>, questions: usize, pieces: &[usize]) -> Result<(), Finding> {
    let probe = run.probe();
    let (mut numbers, mut bytes) = (Vec::new(), Vec::new());
    for _ in 0..questions {
        let syn = run.syn();
        numbers.push(syn);
        bytes.extend(frame(&from_clients(CLIENT), &probe.message(syn)));
    }
    run.bench()?
        .log
        .push(crate::bench::Logged::Sent(bytes.clone()));
    let mut rest = &bytes[..];
    for piece in pieces {
        let (now, later) = rest.split_at(rest.len().min(*piece));
        run.write(now)?;
        // Long enough for a waiting reader to get this piece alone.
        thread::sleep(Duration::from_millis(3));
        rest = later;
    }
    run.write(rest)?;
    for syn in numbers {
        run.expect(CLIENT, &probe, syn).map_err(|finding| {
            let how = match questions {
                1 => "a frame in pieces",
                _ => "a frame together with a part of the next frame",
            };
            finding.during(how)
        })?;
    }
    Ok(())
}

pub(super) fn many_at_once(run: &mut Run<'_>) -> Checking {
    const MANY: u32 = 50;
    let probe = run.probe();
    let first = run.syns(MANY);
    let mut bytes = Vec::new();
    for i in 0..MANY {
        bytes.extend(frame(&from_clients(CLIENT), &probe.message(first + i)));
    }
    let last = frame(&from_clients(CLIENT), &probe.message(first + MANY - 1));
    run.bench()?.log.push(crate::bench::Logged::Sent(last));
    run.write(&bytes)?;

    let mut answers = BTreeMap::new();
    while answers.len() < MANY as usize {
        let Some(packet) = run.receive(run.plan.timeout)? else {
            let what = format!("{} of {MANY} frames were answered", answers.len());
            return Err(Finding::new(what, format!("{MANY} answers")));
        };
        count(&packet, &mut answers, first, MANY, run)?;
    }
    for packet in run.fence()? {
        count(&packet, &mut answers, first, MANY, run)?;
    }
    Ok(Verdict::Pass)
}

fn count(
    packet: &amber_proto::Packet,
    answers: &mut BTreeMap<u32, u32>,
    first: u32,
    many: u32,
    run: &Run<'_>,
) -> Result<(), Finding> {
    let kind = run.probe().answer();
    let fits = |syn: &u32| judge(packet, CLIENT, kind, Some(*syn)).is_ok();
    let wanted = format!("one {} for each of {many} frames", kind.as_str_name());
    let Some(syn) = (first..first + many).find(fits) else {
        let mistake = judge(packet, CLIENT, kind, Some(first)).err();
        let mistake = mistake.unwrap_or(Mistake::NoAck);
        return Err(Finding::of(&mistake, wanted));
    };
    let times = answers.entry(syn).or_default();
    *times += 1;
    match *times {
        1 => Ok(()),
        _ => Err(Finding::of(&Mistake::Twice, wanted)),
    }
}

pub(super) fn sizes(run: &mut Run<'_>) -> Checking {
    let probe = run.probe();
    let sizes = [
        100, 127, 128, 200, 255, 256, 300, 1000, 4096, 8192, 16_384, 32_767,
    ];
    let mut good = 0;
    for size in sizes {
        let syn = run.syn();
        run.send(CLIENT, &filled(&probe.message(syn), size))?;
        run.expect(CLIENT, &probe, syn).map_err(|finding| {
            let cause = match size {
                ..=128 => " (a byte read as signed?)",
                129..=256 => " (a length of one byte?)",
                _ => {
                    " (a buffer of fixed size, or a read() that returns only part of the message?)"
                }
            };
            finding.during(format_args!(
                "a message of {size} bytes{cause}; {good} bytes work"
            ))
        })?;
        good = size;
    }
    Ok(Verdict::Pass)
}

pub(super) fn binary(run: &mut Run<'_>) -> Checking {
    let probe = run.probe();
    for syn in [10, 13, 26, 4, 3, 127, 128, 255] {
        let asked = run.ask_with(CLIENT, &probe, syn);
        asked.map_err(|finding| translated(run, finding))?;
    }
    for id in [10, 13, 26] {
        let asked = run.ask(&[id], &probe);
        asked.map_err(|finding| translated(run, finding))?;
    }
    Ok(Verdict::Pass)
}

/// Replaces the finding if the driver translates line ends.
fn translated(run: &mut Run<'_>, finding: Finding) -> Finding {
    let Ok(bench) = run.bench() else {
        return finding;
    };
    match noise(bench.recent()) {
        mistake @ Mistake::TranslatesNewlines => Finding::of(&mistake, finding.expected),
        _ => finding,
    }
}

pub(super) fn numbers(run: &mut Run<'_>) -> Checking {
    let probe = run.probe();
    for syn in [1, 300, 70_000, i32::MAX as u32, 1 << 31, u32::MAX] {
        run.ask_with(CLIENT, &probe, syn)?;
    }
    for id in [1, 127, 128, 300, 70_000, i32::MAX] {
        let ids = [id];
        let syn = run.syn();
        run.ask_with(&ids, &probe, syn).map_err(|finding| Finding {
            expected: expected(&ids, probe.answer(), Some(syn)),
            ..finding
        })?;
    }
    Ok(Verdict::Pass)
}
