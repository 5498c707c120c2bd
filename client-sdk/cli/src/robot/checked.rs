//! The result of `amber robot check`. PURE.

use std::fmt::Write;

use amber_proto::location::{Geometry, Measured};
use amber_terminal::{Failure, Human};
use serde::Serialize;

/// The result.
#[derive(Debug, Serialize)]
pub(super) struct Checked {
    found: Vec<Found>,
    /// How the robot must still move until all is known.
    missing: Vec<String>,
    scan_delay_ms: Option<Value>,
    laser_angle_deg: Option<Value>,
    track_mm: Option<Value>,
    /// The motion on which this rests.
    turned_deg: f64,
    turn_changes: u32,
    straight_m: f64,
}

#[derive(Debug, Serialize)]
struct Found {
    kind: String,
    sentence: String,
    /// For robot.toml.
    lines: Vec<String>,
}

#[derive(Clone, Copy, Debug, Serialize)]
struct Value {
    configured: f64,
    measured: f64,
    sigma: f64,
}

impl Checked {
    pub(super) fn new(geometry: &Geometry) -> Self {
        let value = |measured: &Option<Measured>| {
            measured.as_ref().map(|measured| Value {
                configured: rounded(measured.configured()),
                measured: rounded(measured.value()),
                sigma: rounded(measured.sigma()),
            })
        };
        let found = geometry.found.iter().map(|fault| Found {
            kind: fault.kind().to_owned(),
            sentence: fault.sentence().to_owned(),
            lines: fault.lines.clone(),
        });
        Self {
            found: found.collect(),
            missing: geometry.missing.clone(),
            scan_delay_ms: value(&geometry.scan_delay),
            laser_angle_deg: value(&geometry.laser_angle),
            track_mm: value(&geometry.track),
            turned_deg: rounded(turned_deg(geometry)),
            turn_changes: geometry.turn_changes(),
            straight_m: rounded(geometry.straight()),
        }
    }

    /// The reason for exit code 1, if there is one.
    pub(super) fn failure(&self) -> Option<Failure> {
        if !self.found.is_empty() {
            let failure = Failure::new("the geometry of the robot is not as configured");
            let has_lines = self.found.iter().any(|found| !found.lines.is_empty());
            return Some(if has_lines {
                failure.hint("correct robot.toml, and check again")
            } else {
                failure.hint("correct the wiring, and check again")
            });
        }
        if self.missing.is_empty() {
            return None;
        }
        let failure = Failure::new("not everything could be measured");
        Some(failure.hint(self.missing.join("; ")))
    }
}

/// How far the check is, in a line.
pub(super) fn progress(geometry: &Geometry) -> String {
    let mut line = format!(
        "turned {:.0}°, {:.1} m straight",
        turned_deg(geometry),
        geometry.straight()
    );
    if let Some(fault) = geometry.found.first() {
        let _ = write!(line, "; found {}", fault.kind().replace('_', " "));
    }
    if let Some(missing) = geometry.missing.first() {
        let _ = write!(line, "; now {missing}");
    }
    line
}

/// The turns of which both the scans and the wheels know.
fn turned_deg(geometry: &Geometry) -> f64 {
    geometry
        .seen_turns()
        .min(geometry.driven_turns())
        .to_degrees()
}

impl Human for Checked {
    fn human(&self) -> String {
        let mut text = String::new();
        for (name, value, unit) in [
            ("scan delay", self.scan_delay_ms, " ms"),
            ("laser angle", self.laser_angle_deg, "°"),
            ("track", self.track_mm, " mm"),
        ] {
            let name = format!("{name}:");
            let _ = match value {
                Some(value) => writeln!(
                    text,
                    "{name:<12} {:.1} ± {:.1}{unit}, configured {:.1}{unit}",
                    value.measured, value.sigma, value.configured
                ),
                None => writeln!(text, "{name:<12} unknown"),
            };
        }
        let _ = writeln!(
            text,
            "{:<12} turns of {:.0}°, {:.1} m straight",
            "from:", self.turned_deg, self.straight_m
        );
        for found in &self.found {
            let _ = writeln!(text, "{:<12} {}", "wrong:", found.sentence);
        }
        if self.found.is_empty() && self.missing.is_empty() {
            text += "the geometry is as configured\n";
        }
        let lines: Vec<&String> = self.found.iter().flat_map(|found| &found.lines).collect();
        if !lines.is_empty() {
            text += "in robot.toml:\n";
        }
        for line in lines {
            let _ = writeln!(text, "  {line}");
        }
        text
    }
}

/// A thousandth is enough. A sum, so that -0 becomes 0.
fn rounded(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0 + 0.0
}

#[cfg(test)]
mod tests {
    use amber_proto::location::GeometryFault;

    use super::*;

    fn measured(configured: f64, value: f64) -> Option<Measured> {
        Some(Measured {
            configured: Some(configured),
            value: Some(value),
            sigma: Some(2.04),
        })
    }

    fn geometry() -> Geometry {
        Geometry {
            scan_delay: measured(0.0, 1.0),
            laser_angle: measured(0.0, 0.2),
            track: measured(420.0, 423.0),
            seen_turns: Some(7.0),
            driven_turns: Some(6.5),
            straight: Some(1.25),
            ..Geometry::default()
        }
    }

    #[test]
    fn a_right_robot_has_no_failure() {
        let checked = Checked::new(&geometry());
        assert!(checked.failure().is_none());
        assert_eq!(
            checked.human(),
            "\
scan delay:  1.0 ± 2.0 ms, configured 0.0 ms
laser angle: 0.2 ± 2.0°, configured 0.0°
track:       423.0 ± 2.0 mm, configured 420.0 mm
from:        turns of 372°, 1.2 m straight
the geometry is as configured
"
        );
    }

    #[test]
    fn a_fault_has_its_lines_and_what_is_missing_is_named() {
        let wrong = Geometry {
            found: vec![GeometryFault {
                kind: Some("scan_delay".into()),
                sentence: Some("the scans show turns 120 ms later".into()),
                lines: vec!["scan_delay_ms = 120".into()],
            }],
            laser_angle: None,
            missing: vec!["drive straight ahead".into()],
            ..geometry()
        };
        let checked = Checked::new(&wrong);
        let text = checked.human();
        assert!(text.contains("laser angle: unknown\n"), "{text}");
        assert!(
            text.ends_with(
                "wrong:       the scans show turns 120 ms later\nin robot.toml:\n  scan_delay_ms = 120\n"
            ),
            "{text}"
        );
        assert!(checked.failure().is_some());
        let line = progress(&wrong);
        assert_eq!(
            line,
            "turned 372°, 1.2 m straight; found scan delay; now drive straight ahead"
        );
        let unknown = Geometry {
            found: Vec::new(),
            ..wrong
        };
        assert!(Checked::new(&unknown).failure().is_some());
    }
}
