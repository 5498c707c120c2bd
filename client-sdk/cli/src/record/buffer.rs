//! What the reader of a feed hands to the writer of files. IO: two threads share it.

use std::collections::VecDeque;
use std::io::{self, Read};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::limits::{FEW_BYTES, GATHER, READ_BYTES};
use super::snapshot::Asked;

/// Bytes of the feed that wait for the writer.
pub(super) struct Buffer {
    max_bytes: usize,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    bytes: Vec<u8>,
    asked: VecDeque<Asked>,
    /// The reader waits for the mediator since then.
    reading_since: Option<Instant>,
    /// The feed has ended.
    is_over: bool,
    /// The writer takes no more.
    is_closed: bool,
}

/// What a writer got.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// Bytes, or nothing in time.
    More,
    /// All bytes until the end of the feed.
    Last,
}

/// The thread that reads.
pub(super) struct Reader(JoinHandle<io::Result<()>>);

impl Buffer {
    /// A buffer for this many bytes, and at least for those of one read.
    pub(super) fn new(max_bytes: u64) -> Self {
        let max_bytes = usize::try_from(max_bytes).unwrap_or(usize::MAX);
        Self {
            max_bytes: max_bytes.max(READ_BYTES),
            state: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    /// Reads a feed to its end, in another thread.
    pub(super) fn read_from(self: &Arc<Self>, stream: impl Read + Send + 'static) -> Reader {
        let buffer = self.clone();
        Reader(thread::spawn(move || {
            let done = buffer.fill(stream);
            buffer.lock().is_over = true;
            buffer.changed.notify_all();
            done
        }))
    }

    /// Takes what is there; waits until there is something, at most for this time.
    pub(super) fn take(
        &self,
        into: &mut Vec<u8>,
        asked: &mut VecDeque<Asked>,
        patience: Duration,
    ) -> Taken {
        let waits =
            |state: &mut State| state.bytes.is_empty() && state.asked.is_empty() && !state.is_over;
        let waited = (self.changed).wait_timeout_while(self.lock(), patience, waits);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        match into.is_empty() {
            // The reader goes on with the memory of the last ones.
            true => std::mem::swap(into, &mut state.bytes),
            false => {
                into.extend_from_slice(&state.bytes);
                state.bytes.clear();
            }
        }
        asked.append(&mut state.asked);
        let taken = match state.is_over {
            true => Taken::Last,
            false => Taken::More,
        };
        drop(state);
        self.changed.notify_all();
        taken
    }

    /// Asks the writer for a snapshot.
    pub(super) fn ask(&self, asked: Asked) {
        self.lock().asked.push_back(asked);
        self.changed.notify_all();
    }

    /// The writer takes no more.
    pub(super) fn close(&self) {
        self.lock().is_closed = true;
        self.changed.notify_all();
    }

    /// Whether the mediator has sent nothing for this time, although there is room.
    pub(super) fn waits_for_longer_than(&self, time: Duration) -> bool {
        let since = self.lock().reading_since;
        since.is_some_and(|since| since.elapsed() > time)
    }

    fn fill(&self, mut stream: impl Read) -> io::Result<()> {
        let mut read = vec![0; READ_BYTES];
        loop {
            self.lock().reading_since = Some(Instant::now());
            let count = match stream.read(&mut read) {
                Ok(0) => return Ok(()),
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            let is_full =
                |state: &mut State| state.bytes.len() + count > self.max_bytes && !state.is_closed;
            let mut state = self.lock();
            state.reading_since = None;
            let waited = self.changed.wait_while(state, is_full);
            let mut state = waited.unwrap_or_else(PoisonError::into_inner);
            if state.is_closed {
                return Ok(());
            }
            state.bytes.extend_from_slice(&read[..count]);
            drop(state);
            self.changed.notify_all();
            if count < FEW_BYTES {
                thread::sleep(GATHER);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reader {
    /// Why the feed could not be read to its end.
    pub(super) fn lost(self) -> Option<io::Error> {
        match self.0.is_finished() {
            true => self.0.join().ok()?.err(),
            false => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;
    use std::sync::mpsc;

    use super::*;

    /// Gives one part each time that it is allowed to.
    struct Parts(mpsc::Receiver<Vec<u8>>);

    impl Read for Parts {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let part = self.0.recv().unwrap_or_default();
            into[..part.len()].copy_from_slice(&part);
            Ok(part.len())
        }
    }

    fn take_all(buffer: &Buffer) -> Vec<u8> {
        let mut all = Vec::new();
        loop {
            let mut asked = VecDeque::new();
            let mut bytes = Vec::new();
            let taken = buffer.take(&mut bytes, &mut asked, Duration::from_secs(30));
            all.append(&mut bytes);
            if taken == Taken::Last {
                return all;
            }
        }
    }

    #[test]
    fn all_bytes_arrive_in_order() {
        let buffer = Arc::new(Buffer::new(10_000_000));
        let bytes: Vec<u8> = (0..3_000_000_u32).map(|number| number as u8).collect();
        let reader = buffer.read_from(Cursor::new(bytes.clone()));
        assert!(take_all(&buffer) == bytes);
        assert!(reader.lost().is_none());
    }

    #[test]
    fn bytes_that_are_left_over_come_before_new_ones() {
        let buffer = Arc::new(Buffer::new(10_000_000));
        let (sender, parts) = mpsc::channel();
        let _reader = buffer.read_from(Parts(parts));
        let (mut bytes, mut asked) = (b"left".to_vec(), VecDeque::new());
        sender.send(b" over".to_vec()).unwrap();
        drop(sender);
        while buffer.take(&mut bytes, &mut asked, Duration::from_secs(30)) != Taken::Last {}
        assert_eq!(bytes, b"left over");
    }

    #[test]
    fn the_reader_waits_when_the_buffer_is_full_and_ends_with_the_writer() {
        let buffer = Arc::new(Buffer::new(10_000_000));
        let reader = buffer.read_from(io::repeat(7));
        let full = || buffer.lock().bytes.len() + READ_BYTES > buffer.max_bytes;
        while !full() {
            thread::yield_now();
        }
        assert!(buffer.lock().bytes.len() <= buffer.max_bytes);
        buffer.close();
        assert!(reader.0.join().unwrap().is_ok());
    }
}
