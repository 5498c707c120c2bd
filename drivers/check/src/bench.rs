//! One run of a driver, started as the mediator starts it. IO.

use std::collections::{BTreeSet, VecDeque};
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::net::UdpSocket;
use std::os::fd::AsFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use amber_proto::frame::{Frame, check_prefix};
use amber_proto::{
    Device, DeviceMessage, DeviceType, DriverHdr, DriverMsg, MsgType, Packet, dummy, mediator,
};
use bytes::Bytes;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use prost::Message;

use crate::limits;

/// The process group that runs now, so that an interrupt can end it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Running(Arc<AtomicI32>);

impl Running {
    /// 0 if none runs.
    pub(crate) fn set(&self, pid: u32) {
        self.0
            .store(i32::try_from(pid).unwrap_or(0), Ordering::SeqCst);
    }

    pub(crate) fn kill(&self) {
        match self.0.load(Ordering::SeqCst) {
            0 => {}
            // An error means that the group has ended.
            pid => drop(killpg(Pid::from_raw(pid), Signal::SIGKILL)),
        }
    }
}

/// The reason why the communication with a driver failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// Its process has ended.
    Ended(String),
    /// It has written bytes that are not a frame.
    Noise { rest: Vec<u8>, recent: Vec<u8> },
    /// It does not read its stdin.
    DoesNotRead,
    /// It writes endlessly.
    Flood,
}

/// The frames on the pipes, in their order.
#[derive(Clone, Debug)]
pub(crate) enum Logged {
    Sent(Vec<u8>),
    Received(Vec<u8>),
}

/// See the [module](self).
pub(crate) struct Bench {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: ChildStdout,
    /// Bytes that were read and not processed.
    input: Vec<u8>,
    /// The last bytes of stdout.
    recent: Vec<u8>,
    words: Arc<Mutex<VecDeque<String>>>,
    /// Collects the words, until stderr is closed.
    listening: JoinHandle<()>,
    pub(crate) log: Vec<Logged>,
    /// Its requests to other devices.
    pub(crate) asked: Vec<(DriverHdr, Bytes)>,
    /// Requests of this check without an answer so far.
    unanswered: BTreeSet<u32>,
    /// Requests of earlier checks that were not answered in time.
    given_up: BTreeSet<u32>,
    closed: bool,
    /// The input exceeded its limit, and the rest is discarded.
    flooded: bool,
    device: Device,
    running: Running,
    /// Reserves the address in AMBER_MEDIATOR.
    _mediator: Option<UdpSocket>,
}

impl Bench {
    /// Starts a driver; `verbose` shows its stderr.
    pub(crate) fn start(
        command: &[String],
        device: Device,
        verbose: bool,
        running: &Running,
    ) -> io::Result<Self> {
        let program = match command[0].as_str() {
            "amber" => std::env::current_exe()?,
            other => Path::new(other).to_owned(),
        };
        let mediator = UdpSocket::bind("127.0.0.1:0").ok();
        let address = mediator
            .as_ref()
            .and_then(|socket| socket.local_addr().ok());
        let mut start = Command::new(program);
        start
            .args(&command[1..])
            .env("AMBER_DEVICE", device.to_string())
            .env("AMBER_DEVICE_TYPE", device.device_type.0.to_string())
            .env("AMBER_DEVICE_ID", device.id.to_string())
            .env(
                "AMBER_MEDIATOR",
                address.map_or("127.0.0.1:9".into(), |address| address.to_string()),
            )
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        let mut child = start.spawn()?;
        let missing = || io::Error::other("the process has no pipes");
        let stdin = child.stdin.take().ok_or_else(missing)?;
        let stdout = child.stdout.take().ok_or_else(missing)?;
        let stderr = child.stderr.take().ok_or_else(missing)?;
        running.set(child.id());
        fcntl(&stdin, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        fcntl(&stdout, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        let words = Arc::new(Mutex::new(VecDeque::new()));
        let listening = thread::spawn({
            let words = words.clone();
            move || collect_words(stderr, &words, verbose)
        });
        Ok(Self {
            child,
            stdin: Some(stdin),
            stdout,
            input: Vec::new(),
            recent: Vec::new(),
            words,
            listening,
            log: Vec::new(),
            asked: Vec::new(),
            unanswered: BTreeSet::new(),
            given_up: BTreeSet::new(),
            closed: false,
            flooded: false,
            device,
            running: running.clone(),
            _mediator: mediator,
        })
    }

    /// Sends one frame in one piece.
    pub(crate) fn send(
        &mut self,
        header: &DriverHdr,
        message: &[u8],
        wait: Duration,
    ) -> Result<(), Trouble> {
        let bytes = frame(header, message);
        let number = DriverMsg::decode(message).ok().and_then(|it| it.syn_num);
        self.unanswered.extend(number);
        self.note(Logged::Sent(bytes.clone()));
        self.write(&bytes, wait)
    }

    /// Writes raw bytes.
    pub(crate) fn write(&mut self, mut bytes: &[u8], wait: Duration) -> Result<(), Trouble> {
        let deadline = Instant::now() + wait;
        while !bytes.is_empty() {
            let Some(stdin) = &mut self.stdin else {
                return Err(Trouble::DoesNotRead);
            };
            match stdin.write(bytes) {
                Ok(count) => bytes = &bytes[count..],
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    let left = deadline.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return Err(Trouble::DoesNotRead);
                    }
                    self.wait_for(left, true)?;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Err(self.ended_or(Trouble::DoesNotRead)),
            }
        }
        Ok(())
    }

    /// Makes both pipes smaller. That may fail while they hold data; then the check
    /// takes longer.
    pub(crate) fn shrink_pipes(&mut self) {
        if let Some(stdin) = &self.stdin {
            let _ = fcntl(stdin, FcntlArg::F_SETPIPE_SZ(limits::FLOOD_PIPE));
        }
        let _ = fcntl(&self.stdout, FcntlArg::F_SETPIPE_SZ(limits::FLOOD_PIPE));
    }

    /// Writes as much as the pipe takes, without reading the stdout of the driver.
    /// Returns the number of bytes.
    pub(crate) fn write_without_reading(&mut self, bytes: &[u8], wait: Duration) -> usize {
        let mut written = 0;
        let Some(stdin) = &mut self.stdin else {
            return 0;
        };
        while written < bytes.len() {
            match stdin.write(&bytes[written..]) {
                Ok(count) => written += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    let mut fds = [PollFd::new(stdin.as_fd(), PollFlags::POLLOUT)];
                    if !poll(&mut fds, timeout(wait)).is_ok_and(|ready| ready > 0) {
                        break;
                    }
                }
                Err(_) => break,
            }
        }
        written
    }

    /// The next frame for a client, or an answer to the mediator; `None` on a
    /// timeout. Records and answers requests to other devices, and skips reports of
    /// the driver about itself and late answers to earlier checks.
    pub(crate) fn receive(&mut self, wait: Duration) -> Result<Option<Packet>, Trouble> {
        let deadline = Instant::now() + wait;
        loop {
            while let Some((packet, bytes)) = self.take_frame()? {
                if let Some(device) = request_to(&packet, self.device) {
                    self.answer_for(device, packet);
                    continue;
                }
                if tells_the_mediator(&packet) {
                    continue;
                }
                if names_half_a_device(&packet) {
                    self.note_request(packet);
                    continue;
                }
                if self.is_late_answer(&packet) {
                    continue;
                }
                self.note(Logged::Received(bytes));
                return Ok(Some(packet));
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return if self.input.is_empty() || self.closed {
                    Ok(None)
                } else {
                    Err(self.noise())
                };
            }
            if self.closed {
                return Err(self.ended_or(Trouble::Ended("it has closed its stdout".into())));
            }
            self.wait_for(left, false)?;
        }
    }

    /// Closes stdin of the driver, as the mediator does to end it.
    pub(crate) fn close_stdin(&mut self) {
        self.stdin = None;
    }

    pub(crate) fn signal(&self, signal: Signal) {
        // If the driver has ended, the wait that follows notices it.
        let _ = killpg(Pid::from_raw(self.child.id() as i32), signal);
    }

    /// Waits for its end, and reads its stdout meanwhile.
    pub(crate) fn wait_end(&mut self, wait: Duration) -> Option<ExitStatus> {
        let deadline = Instant::now() + wait;
        loop {
            if let Ok(Some(status)) = self.child.try_wait() {
                self.read_all();
                return Some(status);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            if self.closed {
                thread::sleep(left.min(Duration::from_millis(5)));
            } else {
                // Its end closes stdout, unless a child process holds it open.
                let _ = self.wait_for(left.min(Duration::from_millis(20)), false);
            }
        }
    }

    /// The frames that it has written and no check has read, without other bytes.
    pub(crate) fn rest(&mut self) -> Vec<Packet> {
        let mut rest = Vec::new();
        while let Ok(Some((packet, bytes))) = self.take_frame() {
            self.note(Logged::Received(bytes));
            rest.push(packet);
        }
        rest
    }

    /// The remaining bytes that are not a frame.
    pub(crate) fn leftover(&self) -> &[u8] {
        &self.input
    }

    pub(crate) fn recent(&self) -> &[u8] {
        &self.recent
    }

    /// The time for which its threads have had something to do: on a processor, or waiting for one.
    /// So the load of the machine does not matter.
    pub(crate) fn busy_time(&self) -> Option<Duration> {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.child.id())).ok()?;
        let busy_ns = tasks.flatten().filter_map(|task| {
            let times = std::fs::read_to_string(task.path().join("schedstat")).ok()?;
            let mut times = times.split_whitespace().map(|ns| ns.parse::<u64>().ok());
            Some(times.next()?? + times.next()??)
        });
        Some(Duration::from_nanos(busy_ns.sum()))
    }

    /// Waits until its last lines on stderr have been read: at most this long, as another process may
    /// keep stderr open.
    pub(crate) fn hear_out(&self, patience: Duration) {
        let deadline = Instant::now() + patience;
        while !self.listening.is_finished() && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Its lines on stderr since the check began. Of many lines, the first and the
    /// last, because languages print the cause at different places.
    pub(crate) fn last_words(&self) -> Vec<String> {
        let Ok(words) = self.words.lock() else {
            return Vec::new();
        };
        let most = limits::STDERR_LINES;
        if words.len() <= most {
            return words.iter().cloned().collect();
        }
        let first = words.iter().take(most / 2).cloned();
        let last = words.iter().skip(words.len() - most / 2).cloned();
        first.chain(["...".to_owned()]).chain(last).collect()
    }

    /// Clears the log before a check.
    pub(crate) fn begin(&mut self) {
        self.log.clear();
        self.recent.clear();
        self.given_up.append(&mut self.unanswered);
        if let Ok(mut words) = self.words.lock() {
            words.clear();
        }
    }

    /// Whether it answers a request of an earlier check, as a driver does that was slow then.
    fn is_late_answer(&mut self, packet: &Packet) -> bool {
        let message = DriverMsg::decode(packet.message.clone()).ok();
        let Some(number) = message.and_then(|message| message.ack_num) else {
            return false;
        };
        self.unanswered.remove(&number);
        self.given_up.contains(&number)
    }

    /// Logs a frame, and keeps only the last ones.
    fn note(&mut self, what: Logged) {
        if self.log.len() == limits::LOG_FRAMES {
            self.log.drain(..limits::LOG_FRAMES / 2);
        }
        self.log.push(what);
    }

    fn note_request(&mut self, packet: Packet) {
        if self.asked.len() < limits::LOG_FRAMES {
            self.asked.push((packet.header, packet.message));
        }
    }

    fn take_frame(&mut self) -> Result<Option<(Packet, Vec<u8>)>, Trouble> {
        if self.flooded {
            return Err(Trouble::Flood);
        }
        let Some(frame) = Frame::from_stream(&self.input) else {
            return match check_prefix(&self.input) {
                Ok(()) => Ok(None),
                Err(_) => {
                    // The bytes that follow at once help the diagnosis.
                    let _ = self.wait_for(limits::QUIET, false);
                    Err(self.noise())
                }
            };
        };
        let Ok(header) = DriverHdr::decode(frame.header) else {
            return Err(self.noise());
        };
        let (length, message) = (frame.wire_len(), Bytes::copy_from_slice(frame.message));
        let bytes = self.input.drain(..length).collect();
        Ok(Some((Packet { header, message }, bytes)))
    }

    fn noise(&self) -> Trouble {
        Trouble::Noise {
            rest: self.input.clone(),
            recent: self.recent.clone(),
        }
    }

    /// Waits until it can read or write, and reads.
    fn wait_for(&mut self, wait: Duration, write: bool) -> Result<(), Trouble> {
        let mut fds = Vec::with_capacity(2);
        if !self.closed {
            fds.push(PollFd::new(self.stdout.as_fd(), PollFlags::POLLIN));
        }
        if let Some(stdin) = self.stdin.as_ref().filter(|_| write) {
            fds.push(PollFd::new(stdin.as_fd(), PollFlags::POLLOUT));
        }
        if fds.is_empty() {
            thread::sleep(wait);
            return Ok(());
        }
        // Treats an interrupt by a signal as a timeout.
        let _ = poll(&mut fds, timeout(wait));
        drop(fds);
        self.read_all();
        if self.closed && write {
            return Err(self.ended_or(Trouble::Ended("it has closed its stdout".into())));
        }
        Ok(())
    }

    fn read_all(&mut self) {
        let mut buffer = [0; 65_536];
        let mut total = 0;
        // A driver that writes endlessly must not block us.
        while !self.closed && total < limits::INPUT_BYTES {
            match self.stdout.read(&mut buffer) {
                Ok(0) => self.closed = true,
                Ok(count) => {
                    total += count;
                    self.flooded |= self.input.len() + count > limits::INPUT_BYTES;
                    if !self.flooded {
                        self.input.extend_from_slice(&buffer[..count]);
                    }
                    let room = limits::RAW_BYTES.saturating_sub(self.recent.len());
                    self.recent.extend_from_slice(&buffer[..count.min(room)]);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return,
            }
        }
    }

    /// How it ended, if it did: its stdout may close a little earlier.
    fn ended_or(&mut self, trouble: Trouble) -> Trouble {
        let deadline = Instant::now() + Duration::from_secs(1);
        while Instant::now() < deadline {
            if let Ok(Some(status)) = self.child.try_wait() {
                self.read_all();
                return match self.input.is_empty() {
                    true => Trouble::Ended(describe(status)),
                    false => self.noise(),
                };
            }
            thread::sleep(Duration::from_millis(5));
        }
        trouble
    }

    /// Answers a request to another device as the mediator of a robot without
    /// other devices would.
    fn answer_for(&mut self, device: Device, asked: Packet) {
        let message = DriverMsg::decode(asked.message.clone()).unwrap_or_default();
        let kind = match (device.device_type, message.r#type()) {
            (DeviceType::MEDIATOR, MsgType::Ping) => MsgType::Pong,
            _ => MsgType::DriverDied,
        };
        let answer = DriverMsg {
            r#type: kind.into(),
            ack_num: message.syn_num,
            ..DriverMsg::default()
        };
        let header = of_device(device);
        let wanted = matches!(
            message.r#type(),
            MsgType::Ping | MsgType::Data | MsgType::Subscribe
        );
        self.note_request(asked);
        if wanted {
            // If the driver has ended, the check notices it.
            let _ = self.write(&frame(&header, &answer.encode_to_vec()), limits::FLOOD_WAIT);
        }
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        self.stdin = None;
        self.signal(Signal::SIGKILL);
        let _ = self.child.wait();
        self.running.set(0);
    }
}

/// The device to which a driver sends a request; `None` for an answer, even if it
/// lacks its clients.
fn request_to(packet: &Packet, own: Device) -> Option<Device> {
    let header = &packet.header;
    let device = Device::new(DeviceType(header.device_type?), header.device_id?);
    let message = dummy::DriverMsg::decode(packet.message.clone()).ok();
    let answers = message
        .is_some_and(|m| m.kind() == Some(MsgType::Pong) || m.ack_num.is_some_and(|ack| ack != 0));
    (header.client_ids.is_empty() && device != own && !answers).then_some(device)
}

/// Whether it is a request to a device without a type or id, which the mediator
/// cannot deliver.
fn names_half_a_device(packet: &Packet) -> bool {
    let header = &packet.header;
    let message = dummy::DriverMsg::decode(packet.message.clone()).unwrap_or_default();
    header.client_ids.is_empty()
        && header.device_type.is_some() != header.device_id.is_some()
        && message.ack_num.is_none_or(|ack| ack == 0)
}

/// Whether a driver reports to the mediator about itself: the health or the description of
/// its device, or that it is unavailable.
fn tells_the_mediator(packet: &Packet) -> bool {
    let message = mediator::DriverMsg::decode(packet.message.clone()).unwrap_or_default();
    let about_itself = match message.kind() {
        Some(MsgType::Data) => message.health.is_some() || message.description.is_some(),
        kind => kind == Some(MsgType::DriverDied),
    };
    packet.header == DriverHdr::default() && about_itself
}

/// A header as in the answer of another device.
pub(crate) fn of_device(device: Device) -> DriverHdr {
    DriverHdr {
        device_type: Some(device.device_type.0),
        device_id: Some(device.id.0),
        client_ids: vec![],
    }
}

/// The bytes of a frame with parts of at most 32 767 bytes.
pub(crate) fn frame(header: &DriverHdr, message: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let header = header.encode_to_vec();
    let frame = Frame {
        header: &header,
        message,
    };
    let encoded = frame.encode(&mut out);
    debug_assert!(encoded.is_ok(), "a check sends too much");
    out
}

/// How a process ended, in words.
pub(crate) fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(number)) => match Signal::try_from(number) {
            Ok(signal) => format!("killed by {signal}"),
            Err(_) => format!("killed by signal {number}"),
        },
        (None, None) => "ended".into(),
    }
}

fn timeout(wait: Duration) -> PollTimeout {
    // Rounded up: a rest below a millisecond must not cause a busy loop.
    PollTimeout::try_from(wait.as_millis() as i32 + 1).unwrap_or(PollTimeout::MAX)
}

fn collect_words(stderr: impl Read, words: &Mutex<VecDeque<String>>, verbose: bool) {
    let mut reader = BufReader::new(stderr);
    let mut line = Vec::new();
    // Longer lines are cut in pieces.
    while (&mut reader)
        .take(limits::LINE_BYTES)
        .read_until(b'\n', &mut line)
        .is_ok_and(|count| count > 0)
    {
        let text = String::from_utf8_lossy(&line).trim_end().to_owned();
        line.clear();
        if verbose {
            amber_terminal::note(format_args!("  | {text}"));
        }
        let Ok(mut words) = words.lock() else { return };
        // Keeps the first ones, see `last_words`.
        if words.len() == limits::STDERR_KEPT {
            words.remove(limits::STDERR_KEPT / 2);
        }
        words.push_back(text);
    }
}
