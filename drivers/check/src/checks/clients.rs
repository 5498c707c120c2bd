//! Several clients, and other devices. IO.

use std::collections::BTreeMap;

use amber_proto::{DeviceType, DriverMsg};
use prost::Message;

use crate::diagnose::{Mistake, judge};
use crate::run::{Checking, Finding, Run, Verdict, expected};

pub(super) fn clients(run: &mut Run<'_>) -> Checking {
    // Different clients may use equal numbers.
    const CLIENTS: i32 = 8;
    const NUMBERS: u32 = 4;
    let probe = run.probe();
    let first = run.syns(NUMBERS);
    for number in 0..NUMBERS {
        for client in 0..CLIENTS {
            run.send(&[1000 + client], &probe.message(first + number))?;
        }
    }
    let mut seen = BTreeMap::new();
    let wanted = format!(
        "{} answers, one for each client and number",
        CLIENTS as u32 * NUMBERS
    );
    while seen.len() < (CLIENTS as u32 * NUMBERS) as usize {
        let Some(packet) = run.receive(run.plan.timeout)? else {
            let what = format!("only {} requests are answered", seen.len());
            return Err(Finding::new(what, wanted));
        };
        let ids = packet.header.client_ids.clone();
        let ack = DriverMsg::decode(packet.message.clone())
            .ok()
            .and_then(|m| m.ack_num);
        let ours = ids.len() == 1 && (1000..1000 + CLIENTS).contains(&ids[0]);
        let number = ack.filter(|ack| (first..first + NUMBERS).contains(ack));
        let (Some(number), true) = (number, ours) else {
            let mistake = judge(&packet, &[1000], probe.answer(), Some(first)).err();
            return Err(Finding::of(
                &mistake.unwrap_or(Mistake::NoClientIds),
                wanted,
            ));
        };
        if seen.insert((ids[0], number), ()).is_some() {
            let mistake = Mistake::OtherClients(ids.clone());
            let what = format!(
                "client {} gets number {number} twice, so another client gets nothing",
                ids[0]
            );
            return Err(Finding {
                summary: what,
                ..Finding::of(&mistake, wanted)
            });
        }
    }
    Ok(Verdict::Pass)
}

pub(super) fn several_ids(run: &mut Run<'_>) -> Checking {
    let (ids, probe) = ([21, 22, 23], run.probe());
    let syn = run.syn();
    run.send(&ids, &probe.message(syn))?;
    let wanted = expected(&ids, probe.answer(), Some(syn));
    let mut reached = Vec::new();
    while reached.len() < ids.len() {
        // One frame for all clients, or one for each.
        let Some(packet) = run.receive(run.plan.timeout)? else {
            return Err(match reached.as_slice() {
                [] => Finding::new("no answer", wanted),
                [21] => Finding::of(&Mistake::FirstClientOnly, wanted),
                some => Finding::new(format!("only {some:?} are answered"), wanted),
            }
            .note());
        };
        let got = packet.header.client_ids.clone();
        if !got.iter().all(|id| ids.contains(id)) || got.is_empty() {
            let mistake = judge(&packet, &ids, probe.answer(), Some(syn)).err();
            return Err(Finding::of(
                &mistake.unwrap_or(Mistake::NoClientIds),
                wanted,
            ));
        }
        reached.extend(got);
    }
    Ok(Verdict::Pass)
}

pub(super) fn asks_others(run: &mut Run<'_>) -> Checking {
    let asks = run.asks();
    for ask in &asks {
        let syn = run.syn();
        run.send(&[5], &crate::run::with_syn(&ask.message, syn))?;
    }
    run.fence()?;
    let asked = run.bench()?.asked.clone();
    if asked.is_empty() {
        return Ok(Verdict::NotApplicable(
            "it sent no request to another device".into(),
        ));
    }
    let mut names = Vec::new();
    for (header, message) in &asked {
        let half = match (header.device_type, header.device_id) {
            (Some(kind), None) => Some(format!("a request to type {kind} has no deviceID")),
            (None, Some(id)) => Some(format!("a request to device {id} has no deviceType")),
            _ => None,
        };
        if let Some(what) = half {
            let wanted = "deviceType and deviceID, and no clientIDs";
            return Err(
                Finding::new(what + ": the mediator cannot deliver it", wanted)
                    .fix("set both numbers in the header, even if they are 0"),
            );
        }
        let device = amber_proto::Device::new(
            DeviceType(header.device_type.unwrap_or_default()),
            header.device_id.unwrap_or_default(),
        );
        if DriverMsg::decode(message.clone()).is_err() {
            let what = format!("its request to {device} is not a DriverMsg");
            return Err(Finding::new(what, "a DriverMsg with type and synNum"));
        }
        if !names.contains(&device.to_string()) {
            names.push(device.to_string());
        }
    }
    Ok(Verdict::Seen(names.join(", ")))
}
