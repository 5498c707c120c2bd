//! The stderr output of a driver, in the mediator's own output. PURE.

use std::time::Instant;

use amber_proto::Device;
use tracing::{Level, error, info, warn};

use crate::counters::{Counters, DropReason};
use crate::rate::{Rate, RateLimit};

#[derive(Debug, Default)]
pub(super) struct Words {
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
        match level_of(line) {
            Some((Level::ERROR, line)) => error!(target: "driver", driver = %device, "{line}"),
            Some((Level::WARN, line)) => warn!(target: "driver", driver = %device, "{line}"),
            Some((Level::INFO, line)) => info!(target: "driver", driver = %device, "{line}"),
            _ => info!(target: "driver", driver = %device, "{line}"),
        }
    }

    pub(super) fn lines(&self) -> u64 {
        self.lines
    }

    pub(super) fn dropped(&self) -> u64 {
        self.dropped
    }
}

/// The log level at the start of a line, as the built-in drivers write it, and the rest.
pub(super) fn level_of(line: &str) -> Option<(Level, &str)> {
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
                " WARN it is gone; retrying",
                Level::WARN,
                "it is gone; retrying",
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
