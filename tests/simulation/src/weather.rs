//! How bad things are, from mild to wild, for one run. PURE.

use std::time::Duration;

use fastrand::Rng;

/// Chances, from 0 to 1, and times. Drawn once for each run, so that runs differ
/// in kind: one loses much, another floods, a third restarts all the time.
#[derive(Clone, Debug)]
pub struct Weather {
    /// A datagram is lost.
    pub loss: f64,
    /// A datagram comes twice.
    pub duplication: f64,
    /// A datagram takes long, so that others overtake it.
    pub detour: f64,
    /// How long a datagram takes at most, and how long a detour.
    pub delay: Duration,
    /// See `delay`.
    pub detour_delay: Duration,
    /// An address where nobody is says so.
    pub refusal: f64,
    /// The socket takes nothing more.
    pub socket_full: f64,
    /// A driver process has a vice.
    pub vice: f64,
    /// The time between two troubles of the whole.
    pub trouble: Duration,
    /// The time between two things that a client does.
    pub pace: Duration,
}

impl Weather {
    /// Of this run.
    pub fn draw(rng: &mut Rng) -> Self {
        let some = |rng: &mut Rng, most: f64| match rng.u8(0..3) {
            0 => 0.0,
            1 => most * 0.2 * rng.f64(),
            _ => most * rng.f64(),
        };
        let ms = |rng: &mut Rng, from: u64, to: u64| Duration::from_millis(rng.u64(from..to));
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

    /// Trouble has stopped.
    pub fn calm(&mut self) {
        self.loss = 0.0;
        self.duplication = 0.0;
        self.detour = 0.0;
        self.socket_full = 0.0;
        self.vice = 0.0;
    }
}

/// A chance has come true.
pub fn happens(rng: &mut Rng, chance: f64) -> bool {
    chance > 0.0 && rng.f64() < chance
}

/// About so long: from half of it to one and a half.
pub fn about(rng: &mut Rng, time: Duration) -> Duration {
    time.mul_f64(0.5 + rng.f64())
}
