//! The streams of one driver process. IO.

use std::cell::{Cell, RefCell};
use std::io::{self, ErrorKind};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::rc::Rc;
use std::time::{Duration, Instant};

use amber_proto::Frame;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use rustix::io::ioctl_fionread;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::net::unix::pipe;
use tokio::process::{ChildStderr, ChildStdout};
use tokio::sync::Notify;
use tokio::task::{AbortHandle, spawn_local};
use tokio::time::{timeout, timeout_at};

use super::Shell;
use crate::gate::Gate;
use crate::limits::{AHEAD_LOOK, PARTIAL_FRAME, READ_BYTES, STDERR_LINE_BYTES};
use crate::queue::Queue;
use crate::router::DriverKey;
use crate::supervise::{Event, Exit};

/// How long we read on after the end of a process, when something that it has
/// started keeps its streams open.
const AFTER_EXIT: Duration = Duration::from_secs(1);

/// A running process.
#[derive(Debug)]
pub(super) struct Child {
    pub(super) pid: u32,
    input: Option<Input>,
}

#[derive(Debug)]
struct Input {
    pipe: Rc<pipe::Sender>,
    gate: RefCell<Gate>,
    wakers: Rc<Wakers>,
    waiter: AbortHandle,
}

/// What wakes the task that waits until the driver wants more.
#[derive(Debug, Default)]
struct Wakers {
    /// It has something to wait for.
    full: Notify,
    /// When to look whether it has read something.
    look_at: Cell<Option<Instant>>,
    /// The driver has said something, so it may have read something.
    said: Notify,
}

impl Child {
    /// Takes over a process that was just started.
    pub(super) fn new(
        shell: &Rc<Shell>,
        key: DriverKey,
        mut process: tokio::process::Child,
    ) -> io::Result<Self> {
        let pid = process.id().ok_or_else(no_pipes)?;
        let (stdin, stdout, stderr) = streams(&mut process, pid)?;
        let pipe = Rc::new(stdin);
        let wakers = Rc::new(Wakers::default());
        let waiter = spawn_local(wait_for_room(
            shell.clone(),
            key,
            pipe.clone(),
            wakers.clone(),
        ));
        spawn_local(attend(shell.clone(), key, process, pid, stdout, stderr));
        Ok(Self {
            pid,
            input: Some(Input {
                pipe,
                gate: RefCell::default(),
                wakers,
                waiter: waiter.abort_handle(),
            }),
        })
    }

    /// Writes what waits, as far as the driver shall have it ahead and the pipe
    /// takes it. Returns how many bytes that were.
    pub(super) fn write(&self, queue: &mut Queue) -> usize {
        let Some(input) = &self.input else {
            queue.clear();
            return 0;
        };
        let gate = &mut *input.gate.borrow_mut();
        let mut all = 0;
        while !queue.is_empty() && !queue.is_blocked() {
            let look = || unread(&input.pipe);
            queue.offer(gate.room(Instant::now, look));
            if queue.chunk().is_empty() {
                queue.block();
                break;
            }
            match input.pipe.try_write(queue.chunk()) {
                Ok(written) => {
                    gate.wrote(written);
                    queue.wrote(written);
                    all += written;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => queue.block(),
                // It has closed its stdin.
                Err(_) => queue.clear(),
            }
        }
        if queue.is_blocked() {
            input.wakers.look_at.set(gate.look_at());
            input.wakers.full.notify_one();
        }
        all
    }

    /// It has said something.
    pub(super) fn said(&self) {
        if let Some(input) = &self.input {
            input.gate.borrow_mut().said();
            input.wakers.said.notify_one();
        }
    }

    /// Closes the driver's stdin: the polite way to ask it to end.
    pub(super) fn close_input(&mut self) {
        if let Some(input) = self.input.take() {
            input.waiter.abort();
        }
    }

    /// Sends a signal to the driver and all that it has started.
    pub(super) fn signal(&self, signal: Signal) {
        signal_group(self.pid, signal);
    }
}

/// Takes the streams of a process that was just started. One that lacks them is
/// ended, with all that it may have started meanwhile.
fn streams(
    process: &mut tokio::process::Child,
    pid: u32,
) -> io::Result<(pipe::Sender, ChildStdout, ChildStderr)> {
    let take = |process: &mut tokio::process::Child| {
        let stdin = process.stdin.take().ok_or_else(no_pipes)?;
        let stdin = pipe::Sender::from_owned_fd(stdin.into_owned_fd()?)?;
        let stdout = process.stdout.take().ok_or_else(no_pipes)?;
        let stderr = process.stderr.take().ok_or_else(no_pipes)?;
        Ok((stdin, stdout, stderr))
    };
    take(process).inspect_err(|_| signal_group(pid, Signal::SIGKILL))
}

fn no_pipes() -> io::Error {
    io::Error::other("the process has no pipes")
}

fn signal_group(pid: u32, signal: Signal) {
    if let Ok(pid) = i32::try_from(pid) {
        // Nobody left to signal is what we want.
        let _ = killpg(Pid::from_raw(pid), signal);
    }
}

/// Goes on writing when the driver wants more. A pipe that is full says when it
/// is not; of one that is not full nobody is told what is read from it, so it
/// is looked at: after a while, and when the driver says something.
async fn wait_for_room(
    shell: Rc<Shell>,
    key: DriverKey,
    pipe: Rc<pipe::Sender>,
    wakers: Rc<Wakers>,
) {
    loop {
        wakers.full.notified().await;
        let look_at = wakers.look_at.get();
        let look_at = look_at.unwrap_or_else(|| Instant::now() + AHEAD_LOOK);
        let _ = timeout_at(look_at.into(), wakers.said.notified()).await;
        if pipe.writable().await.is_err() {
            return;
        }
        if let Some(queue) = shell.core.borrow_mut().router.queue_mut(key) {
            queue.writable();
        }
        shell.write(key);
    }
}

/// How many bytes lie in a pipe.
fn unread(pipe: &pipe::Sender) -> usize {
    // Linux knows it. Where nobody does, the pipe itself is the bound.
    ioctl_fionread(pipe).map_or(0, |bytes| bytes as usize)
}

/// Reads until the process has ended, and says so when all that it said has
/// been read.
async fn attend(
    shell: Rc<Shell>,
    key: DriverKey,
    mut process: tokio::process::Child,
    pid: u32,
    stdout: ChildStdout,
    stderr: ChildStderr,
) {
    let frames = spawn_local(read_frames(shell.clone(), key, pid, stdout));
    let words = spawn_local(read_words(shell.clone(), key, stderr));
    let status = process.wait().await;
    // Nothing that it has started goes on without it. Its number is not in use
    // again yet: numbers are handed out in turn.
    signal_group(pid, Signal::SIGKILL);
    let (frames_end, words_end) = (frames.abort_handle(), words.abort_handle());
    let both = async { (frames.await, words.await) };
    if timeout(AFTER_EXIT, both).await.is_err() {
        frames_end.abort();
        words_end.abort();
    }
    shell.gone(key, pid);
    let exit = match status {
        Ok(status) => describe(status),
        Err(error) => Exit {
            text: format!("was lost: {error}"),
            success: false,
        },
    };
    shell.core.borrow_mut().exited(Instant::now(), key, exit);
    shell.settle();
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

async fn read_frames(shell: Rc<Shell>, key: DriverKey, pid: u32, mut stdout: ChildStdout) {
    let mut buffer = Buffer::default();
    loop {
        let partial = !buffer.filled().is_empty();
        let read = stdout.read(buffer.space());
        let read = if partial {
            timeout(PARTIAL_FRAME, read).await
        } else {
            Ok(read.await)
        };
        let mut more = false;
        let sane = match read {
            Ok(Ok(count)) if count > 0 => {
                buffer.end += count;
                more = count >= READ_BYTES;
                let begin = buffer.start;
                let sane = hand_over(&shell.core, key, &mut buffer);
                if buffer.start > begin
                    && let Some(child) = shell.children.borrow().get(&key)
                {
                    child.said();
                }
                sane
            }
            Ok(_) => {
                spawn_local(output_closed(shell, key, pid));
                return;
            }
            Err(_) => {
                let now = Instant::now();
                shell
                    .core
                    .borrow_mut()
                    .driver_stalled(now, key, buffer.filled());
                false
            }
        };
        shell.settle();
        if !sane {
            return;
        }
        if more {
            // Others have their turn.
            tokio::task::yield_now().await;
        }
    }
}

/// The end of stdout is usually that of the process, too. If not, nothing will
/// ever come from it again.
async fn output_closed(shell: Rc<Shell>, key: DriverKey, pid: u32) {
    tokio::time::sleep(AFTER_EXIT).await;
    if shell
        .children
        .borrow()
        .get(&key)
        .is_some_and(|child| child.pid == pid)
    {
        shell
            .core
            .borrow_mut()
            .driver_event(Instant::now(), key, Event::OutputClosed);
        shell.settle();
    }
}

/// Gives the whole frames of the buffer to the core; false when there is
/// something else among them.
fn hand_over(core: &RefCell<crate::core::Core>, key: DriverKey, buffer: &mut Buffer) -> bool {
    let mut core = core.borrow_mut();
    let now = Instant::now();
    while let Some(frame) = Frame::from_stream(buffer.filled()) {
        let length = frame.wire_len();
        if !core.driver_frame(now, key, frame) {
            return false;
        }
        buffer.start += length;
    }
    core.driver_prefix(now, key, buffer.filled())
}

/// Bytes that have been read and not been used up.
#[derive(Debug, Default)]
struct Buffer {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

impl Buffer {
    fn filled(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    /// Where to read to: room for what a pipe holds.
    fn space(&mut self) -> &mut [u8] {
        self.bytes.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        // At most one frame is incomplete, so this is bounded by the longest.
        self.bytes
            .resize(self.bytes.len().max(self.end + READ_BYTES), 0);
        &mut self.bytes[self.end..]
    }
}

/// Passes what the driver says on stderr on, line by line; lines that are too
/// long are cut in pieces.
async fn read_words(shell: Rc<Shell>, key: DriverKey, mut stderr: impl AsyncRead + Unpin) {
    let mut line = Vec::new();
    let mut piece = [0; 1024];
    loop {
        let count = stderr.read(&mut piece).await.unwrap_or(0);
        let say = |line: &[u8]| {
            let text = String::from_utf8_lossy(line);
            shell
                .core
                .borrow_mut()
                .driver_said(Instant::now(), key, text.trim_end());
        };
        if count == 0 {
            if !line.is_empty() {
                say(&line);
            }
            return;
        }
        for byte in &piece[..count] {
            if *byte == b'\n' || line.len() == STDERR_LINE_BYTES {
                say(&line);
                line.clear();
            }
            if *byte != b'\n' {
                line.push(*byte);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::Stdio;

    use tokio::io::AsyncBufReadExt;

    use super::*;

    #[tokio::test]
    async fn a_process_without_its_streams_ends_with_all_that_it_has_started() {
        let mut process = tokio::process::Command::new("sh")
            .args(["-c", "sleep 1000 & echo up; wait"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let pid = process.id().unwrap();
        let mut lines = tokio::io::BufReader::new(process.stdout.take().unwrap()).lines();
        assert_eq!(lines.next_line().await.unwrap().unwrap(), "up");
        assert!(streams(&mut process, pid).is_err());
        // Its child held stdout, too: the end of it is the end of both.
        let end = timeout(Duration::from_secs(30), lines.next_line()).await;
        assert_eq!(end.expect("all are gone").unwrap(), None);
    }
}
