//! A client that sends raw datagrams to an echo driver. IO.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use amber_harness::PATIENCE;
use amber_proto::{Device, Frame, HeaderBytes};

use anyhow::ensure;

use super::{Outcome, Pace, Promise, Worker, is_told};

/// The maximum number of requests in flight.
const WINDOW: u64 = 8;

/// The time without a reply after which a client of a victim sends again.
const GIVE_UP: Duration = Duration::from_millis(250);

/// Starts a client that sends a device this many requests per second.
///
/// # Errors
/// The system has no sockets left.
pub fn start(
    mediator: SocketAddr,
    device: Device,
    promise: Promise,
    per_second: f64,
    seed: u64,
) -> anyhow::Result<Worker> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    socket.connect(mediator)?;
    let client = Client {
        socket,
        device,
        seed,
        given_up: 0,
        heard: Instant::now(),
    };
    let name = format!("echo client of {device}");
    let pace = Pace::per_second(per_second);
    Ok(Worker::start(&name, promise, move |stop, outcome| {
        client.work(stop, outcome, pace)
    }))
}

struct Client {
    socket: UdpSocket,
    device: Device,
    seed: u64,
    /// Earlier requests no longer count as in flight.
    given_up: u64,
    heard: Instant,
}

impl Client {
    fn work(
        mut self,
        stop: &AtomicBool,
        outcome: &mut Outcome,
        mut pace: Pace,
    ) -> anyhow::Result<()> {
        let patience = match outcome.promise {
            Promise::Everything => PATIENCE,
            Promise::NothingWrong => GIVE_UP,
        };
        while !is_told(stop) {
            let ledger = &mut outcome.ledger;
            let open = ledger.sent - ledger.oldest().max(self.given_up);
            if open > 0 && self.heard.elapsed() > patience {
                self.given_up = ledger.sent;
                continue;
            }
            let wait = pace.wait();
            if open < WINDOW && wait.is_zero() {
                if open == 0 {
                    self.heard = Instant::now();
                }
                self.ask(outcome);
                pace.done();
            }
            self.receive(outcome, wait.clamp(Duration::from_millis(1), GIVE_UP))?;
        }
        self.drain(outcome)
    }

    /// Waits until each request is answered or lost. Requests stay in order, so the reply to one
    /// more request shows that earlier ones are lost.
    fn drain(&mut self, outcome: &mut Outcome) -> anyhow::Result<()> {
        let deadline = Instant::now() + PATIENCE;
        while outcome.ledger.open() > 0 {
            ensure!(
                Instant::now() < deadline,
                "{} is up but does not answer",
                self.device
            );
            if self.heard.elapsed() > GIVE_UP {
                self.heard = Instant::now();
                self.ask(outcome);
            }
            self.receive(outcome, GIVE_UP)?;
        }
        Ok(())
    }

    fn ask(&mut self, outcome: &mut Outcome) {
        let number = outcome.ledger.send();
        let frame = frame(self.device, &message(self.seed, number));
        // An error belongs to an earlier datagram.
        while self.socket.send(&frame).is_err() {}
    }

    /// Takes a reply, if one arrives within this time.
    fn receive(&mut self, outcome: &mut Outcome, wait: Duration) -> anyhow::Result<()> {
        self.socket.set_read_timeout(Some(wait))?;
        let mut bytes = [0; 1 << 16];
        let Ok(length) = self.socket.recv(&mut bytes) else {
            return Ok(());
        };
        self.heard = Instant::now();
        let answer = &bytes[..length];
        match number_in(answer) {
            Some(number) if answer == frame(self.device, &message(self.seed, number)) => {
                if let Err(wrong) = outcome.ledger.answer(number) {
                    outcome.wrong(format!("an impossible reply: {wrong:?}"));
                }
            }
            _ => outcome.wrong(format!("a reply that differs from the request: {answer:?}")),
        }
        Ok(())
    }
}

/// A request: its number, followed by bytes whose number and values are derived from it.
fn message(seed: u64, number: u64) -> Vec<u8> {
    let mut rng = fastrand::Rng::with_seed(seed ^ number.rotate_left(32));
    let length = match rng.u8(..) {
        0 => 8_000,
        1..32 => 1_000,
        _ => 64,
    };
    // Longer than any message that a mediator may take for a CLIENT_DIED.
    let mut message = vec![0; rng.usize(32..=length)];
    rng.fill(&mut message);
    message[..8].copy_from_slice(&number.to_be_bytes());
    message
}

fn number_in(answer: &[u8]) -> Option<u64> {
    let message = Frame::from_datagram(answer).ok()?.message;
    Some(u64::from_be_bytes(message.get(..8)?.try_into().ok()?))
}

/// A frame for or from a device.
pub fn frame(device: Device, message: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let header = HeaderBytes::new(Some(device), None);
    Frame {
        header: header.as_slice(),
        message,
    }
    .encode(&mut bytes)
    .unwrap_or_else(|error| unreachable!("messages here are short: {error}"));
    bytes
}
