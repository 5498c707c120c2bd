//! The position in a log, and the missing lines. PURE.

use amber_proto::mediator::{LogPage, ReadLog};

use super::{LogEntry, LogStart};

/// The position in a log.
#[derive(Debug)]
pub(super) struct Position {
    start: LogStart,
    /// The number of the last line that was read; `None` at the beginning.
    last: Option<u64>,
    started_ms: Option<u64>,
    /// Further lines wait at the mediator.
    has_more: bool,
}

impl Position {
    pub(super) fn new(start: LogStart) -> Self {
        Self {
            start,
            last: None,
            started_ms: None,
            has_more: false,
        }
    }

    /// The request for the following lines.
    pub(super) fn request(&self) -> ReadLog {
        let LogStart {
            device,
            since,
            last,
        } = self.start;
        let request = ReadLog {
            device: device.map(Into::into),
            after: self.last,
            ..ReadLog::default()
        };
        match self.last {
            Some(_) => request,
            None => ReadLog {
                since_ms: since.map(|since| since.as_millis().try_into().unwrap_or(u64::MAX)),
                last,
                ..request
            },
        }
    }

    /// Whether further lines wait at the mediator.
    pub(super) fn has_more(&self) -> bool {
        self.has_more
    }

    /// The new lines of a page.
    pub(super) fn take(&mut self, page: LogPage) -> Vec<LogEntry> {
        let mut entries = Vec::new();
        self.has_more = page.more;
        let is_other = self
            .started_ms
            .is_some_and(|before| before != page.started_ms);
        if is_other || self.last.is_some_and(|last| last > page.newest) {
            // These lines may not be the first. All lines of the new mediator are wanted.
            entries.push(LogEntry::Restarted);
            (self.last, self.started_ms) = (Some(0), Some(page.started_ms));
            return entries;
        }
        self.started_ms = Some(page.started_ms);
        let is_whole = self.start.since.is_none() && self.start.last.is_none();
        let mut last = match self.last {
            Some(last) => Some(last),
            None if is_whole => Some(0),
            None => None,
        };
        let mut arrive = |number: u64, entries: &mut Vec<LogEntry>| {
            let missing = last.map_or(0, |last| number.saturating_sub(last + 1));
            if missing > 0 {
                entries.push(LogEntry::Missing(missing));
            }
            last = Some(number);
        };
        for line in page.lines {
            arrive(line.number, &mut entries);
            entries.push(LogEntry::Line(line));
        }
        if !page.more {
            arrive(page.newest + 1, &mut entries);
            last = Some(page.newest);
        }
        self.last = last;
        entries
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use amber_proto::mediator::LogLine;

    use super::*;

    fn page(numbers: impl IntoIterator<Item = u64>, newest: u64) -> LogPage {
        let line = |number| LogLine {
            number,
            ..LogLine::default()
        };
        let lines: Vec<_> = numbers.into_iter().map(line).collect();
        LogPage {
            more: lines.last().is_some_and(|line| line.number < newest),
            lines,
            newest,
            started_ms: 7,
        }
    }

    /// Numbers of lines; gaps as negative numbers; 0 for a restart.
    fn taken(position: &mut Position, page: LogPage) -> Vec<i64> {
        let entries = position.take(page).into_iter();
        let shown = entries.map(|entry| match entry {
            LogEntry::Line(line) => line.number as i64,
            LogEntry::Missing(count) => -(count as i64),
            LogEntry::Restarted => 0,
        });
        shown.collect()
    }

    fn last(last: u32) -> LogStart {
        LogStart {
            last: Some(last),
            ..LogStart::default()
        }
    }

    #[test]
    fn pages_are_joined_and_gaps_are_counted() {
        let mut position = Position::new(LogStart::default());
        assert_eq!(position.request(), ReadLog::default());
        assert_eq!(taken(&mut position, page([4, 5], 9)), [-3, 4, 5]);
        assert_eq!(position.request().after, Some(5));
        assert_eq!(taken(&mut position, page([6, 9], 9)), [6, -2, 9]);
        assert_eq!(taken(&mut position, page([], 9)), [0_i64; 0]);
        assert_eq!(taken(&mut position, page([10, 11], 11)), [10, 11]);
        assert_eq!(taken(&mut position, page([20], 20)), [-8, 20]);
    }

    #[test]
    fn what_was_not_asked_for_is_not_missing() {
        let mut position = Position::new(last(2));
        assert_eq!(position.request().last, Some(2));
        assert_eq!(taken(&mut position, page([8, 9], 9)), [8, 9]);
        let expected = ReadLog {
            after: Some(9),
            ..ReadLog::default()
        };
        assert_eq!(position.request(), expected);
        assert_eq!(taken(&mut position, page([11], 11)), [-1, 11]);

        let since = LogStart {
            since: Some(Duration::from_secs(5)),
            ..LogStart::default()
        };
        let mut position = Position::new(since);
        assert_eq!(position.request().since_ms, Some(5000));
        assert_eq!(taken(&mut position, page([], 9)), [0_i64; 0]);
        assert_eq!(taken(&mut position, page([10], 10)), [10]);
    }

    #[test]
    fn after_a_restart_of_the_mediator_its_log_is_read_from_the_beginning() {
        let mut position = Position::new(last(2));
        assert_eq!(taken(&mut position, page([8, 9], 9)), [8, 9]);
        let mut other = page([10], 10);
        other.started_ms = 8;
        assert_eq!(taken(&mut position, other), [0]);
        assert_eq!(position.request().after, Some(0));
        assert_eq!(position.request().last, None);
        let mut other = page([1, 2], 2);
        other.started_ms = 8;
        assert_eq!(taken(&mut position, other), [1, 2]);
    }
}
