//! The log about drivers: their stderr output, and the mediator's messages about them. PURE.
//!
//! The last lines of each driver are kept, even after it ends. A driver that writes much displaces
//! only its own lines.

#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::time::Instant;

use amber_proto::Device;
use amber_proto::mediator::log_line::{Level, Source};
use amber_proto::mediator::{LogLine, LogPage, Refusal};
use prost::Message;

use super::control::wire_device;
use super::{Core, mediator};
use crate::address::DriverKey;
use crate::counters::{Count, Counters};
use crate::limits::{
    AROUND_ENTRY_BYTES, KEPT_LOG_BYTES, KEPT_LOG_LINES, KEPT_LOG_TEXT_BYTES, KEPT_LOG_TOTAL_BYTES,
};
use crate::text::beginning;

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Log {
    /// By the first device of the driver, which stays the same when it restarts.
    drivers: BTreeMap<Device, Lines>,
    /// The number of all lines so far.
    count: u64,
    bytes: usize,
}

/// The lines of one driver, the oldest first.
#[derive(Debug, Default)]
struct Lines {
    kept: VecDeque<Line>,
    count: u64,
    bytes: usize,
}

#[derive(Debug)]
struct Line {
    /// The number among all lines, and among those of the driver.
    number: u64,
    own_number: u64,
    at: Instant,
    time_ms: u64,
    source: Source,
    level: Option<Level>,
    text: Box<str>,
    cut_bytes: usize,
}

/// The moment of a line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    pub(super) at: Instant,
    /// The same, in milliseconds since the Unix epoch.
    pub(super) time_ms: u64,
}

/// The lines that a client requests.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Wanted {
    /// The first device of one driver; `None` for all.
    pub(super) driver: Option<Device>,
    pub(super) after: u64,
    pub(super) since: Option<Instant>,
    pub(super) last: Option<usize>,
}

impl Log {
    pub(super) fn add(
        &mut self,
        moment: Moment,
        driver: Device,
        source: Source,
        level: Option<Level>,
        text: &str,
        counters: &mut Counters,
    ) {
        let kept = beginning(text, KEPT_LOG_TEXT_BYTES);
        let lines = self.drivers.entry(driver).or_default();
        self.count += 1;
        lines.count += 1;
        let line = Line {
            number: self.count,
            own_number: lines.count,
            at: moment.at,
            time_ms: moment.time_ms,
            source,
            level,
            text: kept.into(),
            cut_bytes: text.len() - kept.len(),
        };
        lines.bytes += line.bytes();
        self.bytes += line.bytes();
        lines.kept.push_back(line);
        while lines.kept.len() > KEPT_LOG_LINES || lines.bytes > KEPT_LOG_BYTES {
            self.bytes -= lines.forget_oldest(counters);
        }
        while self.bytes > KEPT_LOG_TOTAL_BYTES {
            self.forget_of_longest(counters);
        }
    }

    /// The driver with the most bytes loses its oldest line. Drivers are few compared with lines.
    fn forget_of_longest(&mut self, counters: &mut Counters) {
        let longest = self.drivers.iter_mut().max_by_key(|(_, lines)| lines.bytes);
        let Some((device, lines)) = longest else {
            return;
        };
        self.bytes -= lines.forget_oldest(counters);
        if lines.kept.is_empty() {
            let device = *device;
            self.drivers.remove(&device);
        }
    }

    /// The last lines that a driver itself wrote.
    pub(super) fn last_words(&self, driver: Device, count: usize) -> impl Iterator<Item = &str> {
        let kept = self.drivers.get(&driver).map(|lines| &lines.kept);
        let newest_first = kept.into_iter().flat_map(|kept| kept.iter().rev());
        let own = newest_first.filter(|line| line.source == Source::Driver);
        let own: Vec<_> = own.take(count).collect();
        own.into_iter().rev().map(|line| &*line.text)
    }

    /// Whether there are lines about this driver.
    fn knows(&self, driver: Device) -> bool {
        self.drivers.contains_key(&driver)
    }

    /// One page of the lines, as many as fit into an answer.
    pub(super) fn page(&self, wanted: Wanted, started_ms: u64, most_bytes: usize) -> LogPage {
        let mut parts: Vec<_> = match wanted.driver {
            Some(driver) => self.drivers.get_key_value(&driver).into_iter().collect(),
            None => self.drivers.iter().collect(),
        };
        let is_one = wanted.driver.is_some();
        let newest = match is_one {
            true => parts.first().map_or(0, |(_, lines)| lines.count),
            false => self.count,
        };
        parts.retain(|(_, lines)| !lines.kept.is_empty());
        let after = match wanted.last {
            Some(last) => wanted.after.max(before_last(&parts, last, is_one)),
            None => wanted.after,
        };
        // The next line of each driver, the oldest on top.
        let mut next = BinaryHeap::new();
        for (part, (_, lines)) in parts.iter().enumerate() {
            let begin = lines.begin(after, wanted.since, is_one);
            next.extend(
                lines
                    .kept
                    .get(begin)
                    .map(|line| Reverse((line.number, part, begin))),
            );
        }
        let (mut page, mut bytes) = (Vec::new(), 0);
        while let Some(Reverse((_, part, index))) = next.peek().copied() {
            let (device, lines) = parts[part];
            let line = lines.kept[index].on_wire(*device, is_one);
            bytes += line.encoded_len() + AROUND_ENTRY_BYTES;
            if bytes > most_bytes && !page.is_empty() {
                break;
            }
            page.push(line);
            next.pop();
            let following = lines.kept.get(index + 1);
            next.extend(following.map(|line| Reverse((line.number, part, index + 1))));
        }
        LogPage {
            lines: page,
            more: !next.is_empty(),
            newest,
            started_ms,
        }
    }
}

/// The level of a line of a driver.
pub(super) fn level(level: tracing::Level) -> Level {
    match level {
        tracing::Level::ERROR => Level::Error,
        tracing::Level::WARN => Level::Warn,
        _ => Level::Info,
    }
}

/// The number before the newest `count` lines.
fn before_last(parts: &[(&Device, &Lines)], count: usize, is_one: bool) -> u64 {
    let count = count.min(KEPT_LOG_LINES);
    let newest_first = |lines: &'_ Lines| {
        let newest = lines.kept.iter().rev().take(count + 1);
        let numbers = newest.map(|line| Reverse(line.number_for(is_one)));
        numbers.collect::<Vec<_>>()
    };
    let mut numbers: Vec<_> = (parts.iter())
        .flat_map(|(_, lines)| newest_first(lines))
        .collect();
    if numbers.len() <= count {
        return 0;
    }
    let (_, Reverse(before), _) = numbers.select_nth_unstable(count);
    *before
}

impl Lines {
    /// Returns the bytes that it had.
    fn forget_oldest(&mut self, counters: &mut Counters) -> usize {
        let bytes = self.kept.pop_front().map_or(0, |line| line.bytes());
        self.bytes -= bytes;
        counters.count(Count::LogLinesForgotten);
        bytes
    }

    /// The index of the first line with a number above `after`, not older than `since`.
    fn begin(&self, after: u64, since: Option<Instant>, is_one: bool) -> usize {
        let is_before = |line: &Line| {
            line.number_for(is_one) <= after || since.is_some_and(|since| line.at < since)
        };
        self.kept.partition_point(is_before)
    }
}

impl Line {
    fn number_for(&self, is_one: bool) -> u64 {
        match is_one {
            true => self.own_number,
            false => self.number,
        }
    }

    /// The memory that it needs.
    fn bytes(&self) -> usize {
        size_of::<Self>() + self.text.len()
    }

    fn on_wire(&self, device: Device, is_one: bool) -> LogLine {
        LogLine {
            number: self.number_for(is_one),
            device: wire_device(device),
            time_ms: self.time_ms,
            source: self.source.into(),
            level: self.level.map(Into::into),
            text: self.text.to_string(),
            cut_bytes: (self.cut_bytes > 0).then_some(self.cut_bytes as u32),
        }
    }
}

impl Core {
    /// Adds a message of the mediator about a driver.
    pub(super) fn log_about(&mut self, now: Instant, key: DriverKey, level: Level, text: &str) {
        let moment = self.moment(now);
        if let Some(driver) = self.drivers.get(&key) {
            let device = driver.config.devices[0];
            let counters = &mut self.router.counters;
            let source = Source::Mediator;
            (self.log).add(moment, device, source, Some(level), text, counters);
        }
    }

    pub(super) fn moment(&self, now: Instant) -> Moment {
        let since_epoch = self.events.since_epoch().unwrap_or_default();
        Moment {
            at: now,
            time_ms: super::control::millis(since_epoch),
        }
    }

    /// Answers a request for the log.
    pub(super) fn read_log(
        &self,
        now: Instant,
        wanted: &mediator::ReadLog,
        bytes: usize,
    ) -> Result<LogPage, Refusal> {
        let driver = match &wanted.device {
            None => None,
            Some(device) => Some(self.logged_device(device)?),
        };
        let since = wanted.since_ms.map(std::time::Duration::from_millis);
        let wanted = Wanted {
            driver,
            after: wanted.after(),
            // Longer than this machine runs: everything.
            since: since.and_then(|since| now.checked_sub(since)),
            last: wanted.last.map(|last| last as usize),
        };
        Ok(self.log.page(wanted, self.started_ms, bytes))
    }

    /// The first device of the driver that serves a device, or of one that is no longer
    /// configured.
    fn logged_device(&self, device: &mediator::Device) -> Result<Device, Refusal> {
        match self.key_of(device) {
            Ok(key) => Ok(self.drivers[&key].config.devices[0]),
            Err(refusal) => {
                let device = super::control::device_of(device);
                if self.log.knows(device) {
                    return Ok(device);
                }
                Err(refusal)
            }
        }
    }
}
