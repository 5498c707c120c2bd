//! Publications and their subscribers. IO.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use amber_proto::{MsgType, Packet, dummy};
use prost::Message;

use crate::limits;
use crate::run::{Checking, Finding, Run, Verdict};

const SUBSCRIBE: &[u8] = b"\x10\x06";
const UNSUBSCRIBE: &[u8] = b"\x10\x07";
const CLIENT_DIED: &[u8] = b"\x10\x04";

pub(super) fn subscribe(run: &mut Run<'_>) -> Checking {
    let (a, b) = (31, 32);
    let Some(first) = begin(run, &[a])? else {
        return nothing_published(run);
    };
    well_formed(run, &first, &[a])?;
    // Clients repeat SUBSCRIBE, because UDP loses datagrams.
    run.send(&[a], SUBSCRIBE)?;
    run.fence()?;
    match run.receive(run.plan.timeout.max(limits::PUBLISHED))? {
        Some(packet) => well_formed(run, &packet, &[a])?,
        None => {
            return Err(Finding::new(
                format!("client {a} gets no data after a second SUBSCRIBE"),
                format!("data for client {a}, as before"),
            ));
        }
    }
    // Two subscribers get the data, in one frame or in two.
    run.send(&[b], SUBSCRIBE)?;
    wait_for_both(run, a, b)?;
    // One unsubscribes.
    run.send(&[a], UNSUBSCRIBE)?;
    run.fence()?;
    let heard = listen_for(run, b)?;
    if heard.contains(&a) {
        return Err(Finding::new(
            format!("client {a} gets data after UNSUBSCRIBE (it had subscribed twice)"),
            format!("data for client {b} only"),
        )
        .fix("UNSUBSCRIBE removes the client, however often it has subscribed: keep a set"));
    }
    if !heard.contains(&b) {
        return Err(Finding::new(
            format!("client {b} gets no data after client {a} unsubscribed"),
            format!("data for client {b}"),
        ));
    }
    run.send(&[b], UNSUBSCRIBE)?;
    silent(run, "the last client unsubscribed")?;
    Ok(Verdict::Pass)
}

pub(super) fn client_died(run: &mut Run<'_>) -> Checking {
    let (a, b, c) = (41, 42, 43);
    if begin(run, &[a])?.is_none() {
        return nothing_published(run);
    }
    run.send(&[b], SUBSCRIBE)?;
    wait_for_both(run, a, b)?;
    run.send(&[a], CLIENT_DIED)?;
    run.fence()?;
    let heard = listen_for(run, b)?;
    if heard.contains(&a) {
        return Err(Finding::new(
            format!("client {a} gets data after CLIENT_DIED"),
            format!("data for client {b} only"),
        ));
    }
    // Several at once.
    run.send(&[c], SUBSCRIBE)?;
    wait_for_both(run, b, c)?;
    run.send(&[b, c], CLIENT_DIED)?;
    run.fence()?;
    let heard = listen(run)?;
    if heard.is_empty() {
        return Ok(Verdict::Pass);
    }
    let finding = Finding::new(
        format!("clients {heard:?} still get data after CLIENT_DIED for {b} and {c}"),
        "no data for any of them",
    )
    .fix("remove every id in clientIDs, not only the first");
    Err(if heard.contains(&b) {
        finding
    } else {
        finding.note()
    })
}

/// Subscribes and waits for the first publication.
fn begin(run: &mut Run<'_>, ids: &[i32]) -> Result<Option<Packet>, Finding> {
    run.send(ids, SUBSCRIBE)?;
    let must = run
        .known()
        .is_some_and(|known| known.publishes && !known.may_be_silent);
    run.receive(if must {
        run.plan.timeout
    } else {
        limits::PUBLISHED
    })
}

fn nothing_published(run: &mut Run<'_>) -> Checking {
    let known = run.known();
    if known.is_some_and(|known| known.publishes && !known.may_be_silent) {
        return Err(Finding::new(
            "a subscribed client gets no data",
            "DATA with ackNum 0 and the id of the client in the header",
        ));
    }
    // A new process has no subscribers.
    run.stop();
    let seconds = limits::PUBLISHED.as_secs_f32();
    Ok(Verdict::NotApplicable(format!(
        "it published nothing within {seconds} s"
    )))
}

fn well_formed(run: &Run<'_>, packet: &Packet, ids: &[i32]) -> Result<(), Finding> {
    let wanted = format!("DATA with ackNum 0 and clientIDs {ids:?}");
    let brief = run.schemas.brief_message(&packet.message);
    let Ok(message) = dummy::DriverMsg::decode(packet.message.clone()) else {
        return Err(Finding::new(
            "a published message is not a DriverMsg",
            wanted,
        ));
    };
    if message.r#type != Some(MsgType::Data.into()) {
        return Err(Finding::new(format!("it publishes {brief}"), wanted));
    }
    if message.ack_num.is_some_and(|ack| ack != 0) {
        let what = format!("a published message looks like an answer: {brief}");
        return Err(Finding::new(what, wanted));
    }
    let got = &packet.header.client_ids;
    if got.len() > ids.len() && got.iter().all(|id| ids.contains(id)) {
        let what =
            format!("a client that subscribed twice gets everything twice: clientIDs {got:?}");
        return Err(Finding::new(what, wanted).fix("keep a set of subscribers, not a list"));
    }
    if got != ids {
        let what = format!("it publishes to clients {got:?}");
        return Err(Finding::new(what, wanted));
    }
    run.plausible("a published message", &packet.message)
}

/// Waits until both clients get data.
fn wait_for_both(run: &mut Run<'_>, a: i32, b: i32) -> Result<(), Finding> {
    let mut heard = BTreeSet::new();
    let deadline = Instant::now() + run.plan.timeout;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        match run.receive(left)? {
            Some(packet) => heard.extend(packet.header.client_ids),
            None => {
                return Err(Finding::new(
                    format!("clients {a} and {b} subscribed, and only {heard:?} get data"),
                    format!("data for {a} and for {b}"),
                )
                .fix("keep a set of subscribers, not one variable"));
            }
        }
        if heard.contains(&a) && heard.contains(&b) {
            return Ok(());
        }
    }
}

/// The clients that get data within the longest time between publications.
fn listen(run: &mut Run<'_>) -> Result<BTreeSet<i32>, Finding> {
    let mut heard = BTreeSet::new();
    collect(run, &mut heard, limits::PUBLISHED, None)?;
    Ok(heard)
}

/// The clients that get data until the given client gets some, and shortly after.
fn listen_for(run: &mut Run<'_>, client: i32) -> Result<BTreeSet<i32>, Finding> {
    let mut heard = BTreeSet::new();
    let patience = run.plan.timeout.max(limits::PUBLISHED);
    collect(run, &mut heard, patience, Some(client))?;
    collect(run, &mut heard, limits::QUIET, None)?;
    Ok(heard)
}

fn collect(
    run: &mut Run<'_>,
    heard: &mut BTreeSet<i32>,
    patience: Duration,
    until: Option<i32>,
) -> Result<(), Finding> {
    let deadline = Instant::now() + patience;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() || until.is_some_and(|client| heard.contains(&client)) {
            return Ok(());
        }
        match run.receive(left)? {
            Some(packet) => heard.extend(packet.header.client_ids),
            None => return Ok(()),
        }
    }
}

fn silent(run: &mut Run<'_>, when: &str) -> Result<(), Finding> {
    run.fence()?;
    match listen(run)?.is_empty() {
        true => Ok(()),
        false => Err(Finding::new(
            format!("it still publishes after {when}"),
            "nothing",
        )),
    }
}
