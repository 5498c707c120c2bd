//! A device behind a TCP port, for one peer at a time. IO.

use std::io;
use std::net::SocketAddr;

use tokio::net::{TcpListener, TcpStream};

/// A peer with more unsent bytes than this has stopped reading and is disconnected.
const MAX_UNSENT: usize = 1 << 20;

/// A listening port and the connected peer.
#[derive(Debug)]
pub struct TcpPort {
    listener: TcpListener,
    peer: Option<Peer>,
    /// Whether the peer was gone when something was sent: [`TcpPort::read`] tells it before it accepts
    /// the next one, which must not get what was meant for the last one.
    is_lost: bool,
}

/// An event on a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TcpEvent {
    /// This number of bytes arrived.
    Bytes(usize),
    /// The peer is gone.
    HungUp,
}

#[derive(Debug)]
struct Peer {
    stream: TcpStream,
    unsent: Vec<u8>,
}

impl TcpPort {
    /// Listens.
    ///
    /// # Errors
    /// The address is not available on this host, or is in use.
    pub async fn open(address: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        Ok(Self {
            listener,
            peer: None,
            is_lost: false,
        })
    }

    /// The address on which it listens.
    ///
    /// # Errors
    /// The system does not report it.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Waits for input from the peer. Accepts a peer first if there is none; rejects a second one
    /// immediately.
    ///
    /// Dropping the future loses nothing.
    ///
    /// # Errors
    /// The system fails. Peers that connect and disconnect cause no errors.
    pub async fn read(&mut self, buffer: &mut [u8]) -> io::Result<TcpEvent> {
        loop {
            if std::mem::take(&mut self.is_lost) {
                return Ok(TcpEvent::HungUp);
            }
            let Some(peer) = &mut self.peer else {
                let (stream, _) = self.listener.accept().await?;
                stream.set_nodelay(true)?;
                let unsent = Vec::new();
                self.peer = Some(Peer { stream, unsent });
                continue;
            };
            tokio::select! {
                // The end of the last peer comes before the next one.
                biased;
                ready = peer.stream.readable() => {
                    let read = ready.and_then(|()| peer.stream.try_read(buffer));
                    match read {
                        Ok(count) if count > 0 => return Ok(TcpEvent::Bytes(count)),
                        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                        _ => {
                            self.hang_up();
                            return Ok(TcpEvent::HungUp);
                        }
                    }
                }
                ready = peer.stream.writable(), if !peer.unsent.is_empty() => {
                    if ready.is_err() || peer.flush().is_err() {
                        self.hang_up();
                        return Ok(TcpEvent::HungUp);
                    }
                }
                second = self.listener.accept() => drop(second?),
            }
        }
    }

    /// Sends bytes to the peer, if there is one: immediately, or later during [`TcpPort::read`].
    pub fn write(&mut self, bytes: &[u8]) {
        let Some(peer) = &mut self.peer else { return };
        peer.unsent.extend(bytes);
        if peer.flush().is_err() || peer.unsent.len() > MAX_UNSENT {
            self.hang_up();
            self.is_lost = true;
        }
    }

    /// Disconnects the peer.
    pub fn hang_up(&mut self) {
        self.peer = None;
    }
}

impl Peer {
    fn flush(&mut self) -> io::Result<()> {
        while !self.unsent.is_empty() {
            match self.stream.try_write(&self.unsent) {
                Ok(count) => drop(self.unsent.drain(..count)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    #[tokio::test]
    async fn one_peer_at_a_time() {
        let mut port = TcpPort::open(([127, 0, 0, 1], 0).into()).await.unwrap();
        let address = port.address().unwrap();
        let mut buffer = [0; 100];

        let mut first = TcpStream::connect(address).await.unwrap();
        first.write_all(b"hello").await.unwrap();
        assert_eq!(port.read(&mut buffer).await.unwrap(), TcpEvent::Bytes(5));
        port.write(b"answer");
        let mut answer = [0; 6];
        first.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"answer");

        let mut second = TcpStream::connect(address).await.unwrap();
        let mut byte = [0; 1];
        tokio::select! {
            turned_away = second.read(&mut byte) => assert!(matches!(turned_away, Ok(0) | Err(_))),
            event = port.read(&mut buffer) => panic!("{event:?}"),
        }
        drop(first);
        // Although the next one is there already.
        let mut third = TcpStream::connect(address).await.unwrap();
        assert_eq!(port.read(&mut buffer).await.unwrap(), TcpEvent::HungUp);
        third.write_all(b"again").await.unwrap();
        assert_eq!(port.read(&mut buffer).await.unwrap(), TcpEvent::Bytes(5));
    }

    #[tokio::test]
    async fn a_peer_that_was_gone_when_something_was_sent_is_told_before_the_next() {
        let mut port = TcpPort::open(([127, 0, 0, 1], 0).into()).await.unwrap();
        let address = port.address().unwrap();
        let mut buffer = [0; 10];
        let mut first = TcpStream::connect(address).await.unwrap();
        first.write_all(b"x").await.unwrap();
        port.read(&mut buffer).await.unwrap();
        drop(first);
        while port.peer.is_some() {
            port.write(b"picture");
            tokio::task::yield_now().await;
        }
        let mut second = TcpStream::connect(address).await.unwrap();
        second.write_all(b"request").await.unwrap();
        assert_eq!(port.read(&mut buffer).await.unwrap(), TcpEvent::HungUp);
        assert_eq!(port.read(&mut buffer).await.unwrap(), TcpEvent::Bytes(7));
    }

    #[tokio::test]
    async fn large_output_is_sent_gradually() {
        let mut port = TcpPort::open(([127, 0, 0, 1], 0).into()).await.unwrap();
        let mut peer = TcpStream::connect(port.address().unwrap()).await.unwrap();
        peer.write_all(b"x").await.unwrap();
        let mut buffer = [0; 10];
        port.read(&mut buffer).await.unwrap();
        let much = vec![7; MAX_UNSENT];
        port.write(&much);
        let mut received = vec![0; much.len()];
        tokio::select! {
            read = peer.read_exact(&mut received) => drop(read.unwrap()),
            event = port.read(&mut buffer) => panic!("{event:?}"),
        }
        assert_eq!(received, much);
    }
}
