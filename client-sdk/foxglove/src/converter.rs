//! Converts messages of devices to those that Foxglove knows. PURE.

use std::collections::{BTreeMap, BTreeSet};

use amber_map::{Map, MapPose, Mounting, Point, Pose, ros_map};
use amber_proto::camera::{Calibration, CameraInfo, Picture};
use amber_proto::mediator::Event;
use amber_proto::{Device, DeviceType, bumper, drive_to_point, gps, hokuyo, location, robot};
use amber_record::{Beside, Carrier, Companion};
use amber_values::{NavSatFix, Scan};
use prost::Message;

use crate::camera::{self, IMAGE_DATA, Size};
use crate::frames::{self, MAP, ROBOT, agreed_ns, laser, measured_ns, on_map, position, timestamp};
use crate::limits::REPEAT_NS;
use crate::messages::{FrameTransform, FrameTransforms, LocationFix, PoseInFrame, PosesInFrame};
use crate::{Schema, events, scan, shapes};

/// A scan carries the time of its end. The middle of a turn of most lasers is this much earlier.
const MIDDLE_MS: i64 = 50;

/// A message for Foxglove.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Published {
    pub topic: String,
    /// Its type.
    pub schema: Schema,
    /// The encoded message.
    pub data: Vec<u8>,
}

/// Makes messages for Foxglove from those of devices. See the [crate](crate).
///
/// Several devices of one type have topics of their own. The robot is where the `location` device
/// with the lowest number says.
#[derive(Clone, Debug, Default)]
pub struct Converter {
    /// The position of a laser on the robot, and the number of this laser.
    mount: Mounting,
    mounted: i32,
    /// Length, width and height of the robot, if they are known.
    size_m: Option<(f64, f64, f64)>,
    lasers: BTreeSet<i32>,
    /// The place of a camera on the robot, and the number of this camera.
    camera_place: robot::Place,
    camera_placed: i32,
    cameras: BTreeMap<i32, Camera>,
    location: Option<i32>,
    /// The robot on the map, while its position is known.
    robot: Option<FrameTransform>,
    /// When the constant parts were last sent.
    repeated_ns: Option<u64>,
    maps: Vec<(i32, Vec<u8>, Published)>,
    invalid: u64,
}

/// What is known of a camera.
#[derive(Clone, Debug, Default)]
struct Camera {
    calibration: Option<Calibration>,
    /// The size of its last picture.
    size: Option<Size>,
    /// The size for which the calibration was last sent, and when.
    sent: Option<(Size, u64)>,
}

impl Converter {
    /// A converter without data. Until the shape of the robot is known, its laser is drawn at its
    /// centre.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    pub fn set_shape(&mut self, shape: &robot::Shape) {
        let laser = shape.roles.iter().find(|it| it.role == "laser");
        self.mounted = laser.map_or(0, |it| it.id);
        if let Some(laser) = &shape.laser {
            let place = [laser.x(), laser.y(), laser.yaw()];
            if place.iter().all(|number| number.is_finite()) {
                self.mount = Mounting {
                    pose: Pose::new(laser.x(), laser.y(), laser.yaw()),
                    is_upside_down: laser.upside_down(),
                };
            }
        }
        let camera = shape.roles.iter().find(|it| it.role == "camera");
        self.camera_placed = camera.map_or(0, |it| it.id);
        if let Some(place) = &shape.camera {
            let numbers = [place.x(), place.y(), place.z(), place.yaw(), place.pitch()];
            if numbers.iter().all(|number| number.is_finite()) {
                self.camera_place = *place;
            }
        }
        let size_m = (
            shape.length(),
            shape.width(),
            shape.height.unwrap_or(shapes::ROBOT_HEIGHT_M),
        );
        let is_size = |m: f64| m.is_finite() && m > 0.0;
        if is_size(size_m.0) && is_size(size_m.1) && is_size(size_m.2) {
            self.size_m = Some(size_m);
        }
    }

    /// The parts that do not change, if a second has passed since they were made, or if there is
    /// another laser or camera: these are all devices. Use it where messages may not come.
    #[must_use]
    pub fn repeated(
        &mut self,
        time_ns: u64,
        devices: impl Iterator<Item = Device>,
    ) -> Vec<Published> {
        let count = |it: &Self| it.lasers.len() + it.cameras.len();
        let before = count(self);
        for device in devices {
            match device.device_type {
                DeviceType::HOKUYO => {
                    self.lasers.insert(device.id.0);
                }
                DeviceType::CAMERA => {
                    self.cameras.entry(device.id.0).or_default();
                }
                _ => {}
            }
        }
        let mut out = Vec::new();
        self.repeat(time_ns, count(self) > before, &mut out);
        out
    }

    /// What a camera says about itself: its optics. Its driver may not say so again.
    pub fn set_camera(&mut self, device_id: i32, info: &CameraInfo) {
        let camera = self.cameras.entry(device_id).or_default();
        camera.calibration.clone_from(&info.calibration);
        let of_info = camera::size(info.width(), info.height());
        camera.size = camera.size.or(of_info);
    }

    /// The map of a `location` device: [`Converter::again`] sends it.
    pub fn set_map(&mut self, time_ns: u64, device_id: i32, map: &location::Map) {
        if self.map(time_ns, device_id, map, &mut Vec::new()).is_none() {
            self.invalid += 1;
        }
    }

    /// Whether messages of this device matter.
    #[must_use]
    pub fn reads(device_type: DeviceType) -> bool {
        matches!(
            device_type,
            DeviceType::HOKUYO
                | DeviceType::CAMERA
                | DeviceType::LOCATION
                | DeviceType::DRIVE_TO_POINT
                | DeviceType::GPS
                | DeviceType::BUMPER
                | DeviceType::ROBOT
        )
    }

    /// The messages that were not converted because they are invalid.
    #[must_use]
    pub fn invalid(&self) -> u64 {
        self.invalid
    }

    /// Sends the constant data again, because another file or viewer begins: the maps.
    #[must_use]
    pub fn again(&mut self) -> Vec<Published> {
        self.repeated_ns = None;
        self.cameras.values_mut().for_each(|it| it.sent = None);
        self.maps.iter().map(|(_, _, map)| map.clone()).collect()
    }

    /// An event of the mediator.
    #[must_use]
    pub fn event(&self, time_ns: u64, event: &Event) -> Published {
        let line = events::line(event, time_ns);
        published("/foxglove/log".to_owned(), Schema::Log, &line)
    }

    /// A message that a driver has sent, and when it was received, in nanoseconds since 1970.
    #[must_use]
    pub fn message(&mut self, time_ns: u64, device: Device, message: &[u8]) -> Vec<Published> {
        let mut out = Vec::new();
        let read = match device.device_type {
            DeviceType::HOKUYO => self.laser(time_ns, device.id.0, message, &mut out),
            DeviceType::CAMERA => self.camera(time_ns, device.id.0, message, &mut out),
            DeviceType::LOCATION => self.location(time_ns, device.id.0, message, &mut out),
            DeviceType::DRIVE_TO_POINT => drive(time_ns, device.id.0, message, &mut out),
            DeviceType::GPS => fix(time_ns, device.id.0, message, &mut out),
            DeviceType::BUMPER => self.contacts(time_ns, device.id.0, message, &mut out),
            DeviceType::ROBOT => self.robot(device.id.0, message),
            _ => Some(()),
        };
        if read.is_none() {
            self.invalid += 1;
        }
        out
    }

    fn contacts(
        &self,
        time_ns: u64,
        id: i32,
        bytes: &[u8],
        out: &mut Vec<Published>,
    ) -> Option<()> {
        let message = bumper::DriverMsg::decode(bytes).ok()?;
        let Some(contacts) = message.contacts else {
            return Some(());
        };
        let measured_ns = contacts.time.map_or(time_ns, |us| us.saturating_mul(1_000));
        let update = shapes::contacts(measured_ns, self.size_m, &contacts);
        let topic = topic("bumper", id, "contacts");
        out.push(published(topic, Schema::SceneUpdate, &update));
        Some(())
    }

    fn laser(
        &mut self,
        time_ns: u64,
        id: i32,
        bytes: &[u8],
        out: &mut Vec<Published>,
    ) -> Option<()> {
        let message = hokuyo::DriverMsg::decode(bytes).ok()?;
        if message.scan.is_none() {
            return Some(());
        }
        let scan = Scan::try_from(&message).ok()?;
        let middle_ms = scan.timestamp_ms().map(|ms| ms - MIDDLE_MS);
        let measured_ns = measured_ns(middle_ms, time_ns);
        let scan = scan::laser_scan(&scan, id, measured_ns);
        out.push(published(
            topic("hokuyo", id, "scan"),
            Schema::LaserScan,
            &scan,
        ));
        let is_new = self.lasers.insert(id);
        self.repeat(time_ns, is_new, out);
        Some(())
    }

    fn camera(
        &mut self,
        time_ns: u64,
        id: i32,
        bytes: &[u8],
        out: &mut Vec<Published>,
    ) -> Option<()> {
        let message = camera::read(bytes)?;
        let mut measured_ns = time_ns;
        let is_new = !self.cameras.contains_key(&id);
        if let Some(info) = &message.camera_info {
            self.set_camera(id, info);
        }
        if let Some(picture) = message.picture {
            measured_ns = taken_ns(time_ns, &picture);
            let known = self.cameras.entry(id).or_default();
            known.size = camera::size(picture.width(), picture.height()).or(known.size);
            if let Some(image) = camera::image(&picture, id, measured_ns) {
                let image = camera::with_file(image, &picture);
                out.push(published(
                    topic("camera", id, "picture"),
                    Schema::CompressedImage,
                    &image,
                ));
            }
        }
        self.calibrate(time_ns, id, measured_ns, out);
        if self.cameras.contains_key(&id) {
            self.repeat(time_ns, is_new, out);
        }
        Some(())
    }

    /// The optics of a camera: for each new size, and periodically.
    fn calibrate(&mut self, time_ns: u64, id: i32, measured_ns: u64, out: &mut Vec<Published>) {
        let Some(known) = self.cameras.get_mut(&id) else {
            return;
        };
        let Some(calibration) = &known.calibration else {
            return;
        };
        let of_calibration = || camera::size(calibration.width(), calibration.height());
        let Some(size) = known.size.or_else(of_calibration) else {
            return;
        };
        let is_due = known.sent.is_none_or(|(last, last_ns)| {
            last != size || time_ns < last_ns || time_ns - last_ns >= REPEAT_NS
        });
        if !is_due {
            return;
        }
        known.sent = Some((size, time_ns));
        match camera::calibration(calibration, size, id, measured_ns) {
            Some(made) => out.push(published(
                topic("camera", id, "calibration"),
                Schema::CameraCalibration,
                &made,
            )),
            None => self.invalid += 1,
        }
    }

    /// The robot device with the number 0 says where laser and camera are.
    fn robot(&mut self, id: i32, bytes: &[u8]) -> Option<()> {
        let message = robot::DriverMsg::decode(bytes).ok()?;
        if let (0, Some(shape)) = (id, &message.shape) {
            self.set_shape(shape);
        }
        Some(())
    }

    fn location(
        &mut self,
        time_ns: u64,
        id: i32,
        bytes: &[u8],
        out: &mut Vec<Published>,
    ) -> Option<()> {
        let message = location::DriverMsg::decode(bytes).ok()?;
        let mut read = Some(());
        if let Some(found) = message.current_location {
            let found = MapPose::from(found);
            read = match found.is_decided(message.quality.is_some()) {
                true => self.pose(time_ns, id, found, out),
                false => {
                    self.lose(time_ns, id, out);
                    Some(())
                }
            };
        }
        if let Some(particles) = message.particles {
            let pose = |it: &location::Particle| {
                let [x, y, alfa] = [it.x(), it.y(), it.alfa()].map(f64::from);
                frames::pose(MapPose::new(x, y, alfa).into(), 0.0)
            };
            let poses = PosesInFrame {
                timestamp: timestamp(time_ns),
                frame_id: MAP.to_owned(),
                poses: particles.particles.iter().filter_map(pose).collect(),
            };
            out.push(published(
                topic("location", id, "particles"),
                Schema::PosesInFrame,
                &poses,
            ));
        }
        if let Some(map) = message.map {
            read = read.and(self.map(time_ns, id, &map, out));
        }
        read
    }

    fn pose(
        &mut self,
        time_ns: u64,
        id: i32,
        found: MapPose,
        out: &mut Vec<Published>,
    ) -> Option<()> {
        let numbers = [found.x_m, found.y_m, found.heading_rad];
        if !numbers.iter().all(|number| number.is_finite()) {
            return None;
        }
        let measured = timestamp(measured_ns(found.timestamp_ms, time_ns));
        let pose = PoseInFrame {
            timestamp: measured,
            frame_id: MAP.to_owned(),
            pose: frames::pose(found.into(), 0.0),
        };
        out.push(published(
            topic("location", id, "pose"),
            Schema::PoseInFrame,
            &pose,
        ));
        if self.location.is_none_or(|main| id <= main) {
            let was_lost = self.location.is_some() && self.robot.is_none();
            self.location = Some(id);
            self.robot = Some(FrameTransform {
                timestamp: measured,
                ..transform(MAP, ROBOT, Pose::from(found))
            });
            if was_lost {
                self.show_robot(time_ns, out);
            }
            self.repeat(time_ns, true, out);
        }
        Some(())
    }

    /// The position of the robot is unknown: it no longer has a place on the map, and what viewers still
    /// show becomes grey.
    fn lose(&mut self, time_ns: u64, id: i32, out: &mut Vec<Published>) {
        if self.location == Some(id) && self.robot.take().is_some() {
            self.show_robot(time_ns, out);
        }
    }

    fn show_robot(&self, time_ns: u64, out: &mut Vec<Published>) {
        let is_known = self.robot.is_some() || self.location.is_none();
        out.push(published(
            "/foxglove/robot".to_owned(),
            Schema::SceneUpdate,
            &shapes::robot(time_ns, self.size_m, is_known),
        ));
    }

    fn map(
        &mut self,
        time_ns: u64,
        id: i32,
        map: &location::Map,
        out: &mut Vec<Published>,
    ) -> Option<()> {
        let bytes = map.encode_to_vec();
        let same = |(other, before, _): &&(i32, Vec<u8>, _)| *other == id && *before == bytes;
        if self.maps.iter().any(|it| same(&it)) {
            return Some(());
        }
        let made = match &map.grid {
            None => {
                let walls = Map::parse(map.roson()).ok()?;
                let walls = shapes::walls(&walls, time_ns);
                published(topic("location", id, "walls"), Schema::SceneUpdate, &walls)
            }
            Some(grid) => {
                let corner = on_map(grid.x(), grid.y());
                let cells = ros_map::from_png(grid.png(), corner, grid.resolution()).ok()?;
                let grid = shapes::grid(&cells, time_ns)?;
                published(topic("location", id, "grid"), Schema::Grid, &grid)
            }
        };
        self.maps.retain(|(other, _, _)| *other != id);
        self.maps.push((id, bytes, made.clone()));
        out.push(made);
        Some(())
    }

    /// All transforms and the robot: immediately if a transform has changed, and periodically.
    fn repeat(&mut self, time_ns: u64, has_changed: bool, out: &mut Vec<Published>) {
        let last = self.repeated_ns;
        // The time may also go back: another recording begins.
        let is_due = last.is_none_or(|last| time_ns < last || time_ns - last >= REPEAT_NS);
        if !has_changed && !is_due {
            return;
        }
        let stamp = match &self.robot {
            Some(robot) => robot.timestamp,
            None => timestamp(time_ns),
        };
        let lasers = self.lasers.iter().map(|&id| {
            let is_placed = id == self.mounted;
            let mount = if is_placed {
                self.mount
            } else {
                Mounting::default()
            };
            FrameTransform {
                timestamp: stamp,
                ..transform(ROBOT, &laser(id), mount)
            }
        });
        let cameras = self.cameras.keys().map(|&id| {
            let is_placed = id == self.camera_placed;
            let place = match is_placed {
                true => self.camera_place,
                false => robot::Place::default(),
            };
            FrameTransform {
                timestamp: stamp,
                parent_frame_id: ROBOT.to_owned(),
                child_frame_id: frames::camera(id),
                translation: Some(position(Point::new(place.x(), place.y()), place.z())),
                rotation: Some(frames::optical(&place)),
            }
        });
        let transforms = self.robot.iter().cloned().chain(lasers).chain(cameras);
        let transforms = transforms.collect();
        let transforms = FrameTransforms { transforms };
        out.push(published(
            "/foxglove/tf".to_owned(),
            Schema::FrameTransforms,
            &transforms,
        ));
        if is_due {
            self.repeated_ns = Some(time_ns);
            self.show_robot(time_ns, out);
        }
    }
}

impl Companion for Converter {
    fn reads(&self, device: Device) -> bool {
        Self::reads(device.device_type)
    }

    fn message(&mut self, time_ns: u64, device: Device, message: &[u8]) -> Vec<Beside> {
        let all = Self::message(self, time_ns, device, message).into_iter();
        // Pictures have carriers.
        let others = all.filter(|it| it.schema != Schema::CompressedImage);
        others.map(Beside::from).collect()
    }

    fn carries(&self, device: Device) -> bool {
        device.device_type == DeviceType::CAMERA
    }

    fn carrier(&mut self, time_ns: u64, device: Device, message: &[u8]) -> Option<Carrier> {
        let picture = camera::read(message)?.picture?;
        let part = camera::place_of_file(message, &picture)?;
        let id = device.id.0;
        let image = camera::image(&picture, id, taken_ns(time_ns, &picture))?;
        Some(Carrier {
            topic: topic("camera", id, "picture"),
            schema: Schema::CompressedImage.name(),
            descriptors: Schema::CompressedImage.descriptors(),
            head: image.encode_to_vec(),
            field: IMAGE_DATA,
            part,
        })
    }

    fn event(&mut self, time_ns: u64, event: &[u8]) -> Vec<Beside> {
        match Event::decode(event) {
            Ok(event) => vec![Self::event(self, time_ns, &event).into()],
            Err(_) => {
                self.invalid += 1;
                Vec::new()
            }
        }
    }

    fn begin(&mut self) -> Vec<Beside> {
        self.again().into_iter().map(Beside::from).collect()
    }
}

impl From<Published> for Beside {
    fn from(message: Published) -> Self {
        Self {
            topic: message.topic,
            schema: message.schema.name(),
            descriptors: message.schema.descriptors(),
            data: message.data,
        }
    }
}

/// When a picture was taken.
fn taken_ns(time_ns: u64, picture: &Picture) -> u64 {
    let says_us = picture.captured.and_then(|us| u64::try_from(us).ok());
    agreed_ns(says_us.and_then(|us| us.checked_mul(1_000)), time_ns)
}

fn drive(time_ns: u64, id: i32, bytes: &[u8], out: &mut Vec<Published>) -> Option<()> {
    let message = drive_to_point::DriverMsg::decode(bytes).ok()?;
    if let Some(progress) = message.progress {
        let path = progress.path.unwrap_or_default();
        if path.xs.len() != path.ys.len() {
            return None;
        }
        let places = path.xs.iter().copied().zip(path.ys.iter().copied());
        let path = shapes::path(places, time_ns);
        out.push(published(
            topic("drive-to-point", id, "path"),
            Schema::SceneUpdate,
            &path,
        ));
    }
    if message.get_next_targets == Some(true) {
        let targets = message.targets.unwrap_or_default();
        let [xs, ys] = [&targets.longitudes, &targets.latitudes];
        if xs.len() != ys.len() || xs.len() != targets.radiuses.len() {
            return None;
        }
        let places = xs.iter().zip(ys).zip(&targets.radiuses);
        let places: Vec<_> = places.map(|((x, y), radius)| (*x, *y, *radius)).collect();
        let targets = shapes::targets(&places, time_ns);
        out.push(published(
            topic("drive-to-point", id, "targets"),
            Schema::SceneUpdate,
            &targets,
        ));
    }
    Some(())
}

/// Nothing is drawn without a position.
fn fix(time_ns: u64, id: i32, bytes: &[u8], out: &mut Vec<Published>) -> Option<()> {
    let message = gps::DriverMsg::decode(bytes).ok()?;
    let Some(fix) = message.fix else {
        return Some(());
    };
    let place = NavSatFix::from(&fix);
    if !place.is_known() {
        return Some(());
    }
    let fix = LocationFix {
        timestamp: timestamp(measured_ns(fix.time, time_ns)),
        frame_id: ROBOT.to_owned(),
        latitude: place.latitude_deg,
        longitude: place.longitude_deg,
        altitude: place.altitude_m,
        position_covariance: place.covariance_m2.to_vec(),
        position_covariance_type: place.covariance_kind.into(),
        ..LocationFix::default()
    };
    out.push(published(
        topic("gps", id, "fix"),
        Schema::LocationFix,
        &fix,
    ));
    Some(())
}

fn transform(parent: &str, child: &str, place: impl Into<Mounting>) -> FrameTransform {
    let place = place.into();
    FrameTransform {
        timestamp: None,
        parent_frame_id: parent.to_owned(),
        child_frame_id: child.to_owned(),
        translation: Some(position(place.pose.at, 0.0)),
        rotation: Some(frames::rotation(place)),
    }
}

fn topic(device: &str, id: i32, what: &str) -> String {
    format!("/foxglove/{device}/{id}/{what}")
}

fn published(topic: String, schema: Schema, message: &impl Message) -> Published {
    Published {
        topic,
        schema,
        data: message.encode_to_vec(),
    }
}

#[cfg(test)]
mod tests;
