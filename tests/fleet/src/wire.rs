//! A link that loses, delays and cuts frames. IO.

use std::collections::VecDeque;
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::frames::mend;

/// The effect of a link on frames.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Conditions {
    /// The part of all frames that is lost.
    pub(crate) loss: f64,
    /// The delay of each frame.
    pub(crate) delay: Duration,
    /// Whether all frames to the robot are lost.
    pub(crate) cut_to_robot: bool,
    /// Whether all frames to the operator are lost.
    pub(crate) cut_to_operator: bool,
}

/// A wire between two ends, until it is dropped.
#[derive(Debug)]
pub(crate) struct Wire {
    conditions: Arc<Mutex<Conditions>>,
    ends: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

/// Frames that are on their way: a second at full speed of a slow network.
const MAX_WAITING: usize = 10_000;
/// The longest frame, with its headers.
const MAX_FRAME: usize = 2_048;
/// How often a thread looks whether it shall end.
const LOOK: Duration = Duration::from_millis(20);

impl Wire {
    /// Connects the end of the operator and that of the robot.
    pub(crate) fn new(ends: &[UdpSocket; 2]) -> anyhow::Result<Self> {
        let mut wire = Self {
            conditions: Arc::default(),
            ends: Arc::default(),
            threads: Vec::new(),
        };
        for (from, to) in [(0, 1), (1, 0)] {
            let direction = Direction {
                from: ends[from].try_clone()?,
                to: ends[to].try_clone()?,
                to_robot: to == 1,
                conditions: wire.conditions.clone(),
                ends: wire.ends.clone(),
                waiting: VecDeque::new(),
            };
            wire.threads.push(thread::spawn(move || direction.run()));
        }
        Ok(wire)
    }

    /// Changes what happens to frames.
    pub(crate) fn set(&self, conditions: Conditions) {
        *self
            .conditions
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = conditions;
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

struct Direction {
    from: UdpSocket,
    to: UdpSocket,
    to_robot: bool,
    conditions: Arc<Mutex<Conditions>>,
    ends: Arc<AtomicBool>,
    waiting: VecDeque<(Instant, Vec<u8>)>,
}

impl Direction {
    fn run(mut self) {
        let mut frame = [0; MAX_FRAME];
        while !self.ends.load(Ordering::Relaxed) {
            let now = Instant::now();
            let next = self.waiting.front().map(|(due, _)| due.duration_since(now));
            let wait = next.unwrap_or(LOOK).clamp(Duration::from_micros(100), LOOK);
            if self.from.set_read_timeout(Some(wait)).is_err() {
                return;
            }
            if let Ok(length) = self.from.recv(&mut frame) {
                self.take(frame[..length].to_vec());
            }
            let now = Instant::now();
            let due = self.waiting.iter().take_while(|it| it.0 <= now).count();
            for (_, frame) in self.waiting.drain(..due) {
                // A card that is busy or gone loses it, as others do.
                let _ = self.to.send(&frame);
            }
        }
    }

    fn take(&mut self, mut frame: Vec<u8>) {
        let conditions = *self
            .conditions
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let is_cut = match self.to_robot {
            true => conditions.cut_to_robot,
            false => conditions.cut_to_operator,
        };
        let is_lost = is_cut || fastrand::f64() < conditions.loss;
        if !is_lost && self.waiting.len() < MAX_WAITING {
            mend(&mut frame);
            self.waiting
                .push_back((Instant::now() + conditions.delay, frame));
        }
    }
}
