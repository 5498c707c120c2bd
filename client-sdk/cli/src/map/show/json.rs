//! The scene for programs. PURE.

use std::collections::BTreeMap;

use amber_client::MapPose;
use amber_terminal::Human;
use serde::Serialize;

use amber_scene::{Place, Scene};

/// All parts in the frame of the map: metres, y down, angles clockwise.
#[derive(Debug, Serialize)]
pub(super) struct Shown {
    #[serde(skip_serializing_if = "Option::is_none")]
    map: Option<MapShown>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pose: Option<PoseShown>,
    scan: Vec<Place>,
    particles: Vec<ParticleShown>,
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    remaining_m: Option<f64>,
    path: Vec<Place>,
    targets: Vec<TargetShown>,
    /// The missing parts, with reasons.
    missing: BTreeMap<&'static str, String>,
}

#[derive(Debug, Serialize)]
struct MapShown {
    low: Place,
    high: Place,
    walls: Vec<[Place; 2]>,
    occupied: Vec<Place>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cell_m: Option<f64>,
}

#[derive(Debug, Serialize)]
struct PoseShown {
    x_m: f64,
    y_m: f64,
    heading_rad: f64,
    quality: f64,
    timestamp_ms: Option<i64>,
}

#[derive(Debug, Serialize)]
struct ParticleShown {
    x_m: f32,
    y_m: f32,
    heading_rad: f32,
    weight: f32,
}

#[derive(Debug, Serialize)]
struct TargetShown {
    x_m: f64,
    y_m: f64,
    radius_m: f64,
}

impl Shown {
    /// With `--live`, only the first one has the map.
    pub(super) fn of(scene: &Scene, with_map: bool) -> Self {
        let map = scene.map.as_ref().ok().filter(|_| with_map);
        let map = map.zip(scene.bounds()).map(|(map, bounds)| MapShown {
            low: bounds.low,
            high: bounds.high,
            walls: map.walls().map(|(from, to, _)| [from, to]).collect(),
            occupied: map.occupied().map(|(at, _)| at).collect(),
            cell_m: map.occupied().next().map(|(_, cell_m)| cell_m),
        });
        let drive = scene.drive.as_ref().ok();
        let particles = scene.particles.iter().flatten();
        let missing = scene.missing().into_iter();
        Self {
            map,
            pose: scene.located.as_ref().ok().map(|it| it.pose.into()),
            scan: scene.scan.clone().unwrap_or_default(),
            particles: particles
                .map(|it| ParticleShown {
                    x_m: it.x(),
                    y_m: it.y(),
                    heading_rad: it.alfa(),
                    weight: it.weight(),
                })
                .collect(),
            state: drive.map(|drive| drive.state.clone()),
            reason: drive.and_then(|drive| drive.reason.clone()),
            remaining_m: drive.and_then(|drive| drive.remaining_m),
            path: drive.map(|drive| drive.path.clone()).unwrap_or_default(),
            targets: drive
                .iter()
                .flat_map(|drive| &drive.targets)
                .map(|it| TargetShown {
                    x_m: it.x_m,
                    y_m: it.y_m,
                    radius_m: it.radius_m,
                })
                .collect(),
            missing: missing.map(|(name, why)| (name, why.to_owned())).collect(),
        }
    }
}

impl From<MapPose> for PoseShown {
    fn from(pose: MapPose) -> Self {
        Self {
            x_m: pose.x_m,
            y_m: pose.y_m,
            heading_rad: pose.heading_rad,
            quality: pose.quality,
            timestamp_ms: pose.timestamp_ms,
        }
    }
}

/// This form is only for programs.
impl Human for Shown {
    fn human(&self) -> String {
        String::new()
    }
}
