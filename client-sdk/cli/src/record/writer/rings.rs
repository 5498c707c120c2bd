//! A feed stays in memory, and goes to a file when a snapshot is wanted. IO.

use std::collections::VecDeque;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use amber_proto::feed::{Record, What};
use amber_proto::mediator::{Event, event::Kind};
use amber_record::{Ring, Snapshot, Totals};
use amber_terminal::Failure;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use prost::Message;

use super::super::super::devices::name;
use super::super::limits::{AFTERMATH, ARRIVAL, FLUSH_INTERVAL, OWN_SNAPSHOTS, WAITING_SNAPSHOTS};
use super::super::output::Output;
use super::super::progress::Progress;
use super::super::report::{Outcome, Written};
use super::super::snapshot::Asked;
use super::{Content, Plan, Shared, begin, failed};

pub(super) struct Rings {
    plan: Plan,
    ring: Ring,
    totals: Totals,
    ended: bool,
    shared: Arc<Shared>,
    waiting: VecDeque<Waiting>,
    writing: Option<JoinHandle<Option<Written>>>,
    finished: Vec<Written>,
    own: Own,
}

/// A snapshot that is wanted.
struct Waiting {
    due: Instant,
    reason: String,
    asked: Option<Asked>,
}

impl Rings {
    pub(super) fn new(plan: Plan, span: Duration, max_bytes: u64, shared: Arc<Shared>) -> Self {
        let max_bytes = usize::try_from(max_bytes).unwrap_or(usize::MAX);
        Self {
            plan,
            ring: Ring::new(span, max_bytes),
            totals: Totals::default(),
            ended: false,
            shared,
            waiting: VecDeque::new(),
            writing: None,
            finished: Vec::new(),
            own: Own {
                pause: span.max(AFTERMATH),
                ..Own::default()
            },
        }
    }

    pub(super) fn add(&mut self, record: &Record<'_>, bytes: &[u8]) {
        self.totals.note(record);
        self.ring.add(record, bytes);
        match &record.what {
            What::End => self.ended = true,
            What::Event(event) => {
                if let Some(reason) = Event::decode(*event).ok().and_then(|it| reason(&it)) {
                    self.write_own(&reason);
                }
            }
            _ => {}
        }
    }

    /// Somebody wants a snapshot.
    pub(super) fn ask(&mut self, asked: Asked) {
        if self.waiting.len() >= WAITING_SNAPSHOTS {
            return asked.refuse(Failure::new("too many snapshots are being written"));
        }
        self.waiting.push_back(Waiting {
            due: Instant::now() + ARRIVAL,
            reason: asked.remark().to_owned(),
            asked: Some(asked),
        });
    }

    pub(super) fn write_if_due(&mut self) {
        if self.writing.as_ref().is_some_and(JoinHandle::is_finished) {
            self.join();
        }
        let now = Instant::now();
        if self.writing.is_none() && self.waiting.iter().any(|it| it.due <= now) {
            self.write_next(now);
        }
    }

    pub(super) fn patience(&self) -> Duration {
        // The end of a file is noticed a little later.
        const NOTICED: Duration = Duration::from_millis(20);
        let due = self.waiting.iter().map(|waiting| waiting.due).min();
        match (due, &self.writing) {
            (None, None) => FLUSH_INTERVAL,
            (Some(due), None) => due.saturating_duration_since(Instant::now()),
            (_, Some(_)) => NOTICED,
        }
    }

    pub(super) fn progress(&self) -> Progress {
        Progress {
            file: None,
            file_bytes: self.finished.iter().map(|file| file.bytes).sum(),
            totals: self.totals,
            held: Some((self.ring.span(), self.ring.bytes())),
        }
    }

    pub(super) fn finish(mut self) -> Outcome {
        if !self.ended {
            self.write_own("the connection to the mediator was lost");
        }
        // What is wanted is written although its time has not come.
        loop {
            self.join();
            if self.waiting.is_empty() {
                break;
            }
            let latest = self.waiting.iter().map(|it| it.due).max();
            self.write_next(latest.unwrap_or_else(Instant::now));
        }
        Outcome {
            files: self.finished,
            totals: self.totals,
            ended: self.ended,
        }
    }

    fn write_own(&mut self, reason: &str) {
        let now = Instant::now();
        match self.own.wants(now) {
            Verdict::Yes => self.waiting.push_back(Waiting {
                due: now + AFTERMATH,
                reason: reason.to_owned(),
                asked: None,
            }),
            Verdict::Last => {
                let text = format!("{OWN_SNAPSHOTS} were written without being asked for");
                self.shared.add_snapshot(Err(Failure::new(text)));
            }
            Verdict::No => {}
        }
    }

    /// Starts to write what is due first.
    fn write_next(&mut self, now: Instant) {
        let at = self.waiting.iter().position(|it| it.due <= now);
        let Some(waiting) = at.and_then(|at| self.waiting.remove(at)) else {
            return;
        };
        let path = loop {
            let path = self.plan.names.next(Timestamp::now(), TimeZone::system());
            if self.plan.force || !path.exists() {
                break path;
            }
        };
        let output = Output::create(&path, self.plan.force);
        let content = self.plan.content.clone();
        let (snapshot, shared) = (self.ring.snapshot(), self.shared.clone());
        // A slow disk does not hold up the feed.
        self.writing = Some(thread::spawn(move || {
            let Waiting { reason, asked, .. } = waiting;
            let written = output.and_then(|output| write(output, &snapshot, content, &reason));
            let kept = written.as_ref().ok().cloned();
            shared.add_snapshot(written.clone());
            if let Some(asked) = asked {
                asked.answer(written);
            }
            kept
        }));
    }

    fn join(&mut self) {
        match self.writing.take().map(JoinHandle::join) {
            Some(Ok(written)) => self.finished.extend(written),
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            None => {}
        }
    }
}

fn write(
    output: Output,
    snapshot: &Snapshot,
    content: Content,
    reason: &str,
) -> Result<Written, Failure> {
    let (path, counter) = (output.path().to_owned(), output.counter());
    let mut recording = begin(output, content)?;
    let facts = vec![("reason", reason.to_owned())];
    let (totals, output) = recording
        .add_facts("amber.snapshot", facts)
        .and_then(|()| snapshot.write(&mut recording))
        .and_then(|()| recording.finish(None))
        .map_err(|error| failed(&path, error))?;
    output.close()?;
    let bytes = counter.load(std::sync::atomic::Ordering::Relaxed);
    Ok(Written::new(path, bytes, totals, Some(reason.to_owned())))
}

/// Snapshots without anybody asking.
#[derive(Default)]
struct Own {
    pause: Duration,
    last: Option<Instant>,
    count: u32,
}

#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Yes,
    /// No, and never again.
    Last,
    No,
}

impl Own {
    /// A driver that dies again and again gets one snapshot each time that the ring is new.
    fn wants(&mut self, now: Instant) -> Verdict {
        let is_soon = self.last.is_some_and(|last| now < last + self.pause);
        if is_soon || self.count > OWN_SNAPSHOTS {
            return Verdict::No;
        }
        self.count += 1;
        self.last = Some(now);
        match self.count > OWN_SNAPSHOTS {
            true => Verdict::Last,
            false => Verdict::Yes,
        }
    }
}

/// Why an event asks for a snapshot, if it does.
fn reason(event: &Event) -> Option<String> {
    let what = match event.kind() {
        // The mediator's word for drivers that it was told to end.
        Kind::DeviceDown if event.text() == "stopped" => return None,
        Kind::DeviceDown => "is down",
        Kind::DeviceFailed => "was given up",
        Kind::DeviceTrouble => "has trouble",
        _ => return None,
    };
    let device = event.device.as_ref().map(name).unwrap_or_default();
    Some(format!("{device} {what}: {}", event.text()))
}

#[cfg(test)]
mod tests {
    use amber_proto::mediator::Device;

    use super::*;

    fn event(kind: Kind, text: &str) -> Event {
        Event {
            kind: kind.into(),
            device: Some(Device { r#type: 4, id: 0 }),
            text: Some(text.into()),
            ..Event::default()
        }
    }

    #[test]
    fn deaths_and_trouble_ask_for_a_snapshot_but_orders_do_not() {
        let killed = event(Kind::DeviceDown, "killed by signal 9 (SIGKILL)");
        let expected = "hokuyo:0 is down: killed by signal 9 (SIGKILL)";
        assert_eq!(reason(&killed).as_deref(), Some(expected));
        assert!(reason(&event(Kind::DeviceTrouble, "unplugged")).is_some());
        assert!(reason(&event(Kind::DeviceFailed, "died 5 times")).is_some());
        for (kind, text) in [
            (Kind::DeviceDown, "stopped"),
            (Kind::DeviceUp, ""),
            (Kind::DeviceRecovered, "after 1.0 s"),
            (Kind::ClientGone, ""),
        ] {
            assert_eq!(reason(&event(kind, text)), None, "{kind:?}");
        }
    }

    #[test]
    fn a_driver_that_dies_again_and_again_does_not_fill_the_disk() {
        let mut own = Own {
            pause: Duration::from_secs(30),
            ..Own::default()
        };
        let start = Instant::now();
        let answers = (0..10_000).map(|second| own.wants(start + Duration::from_secs(second)));
        let answers: Vec<_> = answers.collect();
        let count = |wanted: Verdict| answers.iter().filter(|answer| **answer == wanted).count();
        assert_eq!(count(Verdict::Yes), OWN_SNAPSHOTS as usize);
        assert_eq!(count(Verdict::Last), 1);
        assert_eq!(
            (&answers[0], &answers[29], &answers[30]),
            (&Verdict::Yes, &Verdict::No, &Verdict::Yes)
        );
    }
}
