//! Ports that are used again at once. IO.

use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use amber_proto::{Device, DeviceType, Frame};
use nix::sys::socket::{MsgFlags, recv};

use crate::peer::Peer;
use crate::site::{Place, Site};
use crate::suite::{Attack, Context, Seen};
use crate::wire;

/// See the [module](self).
pub const ATTACKS: &[Attack] = &[Attack {
    name: "returned-port",
    expected: "a client on a port that was closed with answers under way keeps its id: nobody \
               dies of the errors of the client before it",
    run: returned_port,
}];

/// It answers with the id of who asks.
const WHOAMI: Device = Device::new(DeviceType(77), 0);

fn returned_port(context: &Context) -> anyhow::Result<Seen> {
    const CONFIG: &str = r#"
        [mediator]
        listen = ["127.0.0.1:0"]
        [[driver]]
        device = "77:0"
        command = ["$attack", "driver", "whoami"]
    "#;
    let site = Site::start(&context.programs, &Place::default(), CONFIG)?;
    Peer::local(&site, None)?.wait_for_answer(WHOAMI)?;
    let returns = context.pick(4_000, 80_000);
    let end = Instant::now() + context.pick(Duration::from_secs(6), Duration::from_secs(150));
    let mut rng = fastrand::Rng::with_seed(context.seed);
    let to = site.address();
    let question = wire::to(WHOAMI, &wire::numbered(1, 0));
    let (mut compared, mut changed, mut silent) = (0, 0, 0);
    while compared < returns && Instant::now() < end {
        let first = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        let port = first.local_addr()?;
        // Answers to closed ports come back as errors, at different moments.
        for _ in 0..rng.usize(1..4) {
            first.send_to(&question, to)?;
        }
        drop(first);
        if rng.bool() {
            std::thread::sleep(Duration::from_micros(rng.u64(..100)));
        }
        // Another program may have been faster.
        let Ok(returned) = UdpSocket::bind(port) else {
            continue;
        };
        returned.connect(to)?;
        returned.set_read_timeout(Some(Duration::from_millis(300)))?;
        let id = ask(&returned, &question);
        std::thread::sleep(Duration::from_micros(rng.u64(..300)));
        let again = ask(&returned, &question);
        match (id, again) {
            (Some(id), Some(again)) => {
                compared += 1;
                changed += usize::from(id != again);
            }
            _ => silent += 1,
        }
    }
    let text = format!("{changed} of {compared} died, {silent} got no answer");
    // Requests of a dead client may be lost with it, one request may be lost anyway.
    Ok(Seen::new(changed == 0 && silent <= compared / 1000, text))
}

/// The id under which the driver knows a socket. Answers that waited before are dropped:
/// they may be for the client that had the port before.
fn ask(socket: &UdpSocket, question: &[u8]) -> Option<u32> {
    let mut buffer = [0; 256];
    while recv(socket.as_raw_fd(), &mut buffer, MsgFlags::MSG_DONTWAIT).is_ok() {}
    socket.send(question).ok()?;
    let length = socket.recv(&mut buffer).ok()?;
    let frame = Frame::from_datagram(&buffer[..length]).ok()?;
    wire::number(frame.message)
}
