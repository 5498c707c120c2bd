//! The process of one driver and its streams. IO.

#[cfg(test)]
mod tests;
mod turn;

use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{self, ExitStatus};
use std::time::{Duration, Instant};

use mio::unix::pipe::{Receiver, Sender};
use mio::{Interest, Registry};
use nix::sys::signal::{Signal, kill, killpg};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::{Pid, getpgid};
use rustix::io::ioctl_fionread;

use self::turn::{Buffer, hand_over};
use super::guard::{Guard, Slot};
use super::poll::{Source, Stream};
use super::spawn::Started;
use super::strays::Run;
use super::{Alarm as ShellAlarm, Shell};
use amber_core::Core;
use amber_core::address::DriverKey;
use amber_core::gate::Gate;
use amber_core::limits::{
    AHEAD_LOOK, JUNK_PAUSE, PARTIAL_FRAME, READ_BYTES, STDERR_LINE_BYTES, WORDS_READ_BYTES,
    WRITE_PIECES,
};
use amber_core::queue::Queue;
use amber_core::supervise::{Event, Exit};

/// After the end of a process, its streams are read for this long, in case a process that it
/// started holds them open.
const AFTER_EXIT: Duration = Duration::from_secs(1);

/// The timers of a driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Alarm {
    /// Check whether the driver has read something: the system does not report that for a pipe
    /// that is not full.
    Look,
    /// The rest of a frame should have arrived.
    PartialFrame,
    /// The process should have ended, because its stdout was closed.
    OutputClosed,
    /// The process should have ended, because its stdin was closed.
    InputClosed,
    /// Reading its stdout resumes after a pause.
    ReadOn,
    /// Its streams should have ended, because its process has.
    StreamsLeft,
}

impl Alarm {
    fn of(self, key: DriverKey) -> ShellAlarm {
        ShellAlarm::Driver(key, self)
    }
}

const ALARMS: [Alarm; 6] = [
    Alarm::Look,
    Alarm::PartialFrame,
    Alarm::OutputClosed,
    Alarm::InputClosed,
    Alarm::ReadOn,
    Alarm::StreamsLeft,
];

/// A running process, or one that has just ended.
#[derive(Debug)]
pub(super) struct Child {
    process: process::Child,
    run: Run,
    /// Its entry in the guard's table.
    slot: Slot,
    input: Option<Input>,
    output: Option<Output>,
    words: Option<Words>,
    /// Its exit status; its streams may still be open.
    exit: Option<Exit>,
}

#[derive(Debug)]
struct Input {
    pipe: Sender,
    gate: Gate,
}

/// Its stdout: frames.
#[derive(Debug)]
struct Output {
    pipe: Receiver,
    buffer: Buffer,
    /// The other end is closed: no more data will come.
    closed: bool,
    /// The pipe may hold more than the last read returned.
    more: bool,
    /// The last turn was too short for all data read.
    unfinished: bool,
    /// It wrote frames without any effect, and is not read for a while.
    paused: bool,
}

/// Its stderr: lines.
#[derive(Debug)]
struct Words {
    pipe: Receiver,
    line: Vec<u8>,
    closed: bool,
}

impl Child {
    /// Takes over a process that was just started. If a stream is missing, the process and
    /// everything that it may have started are killed.
    pub(super) fn new(
        registry: &Registry,
        key: DriverKey,
        Started {
            mut process,
            run,
            slot,
        }: Started,
    ) -> io::Result<Self> {
        let mut streams = || {
            let stdin = process.stdin.take().ok_or_else(no_pipes)?;
            let stdout = process.stdout.take().ok_or_else(no_pipes)?;
            let stderr = process.stderr.take().ok_or_else(no_pipes)?;
            let mut stdin = Sender::from(stdin);
            stdin.set_nonblocking(true)?;
            let token = Source::Stream(key, Stream::Stdin).into();
            registry.register(&mut stdin, token, Interest::WRITABLE)?;
            let watch = |mut pipe: Receiver, stream| {
                pipe.set_nonblocking(true)?;
                let token = Source::Stream(key, stream).into();
                registry.register(&mut pipe, token, Interest::READABLE)?;
                Ok::<_, io::Error>(pipe)
            };
            let stdout = watch(stdout.into(), Stream::Stdout)?;
            let stderr = watch(stderr.into(), Stream::Stderr)?;
            Ok((stdin, stdout, stderr))
        };
        match streams() {
            Ok((stdin, stdout, stderr)) => Ok(Self {
                process,
                run,
                slot,
                input: Some(Input {
                    pipe: stdin,
                    gate: Gate::default(),
                }),
                output: Some(Output {
                    pipe: stdout,
                    buffer: Buffer::default(),
                    closed: false,
                    more: false,
                    unfinished: false,
                    paused: false,
                }),
                words: Some(Words {
                    pipe: stderr,
                    line: Vec::new(),
                    closed: false,
                }),
                exit: None,
            }),
            Err(error) => {
                signal_group(process.id(), Signal::SIGKILL);
                // It may have left its group.
                process.kill()?;
                // It is reaped together with other orphans, so nothing here waits for it.
                Err(error)
            }
        }
    }

    pub(super) fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Identifies this start of the driver.
    pub(super) fn run(&self) -> Run {
        self.run
    }

    /// Whether it has ended, so that its pid may be reused.
    pub(super) fn has_exited(&self) -> bool {
        self.exit.is_some()
    }

    /// Writes waiting frames, as far as the gate and the pipe allow.
    fn write(&mut self, queue: &mut Queue) {
        let Some(Input { pipe, gate }) = &mut self.input else {
            queue.clear();
            return;
        };
        while !queue.is_empty() && !queue.is_blocked() {
            let (_, waiting) = queue.waiting();
            queue.offer(gate.room(waiting, Instant::now, || unread(pipe)));
            let Some(written) = write_pieces(pipe, queue.pieces()) else {
                queue.block();
                break;
            };
            match written {
                Ok(written) => {
                    gate.wrote(written);
                    queue.wrote(written);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => queue.block(),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // The driver has closed its stdin.
                Err(_) => queue.clear(),
            }
        }
    }

    /// Closes the driver's stdin, which asks it to end.
    pub(super) fn close_input(&mut self) {
        self.input = None;
    }

    /// Checks whether the process has ended. Returns true when it has just now; then its
    /// process group is killed, and the guard forgets it.
    fn has_ended(&mut self, guard: &mut Guard) -> bool {
        if self.exit.is_some() || is_running(self.pid()) {
            return false;
        }
        // Its pid is not reused before `try_wait`.
        signal_group(self.pid(), Signal::SIGKILL);
        guard.forget(self.slot);
        self.exit = match self.process.try_wait() {
            Ok(None) => None,
            Ok(Some(status)) => Some(describe(status)),
            Err(error) => Some(Exit {
                text: format!("was lost: {error}"),
                success: false,
            }),
        };
        self.exit.is_some()
    }
}

impl Shell {
    /// Writes frames that wait for a driver.
    pub(super) fn write(&mut self, key: DriverKey) {
        let Some(queue) = self.core.queue_mut(key) else {
            return;
        };
        let Some(child) = self.children.get_mut(&key) else {
            queue.clear();
            return;
        };
        child.write(queue);
        if queue.is_blocked()
            && let Some(at) = child.input.as_ref().and_then(|input| input.gate.look_at())
        {
            self.alarms.set(Alarm::Look.of(key), at);
        }
    }

    /// The driver may have read something: writes more.
    fn write_on(&mut self, key: DriverKey) {
        if let Some(queue) = self.core.queue_mut(key)
            && queue.is_blocked()
        {
            queue.writable();
            self.write(key);
        }
    }

    /// A stream of a driver is ready. `closed` means that the other end is closed.
    pub(super) fn stream_ready(&mut self, key: DriverKey, stream: Stream, closed: bool) {
        match stream {
            Stream::Stdin => {
                self.write_on(key);
                if closed {
                    self.input_closed(key);
                }
            }
            Stream::Stdout => self.read_frames(key, closed),
            Stream::Stderr => self.read_words(key, closed),
        }
    }

    pub(super) fn driver_due(&mut self, now: Instant, key: DriverKey, alarm: Alarm) {
        match alarm {
            Alarm::Look => self.write_on(key),
            Alarm::PartialFrame => {
                let child = self.children.get(&key);
                if let Some(output) = child.and_then(|child| child.output.as_ref()) {
                    self.core.driver_stalled(now, key, output.buffer.filled());
                    self.close_output(key);
                }
            }
            Alarm::OutputClosed => self.core.driver_event(now, key, Event::OutputClosed),
            Alarm::InputClosed => self.core.driver_event(now, key, Event::InputClosed),
            Alarm::ReadOn => {
                let child = self.children.get_mut(&key);
                if let Some(output) = child.and_then(|child| child.output.as_mut()) {
                    output.paused = false;
                    self.read_frames(key, false);
                }
            }
            Alarm::StreamsLeft => self.gone(key),
        }
    }

    /// A driver has closed its stdin, so it gets no more requests. Usually its process also
    /// ends.
    fn input_closed(&mut self, key: DriverKey) {
        let open = |child: &Child| child.exit.is_none() && child.input.is_some();
        if self.children.get(&key).is_some_and(open) {
            let due = Instant::now() + AFTER_EXIT;
            self.alarms.set(Alarm::InputClosed.of(key), due);
        }
    }

    fn read_frames(&mut self, key: DriverKey, closed: bool) {
        let Some(child) = self.children.get_mut(&key) else {
            return;
        };
        let Some(output) = &mut child.output else {
            return;
        };
        output.closed |= closed;
        if output.paused {
            output.more = true;
            return;
        }
        if output.unfinished {
            // More data may have come since; the system does not report that again.
            output.more = true;
        } else {
            match output.pipe.read(output.buffer.space()) {
                Ok(count @ 1..) => {
                    output.buffer.end += count;
                    // After a pipe was emptied, the system reports new data.
                    output.more = count >= READ_BYTES || output.closed;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == ErrorKind::Interrupted => {
                    return self.again(Source::Stream(key, Stream::Stdout));
                }
                Ok(0) | Err(_) => {
                    // Usually the process also ends. If not, no more frames will come.
                    if child.exit.is_none() {
                        let due = Instant::now() + AFTER_EXIT;
                        self.alarms.set(Alarm::OutputClosed.of(key), due);
                    }
                    return self.close_output(key);
                }
            }
        }
        self.take_frames(key);
    }

    /// Gives the received data to the core, as much as fits into the driver's turn.
    fn take_frames(&mut self, key: DriverKey) {
        let child = self.children.get_mut(&key);
        let Some(output) = child.and_then(|child| child.output.as_mut()) else {
            return;
        };
        let late = Alarm::PartialFrame.of(key);
        let was_partial = std::mem::replace(&mut output.buffer.partial, false);
        let turn = hand_over(&mut self.core, self.now, key, &mut output.buffer);
        output.unfinished = turn.unfinished;
        output.buffer.partial = !turn.unfinished && !output.buffer.filled().is_empty();
        if turn.lends {
            // The turn ends with `settle`, which sends everything.
            self.core.lend(std::mem::take(&mut output.buffer.bytes));
            self.lender = Some(key);
        }
        if output.buffer.partial {
            self.alarms.set(late, self.now + PARTIAL_FRAME);
        } else if was_partial {
            self.alarms.clear(late);
        }
        if !turn.sane {
            self.close_output(key);
        } else if turn.is_junk {
            output.paused = true;
            let pause = (turn.time * JUNK_PAUSE).max(AHEAD_LOOK);
            self.alarms
                .set(Alarm::ReadOn.of(key), Instant::now() + pause);
        } else if turn.unfinished || output.more {
            self.again(Source::Stream(key, Stream::Stdout));
        }
        if turn.frames > 0 {
            self.may_have_read(key);
        }
    }

    /// Everything is sent: the driver that lent its buffer gets it back.
    pub(super) fn give_back(&mut self) {
        let Some(key) = self.lender.take() else {
            return;
        };
        let buffer = self.core.give_back();
        let child = self.children.get_mut(&key);
        // Its stdout may be closed by now.
        if let Some(output) = child.and_then(|child| child.output.as_mut()) {
            output.buffer.bytes = buffer;
        }
    }

    /// The driver has written whole frames, so it may also have read something.
    fn may_have_read(&mut self, key: DriverKey) {
        let child = self.children.get_mut(&key);
        if let Some(Input { pipe, gate }) = child.and_then(|child| child.input.as_mut()) {
            gate.said();
            if gate.is_about_to_close()
                && let Some(queue) = self.core.queue_mut(key)
            {
                queue.offer(gate.room(usize::MAX, Instant::now, || unread(pipe)));
            }
            self.write_on(key);
        }
    }

    /// Stops reading a driver's stdout.
    fn close_output(&mut self, key: DriverKey) {
        if let Some(child) = self.children.get_mut(&key) {
            child.output = None;
        }
        self.alarms.clear(Alarm::PartialFrame.of(key));
        self.gone_if_silent(key);
    }

    /// Forwards a driver's stderr line by line; overlong lines are split.
    fn read_words(&mut self, key: DriverKey, closed: bool) {
        let child = self.children.get_mut(&key);
        let Some(child) = child else { return };
        let Some(words) = &mut child.words else {
            return;
        };
        words.closed |= closed;
        let mut piece = [0; WORDS_READ_BYTES];
        let core = &mut self.core;
        match words.pipe.read(&mut piece) {
            Ok(count @ 1..) => {
                for byte in &piece[..count] {
                    if *byte == b'\n' || words.line.len() == STDERR_LINE_BYTES {
                        say(core, key, &words.line);
                        words.line.clear();
                    }
                    if *byte != b'\n' {
                        words.line.push(*byte);
                    }
                }
                if count == piece.len() || words.closed {
                    self.again(Source::Stream(key, Stream::Stderr));
                }
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => {
                self.again(Source::Stream(key, Stream::Stderr));
            }
            Ok(0) | Err(_) => {
                words.say_rest(core, key);
                child.words = None;
                self.gone_if_silent(key);
            }
        }
    }

    /// Sends a signal to a driver and everything that it has started, including processes that
    /// left its process group.
    pub(super) fn signal(&mut self, key: DriverKey, signal: Signal) {
        let Some(child) = self.children.get(&key) else {
            return;
        };
        // After its end the pid may be reused.
        if child.has_exited() {
            return;
        }
        let (id, run) = (child.pid(), child.run());
        let pid = Pid::from_raw(id.cast_signed());
        let known = self.known_children();
        // Collected first: once a parent has ended, its children may be impossible to identify.
        let outside = self.strays.outside_group(pid, run, &known);
        signal_group(id, signal);
        if signal == Signal::SIGKILL || getpgid(Some(pid)) != Ok(pid) {
            let _ = kill(pid, signal);
        }
        for process in outside {
            // A process that cannot be verified is checked again when the driver has ended.
            let _ = super::process::signal(process, signal);
        }
    }

    /// Child processes have ended: finds out which ones.
    pub(super) fn reap(&mut self) {
        if self.guard.has_ended() {
            self.guard_lost();
        }
        let companion = self.companion.as_mut();
        if companion.is_some_and(|companion| companion.has_ended()) {
            self.companion_lost();
        }
        let guard = &mut self.guard;
        let children = self.children.iter_mut();
        let ended: Vec<_> = children
            .filter_map(|(key, child)| child.has_ended(guard).then_some(*key))
            .collect();
        for key in ended {
            let due = Instant::now() + AFTER_EXIT;
            self.alarms.set(Alarm::StreamsLeft.of(key), due);
            // The exit status is more informative.
            self.alarms.clear(Alarm::OutputClosed.of(key));
            self.alarms.clear(Alarm::InputClosed.of(key));
        }
        self.end_strays();
    }

    /// Checks which drivers are finished, now that strays may have ended.
    pub(super) fn finish_ended(&mut self) {
        let children = self.children.iter();
        let ended = children.filter(|(_, child)| child.has_exited());
        let keys: Vec<DriverKey> = ended.map(|(key, _)| *key).collect();
        for key in keys {
            self.gone_if_silent(key);
        }
    }

    /// A driver is finished when its process and everything that it started have ended, and all
    /// its output was read.
    fn gone_if_silent(&mut self, key: DriverKey) {
        let strays = &self.strays;
        let over = |child: &Child| {
            child.has_exited()
                && child.output.is_none()
                && child.words.is_none()
                && !strays.are_left_of(child.run)
        };
        if self.children.get(&key).is_some_and(over) {
            self.gone(key);
        }
    }

    fn gone(&mut self, key: DriverKey) {
        for alarm in ALARMS {
            self.alarms.clear(alarm.of(key));
        }
        let Some(child) = self.children.remove(&key) else {
            return;
        };
        if let Some(words) = &child.words {
            words.say_rest(&mut self.core, key);
        }
        if let Some(exit) = child.exit {
            self.core.exited(Instant::now(), key, exit);
        }
    }
}

impl Words {
    /// Forwards the unfinished last line.
    fn say_rest(&self, core: &mut Core, key: DriverKey) {
        if !self.line.is_empty() {
            say(core, key, &self.line);
        }
    }
}

fn say(core: &mut Core, key: DriverKey, line: &[u8]) {
    let text = String::from_utf8_lossy(line);
    core.driver_said(Instant::now(), key, text.trim_end());
}

fn no_pipes() -> io::Error {
    io::Error::other("the process has no pipes")
}

/// Whether our child runs. After its end, its pid stays reserved until it is waited for.
fn is_running(pid: u32) -> bool {
    let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
    let state = waitid(Id::Pid(Pid::from_raw(pid.cast_signed())), flags);
    state == Ok(WaitStatus::StillAlive)
}

fn signal_group(pid: u32, signal: Signal) {
    if let Ok(pid) = i32::try_from(pid) {
        // It is fine if no process is left.
        let _ = killpg(Pid::from_raw(pid), signal);
    }
}

/// Writes pieces with one call, at most [`WRITE_PIECES`]. `None` if there are none.
fn write_pieces<'a>(
    pipe: &mut Sender,
    mut pieces: impl Iterator<Item = &'a [u8]>,
) -> Option<io::Result<usize>> {
    let first = pieces.next()?;
    let Some(second) = pieces.next() else {
        return Some(pipe.write(first));
    };
    let mut slices = [IoSlice::new(&[]); WRITE_PIECES];
    let mut count = 0;
    let pieces = [first, second].into_iter().chain(pieces);
    for (slice, piece) in slices.iter_mut().zip(pieces) {
        *slice = IoSlice::new(piece);
        count += 1;
    }
    Some(pipe.write_vectored(&slices[..count]))
}

/// The number of unread bytes in a pipe.
fn unread(pipe: &Sender) -> usize {
    // If the system does not report it, the size of the pipe is the only bound.
    ioctl_fionread(pipe).map_or(0, |bytes| bytes as usize)
}

fn describe(status: ExitStatus) -> Exit {
    let text = match (status.code(), status.signal()) {
        (Some(code), _) => format!("exited with code {code}"),
        (None, Some(number)) => match Signal::try_from(number) {
            Ok(signal) => format!("killed by signal {number} ({signal})"),
            Err(_) => format!("killed by signal {number}"),
        },
        (None, None) => "ended".into(),
    };
    Exit {
        text,
        success: status.success(),
    }
}
