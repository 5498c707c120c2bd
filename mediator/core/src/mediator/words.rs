//! The stderr output of a driver: logged, and its last lines kept. PURE.

use std::collections::VecDeque;
use std::time::Instant;

use amber_proto::Device;
use tracing::{Level, error, info, warn};

use crate::counters::{Counters, DropReason};
use crate::limits;
use crate::rate::{Rate, RateLimit};

#[derive(Debug, Default)]
pub(super) struct Words {
    last: VecDeque<String>,
    lines: u64,
    dropped: u64,
    gate: RateLimit,
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
        let level = level_of(line);
        let words = level.map_or(line, |_| line.trim_start());
        let words = &words[..words.floor_char_boundary(limits::TEXT_BYTES)];
        self.last.push_back(words.to_owned());

        if !self.gate.pass(now, rate) {
            self.dropped += 1;
            self.unlogged += 1;
            return counters.drop(DropReason::DriverStderrLines);
        }
        let unlogged = std::mem::take(&mut self.unlogged);
        if unlogged > 0 {
            warn!(driver = %device, unlogged, "too many lines on stderr");
        }
        // A driver logs at lower levels only on request. Its lines then appear at info, so that
        // they are visible.
        match level {
            Some((Level::ERROR, line)) => error!(target: "driver", driver = %device, "{line}"),
            Some((Level::WARN, line)) => warn!(target: "driver", driver = %device, "{line}"),
            Some((Level::INFO, line)) => info!(target: "driver", driver = %device, "{line}"),
            _ => info!(target: "driver", driver = %device, "{line}"),
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

/// The log level at the start of a line, as the built-in drivers write it, and the rest.
fn level_of(line: &str) -> Option<(Level, &str)> {
    let (level, rest) = line.trim_start().split_once(' ')?;
    // Not `parse`, which also accepts numbers and lower case.
    let level = match level {
        "ERROR" => Level::ERROR,
        "WARN" => Level::WARN,
        "INFO" => Level::INFO,
        _ => return None,
    };
    Some((level, rest.trim_start()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_level_at_the_start_of_a_line_is_used() {
        for (line, level, rest) in [
            (" INFO ready", Level::INFO, "ready"),
            (
                " WARN it is gone; trying again",
                Level::WARN,
                "it is gone; trying again",
            ),
            ("ERROR 5 of 7", Level::ERROR, "5 of 7"),
        ] {
            assert_eq!(level_of(line), Some((level, rest)));
        }
        for line in [
            "",
            "INFO",
            "DEBUG step",
            "Information for you",
            "1 2",
            "INFO: x",
            "info x",
        ] {
            assert_eq!(level_of(line), None, "{line}");
        }
    }
}
