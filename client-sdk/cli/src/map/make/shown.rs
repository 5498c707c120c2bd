//! Progress and result for people and programs. PURE.

use std::path::Path;
use std::time::Duration;

use amber_client::MapPose;
use amber_proto::mapping::progress::Exploration;
use amber_proto::mapping::{Progress, SavedMap};
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
    key_scans: u64,
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
    /// The part of a log that was read, 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    read: Option<f64>,
}

impl Shown {
    /// The progress of a map from a log, of which this part was read.
    pub(super) fn of_log(progress: &Progress, part: f64) -> Self {
        let time = Duration::from_millis(progress.time());
        Self {
            read: Some(rounded(part, 3)),
            ..Self::new(time, progress, None)
        }
    }

    /// `trouble` comes before what the driver reports.
    pub(super) fn new(time: Duration, progress: &Progress, trouble: Option<String>) -> Self {
        let pose: MapPose = progress.location.map(MapPose::from).unwrap_or_default();
        Self {
            time_s: rounded(time.as_secs_f64(), 1),
            way_m: rounded(progress.distance(), 2),
            area_m2: rounded(progress.area(), 1),
            scans: progress.scans(),
            key_scans: progress.key_scans(),
            loops: progress.loops(),
            x_m: rounded(pose.x_m, 3),
            y_m: rounded(pose.y_m, 3),
            heading_rad: rounded(pose.heading_rad, 3),
            matching: rounded(pose.quality, 2),
            exploring: exploring(progress.exploration()),
            trouble: trouble.or_else(|| progress.trouble.clone()),
            read: None,
        }
    }
}

/// The activity of an exploring robot.
fn exploring(exploration: Exploration) -> Option<&'static str> {
    Some(match exploration {
        Exploration::Never => return None,
        Exploration::Waiting => "waiting",
        Exploration::Exploring => "exploring",
        Exploration::Returning => "returning",
        Exploration::Finished => "finished",
        Exploration::NotReturned => "could not return",
        Exploration::StoppedEarly => "stopped",
    })
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
        match (&self.trouble, self.read) {
            (Some(trouble), _) => line + &format!("; {trouble}"),
            (None, Some(part)) => line + &format!("; {:.0} % of the log read", 100.0 * part),
            (None, None) => line + "; Ctrl-C ends",
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
    walls: u32,
    scans: u64,
    key_scans: u64,
    loops: u64,
    /// The missing and dropped data; empty if there is none.
    missing: Vec<String>,
    /// What is wrong with the geometry of the robot, and the lines for robot.toml that correct it.
    wrong: Vec<String>,
    lines: Vec<String>,
}

impl Made {
    pub(super) fn new(files: [&Path; 3], time: Duration, saved: &SavedMap) -> Self {
        let progress = saved.progress.clone().unwrap_or_default();
        Self {
            files: files.map(|file| file.display().to_string()).into(),
            time_s: rounded(time.as_secs_f64(), 1),
            way_m: rounded(progress.distance(), 2),
            area_m2: rounded(saved.area(), 1),
            walls: saved.walls(),
            scans: progress.scans(),
            key_scans: progress.key_scans(),
            loops: progress.loops(),
            missing: saved.missing.clone(),
            wrong: saved.wrong.clone(),
            lines: saved.lines.clone(),
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
        for wrong in &self.wrong {
            text += &format!("wrong geometry: {wrong}\n");
        }
        if !self.lines.is_empty() {
            text += "in robot.toml, for the next map:\n";
        }
        for line in &self.lines {
            text += &format!("  {line}\n");
        }
        text + &format!("wrote {}\n", self.files.join(", "))
    }
}

fn rounded(value: f64, digits: i32) -> f64 {
    let scale = 10_f64.powi(digits);
    (value * scale).round() / scale
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_see_time_way_area_and_what_is_wrong() {
        let mut progress = Progress {
            distance: Some(12.34),
            area: Some(20.5),
            ..Progress::default()
        };
        progress.set_exploration(Exploration::Exploring);
        let time = Duration::from_secs(75);
        let shown = |progress: &Progress, trouble: Option<&str>| {
            let trouble = trouble.map(str::to_owned);
            Shown::new(time, progress, trouble).human()
        };
        let start = "1m 15s: 12.3 m driven, 20.5 m2 free, 0 loops, exploring; ";
        assert_eq!(shown(&progress, None), format!("{start}Ctrl-C ends"));
        let trouble = "hokuyo:0 sends no scans";
        progress.trouble = Some(trouble.into());
        assert_eq!(shown(&progress, None), format!("{start}{trouble}"));
        assert_eq!(shown(&progress, Some("lost")), format!("{start}lost"));
    }
}
