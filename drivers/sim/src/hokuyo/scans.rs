//! Requests for scans, one at a time or continuous, and their answers. PURE.

use std::collections::VecDeque;
use std::time::Duration;

use super::part::{Part, digits};
use super::scip::Reply;
use super::{DONE, Hokuyo, Stream, Waiting};

/// A turn that is overdue by more than this is skipped.
const TOO_LATE: Duration = Duration::from_millis(300);
/// The maximum number of requests that wait for a scan; a host sends one at a time.
const MAX_WAITING: usize = 16;

impl Hokuyo {
    pub(super) fn one_scan(&mut self, now: Duration, request: &str, name: &str, parameters: &str) {
        let part = match Part::parse(self.model, name, parameters, 10) {
            Ok(part) => part,
            Err(status) => return self.answer(request, status),
        };
        let Some(on) = self.laser_on else {
            return self.answer(request, "10");
        };
        if self.waiting.len() == MAX_WAITING {
            return self.answer(request, "0A");
        }
        // The latest finished turn, or the first one after the laser was turned on. Each request
        // gets its own scan, so a host that sends requests continuously gets one reply per turn.
        let before = self.waiting.back().map(|last| last.turn).or(self.served);
        let unserved = before.map_or(0, |turn| turn + 1);
        let finished = self.turns.last_finished(now);
        let turn = finished.max(self.turns.first_from(on)).max(unserved);
        self.waiting.push_back(Waiting {
            request: request.to_owned(),
            part,
            turn,
        });
    }

    pub(super) fn many_scans(
        &mut self,
        now: Duration,
        request: &str,
        name: &str,
        parameters: &str,
    ) {
        let checked = Part::parse(self.model, name, parameters, 13).and_then(|part| {
            let skip = digits(&parameters[10..11], 1).ok_or("06")?;
            let count = digits(&parameters[11..13], 2).ok_or("07")?;
            Ok((part, skip, count))
        });
        let (part, skip, count) = match checked {
            Ok(checked) => checked,
            Err(status) => return self.answer(request, status),
        };
        self.switch_laser_on(now);
        let from = self.laser_on.map_or(now, |on| on.max(now));
        let (command, text) = request.split_at(2 + 13);
        self.stream = Some(Stream {
            echo: (command[..13].to_owned(), text.to_owned()),
            part,
            skip: u64::from(skip),
            remaining: (count > 0).then_some(count),
            turn: self.turns.first_from(from),
        });
        self.answer(request, DONE);
    }

    /// The next requested turn.
    pub(super) fn next_turn(&self) -> Option<u64> {
        let streamed = self.stream.as_ref().map(|stream| stream.turn);
        let waiting = self.waiting.iter().map(|waiting| waiting.turn);
        waiting.chain(streamed).min()
    }

    /// Sends the latest scan to everything that waits for it, and skips overdue scans.
    pub(super) fn serve_known(&mut self, now: Duration) {
        let current = self.turns.last_finished(now);
        if let Some(stream) = &mut self.stream {
            let turns_late = self.turns.within(TOO_LATE);
            if current.saturating_sub(stream.turn) > turns_late {
                stream.turn = current;
            }
        }
        let Some((sweep, scan)) = self.latest.take() else {
            return;
        };
        let time = self.time_stamp(sweep.start);
        let (served, waiting) = std::mem::take(&mut self.waiting)
            .into_iter()
            .partition::<VecDeque<_>, _>(|waiting| self.turns.sweep(waiting.turn) == sweep);
        self.waiting = waiting;
        for waiting in served {
            self.served = Some(waiting.turn);
            let reply = Reply::to(&waiting.request).line(DONE);
            self.push(waiting.part.block(reply, time, &scan));
        }
        self.latest = Some((sweep, scan));
        let Some(stream) = &self.stream else { return };
        if self.turns.sweep(stream.turn) == sweep {
            self.send_streamed(time);
        }
    }

    fn send_streamed(&mut self, time: u32) {
        let (Some(mut stream), Some((_, scan))) = (self.stream.take(), &self.latest) else {
            return;
        };
        let remaining = stream.remaining.map(|count| count - 1);
        let (before, after) = &stream.echo;
        let echo = format!("{before}{:02}{after}", remaining.unwrap_or_default());
        let bytes = stream.part.block(Reply::to(&echo).line("99"), time, scan);
        self.push(bytes);
        if remaining == Some(0) {
            self.switch_laser_off();
        } else {
            stream.remaining = remaining;
            stream.turn += 1 + stream.skip;
            self.stream = Some(stream);
        }
    }
}
