//! The settings of localization. PURE.

use std::time::Duration;

use amber_map::Pose;

use super::motion::MotionNoise;
use super::particles::SampleSize;
use crate::kinematics::SkidSteer;
use crate::likelihood::BeamModel;

/// All settings. Only the mount of the scanner has no default: a wrong one does more harm than any
/// noise.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The pose of the scanner on the robot: metres ahead and to the left of the centre of rotation,
    /// and the direction of its front in radians counter-clockwise.
    pub mount: Pose,
    /// The effective distance between left and right wheels in turns, in metres. Default: 0.42, for
    /// the Capo robot; its wheels are 0.26 m apart, but it turns by skidding.
    pub track_m: f64,
    /// The cell size of the distance field in metres. Default: 0.02.
    pub cell_m: f64,
    /// Beams shorter than this are ignored, in metres. Default: 0.05.
    pub min_range_m: f64,
    /// Beams longer than this are ignored, in metres. Default: 5.6.
    pub max_range_m: f64,
    /// Whether the robot works in rooms that are larger than the range of its laser. Default: no.
    pub large_rooms: bool,
    /// The number of beams that weigh particles. Default: 60.
    pub beams: usize,
    /// A scan with fewer valid beams is ignored. Default: 30.
    pub min_beams: usize,
    /// The number of beams that fit the pose to the map. Default: 340.
    pub fit_beams: usize,
    /// The width of the kernel of the fit, in metres: what is farther from walls counts little.
    /// Default: 0.04.
    pub fit_width_m: f64,
    /// The model of beams while the pose is known. Default: σ 0.05 m, hit 0.95, random 0.05.
    pub sharp: BeamModel,
    /// The model of beams while the pose is searched. Default: σ 0.15 m, hit 0.95, random 0.05.
    pub blurred: BeamModel,
    /// The factor for logarithms of likelihoods. Default: 0.3.
    pub sharpness: f64,
    /// The errors of odometry.
    pub motion: MotionNoise,
    /// The number of particles.
    pub size: SampleSize,
    /// How long a scan waits for odometry. Default: 100 ms.
    pub wait: Duration,
    /// While the robot stands still, the filter runs this often. Default: 1 s.
    pub idle: Duration,
    /// The seed of all randomness. Default: 1.
    pub seed: u64,
}

impl Config {
    /// The defaults, for a scanner mounted at this pose on the robot.
    #[must_use]
    pub fn new(mount: Pose) -> Self {
        Self {
            mount,
            track_m: SkidSteer::default().track_m,
            cell_m: 0.02,
            min_range_m: 0.05,
            max_range_m: 5.6,
            large_rooms: false,
            beams: 60,
            min_beams: 30,
            fit_beams: 340,
            fit_width_m: 0.04,
            sharp: BeamModel {
                sigma_m: 0.05,
                hit: 0.95,
                random: 0.05,
            },
            blurred: BeamModel {
                sigma_m: 0.15,
                hit: 0.95,
                random: 0.05,
            },
            sharpness: 0.3,
            motion: MotionNoise::default(),
            size: SampleSize::default(),
            wait: Duration::from_millis(100),
            idle: Duration::from_secs(1),
            seed: 1,
        }
    }

    /// The distance beyond which all points are equally far from walls, in metres.
    #[must_use]
    pub fn limit_m(&self) -> f64 {
        0.5
    }
}
