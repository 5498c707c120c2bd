//! Progress and result for people and programs. PURE.

use std::path::Path;
use std::time::Duration;

use amber_navigation::explore::State;
use amber_navigation::slam::recording::{Finished, Gaps, Progress};
use amber_terminal::{Human, duration};
use serde::Serialize;

/// The progress of the map.
#[derive(Debug, Serialize)]
pub(super) struct Shown {
    time_s: f64,
    way_m: f64,
    /// The free area.
    area_m2: f64,
    scans: u64,
    key_scans: usize,
    loops: u64,
    /// In the frame of messages: y down, clockwise. The map is turned at the end.
    x_m: f64,
    y_m: f64,
    heading_rad: f64,
    /// The part of the last scan that matches the map.
    matching: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    exploring: Option<&'static str>,
    /// Missing data, at the moment.
    #[serde(skip_serializing_if = "Option::is_none")]
    trouble: Option<String>,
}

impl Shown {
    pub(super) fn new(
        time: Duration,
        progress: &Progress,
        exploring: Option<State>,
        trouble: Option<String>,
    ) -> Self {
        let pose = amber_map::MapPose::from(progress.pose);
        Self {
            time_s: rounded(time.as_secs_f64(), 1),
            way_m: rounded(progress.way_m, 2),
            area_m2: rounded(progress.free_m2, 1),
            scans: progress.counters.scans,
            key_scans: progress.keys,
            loops: progress.counters.loops,
            x_m: rounded(pose.x_m, 3),
            y_m: rounded(pose.y_m, 3),
            heading_rad: rounded(pose.heading_rad, 3),
            matching: rounded(progress.overlap, 2),
            exploring: exploring.map(name),
            trouble,
        }
    }
}

/// The activity of an exploring robot.
pub(super) fn name(state: State) -> &'static str {
    match state {
        State::Waiting => "waiting",
        State::Exploring => "exploring",
        State::Returning => "returning",
        State::Finished => "finished",
        State::NotReturned => "could not return",
    }
}

impl Human for Shown {
    fn human(&self) -> String {
        let time = duration(Duration::from_secs_f64(self.time_s.max(0.0)));
        let mut line = format!(
            "{time}: {:.1} m driven, {:.1} m2 free, {} loops",
            self.way_m, self.area_m2, self.loops
        );
        if let Some(exploring) = self.exploring {
            line += &format!(", {exploring}");
        }
        match &self.trouble {
            Some(trouble) => line + &format!("; {trouble}"),
            None => line + "; Ctrl-C ends",
        }
    }
}

/// The result.
#[derive(Debug, Serialize)]
pub(super) struct Made {
    files: Vec<String>,
    time_s: f64,
    way_m: f64,
    /// The free area.
    area_m2: f64,
    walls: usize,
    scans: u64,
    key_scans: usize,
    loops: u64,
    /// The missing and dropped data; empty if there is none.
    missing: Vec<String>,
}

impl Made {
    pub(super) fn new(
        files: [&Path; 3],
        time: Duration,
        finished: &Finished,
        missing: Vec<String>,
    ) -> Self {
        let progress = &finished.progress;
        Self {
            files: files.map(|file| file.display().to_string()).into(),
            time_s: rounded(time.as_secs_f64(), 1),
            way_m: rounded(progress.way_m, 2),
            area_m2: rounded(progress.free_m2, 1),
            walls: finished.map.walls.len(),
            scans: progress.counters.scans,
            key_scans: progress.keys,
            loops: progress.counters.loops,
            missing,
        }
    }
}

impl Human for Made {
    fn human(&self) -> String {
        let time = duration(Duration::from_secs_f64(self.time_s.max(0.0)));
        let mut text = format!(
            "{:.1} m2 free, {} walls, from {} scans on {:.1} m in {time}; {} loops closed\n",
            self.area_m2, self.walls, self.scans, self.way_m, self.loops
        );
        for missing in &self.missing {
            text += &format!("missing: {missing}\n");
        }
        text + &format!("wrote {}\n", self.files.join(", "))
    }
}

/// The missing and dropped data, in words. `dropped` measurements did not reach the mapper, and
/// `invalid` wheel speeds were too large.
pub(super) fn missing(progress: &Progress, dropped: u64, invalid: u64) -> Vec<String> {
    let counters = &progress.counters;
    let gaps = |gaps: &Gaps, what: &str| {
        let longest_s = gaps.longest.as_secs_f64();
        (gaps.count, format!("{what}, the longest {longest_s:.1} s"))
    };
    let count = |count: u64, what: &str| (count, what.to_owned());
    [
        gaps(&progress.scan_gaps, "gaps between scans"),
        gaps(&progress.wheels_gaps, "gaps between wheel speeds"),
        count(dropped, "measurements dropped: this computer is too slow"),
        count(invalid, "invalid wheel speeds"),
        count(counters.speeds_refused, "wheel speeds that came too late"),
        count(counters.scans_late, "scans that came too late"),
        count(counters.scans_blind, "scans that saw too little"),
        count(
            counters.scans_without_odometry,
            "scans without wheel speeds",
        ),
        count(counters.unmatched, "scans that did not match the map"),
        count(counters.keys_dropped, "scans beyond the largest map"),
        count(counters.loops_false, "loops that contradict the others"),
    ]
    .into_iter()
    .filter(|(count, _)| *count > 0)
    .map(|(count, what)| format!("{count} {what}"))
    .collect()
}

fn rounded(value: f64, digits: i32) -> f64 {
    let scale = 10_f64.powi(digits);
    (value * scale).round() / scale
}

#[cfg(test)]
mod tests {
    use amber_navigation::slam::Counters;

    use super::*;

    #[test]
    fn everything_that_was_missing_is_named() {
        assert_eq!(missing(&Progress::default(), 0, 0), [""; 0]);
        let progress = Progress {
            counters: Counters {
                scans_without_odometry: 7,
                ..Counters::default()
            },
            ..Progress::default()
        };
        let expected = [
            "2 measurements dropped: this computer is too slow",
            "3 invalid wheel speeds",
            "7 scans without wheel speeds",
        ];
        assert_eq!(missing(&progress, 2, 3), expected);
    }

    #[test]
    fn people_see_time_way_area_and_what_is_wrong() {
        let progress = Progress {
            way_m: 12.34,
            free_m2: 20.5,
            ..Progress::default()
        };
        let time = Duration::from_secs(75);
        let shown = |trouble: Option<&str>| {
            let trouble = trouble.map(str::to_owned);
            Shown::new(time, &progress, Some(State::Exploring), trouble).human()
        };
        let start = "1m 15s: 12.3 m driven, 20.5 m2 free, 0 loops, exploring; ";
        assert_eq!(shown(None), format!("{start}Ctrl-C ends"));
        let trouble = "no scans from hokuyo:0";
        assert_eq!(shown(Some(trouble)), format!("{start}{trouble}"));
    }
}
