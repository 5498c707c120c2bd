//! The parts of the drawing as they arrive. PURE.

use std::sync::Arc;

use amber_client::{MapPose, Scan};
use amber_map::Mounting;
use amber_proto::location::Particle;

use crate::scene::{Drive, Ground, Located, Part, Place, Scene, Track, scan_places};

/// A part that has failed this often in a row is missing: UDP may lose an answer.
const FAILURES: u32 = 2;

/// The last answers.
#[derive(Debug, Default)]
pub struct State {
    pub map: Kept<Arc<Ground>>,
    /// The hypotheses of the location driver.
    pub particles: Kept<Vec<Particle>>,
    /// The path and the targets of the robot.
    pub drive: Kept<Drive>,
    located: Kept<Located>,
    scanned: Kept<()>,
    track: Track,
}

/// A part that survives one lost answer.
#[derive(Debug)]
pub struct Kept<T> {
    part: Part<T>,
    failures: u32,
}

impl<T> Default for Kept<T> {
    fn default() -> Self {
        Self {
            part: Err("no answer yet".into()),
            failures: 0,
        }
    }
}

impl<T> Kept<T> {
    /// The last answer.
    ///
    /// # Errors
    /// There is none.
    pub fn get(&self) -> &Part<T> {
        &self.part
    }

    /// An answer has arrived.
    pub fn set(&mut self, answer: Part<T>) {
        self.failures = match answer {
            Ok(_) => 0,
            Err(_) => self.failures + 1,
        };
        if answer.is_ok() || self.part.is_err() || self.failures >= FAILURES {
            self.part = answer;
        }
    }
}

impl State {
    /// A pose has arrived.
    pub fn take_pose(&mut self, pose: Part<MapPose>) {
        if let Ok(pose) = pose {
            self.track.handle_pose(pose);
            if let Ok(located) = &mut self.located.part {
                located.pose = pose;
            }
        }
    }

    /// A pose with its quality has arrived.
    pub fn take_located(&mut self, located: Part<Located>) {
        self.take_pose(located.as_ref().map(|it| it.pose).map_err(String::clone));
        self.located.set(located);
        if self.located.part.is_err() {
            self.track.handle_no_pose();
        }
    }

    /// A scan has arrived.
    pub fn take_scan(&mut self, scan: Part<Scan>) {
        let scanned = scan.map(|scan| self.track.handle_scan(scan));
        self.scanned.set(scanned);
    }

    /// Whether a scan can be drawn at the pose of that time.
    pub fn has_pose_of_scan(&self) -> bool {
        self.scanned.part.is_err() || self.track.of_its_time().is_some()
    }

    /// The pose, with its quality if that was requested.
    ///
    /// # Errors
    /// The pose is unknown.
    pub fn located(&self) -> Part<Located> {
        self.located.part.clone()
    }

    /// The points of the laser scan, on the map.
    ///
    /// # Errors
    /// There is no scan, or its position on the map is unknown.
    pub fn scan(&self, mount: &Part<Mounting>) -> Part<Vec<Place>> {
        self.scanned.part.clone()?;
        let mount = mount.clone()?;
        if (self.located.part.as_ref()).is_ok_and(|it| !it.is_decided()) {
            return Err("the position of the robot is undecided".into());
        }
        let last = self.track.last();
        let (scan, pose) = last.ok_or("the position of the robot is unknown")?;
        Ok(scan_places(scan, pose, mount))
    }

    /// All parts. `mount` is the position of the laser on the robot.
    pub fn scene(&self, mount: &Part<Mounting>) -> Scene {
        Scene {
            map: self.map.part.clone(),
            located: self.located.part.clone(),
            scan: self.scan(mount),
            particles: self.particles.part.clone(),
            drive: self.drive.part.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lost<T>() -> Part<T> {
        Err("no answer".into())
    }

    #[test]
    fn one_lost_answer_changes_nothing() {
        let mut kept = Kept::default();
        kept.set(lost());
        assert_eq!(kept.part, lost::<u8>());
        kept.set(Ok(1));
        kept.set(lost());
        assert_eq!(kept.part, Ok(1));
        kept.set(lost());
        assert_eq!(kept.part, lost());
    }

    #[test]
    fn a_scan_needs_a_pose_and_the_place_of_the_laser() {
        let mount = Ok(Mounting::default());
        let mut state = State::default();
        state.take_scan(Ok(Scan::new(&[0.0], &[1000], None).unwrap()));
        let why = state.scene(&mount).scan.unwrap_err();
        assert!(why.contains("unknown"), "{why}");
        let located = Located {
            pose: MapPose::new(1.0, 2.0, 0.0),
            quality: None,
        };
        state.take_located(Ok(located.clone()));
        assert_eq!(state.scene(&mount).scan, Ok(vec![(2.0, 2.0)]));
        assert_eq!(state.scene(&lost()).scan, lost());
        // Around a guess, it would look as if the robot were there.
        let mut guess = located.clone();
        guess.pose.quality = 0.1;
        guess.quality = Some(Default::default());
        state.take_located(Ok(guess));
        let why = state.scene(&mount).scan.unwrap_err();
        assert!(why.contains("undecided"), "{why}");
        // The driver was restarted.
        state.take_located(lost());
        state.take_located(lost());
        assert!(state.scene(&mount).scan.is_err());
        state.take_located(Ok(located));
        state.take_scan(lost());
        assert!(state.scene(&mount).scan.is_ok());
        state.take_scan(lost());
        assert_eq!(state.scene(&mount).scan, lost());
    }
}
