//! The loads: UDP clients that send requests, flood, or subscribe. IO.
//!
//! Everything happens on one thread. A request without a reply within [`PATIENCE`] counts as lost.

use std::io::IoSlice;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsRawFd, RawFd};
use std::time::{Duration, Instant};

use amber_proto::MsgType;
use anyhow::ensure;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::socket::{ControlMessage, MsgFlags, SockaddrIn, sendmsg, setsockopt, sockopt};
use nix::time::{ClockId, clock_gettime};

use crate::batch::{BATCH, Receiver, Sender};
use crate::probe::{self, Probe};
use crate::process::CpuMeter;
use crate::samples::Samples;

/// The time after which a request counts as lost.
pub const PATIENCE: Duration = Duration::from_millis(250);

/// How often a new client repeats its request: on a busy machine a reply may be late.
pub const TRIES: usize = 5;

/// The results of a load.
#[derive(Debug)]
pub struct Seen {
    /// Requests, or publications that were due.
    pub sent: u64,
    /// Replies, or publications that arrived.
    pub received: u64,
    pub elapsed: Duration,
    /// The CPU time of the candidate in that time.
    pub cpu: Duration,
    /// The times from request to reply, or from publication to arrival.
    pub times: Samples,
}

impl Seen {
    /// Replies per second.
    pub fn per_second(&self) -> f64 {
        self.received as f64 / self.elapsed.as_secs_f64()
    }

    /// CPU time of the candidate per reply, in microseconds.
    pub fn cpu_us(&self) -> f64 {
        self.cpu.as_nanos() as f64 / 1e3 / self.received as f64
    }

    /// Missing replies.
    pub fn lost(&self) -> f64 {
        self.sent.saturating_sub(self.received) as f64
    }

    /// Missing replies, in percent.
    pub fn lost_percent(&self) -> f64 {
        100.0 * (1.0 - self.received as f64 / self.sent.max(1) as f64)
    }
}

/// One client with one request in flight, repeatedly.
///
/// # Errors
/// The candidate does not answer at all.
pub fn round_trips(
    to: SocketAddr,
    pid: u32,
    bytes: usize,
    duration: Duration,
) -> anyhow::Result<Seen> {
    let mut asker = Asker::new(to, bytes)?;
    asker.warm_up()?;
    let cpu = CpuMeter::start(pid);
    let start = Instant::now();
    let (mut sent, mut times) = (0, Samples::default());
    while start.elapsed() < duration {
        sent += 1;
        if let Some(time) = asker.ask()? {
            times.add(time);
        }
    }
    Ok(Seen {
        sent,
        received: times.len() as u64,
        elapsed: start.elapsed(),
        cpu: cpu.elapsed(),
        times,
    })
}

/// New clients, one after another, each with its own address, that repeat a request at most
/// [`TRIES`] times. Returns the number of clients that got a reply.
///
/// # Errors
/// The system has no sockets left.
pub fn newcomers(to: SocketAddr, count: u32) -> anyhow::Result<u32> {
    let mut answered = 0;
    for i in 0..count {
        // 127.1.0.1 and so on: loopback addresses.
        let own = Ipv4Addr::from(0x7f01_0001 + i / 250 * 256 + i % 250);
        let mut asker = Asker::from_address((own, 0).into(), to, probe::MIN_BYTES)?;
        while asker.socket.local_addr()?.port() == to.port() {
            // A mediator ignores this port, because another mediator might use it.
            asker = Asker::from_address((own, 0).into(), to, probe::MIN_BYTES)?;
        }
        for _ in 0..TRIES {
            if asker.ask()?.is_some() {
                answered += 1;
                break;
            }
        }
    }
    Ok(answered)
}

/// Waits for the first reply.
///
/// # Errors
/// No reply arrives within ten seconds.
pub fn first_answer(to: SocketAddr) -> anyhow::Result<()> {
    let start = Instant::now();
    // Sends PINGs to the driver, which every candidate forwards.
    let mut asker = Asker::of_kind(MsgType::Ping, probe::MIN_BYTES, to)?;
    while start.elapsed() < Duration::from_secs(10) {
        if asker.ask_any(Duration::from_millis(20))? {
            return Ok(());
        }
    }
    anyhow::bail!("no answer from {to}")
}

/// One client with a blocking socket.
pub struct Asker {
    socket: UdpSocket,
    frame: Vec<u8>,
    message: usize,
    number: u32,
}

impl Asker {
    /// Creates a client whose messages have this size.
    ///
    /// # Errors
    /// The system has no sockets left.
    pub fn new(to: SocketAddr, bytes: usize) -> anyhow::Result<Self> {
        Self::from_address((Ipv4Addr::LOCALHOST, 0).into(), to, bytes)
    }

    fn from_address(own: SocketAddr, to: SocketAddr, bytes: usize) -> anyhow::Result<Self> {
        let socket = UdpSocket::bind(own)?;
        socket.connect(to)?;
        socket.set_read_timeout(Some(PATIENCE))?;
        let (frame, message) = probe::request(MsgType::Data, bytes);
        Ok(Self {
            socket,
            frame,
            message,
            number: 0,
        })
    }

    fn of_kind(kind: MsgType, bytes: usize, to: SocketAddr) -> anyhow::Result<Self> {
        let mut asker = Self::new(to, bytes)?;
        asker.frame = probe::request(kind, bytes).0;
        Ok(asker)
    }

    /// Repeats a request until the first reply.
    ///
    /// # Errors
    /// No reply arrives within ten seconds.
    pub fn warm_up(&mut self) -> anyhow::Result<()> {
        let start = Instant::now();
        while self.ask()?.is_none() {
            ensure!(start.elapsed() < Duration::from_secs(10), "no answer");
        }
        Ok(())
    }

    /// Sends a request and waits for the reply. Returns nanoseconds, or `None` if it is lost.
    ///
    /// # Errors
    /// The socket fails.
    pub fn ask(&mut self) -> anyhow::Result<Option<u64>> {
        self.number += 1;
        let start = now_ns();
        probe::stamp(&mut self.frame[self.message..], start, self.number);
        // An error of the previous datagram, such as a closed port, is not a reply.
        if self.socket.send(&self.frame).is_err() {
            return Ok(None);
        }
        let mut bytes = [0; 1 << 16];
        loop {
            let length = self.socket.recv(&mut bytes).unwrap_or(0);
            let took = now_ns() - start;
            match probe::read(&bytes[..length]) {
                Some(probe) if probe.number == self.number => return Ok(Some(took)),
                _ if length == 0 || u128::from(took) > PATIENCE.as_nanos() => return Ok(None),
                _ => {}
            }
        }
    }

    /// Whether any reply arrives within this time.
    fn ask_any(&mut self, patience: Duration) -> anyhow::Result<bool> {
        self.socket.set_read_timeout(Some(patience))?;
        self.number += 1;
        probe::stamp(&mut self.frame[self.message..], now_ns(), self.number);
        let sent = self.socket.send(&self.frame);
        Ok(sent.is_ok() && self.socket.recv(&mut [0; 1 << 16]).is_ok())
    }
}

/// The mode of a flood.
#[derive(Clone, Copy, Debug)]
pub enum Flood {
    /// Every client keeps this number of requests in flight.
    Window(usize),
    /// The same, but a client passes consecutive requests to the system in one call, and the system
    /// splits them when necessary.
    AtOnce(usize),
    /// All clients together send this many per second, whether or not replies arrive.
    PerSecond(f64),
}

/// The requested size of the receive buffers.
const SOCKET_BYTES: usize = 4 << 20;

/// The number of requests and replies that can be in transit through a candidate with one driver:
/// the contents of its socket buffer and of the clients' socket buffers, of two pipes, of the
/// driver's input, and of a queue of this length.
///
/// # Errors
/// The system has no sockets left.
pub fn held_on_the_way(clients: usize, bytes: usize, queue: usize) -> anyhow::Result<usize> {
    const PIPE: usize = 1 << 16;
    let (frame, _) = probe::request(MsgType::Data, bytes);
    let sockets = held_by_a_socket(&frame, true)? + clients * held_by_a_socket(&frame, false)?;
    Ok(sockets + 3 * PIPE / frame.len() + queue)
}

/// The number of datagrams in a socket buffer. It is larger if the system may store several
/// datagrams in one piece.
fn held_by_a_socket(datagram: &[u8], in_one_piece: bool) -> anyhow::Result<usize> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    socket2::SockRef::from(&socket).set_recv_buffer_size(SOCKET_BYTES)?;
    if in_one_piece {
        setsockopt(&socket, sockopt::UdpGroSegment, &true)?;
    }
    let sender = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    sender.connect(socket.local_addr()?)?;
    let batch = vec![datagram.to_vec(); BATCH];
    // Each datagram uses at least its size, and Linux doubles the requested size.
    for _ in 0..=2 * SOCKET_BYTES / (BATCH * datagram.len()) {
        send_at_once(sender.as_raw_fd(), &batch);
    }
    let mut receiver = Receiver::default();
    let mut held = 0;
    loop {
        let datagrams = receiver.receive(socket.as_raw_fd());
        if datagrams.is_empty() {
            return Ok(held / datagram.len());
        }
        held += datagrams
            .iter()
            .map(|(bytes, _)| bytes.len())
            .sum::<usize>();
    }
}

/// Many clients at the same time.
///
/// # Errors
/// The system has no sockets left.
pub fn flood(
    to: SocketAddr,
    pid: u32,
    clients: usize,
    flood: Flood,
    bytes: usize,
    duration: Duration,
) -> anyhow::Result<Seen> {
    let mut crowd = Crowd::new(to, clients, MsgType::Data, bytes)?;
    crowd.at_once = !matches!(flood, Flood::Window(_));
    let window = match flood {
        Flood::Window(window) | Flood::AtOnce(window) => Some(window),
        Flood::PerSecond(_) => None,
    };
    Asker::new(to, bytes)?.warm_up()?;
    let cpu = CpuMeter::start(pid);
    let start = Instant::now();
    if let Some(window) = window {
        (0..clients).for_each(|client| crowd.send(client, window));
    }
    let mut times = Samples::default();
    let mut last = start;
    let mut look = start;
    let mut turn = 0;
    loop {
        let now = Instant::now();
        let sending = now - start < duration;
        let drained = crowd.members.iter().all(|member| member.outstanding == 0);
        if !sending && (drained || now - last > PATIENCE) {
            break;
        }
        let mut nap = EpollTimeout::from(10u8);
        if let Flood::PerSecond(rate) = flood
            && sending
        {
            let due = ((now - start).as_secs_f64() * rate) as u64;
            // One batch per client, then a check for replies.
            let missing = due.saturating_sub(crowd.sent).min(BATCH as u64) as usize;
            if missing > 0 {
                crowd.send(turn % clients, missing);
                turn += 1;
            }
            nap = EpollTimeout::ZERO;
        }
        for client in crowd.ready(nap)? {
            let answers = crowd.receive(client, |probe, now| {
                times.add(now.saturating_sub(probe.stamp_ns));
            });
            if answers > 0 {
                last = Instant::now();
            }
            if window.is_some() && sending {
                crowd.send(client, answers);
            }
        }
        if let Some(window) = window
            && sending
            && now - look > PATIENCE / 5
        {
            look = now;
            crowd.give_up(now, window);
        }
    }
    Ok(Seen {
        sent: crowd.sent,
        received: times.len() as u64,
        elapsed: last.max(start + duration) - start,
        cpu: cpu.elapsed(),
        times,
    })
}

/// Clients that each subscribe and then count publications. The driver starts to publish when it
/// knows all of them.
///
/// # Errors
/// One of them is not answered, or the system has no sockets left.
pub fn subscriptions(
    to: SocketAddr,
    pid: u32,
    clients: usize,
    hertz: f64,
    duration: Duration,
) -> anyhow::Result<Seen> {
    let mut crowd = Crowd::new(to, clients, MsgType::Subscribe, probe::MIN_BYTES)?;
    let begin = Instant::now();
    for client in 0..clients {
        // The echo confirms the subscription. The clients subscribe one by one, as in practice.
        crowd.send(client, 1);
        while crowd.members[client].outstanding > 0 {
            ensure!(
                begin.elapsed() < Duration::from_secs(20),
                "a subscriber got no answer"
            );
            for ready in crowd.ready(EpollTimeout::from(10u8))? {
                crowd.receive(ready, |_, _| {});
            }
        }
    }
    // Some publications for warm-up.
    let begin = Instant::now() + Duration::from_millis(200);
    let end = begin + duration;
    let mut cpu = None;
    let mut times = Samples::default();
    let mut tallies = vec![Tally::default(); clients];
    while Instant::now() < end {
        if cpu.is_none() && Instant::now() >= begin {
            cpu = Some(CpuMeter::start(pid));
        }
        for client in crowd.ready(EpollTimeout::from(5u8))? {
            crowd.receive(client, |probe, now| {
                if cpu.is_some() && probe.is_data {
                    times.add(now.saturating_sub(probe.stamp_ns));
                    tallies[client].note(probe.number);
                }
            });
        }
    }
    let silent = (hertz * duration.as_secs_f64()) as u64;
    Ok(Seen {
        sent: tallies
            .iter()
            .map(|tally| tally.due().unwrap_or(silent))
            .sum(),
        received: times.len() as u64,
        elapsed: begin.elapsed(),
        cpu: cpu.map(|cpu| cpu.elapsed()).unwrap_or_default(),
        times,
    })
}

/// The range of numbers that one subscriber has received.
#[derive(Clone, Copy, Debug, Default)]
struct Tally(Option<(u32, u32)>);

impl Tally {
    fn note(&mut self, number: u32) {
        let (first, last) = self.0.unwrap_or((number, number));
        self.0 = Some((first.min(number), last.max(number)));
    }

    /// The number of publications between its first and its last.
    fn due(self) -> Option<u64> {
        self.0.map(|(first, last)| u64::from(last - first) + 1)
    }
}

/// A group of clients handled by one thread.
struct Crowd {
    members: Vec<Member>,
    epoll: Epoll,
    sender: Sender,
    receiver: Receiver,
    frames: Vec<Vec<u8>>,
    message: usize,
    /// Whether replies are data; if not, data messages are publications.
    asks_data: bool,
    /// See [`Flood::AtOnce`]. A flood without a window also uses it, because the load must cost
    /// less than the candidate.
    at_once: bool,
    sent: u64,
}

struct Member {
    socket: UdpSocket,
    next: u32,
    /// Replies to older requests are too late.
    base: u32,
    outstanding: usize,
    heard: Instant,
}

impl Crowd {
    fn new(to: SocketAddr, clients: usize, kind: MsgType, bytes: usize) -> anyhow::Result<Self> {
        let epoll = Epoll::new(EpollCreateFlags::empty())?;
        let mut members = Vec::new();
        for i in 0..clients {
            let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
            socket.connect(to)?;
            socket2::SockRef::from(&socket).set_recv_buffer_size(SOCKET_BYTES)?;
            epoll.add(&socket, EpollEvent::new(EpollFlags::EPOLLIN, i as u64))?;
            members.push(Member {
                socket,
                next: 1,
                base: 1,
                outstanding: 0,
                heard: Instant::now(),
            });
        }
        let (frame, message) = probe::request(kind, bytes);
        Ok(Self {
            members,
            epoll,
            sender: Sender::default(),
            receiver: Receiver::default(),
            frames: vec![frame; BATCH],
            message,
            asks_data: kind == MsgType::Data,
            at_once: false,
            sent: 0,
        })
    }

    /// Clients with received datagrams.
    fn ready(&self, wait: EpollTimeout) -> anyhow::Result<Vec<usize>> {
        let mut events = [EpollEvent::empty(); 256];
        let count = self.epoll.wait(&mut events, wait)?;
        Ok(events[..count]
            .iter()
            .map(|event| event.data() as usize)
            .collect())
    }

    fn send(&mut self, client: usize, mut count: usize) {
        let member = &mut self.members[client];
        self.sent += count as u64;
        member.outstanding += count;
        while count > 0 {
            let batch = count.min(BATCH);
            for frame in &mut self.frames[..batch] {
                probe::stamp(&mut frame[self.message..], now_ns(), member.next);
                member.next = member.next.wrapping_add(1);
            }
            let (socket, frames) = (member.socket.as_raw_fd(), &self.frames[..batch]);
            match self.at_once {
                true => send_at_once(socket, frames),
                false => self.sender.send_all(socket, frames),
            }
            count -= batch;
        }
    }

    /// Takes received datagrams, at most a batch. Returns the number that were in time.
    fn receive(&mut self, client: usize, mut each: impl FnMut(Probe, u64)) -> usize {
        let member = &mut self.members[client];
        let datagrams = self.receiver.receive(member.socket.as_raw_fd());
        let now = now_ns();
        let mut fresh = 0;
        for (bytes, _) in datagrams.iter() {
            match probe::read(bytes) {
                // A publication has its own number.
                Some(probe) if probe.is_data != self.asks_data => each(probe, now),
                Some(probe) if probe.number >= member.base => {
                    each(probe, now);
                    fresh += 1;
                }
                _ => {}
            }
        }
        if fresh > 0 {
            member.heard = Instant::now();
        }
        member.outstanding = member.outstanding.saturating_sub(fresh);
        fresh
    }

    /// Counts overdue requests as lost.
    fn give_up(&mut self, now: Instant, window: usize) {
        for client in 0..self.members.len() {
            let member = &mut self.members[client];
            if member.outstanding > 0 && now.saturating_duration_since(member.heard) > PATIENCE {
                member.base = member.next;
                member.outstanding = 0;
                member.heard = now;
                self.send(client, window);
            }
        }
    }
}

/// Sends frames of one length with one call; the system splits them. Frames that it does not take
/// are lost, as on any network.
fn send_at_once(socket: RawFd, frames: &[Vec<u8>]) {
    let segment = frames[0].len() as u16;
    let _ = sendmsg(
        socket,
        &[IoSlice::new(&frames.concat())],
        &[ControlMessage::UdpGsoSegments(&segment)],
        MsgFlags::empty(),
        None::<&SockaddrIn>,
    );
}

/// Nanoseconds of CLOCK_MONOTONIC, which all processes share.
fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("there is always a clock");
    Duration::from(now).as_nanos() as u64
}
