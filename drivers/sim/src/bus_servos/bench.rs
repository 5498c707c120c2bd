//! Servos with a time, for the tests of each maker. PURE.

use std::time::Duration;

use super::{Bus, Protocol, Servo};

pub(crate) const MS: Duration = Duration::from_millis(1);

/// Bytes as documents have them.
pub(crate) fn hex(text: &str) -> Vec<u8> {
    let digits = text.split_ascii_whitespace();
    digits
        .map(|it| u8::from_str_radix(it, 16).unwrap())
        .collect()
}

/// Servos with a time.
pub(crate) struct Bench<P: Protocol> {
    pub(crate) bus: Bus<P>,
    now: Duration,
}

impl<P: Protocol> Bench<P> {
    pub(crate) fn new(bus: Bus<P>) -> Self {
        let now = Duration::ZERO;
        Self { bus, now }
    }

    pub(crate) fn now(&self) -> Duration {
        self.now
    }

    /// What is answered within 50 ms.
    pub(crate) fn ask(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.bus.handle_bytes(self.now, bytes);
        self.pass(50 * MS)
    }

    pub(crate) fn pass(&mut self, time: Duration) -> Vec<u8> {
        let end = self.now + time;
        let mut answer = Vec::new();
        while self.now < end {
            self.now += MS;
            self.bus.advance(self.now);
            answer.extend(std::iter::from_fn(|| self.bus.poll_output(self.now)).flatten());
        }
        answer
    }

    #[track_caller]
    pub(crate) fn check(&mut self, request: &str, answer: &str) {
        assert_eq!(self.ask(&hex(request)), hex(answer), "{request}");
    }

    pub(crate) fn steps(&self, index: usize) -> f64 {
        self.bus.servos()[index].show().steps
    }
}
