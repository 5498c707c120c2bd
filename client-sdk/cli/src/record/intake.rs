//! The bytes of a feed on their way from the mediator to the thread that writes files. IO.
//!
//! The writer reads the socket itself: no thread has to be woken for a read, and no byte is copied
//! from one buffer to another before it is parsed.
//!
//! A slow disk must not stop the reading. While the writer is away for longer than
//! [`STANDBY_AFTER`], a second thread, the standby, reads into memory. It reads only then, so the
//! bytes stay in order.

use std::collections::VecDeque;
use std::io;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::buffer::spare_capacity;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;

use super::limits::{FEW_BYTES, GATHER, READ_BYTES, STANDBY_AFTER, STANDBY_PATIENCE};
use super::snapshot::Asked;

/// See the [module](self).
pub(super) struct Intake {
    stream: UnixStream,
    /// Ends the writer's wait for the socket.
    wake: OwnedFd,
    max_bytes: usize,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    /// What the standby has read.
    bytes: Vec<u8>,
    asked: VecDeque<Asked>,
    /// The writer is not in [`Intake::take`]: it writes what it took.
    writer_is_away: bool,
    /// How often it has been away.
    turn: u64,
    standby: Standby,
    /// The mediator has sent nothing since then, although somebody was reading.
    quiet_since: Instant,
    /// The last read got little: the next one waits for more, but not for the socket.
    was_short: bool,
    /// The feed has ended, for this reason if it was not the mediator's intention.
    over: Option<Result<(), io::Error>>,
    /// The writer takes no more.
    is_closed: bool,
}

/// Result of [`Intake::take`].
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// Bytes, or nothing in time.
    More,
    /// All bytes until the end of the feed.
    Last,
}

/// What the standby waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standby {
    /// Nothing: it works.
    Works,
    /// The writer leaves.
    Absence,
    /// The writer returns: the memory is full, or the feed has ended.
    Return,
}

impl Intake {
    /// Reads this feed. At most so many bytes wait for a slow disk, and at least those of one read.
    ///
    /// # Errors
    /// The system refuses a file descriptor.
    pub(super) fn new(stream: UnixStream, max_bytes: u64) -> io::Result<Arc<Self>> {
        stream.set_nonblocking(true)?;
        let max_bytes = usize::try_from(max_bytes).unwrap_or(usize::MAX);
        let intake = Arc::new(Self {
            stream,
            wake: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
            max_bytes: max_bytes.max(READ_BYTES),
            state: Mutex::new(State {
                bytes: Vec::new(),
                asked: VecDeque::new(),
                writer_is_away: false,
                turn: 0,
                standby: Standby::Works,
                quiet_since: Instant::now(),
                was_short: false,
                over: None,
                is_closed: false,
            }),
            changed: Condvar::new(),
        });
        let standby = intake.clone();
        thread::spawn(move || standby.stand_by());
        Ok(intake)
    }

    /// Appends the bytes that are there. If there are none, waits for some, for at most this time.
    /// Only the writer calls this.
    pub(super) fn take(
        &self,
        into: &mut Vec<u8>,
        asked: &mut VecDeque<Asked>,
        patience: Duration,
    ) -> Taken {
        let mut state = self.lock();
        state.writer_is_away = false;
        if state.standby == Standby::Return {
            // Nobody was reading.
            state.quiet_since = Instant::now();
            self.changed.notify_all();
        }
        let has_bytes = !state.bytes.is_empty();
        match into.is_empty() {
            true if has_bytes => std::mem::swap(into, &mut state.bytes),
            _ => into.append(&mut state.bytes),
        }
        if !has_bytes && state.asked.is_empty() && state.over.is_none() {
            let was_short = state.was_short;
            drop(state);
            match was_short {
                true => thread::sleep(GATHER),
                false => self.wait(patience),
            }
            state = self.lock();
            self.read(&mut state, into);
        }
        asked.append(&mut state.asked);
        state.writer_is_away = true;
        state.turn += 1;
        if state.standby == Standby::Absence {
            self.changed.notify_all();
        }
        match state.over {
            Some(_) => Taken::Last,
            None => Taken::More,
        }
    }

    /// Asks the writer for a snapshot.
    pub(super) fn ask(&self, asked: Asked) {
        self.lock().asked.push_back(asked);
        // It fails only if 2^64 - 1 are unread, and then the writer wakes anyway.
        let _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
    }

    /// The writer takes no more.
    pub(super) fn close(&self) {
        self.lock().is_closed = true;
        self.changed.notify_all();
    }

    /// Whether the mediator has sent nothing for this time, although there is room.
    pub(super) fn waits_for_longer_than(&self, time: Duration) -> bool {
        let state = self.lock();
        let reads = !state.writer_is_away || self.has_room(&state);
        reads && state.quiet_since.elapsed() > time
    }

    /// The error that has ended the feed, once.
    pub(super) fn lost(&self) -> Option<io::Error> {
        let mut state = self.lock();
        let over = state.over.as_mut()?;
        std::mem::replace(over, Ok(())).err()
    }

    /// Waits until there are bytes to read, or somebody asks for a snapshot.
    fn wait(&self, patience: Duration) {
        let mut watched = [&self.stream as &dyn AsFd, &self.wake]
            .map(|it| PollFd::from_borrowed_fd(it.as_fd(), PollFlags::IN));
        let patience = Timespec::try_from(patience).ok();
        // Interrupted by a signal: the caller comes again.
        let _ = poll(&mut watched, patience.as_ref());
        if !watched[1].revents().is_empty() {
            // Empty already: no reason to wake again.
            let _ = rustix::io::read(&self.wake, &mut [0; 8]);
        }
    }

    /// Appends what the socket has, without waiting. The lock keeps the bytes in order.
    fn read(&self, state: &mut State, into: &mut Vec<u8>) {
        into.reserve(READ_BYTES);
        match rustix::io::read(&self.stream, spare_capacity(into)) {
            Ok(0) => state.over = Some(Ok(())),
            Ok(count) => {
                state.was_short = count < FEW_BYTES;
                state.quiet_since = Instant::now();
            }
            Err(Errno::AGAIN | Errno::INTR) => state.was_short = false,
            Err(error) => state.over = Some(Err(error.into())),
        }
    }

    /// The second thread: reads while the writer is away for long.
    fn stand_by(&self) {
        let mut state = self.lock();
        loop {
            let is_here = |state: &mut State| !state.writer_is_away && !state.is_closed;
            state = self.wait_while(state, Standby::Absence, is_here);
            let turn = state.turn;
            let is_away =
                |state: &mut State| state.writer_is_away && state.turn == turn && !state.is_closed;
            // Nothing wakes this thread when the writer is quick, as it mostly is.
            drop(state);
            thread::sleep(STANDBY_AFTER);
            state = self.lock();
            while is_away(&mut state) {
                if !self.has_room(&state) || state.over.is_some() {
                    state = self.wait_while(state, Standby::Return, is_away);
                    continue;
                }
                let was_short = state.was_short;
                drop(state);
                if was_short {
                    thread::sleep(GATHER);
                }
                self.wait_for_bytes(STANDBY_PATIENCE);
                state = self.lock();
                // The writer may have returned meanwhile, and reads itself.
                if is_away(&mut state) {
                    let mut bytes = std::mem::take(&mut state.bytes);
                    self.read(&mut state, &mut bytes);
                    state.bytes = bytes;
                }
            }
            if state.is_closed {
                return;
            }
        }
    }

    fn wait_for_bytes(&self, patience: Duration) {
        let mut watched = [PollFd::new(&self.stream, PollFlags::IN)];
        let patience = Timespec::try_from(patience).ok();
        // Interrupted by a signal: the caller comes again.
        let _ = poll(&mut watched, patience.as_ref());
    }

    fn has_room(&self, state: &State) -> bool {
        state.bytes.len() + READ_BYTES <= self.max_bytes
    }

    fn wait_while<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        standby: Standby,
        condition: impl FnMut(&mut State) -> bool,
    ) -> MutexGuard<'a, State> {
        state.standby = standby;
        let waited = self.changed.wait_while(state, condition);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner);
        state.standby = Standby::Works;
        state
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::Weak;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(30);

    fn intake(max_bytes: u64) -> (Arc<Intake>, UnixStream) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        (Intake::new(ours, max_bytes).unwrap(), theirs)
    }

    /// Bytes that show any change of their order.
    fn pattern(count: u32) -> Vec<u8> {
        (0..count)
            .map(|number| (number >> 3) as u8 ^ number as u8)
            .collect()
    }

    fn send(mut stream: UnixStream, bytes: Vec<u8>) -> thread::JoinHandle<()> {
        thread::spawn(move || stream.write_all(&bytes).unwrap())
    }

    fn take_all(intake: &Intake) -> Vec<u8> {
        let (mut all, mut asked) = (Vec::new(), VecDeque::new());
        while intake.take(&mut all, &mut asked, PATIENCE) != Taken::Last {}
        all
    }

    #[test]
    fn all_bytes_arrive_in_order() {
        let (intake, mediator) = intake(10_000_000);
        let sender = send(mediator, pattern(3_000_000));
        assert!(take_all(&intake) == pattern(3_000_000));
        sender.join().unwrap();
        assert!(intake.lost().is_none());
    }

    #[test]
    fn bytes_that_are_left_over_come_before_new_ones() {
        let (intake, mediator) = intake(10_000_000);
        let (mut bytes, mut asked) = (b"left".to_vec(), VecDeque::new());
        send(mediator, b" over".to_vec()).join().unwrap();
        while intake.take(&mut bytes, &mut asked, PATIENCE) != Taken::Last {}
        assert_eq!(bytes, b"left over");
    }

    /// The writer takes what is there, and goes away.
    fn take_now(intake: &Intake) -> Vec<u8> {
        let mut bytes = Vec::new();
        intake.take(&mut bytes, &mut VecDeque::new(), Duration::ZERO);
        bytes
    }

    #[test]
    fn a_writer_that_is_away_does_not_stop_the_reading() {
        let (intake, mediator) = intake(10_000_000);
        // Some are read by the writer, more than a socket holds by the standby, the rest by the
        // writer.
        let mut sender = mediator.try_clone().unwrap();
        sender.write_all(&pattern(3_000_000)[..1000]).unwrap();
        let mut all = take_now(&intake);
        let rest = pattern(3_000_000)[1000..].to_vec();
        send(sender, rest).join().unwrap();
        drop(mediator);
        all.append(&mut take_all(&intake));
        assert!(all == pattern(3_000_000));
    }

    #[test]
    fn the_standby_reads_only_while_the_writer_is_away() {
        let (intake, mediator) = intake(10_000_000);
        let until_standby = |wanted: Standby| {
            while intake.lock().standby != wanted {
                thread::yield_now();
            }
        };
        until_standby(Standby::Absence);
        take_now(&intake);
        until_standby(Standby::Works);
        // The writer waits for bytes, so it is here.
        intake.lock().writer_is_away = false;
        until_standby(Standby::Absence);
        send(mediator, pattern(1000)).join().unwrap();
        assert!(intake.lock().bytes.is_empty());
        assert_eq!(take_all(&intake), pattern(1000));
    }

    #[test]
    fn the_standby_waits_when_the_memory_is_full_and_ends_with_the_writer() {
        let (intake, mut mediator) = intake(1_000_000);
        let standby: Weak<Intake> = Arc::downgrade(&intake);
        mediator.set_nonblocking(true).unwrap();
        take_now(&intake);
        while intake.lock().standby != Standby::Return {
            // More than there is room for: the socket is full most of the time.
            let _ = mediator.write(&[7; 100_000]);
            thread::yield_now();
        }
        assert!(!intake.has_room(&intake.lock()));
        assert!(intake.lock().bytes.len() <= intake.max_bytes);
        intake.close();
        drop(intake);
        while standby.strong_count() > 0 {
            thread::yield_now();
        }
    }

    #[test]
    fn a_silent_mediator_is_noticed_but_not_a_busy_writer() {
        let (intake, _mediator) = intake(0);
        let long = Duration::from_secs(100);
        let is_silent = |writer_is_away, bytes, time| {
            let mut state = intake.lock();
            state.writer_is_away = writer_is_away;
            state.bytes = vec![0; bytes];
            state.quiet_since = Instant::now().checked_sub(long).unwrap();
            drop(state);
            intake.waits_for_longer_than(time)
        };
        assert!(is_silent(false, 0, long / 2));
        assert!(!is_silent(false, 0, long * 2));
        assert!(is_silent(true, 0, long / 2), "the standby reads");
        assert!(!is_silent(true, 1, long / 2), "it has no room");
    }
}
