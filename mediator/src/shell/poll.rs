//! The sources that can wake the loop. IO.

use std::io;
use std::time::Duration;

use mio::{Events, Token};

use amber_core::address::DriverKey;
use amber_core::feeds::FeedKey;

/// A source that may be ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// One of our sockets has datagrams.
    Socket(usize),
    /// The error queue of that socket is not empty.
    Errors(usize),
    /// The error queue of a sending socket is not empty.
    SendErrors(usize),
    Stream(DriverKey, Stream),
    /// A signal has come.
    Signals,
    /// Another thread has finished something.
    Wake,
    /// The timer of the loop has fired.
    Timer,
    /// A recorder connects.
    Recorder(FeedKey),
    /// The connection of a recorder.
    Feed(FeedKey),
}

/// The streams of a driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stream {
    Stdin,
    Stdout,
    Stderr,
}

const KINDS: usize = 11;

impl From<Source> for Token {
    fn from(source: Source) -> Self {
        let (number, kind) = match source {
            Source::Socket(socket) => (socket, 0),
            Source::Errors(socket) => (socket, 1),
            Source::Stream(key, Stream::Stdin) => (key.0 as usize, 2),
            Source::Stream(key, Stream::Stdout) => (key.0 as usize, 3),
            Source::Stream(key, Stream::Stderr) => (key.0 as usize, 4),
            Source::Signals => (0, 5),
            Source::Wake => (0, 6),
            Source::SendErrors(socket) => (socket, 7),
            Source::Recorder(key) => (key.0 as usize, 8),
            Source::Feed(key) => (key.0 as usize, 9),
            Source::Timer => (0, 10),
        };
        Self(number * KINDS + kind)
    }
}

impl From<Token> for Source {
    fn from(token: Token) -> Self {
        let (number, kind) = (token.0 / KINDS, token.0 % KINDS);
        let stream = |stream| Self::Stream(DriverKey(number as u32), stream);
        match kind {
            0 => Self::Socket(number),
            1 => Self::Errors(number),
            2 => stream(Stream::Stdin),
            3 => stream(Stream::Stdout),
            4 => stream(Stream::Stderr),
            5 => Self::Signals,
            6 => Self::Wake,
            7 => Self::SendErrors(number),
            8 => Self::Recorder(FeedKey(number as u32)),
            9 => Self::Feed(FeedKey(number as u32)),
            _ => Self::Timer,
        }
    }
}

/// Waits until a source is ready, at most for this long. A signal ends the wait early, but
/// ready sources are reported all the same.
pub(super) fn wait(
    poll: &mut mio::Poll,
    events: &mut Events,
    mut longest: Option<Duration>,
) -> io::Result<()> {
    loop {
        match poll.poll(events, longest) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                longest = Some(Duration::ZERO);
            }
            outcome => return outcome,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_identify_sources() {
        let key = DriverKey(4711);
        let sources = [
            Source::Socket(0),
            Source::Socket(3),
            Source::Errors(3),
            Source::SendErrors(3),
            Source::Stream(key, Stream::Stdin),
            Source::Stream(key, Stream::Stdout),
            Source::Stream(key, Stream::Stderr),
            Source::Signals,
            Source::Wake,
            Source::Timer,
            Source::Recorder(FeedKey(3)),
            Source::Feed(FeedKey(3)),
        ];
        for source in sources {
            assert_eq!(Source::from(Token::from(source)), source);
        }
    }
}
