//! The filter of the driver with its map, and its state for clients. PURE.
//!
//! Times count from any fixed start. The task of the driver forwards measurements; a thread
//! lets the filter work; see `engine`.

use std::time::Duration;

use amber_map::{MapPose, Pose};
use amber_navigation::geometry::{self, Findings, Watch};
use amber_navigation::kinematics::Wheels;
use amber_navigation::location::particles::Particle;
use amber_navigation::location::{Config, Counters, Estimate, Hint, Location, LocationMap};
use amber_navigation::scan::Scan;
use amber_navigation::sight::View;

/// The filter, if there is a map.
#[derive(Debug)]
pub(crate) struct Tracker {
    config: Config,
    location: Option<Location>,
    /// It needs no map.
    geometry: Watch,
    counts: Counts,
    /// The counts of the filters of earlier maps.
    before: Counts,
    last_scan: Option<Duration>,
    last_heard: Option<Duration>,
    last_wheels: Option<Duration>,
    view: Option<View>,
    injected: f64,
    undecided_since: Option<Duration>,
}

/// Counts since the driver started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Scans that gave an estimate.
    pub scans: u64,
    /// How often a known pose was lost.
    pub lost: u64,
}

/// The state of the filter after an update.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Report {
    /// Whether there is a map.
    pub has_map: bool,
    pub estimate: Option<Estimate>,
    /// The time since which the pose is unknown.
    pub undecided_since: Option<Duration>,
    /// When the last scan arrived that was used.
    pub last_scan: Option<Duration>,
    /// The time of the last scan, of any use.
    pub last_heard: Option<Duration>,
    /// The time of the last wheel speeds.
    pub last_wheels: Option<Duration>,
    /// What the last scan shows.
    pub view: Option<View>,
    pub particles: usize,
    /// The part of the particles that the search has added in the last update.
    pub injected: f64,
    pub counts: Counts,
}

impl Tracker {
    pub(crate) fn new(config: Config, geometry: geometry::Config) -> Self {
        Self {
            config,
            location: None,
            geometry: Watch::new(geometry),
            counts: Counts::default(),
            before: Counts::default(),
            last_scan: None,
            last_heard: None,
            last_wheels: None,
            view: None,
            injected: 0.0,
            undecided_since: None,
        }
    }

    /// Replaces the map. The position in it is unknown.
    pub(crate) fn handle_map(&mut self, map: LocationMap) {
        self.before = self.counts;
        self.injected = 0.0;
        self.location = Some(Location::new(map, self.config.clone()));
    }

    /// Returns whether the findings about the geometry may have changed.
    pub(crate) fn handle_scan(&mut self, scan: Scan) -> bool {
        self.last_heard = self.last_heard.max(Some(scan.end()));
        let is_news = self.geometry.handle_scan(&scan);
        if let Some(location) = &mut self.location {
            location.handle_scan(scan);
        }
        is_news
    }

    /// A gyroscope has measured the turn rate.
    pub(crate) fn handle_turn_rate(&mut self, time: Duration, turn_rad_s: f64) {
        self.geometry.handle_turn_rate(time, turn_rad_s);
    }

    /// Checks the geometry from the beginning.
    pub(crate) fn check_again(&mut self) {
        self.geometry.restart();
    }

    /// What the measurements say about the geometry of the robot.
    pub(crate) fn findings(&self) -> &Findings {
        self.geometry.findings()
    }

    pub(crate) fn handle_wheels(&mut self, time: Duration, wheels: Wheels) {
        self.last_wheels = self.last_wheels.max(Some(time));
        self.geometry.handle_wheels(time, wheels);
        if let Some(location) = &mut self.location {
            location.handle_wheels(time, wheels);
        }
    }

    /// Another system has measured the pose, with these standard deviations.
    pub(crate) fn handle_external(
        &mut self,
        time: Duration,
        pose: Pose,
        sigma_m: f64,
        sigma_rad: f64,
    ) {
        if let Some(location) = &mut self.location {
            location.handle_pose(time, pose, sigma_m, sigma_rad);
        }
    }

    /// Somebody says where the robot is.
    pub(crate) fn handle_hint(&mut self, time: Duration, hint: Hint) -> Result<(), String> {
        let Some(location) = &mut self.location else {
            return Err("there is no map, so a place on it means nothing".into());
        };
        if !location.handle_hint(time, hint) {
            let at = MapPose::from(hint.pose);
            return Err(format!(
                "the robot cannot be at ({:.2} m, {:.2} m): there is a wall, or it is outside of the map; \
                 y points down",
                at.x_m, at.y_m
            ));
        }
        Ok(())
    }

    /// When [`Tracker::update`] is due.
    pub(crate) fn next_timeout(&self) -> Option<Duration> {
        self.location.as_ref()?.next_timeout()
    }

    /// Evaluates one scan, if one is due. Returns whether it gave an estimate.
    pub(crate) fn update(&mut self, now: Duration) -> bool {
        let Some(location) = &mut self.location else {
            return false;
        };
        let injected = location.counters().injected;
        let is_new = location.update(now).is_some();
        if is_new {
            self.last_scan = Some(now);
            let added = location.counters().injected - injected;
            self.injected = added as f64 / location.particles().len().max(1) as f64;
            let decided = location.estimate().is_some_and(|estimate| estimate.decided);
            self.undecided_since = match decided {
                true => None,
                false => self.undecided_since.or(Some(now)),
            };
        }
        self.view = Some(location.view(now));
        let counters = location.counters();
        self.counts = Counts {
            scans: self.before.scans + counters.scans,
            lost: self.before.lost + counters.lost,
        };
        is_new
    }

    pub(crate) fn report(&self) -> Report {
        Report {
            has_map: self.location.is_some(),
            estimate: self.location.as_ref().and_then(Location::estimate),
            undecided_since: self.undecided_since,
            last_scan: self.last_scan,
            last_heard: self.last_heard,
            last_wheels: self.last_wheels,
            view: self.view,
            particles: self.particles().len(),
            injected: self.injected,
            counts: self.counts,
        }
    }

    pub(crate) fn particles(&self) -> &[Particle] {
        self.location.as_ref().map_or(&[], Location::particles)
    }

    /// The counters of the filter, for the log.
    pub(crate) fn counters(&self) -> Option<Counters> {
        Some(self.location.as_ref()?.counters())
    }
}

#[cfg(test)]
mod tests;
