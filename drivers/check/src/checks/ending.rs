//! Full pipes, and the end of a driver. IO.

use std::thread;

use nix::sys::signal::Signal;

use super::answers::CLIENT;
use crate::bench::{Bench, describe, frame};
use crate::limits;
use crate::run::{Checking, Finding, ONLY_FRAMES, READS, Run, Verdict, from_clients};

pub(super) fn slow_reader(run: &mut Run<'_>) -> Checking {
    flood(run).map_err(|finding| Finding {
        // The usual fix for such bytes does not apply here.
        fix: None,
        ..finding.during("after its stdout was full")
    })
}

fn flood(run: &mut Run<'_>) -> Checking {
    let probe = run.probe();
    let first = run.syns(limits::FLOOD_FRAMES);
    let mut bytes = Vec::new();
    for i in 0..limits::FLOOD_FRAMES {
        bytes.extend(frame(&from_clients(CLIENT), &probe.message(first + i)));
    }
    let wait = run.plan.timeout;
    let bench = run.bench()?;
    bench.shrink_pipes();
    let written = bench.write_without_reading(&bytes, limits::FLOOD_WAIT);
    // From here on, stdout is read again, and the driver gets the rest of the cut frame.
    let (asked, end) = whole_frames(&bytes, written);
    let sent = bench.write(&bytes[written..end], wait * 4);
    sent.map_err(|trouble| {
        run.trouble(
            trouble,
            "the driver continues when its stdout is read again",
        )
    })?;
    let mut answers = 0;
    while answers < asked && run.receive(wait)?.is_some() {
        answers += 1;
        // The report shows only a few frames.
        run.bench()?.log.truncate(limits::SHOWN_FRAMES);
    }
    run.ask(CLIENT, &probe)?;
    run.stop();
    // The driver may drop answers that it cannot write.
    match answers < asked {
        false => Ok(Verdict::Pass),
        true => Ok(Verdict::Note(format!(
            "{answers} of {asked} requests were answered; the driver drops answers that it cannot write"
        ))),
    }
}

/// How many frames cover the `written` bytes, and where the last one ends.
fn whole_frames(bytes: &[u8], written: usize) -> (usize, usize) {
    let (mut count, mut at) = (0, 0);
    while at < written {
        let Some(frame) = amber_proto::Frame::from_stream(&bytes[at..]) else {
            break;
        };
        at += frame.wire_len();
        count += 1;
    }
    (count, at)
}

pub(super) fn stdin_end(run: &mut Run<'_>) -> Checking {
    run.ask_if_possible(CLIENT)?;
    run.bench()?.close_stdin();
    ended(run, "stdin has ended")
}

pub(super) fn stdin_cut(run: &mut Run<'_>) -> Checking {
    run.restart()?;
    run.ask_if_possible(CLIENT)?;
    let wait = run.plan.timeout;
    let bytes = frame(&from_clients(CLIENT), b"\x10\x02\x18\x07");
    let bench = run.bench()?;
    let written = bench.write(&bytes[..bytes.len() - 2], wait);
    bench.close_stdin();
    written.map_err(|trouble| run.trouble(trouble, READS))?;
    ended(run, "stdin has ended within a frame")
}

fn ended(run: &mut Run<'_>, when: &str) -> Checking {
    let wait = run.plan.timeout;
    let wanted = "the process ends with exit code 0";
    let bench = run.bench()?;
    let Some(status) = bench.wait_end(wait) else {
        let seconds = wait.as_secs_f32();
        let what = format!("the driver still runs {seconds} s after {when}");
        return Err(match spins(bench) {
            true => Finding::new(what + ", and keeps a CPU core busy", wanted)
                .fix("leave the loop when read() returns nothing: that is the end of stdin"),
            false => Finding::new(what, wanted),
        });
    };
    bench.rest();
    if !bench.leftover().is_empty() {
        let (rest, recent) = (bench.leftover().to_vec(), bench.recent().to_vec());
        let trouble = crate::bench::Trouble::Noise { rest, recent };
        return Err(run.trouble(trouble, ONLY_FRAMES));
    }
    // The next check starts a new driver.
    match status.success() {
        true => {
            run.stop();
            Ok(Verdict::Pass)
        }
        false => Err(Finding::new(describe(status), wanted)
            .fix("return 0 from main: the end of stdin is not an error")
            .note()),
    }
}

/// Whether a driver that should have ended keeps a CPU core busy.
fn spins(bench: &Bench) -> bool {
    let before = bench.busy_time();
    thread::sleep(limits::SPIN_WATCH);
    match (before, bench.busy_time()) {
        // The system counts a wait for a processor when it is over.
        (Some(before), Some(after)) => after.saturating_sub(before) > limits::SPIN_WATCH / 2,
        _ => false,
    }
}

pub(super) fn sigterm(run: &mut Run<'_>) -> Checking {
    run.restart()?;
    if !run.ask_if_possible(CLIENT)? {
        // A driver without answers gets some time to start.
        run.receive(limits::FLOOD_WAIT)?;
    }
    let wait = run.plan.timeout;
    let bench = run.bench()?;
    bench.signal(Signal::SIGTERM);
    let ended = bench.wait_end(wait).is_some();
    if ended {
        run.stop();
        return Ok(Verdict::Pass);
    }
    Err(Finding::new(
        format!(
            "the driver still runs {} s after SIGTERM",
            wait.as_secs_f32()
        ),
        "the process ends",
    ))
}
