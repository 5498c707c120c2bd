//! The fault rates of one run, from mild to extreme. PURE.

use std::time::Duration;

use crate::random::Random;

/// Probabilities from 0 to 1, and times. Drawn once per run, so that runs differ in kind: one loses
/// many datagrams, another floods, a third restarts all the time.
#[derive(Clone, Debug)]
pub struct Weather {
    /// A datagram is lost.
    pub loss: f64,
    /// A datagram is duplicated.
    pub duplication: f64,
    /// A datagram is delayed so long that others overtake it.
    pub detour: f64,
    /// The maximum delay of a datagram, and the length of a detour.
    pub delay: Duration,
    /// See `delay`.
    pub detour_delay: Duration,
    /// An unused address sends an ICMP error.
    pub refusal: f64,
    /// The socket buffer is full.
    pub socket_full: f64,
    /// A driver process has a fault.
    pub vice: f64,
    /// The time between two global faults.
    pub trouble: Duration,
    /// The time between two actions of a client.
    pub pace: Duration,
}

impl Weather {
    /// Draws the rates of a run.
    pub fn draw(rng: &mut Random) -> Self {
        let some = |rng: &mut Random, most: f64| match rng.u8(0..3) {
            0 => 0.0,
            1 => most * 0.2 * rng.f64(),
            _ => most * rng.f64(),
        };
        let ms = |rng: &mut Random, from: u64, to: u64| Duration::from_millis(rng.u64(from..to));
        Self {
            loss: some(rng, 0.3),
            duplication: some(rng, 0.2),
            detour: some(rng, 0.3),
            delay: ms(rng, 1, 40),
            detour_delay: ms(rng, 50, 1500),
            refusal: rng.f64(),
            socket_full: some(rng, 0.02),
            vice: some(rng, 0.9),
            trouble: ms(rng, 200, 4000),
            pace: ms(rng, 20, 200),
        }
    }

    /// Stops all faults.
    pub fn calm(&mut self) {
        self.loss = 0.0;
        self.duplication = 0.0;
        self.detour = 0.0;
        self.socket_full = 0.0;
        self.vice = 0.0;
    }
}

/// Returns true with this probability.
pub fn happens(rng: &mut Random, chance: f64) -> bool {
    chance > 0.0 && rng.f64() < chance
}

/// A random time between half and one and a half of `time`.
pub fn about(rng: &mut Random, time: Duration) -> Duration {
    time.mul_f64(0.5 + rng.f64())
}
