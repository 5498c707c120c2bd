//! A client that vanishes is noticed without affecting other clients.
#![cfg(target_os = "linux")]

use std::fs::{self, File};
use std::io::{IoSlice, Write};
use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use amber_proto::{ClientId, Frame, Header, MsgType};
use nix::sys::socket::{ControlMessage, MsgFlags, sendmsg};
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use tempfile::TempDir;

use crate::common::{Mediator, Peer, device, frame, message, wait_for};

/// A driver that writes what the test provides, and records what it reads.
struct Puppet {
    folder: TempDir,
    mediator: Mediator,
    output: File,
}

impl Puppet {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (heard, says) = (folder.path().join("heard"), folder.path().join("says"));
        mkfifo(&says, Mode::S_IRWXU).unwrap();
        let script = format!(
            "exec 3<&0; tee {} <&3 >/dev/null & exec cat {}",
            heard.display(),
            says.display()
        );
        let mediator = Mediator::start(&[&format!("80:0=sh -c '{script}'")]);
        // Opens when the driver opens its end.
        let output = File::options().write(true).open(says).unwrap();
        Self {
            folder,
            mediator,
            output,
        }
    }

    fn heard(&self) -> PathBuf {
        self.folder.path().join("heard")
    }

    /// All messages so far: the client that sent them or died, and the contents.
    fn messages(&self) -> Vec<(Option<ClientId>, Vec<u8>)> {
        let bytes = fs::read(self.heard()).unwrap_or_default();
        let (mut rest, mut messages) = (&bytes[..], Vec::new());
        while let Some(frame) = Frame::from_stream(rest) {
            let client = Header::parse(frame.header).unwrap().client_ids().next();
            messages.push((client, frame.message.to_vec()));
            rest = &rest[frame.wire_len()..];
        }
        messages
    }

    /// A new client that the driver knows.
    fn client(&self, name: &str) -> (Peer, ClientId) {
        self.known(self.mediator.peer(), name)
    }

    fn known(&self, peer: Peer, name: &str) -> (Peer, ClientId) {
        let id = wait_for("the driver to hear of a client", || {
            peer.send(device("80:0"), name.as_bytes());
            let messages = self.messages();
            let mine = messages.iter().find(|(_, said)| said == name.as_bytes());
            mine.and_then(|(id, _)| *id)
        });
        (peer, id)
    }

    /// Makes the driver send a message to clients.
    fn send(&mut self, to: &[ClientId], message: &[u8]) {
        let ids: Vec<u8> = to.iter().map(|id| u8::try_from(id.0).unwrap()).collect();
        // Field 3, packed; ids below 128 are one byte each.
        let header = [&[0x1a, ids.len() as u8], &ids[..]].concat();
        let mut bytes = Vec::new();
        let frame = Frame {
            header: &header,
            message,
        };
        frame.encode(&mut bytes).unwrap();
        self.output.write_all(&bytes).unwrap();
    }
}

#[test]
fn clients_that_close_their_socket_are_forgotten_and_others_lose_nothing() {
    const VICTIMS: usize = 10;
    let mut puppet = Puppet::start();
    let (healthy, healthy_id) = puppet.client("healthy");
    // Another program may get the port of one that is gone, so they have an address of their own.
    let victim = |number| {
        let peer = puppet.mediator.peer_at([127, 0, 80, number]);
        puppet.known(peer, &format!("victim {number}")).1
    };
    let mut clients: Vec<_> = (1..=VICTIMS as u8).map(victim).collect();
    // Some ICMP errors arrive before its datagram is sent.
    clients.insert(VICTIMS / 2, healthy_id);

    let died = message(MsgType::ClientDied);
    let told = |puppet: &Puppet| {
        let messages = puppet.messages().into_iter();
        let died = messages.filter(|(_, message)| *message == died);
        died.filter_map(|(id, _)| id).collect::<Vec<_>>()
    };
    let mut sent = 0_u32;
    wait_for("CLIENT_DIED for all victims", || {
        sent += 1;
        puppet.send(&clients, &sent.to_be_bytes());
        (told(&puppet).len() >= VICTIMS).then_some(())
    });
    for number in 1..=sent {
        let expected = frame(Some(device("80:0")), &number.to_be_bytes());
        assert_eq!(healthy.receive(), expected, "of {sent}");
    }
    // Exactly once for each victim, and not for the healthy client.
    healthy.send(device("80:0"), b"the last word");
    wait_for("the last word", || {
        let messages = puppet.messages();
        let last = messages.last().is_some_and(|(_, m)| m == b"the last word");
        last.then_some(())
    });
    let mut told = told(&puppet);
    told.sort_unstable();
    clients.retain(|id| *id != healthy_id);
    clients.sort_unstable();
    assert_eq!(told, clients);
    assert_eq!(puppet.mediator.dropped("send_failed"), 0);
}

/// Signals the end, even if the test fails.
struct Flag<'a>(&'a AtomicBool);

impl Drop for Flag<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The mediator does not poll a socket for errors while it never runs empty. A later send consumes
/// such an error, so nothing else fails because of it.
#[test]
fn a_flood_does_not_hide_that_a_client_has_closed_its_socket() {
    let mut puppet = Puppet::start();
    let (healthy, healthy_id) = puppet.client("healthy");
    let (victim, victim_id) = puppet.client("victim");
    // There is no such device. The datagrams must arrive quickly, so that the socket never runs
    // empty.
    let datagram = frame(Some(device("99:9")), b"flood");
    let flood = datagram.repeat(60);
    let length = datagram.len() as u16;
    let cut = [ControlMessage::UdpGsoSegments(&length)];
    let flooder = UdpSocket::bind("127.0.0.1:0").unwrap();
    flooder.connect(puppet.mediator.address).unwrap();
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let _end = Flag(&over);
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                let flood = [IoSlice::new(&flood)];
                let flags = MsgFlags::empty();
                let sent = sendmsg::<()>(flooder.as_raw_fd(), &flood, &cut, flags, None);
                if sent.is_err() {
                    let _ = flooder.send(&datagram);
                }
            }
        });
        drop(victim);
        wait_for("CLIENT_DIED", || {
            puppet.send(&[victim_id, healthy_id], b"news");
            while healthy.has_datagram() {
                healthy.receive();
            }
            let messages = puppet.messages();
            let died = (Some(victim_id), message(MsgType::ClientDied));
            messages.contains(&died).then_some(())
        });
    });
}
