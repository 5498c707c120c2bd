//! What is wrong with the configured geometry, in words and as lines for `robot.toml`. PURE.

use std::f64::consts::FRAC_PI_2;

use amber_map::wrap;

use super::gyro::Verdict;
use super::own_parts::Part;
use super::straights::Direction;
use super::turns::{Compared, Value};
use super::{Config, Evidence};

/// The turns that estimates of the wheels need.
const MIN_TURNS_RAD: f64 = 2.0;
/// Changes of the turn rate that an estimate of the delay needs: two turns that begin and end.
const MIN_CHANGES: u32 = 4;
/// The straight way that an estimate of the direction needs.
const MIN_STRAIGHT_M: f64 = 1.0;
const MIN_WAYS: usize = 4;
/// A value counts once its standard deviation is below this.
const MAX_RATIO_SIGMA: f64 = 0.05;
const MAX_DELAY_SIGMA_S: f64 = 0.015;
const MAX_DIRECTION_SIGMA_RAD: f64 = 0.03;
/// Smaller differences do no harm, or come from the floor.
const DELAY_S: f64 = 0.04;
const ANGLE_RAD: f64 = 0.044;
const TRACK_PART: f64 = 0.1;
/// And differences must exceed so many standard deviations.
const SIGMAS: f64 = 3.0;
/// The wheels and the scans turn alike from this ratio on; opposite below its negative.
const ALIKE: f64 = 0.4;
/// If the ratio is smaller in both directions, the turns of the wheels are none.
const UNRELATED: f64 = 0.25;

/// What the measurements say about the geometry.
#[derive(Clone, Debug, PartialEq)]
pub struct Findings {
    /// The motion that they rest on.
    pub evidence: Evidence,
    /// The delay of the scans in milliseconds, if it is known.
    pub scan_delay_ms: Option<Estimate>,
    /// The angle of the laser to the right in degrees, if it is known.
    pub laser_angle_deg: Option<Estimate>,
    /// The effective track in millimetres, if it is known.
    pub track_mm: Option<Estimate>,
    /// What is wrong.
    pub found: Vec<Finding>,
}

/// A measured value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The configured value.
    pub configured: f64,
    /// The measured one.
    pub value: f64,
    /// Its standard deviation.
    pub sigma: f64,
}

/// Something that is wrong.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// What it is.
    pub fault: Fault,
    /// What disagrees, and by how much: a sentence without its full stop.
    pub sentence: String,
    /// The lines for `robot.toml`; none if the wiring is wrong.
    pub lines: Vec<String>,
}

/// The kinds of findings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The laser is mounted upside down, or not although the configuration says so.
    LaserMirrored,
    /// The wheels of the left side are reported as those of the right side.
    WheelsSwapped,
    /// One of these two: without a gyroscope they look alike.
    LaserMirroredOrWheelsSwapped,
    /// All wheels have the wrong sign.
    WheelsReversed,
    /// The wheels of one side have the wrong sign.
    SideReversed,
    /// The laser points backwards, or all wheels are swapped and have the wrong sign.
    LaserBackwards,
    /// The laser has another angle.
    LaserAngle,
    /// The effective track is another one.
    Track,
    /// The scans have another delay.
    ScanDelay,
    /// The laser sees parts of the robot.
    LaserSeesRobot,
}

impl Fault {
    /// A short name for programs.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::LaserMirrored => "laser_mirrored",
            Self::WheelsSwapped => "wheels_swapped",
            Self::LaserMirroredOrWheelsSwapped => "laser_mirrored_or_wheels_swapped",
            Self::WheelsReversed => "wheels_reversed",
            Self::SideReversed => "side_reversed",
            Self::LaserBackwards => "laser_backwards",
            Self::LaserAngle => "laser_angle",
            Self::Track => "track",
            Self::ScanDelay => "scan_delay",
            Self::LaserSeesRobot => "laser_sees_robot",
        }
    }
}

/// How the turns of the wheels and of the scans relate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turning {
    Alike,
    Opposite,
    /// The wheels report turns where there are none: one side has the wrong sign.
    Unrelated,
    Unknown,
}

impl Findings {
    /// Draws the conclusions.
    pub(super) fn new(
        config: &Config,
        evidence: Evidence,
        compared: Option<Compared>,
        direction: Option<Direction>,
        is_backwards: Option<bool>,
        gyro: Verdict,
        own_parts: &[Part],
    ) -> Self {
        let turned_rad = evidence.seen_rad.max(evidence.driven_rad);
        let compared = compared.filter(|_| turned_rad >= MIN_TURNS_RAD);
        let turning = compared.map_or(Turning::Unknown, |compared| turning(compared.ratio));
        let direction = direction.filter(|direction| {
            evidence.straight_m >= MIN_STRAIGHT_M
                && direction.count >= MIN_WAYS
                && direction.sigma_rad <= MAX_DIRECTION_SIGMA_RAD
        });
        let backwards = direction.map(|it| it.left_rad.abs() > FRAC_PI_2);
        let is_backwards = backwards.or(is_backwards);
        let mut new = Self {
            evidence,
            scan_delay_ms: None,
            laser_angle_deg: None,
            track_mm: None,
            found: Vec::new(),
        };
        match turning {
            Turning::Unknown => {}
            Turning::Unrelated => new.found.extend(compared.map(one_side)),
            Turning::Alike | Turning::Opposite => {
                if turning == Turning::Opposite {
                    // Both are wrong, or a half turn of the laser in addition.
                    (new.found).extend(opposite(config, gyro, direction, is_backwards));
                }
                if let Some(compared) = compared {
                    new.set_delay(config, &compared);
                    new.set_track(config, compared.ratio);
                }
            }
        }
        if turning == Turning::Alike
            && let Some(direction) = direction
        {
            new.set_angle(config, direction, backwards == Some(true));
        }
        new.found.extend(sees_robot(config, own_parts));
        new
    }

    /// How the robot must still move until all values are known.
    #[must_use]
    pub fn missing(&self) -> Vec<&'static str> {
        let faults =
            |faults: &[Fault]| self.found.iter().any(|found| faults.contains(&found.fault));
        // Until the signs are right, nothing else can be measured.
        let no_signs = faults(&[Fault::SideReversed]);
        let no_angle = faults(&[
            Fault::LaserMirrored,
            Fault::WheelsSwapped,
            Fault::WheelsReversed,
            Fault::LaserMirroredOrWheelsSwapped,
        ]);
        let mut missing = Vec::new();
        if self.track_mm.is_none() && !no_signs {
            missing.push("turn on the spot, to the left and to the right");
        } else if self.scan_delay_ms.is_none() && !no_signs {
            missing.push("begin and end some turns");
        }
        if self.laser_angle_deg.is_none() && !no_signs && !no_angle {
            missing.push("drive straight ahead for a metre or two, where walls are in sight");
        }
        missing
    }

    /// Whether all values are known and none is wrong.
    #[must_use]
    pub fn is_right(&self) -> bool {
        let known = [self.scan_delay_ms, self.laser_angle_deg, self.track_mm];
        self.found.is_empty() && known.iter().all(Option::is_some)
    }

    fn set_delay(&mut self, config: &Config, compared: &Compared) {
        let delay = compared.delay.filter(|delay| {
            self.evidence.changes >= MIN_CHANGES && delay.sigma <= MAX_DELAY_SIGMA_S
        });
        let Some(delay) = delay else {
            return;
        };
        let configured_s = config.scan_delay.as_secs_f64();
        let estimate = Estimate {
            configured: configured_s * 1000.0,
            value: (configured_s + delay.value) * 1000.0,
            sigma: delay.sigma * 1000.0,
        };
        self.scan_delay_ms = Some(estimate);
        if !estimate.differs(DELAY_S * 1000.0) {
            return;
        }
        let late_ms = delay.value.abs() * 1000.0;
        let (than, lines) = if estimate.value < -DELAY_S * 1000.0 {
            // No delay of scans explains it.
            let than = "earlier than the turns of the wheels: the wheels report late, or a clock is \
                        wrong";
            (than.to_owned(), Vec::new())
        } else {
            let than = if delay.value < 0.0 {
                "earlier"
            } else {
                "later"
            };
            // There are no negative delays.
            let right_ms = estimate.value.max(0.0);
            let than = format!(
                "{than} than the turns of the wheels: their delay is {right_ms:.0} ± {:.0} ms, and \
                 {:.0} ms is configured",
                estimate.sigma, estimate.configured
            );
            (than, vec![format!("scan_delay_ms = {right_ms:.0}")])
        };
        self.found.push(Finding {
            fault: Fault::ScanDelay,
            sentence: format!("the scans show turns {late_ms:.0} ms {than}"),
            lines,
        });
    }

    fn set_track(&mut self, config: &Config, ratio: Value) {
        let (ratio, sigma) = (ratio.value.abs(), ratio.sigma);
        if sigma > MAX_RATIO_SIGMA {
            return;
        }
        let configured = config.track_m * 1000.0;
        let value = configured / ratio;
        let estimate = Estimate {
            configured,
            value,
            sigma: value * sigma / ratio,
        };
        self.track_mm = Some(estimate);
        if !estimate.differs(TRACK_PART * configured) {
            return;
        }
        self.found.push(Finding {
            fault: Fault::Track,
            sentence: format!(
                "the robot turns {:.0} % as far as its wheels say: its effective track is {value:.0} \
                 ± {:.0} mm, and {configured:.0} mm is configured",
                ratio * 100.0,
                estimate.sigma
            ),
            lines: vec![format!("track_mm = {value:.0}")],
        });
    }

    fn set_angle(&mut self, config: &Config, direction: Direction, backwards: bool) {
        // What seems to the left is so because the laser points to the right.
        let heading_rad = config.mount.heading - direction.left_rad;
        let estimate = Estimate {
            configured: right_deg(config.mount.heading),
            value: right_deg(heading_rad),
            sigma: direction.sigma_rad.to_degrees(),
        };
        self.laser_angle_deg = Some(estimate);
        let off_rad = direction.left_rad.abs();
        if off_rad <= ANGLE_RAD || off_rad <= SIGMAS * direction.sigma_rad {
            return;
        }
        let line = format!("laser_angle_deg = {:.1}", estimate.value);
        let measured = format!(
            "laser_angle_deg is {:.1} ± {:.1}, and {:.1} is configured",
            estimate.value, estimate.sigma, estimate.configured
        );
        self.found.push(if backwards {
            Finding {
                fault: Fault::LaserBackwards,
                sentence: format!(
                    "the scans show the robot driving backwards when its wheels turn forwards: either \
                     the laser points the other way ({measured}), or the wheels are connected both to \
                     the other side and with the wrong sign"
                ),
                lines: vec![line],
            }
        } else {
            Finding {
                fault: Fault::LaserAngle,
                sentence: format!(
                    "the scans show the robot driving {:.1}° to the {} when its wheels drive straight \
                     ahead: {measured}",
                    off_rad.to_degrees(),
                    if direction.left_rad > 0.0 { "left" } else { "right" },
                ),
                lines: vec![line],
            }
        });
    }
}

impl Estimate {
    /// Whether it differs from the configured value by more than a threshold and its uncertainty.
    fn differs(&self, threshold: f64) -> bool {
        let off = (self.value - self.configured).abs();
        off > threshold && off > SIGMAS * self.sigma
    }
}

/// The laser sees parts of the robot: the line hides them in addition to what is hidden already.
fn sees_robot(config: &Config, parts: &[Part]) -> Option<Finding> {
    if parts.is_empty() {
        return None;
    }
    let seen = parts.iter().map(|it| {
        let mm = it.distance_m * 1000.0;
        format!(
            "from {:.0}° to {:.0}° at {mm:.0} mm",
            it.from_deg, it.to_deg
        )
    });
    let seen = seen.collect::<Vec<_>>().join(", ");
    let known = config.masked_deg.iter().copied();
    let new = parts.iter().map(|it| (it.from_deg, it.to_deg));
    let sectors = known.chain(new).map(|(from, to)| format!("{from}:{to}"));
    let sectors = sectors.collect::<Vec<_>>().join(",");
    Some(Finding {
        fault: Fault::LaserSeesRobot,
        sentence: format!(
            "the laser sees parts of the robot, which turn with it as near as its outline: {seen}, to \
             the right of its front; hide these sectors, so that they are no obstacles"
        ),
        lines: vec![format!("laser_masked_deg = \"{sectors}\"")],
    })
}

/// A heading as degrees to the right. A sum, so that -0 becomes 0.
fn right_deg(heading_rad: f64) -> f64 {
    -wrap(heading_rad).to_degrees() + 0.0
}

fn turning(ratio: Value) -> Turning {
    let Value { value, sigma } = ratio;
    if value - SIGMAS * sigma > ALIKE {
        Turning::Alike
    } else if value + SIGMAS * sigma < -ALIKE {
        Turning::Opposite
    } else if value.abs() + SIGMAS * sigma < UNRELATED {
        Turning::Unrelated
    } else {
        Turning::Unknown
    }
}

/// One side of the wheels has the wrong sign: ways and turns change places.
fn one_side(compared: Compared) -> Finding {
    let per_m = compared.per_m;
    let side = if per_m.value.abs() < SIGMAS * per_m.sigma {
        "one side"
    } else if per_m.value > 0.0 {
        "the left side"
    } else {
        "the right side"
    };
    Finding {
        fault: Fault::SideReversed,
        sentence: format!(
            "the scans do not show the turns that the wheels report: the wheels of {side} turn \
             forwards when they report backwards"
        ),
        lines: Vec::new(),
    }
}

/// The scans turn the other way than the wheels. `None` while it is unknown whether the wheels of both
/// sides are swapped or have the wrong sign.
fn opposite(
    config: &Config,
    gyro: Verdict,
    direction: Option<Direction>,
    is_backwards: Option<bool>,
) -> Option<Finding> {
    let (mirrored, mount) = if config.is_mirrored {
        ("false", "the right way up")
    } else {
        ("true", "upside down")
    };
    let mut lines = vec![format!("laser_mirrored = {mirrored}")];
    if let Some(direction) = direction {
        // Upside down, directions to the left are directions to the right.
        let heading_rad = wrap(direction.left_rad - config.mount.heading);
        let off_rad = wrap(heading_rad - config.mount.heading).abs();
        if off_rad > ANGLE_RAD && off_rad > SIGMAS * direction.sigma_rad {
            lines.push(format!("laser_angle_deg = {:.1}", right_deg(heading_rad)));
        }
    }
    let against = "the scans turn to the left when the wheels turn to the right";
    if gyro == Verdict::Opposite && is_backwards.is_none() {
        return None;
    }
    let (fault, sentence) = match (gyro, is_backwards == Some(true)) {
        (Verdict::LikeWheels, false) => (
            Fault::LaserMirrored,
            format!(
                "{against}, and the gyroscope agrees with the wheels: the laser is mounted {mount}"
            ),
        ),
        (Verdict::LikeWheels, true) => (
            Fault::LaserMirrored,
            format!(
                "{against}, and the gyroscope agrees with the wheels: the laser is mounted {mount} \
                 and points backwards"
            ),
        ),
        (Verdict::Opposite, false) => (
            Fault::WheelsSwapped,
            format!(
                "{against}, and the gyroscope agrees with the scans: the left and right wheels are \
                 swapped"
            ),
        ),
        (Verdict::Opposite, true) => (
            Fault::WheelsReversed,
            format!(
                "{against} and backwards when the wheels turn forwards, and the gyroscope agrees with \
                 the scans: all wheels have the wrong sign"
            ),
        ),
        (Verdict::Unknown, false) => (
            Fault::LaserMirroredOrWheelsSwapped,
            format!(
                "{against}: if the robot itself turns to the left when told to, the laser is mounted \
                 {mount}; otherwise the left and right wheels are swapped"
            ),
        ),
        (Verdict::Unknown, true) => (
            Fault::LaserMirroredOrWheelsSwapped,
            format!(
                "{against}, and backwards when the wheels turn forwards: if the robot itself turns to \
                 the left when told to, the laser is mounted {mount} and points backwards; otherwise all \
                 wheels have the wrong sign"
            ),
        ),
    };
    if matches!(fault, Fault::WheelsSwapped | Fault::WheelsReversed) {
        lines.clear();
    }
    Some(Finding {
        fault,
        sentence,
        lines,
    })
}
