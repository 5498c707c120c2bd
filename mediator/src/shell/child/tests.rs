use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use super::turn::{PAGE_BYTES, Turn};
use super::*;
use crate::shell::strays::Strays;
use amber_core::config::Config;
use amber_core::counters::Count;
use amber_core::limits::{DRIVER_TURN_BYTES, DRIVER_TURN_DATAGRAMS, JUNK_FRAMES};

/// A core with a running driver.
fn core() -> Core {
    let now = Instant::now();
    let mut config = Config::default();
    config.add_driver("5:0=x").unwrap();
    let mut core = Core::new(now, &config, 1, std::time::SystemTime::now);
    core.start(now, vec![]);
    core.driver_event(now, KEY, Event::Spawned { pid: 1 });
    core
}

const KEY: DriverKey = DriverKey(0);

fn buffer(frame: &[u8], frames: usize) -> Buffer {
    Buffer {
        bytes: frame.repeat(frames),
        end: frame.len() * frames,
        ..Buffer::default()
    }
}

/// All turns for the contents of a buffer.
fn turns(core: &mut Core, mut buffer: Buffer) -> Vec<Turn> {
    let mut turns = Vec::new();
    loop {
        let turn = hand_over(core, Instant::now(), KEY, &mut buffer);
        let unfinished = turn.unfinished;
        turns.push(turn);
        if !unfinished {
            assert!(buffer.filled().is_empty());
            return turns;
        }
    }
}

#[test]
fn frames_without_any_effect_are_junk() {
    let mut core = core();
    for (frame, is_junk) in [
        // For the mediator, which cannot read it.
        (&b"\0\0\0\0"[..], true),
        // For an unknown client.
        (b"\0\x03\x1a\x01\x63\0\x01x", true),
        // A PONG.
        (b"\0\0\0\x02\x10\x03", false),
    ] {
        let turns = turns(&mut core, buffer(frame, 10_000));
        assert_eq!(turns.iter().map(|turn| turn.frames).sum::<usize>(), 10_000);
        // The last turn may be too short to tell.
        for turn in turns.iter().filter(|turn| turn.frames >= JUNK_FRAMES) {
            assert_eq!(turn.is_junk, is_junk, "{frame:?}");
            assert!(turn.sane);
        }
    }
}

#[test]
fn a_turn_sends_a_bounded_number_of_datagrams() {
    let mut core = core();
    let from = amber_core::address::ClientAddress {
        socket: 0,
        address: ([127, 0, 0, 1], 1).into(),
    };
    // Its id follows that of the driver.
    core.datagram(Instant::now(), from, b"\0\x04\x08\x05\x10\0\0\x01x");
    let mut buffer = buffer(b"\0\x03\x1a\x01\x02\0\x01x", 1000);
    let turn = hand_over(&mut core, Instant::now(), KEY, &mut buffer);
    assert!(turn.unfinished && !turn.is_junk);
    let datagrams = core.outbox().datagrams().len();
    assert!((1..=DRIVER_TURN_DATAGRAMS).contains(&datagrams));
    assert_eq!(datagrams, turn.frames);
}

/// A driver publishes to many clients, more than one turn allows.
#[test]
fn a_frame_for_many_clients_takes_several_turns() {
    const CLIENTS: u16 = 1000;
    for message in [1, 10_000] {
        let mut core = core();
        let mut ids = Vec::new();
        for port in 1..=CLIENTS {
            let from = amber_core::address::ClientAddress {
                socket: 0,
                address: ([127, 0, 0, 1], port).into(),
            };
            core.datagram(Instant::now(), from, b"\0\x04\x08\x05\x10\0\0\x01x");
            // Ids follow that of the driver.
            ids.push(i32::from(port) + 1);
        }
        let header = amber_proto::DriverHdr {
            client_ids: ids,
            ..amber_proto::DriverHdr::default()
        };
        let header = prost::Message::encode_to_vec(&header);
        let mut bytes = Vec::new();
        let message = vec![7; message];
        let frame = amber_proto::Frame {
            header: &header,
            message: &message,
        };
        frame.encode(&mut bytes).unwrap();
        let mut buffer = buffer(&bytes, 2);
        let mut ports = Vec::new();
        loop {
            let turn = hand_over(&mut core, Instant::now(), KEY, &mut buffer);
            assert!(turn.sane && !turn.is_junk);
            core.lend(std::mem::take(&mut buffer.bytes));
            let outbox = core.outbox();
            assert!(outbox.datagrams().len() <= DRIVER_TURN_DATAGRAMS);
            assert!(outbox.bytes_to_send() < DRIVER_TURN_BYTES + 2 * message.len());
            for (to, datagram) in outbox.datagrams() {
                assert!(datagram.ends_with(&message));
                ports.push(to.address.port());
            }
            buffer.bytes = core.give_back();
            core.transmit(|_, _| ());
            if !turn.unfinished {
                break;
            }
        }
        let expected: Vec<_> = (1..=CLIENTS).chain(1..=CLIENTS).collect();
        assert_eq!(ports, expected, "each client gets each frame once");
        let totals = core.router().totals();
        totals.check(core.router().waiting()).unwrap();
        assert_eq!(totals.counted(Count::Delivered), 2);
    }
}

#[test]
fn a_process_without_streams_is_killed_with_its_children() {
    let mut process = Command::new("sh")
        .args(["-c", "sleep 1000 & echo up; wait"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .process_group(0)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "up");
    let poll = mio::Poll::new().unwrap();
    let mut strays = Strays::new(None);
    let started = Started {
        process,
        run: strays.next_run(),
        slot: Guard::new("amber".into(), strays.token()).reserve(),
    };
    assert!(Child::new(poll.registry(), DriverKey(1), started).is_err());
    // Its child held stdout, too, so both have ended.
    assert!(lines.next().is_none());
}

/// See [`Buffer::space`]: this saves a fifth of the CPU time on some processors.
#[test]
fn reads_start_at_a_page_behind_what_is_left_over() {
    let mut buffer = Buffer::default();
    for left in [0, 1, 6806, PAGE_BYTES, 100_000, 3, PAGE_BYTES - 1] {
        let space = buffer.space();
        assert_eq!(space.as_ptr().align_offset(PAGE_BYTES), 0, "{left}");
        assert!(space.len() >= READ_BYTES);
        // What is read is partly used.
        while buffer.filled().len() < left {
            let space = buffer.space();
            for (place, byte) in space.iter_mut().zip((0..251).cycle()).take(READ_BYTES) {
                *place = byte;
            }
            buffer.end += READ_BYTES;
        }
        buffer.start = buffer.end - left;
        let expected = buffer.filled().to_vec();
        buffer.space();
        assert_eq!(buffer.filled(), expected);
    }
    assert!(buffer.bytes.len() < 2 * (100_000 + READ_BYTES + 2 * PAGE_BYTES));
}
