//! The messages to clients. PURE.
//!
//! This is the only place where poses change from the plane frame to the map frame: y down and
//! angles clockwise.

use std::time::Duration;

use amber_driver::devices::location as message;
use amber_map::{Map, Occupancy, Pose, ros_map};
use amber_navigation::geometry::{Estimate, Findings};
use amber_navigation::location::Hint;
use amber_navigation::location::particles::Particle;
use amber_navigation::sight::{self, View};
use amber_proto::limits::MAX_PART;
use amber_values::MapPose;
use prost::Message;

use super::tracker::Report;

/// Data up to this age count fully: five scans.
const FRESH: Duration = Duration::from_millis(500);
/// After this time without new scans, a pose has quality 0.
const STALE: Duration = Duration::from_secs(2);
/// Without wheel speeds, scans alone follow a slow robot, but the pose is no longer trusted.
const WITHOUT_WHEELS: f64 = 0.5;
/// A scan that is missing for this time is reported.
const SILENCE: Duration = Duration::from_secs(1);
/// Maximum number of particles in a message: 22 bytes each, so that old clients can receive them;
/// see [`OLD_CLIENT_DATAGRAM`](amber_proto::limits::OLD_CLIENT_DATAGRAM).
const MAX_PARTICLES: usize = 700;
/// The longest map in a message, in bytes: what a message can have, except for a few numbers.
const MAX_MAP: usize = MAX_PART - 64;
/// An unknown position is reported after this time: a search takes less than a second.
const SEARCH: Duration = Duration::from_secs(3);

/// The scans are useless, because the robot is in a room that is larger than the range of its laser.
const OPEN: &str = "the position is unknown: no wall is within the range of the laser";

/// The pose for clients: all zero while there is no estimate.
///
/// The quality falls while scans or wheel speeds are missing. `unix_ms` is the time now.
pub(crate) fn pose(report: &Report, now: Duration, unix_ms: i64) -> message::Location {
    let Some(estimate) = report.estimate else {
        return message::Location {
            x: Some(0.0),
            y: Some(0.0),
            p: Some(0.0),
            alfa: Some(0.0),
            time_stamp: Some(0),
        };
    };
    let age_ms = i64::try_from(now.saturating_sub(estimate.time).as_millis()).unwrap_or(0);
    MapPose {
        quality: estimate.quality * trust(report, now),
        timestamp_ms: Some(unix_ms.saturating_sub(age_ms)),
        ..estimate.pose.into()
    }
    .into()
}

/// The uncertainty of a place that somebody names, unless it is given.
const HINT_SIGMA_M: f64 = 0.25;
const HINT_SIGMA_RAD: f64 = 0.26;

/// Where somebody says the robot is.
///
/// # Errors
/// A number is invalid; the text says which.
pub(crate) fn hint(known: &message::KnownPose) -> Result<Hint, String> {
    let sigma_m = known.sigma.unwrap_or(HINT_SIGMA_M);
    let sigma_rad = known.sigma_alfa.unwrap_or(HINT_SIGMA_RAD);
    let places = [known.x, known.y, known.alfa];
    // Farther away than any map, a coordinate loses its centimetres.
    if !places.iter().all(|value| value.abs() <= 1e6) {
        return Err("x, y and alfa must be numbers of at most a million".into());
    }
    for (name, sigma, most) in [("sigma", sigma_m, 10.0), ("sigma_alfa", sigma_rad, 3.2)] {
        if !(0.0..=most).contains(&sigma) {
            return Err(format!("{name} must be a number from 0 to {most}"));
        }
    }
    let map = MapPose::new(known.x, known.y, known.alfa);
    Ok(Hint {
        pose: map.into(),
        sigma_m: sigma_m.max(0.02),
        sigma_rad: sigma_rad.max(0.02),
    })
}

/// The factor for the quality: 1 while all data are fresh.
fn trust(report: &Report, now: Duration) -> f64 {
    let age = |time: Option<Duration>| time.map_or(STALE, |time| now.saturating_sub(time));
    let fresh = |age: Duration| {
        let left = STALE.saturating_sub(age).as_secs_f64();
        (left / STALE.saturating_sub(FRESH).as_secs_f64()).clamp(0.0, 1.0)
    };
    let wheels = fresh(age(report.last_wheels)).max(WITHOUT_WHEELS);
    fresh(age(report.last_scan)) * wheels
}

/// The quality of the pose, with details.
pub(crate) fn quality(report: &Report, now: Duration) -> message::Quality {
    let age_ms = |time: Option<Duration>| {
        let age = now.saturating_sub(time?);
        Some(u32::try_from(age.as_millis()).unwrap_or(u32::MAX))
    };
    let estimate = report.estimate.as_ref();
    message::Quality {
        decided: Some(estimate.is_some_and(|estimate| estimate.decided)),
        matching: estimate.map(|estimate| estimate.matching.clamp(0.0, 1.0)),
        agreement: estimate.map(|estimate| estimate.mass.clamp(0.0, 1.0)),
        particles: Some(report.particles.try_into().unwrap_or(u32::MAX)),
        injected: Some(report.injected.clamp(0.0, 1.0)),
        scan_age_ms: age_ms(report.last_scan),
        wheels_age_ms: age_ms(report.last_wheels),
        scans: Some(report.counts.scans),
        lost: Some(report.counts.lost),
        covariance: estimate.map(|estimate| {
            let plane = estimate.covariance;
            // y and the heading change their signs.
            message::Covariance {
                xx: Some(plane[0][0]),
                xy: Some(-plane[0][1]),
                yy: Some(plane[1][1]),
                x_alfa: Some(-plane[0][2]),
                y_alfa: Some(plane[1][2]),
                alfa_alfa: Some(plane[2][2]),
            }
        }),
    }
}

/// What is known about the geometry of the robot.
pub(crate) fn geometry(findings: &Findings) -> message::Geometry {
    let measured = |estimate: Option<Estimate>| {
        estimate.map(|estimate| message::Measured {
            configured: Some(estimate.configured),
            value: Some(estimate.value),
            sigma: Some(estimate.sigma),
        })
    };
    let found = findings.found.iter().map(|finding| message::GeometryFault {
        kind: Some(finding.fault.name().to_owned()),
        sentence: Some(finding.sentence.clone()),
        lines: finding.lines.clone(),
    });
    let evidence = findings.evidence;
    message::Geometry {
        found: found.collect(),
        missing: findings.missing().into_iter().map(str::to_owned).collect(),
        scan_delay: measured(findings.scan_delay_ms),
        laser_angle: measured(findings.laser_angle_deg),
        track: measured(findings.track_mm),
        seen_turns: Some(evidence.seen_rad),
        driven_turns: Some(evidence.driven_rad),
        turn_changes: Some(evidence.changes),
        straight: Some(evidence.straight_m),
    }
}

/// The particles, or as many as fit into a message, evenly spread over all of them.
pub(crate) fn particles(particles: &[Particle]) -> message::Particles {
    let count = particles.len().min(MAX_PARTICLES);
    let one = |index: usize| {
        let Particle { pose, weight } = particles[index * particles.len() / count];
        let pose = MapPose::from(pose);
        // The message has single precision.
        message::Particle {
            x: Some(pose.x_m as f32),
            y: Some(pose.y_m as f32),
            alfa: Some(pose.heading_rad as f32),
            weight: Some(weight as f32),
        }
    };
    message::Particles {
        particles: (0..count).map(one).collect(),
    }
}

/// A map of walls for clients: its text, or what this system uses of it if the text is too long.
///
/// # Errors
/// Both are too long for a message.
pub(crate) fn roson(text: &str, walls: &Map) -> Result<message::Map, String> {
    let of = |roson: String| message::Map {
        roson: Some(roson),
        ..message::Map::default()
    };
    fitting(of(text.to_owned())).or_else(|_| fitting(of(walls.to_roson())))
}

/// A grid for clients.
///
/// # Errors
/// It is too long for a message.
pub(crate) fn grid(occupancy: &Occupancy) -> Result<message::Map, String> {
    let layout = occupancy.layout();
    let png = ros_map::png(occupancy).map_err(|error| format!("cannot make a picture: {error}"))?;
    let (low, high) = (layout.low, layout.high());
    let corner = MapPose::from(Pose::new(low.x, high.y, 0.0));
    fitting(message::Map {
        grid: Some(message::Grid {
            x: Some(corner.x_m),
            y: Some(corner.y_m),
            resolution: Some(layout.cell_m),
            png: Some(png.into()),
        }),
        ..message::Map::default()
    })
}

fn fitting(map: message::Map) -> Result<message::Map, String> {
    match map.encoded_len() {
        ..=MAX_MAP => Ok(map),
        bytes => Err(format!(
            "the map has {} kB, but a message has at most {} kB: use the file",
            bytes.div_ceil(1000),
            MAX_MAP / 1000
        )),
    }
}

/// The reason why the position is unknown or unreliable, if it is. `scans` and `wheels` are the
/// last errors of their sources, and `fault` is what is wrong with the geometry of the robot.
pub(crate) fn trouble(
    report: &Report,
    now: Duration,
    map: Option<&str>,
    scans: &str,
    wheels: &str,
    fault: Option<String>,
) -> Option<String> {
    let silent = |time: Option<Duration>| now.saturating_sub(time.unwrap_or_default()) > SILENCE;
    if !report.has_map {
        return Some(map.unwrap_or("no map").to_owned());
    }
    if silent(report.last_heard.max(report.last_scan)) {
        return Some(scans.to_owned());
    }
    match report.view {
        Some(View::Blind) => return Some(sight::BLIND.to_owned()),
        Some(View::Open) if silent(report.last_scan) => return Some(OPEN.to_owned()),
        Some(View::Clear | View::Open) | None => {}
    }
    if silent(report.last_wheels) {
        return Some(wheels.to_owned());
    }
    // A wrong geometry is the reason why no pose fits.
    if fault.is_some() {
        return fault;
    }
    let undecided = report.estimate.is_none_or(|estimate| !estimate.decided);
    let searching = now.saturating_sub(report.undecided_since.unwrap_or(now));
    (undecided && searching > SEARCH)
        .then(|| "the position is unknown: no pose on the map explains the scans".to_owned())
}

#[cfg(test)]
mod tests {
    use std::f64::consts::FRAC_PI_2;

    use amber_map::{Cell, Layout, Point};
    use amber_navigation::location::Estimate;
    use amber_proto::DeviceMessage;
    use amber_proto::limits::OLD_CLIENT_DATAGRAM;

    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn report() -> Report {
        Report {
            has_map: true,
            estimate: Some(Estimate {
                time: ms(10_000),
                pose: Pose::new(1.0, -2.0, -FRAC_PI_2),
                quality: 0.95,
                matching: 0.8,
                mass: 0.95,
                covariance: [[1.0, 2.0, 3.0], [2.0, 4.0, 5.0], [3.0, 5.0, 6.0]],
                decided: true,
            }),
            last_scan: Some(ms(10_050)),
            last_wheels: Some(ms(10_040)),
            ..Report::default()
        }
    }

    #[test]
    fn the_wire_has_y_down_clockwise_angles_and_the_time_of_the_scan() {
        let sent = pose(&report(), ms(10_100), 1_700_000_000_000);
        assert_eq!((sent.x(), sent.y(), sent.p()), (1.0, 2.0, 0.95));
        assert!((sent.alfa() - FRAC_PI_2).abs() < 1e-9);
        assert_eq!(sent.time_stamp(), 1_699_999_999_900);
        // As Google's protobuf writes it.
        let bytes = b"\x09\x00\x00\x00\x00\x00\x00\xf0\x3f\x11\x00\x00\x00\x00\x00\x00\x00\x40\
               \x19\x66\x66\x66\x66\x66\x66\xee\x3f\x21\x18\x2d\x44\x54\xfb\x21\xf9\x3f\
               \x28\x9c\xcf\x95\xff\xbc\x31";
        assert_eq!(sent.encode_to_vec(), bytes);
        let covariance = quality(&report(), ms(10_100)).covariance.unwrap();
        assert_eq!((covariance.xy(), covariance.x_alfa()), (-2.0, -3.0));
        assert_eq!((covariance.yy(), covariance.y_alfa()), (4.0, 5.0));
    }

    #[test]
    fn before_the_first_estimate_all_is_zero() {
        let sent = pose(&Report::default(), ms(5), 1_700_000_000_000);
        assert_eq!(
            (sent.x(), sent.y(), sent.p(), sent.alfa()),
            (0.0, 0.0, 0.0, 0.0)
        );
        assert_eq!(sent.time_stamp, Some(0));
        assert!(!MapPose::from(sent).is_known());
        assert_eq!(quality(&Report::default(), ms(5)).decided, Some(false));
    }

    #[test]
    fn the_quality_falls_while_data_are_missing() {
        let p = |report: &Report, now| pose(report, ms(now), 0).p();
        assert_eq!(p(&report(), 10_500), 0.95);
        assert!(p(&report(), 11_000) < 0.7);
        assert_eq!(p(&report(), 12_100), 0.0);
        let blind = Report {
            last_scan: Some(ms(13_000)),
            ..report()
        };
        assert!((p(&blind, 13_000) - 0.475).abs() < 1e-9, "wheels are lost");
    }

    #[test]
    fn particles_fit_into_a_message() {
        let one = Particle {
            pose: Pose::new(-123.456, 78.9, -3.0),
            weight: 1e-7,
        };
        for (count, sent) in [(0, 0), (5, 5), (9000, MAX_PARTICLES)] {
            let message = particles(&vec![one; count]);
            assert_eq!(message.particles.len(), sent);
            let mut whole = message::DriverMsg::data();
            whole.particles = Some(message);
            assert!(whole.encoded_len() < OLD_CLIENT_DATAGRAM - 500);
        }
    }

    #[test]
    fn a_map_of_walls_is_sent_as_text_and_refused_if_it_is_too_long() {
        let flat = Map::flat();
        let text = flat.to_roson();
        assert_eq!(roson(&text, &flat).unwrap().roson(), text);
        // Spaces are no content.
        let padded = text.replace('\n', &format!("\n{}", " ".repeat(1_000)));
        assert!(padded.len() > MAX_PART);
        assert_eq!(roson(&padded, &flat).unwrap().roson(), text);
        let mut long = flat;
        for _ in 0..4 {
            long.walls.extend(long.walls.clone());
        }
        let why = roson(&long.to_roson(), &long).unwrap_err();
        assert!(
            why.starts_with("the map has ") && why.ends_with("use the file"),
            "{why}"
        );
    }

    #[test]
    fn a_grid_is_sent_as_a_picture_with_its_upper_left_corner() {
        let layout = Layout {
            low: Point::new(-1.0, 2.0),
            cell_m: 0.5,
            columns: 3,
            rows: 2,
        };
        let cells = vec![Cell::Free; 6];
        let map = grid(&Occupancy::from_cells(layout, cells).unwrap()).unwrap();
        let sent = map.grid.unwrap();
        assert_eq!((sent.x(), sent.y(), sent.resolution()), (-1.0, -3.0, 0.5));
        assert!(sent.png().starts_with(b"\x89PNG"));
    }

    #[test]
    fn a_known_pose_changes_its_frame_and_is_checked() {
        let known = message::KnownPose {
            x: 1.0,
            y: 2.0,
            alfa: FRAC_PI_2,
            sigma: None,
            sigma_alfa: Some(0.1),
        };
        let found = hint(&known).unwrap();
        assert_eq!(found.pose.at, Point::new(1.0, -2.0));
        assert!((found.pose.heading + FRAC_PI_2).abs() < 1e-9);
        assert_eq!((found.sigma_m, found.sigma_rad), (0.25, 0.1));
        for (x, sigma, part) in [
            (f64::NAN, None, "at most a million"),
            (1e308, None, "at most a million"),
            (1.0, Some(-1.0), "sigma must"),
            (1.0, Some(f64::NAN), "sigma must"),
        ] {
            let why = hint(&message::KnownPose { x, sigma, ..known }).unwrap_err();
            assert!(why.contains(part), "{why}");
        }
    }

    #[test]
    fn the_reason_is_the_first_thing_to_repair() {
        let reason = |report: &Report, now| trouble(report, ms(now), None, "scans", "wheels", None);
        assert_eq!(reason(&report(), 10_100), None);
        assert_eq!(reason(&report(), 11_045).as_deref(), Some("wheels"));
        assert_eq!(reason(&report(), 11_100).as_deref(), Some("scans"));
        assert_eq!(reason(&Report::default(), 0).as_deref(), Some("no map"));
        for (view, expected) in [(View::Blind, sight::BLIND), (View::Open, OPEN)] {
            let useless = Report {
                last_heard: Some(ms(11_900)),
                last_wheels: Some(ms(11_900)),
                view: Some(view),
                ..report()
            };
            assert_eq!(reason(&useless, 12_000).as_deref(), Some(expected));
            // The laser was unplugged after that.
            assert_eq!(reason(&useless, 13_000).as_deref(), Some("scans"));
        }
        let mut lost = report();
        lost.estimate.as_mut().unwrap().decided = false;
        lost.undecided_since = Some(ms(7_000));
        assert_eq!(reason(&lost, 9_900), None);
        let why = reason(&lost, 10_100).unwrap();
        assert!(why.starts_with("the position is unknown"), "{why}");
        // That would be the reason.
        let fault = Some("the laser is mounted upside down".to_owned());
        let why = trouble(&lost, ms(10_100), None, "scans", "wheels", fault.clone());
        assert_eq!(why, fault);
    }
}
