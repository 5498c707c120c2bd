//! Messages that a driver must survive. IO.

use amber_proto::{Device, DeviceType};

use super::answers::CLIENT;
use crate::bench::of_device;
use crate::run::{Checking, Finding, Probe, Run, Verdict, with_syn};

/// Sends messages that have no answer, and checks that the driver keeps working.
fn survives(run: &mut Run<'_>, what: &str, messages: &[&[u8]]) -> Checking {
    for message in messages {
        run.send(CLIENT, message)?;
        run.expect_silence(what)?;
    }
    Ok(Verdict::Pass)
}

pub(super) fn empty_message(run: &mut Run<'_>) -> Checking {
    survives(run, "an empty message", &[b""])
}

pub(super) fn no_driver_msg(run: &mut Run<'_>) -> Checking {
    let messages: [&[u8]; 5] = [
        b"\xff\xff\xff",
        b"hello",
        b"\x10",                 // cut off
        b"\x12\x03abc",          // the type as text
        b"\x10\x01\xa2\x01\x7f", // an extension that is longer than the message
    ];
    survives(run, "a message that is not a DriverMsg", &messages)
}

pub(super) fn unknown_type(run: &mut Run<'_>) -> Checking {
    let messages: [&[u8]; 4] = [
        b"\x10\x63\x18\x09",
        b"\x10\0\x18\x09",
        b"\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x18\x09", // -1
        b"\x18\x09",                                             // missing
    ];
    survives(run, "a message of an unknown type", &messages)
}

pub(super) fn unknown_fields(run: &mut Run<'_>) -> Checking {
    let probe = run.probe();
    // Fields 150 to 153 in all usual wire types.
    let unknown = b"\xb0\x09\x07\xb9\x09........\xc2\x09\x02hi\xcd\x09....";
    with_fields(run, &probe, unknown)?;
    // DATA with an extension that no device knows.
    let syn = run.syn();
    run.send(CLIENT, &with_syn(b"\x10\x01\xf8\x08\x01", syn))?;
    run.fence()?;
    // Groups are deprecated, but valid protobuf.
    with_fields(run, &probe, b"\xd3\x09\x08\x01\xd4\x09").map_err(Finding::note)?;
    Ok(Verdict::Pass)
}

fn with_fields(run: &mut Run<'_>, probe: &Probe, unknown: &[u8]) -> Result<(), Finding> {
    let syn = run.syn();
    run.send(CLIENT, &[&probe.message(syn)[..], unknown].concat())?;
    run.expect(CLIENT, probe, syn)
        .map_err(|finding| finding.during("with unknown fields"))?;
    Ok(())
}

pub(super) fn other_types(run: &mut Run<'_>) -> Checking {
    let messages: [&[u8]; 5] = [
        b"\x10\x03\x20\x09", // PONG
        b"\x10\x05",         // DRIVER_DIED
        b"\x10\x04",         // CLIENT_DIED of a client that never subscribed
        b"\x10\x07",         // UNSUBSCRIBE, likewise
        b"\x10\x04",
    ];
    survives(run, "a message that needs no answer", &messages)
}

pub(super) fn foreign_answers(run: &mut Run<'_>) -> Checking {
    let hokuyo = Device::new(DeviceType::HOKUYO, 0);
    for (device, message) in [
        (hokuyo, &b"\x10\x05\x20\x07"[..]),
        (hokuyo, b"\x10\x01\x20\x07"),
        (Device::MEDIATOR, b"\x10\x05"),
        (Device::new(DeviceType(77), 3), b"\xff"),
    ] {
        run.send_with(&of_device(device), message)?;
    }
    run.expect_silence("answers of other devices")?;
    Ok(Verdict::Pass)
}
