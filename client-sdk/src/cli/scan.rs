//! `amber scan`: what the laser scanner sees. IO.

use serde::Serialize;

use super::output::{Human, fields, table};
use crate::scan::{Point, Scan};

/// How wide the sectors are that people are told about.
const SECTOR_DEG: f64 = 30.0;

/// A scan as people and programs want to see it.
#[derive(Debug, Serialize)]
pub(super) struct ScanShown {
    /// Milliseconds since the Unix epoch.
    timestamp_ms: Option<i64>,
    angles_deg: Vec<f64>,
    distances_mm: Vec<i32>,
    #[serde(skip)]
    summary: String,
}

impl From<&Scan> for ScanShown {
    fn from(scan: &Scan) -> Self {
        let points = scan.points();
        Self {
            timestamp_ms: scan.timestamp_ms(),
            angles_deg: points.iter().map(|point| point.angle_deg).collect(),
            distances_mm: points.iter().map(|point| point.distance_mm).collect(),
            summary: summary(scan),
        }
    }
}

impl Human for ScanShown {
    fn human(&self) -> String {
        self.summary.clone()
    }
}

/// The scan in numbers, and what is nearest in each sector.
fn summary(scan: &Scan) -> String {
    let points = scan.points();
    let count = scan.valid_points().count();
    let nearest = scan.nearest(f64::NEG_INFINITY..=f64::INFINITY);
    let farthest = scan.valid_points().max_by_key(|point| point.distance_mm);
    let span = match (points.first(), points.last()) {
        (Some(first), Some(last)) => {
            format!(", {:.1} to {:.1} degrees", first.angle_deg, last.angle_deg)
        }
        _ => String::new(),
    };
    let mut out = fields(&[
        ("points", Some(format!("{}{span}", points.len()))),
        ("with something", Some(count.to_string())),
        ("nearest", nearest.map(in_words)),
        ("farthest", farthest.map(in_words)),
    ]);
    let sectors = sectors(scan);
    if !sectors.is_empty() {
        out.push('\n');
        out.push_str(&table(["DEGREES", "NEAREST"], &sectors));
    }
    out
}

/// `0.39 m at -119.9 (left)`.
fn in_words(point: Point) -> String {
    let side = match point.angle_deg {
        angle if angle.abs() <= SECTOR_DEG / 2.0 => "ahead",
        angle if angle < 0.0 => "left",
        _ => "right",
    };
    format!(
        "{:.2} m at {:.1} degrees, {side}",
        metres(point),
        point.angle_deg
    )
}

fn metres(point: Point) -> f64 {
    f64::from(point.distance_mm) / 1000.0
}

/// Sectors of which the one in the middle is straight ahead, from left to
/// right, as far as the scan reaches.
fn sectors(scan: &Scan) -> Vec<[String; 2]> {
    let sector = |angle: f64| (angle / SECTOR_DEG).round();
    let mut middles: Vec<_> = scan
        .points()
        .iter()
        .map(|point| sector(point.angle_deg) * SECTOR_DEG)
        .collect();
    middles.sort_by(f64::total_cmp);
    // -0 and 0 are the same direction.
    middles.dedup_by(|a, b| a == b);
    let nearest = |middle: f64| {
        let half = SECTOR_DEG / 2.0;
        let nearest = scan.nearest(middle - half..=middle + half);
        nearest.map_or("-".to_owned(), |point| format!("{:.2} m", metres(point)))
    };
    let row = |middle: f64| {
        let half = SECTOR_DEG / 2.0;
        let range = format!("{:>4} to {:>4}", middle - half, middle + half);
        [range, nearest(middle)]
    };
    // A driver that has gone mad must not fill the screen.
    middles.into_iter().take(24).map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_get_numbers_and_sectors() {
        let angles = [-90.0, -10.0, -0.1, 0.1, 90.0];
        let scan = Scan::new(&angles, &[2500, 0, 800, 900, 19], Some(5)).unwrap();
        assert_eq!(
            ScanShown::from(&scan).human(),
            "points:         5, -90.0 to 90.0 degrees\n\
             with something: 3\n\
             nearest:        0.80 m at -0.1 degrees, ahead\n\
             farthest:       2.50 m at -90.0 degrees, left\n\
             \n\
             DEGREES       NEAREST\n\
             -105 to  -75  2.50 m\n \
             -15 to   15  0.80 m\n  \
             75 to  105  -\n"
        );
        let empty = Scan::new(&[], &[], None).unwrap();
        assert_eq!(
            ScanShown::from(&empty).human(),
            "points:         0\nwith something: 0\n"
        );
    }

    #[test]
    fn programs_get_all_of_it() {
        let scan = Scan::new(&[-1.5, 2.0], &[0, 400], Some(1_448_000_000_123)).unwrap();
        assert_eq!(
            serde_json::to_string(&ScanShown::from(&scan)).unwrap(),
            r#"{"timestamp_ms":1448000000123,"angles_deg":[-1.5,2.0],"distances_mm":[0,400]}"#
        );
    }
}
