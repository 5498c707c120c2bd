//! What a driver says on stderr: into the log, and the last of it kept. PURE.

use std::collections::VecDeque;
use std::time::Instant;

use amber_proto::Device;
use tracing::{info, warn};

use crate::counters::{Counters, Drop};
use crate::limits;
use crate::rate::{Gate, Rate};

#[derive(Debug, Default)]
pub(super) struct Words {
    last: VecDeque<String>,
    lines: u64,
    dropped: u64,
    gate: Gate,
    unlogged: u64,
}

impl Words {
    pub(super) fn say(
        &mut self,
        now: Instant,
        device: Device,
        line: &str,
        rate: Rate,
        counters: &mut Counters,
    ) {
        self.lines += 1;
        if self.last.len() == limits::LAST_WORDS {
            self.last.pop_front();
        }
        self.last
            .push_back(line[..line.floor_char_boundary(limits::TEXT_BYTES)].to_owned());

        if !self.gate.pass(now, rate) {
            self.dropped += 1;
            self.unlogged += 1;
            return counters.drop(Drop::DriverStderrLines);
        }
        let unlogged = std::mem::take(&mut self.unlogged);
        if unlogged > 0 {
            warn!(driver = %device, unlogged, "too many lines on stderr");
        }
        info!(target: "driver", driver = %device, "{line}");
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
