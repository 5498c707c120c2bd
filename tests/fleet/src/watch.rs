//! Arrived scans, and their statistics. PURE.

use std::time::Duration;

use amber_proto::hokuyo::DriverMsg;
use amber_zenoh::stamp::DataStamp;
use prost::Message;
use serde::Serialize;

use crate::samples::{Samples, Times};

/// Scans begin again with the number 0 after so many.
const NUMBERS: u64 = 60_000;

/// A scan that has arrived.
#[derive(Clone, Debug)]
pub(crate) struct Arrival {
    /// The index of the robot.
    pub(crate) robot: usize,
    /// CLOCK_MONOTONIC.
    pub(crate) at_ns: u64,
    /// Since 1970.
    pub(crate) unix_ns: u64,
    /// Not for those that come directly from a mediator.
    pub(crate) stamp: Option<DataStamp>,
    pub(crate) message: Vec<u8>,
}

/// The received scans of all robots.
#[derive(Clone, Debug)]
pub(crate) struct Tally {
    series: Vec<Series>,
    undecodable: u64,
    total: Samples,
    in_robot: Samples,
    in_zenoh: Samples,
}

/// The received scans of one robot.
#[derive(Clone, Debug, Default)]
struct Series {
    number: Option<u64>,
    sequence: Option<u64>,
    got: u64,
    lost: u64,
    lost_in_zenoh: u64,
    /// When the driver made the newest scan.
    made_ns: u64,
}

/// The streams of one way.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Streams {
    pub(crate) messages_per_s: f64,
    /// The rate of the slowest stream.
    pub(crate) slowest_hz: f64,
    pub(crate) got: u64,
    /// Gaps in the numbers of the drivers.
    pub(crate) lost: u64,
    /// Gaps in the numbers that the robots gave: a part of them.
    pub(crate) lost_in_zenoh: u64,
    /// From the driver to the watcher.
    pub(crate) total: Times,
    /// From the driver until the robot hands the scan to Zenoh.
    pub(crate) in_robot: Times,
    /// From there to the watcher.
    pub(crate) in_zenoh: Times,
}

impl Tally {
    /// Nothing has arrived of so many robots.
    pub(crate) fn new(robots: usize) -> Self {
        Self {
            series: vec![Series::default(); robots],
            undecodable: 0,
            total: Samples::default(),
            in_robot: Samples::default(),
            in_zenoh: Samples::default(),
        }
    }

    /// Counts a scan.
    pub(crate) fn take(&mut self, arrival: &Arrival) {
        let read = DriverMsg::decode(&arrival.message[..]).ok();
        let read = read.and_then(|message| {
            let number = *message.scan?.distances.first()? as u64;
            Some((number, message.timestamp? as u64))
        });
        let (Some((number, made_ns)), Some(series)) = (read, self.series.get_mut(arrival.robot))
        else {
            self.undecodable += 1;
            return;
        };
        series.got += 1;
        series.made_ns = made_ns;
        if let Some(last) = series.number.replace(number) {
            series.lost += (number + NUMBERS - last - 1) % NUMBERS;
        }
        self.total.add(made_ns, arrival.at_ns);
        if let Some(stamp) = arrival.stamp {
            if let Some(last) = series.sequence.replace(stamp.sequence) {
                series.lost_in_zenoh += stamp.sequence.saturating_sub(last + 1);
            }
            self.in_zenoh.add(stamp.time_ns, arrival.unix_ns);
            let in_zenoh_ns = arrival.unix_ns.saturating_sub(stamp.time_ns);
            self.in_robot.add(made_ns + in_zenoh_ns, arrival.at_ns);
        }
    }

    /// The robots with fewer scans than this that were made after a time.
    pub(crate) fn missing(&self, scans: u64, after_ns: u64) -> Vec<usize> {
        let all = self.series.iter().enumerate();
        let missing = all.filter(|(_, it)| it.got < scans || it.made_ns <= after_ns);
        missing.map(|(robot, _)| robot).collect()
    }

    /// Begins to count again. Gaps are still noticed.
    pub(crate) fn reset(&mut self) {
        let series = self.series.iter().map(|it| Series {
            number: it.number,
            sequence: it.sequence,
            ..Series::default()
        });
        *self = Self {
            series: series.collect(),
            ..Self::new(0)
        };
    }

    /// Adds what another time has brought.
    pub(crate) fn join(&mut self, other: Self) {
        for (series, more) in self.series.iter_mut().zip(other.series) {
            series.got += more.got;
            series.lost += more.lost;
            series.lost_in_zenoh += more.lost_in_zenoh;
        }
        self.undecodable += other.undecodable;
        self.total.extend(other.total);
        self.in_robot.extend(other.in_robot);
        self.in_zenoh.extend(other.in_zenoh);
    }

    /// The figures of all this time.
    pub(crate) fn streams(self, duration: Duration) -> Streams {
        let seconds = duration.as_secs_f64();
        let got: u64 = self.series.iter().map(|it| it.got).sum();
        let slowest = self.series.iter().map(|it| it.got).min().unwrap_or(0);
        let lost: u64 = self.series.iter().map(|it| it.lost).sum();
        Streams {
            messages_per_s: got as f64 / seconds,
            slowest_hz: slowest as f64 / seconds,
            got,
            lost: lost + self.undecodable,
            lost_in_zenoh: self.series.iter().map(|it| it.lost_in_zenoh).sum(),
            total: self.total.times(),
            in_robot: self.in_robot.times(),
            in_zenoh: self.in_zenoh.times(),
        }
    }
}

#[cfg(test)]
mod tests {
    use amber_proto::DeviceMessage;

    use super::*;
    use crate::driver::scan;

    fn arrival(number: u64, sequence: u64, made_ns: u64) -> Arrival {
        let mut message = DriverMsg::data();
        message.scan = Some(scan(number));
        message.timestamp = Some(made_ns as i64);
        Arrival {
            robot: 0,
            at_ns: made_ns + 300_000,
            unix_ns: 5_200_000,
            stamp: Some(DataStamp {
                sequence,
                time_ns: 5_000_000,
            }),
            message: message.encode_to_vec(),
        }
    }

    #[test]
    fn gaps_and_latencies_are_told_apart() {
        let mut tally = Tally::new(1);
        tally.take(&arrival(59_999, 7, 1_000));
        assert_eq!(tally.missing(1, 999), [0usize; 0]);
        assert_eq!(tally.missing(1, 1_000), [0]);
        tally.reset();
        assert_eq!(tally.missing(1, 0), [0]);
        // One was lost before the robot had numbered it, and one after.
        tally.take(&arrival(2, 9, 2_000));
        let streams = tally.streams(Duration::from_secs(1));
        assert_eq!(
            (streams.got, streams.lost, streams.lost_in_zenoh),
            (1, 2, 1)
        );
        assert_eq!(streams.total.p50_us, 300.0);
        assert_eq!(streams.in_zenoh.p50_us, 200.0);
        assert_eq!(streams.in_robot.p50_us, 100.0);
    }
}
