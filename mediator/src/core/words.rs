//! What a driver says on stderr: into the log, and the last of it kept. PURE.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use amber_proto::Device;
use tracing::{info, warn};

use crate::counters::{Counters, Drop};
use crate::limits;

#[derive(Debug)]
pub(super) struct Words {
    last: VecDeque<String>,
    lines: u64,
    dropped: u64,
    second: Instant,
    in_second: u32,
}

impl Words {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            last: VecDeque::new(),
            lines: 0,
            dropped: 0,
            second: now,
            in_second: 0,
        }
    }

    pub(super) fn say(
        &mut self,
        now: Instant,
        device: Device,
        line: &str,
        counters: &mut Counters,
    ) {
        self.lines += 1;
        if self.last.len() == limits::LAST_WORDS {
            self.last.pop_front();
        }
        self.last
            .push_back(line[..line.floor_char_boundary(limits::TEXT_BYTES)].to_owned());

        if now.duration_since(self.second) >= Duration::from_secs(1) {
            let unlogged = self
                .in_second
                .saturating_sub(limits::STDERR_LINES_PER_SECOND);
            if unlogged > 0 {
                warn!(driver = %device, unlogged, "too many lines on stderr");
            }
            self.second = now;
            self.in_second = 0;
        }
        self.in_second += 1;
        if self.in_second > limits::STDERR_LINES_PER_SECOND {
            self.dropped += 1;
            counters.drop(Drop::DriverStderrLines);
        } else {
            info!(target: "driver", driver = %device, "{line}");
        }
    }

    pub(super) fn last(&self, lines: usize) -> Vec<String> {
        let skip = self.last.len().saturating_sub(lines);
        self.last.iter().skip(skip).cloned().collect()
    }

    pub(super) fn lines(&self) -> u64 {
        self.lines
    }

    pub(super) fn dropped(&self) -> u64 {
        self.dropped
    }
}
