//! The clients that hear one far device. PURE.
//!
//! A robot publishes the data of a device once for all. Drivers of some devices send each client what
//! it has asked for, at its own period: that is done here.

use std::collections::BTreeMap;
use std::time::Duration;

use amber_proto::{ClientId, DeviceType, ninedof};
use amber_reflect::{Schemas, StreamRequest};
use amber_schema::{Kind, Method};
use bytes::Bytes;
use prost::Message;

use crate::pacing::Pacing;

/// The clients of one device.
#[derive(Debug)]
pub struct Streams {
    device_type: DeviceType,
    schemas: Schemas,
    /// The streams that start by a request.
    by_request: Vec<Method>,
    /// Whether the device publishes something after SUBSCRIBE, too.
    has_subscribe: bool,
    listeners: BTreeMap<ClientId, Listener>,
}

#[derive(Debug, Default)]
struct Listener {
    /// It has sent SUBSCRIBE.
    subscribed: bool,
    /// What it has requested.
    request: Option<(Terms, Pacing<Bytes>)>,
}

/// What a client has requested.
#[derive(Clone, Debug, PartialEq)]
struct Terms {
    /// A period of 0 means every message.
    period: Duration,
    /// The motion sensors that it wants.
    sensors: Option<ninedof::SubscribeAction>,
}

/// The clients of a message, and what they get.
pub type Sent = (Vec<i32>, Bytes);

impl Terms {
    /// What a client with these terms gets of a message.
    fn part(&self, message: &Bytes) -> Bytes {
        let Some(wanted) = &self.sensors else {
            return message.clone();
        };
        let Ok(mut read) = ninedof::DriverMsg::decode(message.clone()) else {
            return message.clone();
        };
        if let Some(data) = &mut read.sensor_data {
            let extended = wanted.extended();
            data.accel.take_if(|_| !wanted.accel());
            data.gyro.take_if(|_| !wanted.gyro());
            data.gyro_milli.take_if(|_| !(wanted.gyro() && extended));
            data.magnet.take_if(|_| !wanted.magnet());
            let has_attitude = wanted.accel() && wanted.magnet() && extended;
            data.attitude.take_if(|_| !has_attitude);
        }
        read.encode_to_vec().into()
    }
}

impl Streams {
    /// Nobody listens.
    #[must_use]
    pub fn new(device_type: DeviceType) -> Self {
        let mut streams = Self {
            device_type,
            schemas: Schemas::built_in(),
            by_request: Vec::new(),
            has_subscribe: true,
            listeners: BTreeMap::new(),
        };
        streams.read_methods();
        streams
    }

    /// The description of a device that Amber does not know by itself. Returns false for one that
    /// cannot be read, which changes nothing.
    pub fn describe(&mut self, files: &[u8]) -> bool {
        let Ok(schemas) = Schemas::from_descriptors(files) else {
            return false;
        };
        self.schemas = schemas;
        self.read_methods();
        true
    }

    fn read_methods(&mut self) {
        let Some(interface) = self.schemas.interface(self.device_type) else {
            return;
        };
        let streams = interface.methods.iter().filter(|it| it.is_stream());
        let (subscribe, by_request): (Vec<_>, Vec<_>) =
            streams.cloned().partition(|it| it.kind == Kind::Subscribe);
        self.has_subscribe = !subscribe.is_empty() || by_request.is_empty();
        self.by_request = by_request;
    }

    /// A client has sent SUBSCRIBE. Drivers whose streams all start by requests do not know it.
    pub fn subscribe(&mut self, client: ClientId) {
        if self.has_subscribe {
            self.listeners.entry(client).or_default().subscribed = true;
        }
    }

    /// A client has sent UNSUBSCRIBE.
    pub fn unsubscribe(&mut self, client: ClientId) {
        self.change(client, |listener| listener.subscribed = false);
    }

    /// A client is gone.
    pub fn remove(&mut self, client: ClientId) {
        self.listeners.remove(&client);
    }

    /// Takes a message that starts, changes or stops a stream. Returns false for other messages.
    pub fn request(&mut self, client: ClientId, message: &Bytes) -> bool {
        let schemas = self.schemas.for_device(Some(self.device_type));
        let mut methods = self.by_request.iter();
        let request = methods.find_map(|method| schemas.stream_request(method, message));
        let Some(request) = request else {
            return false;
        };
        let StreamRequest::Start { period } = request else {
            self.change(client, |listener| listener.request = None);
            return true;
        };
        let sensors = match self.device_type {
            DeviceType::NINEDOF => {
                let message = ninedof::DriverMsg::decode(message.clone());
                message.ok().and_then(|message| message.subscribe_action)
            }
            _ => None,
        };
        let terms = Terms { period, sensors };
        let listener = self.listeners.entry(client).or_default();
        if listener.request.as_ref().is_none_or(|(it, _)| *it != terms) {
            let pacing = Pacing::new(terms.period);
            listener.request = Some((terms, pacing));
        }
        true
    }

    fn change(&mut self, client: ClientId, change: impl FnOnce(&mut Listener)) {
        if let Some(listener) = self.listeners.get_mut(&client) {
            change(listener);
            if !listener.subscribed && listener.request.is_none() {
                self.listeners.remove(&client);
            }
        }
    }

    /// Whether nobody listens.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.listeners.is_empty()
    }

    /// The device has published a message. Returns what to send now.
    pub fn data(&mut self, now: Duration, message: &Bytes) -> Vec<Sent> {
        let is_requested = self.is_requested(message);
        let mut subscribers = Vec::new();
        for (client, listener) in &mut self.listeners {
            if !is_requested && listener.subscribed {
                subscribers.push(client.0);
            }
            if is_requested && let Some((terms, pacing)) = &mut listener.request {
                pacing.offer(terms.part(message));
            }
        }
        let mut sent = Vec::new();
        if !subscribers.is_empty() {
            sent.push((subscribers, message.clone()));
        }
        sent.extend(self.due(now));
        sent
    }

    /// Whether a message belongs to a stream by request.
    fn is_requested(&self, message: &Bytes) -> bool {
        if self.by_request.is_empty() || !self.has_subscribe {
            return !self.has_subscribe;
        }
        let schemas = self.schemas.for_device(Some(self.device_type));
        let Some(values) = schemas.values(message) else {
            return false;
        };
        let mut fields = (self.by_request.iter())
            .flat_map(|method| method.answer.iter().chain(&method.may_answer));
        fields.any(|field| schemas.value_at(&values, &field.path).is_some())
    }

    /// What waited for the period of its client.
    pub fn due(&mut self, now: Duration) -> Vec<Sent> {
        let polled = |(client, listener): (&ClientId, &mut Listener)| {
            let (_, pacing) = listener.request.as_mut()?;
            Some((vec![client.0], pacing.poll(now)?))
        };
        self.listeners.iter_mut().filter_map(polled).collect()
    }

    /// When [`Streams::due`] has something.
    #[must_use]
    pub fn next_due(&self) -> Option<Duration> {
        let requests = self.listeners.values().filter_map(|it| it.request.as_ref());
        requests.filter_map(|(_, pacing)| pacing.next_due()).min()
    }
}

#[cfg(test)]
mod tests {
    use amber_proto::DeviceMessage;

    use super::*;

    const A: ClientId = ClientId(7);
    const B: ClientId = ClientId(8);

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn wants(freq: u32, accel: bool, gyro: bool) -> Bytes {
        let mut message = ninedof::DriverMsg::data();
        message.subscribe_action = Some(ninedof::SubscribeAction {
            freq: Some(freq),
            accel: Some(accel),
            gyro: Some(gyro),
            ..ninedof::SubscribeAction::default()
        });
        message.encode_to_vec().into()
    }

    fn reading(x: i32) -> Bytes {
        let axes = |x_axis| ninedof::AxisData {
            x_axis,
            y_axis: 0,
            z_axis: 0,
        };
        let mut message = ninedof::DriverMsg::data();
        message.ack_num = Some(0);
        message.sensor_data = Some(ninedof::SensorData {
            accel: Some(axes(x)),
            gyro: Some(axes(x)),
            magnet: Some(axes(x)),
            ..ninedof::SensorData::default()
        });
        message.encode_to_vec().into()
    }

    #[test]
    fn each_client_gets_its_sensors_at_its_period() {
        let mut streams = Streams::new(DeviceType::NINEDOF);
        assert!(streams.request(A, &wants(100, true, false)));
        assert!(streams.request(B, &wants(50, true, true)));
        let mut got = Vec::new();
        for at in (0..=200).step_by(50) {
            for (clients, message) in streams.data(ms(at), &reading(at as i32)) {
                let data = ninedof::DriverMsg::decode(message).unwrap();
                let data = data.sensor_data.unwrap();
                assert_eq!(data.gyro.is_some(), clients == [B.0]);
                assert_eq!(data.magnet, None);
                got.push((at, clients[0], data.accel.unwrap().x_axis));
            }
        }
        let of = |client: ClientId| got.iter().filter(move |it| it.1 == client.0);
        assert_eq!(of(B).count(), 5);
        let times: Vec<_> = of(A).map(|it| (it.0, it.2)).collect();
        assert_eq!(times, [(0, 0), (100, 100), (200, 200)]);
        assert!(streams.request(A, &wants(0, false, false)));
        assert!(streams.request(B, &wants(0, true, true)));
        assert!(streams.is_empty() && streams.next_due().is_none());
    }

    #[test]
    fn a_stream_by_request_is_the_newest_message_each_period() {
        let mut devices = 0;
        for interface in amber_reflect::built_in() {
            let mut streams = Streams::new(DeviceType(interface.device_type));
            if streams.has_subscribe {
                continue;
            }
            devices += 1;
            let method = &streams.by_request[0];
            let requests = streams.schemas.whole_stream(method, ms(100)).unwrap();
            // Its drivers need not know SUBSCRIBE.
            streams.subscribe(A);
            assert!(streams.is_empty());
            assert!(streams.request(A, &requests.start.into()));
            let mut got = Vec::new();
            for at in (0..=200).step_by(50) {
                let data = Bytes::from(vec![at as u8]);
                got.extend(streams.data(ms(at), &data));
            }
            let messages: Vec<_> = got.iter().map(|(_, message)| message[0]).collect();
            assert_eq!(messages, [0, 100, 200], "{}", interface.name);
            assert!(streams.request(A, &requests.stop.into()));
            assert!(streams.is_empty());
        }
        assert!(devices > 0);
    }

    #[test]
    fn a_described_device_has_both_kinds_of_streams() {
        let mut streams = Streams::new(DeviceType(201));
        let (start, slow) = (b"\x10\x01\xf2\x06\x02\x08\x01", b"\x10\x01\xfa\x06\x01\x30");
        let (start, slow) = (Bytes::from_static(start), Bytes::from_static(slow));
        // Without a description, this may mean anything.
        assert!(!streams.request(A, &start));
        assert!(!streams.describe(b"not a description"));
        assert!(streams.describe(&described_lamp()));
        assert!(streams.request(A, &start));
        streams.subscribe(B);
        let level = Bytes::from_static(b"\x10\x01\x80\x07\x05");
        assert_eq!(streams.data(ms(0), &level), [(vec![A.0], level)]);
        assert_eq!(streams.data(ms(1), &slow), [(vec![B.0], slow)]);
        streams.unsubscribe(B);
        streams.remove(A);
        assert!(streams.is_empty());
    }

    /// A lamp with the stream `levels` by request (field 112), and the stream `names` by SUBSCRIBE
    /// (field 111).
    fn described_lamp() -> Vec<u8> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("lamp.proto");
        std::fs::write(&file, LAMP).unwrap();
        let schemas = Schemas::with(&[file]).unwrap();
        let own = schemas.for_device(Some(DeviceType(201)));
        own.pool().encode_to_vec()
    }

    const LAMP: &str = r#"syntax = "proto2";
package lamp;
import "drivermsg.proto";
import "interface.proto";
extend amber.DriverMsg {
  optional Watch watch = 110;
  optional string name = 111;
  optional uint32 level = 112;
}
message Watch {
  enum Action { BEGIN = 1; END = 2; }
  required Action action = 1;
}
service Lamp {
  option (amber.device) = { type: 201 name: "lamp" };
  // How bright it is.
  rpc Levels(amber.DriverMsg) returns (stream amber.DriverMsg) {
    option (amber.stream) = {
      request: "watch" data: "level"
      start: { field: "watch.action" value: "BEGIN" } stop: { field: "watch.action" value: "END" }
    };
  }
  // What it is called.
  rpc Names(amber.DriverMsg) returns (stream amber.DriverMsg) {
    option (amber.stream) = { data: "name" };
  }
}
"#;

    #[test]
    fn subscribers_share_a_message() {
        let mut streams = Streams::new(DeviceType::HOKUYO);
        assert!(!streams.request(A, &wants(5, true, true)));
        streams.subscribe(A);
        streams.subscribe(B);
        streams.subscribe(A);
        let scan = Bytes::from_static(b"scan");
        for at in [0, 0] {
            assert_eq!(
                streams.data(ms(at), &scan),
                [(vec![A.0, B.0], scan.clone())]
            );
        }
        streams.unsubscribe(A);
        assert_eq!(streams.data(ms(1), &scan), [(vec![B.0], scan)]);
    }
}
