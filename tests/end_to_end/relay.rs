//! A network between clients and their mediator that loses pieces of long messages.

use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use amber_proto::{DriverMsg, Frame};
use prost::Message;

/// It loses one of so many pieces, beginning with the third.
const LOSES_ONE_OF: u64 = 7;

/// One client at a time may use it.
pub struct Relay {
    /// Where clients find the mediator.
    pub address: SocketAddr,
    state: Arc<State>,
    threads: Vec<JoinHandle<()>>,
}

struct State {
    outer: UdpSocket,
    inner: UdpSocket,
    client: Mutex<Option<SocketAddr>>,
    pieces: AtomicU64,
    lost: AtomicU64,
    calls: AtomicU64,
    ends: AtomicBool,
}

impl Relay {
    pub fn start(mediator: SocketAddr) -> Self {
        let bind = || {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            let patience = Some(Duration::from_millis(50));
            socket.set_read_timeout(patience).unwrap();
            socket
        };
        let (outer, inner) = (bind(), bind());
        inner.connect(mediator).unwrap();
        let address = outer.local_addr().unwrap();
        let state = Arc::new(State {
            outer,
            inner,
            client: Mutex::default(),
            pieces: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            calls: AtomicU64::new(0),
            ends: AtomicBool::new(false),
        });
        let directions: [fn(&State, &mut [u8]); 2] =
            [State::forward_request, State::forward_answer];
        let threads = directions.map(|forward| {
            let state = state.clone();
            thread::spawn(move || {
                let mut buffer = vec![0; 65_536];
                while !state.ends.load(Ordering::Relaxed) {
                    forward(&state, &mut buffer);
                }
            })
        });
        Self {
            address,
            state,
            threads: threads.into(),
        }
    }

    /// How many pieces were lost so far.
    pub fn lost(&self) -> u64 {
        self.state.lost.load(Ordering::Relaxed)
    }

    /// How often clients have called for missing pieces.
    pub fn calls(&self) -> u64 {
        self.state.calls.load(Ordering::Relaxed)
    }
}

impl State {
    // Sending fails while nobody listens; then the datagram is lost like others.

    fn forward_request(&self, buffer: &mut [u8]) {
        let Ok((length, client)) = self.outer.recv_from(buffer) else {
            return;
        };
        *self.client.lock().unwrap() = Some(client);
        if message(&buffer[..length]).missing.is_some() {
            self.calls.fetch_add(1, Ordering::Relaxed);
        }
        let _ = self.inner.send(&buffer[..length]);
    }

    fn forward_answer(&self, buffer: &mut [u8]) {
        let Ok(length) = self.inner.recv(buffer) else {
            return;
        };
        let is_piece = message(&buffer[..length]).piece.is_some();
        if is_piece && self.pieces.fetch_add(1, Ordering::Relaxed) % LOSES_ONE_OF == 2 {
            self.lost.fetch_add(1, Ordering::Relaxed);
            return;
        }
        if let Some(client) = *self.client.lock().unwrap() {
            let _ = self.outer.send_to(&buffer[..length], client);
        }
    }
}

fn message(datagram: &[u8]) -> DriverMsg {
    let frame = Frame::from_datagram(datagram);
    frame.map_or_else(
        |_| DriverMsg::default(),
        |frame| DriverMsg::decode(frame.message).unwrap_or_default(),
    )
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.state.ends.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}
