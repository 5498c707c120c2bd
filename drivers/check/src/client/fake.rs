//! Devices of the test mediator, which answer immediately according to their descriptions. PURE.

use std::collections::BTreeMap;

use amber_proto::Device;
use amber_reflect::Schemas;
use amber_schema::{Field, Interface, Kind, Method};
use serde_json::{Map, Value};

use crate::{devices, plausible, sample};

/// The state of all of them.
#[derive(Clone, Debug)]
pub(super) struct Fakes {
    schemas: Schemas,
    /// Messages that a user's own devices answer and publish.
    own: Vec<(Device, Vec<u8>)>,
    /// The values that commands have set, by the paths of the fields. A device answers with them.
    told: BTreeMap<(Device, String), (String, Value)>,
    answered: u32,
    published: u32,
}

/// The reaction of a device to a DATA message.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Reaction {
    Nothing,
    /// The answer, without its number.
    Answer(Vec<u8>),
    Start(Stream),
    Stop(Stream),
}

/// The data published to a client: the streams by SUBSCRIBE, or the stream with this name.
pub(super) type Stream = Option<String>;

impl Fakes {
    /// Devices of these schemas, and those of Amber.
    pub(super) fn new(schemas: Schemas, own: Vec<(Device, Vec<u8>)>) -> Self {
        Self {
            schemas,
            own,
            told: BTreeMap::new(),
            answered: 0,
            published: 0,
        }
    }

    /// Whether the device exists.
    pub(super) fn serves(&self, device: Device) -> bool {
        self.own_message(device).is_some() || self.interface(device).is_some()
    }

    /// Takes a DATA message.
    pub(super) fn data(&mut self, device: Device, message: &[u8]) -> Reaction {
        if let Some(answer) = self.own_message(device) {
            return Reaction::Answer(answer);
        }
        let schemas = self.schemas.for_device(Some(device.device_type));
        let Some(interface) = self.interface(device) else {
            return Reaction::Nothing;
        };
        let Some((method, values)) = schemas.requested(interface, message) else {
            return Reaction::Nothing;
        };
        match &method.kind {
            Kind::Subscribe => Reaction::Nothing,
            Kind::Tell => {
                let fields = method.request.iter();
                let told: Vec<_> = fields
                    .filter_map(|field| {
                        let value = schemas.value_at(&values, &field.path)?.clone();
                        let key = (device, field.path.clone());
                        Some((key, (field.type_name.clone(), value)))
                    })
                    .collect();
                self.told.extend(told);
                Reaction::Nothing
            }
            Kind::Ask { .. } => {
                let answer = self.message(device, method, self.answered + 1);
                self.answered += 1;
                answer.map_or(Reaction::Nothing, Reaction::Answer)
            }
            Kind::StreamByRequest { stop, .. } => {
                let stream = Some(method.name.clone());
                match schemas.holds(&values, stop) {
                    true => Reaction::Stop(stream),
                    false => Reaction::Start(stream),
                }
            }
        }
    }

    /// The next publication of a device. A user's own device publishes its answer.
    pub(super) fn publication(&mut self, device: Device, stream: &Stream) -> Option<Vec<u8>> {
        if let Some(answer) = self.own_message(device) {
            return Some(answer);
        }
        let interface = self.interface(device)?;
        let streams = match stream {
            None => plausible::streams(interface),
            Some(name) => vec![interface.method(name)?],
        };
        // Several streams take turns.
        let turn = (self.published as usize).checked_rem(streams.len())?;
        let published = self.message(device, streams[turn], self.published + 1);
        self.published += 1;
        published
    }

    fn own_message(&self, device: Device) -> Option<Vec<u8>> {
        let own = self.own.iter().find(|(own, _)| *own == device);
        own.map(|(_, message)| message.clone())
    }

    fn interface(&self, device: Device) -> Option<&Interface> {
        devices::interface(&self.schemas, device.device_type)
    }

    /// The answer to a request, or published data.
    fn message(&self, device: Device, method: &Method, number: u32) -> Option<Vec<u8>> {
        let schemas = self.schemas.for_device(Some(device.device_type));
        let is_ask = matches!(method.kind, Kind::Ask { .. });
        let mut message = Map::new();
        if let Kind::Ask {
            repeats_flag: true, ..
        } = method.kind
        {
            for flag in &method.flags {
                sample::put(schemas, &mut message, flag, true.into());
            }
        }
        for field in method.answer.iter().chain(&method.may_answer) {
            let value = match self.told(device, field).filter(|_| is_ask) {
                Some(told) => told.clone(),
                None => sample::value(field, number),
            };
            sample::put(schemas, &mut message, &field.path, value);
        }
        schemas.encode(device.device_type, &message).ok()
    }

    /// The value that a command has set: this field, or another one with the same type of message.
    fn told(&self, device: Device, field: &Field) -> Option<&Value> {
        let key = (device, field.path.clone());
        let same = || {
            let is_same = |((of, _), (type_name, _)): &(&(Device, String), &(String, Value))| {
                *of == device && *type_name == field.type_name
            };
            field.is_message().then(|| self.told.iter().find(is_same))?
        };
        let found = self.told.get_key_value(&key).or_else(same);
        found.map(|(_, (_, value))| value)
    }
}

#[cfg(test)]
mod tests {
    use amber_proto::DeviceType;

    use super::*;
    use crate::devices::Answer;

    #[test]
    fn a_users_own_device_answers_and_publishes_the_same() {
        let own = Device::new(DeviceType(201), 0);
        let message = b"\x10\x01\xf0\x06\x01".to_vec();
        let mut fakes = Fakes::new(Schemas::built_in(), vec![(own, message.clone())]);
        assert!(fakes.serves(own));
        assert_eq!(
            fakes.data(own, b"\x10\x01"),
            Reaction::Answer(message.clone())
        );
        assert_eq!(fakes.publication(own, &None), Some(message));
        let other = Device::new(DeviceType(201), 1);
        assert!(!fakes.serves(other));
        assert_eq!(fakes.publication(other, &None), None);
    }

    #[test]
    fn every_request_and_stream_of_every_device_has_plausible_data() {
        let mut fakes = Fakes::new(Schemas::built_in(), vec![]);
        let schemas = Schemas::built_in();
        for interface in amber_reflect::built_in() {
            let device = Device::new(DeviceType(interface.device_type), 0);
            assert_eq!(
                fakes.serves(device),
                device.device_type != DeviceType::MEDIATOR
            );
            if !fakes.serves(device) {
                continue;
            }
            let fits = |method: &Method, message: &[u8]| {
                let values = plausible::values(&schemas, message).unwrap();
                let (_, missing) = plausible::required(method, &schemas, &values);
                let name = &method.name;
                assert!(missing.is_empty(), "{} {name}: {missing:?}", interface.name);
                let ranges = plausible::ranges(interface, &schemas, &values);
                assert_eq!(ranges, Ok(()), "{} {name}", interface.name);
            };
            for ask in devices::asks(interface, &schemas) {
                match (&ask.answer, fakes.data(device, &ask.message)) {
                    (Answer::Of(method), Reaction::Answer(answer)) => fits(method, &answer),
                    (Answer::Nothing, Reaction::Nothing | Reaction::Stop(_)) => {}
                    other => panic!("{} {}: {other:?}", interface.name, ask.name),
                }
            }
            for method in interface.methods.iter().filter(|method| method.is_stream()) {
                let stream = Some(method.name.clone());
                fits(method, &fakes.publication(device, &stream).unwrap());
            }
            let publishes = interface.methods.iter().any(Method::is_stream);
            assert_eq!(fakes.publication(device, &None).is_some(), publishes);
        }
    }

    #[test]
    fn a_device_answers_what_commands_have_set() {
        let mut fakes = Fakes::new(Schemas::built_in(), vec![]);
        let schemas = Schemas::built_in();
        let mut data = |device: &str, fields: &str| {
            let device = Device::new(device.parse().unwrap(), 0);
            let message = amber_reflect::read_fields(device.device_type, [fields], &schemas);
            fakes.data(device, &message.unwrap())
        };
        for (name, command, request, expected) in [
            (
                "dummy",
                "message=hi",
                "get_status=true",
                "enable: true  message: \"hi\"",
            ),
            (
                "roboclaw",
                "motorsCommand={\"frontLeftSpeed\": 7}",
                "currentSpeedRequest=true",
                "currentSpeed: { frontLeftSpeed: 7 }",
            ),
        ] {
            assert_eq!(data(name, command), Reaction::Nothing);
            let Reaction::Answer(answer) = data(name, request) else {
                panic!("{name} {request}");
            };
            let answer = Schemas::built_in().brief_message(&answer);
            assert_eq!(answer, format!("DATA  {expected}"));
        }
    }
}
