//! The channels of a robot, and the sources of their messages. PURE.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use amber_proto::{Device, DeviceType};
use amber_record::Descriptors;
use amber_reflect::Schemas;
use amber_schema::{Harmless, Kind, Method};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use prost::encoding::{DecodeContext, decode_key, skip_field};
use serde_json::Value;

use super::limits::MAX_CHANNELS;
use super::protocol;
use crate::Schema;

/// The stream of a camera.
pub(super) const PICTURES: &str = "pictures";

/// A device with the description of its messages.
#[derive(Clone, Debug)]
pub(super) struct Described {
    pub(super) device: Device,
    pub(super) schemas: Arc<Schemas>,
}

/// The source of messages. It is used only while a viewer subscribes to them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Upstream {
    /// The events of the mediator.
    Events,
    /// The published data of a device.
    Published(Device),
    /// The published data of a device after this request.
    ByRequest(Device, String),
    /// The answers to this request, which is repeated.
    Asked(Device, String),
}

/// A channel that viewers can subscribe to.
#[derive(Clone, Debug)]
struct Channel {
    topic: String,
    schema: String,
    descriptors: Arc<str>,
    source: Source,
}

#[derive(Clone, Debug)]
enum Source {
    /// Messages of a device with this field, unchanged.
    Raw(Device, u32, Upstream),
    /// Messages for Foxglove that are made from those of this device.
    Made(Schema, Device, Vec<Upstream>),
    /// The transforms and the robot: made from all poses.
    Robot,
    /// The events of the mediator.
    Log,
}

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Catalog {
    channels: BTreeMap<u32, Channel>,
    ids: HashMap<String, u32>,
    devices: Vec<Device>,
    last_id: u32,
}

impl Catalog {
    /// The catalog of a mediator without drivers.
    pub(super) fn new() -> Self {
        let mut catalog = Self::default();
        let made = |schema: Schema, source| Channel {
            topic: String::new(),
            schema: schema.name().to_owned(),
            descriptors: STANDARD.encode(schema.descriptors()).into(),
            source,
        };
        let log = made(Schema::Log, Source::Log);
        let tf = made(Schema::FrameTransforms, Source::Robot);
        let robot = made(Schema::SceneUpdate, Source::Robot);
        for (topic, channel) in [("log", log), ("tf", tf), ("robot", robot)] {
            catalog.add(format!("/foxglove/{topic}"), channel);
        }
        catalog
    }

    /// These are the devices now. Returns the channels that are new, and those that are gone.
    pub(super) fn set_devices(&mut self, devices: &[Described]) -> (Vec<u32>, Vec<u32>) {
        let is_gone = |channel: &Channel| match &channel.source {
            Source::Raw(device, ..) | Source::Made(_, device, _) => {
                !devices.iter().any(|it| it.device == *device)
            }
            Source::Robot | Source::Log => false,
        };
        let gone = self.channels.iter().filter(|(_, channel)| is_gone(channel));
        let gone: Vec<u32> = gone.map(|(id, _)| *id).collect();
        for id in &gone {
            if let Some(channel) = self.channels.remove(id) {
                self.ids.remove(&channel.topic);
            }
        }
        let before = std::mem::take(&mut self.devices);
        let mut new = Vec::new();
        for described in devices {
            self.devices.push(described.device);
            if !before.contains(&described.device) {
                let raw = raw(described).into_iter();
                for (topic, channel) in raw.chain(made(described.device)) {
                    new.extend(self.add(topic, channel));
                }
            }
        }
        (new, gone)
    }

    /// `None` if there are too many channels, or there is one with this topic.
    fn add(&mut self, topic: String, channel: Channel) -> Option<u32> {
        if self.channels.len() >= MAX_CHANNELS || self.ids.contains_key(&topic) {
            return None;
        }
        // A number is never used again: viewers keep the schema of a number.
        self.last_id += 1;
        self.ids.insert(topic.clone(), self.last_id);
        self.channels
            .insert(self.last_id, Channel { topic, ..channel });
        Some(self.last_id)
    }

    /// All channels, for a new viewer.
    pub(super) fn ids(&self) -> Vec<u32> {
        self.channels.keys().copied().collect()
    }

    /// The description of a channel for viewers.
    pub(super) fn told(&self, id: u32) -> Option<Value> {
        let it = self.channels.get(&id)?;
        Some(protocol::channel(
            id,
            &it.topic,
            &it.schema,
            &it.descriptors,
        ))
    }

    /// The channel with this topic.
    pub(super) fn id(&self, topic: &str) -> Option<u32> {
        self.ids.get(topic).copied()
    }

    /// The channels of messages of this device with one of these fields.
    pub(super) fn raw(&self, from: Device, fields: &[u32]) -> Vec<u32> {
        let is = |channel: &Channel| match channel.source {
            Source::Raw(device, field, _) => device == from && fields.contains(&field),
            _ => false,
        };
        let all = self.channels.iter().filter(|(_, channel)| is(channel));
        all.map(|(id, _)| *id).collect()
    }

    /// Whether messages for Foxglove must be made for this channel.
    pub(super) fn is_made(&self, id: u32) -> bool {
        let source = self.channels.get(&id).map(|it| &it.source);
        matches!(source, Some(Source::Made(..) | Source::Robot))
    }

    /// Whether the last message of a channel is also for later viewers: it is sent only once.
    pub(super) fn is_kept(&self, id: u32) -> bool {
        let channel = self.channels.get(&id);
        channel.is_some_and(|it| match it.source {
            Source::Made(Schema::Grid, ..) => true,
            Source::Made(Schema::SceneUpdate, ..) => it.topic.ends_with("/walls"),
            _ => false,
        })
    }

    /// Whether all messages of a channel count, not only the newest.
    pub(super) fn is_log(&self, id: u32) -> bool {
        matches!(
            self.channels.get(&id).map(|it| &it.source),
            Some(Source::Log)
        )
    }

    /// The source of the messages of a channel.
    pub(super) fn upstreams(&self, id: u32) -> Vec<Upstream> {
        match self.channels.get(&id).map(|it| &it.source) {
            None => Vec::new(),
            Some(Source::Log) => vec![Upstream::Events],
            Some(Source::Raw(_, _, upstream)) => vec![upstream.clone()],
            Some(Source::Made(_, _, upstreams)) => upstreams.clone(),
            Some(Source::Robot) => {
                let poses = self.devices.iter().copied();
                let poses = poses.filter(|it| it.device_type == DeviceType::LOCATION);
                poses.map(Upstream::Published).collect()
            }
        }
    }
}

/// The channels of a device with its own messages: what it publishes, and what it answers to requests
/// that only read and need no arguments.
fn raw(described: &Described) -> Vec<(String, Channel)> {
    let (device, schemas) = (described.device, &described.schemas);
    let Some(interface) = schemas.interface(device.device_type) else {
        return Vec::new();
    };
    let Some(made) = Descriptors::of_device(schemas, device.device_type) else {
        return Vec::new();
    };
    let descriptors: Arc<str> = STANDARD.encode(&made.set).into();
    // For the same field, published data is preferred to requests.
    let upstream = |method: &Method| match &method.kind {
        Kind::Subscribe => Some((0, Upstream::Published(device))),
        Kind::StreamByRequest { .. } => {
            Some((1, Upstream::ByRequest(device, method.command.clone())))
        }
        Kind::Ask { .. } if method.harmless == Harmless::Any && needs_nothing(method) => {
            Some((2, Upstream::Asked(device, method.command.clone())))
        }
        _ => None,
    };
    let mut all: Vec<_> = (interface.methods.iter())
        .filter_map(|method| {
            let field = method.answer.first().or(method.may_answer.first())?;
            let (order, upstream) = upstream(method)?;
            Some((order, field, upstream))
        })
        .collect();
    all.sort_by_key(|(order, ..)| *order);
    let channels = all.into_iter().map(|(_, field, upstream)| {
        let topic = format!("/{}/{}/{}", interface.name, device.id, field.name);
        let channel = Channel {
            topic: String::new(),
            schema: made.name.clone(),
            descriptors: descriptors.clone(),
            source: Source::Raw(device, field.number, upstream),
        };
        (topic, channel)
    });
    channels.collect()
}

fn needs_nothing(method: &Method) -> bool {
    let arguments = amber_reflect::arguments::arguments(method);
    !arguments.iter().any(|argument| argument.is_required)
}

/// The channels with messages for Foxglove that are made from those of a device.
fn made(device: Device) -> Vec<(String, Channel)> {
    let published = Upstream::Published(device);
    let asked = |request: &str| Upstream::Asked(device, request.to_owned());
    let (name, all) = match device.device_type {
        DeviceType::HOKUYO => ("hokuyo", vec![("scan", Schema::LaserScan, published)]),
        DeviceType::CAMERA => {
            let pictures = Upstream::ByRequest(device, PICTURES.to_owned());
            let calibration = ("calibration", Schema::CameraCalibration, published);
            let picture = ("picture", Schema::CompressedImage, pictures);
            ("camera", vec![picture, calibration])
        }
        DeviceType::GPS => ("gps", vec![("fix", Schema::LocationFix, published)]),
        DeviceType::BUMPER => ("bumper", vec![("contacts", Schema::SceneUpdate, published)]),
        DeviceType::LOCATION => (
            "location",
            vec![
                ("pose", Schema::PoseInFrame, published),
                ("particles", Schema::PosesInFrame, asked("particles")),
                ("walls", Schema::SceneUpdate, asked("map")),
                ("grid", Schema::Grid, asked("map")),
            ],
        ),
        DeviceType::DRIVE_TO_POINT => (
            "drive-to-point",
            vec![
                ("path", Schema::SceneUpdate, published),
                ("targets", Schema::SceneUpdate, asked("next-targets")),
            ],
        ),
        _ => return Vec::new(),
    };
    let channel = |(what, schema, upstream): (&str, Schema, Upstream)| {
        let topic = format!("/foxglove/{name}/{}/{what}", device.id);
        let channel = Channel {
            topic: String::new(),
            schema: schema.name().to_owned(),
            descriptors: STANDARD.encode(schema.descriptors()).into(),
            source: Source::Made(schema, device, vec![upstream]),
        };
        (topic, channel)
    };
    all.into_iter().map(channel).collect()
}

/// The numbers of the fields of a message, as far as it can be read.
pub(super) fn fields(mut message: &[u8]) -> Vec<u32> {
    let mut numbers = Vec::new();
    while !message.is_empty() {
        let Ok((number, wire)) = decode_key(&mut message) else {
            break;
        };
        if skip_field(wire, number, &mut message, DecodeContext::default()).is_err() {
            break;
        }
        if !numbers.contains(&number) {
            numbers.push(number);
        }
    }
    numbers
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::live) fn described(device_types: &[DeviceType]) -> Vec<Described> {
        let schemas = Arc::new(Schemas::built_in());
        let described = |device_type: &DeviceType| Described {
            device: Device::new(*device_type, 0),
            schemas: schemas.clone(),
        };
        device_types.iter().map(described).collect()
    }

    #[test]
    fn a_channel_for_all_that_can_be_read_without_arguments() {
        let mut catalog = Catalog::new();
        let (new, gone) = catalog.set_devices(&described(&[
            DeviceType::HOKUYO,
            DeviceType::ROBOCLAW,
            DeviceType::ROBOT,
            DeviceType::NINEDOF,
        ]));
        assert!(gone.is_empty() && new.len() >= 4, "{new:?}");
        let scan = catalog.id("/hokuyo/0/scan").unwrap();
        let hokuyo = Device::new(DeviceType::HOKUYO, 0);
        assert_eq!(catalog.upstreams(scan), [Upstream::Published(hokuyo)]);
        let speeds = catalog.id("/roboclaw/0/currentSpeed").unwrap();
        let roboclaw = Device::new(DeviceType::ROBOCLAW, 0);
        assert_eq!(catalog.upstreams(speeds), [Upstream::Published(roboclaw)]);
        let urdf = catalog.id("/robot/0/urdf").unwrap();
        let robot = Device::new(DeviceType::ROBOT, 0);
        assert_eq!(
            catalog.upstreams(urdf),
            [Upstream::Asked(robot, "urdf".into())]
        );
        assert_eq!(catalog.raw(hokuyo, &[2, 41]), [scan]);
        let told = catalog.told(scan).unwrap();
        assert_eq!(told["schemaName"], "amber.recorded.Hokuyo");
        let set = STANDARD.decode(told["schema"].as_str().unwrap()).unwrap();
        let pool = prost_reflect::DescriptorPool::decode(&set[..]).unwrap();
        assert!(pool.get_message_by_name("amber.recorded.Hokuyo").is_some());
        let by_request = |id: u32| matches!(catalog.upstreams(id)[..], [Upstream::ByRequest(..)]);
        assert!(catalog.ids().into_iter().any(by_request), "motion sensors");
    }

    #[test]
    fn channels_come_and_go_with_their_device_and_numbers_are_not_used_again() {
        let mut catalog = Catalog::new();
        let hokuyo = described(&[DeviceType::HOKUYO]);
        let (new, _) = catalog.set_devices(&hokuyo);
        assert_eq!(catalog.set_devices(&hokuyo), (vec![], vec![]));
        let (none, gone) = catalog.set_devices(&[]);
        assert_eq!((none, gone), (vec![], new.clone()));
        let (again, _) = catalog.set_devices(&hokuyo);
        assert!(again.iter().all(|id| !new.contains(id)));
        assert!(catalog.id("/foxglove/log").is_some());
    }

    #[test]
    fn the_requests_behind_the_messages_for_foxglove_exist() {
        let all = [
            DeviceType::HOKUYO,
            DeviceType::LOCATION,
            DeviceType::DRIVE_TO_POINT,
            DeviceType::GPS,
            DeviceType::BUMPER,
            DeviceType::CAMERA,
        ];
        let schemas = Schemas::built_in();
        for device_type in all {
            let interface = schemas.interface(device_type).unwrap();
            for (topic, channel) in made(Device::new(device_type, 0)) {
                let Source::Made(_, _, upstreams) = channel.source else {
                    panic!("{topic}");
                };
                let exists = upstreams.iter().all(|upstream| match upstream {
                    Upstream::Asked(_, request) => {
                        interface.method(request).is_some_and(needs_nothing)
                    }
                    Upstream::ByRequest(_, stream) => {
                        interface.method(stream).is_some_and(|it| it.is_stream())
                    }
                    _ => interface
                        .methods
                        .iter()
                        .any(|it| it.kind == Kind::Subscribe),
                });
                assert!(exists, "{topic}");
            }
        }
        let mut catalog = Catalog::new();
        catalog.set_devices(&described(&all));
        let tf = catalog.id("/foxglove/tf").unwrap();
        let location = Device::new(DeviceType::LOCATION, 0);
        assert_eq!(catalog.upstreams(tf), [Upstream::Published(location)]);
        for (topic, is_kept) in [("walls", true), ("grid", true), ("pose", false)] {
            let id = catalog
                .id(&format!("/foxglove/location/0/{topic}"))
                .unwrap();
            assert_eq!((catalog.is_kept(id), catalog.is_made(id)), (is_kept, true));
        }
    }

    #[test]
    fn fields_are_found_as_far_as_a_message_can_be_read() {
        assert_eq!(fields(b"\x10\x01\xca\x02\x00\xca\x02\x00"), [2, 41]);
        assert_eq!(fields(b"\x10\x01\xca\x02\x05"), [2]);
        assert!(fields(b"\xff").is_empty());
    }
}
