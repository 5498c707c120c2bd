//! Publications and their subscribers. IO.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use amber_proto::{MsgType, Packet, dummy};
use amber_reflect::arguments::StartStop;
use amber_schema::{Kind, Method};
use prost::Message;

use crate::limits;
use crate::run::{Checking, Finding, Run, Verdict};
use crate::{plausible, sample};

const SUBSCRIBE: &[u8] = b"\x10\x06";
const UNSUBSCRIBE: &[u8] = b"\x10\x07";
const CLIENT_DIED: &[u8] = b"\x10\x04";

pub(super) fn subscribe(run: &mut Run<'_>) -> Checking {
    let (a, b) = (31, 32);
    let Some(first) = begin(run, &[a])? else {
        return nothing_published(run);
    };
    published(run, &first, &[a])?;
    // Clients repeat SUBSCRIBE, because UDP loses datagrams.
    run.send(&[a], SUBSCRIBE)?;
    run.fence()?;
    match run.receive(run.plan.timeout.max(limits::PUBLISHED))? {
        Some(packet) => published(run, &packet, &[a])?,
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

pub(super) fn streams(run: &mut Run<'_>) -> Checking {
    let plan = run.plan;
    let methods = plan.interface.iter().flat_map(|it| &it.methods);
    let is_stream = |method: &&Method| matches!(method.kind, Kind::StreamByRequest { .. });
    let (mut seen, mut unseen) = (Vec::new(), Vec::new());
    for method in methods.filter(is_stream) {
        let messages = sample::arguments(method)
            .and_then(|arguments| plan.schemas.start_stop(method, &arguments).ok());
        match messages {
            Some(messages) if started_and_stopped(run, method, &messages)? => {
                seen.push(method.command.as_str());
            }
            _ => unseen.push(method.command.as_str()),
        }
    }
    if !unseen.is_empty() {
        // A new process has no clients.
        run.stop();
    }
    match (seen.is_empty(), unseen.is_empty()) {
        (false, _) => Ok(Verdict::Seen(seen.join(", "))),
        (true, true) => Ok(Verdict::NotApplicable(
            "no known streams that start by a request".into(),
        )),
        (true, false) => Ok(Verdict::NotApplicable(format!(
            "it published nothing for {}",
            unseen.join(", ")
        ))),
    }
}

/// Whether the device publishes the stream at all.
fn started_and_stopped(
    run: &mut Run<'_>,
    method: &Method,
    messages: &StartStop,
) -> Result<bool, Finding> {
    let (client, name) = (51, &method.command);
    let ends: [(&[u8], String); 2] = [
        (&messages.stop, format!("the client stopped '{name}'")),
        (CLIENT_DIED, format!("the client of '{name}' died")),
    ];
    for (end, when) in ends {
        run.send(&[client], &messages.start)?;
        let Some(packet) = run.receive(patience(run, run.always_answers()))? else {
            return match run.always_answers() {
                false => Ok(false),
                true => Err(Finding::new(
                    format!("the client that started '{name}' gets no data"),
                    format!("DATA with ackNum 0 and clientIDs {:?}", [client]),
                )),
            };
        };
        well_formed(run, &packet, &[client])?;
        run.plausible(PUBLISHED, &packet.message, |_, schemas, values| {
            plausible::data(&[method], schemas, values)
        })?;
        run.send(&[client], end)?;
        silent(run, &when)?;
    }
    Ok(true)
}

/// Subscribes and waits for the first publication.
fn begin(run: &mut Run<'_>, ids: &[i32]) -> Result<Option<Packet>, Finding> {
    run.send(ids, SUBSCRIBE)?;
    run.receive(patience(run, must_publish(run)))
}

/// How long to wait for the first publication.
fn patience(run: &Run<'_>, must_publish: bool) -> Duration {
    match must_publish {
        true => run.plan.timeout,
        false => limits::PUBLISHED,
    }
}

/// Whether subscribers get data in any case.
fn must_publish(run: &Run<'_>) -> bool {
    let interface = run.plan.interface.iter();
    let mut methods = interface.flat_map(|interface| &interface.methods);
    run.always_answers() && methods.any(|method| method.kind == Kind::Subscribe)
}

fn nothing_published(run: &mut Run<'_>) -> Checking {
    if must_publish(run) {
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

/// Checks data that is published to subscribers.
fn published(run: &Run<'_>, packet: &Packet, ids: &[i32]) -> Result<(), Finding> {
    well_formed(run, packet, ids)?;
    run.plausible(PUBLISHED, &packet.message, plausible::stream)
}

const PUBLISHED: &str = "a published message";

fn well_formed(run: &Run<'_>, packet: &Packet, ids: &[i32]) -> Result<(), Finding> {
    let wanted = format!("DATA with ackNum 0 and clientIDs {ids:?}");
    let brief = run.plan.schemas.brief_message(&packet.message);
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
    Ok(())
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
