//! The results of a measurement: one row for each device. PURE.

use std::time::Duration;

use amber_client::Error;
use amber_proto::Device;
use amber_terminal::{Human, fields};
use serde::Serialize;

use super::plot;
use super::series::{Series, ms, quantile, shown};

/// Requests to one device and their answers.
#[derive(Debug)]
pub(super) struct RoundTrips {
    pub(super) device: Device,
    pub(super) times: Series,
    pub(super) lost: usize,
    pub(super) lasted: Duration,
    /// The cause of the last loss.
    pub(super) error: Option<Error>,
}

/// The same in numbers.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Row {
    device: String,
    sent: usize,
    received: usize,
    lost_percent: f64,
    per_s: f64,
    min_ms: Option<f64>,
    p50_ms: Option<f64>,
    p90_ms: Option<f64>,
    p99_ms: Option<f64>,
    max_ms: Option<f64>,
    error: Option<String>,
}

impl RoundTrips {
    pub(super) fn new(device: Device) -> Self {
        Self {
            device,
            times: Series::default(),
            lost: 0,
            lasted: Duration::ZERO,
            error: None,
        }
    }

    pub(super) fn progress(&self) -> String {
        let received = self.times.values().len();
        let last = self.times.values().last();
        let last = last.map_or(String::new(), |(_, time)| {
            format!(", last {}", shown(ms(*time)))
        });
        format!(
            "{}: {received} answers, {} lost{last}",
            self.device, self.lost
        )
    }

    pub(super) fn row(&self) -> Row {
        let sorted = self.times.sorted();
        let received = sorted.len();
        let sent = received + self.lost;
        let part = |part| quantile(&sorted, part).map(ms);
        Row {
            device: self.device.to_string(),
            sent,
            received,
            lost_percent: percent(self.lost, sent),
            per_s: per_second(received, self.lasted),
            min_ms: part(0.0),
            p50_ms: part(0.5),
            p90_ms: part(0.9),
            p99_ms: part(0.99),
            max_ms: part(1.0),
            error: self.error.as_ref().map(ToString::to_string),
        }
    }
}

/// All rows, aligned.
pub(super) fn table(rows: &[Row]) -> String {
    let time = |time: Option<f64>| time.map_or_else(|| "-".into(), shown);
    let rows: Vec<_> = (rows.iter())
        .map(|row| {
            [
                row.device.clone(),
                row.sent.to_string(),
                format!("{:.1} %", row.lost_percent),
                format!("{:.0}/s", row.per_s),
                time(row.min_ms),
                time(row.p50_ms),
                time(row.p90_ms),
                time(row.p99_ms),
                time(row.max_ms),
            ]
        })
        .collect();
    amber_terminal::table(
        [
            "DEVICE", "SENT", "LOST", "ANSWERS", "MIN", "P50", "P90", "P99", "MAX",
        ],
        &rows,
    )
}

/// The publications of one device.
#[derive(Debug)]
pub(super) struct Stream {
    device: Device,
    pub(super) messages: usize,
    missed: u64,
    bytes: usize,
    last: Option<Duration>,
    pub(super) intervals: Series,
}

/// The same in numbers.
#[derive(Debug, Serialize)]
pub(super) struct StreamShown {
    device: String,
    messages: usize,
    /// Messages missed because this program was too slow, or, if they are longer than a frame, because
    /// a part of them was lost. Other losses in the network are unknown.
    missed: u64,
    per_s: f64,
    bytes_per_s: f64,
    interval_min_ms: Option<f64>,
    interval_p50_ms: Option<f64>,
    interval_p99_ms: Option<f64>,
    interval_max_ms: Option<f64>,
    /// The mean distance of the intervals from the median.
    jitter_ms: Option<f64>,
    #[serde(skip)]
    distribution: String,
}

impl Stream {
    pub(super) fn new(device: Device) -> Self {
        Self {
            device,
            messages: 0,
            missed: 0,
            bytes: 0,
            last: None,
            intervals: Series::default(),
        }
    }

    /// Adds a message. The first one only starts the clock.
    pub(super) fn add(&mut self, at: Duration, bytes: usize, missed: u64) {
        self.messages += 1;
        self.missed += missed;
        if let Some(last) = self.last {
            self.bytes += bytes;
            self.intervals.add(last, at - last);
        }
        self.last = Some(at);
    }

    pub(super) fn progress(&self) -> String {
        let (device, messages) = (self.device, self.messages);
        format!("{device}: {messages} messages")
    }

    pub(super) fn shown(&self) -> StreamShown {
        let sorted = self.intervals.sorted();
        let lasted = self.last.unwrap_or_default();
        let median = quantile(&sorted, 0.5);
        let jitter = median.map(|median| {
            let apart = sorted.iter().map(|time| ms(time.abs_diff(median)));
            apart.sum::<f64>() / sorted.len() as f64
        });
        let part = |part| quantile(&sorted, part).map(ms);
        StreamShown {
            device: self.device.to_string(),
            messages: self.messages,
            missed: self.missed,
            per_s: per_second(sorted.len(), lasted),
            bytes_per_s: per_second(self.bytes, lasted),
            interval_min_ms: part(0.0),
            interval_p50_ms: part(0.5),
            interval_p99_ms: part(0.99),
            interval_max_ms: part(1.0),
            jitter_ms: jitter,
            distribution: plot::distribution(&self.intervals),
        }
    }
}

impl Human for StreamShown {
    fn human(&self) -> String {
        let time = |time: Option<f64>| time.map(shown);
        let lines = fields(&[
            ("device", Some(self.device.clone())),
            ("messages", Some(self.messages.to_string())),
            ("missed", (self.missed > 0).then(|| self.missed.to_string())),
            (
                "rate",
                Some(format!(
                    "{:.1}/s, {:.0} bytes/s",
                    self.per_s, self.bytes_per_s
                )),
            ),
            ("interval p50", time(self.interval_p50_ms)),
            ("interval p99", time(self.interval_p99_ms)),
            ("interval max", time(self.interval_max_ms)),
            ("jitter", time(self.jitter_ms)),
        ]);
        lines + &self.distribution
    }
}

fn percent(part: usize, of: usize) -> f64 {
    match of {
        0 => 0.0,
        of => 100.0 * part as f64 / of as f64,
    }
}

fn per_second(count: usize, time: Duration) -> f64 {
    match time.as_secs_f64() {
        0.0 => 0.0,
        seconds => count as f64 / seconds,
    }
}

#[cfg(test)]
mod tests {
    use amber_proto::DeviceType;

    use super::*;

    const DUMMY: Device = Device {
        device_type: DeviceType::DUMMY,
        id: amber_proto::DeviceId(0),
    };

    fn millis(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn lost_requests_count_and_have_no_time() {
        let mut trips = RoundTrips::new(DUMMY);
        for ms in 1..=99 {
            trips.times.add(millis(ms), millis(ms));
        }
        trips.lost = 1;
        trips.lasted = millis(2000);
        let row = trips.row();
        assert_eq!((row.sent, row.received, row.lost_percent), (100, 99, 1.0));
        assert_eq!(
            (row.per_s, row.p50_ms, row.max_ms),
            (49.5, Some(50.0), Some(99.0))
        );
        assert_eq!(
            table(&[row]),
            "DEVICE   SENT  LOST   ANSWERS  MIN       P50      P90      P99      MAX\n\
             dummy:0  100   1.0 %  50/s     1.000 ms  50.0 ms  89.0 ms  98.0 ms  99.0 ms\n"
        );
    }

    #[test]
    fn nothing_measured_has_no_times() {
        let table = table(&[RoundTrips::new(DUMMY).row()]);
        assert!(
            table.ends_with("dummy:0  0     0.0 %  0/s      -    -    -    -    -\n"),
            "{table}"
        );
        let stream = Stream::new(DUMMY).shown();
        assert_eq!((stream.messages, stream.jitter_ms), (0, None));
    }

    #[test]
    fn a_stream_has_a_rate_and_jitter() {
        let mut stream = Stream::new(DUMMY);
        for at in [0, 100, 200, 320, 400] {
            stream.add(millis(at), 50, 0);
        }
        let shown = stream.shown();
        assert_eq!(
            (shown.messages, shown.per_s, shown.bytes_per_s),
            (5, 10.0, 500.0)
        );
        // 80, 100, 100 and 120: two of four are 20 off.
        assert_eq!(
            (shown.interval_p50_ms, shown.jitter_ms),
            (Some(100.0), Some(10.0))
        );
        assert!(
            shown.human().contains("jitter:       10.0 ms\n"),
            "{}",
            shown.human()
        );
    }
}
