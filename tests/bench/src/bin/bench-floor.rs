//! The minimal code for a mediator's job: one UDP socket, one driver, one device. It assigns an id
//! to every source address and rewrites the header in both directions. It has no supervision,
//! subscriptions, limits or log. IO.
//!
//! `bench-floor COMMAND ARGS...` makes one system call per message, `bench-floor -b COMMAND
//! ARGS...` handles many messages per call.
#![allow(clippy::print_stdout)] // What a program is for.

use std::collections::HashMap;
use std::fs::File;
use std::hash::{BuildHasherDefault, Hasher};
use std::io::{ErrorKind, IoSlice, Read, Write};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::process::{Command, Stdio};

use amber_bench::batch::{BATCH, Receiver, Sender};
use amber_bench::probe::DEVICE;
use amber_proto::{ClientId, Frame, Header, HeaderBytes};
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{SockaddrIn, setsockopt, sockopt};

const READ_BYTES: usize = 64 * 1024;

fn main() -> anyhow::Result<()> {
    let mut words: Vec<_> = std::env::args().skip(1).collect();
    let batched = words.first().is_some_and(|word| word == "-b");
    words.drain(..usize::from(batched));
    anyhow::ensure!(!words.is_empty(), "usage: bench-floor [-b] COMMAND ARGS...");

    let mut driver = Command::new(&words[0])
        .args(&words[1..])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let to_driver: OwnedFd = driver.stdin.take().expect("is a pipe").into();
    let from_driver: OwnedFd = driver.stdout.take().expect("is a pipe").into();
    fcntl(&to_driver, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;

    let socket = UdpSocket::bind("127.0.0.1:0")?;
    setsockopt(&socket, sockopt::RcvBuf, &(4 << 20))?;
    println!("listening on {}", socket.local_addr()?);

    let mut relay = Relay {
        socket,
        to_driver: to_driver.into(),
        from_driver: from_driver.into(),
        clients: Clients::default(),
        held: Vec::new(),
        input: vec![0; 4 * READ_BYTES],
        have: 0,
        receiver: Receiver::default(),
        sender: Sender::default(),
        header: HeaderBytes::new(Some(DEVICE), None),
    };
    loop {
        relay.turn(batched)?;
    }
}

struct Relay {
    socket: UdpSocket,
    to_driver: File,
    from_driver: File,
    clients: Clients,
    /// Bytes that a full pipe did not take; nothing is received meanwhile.
    held: Vec<u8>,
    input: Vec<u8>,
    have: usize,
    receiver: Receiver,
    sender: Sender,
    header: HeaderBytes,
}

impl Relay {
    fn turn(&mut self, batched: bool) -> anyhow::Result<()> {
        let holds = !self.held.is_empty();
        let other = match holds {
            true => PollFd::new(self.to_driver.as_fd(), PollFlags::POLLOUT),
            false => PollFd::new(self.socket.as_fd(), PollFlags::POLLIN),
        };
        let mut ready = [
            PollFd::new(self.from_driver.as_fd(), PollFlags::POLLIN),
            other,
        ];
        poll(&mut ready, PollTimeout::NONE)?;
        let [driver, other] = ready.map(|fd| fd.any().unwrap_or(false));
        if driver {
            self.read_driver(batched)?;
        }
        match (other, holds, batched) {
            (false, _, _) => Ok(()),
            (true, true, _) => self.write_held(),
            (true, false, true) => self.many_to_driver(),
            (true, false, false) => self.one_to_driver(),
        }
    }

    fn one_to_driver(&mut self) -> anyhow::Result<()> {
        let Self {
            clients,
            to_driver,
            held,
            ..
        } = self;
        let mut bytes = [0; 1 << 16];
        let (length, from) = self.socket.recv_from(&mut bytes)?;
        if let (SocketAddr::V4(from), Some(message)) = (from, for_device(&bytes[..length])) {
            let head = FrontOfFrame::new(clients.id(from.into()));
            write(to_driver, held, &[head.slice(), IoSlice::new(message)])?;
        }
        Ok(())
    }

    fn many_to_driver(&mut self) -> anyhow::Result<()> {
        let datagrams = self.receiver.receive(self.socket.as_raw_fd());
        let mut heads = [FrontOfFrame::EMPTY; BATCH];
        let mut messages = [&[][..]; BATCH];
        let mut count = 0;
        for (bytes, from) in datagrams.iter() {
            if let (Some(from), Some(message)) = (from, for_device(bytes)) {
                heads[count] = FrontOfFrame::new(self.clients.id(from));
                messages[count] = message;
                count += 1;
            }
        }
        if count == 0 {
            return Ok(());
        }
        let pieces: [_; 2 * BATCH] = std::array::from_fn(|i| match i % 2 {
            0 => heads[i / 2].slice(),
            _ => IoSlice::new(messages[i / 2]),
        });
        write(&mut self.to_driver, &mut self.held, &pieces[..2 * count])
    }

    fn write_held(&mut self) -> anyhow::Result<()> {
        match self.to_driver.write(&self.held) {
            Ok(count) => drop(self.held.drain(..count)),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    fn read_driver(&mut self, batched: bool) -> anyhow::Result<()> {
        let room = match batched {
            true => self.input.len(),
            false => self.have + READ_BYTES,
        };
        let count = self.from_driver.read(&mut self.input[self.have..room])?;
        anyhow::ensure!(count > 0, "the driver has ended");
        self.have += count;
        let mut rest = &self.input[..self.have];
        let mut front = [0; 64];
        let front = front_of_answer(&mut front, &self.header);
        let socket = self.socket.as_raw_fd();
        let mut datagrams = [[IoSlice::new(&[]); 2]; BATCH];
        let mut to = [None; BATCH];
        let mut queued = 0;
        while let Some(frame) = Frame::from_stream(rest) {
            let at = 2 + frame.header.len();
            let message = &rest[at..frame.wire_len()];
            for id in Header::parse(frame.header)?.client_ids() {
                let Some(address) = self.clients.address(id) else {
                    continue;
                };
                datagrams[queued] = [IoSlice::new(front), IoSlice::new(message)];
                to[queued] = Some(address);
                queued += 1;
                if queued == BATCH || !batched {
                    self.sender
                        .send(socket, &datagrams[..queued], &to[..queued]);
                    queued = 0;
                }
            }
            rest = &rest[frame.wire_len()..];
        }
        self.sender
            .send(socket, &datagrams[..queued], &to[..queued]);
        let left = rest.len();
        self.input.copy_within(self.have - left..self.have, 0);
        self.have = left;
        Ok(())
    }
}

/// One writev; stores what the pipe does not take.
fn write(pipe: &mut File, held: &mut Vec<u8>, pieces: &[IoSlice<'_>]) -> anyhow::Result<()> {
    let mut done = match pipe.write_vectored(pieces) {
        Ok(count) => count,
        Err(error) if error.kind() == ErrorKind::WouldBlock => 0,
        Err(error) => return Err(error.into()),
    };
    for piece in pieces {
        let skipped = done.min(piece.len());
        held.extend_from_slice(&piece[skipped..]);
        done -= skipped;
    }
    Ok(())
}

/// The message of a datagram with its length, if it is for the served device.
fn for_device(datagram: &[u8]) -> Option<&[u8]> {
    let frame = Frame::from_datagram(datagram).ok()?;
    let header = Header::parse(frame.header).ok()?;
    (header.device() == Some(DEVICE)).then(|| &datagram[2 + frame.header.len()..])
}

/// The header of a frame for the driver, with its length.
#[derive(Clone, Copy)]
struct FrontOfFrame {
    bytes: [u8; 16],
    length: usize,
}

impl FrontOfFrame {
    const EMPTY: Self = Self {
        bytes: [0; 16],
        length: 0,
    };

    fn new(client: ClientId) -> Self {
        let mut front = Self::EMPTY;
        let header = HeaderBytes::new(None, Some(client));
        let header = header.as_slice();
        front.length = 2 + header.len();
        front.bytes[1] = header.len() as u8;
        front.bytes[2..front.length].copy_from_slice(header);
        front
    }

    fn slice(&self) -> IoSlice<'_> {
        IoSlice::new(&self.bytes[..self.length])
    }
}

fn front_of_answer<'a>(place: &'a mut [u8; 64], header: &HeaderBytes) -> &'a [u8] {
    let header = header.as_slice();
    place[1] = header.len() as u8;
    place[2..2 + header.len()].copy_from_slice(header);
    &place[..2 + header.len()]
}

/// The ids of the clients, never removed.
#[derive(Default)]
struct Clients {
    ids: HashMap<u64, i32, BuildHasherDefault<Multiply>>,
    addresses: Vec<SockaddrIn>,
}

impl Clients {
    fn id(&mut self, from: SockaddrIn) -> ClientId {
        let key = u64::from(u32::from(from.ip())) << 16 | u64::from(from.port());
        let next = self.addresses.len() as i32 + 1;
        let id = *self.ids.entry(key).or_insert(next);
        if id == next {
            self.addresses.push(from);
        }
        ClientId(id)
    }

    fn address(&self, id: ClientId) -> Option<SockaddrIn> {
        let index = usize::try_from(id.0).ok()?.checked_sub(1)?;
        self.addresses.get(index).copied()
    }
}

/// A benchmark needs no protection against hash collision attacks.
#[derive(Default)]
struct Multiply(u64);

impl Hasher for Multiply {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write_u64(&mut self, key: u64) {
        self.0 = key.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("keys are u64");
    }
}
