//! A driver process: its pipes and its faults. PURE.

use std::time::{Duration, Instant};

use amber_core::address::DriverKey;
use amber_core::gate::Gate;
use amber_proto::{Device, Frame};

use crate::programs::Program;
use crate::random::Random;
use crate::weather::{Weather, about, happens};

/// The maximum unwritten output of a process before it pauses.
const BACKLOG_BYTES: usize = 256 * 1024;

/// See the [module](self).
pub struct Process {
    pub pid: u32,
    pub key: DriverKey,
    /// The devices for which it was started.
    pub devices: Vec<Device>,
    /// The program that runs in it.
    pub program: Program,
    /// Its faults.
    pub vices: Vices,
    /// Its stdin; `None` when the mediator has closed it.
    pub stdin: Option<Pipe>,
    /// The limit of unread bytes in its stdin.
    pub gate: Gate,
    /// Bytes read from stdin that form no frame yet.
    pub input: Vec<u8>,
    /// Bytes that it still has to write.
    pub backlog: Vec<u8>,
    pub stdout: Pipe,
    /// It has closed its stdout, or has ended.
    pub stdout_closed: bool,
    /// Bytes read from its stdout that form no frame yet.
    pub output: Vec<u8>,
    /// When the partial frame started.
    pub partial_since: Option<Instant>,
    /// Its stdout is not read any more, because it wrote invalid data.
    pub ignored: bool,
    /// Bytes that it has read and written.
    pub read_bytes: usize,
    /// See `read_bytes`.
    pub written_bytes: usize,
    /// It has answered a PING.
    pub has_ponged: bool,
    /// The mediator has closed its end of stdin.
    pub eof: bool,
    /// It has been killed or has ended.
    pub ended: bool,
    /// Planned events, so that each is planned once.
    pub planned: Planned,
    /// The last partial frame in its stdin.
    pub written_to: Vec<u8>,
}

/// See [`Process::planned`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Planned {
    /// It reads its stdin.
    pub reads: bool,
    /// It writes to its stdout.
    pub writes: bool,
    /// The mediator reads its stdout.
    pub shell_reads: bool,
    /// Stdin was full, so the mediator will be notified of free space.
    pub full: bool,
    /// The mediator is notified of free space in stdin.
    pub writable: bool,
    /// The mediator checks whether the process has read something.
    pub look: Option<Instant>,
    /// The mediator notices the end of its stdout.
    pub closed: bool,
}

/// A pipe with a limited capacity.
#[derive(Debug)]
pub struct Pipe {
    bytes: Vec<u8>,
    capacity: usize,
}

impl Pipe {
    fn new(rng: &mut Random) -> Self {
        let capacity = *rng.choice(&[60, 500, 4096, 65_536]).unwrap_or(&4096);
        Self {
            bytes: Vec::new(),
            capacity,
        }
    }

    /// Takes as many bytes as fit.
    pub fn write(&mut self, bytes: &[u8]) -> usize {
        let taken = bytes.len().min(self.capacity - self.bytes.len());
        self.bytes.extend_from_slice(&bytes[..taken]);
        taken
    }

    /// Returns at most this number of bytes.
    pub fn read(&mut self, most: usize) -> Vec<u8> {
        self.bytes.drain(..most.min(self.bytes.len())).collect()
    }

    /// The number of bytes in it.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether more fits.
    pub fn has_room(&self) -> bool {
        self.bytes.len() < self.capacity
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }
}

/// The faults of a process; usually none.
#[derive(Clone, Debug, Default)]
pub struct Vices {
    /// It exits by itself at this time, with this exit code.
    pub exits: Option<(Instant, i32)>,
    /// It ends after writing this number of bytes: within a frame.
    pub dies_writing: Option<usize>,
    /// It ends after reading this number of bytes.
    pub dies_reading: Option<usize>,
    /// It hangs from this time on.
    pub hangs: Option<Instant>,
    /// It stops reading at this time.
    pub deaf: Option<Instant>,
    /// It prints text to stdout at this time.
    pub babbles: Option<Instant>,
    /// It writes half a frame at this time, and nothing more.
    pub half_frame: Option<Instant>,
    /// It closes its stdout at this time, and keeps running.
    pub closes_stdout: Option<Instant>,
    /// It closes its stdin at this time, and keeps running.
    pub closes_stdin: Option<Instant>,
    /// It does not end when stdin ends.
    pub ignores_eof: bool,
    /// It does not end on SIGTERM.
    pub ignores_term: bool,
    /// It reads slowly.
    pub slow: bool,
}

impl Vices {
    /// The faults of a new process.
    pub fn draw(rng: &mut Random, weather: &Weather, now: Instant) -> Self {
        let mut vices = Self::default();
        while happens(rng, weather.vice) {
            let soon = Duration::from_millis(rng.u64(1..8000));
            let at = Some(now + soon);
            match rng.u8(0..14) {
                0 => vices.exits = Some((now + about(rng, soon), rng.i32(0..3))),
                1 => vices.exits = Some((now, 1)),
                2 | 3 => vices.dies_writing = Some(rng.usize(0..3000)),
                4 | 5 => vices.dies_reading = Some(rng.usize(0..3000)),
                6 => vices.hangs = at,
                7 => vices.deaf = at,
                8 => vices.babbles = at,
                9 => vices.half_frame = at,
                10 => vices.closes_stdout = at,
                11 => vices.closes_stdin = at,
                12 => (vices.ignores_eof, vices.ignores_term) = (true, rng.bool()),
                _ => vices.slow = true,
            }
            if rng.bool() {
                break;
            }
        }
        vices
    }

    /// The time of the next fault.
    pub fn next_due(&self) -> Option<Instant> {
        let times = [
            self.exits.map(|(at, _)| at),
            self.babbles,
            self.half_frame,
            self.closes_stdout,
            self.closes_stdin,
        ];
        times.into_iter().flatten().min()
    }
}

/// The result of a turn of a process.
#[derive(Debug, PartialEq, Eq)]
pub enum Life {
    /// It keeps running.
    GoesOn,
    /// It ends with this exit code.
    Ends(i32),
}

impl Process {
    /// Creates a process that was just started.
    pub fn new(
        pid: u32,
        key: DriverKey,
        devices: Vec<Device>,
        program: Program,
        vices: Vices,
        rng: &mut Random,
    ) -> Self {
        Self {
            pid,
            key,
            devices,
            program,
            vices,
            stdin: Some(Pipe::new(rng)),
            gate: Gate::default(),
            input: Vec::new(),
            backlog: Vec::new(),
            stdout: Pipe::new(rng),
            stdout_closed: false,
            output: Vec::new(),
            partial_since: None,
            ignored: false,
            read_bytes: 0,
            written_bytes: 0,
            has_ponged: false,
            eof: false,
            ended: false,
            planned: Planned::default(),
            written_to: Vec::new(),
        }
    }

    /// Whether it runs our SDK.
    pub fn has_the_sdk(&self) -> bool {
        matches!(self.program, Program::Sdk(_))
    }

    /// Whether it hangs.
    pub fn hangs(&self, now: Instant) -> bool {
        self.vices.hangs.is_some_and(|at| at <= now)
    }

    /// Whether it reads its stdin.
    pub fn reads(&self, now: Instant) -> bool {
        let deaf = self.vices.deaf.is_some_and(|at| at <= now);
        !deaf && !self.hangs(now) && self.backlog.len() < BACKLOG_BYTES
    }

    /// Whether it has read all input completely.
    pub fn has_read_all(&self) -> bool {
        self.stdin.as_ref().is_some_and(Pipe::is_empty) && self.input.is_empty()
    }

    /// When it next acts without input.
    pub fn next_due(&self, now: Instant) -> Option<Instant> {
        if self.ended {
            return None;
        }
        let works = !self.hangs(now) && self.backlog.len() < BACKLOG_BYTES;
        let program = works.then(|| self.program.next_due()).flatten();
        self.vices.next_due().into_iter().chain(program).min()
    }

    /// Counts the whole frames written to its stdin.
    pub fn take_in(&mut self, bytes: &[u8]) -> u64 {
        self.written_to.extend_from_slice(bytes);
        let (mut start, mut frames) = (0, 0);
        while let Some(frame) = Frame::from_stream(&self.written_to[start..]) {
            start += frame.wire_len();
            frames += 1;
        }
        self.written_to.drain(..start);
        frames
    }

    /// Reads some bytes; returns the whole frames as bytes.
    pub fn read(&mut self, most: usize) -> (Vec<Vec<u8>>, Life) {
        let Some(stdin) = &mut self.stdin else {
            return (Vec::new(), Life::GoesOn);
        };
        let mut most = most;
        let mut life = Life::GoesOn;
        if let Some(last) = self.vices.dies_reading {
            most = most.min(last.saturating_sub(self.read_bytes));
        }
        let bytes = stdin.read(most);
        self.read_bytes += bytes.len();
        if self
            .vices
            .dies_reading
            .is_some_and(|last| self.read_bytes >= last)
        {
            life = Life::Ends(9);
        }
        self.input.extend_from_slice(&bytes);
        let mut frames = Vec::new();
        while let Some(frame) = Frame::from_stream(&self.input) {
            let length = frame.wire_len();
            frames.push(self.input.drain(..length).collect());
        }
        (frames, life)
    }

    /// Writes some of its output.
    pub fn write(&mut self, most: usize) -> Life {
        if self.stdout_closed {
            self.backlog.clear();
            return Life::GoesOn;
        }
        let mut most = most.min(self.backlog.len());
        if let Some(last) = self.vices.dies_writing {
            most = most.min(last.saturating_sub(self.written_bytes));
        }
        let written = self.stdout.write(&self.backlog[..most]);
        self.backlog.drain(..written);
        self.written_bytes += written;
        match self.vices.dies_writing {
            Some(last) if self.written_bytes >= last => Life::Ends(7),
            _ => Life::GoesOn,
        }
    }

    /// Applies faults that are due.
    pub fn misbehave(&mut self, now: Instant) -> Life {
        let due = |at: &mut Option<Instant>| at.take_if(|at| *at <= now).is_some();
        if due(&mut self.vices.babbles) {
            self.backlog.extend_from_slice(b"starting up...\n");
        }
        if due(&mut self.vices.half_frame) {
            self.backlog.extend_from_slice(b"\0\x04\x08");
            self.vices.hangs = Some(now);
        }
        if due(&mut self.vices.closes_stdout) {
            self.stdout_closed = true;
        }
        if due(&mut self.vices.closes_stdin) {
            self.stdin = None;
            self.input.clear();
        }
        match self.vices.exits {
            Some((at, code)) if at <= now => Life::Ends(code),
            _ => Life::GoesOn,
        }
    }
}
