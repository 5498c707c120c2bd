//! The frames for the page: JSON with the kind in `t`, and points in binary form. PURE.

use std::collections::HashMap;

use amber_client::MappingService;
use amber_map::ros_map;
use amber_proto::mapping::Progress;
use amber_proto::mapping::progress::State;
use amber_proto::mediator::{Driver, DriverState, Event, event::Kind};
use amber_proto::robot::Shape;
use amber_proto::{Device, DeviceType, location::Particle};
use amber_scene::trip::TripEnd;
use amber_scene::{Drive, Ground, Located, Part, Place};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::{BufMut, BytesMut};
use serde::Serialize;
use serde_json::{Value, json};

use crate::backlog::Frame;
use crate::parts::{self, CameraShown, Parts, Problems};

/// The first four bytes of a binary frame, as a little-endian number. The rest are `f32` in the
/// same order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Points {
    /// Points of a scan on the map: x, y.
    ScanOnMap = 1,
    /// Points of a scan around the robot, because the pose is unknown: x, y; the robot is at 0, 0
    /// and looks along x.
    ScanAroundRobot = 2,
    /// Hypotheses of the location driver: x, y, heading, weight.
    Particles = 3,
}

/// A JSON frame.
pub fn text(value: &Value) -> Frame {
    Frame::Text(value.to_string())
}

pub fn scan(kind: Points, places: &[Place]) -> Frame {
    let numbers = places.iter().flat_map(|&(x, y)| [x as f32, y as f32]);
    binary(kind, numbers)
}

/// The hypotheses of the location driver.
pub fn particles(particles: &[Particle]) -> Frame {
    let numbers = particles
        .iter()
        .flat_map(|it| [it.x(), it.y(), it.alfa(), it.weight()]);
    binary(Points::Particles, numbers)
}

fn binary(kind: Points, numbers: impl Iterator<Item = f32>) -> Frame {
    let mut bytes = BytesMut::new();
    bytes.put_u32_le(kind as u32);
    numbers.for_each(|number| bytes.put_f32_le(number));
    Frame::Binary(bytes.freeze())
}

/// The map, or the reason why there is none.
pub fn map(map: &Part<std::sync::Arc<Ground>>) -> Value {
    let ground = match map {
        Ok(ground) => ground,
        Err(why) => return json!({ "t": "map", "missing": why }),
    };
    let walls: Vec<_> = (ground.walls())
        .map(|((x1, y1), (x2, y2), width)| [x1, y1, x2, y2, width].map(millimetres))
        .collect();
    let grid = match &**ground {
        Ground::Walls(_) => Value::Null,
        Ground::Grid(grid) => {
            let layout = grid.layout();
            let (x, y) =
                amber_scene::plane_to_place(amber_map::Point::new(layout.low.x, layout.high().y));
            let png = ros_map::png(grid).unwrap_or_default();
            json!({
                "x": x, "y": y,
                "width": layout.columns as f64 * layout.cell_m,
                "height": layout.rows as f64 * layout.cell_m,
                "png": STANDARD.encode(png),
            })
        }
    };
    let bounds = ground
        .bounds()
        .map(|it| [it.low.0, it.low.1, it.high.0, it.high.1]);
    json!({ "t": "map", "walls": walls, "grid": grid, "bounds": bounds })
}

/// The pose, or the reason why it is missing.
pub fn pose(located: &Part<Located>) -> Value {
    match located {
        Ok(located) => json!({
            "t": "pose",
            "x": located.pose.x_m, "y": located.pose.y_m, "heading": located.pose.heading_rad,
            "quality": located.pose.quality, "decided": located.is_decided(),
        }),
        Err(why) => json!({ "t": "pose", "missing": why }),
    }
}

/// The targets and the path, or the reason why they are unknown.
pub fn path(drive: &Part<Drive>) -> Value {
    let drive = match drive {
        Ok(drive) => drive,
        Err(why) => return json!({ "t": "path", "missing": why }),
    };
    let path: Vec<_> = (drive.path.iter())
        .map(|&(x, y)| [millimetres(x), millimetres(y)])
        .collect();
    let targets: Vec<_> = (drive.targets.iter())
        .map(|it| [it.x_m, it.y_m, it.radius_m])
        .collect();
    json!({
        "t": "path", "state": drive.state, "reason": drive.reason,
        "remaining": drive.remaining_m, "path": path, "targets": targets,
    })
}

/// The state of the map that is being made.
pub fn mapping(progress: &Progress) -> Value {
    json!({
        "t": "mapping",
        "grows": grows(progress), "exists": progress.state() != State::None,
        "explores": MappingService::explores(progress),
        "words": progress.words, "trouble": progress.trouble,
        "distance_m": progress.distance, "area_m2": progress.area, "loops": progress.loops,
    })
}

/// Whether a map grows.
pub fn grows(progress: &Progress) -> bool {
    progress.state() == State::Growing
}

/// How the trip of a page ended.
pub fn trip(order: u64, end: &TripEnd) -> Value {
    let (end, why) = match end {
        TripEnd::Arrived => ("arrived", None),
        TripEnd::Cancelled(why) => ("cancelled", Some(why)),
        TripEnd::Failed(why) => ("failed", Some(why)),
        TripEnd::Refused(why) => ("refused", Some(why)),
    };
    json!({ "t": "trip", "order": order, "end": end, "why": why })
}

/// Shorter numbers in JSON.
fn millimetres(metres: f64) -> f64 {
    (metres * 1000.0).round() / 1000.0
}

/// The size of the robot; null if it is unknown.
pub fn shape(shape: Option<&Shape>) -> Value {
    let is_size = |m: &f64| m.is_finite() && *m > 0.0;
    let length_m = shape.and_then(|it| it.length).filter(is_size);
    let width_m = shape.and_then(|it| it.width).filter(is_size);
    json!({ "t": "shape", "length_m": length_m, "width_m": width_m })
}

/// An event of the mediator.
pub fn event(event: &Event) -> Value {
    let kind = match Kind::try_from(event.kind) {
        Ok(Kind::DeviceUp) => "up",
        Ok(Kind::DeviceDown) => "down",
        Ok(Kind::DeviceFailed) => "failed",
        Ok(Kind::DeviceTrouble) => "trouble",
        Ok(Kind::DeviceRecovered) => "recovered",
        Ok(Kind::ClientGone) => "gone",
        Ok(Kind::ConfigurationReloaded) => "reloaded",
        Ok(Kind::DeviceLease) => "lease",
        Ok(Kind::DeviceHalted) => "halted",
        Ok(Kind::DeviceHaltReleased) => "released",
        Ok(Kind::DeviceMotionRefused) => "refused",
        Ok(Kind::DeviceMotionStopped) => "stopped",
        // A newer mediator has sent an unknown event.
        Err(_) => "unknown",
    };
    let device = event.device.as_ref().map(|it| name(it.r#type, it.id));
    json!({
        "t": "event", "time_ms": event.time_ms(), "kind": kind, "device": device,
        "client": event.client_id, "text": event.text,
    })
}

/// The mediator and its drivers; the rates are per second.
#[derive(Debug, Serialize)]
pub struct Overview {
    t: &'static str,
    mediator: String,
    /// The reason why the mediator does not answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    missing: Option<String>,
    parts: crate::parts::PartsShown,
    problems: Problems,
    cameras: Vec<CameraShown>,
    devices: Vec<DeviceShown>,
}

#[derive(Debug, Serialize)]
struct DeviceShown {
    device: String,
    state: &'static str,
    pid: Option<u32>,
    restarts: u32,
    state_ms: u64,
    next_start_ms: Option<u64>,
    last_exit: Option<String>,
    reason: Option<String>,
    hint: Option<String>,
    trouble: Option<String>,
    /// Who holds its lease, in words.
    holder: Option<String>,
    halted_by: Option<String>,
    /// Frames per second to and from the driver.
    in_per_s: Option<f64>,
    out_per_s: Option<f64>,
    dropped: u64,
}

/// Counters of drivers at one time, by the first of their devices.
#[derive(Clone, Debug, Default)]
pub struct Counted {
    frames: HashMap<String, (Option<u32>, u64, u64)>,
    time_s: f64,
}

impl Counted {
    /// The counters of these drivers.
    #[must_use]
    pub fn of(drivers: &[Driver], time_s: f64) -> Self {
        let frames = drivers.iter().filter_map(|driver| {
            let first = driver.devices.first()?;
            let counters = driver.counters.as_ref()?;
            let now = (driver.pid, counters.frames_in(), counters.frames_out());
            Some((name(first.r#type, first.id), now))
        });
        Self {
            frames: frames.collect(),
            time_s,
        }
    }

    /// Frames per second to and from a driver since an earlier time; `None` after a restart.
    fn rates(&self, earlier: &Self, driver: &str) -> Option<(f64, f64)> {
        let passed_s = self.time_s - earlier.time_s;
        let (pid, to, from) = self.frames.get(driver)?;
        let (earlier_pid, earlier_to, earlier_from) = earlier.frames.get(driver)?;
        let rate = |now: &u64, before: &u64| now.saturating_sub(*before) as f64 / passed_s;
        let is_usable = passed_s > 0.0 && pid == earlier_pid;
        is_usable.then(|| (rate(to, earlier_to), rate(from, earlier_from)))
    }
}

impl Overview {
    /// The drivers and their rates between two times.
    #[must_use]
    pub fn new(mediator: &str, drivers: &[Driver], before: &Counted, now: &Counted) -> Self {
        let devices = drivers.iter().flat_map(|driver| {
            let first = driver.devices.first();
            let first = first.map(|it| name(it.r#type, it.id)).unwrap_or_default();
            let rates = now.rates(before, &first);
            let counters = driver.counters.unwrap_or_default();
            let motion = |device: &amber_proto::mediator::Device| {
                let mut motions = driver.motions.iter();
                motions.find(|motion| motion.device == *device)
            };
            driver.devices.iter().map(move |device| DeviceShown {
                holder: motion(device).and_then(|it| it.holder.clone()),
                halted_by: motion(device).and_then(|it| it.halted_by.clone()),
                device: name(device.r#type, device.id),
                state: state_name(driver.state()),
                pid: driver.pid,
                restarts: driver.restarts(),
                state_ms: driver.state_ms(),
                next_start_ms: driver.next_start_ms,
                last_exit: driver.last_exit.clone(),
                reason: driver.reason.clone(),
                hint: driver.hint.clone().or(driver.last_exit_hint.clone()),
                trouble: (driver.troubles.iter())
                    .find(|trouble| trouble.device == *device)
                    .map(|trouble| trouble.text.clone()),
                in_per_s: rates.map(|(to, _)| tenth(to)),
                out_per_s: rates.map(|(_, from)| tenth(from)),
                dropped: counters.dropped_full() + counters.dropped_down(),
            })
        });
        Self {
            t: "drivers",
            mediator: mediator.to_owned(),
            missing: None,
            parts: Parts::of(drivers).shown(),
            problems: Problems::of(drivers),
            cameras: parts::cameras(drivers),
            devices: devices.collect(),
        }
    }

    /// The mediator does not answer.
    #[must_use]
    pub fn missing(mediator: &str, why: String) -> Self {
        Self {
            missing: Some(why),
            ..Self::new(mediator, &[], &Counted::default(), &Counted::default())
        }
    }

    /// The same as a frame.
    #[must_use]
    pub fn frame(&self) -> Frame {
        Frame::Text(serde_json::to_string(self).unwrap_or_default())
    }
}

fn tenth(number: f64) -> f64 {
    (number * 10.0).round() / 10.0
}

/// The name of a device, such as `hokuyo:0`.
pub fn name(device_type: i32, id: i32) -> String {
    Device::new(DeviceType(device_type), id).to_string()
}

/// The state of a driver in a word.
pub fn state_name(state: DriverState) -> &'static str {
    match state {
        DriverState::Down => "down",
        DriverState::Starting => "starting",
        DriverState::Up => "up",
        DriverState::Stopping => "stopping",
        DriverState::Backoff => "backoff",
        DriverState::Failed => "failed",
    }
}

#[cfg(test)]
mod tests {
    use amber_client::MapPose;
    use amber_proto::location::Quality;
    use amber_proto::mediator::{Device as WireDevice, DriverCounters};

    use super::*;

    fn driver(pid: u32, frames_in: u64, frames_out: u64) -> Driver {
        Driver {
            devices: vec![WireDevice { r#type: 5, id: 0 }],
            state: DriverState::Up.into(),
            pid: Some(pid),
            counters: Some(DriverCounters {
                frames_in: Some(frames_in),
                frames_out: Some(frames_out),
                ..DriverCounters::default()
            }),
            ..Driver::default()
        }
    }

    #[test]
    fn the_size_of_the_robot_is_told_if_it_is_known() {
        assert_eq!(shape(None)["length_m"], Value::Null);
        let known = Shape {
            length: Some(0.4),
            width: Some(f64::NAN),
            ..Shape::default()
        };
        let shown = shape(Some(&known));
        assert_eq!(
            (&shown["t"], &shown["length_m"]),
            (&json!("shape"), &json!(0.4))
        );
        assert_eq!(shown["width_m"], Value::Null);
    }

    #[test]
    fn rates_come_from_two_lists_and_a_restart_begins_anew() {
        let before = Counted::of(&[driver(7, 10, 100)], 1.0);
        let drivers = [driver(7, 30, 101)];
        let now = Counted::of(&drivers, 3.0);
        let shown = serde_json::to_value(Overview::new("m", &drivers, &before, &now)).unwrap();
        let device = &shown["devices"][0];
        assert_eq!(device["device"], "dummy:0");
        assert_eq!(
            (&device["in_per_s"], &device["out_per_s"]),
            (&json!(10.0), &json!(0.5))
        );
        let restarted = [driver(8, 1, 1)];
        let now = Counted::of(&restarted, 4.0);
        let shown = serde_json::to_value(Overview::new("m", &restarted, &before, &now)).unwrap();
        assert_eq!(shown["devices"][0]["in_per_s"], Value::Null);
    }

    #[test]
    fn points_are_little_endian_floats_after_their_kind() {
        let Frame::Binary(bytes) = scan(Points::ScanOnMap, &[(1.0, -2.5)]) else {
            panic!("not binary");
        };
        let expected = [
            1_u32.to_le_bytes(),
            1_f32.to_le_bytes(),
            (-2.5_f32).to_le_bytes(),
        ];
        assert_eq!(bytes[..], expected.concat()[..]);
    }

    #[test]
    fn a_pose_that_may_be_wrong_is_not_decided() {
        let located = |p, quality| {
            Ok(Located {
                pose: MapPose {
                    quality: p,
                    ..MapPose::new(1.0, 2.0, 0.5)
                },
                quality,
            })
        };
        let ours = || Some(Quality::default());
        assert_eq!(pose(&located(0.9, ours()))["decided"], true);
        assert_eq!(pose(&located(0.2, ours()))["decided"], false);
        // A driver of the original system.
        assert_eq!(pose(&located(0.02, None))["decided"], true);
    }

    #[test]
    fn a_missing_part_says_why() {
        assert_eq!(pose(&Err("no answer".into()))["missing"], "no answer");
        assert_eq!(path(&Err("no answer".into()))["missing"], "no answer");
        assert_eq!(map(&Err("no answer".into()))["missing"], "no answer");
    }
}
