//! Reads the log about drivers, and follows it. IO.

mod position;

use std::collections::VecDeque;
use std::time::Duration;

use amber_proto::Device;
use amber_proto::mediator::LogLine;
use tokio::time::sleep;

use self::position::Position;
use crate::error::Result;
use crate::proxy::Mediator;

/// The time between two requests for new lines.
const PERIOD: Duration = Duration::from_millis(200);

/// An entry that a [`LogReader`] reads.
#[derive(Clone, Debug, PartialEq)]
pub enum LogEntry {
    /// A line.
    Line(LogLine),
    /// This many lines before the next one are lost: the mediator has forgotten them.
    Missing(u64),
    /// The mediator was restarted. Its log starts again.
    Restarted,
}

/// The lines with which a [`LogReader`] begins.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LogStart {
    /// Only lines about the driver that serves this device; this also applies to later lines.
    pub device: Option<Device>,
    /// Only lines newer than this.
    pub since: Option<Duration>,
    /// Only the newest of these lines, at most this many; at most 1000.
    pub last: Option<u32>,
}

/// Reads the log that the mediator keeps about drivers: their stderr output, and the mediator's
/// messages about them.
///
/// Nothing is lost silently: a gap is a [`LogEntry::Missing`].
#[derive(Debug)]
pub struct LogReader {
    mediator: Mediator,
    position: Position,
    read: VecDeque<LogEntry>,
}

impl LogReader {
    /// A reader that begins with these lines.
    pub fn new(mediator: Mediator, start: LogStart) -> Self {
        Self {
            mediator,
            position: Position::new(start),
            read: VecDeque::new(),
        }
    }

    /// The next entry, or `None` if there is none yet.
    ///
    /// Dropping the future loses nothing.
    ///
    /// # Errors
    /// Those of [`Mediator::read_log`]. You can retry.
    pub async fn next_now(&mut self) -> Result<Option<LogEntry>> {
        while self.read.is_empty() {
            let request = self.position.request();
            let page = match self.mediator.read_log(request).await {
                Ok(page) => page,
                Err(error) => {
                    self.mediator = self.mediator.with_short_answers_after(error)?;
                    continue;
                }
            };
            let taken = self.position.take(page);
            self.read.extend(taken);
            if !self.position.has_more() {
                break;
            }
        }
        Ok(self.read.pop_front())
    }

    /// The next entry. It waits until there is one, and asks the mediator five times a second.
    ///
    /// Dropping the future loses nothing.
    ///
    /// # Errors
    /// Those of [`Mediator::read_log`]. You can retry.
    pub async fn next(&mut self) -> Result<LogEntry> {
        loop {
            if let Some(entry) = self.next_now().await? {
                return Ok(entry);
            }
            sleep(PERIOD).await;
        }
    }
}
