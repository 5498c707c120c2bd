//! A mediator for one client and one run that misbehaves according to the scenario. IO.

use std::io::{self, Read};
use std::net::{SocketAddr, UdpSocket};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use amber_proto::limits::MAX_DATAGRAM;
use amber_proto::mediator::{self, Refusal, Reply, refusal, reply};
use amber_proto::{Device, DeviceMessage, DriverHdr, Frame, MsgType, SynNum, dummy};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use prost::Message;

use super::fake::{Fakes, Reaction, Stream};
use crate::bench::{Running, frame, of_device};
use crate::checks::filled;
use crate::limits;
use crate::run::with_ack;

/// How the mediator treats answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Misbehaviour {
    Nothing,
    /// Sends each answer twice.
    Duplicated,
    /// Swaps two answers, and sends answers with unknown numbers between them.
    Reordered,
    /// Loses the first answer.
    Lost,
    /// Sends the first answer after the usual deadline.
    Late,
    /// Sends DRIVER_DIED instead of the first answer.
    DriverDied,
    /// Sends a PING to the client.
    Ping,
    /// Pads each answer to this length.
    Large(usize),
    /// Sends invalid datagrams before each answer.
    Junk,
}

/// The messages and actions of a client.
#[derive(Debug, Default)]
pub(super) struct Heard {
    /// Every datagram.
    pub(super) datagrams: Vec<Vec<u8>>,
    /// It has contacted the mediator itself.
    pub(super) announced: bool,
    pub(super) subscribed: bool,
    pub(super) unsubscribed: bool,
    /// It has sent CLIENT_DIED.
    pub(super) left: bool,
    /// It has answered the PING of the mediator.
    pub(super) ponged: bool,
    /// The misbehaviour has happened.
    pub(super) happened: bool,
    /// Two requests were open at once.
    pub(super) overlapped: bool,
    /// How it ended; `None` if it kept running, or the user started it.
    pub(super) exit: Option<ExitStatus>,
    pub(super) stdout: String,
    pub(super) stderr: String,
    /// The last datagrams that were sent to it.
    pub(super) sent: Vec<Vec<u8>>,
}

/// Serves one client until it ends, or until `patience` is over. Without a command,
/// it waits for a client that the user starts.
pub(super) fn serve(
    socket: &UdpSocket,
    command: Option<&[String]>,
    misbehaviour: Misbehaviour,
    fakes: Fakes,
    patience: Duration,
    running: &Running,
) -> io::Result<Heard> {
    // Late datagrams of the previous run.
    socket.set_nonblocking(true)?;
    while socket.recv_from(&mut [0; 1]).is_ok() {}
    socket.set_nonblocking(false)?;
    let client = match command {
        Some(command) => Some(Client::start(command, socket.local_addr()?, running)?),
        None => None,
    };
    let mut run = Run {
        socket,
        misbehaviour,
        fakes,
        heard: Heard::default(),
        to_send: Vec::new(),
        held: None,
        subscribers: Vec::new(),
        next_publication: Instant::now(),
        pinged: false,
    };
    run.run(client, patience)?;
    Ok(run.heard)
}

struct Run<'a> {
    socket: &'a UdpSocket,
    misbehaviour: Misbehaviour,
    fakes: Fakes,
    heard: Heard,
    to_send: Vec<(Instant, SocketAddr, Vec<u8>)>,
    /// An answer that is held back until the next one.
    held: Option<(Instant, SocketAddr, Vec<u8>)>,
    subscribers: Vec<(SocketAddr, Device, Stream)>,
    next_publication: Instant,
    pinged: bool,
}

impl Run<'_> {
    fn run(&mut self, mut client: Option<Client>, patience: Duration) -> io::Result<()> {
        let begun = Instant::now();
        let mut last_heard = None;
        let mut buffer = vec![0; MAX_DATAGRAM];
        self.socket.set_read_timeout(Some(limits::TURN))?;
        loop {
            if let Ok((length, from)) = self.socket.recv_from(&mut buffer) {
                last_heard = Some(Instant::now());
                let datagram = buffer[..length].to_vec();
                self.heard(from, &datagram);
                self.heard.datagrams.push(datagram);
            }
            self.send_what_is_due();
            match &mut client {
                Some(client) => {
                    if let Some(status) = client.child.try_wait()? {
                        self.heard.exit = Some(status);
                        break;
                    }
                    if begun.elapsed() > patience {
                        break;
                    }
                }
                // Started by the user: it ends with CLIENT_DIED or by silence.
                None => {
                    let silent =
                        last_heard.is_some_and(|at: Instant| at.elapsed() > limits::SILENCE);
                    if silent || self.heard.left {
                        break;
                    }
                }
            }
        }
        // Datagrams that it sent just before its end.
        while let Ok((length, from)) = self.socket.recv_from(&mut buffer) {
            let datagram = buffer[..length].to_vec();
            self.heard(from, &datagram);
            self.heard.datagrams.push(datagram);
        }
        if let Some(client) = client {
            (self.heard.stdout, self.heard.stderr) = client.end();
        }
        Ok(())
    }

    fn heard(&mut self, from: SocketAddr, datagram: &[u8]) {
        let Ok(frame) = Frame::from_datagram(datagram) else {
            return;
        };
        let Ok(header) = DriverHdr::decode(frame.header) else {
            return;
        };
        let Ok(message) = dummy::DriverMsg::decode(frame.message) else {
            return;
        };
        let device = match (header.device_type, header.device_id) {
            (Some(kind), Some(id)) => Device::new(amber_proto::DeviceType(kind), id),
            _ => Device::MEDIATOR,
        };
        if message.kind() == Some(MsgType::ClientDied) {
            self.heard.left = true;
            self.subscribers.retain(|(address, ..)| *address != from);
        } else if device == Device::MEDIATOR {
            self.for_mediator(from, &message);
        } else {
            self.for_device(from, device, frame.message, &message);
        }
    }

    fn for_mediator(&mut self, from: SocketAddr, message: &dummy::DriverMsg) {
        let answer = match message.kind() {
            Some(MsgType::Ping) => pong(message.syn()),
            Some(MsgType::Pong) => {
                self.heard.ponged |= message.ack() == Some(PING_NUMBER);
                return;
            }
            Some(MsgType::Data) => {
                let mut answer = mediator::DriverMsg::data();
                answer.set_ack(message.syn());
                answer.reply = Some(Reply {
                    what: Some(reply::What::Refused(Refusal {
                        reason: refusal::Reason::Failed.into(),
                        message: "this is a test mediator".into(),
                        hint: None,
                    })),
                });
                answer.encode_to_vec()
            }
            // A subscription to events, of which there are none.
            Some(MsgType::Subscribe | MsgType::Unsubscribe) => vec![],
            _ => return,
        };
        self.heard.announced = true;
        if !answer.is_empty() {
            self.send(from, Device::MEDIATOR, &answer);
        }
    }

    fn for_device(
        &mut self,
        from: SocketAddr,
        device: Device,
        bytes: &[u8],
        message: &dummy::DriverMsg,
    ) {
        if self.misbehaviour == Misbehaviour::Ping && self.heard.announced && !self.pinged {
            (self.pinged, self.heard.happened) = (true, true);
            let mut ping = mediator::DriverMsg::of_kind(MsgType::Ping);
            ping.set_syn(Some(PING_NUMBER));
            self.send(from, Device::MEDIATOR, &ping.encode_to_vec());
        }
        if !self.fakes.serves(device) {
            if self.heard.announced {
                self.send(from, device, &driver_died(message.syn()));
            }
            return;
        }
        match message.kind() {
            Some(MsgType::Ping) => self.answer(from, device, &pong(message.syn()), message.syn()),
            Some(MsgType::Data) => match (self.fakes.data(device, bytes), message.syn()) {
                (Reaction::Answer(answer), Some(syn)) => {
                    self.answer(from, device, &with_ack(&answer, syn.0), Some(syn));
                }
                (Reaction::Start(stream), _) => self.subscribe(from, device, stream),
                (Reaction::Stop(stream), _) => self.unsubscribe((from, device, stream)),
                (Reaction::Answer(_) | Reaction::Nothing, _) => {}
            },
            Some(MsgType::Subscribe) => self.subscribe(from, device, None),
            Some(MsgType::Unsubscribe) => self.unsubscribe((from, device, None)),
            _ => {}
        }
    }

    fn subscribe(&mut self, from: SocketAddr, device: Device, stream: Stream) {
        self.heard.subscribed = true;
        let subscriber = (from, device, stream);
        if !self.subscribers.contains(&subscriber) {
            self.subscribers.push(subscriber);
        }
    }

    fn unsubscribe(&mut self, subscriber: (SocketAddr, Device, Stream)) {
        self.heard.unsubscribed = true;
        self.subscribers.retain(|known| *known != subscriber);
    }

    fn answer(&mut self, to: SocketAddr, device: Device, message: &[u8], syn: Option<SynNum>) {
        let now = Instant::now();
        let first = !self.heard.happened;
        // `DriverDied` may need more, see below.
        self.heard.happened = !matches!(
            self.misbehaviour,
            Misbehaviour::Nothing | Misbehaviour::Ping
        ) || self.heard.happened;
        match self.misbehaviour {
            Misbehaviour::Nothing | Misbehaviour::Ping => self.send(to, device, message),
            Misbehaviour::Duplicated => {
                self.send(to, device, message);
                self.send(to, device, message);
            }
            Misbehaviour::Reordered => {
                let stranger = syn.map_or(1, |syn| syn.0.wrapping_add(1_000_000));
                let foreign = with_ack(message, stranger);
                self.send(to, device, &foreign);
                let bytes = frame(&of_device(device), message);
                match self.held.take() {
                    Some((_, other, held)) => {
                        self.heard.overlapped = true;
                        self.to_send.push((now, to, bytes));
                        self.to_send.push((now, other, held));
                    }
                    None => self.held = Some((now + limits::HELD, to, bytes)),
                }
            }
            Misbehaviour::Lost if first => {}
            Misbehaviour::Late if first => {
                let bytes = frame(&of_device(device), message);
                self.to_send.push((now + limits::LATE, to, bytes));
            }
            Misbehaviour::DriverDied if first && self.heard.announced => {
                self.send(to, device, &driver_died(syn));
            }
            Misbehaviour::DriverDied => {
                self.heard.happened = self.heard.announced;
                self.send(to, device, message);
            }
            Misbehaviour::Lost | Misbehaviour::Late => self.send(to, device, message),
            Misbehaviour::Large(length) => self.send(to, device, &filled(message, length)),
            Misbehaviour::Junk => {
                for junk in [
                    &b""[..],
                    b"\0",
                    b"\xff\xff\xff\xff",
                    b"\0\x04\x08\x05\x10\0\0\x09x",
                ] {
                    let _ = self.socket.send_to(junk, to);
                }
                for junk in [
                    &b"\xff\xff"[..],
                    b"",
                    b"\x10\x63",
                    b"\x10\x03\x20\xff\xff\x03",
                ] {
                    self.send(to, device, junk);
                }
                self.send(to, device, message);
            }
        }
    }

    fn send(&mut self, to: SocketAddr, device: Device, message: &[u8]) {
        let bytes = frame(&of_device(device), message);
        self.send_bytes(to, bytes);
    }

    fn send_bytes(&mut self, to: SocketAddr, bytes: Vec<u8>) {
        // If the client has ended, the loop notices it.
        let _ = self.socket.send_to(&bytes, to);
        if self.heard.sent.len() == limits::SHOWN_FRAMES {
            self.heard.sent.remove(0);
        }
        self.heard.sent.push(bytes);
    }

    fn send_what_is_due(&mut self) {
        let now = Instant::now();
        if self.held.as_ref().is_some_and(|(due, ..)| *due <= now) {
            self.to_send.extend(self.held.take());
        }
        let (due, later) = std::mem::take(&mut self.to_send)
            .into_iter()
            .partition(|(due, ..)| *due <= now);
        self.to_send = later;
        let due: Vec<_> = due;
        for (_, to, bytes) in due {
            self.send_bytes(to, bytes);
        }
        if now >= self.next_publication {
            self.next_publication = now + limits::PUBLICATION_PERIOD;
            for (to, device, stream) in self.subscribers.clone() {
                if let Some(message) = self.fakes.publication(device, &stream) {
                    self.send(to, device, &with_ack(&message, 0));
                }
            }
        }
    }
}

const PING_NUMBER: SynNum = SynNum(77);

fn pong(syn: Option<SynNum>) -> Vec<u8> {
    let mut pong = dummy::DriverMsg::of_kind(MsgType::Pong);
    pong.set_ack(syn);
    pong.encode_to_vec()
}

fn driver_died(syn: Option<SynNum>) -> Vec<u8> {
    let mut died = dummy::DriverMsg::of_kind(MsgType::DriverDied);
    died.set_ack(syn);
    died.encode_to_vec()
}

/// The client program.
struct Client {
    child: Child,
    stdout: JoinHandle<String>,
    stderr: JoinHandle<String>,
    running: Running,
}

impl Client {
    fn start(command: &[String], address: SocketAddr, running: &Running) -> io::Result<Self> {
        let (host, port) = (address.ip().to_string(), address.port().to_string());
        let address = address.to_string();
        let fill = |word: &String| {
            let word = word.replace("{}", &address);
            word.replace("{host}", &host).replace("{port}", &port)
        };
        let mut start = match command[0].as_str() {
            "amber" => Command::new(std::env::current_exe()?),
            other => Command::new(other),
        };
        let mut child = start
            .args(command[1..].iter().map(fill))
            .env("AMBER_MEDIATOR", &address)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()?;
        running.set(child.id());
        let missing = || io::Error::other("the process has no pipes");
        let stdout = collect(child.stdout.take().ok_or_else(missing)?);
        let stderr = collect(child.stderr.take().ok_or_else(missing)?);
        Ok(Self {
            child,
            stdout,
            stderr,
            running: running.clone(),
        })
    }

    /// Ends it if it runs, and returns its output.
    fn end(mut self) -> (String, String) {
        if let Ok(pid) = i32::try_from(self.child.id()) {
            // It has ended, or its time is over.
            let _ = killpg(Pid::from_raw(pid), Signal::SIGKILL);
        }
        let _ = self.child.wait();
        self.running.set(0);
        let text = |thread: JoinHandle<String>| thread.join().unwrap_or_default();
        (text(self.stdout), text(self.stderr))
    }
}

/// Everything, up to a limit; the rest is read and forgotten.
fn collect(mut stream: impl Read + Send + 'static) -> JoinHandle<String> {
    thread::spawn(move || {
        let mut kept = Vec::new();
        let mut piece = [0; 8192];
        while let Ok(count @ 1..) = stream.read(&mut piece) {
            let room = limits::OUTPUT_BYTES.saturating_sub(kept.len());
            kept.extend_from_slice(&piece[..count.min(room)]);
        }
        String::from_utf8_lossy(&kept).into_owned()
    })
}
