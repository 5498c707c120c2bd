//! One driver process: its pipes, and the vices that it may have. PURE.

use std::time::{Duration, Instant};

use amber_mediator::gate::Gate;
use amber_mediator::router::DriverKey;
use amber_proto::{Device, Frame};
use fastrand::Rng;

use crate::programs::Program;
use crate::weather::{Weather, about, happens};

/// What one process may keep to itself before it stops to think.
const BACKLOG_BYTES: usize = 256 * 1024;

/// See the [module](self).
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// Whose process it is.
    pub key: DriverKey,
    /// The devices that it was started for.
    pub devices: Vec<Device>,
    /// What runs in it.
    pub program: Program,
    /// What is wrong with it.
    pub vices: Vices,
    /// Its stdin; nobody writes to it any more when `None`.
    pub stdin: Option<Pipe>,
    /// How much may lie unread in that.
    pub gate: Gate,
    /// What it has taken from stdin and not understood yet.
    pub input: Vec<u8>,
    /// What it wants to write.
    pub backlog: Vec<u8>,
    /// Its stdout.
    pub stdout: Pipe,
    /// It has closed its stdout, or has ended.
    pub stdout_closed: bool,
    /// What was read of it and is no whole frame yet.
    pub output: Vec<u8>,
    /// Since when that is so.
    pub partial_since: Option<Instant>,
    /// Nobody reads its stdout any more: it wrote nonsense.
    pub ignored: bool,
    /// Bytes that it has read, and written.
    pub read_bytes: usize,
    /// See `read_bytes`.
    pub written_bytes: usize,
    /// It has answered a PING.
    pub has_ponged: bool,
    /// The mediator has closed its end of stdin.
    pub eof: bool,
    /// It has been killed or has ended.
    pub ended: bool,
    /// What is planned for it, so that it is planned once.
    pub planned: Planned,
    /// Whole frames that have gone into its stdin, and the rest of the last one.
    pub written_to: Vec<u8>,
}

/// See [`Process::planned`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Planned {
    /// It reads its stdin.
    pub reads: bool,
    /// It writes to its stdout.
    pub writes: bool,
    /// The mediator reads that.
    pub shell_reads: bool,
    /// Stdin was full, so the mediator will hear when it has room.
    pub full: bool,
    /// The mediator hears that stdin has room.
    pub writable: bool,
    /// The mediator looks whether it has read something.
    pub look: Option<Instant>,
    /// The end of its stdout is noticed.
    pub closed: bool,
}

/// A pipe that holds so much.
#[derive(Debug)]
pub struct Pipe {
    bytes: Vec<u8>,
    capacity: usize,
}

impl Pipe {
    fn new(rng: &mut Rng) -> Self {
        let capacity = *rng.choice(&[60, 500, 4096, 65_536]).unwrap_or(&4096);
        Self {
            bytes: Vec::new(),
            capacity,
        }
    }

    /// Takes as much as there is room for.
    pub fn write(&mut self, bytes: &[u8]) -> usize {
        let taken = bytes.len().min(self.capacity - self.bytes.len());
        self.bytes.extend_from_slice(&bytes[..taken]);
        taken
    }

    /// Gives at most so much.
    pub fn read(&mut self, most: usize) -> Vec<u8> {
        self.bytes.drain(..most.min(self.bytes.len())).collect()
    }

    /// How much lies in it.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether something more fits.
    pub fn has_room(&self) -> bool {
        self.bytes.len() < self.capacity
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }
}

/// What is wrong with a process; mostly nothing.
#[derive(Clone, Debug, Default)]
pub struct Vices {
    /// It ends by itself at this time, with this exit code.
    pub exits: Option<(Instant, i32)>,
    /// It ends when it has written so many bytes: in the middle of a frame.
    pub dies_writing: Option<usize>,
    /// It ends when it has read so many bytes.
    pub dies_reading: Option<usize>,
    /// It does nothing at all from then on.
    pub hangs: Option<Instant>,
    /// It reads nothing from then on.
    pub deaf: Option<Instant>,
    /// It prints text to stdout then.
    pub babbles: Option<Instant>,
    /// It writes half a frame then, and nothing more.
    pub half_frame: Option<Instant>,
    /// It closes its stdout then, and goes on.
    pub closes_stdout: Option<Instant>,
    /// It closes its stdin then, and goes on.
    pub closes_stdin: Option<Instant>,
    /// It does not end when stdin ends.
    pub ignores_eof: bool,
    /// It does not end by SIGTERM.
    pub ignores_term: bool,
    /// It takes its time to read.
    pub slow: bool,
}

impl Vices {
    /// Of a new process.
    pub fn draw(rng: &mut Rng, weather: &Weather, now: Instant) -> Self {
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

    /// Something happens at this time by itself.
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

/// What has come of a turn of a process.
#[derive(Debug, PartialEq, Eq)]
pub enum Life {
    /// It goes on.
    GoesOn,
    /// It ends with this exit code.
    Ends(i32),
}

impl Process {
    /// One that was just started.
    pub fn new(
        pid: u32,
        key: DriverKey,
        devices: Vec<Device>,
        program: Program,
        vices: Vices,
        rng: &mut Rng,
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

    /// Our SDK runs in it.
    pub fn has_the_sdk(&self) -> bool {
        matches!(self.program, Program::Sdk(_))
    }

    /// It does nothing any more, but is there.
    pub fn hangs(&self, now: Instant) -> bool {
        self.vices.hangs.is_some_and(|at| at <= now)
    }

    /// It reads its stdin.
    pub fn reads(&self, now: Instant) -> bool {
        let deaf = self.vices.deaf.is_some_and(|at| at <= now);
        !deaf && !self.hangs(now) && self.backlog.len() < BACKLOG_BYTES
    }

    /// It has read all that was written to it, whole.
    pub fn has_read_all(&self) -> bool {
        self.stdin.as_ref().is_some_and(Pipe::is_empty) && self.input.is_empty()
    }

    /// When it does something by itself.
    pub fn next_due(&self, now: Instant) -> Option<Instant> {
        if self.ended {
            return None;
        }
        let works = !self.hangs(now) && self.backlog.len() < BACKLOG_BYTES;
        let program = works.then(|| self.program.next_due()).flatten();
        self.vices.next_due().into_iter().chain(program).min()
    }

    /// Counts the whole frames that have gone into its stdin.
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

    /// Reads some bytes; gives the whole frames, as bytes.
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

    /// Writes some of what it wants to write.
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

    /// Does what it does at certain times by itself.
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
