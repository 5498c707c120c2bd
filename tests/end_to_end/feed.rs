//! A recorder gets every frame once, or is told exactly what is missing, and never delays a client.

use std::io::Read;
use std::net::Shutdown;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};
use std::{fs, io};

use amber_proto::feed::{Direction, Gap, Record, What};
use amber_proto::mediator::{OpenFeed, reply, request};

use crate::common::{Mediator, PATIENCE, device, frame, wait_for};

/// `cat` answers every request with the request.
fn mediator() -> Mediator {
    let mediator = Mediator::start(&["5:0=cat"]);
    mediator
        .peer()
        .wait_for_echo(device("dummy"), b"are you there?");
    mediator
}

fn record(mediator: &Mediator) -> UnixStream {
    let wanted = request::What::OpenFeed(OpenFeed::default());
    let reply::What::Feed(feed) = mediator.peer().ask(wanted) else {
        panic!("refused")
    };
    let path = Path::new(&feed.path);
    assert_eq!(
        fs::metadata(path).unwrap().permissions().mode() & 0o777,
        0o600
    );
    let folder = fs::metadata(path.parent().unwrap()).unwrap();
    assert_eq!(folder.permissions().mode() & 0o777, 0o700);
    let mut stream = UnixStream::connect(path).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    // From now on everything is recorded: the first record has come.
    let mut first = [0; 13];
    stream.read_exact(&mut first).unwrap();
    let length = u32::from_le_bytes(*first.first_chunk().unwrap()) as usize;
    io::copy(&mut (&stream).take(length as u64 + 4 - 13), &mut io::sink()).unwrap();
    wait_for("the end of the socket", || (!path.exists()).then_some(()));
    stream
}

/// Direction and length of each frame that begins with these bytes, and the gaps.
fn read(mut stream: UnixStream, start: &[u8]) -> (Vec<(Direction, usize)>, Vec<Gap>) {
    stream.shutdown(Shutdown::Write).unwrap();
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    let (mut rest, mut frames, mut gaps) = (&bytes[..], Vec::new(), Vec::new());
    let mut last = None;
    while let Some((record, length)) = Record::parse(rest).unwrap() {
        rest = &rest[length..];
        match &record.what {
            What::Frame(frame) if frame.message.starts_with(start) => {
                assert_eq!((frame.device, frame.dropped), (device("dummy"), ""));
                assert_eq!(frame.clients().len(), 1);
                frames.push((frame.direction, frame.message.len()));
            }
            What::Gap(gap) => gaps.push(*gap),
            _ => {}
        }
        last = Some(record.what);
    }
    assert!(rest.is_empty());
    assert_eq!(last, Some(What::End));
    (frames, gaps)
}

#[test]
fn a_recorder_gets_every_frame_in_order() {
    let mediator = mediator();
    let stream = record(&mediator);
    let peer = mediator.peer();
    for number in 0..500_u16 {
        let message = [b"number ", &number.to_be_bytes()[..]].concat();
        peer.send(device("dummy"), &message);
        assert_eq!(peer.receive(), frame(Some(device("dummy")), &message));
    }
    let (frames, gaps) = read(stream, b"number ");
    assert_eq!(gaps, []);
    let each = [(Direction::ToDriver, 9), (Direction::FromDriver, 9)];
    assert!(frames.iter().eq(each.iter().cycle().take(1000)));
}

#[test]
fn a_recorder_that_stalls_delays_nobody_and_is_told_what_is_missing() {
    let mediator = mediator();
    let stream = record(&mediator);
    let peer = mediator.peer();
    let message = [7; 30_000];
    // Both ways, this is twice what waits for a recorder at most.
    let (count, mut longest) = (600_u64, Duration::ZERO);
    for _ in 0..count {
        let start = Instant::now();
        peer.send(device("dummy"), &message);
        assert_eq!(
            peer.receive().len(),
            frame(Some(device("dummy")), &message).len()
        );
        longest = longest.max(start.elapsed());
    }
    // A mediator that waits for the recorder would wait forever.
    assert!(longest < Duration::from_secs(2), "{longest:?}");
    let (frames, gaps) = read(stream, &message[..1]);
    let missing: u64 = gaps.iter().map(|gap| gap.messages).sum();
    let missing_bytes: u64 = gaps.iter().map(|gap| gap.bytes).sum();
    assert!(missing > 0 && !frames.is_empty());
    assert_eq!(frames.len() as u64 + missing, 2 * count);
    assert_eq!(missing_bytes, missing * message.len() as u64);
    assert!(gaps.iter().all(|gap| gap.first_ns <= gap.last_ns));
    mediator.wait_for_line("it was too slow for some frames");
}

#[test]
fn sockets_that_nobody_opens_do_not_keep_a_recorder_out() {
    let mediator = mediator();
    let wanted = || request::What::OpenFeed(OpenFeed::default());
    for _ in 0..40 {
        assert!(matches!(
            mediator.peer().ask(wanted()),
            reply::What::Feed(_)
        ));
    }
    let streams: Vec<_> = (0..4).map(|_| record(&mediator)).collect();
    // These count.
    let reply::What::Refused(refused) = mediator.peer().ask(wanted()) else {
        panic!("a fifth recorder")
    };
    assert!(
        refused.message.contains("already 4 recorders"),
        "{refused:?}"
    );
    drop(streams);
}
