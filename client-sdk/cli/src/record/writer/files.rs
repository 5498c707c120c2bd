//! A feed goes to files. IO.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use amber_proto::feed::Record;
use amber_record::{Recording, Totals};
use amber_terminal::Failure;
use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::super::limits::FLUSH_INTERVAL;
use super::super::output::Output;
use super::super::progress::Progress;
use super::super::report::{Outcome, Written};
use super::{Plan, begin, failed};

pub(super) struct Files {
    plan: Plan,
    max_bytes: Option<u64>,
    /// `None` only while files change.
    recording: Option<Recording<Output>>,
    path: PathBuf,
    written: Arc<AtomicU64>,
    finished: Vec<Written>,
    /// The totals of finished files.
    before: Totals,
    /// The oldest record that is not in the file yet.
    unwritten_since: Option<Instant>,
}

impl Files {
    pub(super) fn new(mut plan: Plan, max_bytes: Option<u64>) -> Result<Self, Failure> {
        let path = next_path(&mut plan);
        let output = Output::create(&path, plan.force)?;
        let written = output.counter();
        let recording = begin(output, plan.content.clone())?;
        Ok(Self {
            plan,
            max_bytes,
            recording: Some(recording),
            path,
            written,
            finished: Vec::new(),
            before: Totals::default(),
            unwritten_since: None,
        })
    }

    pub(super) fn add(&mut self, record: &Record<'_>) -> Result<(), Failure> {
        let Some(recording) = &mut self.recording else {
            return Ok(());
        };
        let added = recording.add(record);
        added.map_err(|error| failed(&self.path, error))?;
        if self.unwritten_since.is_none() {
            self.unwritten_since = Some(Instant::now());
        }
        let bytes = self.written.load(Ordering::Relaxed);
        match self.max_bytes.is_some_and(|most| bytes >= most) {
            true => self.change_file(),
            false => Ok(()),
        }
    }

    /// Writes what is buffered, so that little is lost if this program is killed.
    pub(super) fn flush_if_due(&mut self) -> Result<(), Failure> {
        let due = self
            .unwritten_since
            .is_some_and(|since| since.elapsed() >= FLUSH_INTERVAL);
        if let (true, Some(recording)) = (due, &mut self.recording) {
            self.unwritten_since = None;
            recording
                .flush()
                .map_err(|error| failed(&self.path, error))?;
        }
        Ok(())
    }

    pub(super) fn patience(&self) -> Duration {
        let since = self.unwritten_since.map(|since| since.elapsed());
        since.map_or(FLUSH_INTERVAL, |since| FLUSH_INTERVAL.saturating_sub(since))
    }

    pub(super) fn progress(&self) -> Progress {
        let finished: u64 = self.finished.iter().map(|file| file.bytes).sum();
        let totals = self.recording.as_ref().map(Recording::totals);
        Progress {
            file: Some(self.path.clone()),
            file_bytes: finished + self.written.load(Ordering::Relaxed),
            totals: self.before.and(totals.unwrap_or_default()),
            held: None,
        }
    }

    pub(super) fn finish(mut self) -> Result<Outcome, Failure> {
        let mut ended = false;
        if let Some(recording) = self.recording.take() {
            ended = recording.has_ended();
            let finished = recording.finish(None);
            let (totals, output) = finished.map_err(|error| failed(&self.path, error))?;
            self.close(totals, output)?;
        }
        Ok(Outcome {
            files: self.finished,
            totals: self.before,
            ended,
        })
    }

    fn change_file(&mut self) -> Result<(), Failure> {
        // Files of an earlier run are kept.
        let next = loop {
            let next = next_path(&mut self.plan);
            if self.plan.force || !next.exists() {
                break next;
            }
        };
        let output = Output::create(&next, self.plan.force)?;
        let (written, name) = (output.counter(), next.file_name().unwrap_or_default());
        let Some(recording) = self.recording.take() else {
            return Ok(());
        };
        let changed = recording.go_on(&name.to_string_lossy(), output);
        let (totals, finished, recording) = changed.map_err(|error| failed(&self.path, error))?;
        self.close(totals, finished)?;
        self.recording = Some(recording);
        (self.path, self.written) = (next, written);
        Ok(())
    }

    fn close(&mut self, totals: Totals, output: Output) -> Result<(), Failure> {
        let path = self.path.clone();
        let counter = output.counter();
        output.close()?;
        let bytes = counter.load(Ordering::Relaxed);
        self.finished.push(Written::new(path, bytes, totals, None));
        self.before = self.before.and(totals);
        self.unwritten_since = None;
        Ok(())
    }
}

fn next_path(plan: &mut Plan) -> PathBuf {
    plan.names.next(Timestamp::now(), TimeZone::system())
}
