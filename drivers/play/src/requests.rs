//! The meaning of a request for a device of a recording, from the description of the device. PURE.

use std::collections::BTreeSet;
use std::time::Duration;

use amber_proto::DeviceType;
use amber_record::play;
use amber_reflect::{Schemas, StreamRequest};
use amber_schema::{Field, Kind, Method};
use prost::encoding::{WireType, encode_key};
use prost_reflect::ExtensionDescriptor;
use serde_json::{Map, Value, json};

/// The reason why commands are refused.
pub(crate) const NO_COMMANDS: &str = "this is a recording: it carries out no commands";
/// The reason why a request has no answer.
pub(crate) const NO_ANSWER: &str = "the recording has no answer to this request";

/// The requests of one type of devices.
pub(crate) struct Requests {
    device_type: DeviceType,
    schemas: Schemas,
    methods: Vec<Known>,
}

/// The meaning of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// It requests a value. The number is for [`Requests::value`] and [`Requests::refusal`].
    Ask(Option<usize>),
    Command,
    /// It starts a stream with this period; 0 means every message.
    Start(Duration),
    /// It stops a stream.
    Stop,
}

struct Known {
    method: Method,
    /// The fields that are set to true.
    flags: BTreeSet<u32>,
    /// The fields with arguments.
    arguments: BTreeSet<u32>,
    /// The fields of every answer.
    answer: Vec<u32>,
    /// Further fields of answers.
    may_answer: Vec<u32>,
}

/// The fields of a value that a device may have published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// The name of the first.
    pub(crate) name: String,
    /// The numbers of all that every answer has.
    pub(crate) fields: Vec<u32>,
    /// Those that it may have.
    may_have: Vec<u32>,
    /// Fields that answers repeat.
    prefix: Vec<u8>,
}

impl Requests {
    pub(crate) fn new(schemas: Schemas, device_type: DeviceType) -> Self {
        let interface = schemas.interface(device_type);
        let methods = interface.map_or_else(Vec::new, |interface| interface.methods.clone());
        let own = schemas.for_device(Some(device_type));
        let number = |path: &str| Some(extension(own, path)?.0.number());
        let all = |fields: &[Field]| -> Vec<u32> {
            fields
                .iter()
                .filter_map(|field| number(&field.path))
                .collect()
        };
        let known = methods.into_iter().map(|method| Known {
            flags: method
                .flags
                .iter()
                .filter_map(|flag| number(flag))
                .collect(),
            arguments: all(&method.request).into_iter().collect(),
            answer: all(&method.answer),
            may_answer: all(&method.may_answer),
            method,
        });
        let methods = known.collect();
        Self {
            device_type,
            schemas,
            methods,
        }
    }

    /// Whether the device has streams that start by a request.
    pub(crate) fn has_streams_by_request(&self) -> bool {
        let mut methods = self.methods.iter();
        methods.any(|known| matches!(known.method.kind, Kind::StreamByRequest { .. }))
    }

    /// The fields of messages that go to all subscribers, and not to those who ask for a stream.
    pub(crate) fn published(&self) -> BTreeSet<u32> {
        let fields = |is_it: fn(&Kind) -> bool| {
            let methods = self.methods.iter().filter(move |it| is_it(&it.method.kind));
            methods.flat_map(|it| it.answer.iter().copied())
        };
        let of_streams = |kind: &Kind| matches!(kind, Kind::StreamByRequest { .. });
        let of_streams: BTreeSet<u32> = fields(of_streams).collect();
        let all = fields(|kind| matches!(kind, Kind::Subscribe));
        all.filter(|field| !of_streams.contains(field)).collect()
    }

    /// The meaning of a request.
    pub(crate) fn meaning(&self, message: &[u8]) -> Meaning {
        let fields = play::fields(message).unwrap_or_default();
        let numbers: BTreeSet<u32> = fields.into_iter().map(|(number, _)| number).collect();
        // The method of which the request has most fields.
        let fits = |known: &&(usize, &Known)| {
            let (_, known) = known;
            known.flags.is_subset(&numbers)
                && (!known.flags.is_empty() || !known.arguments.is_disjoint(&numbers))
        };
        let size = |(_, known): &(usize, &Known)| {
            known.flags.len() + known.arguments.intersection(&numbers).count()
        };
        let methods = self.methods.iter().enumerate();
        let Some((index, known)) = methods.filter(|it| fits(&it)).max_by_key(size) else {
            return Meaning::Ask(None);
        };
        match &known.method.kind {
            Kind::Ask { .. } => Meaning::Ask(Some(index)),
            Kind::Tell | Kind::Subscribe => Meaning::Command,
            Kind::StreamByRequest { .. } => {
                let schemas = self.schemas.for_device(Some(self.device_type));
                match schemas.stream_request(&known.method, message) {
                    Some(StreamRequest::Stop) => Meaning::Stop,
                    Some(StreamRequest::Start { period }) => Meaning::Start(period),
                    None => Meaning::Start(Duration::ZERO),
                }
            }
        }
    }

    /// The value that a request without arguments requests, or one for a picture.
    pub(crate) fn value(&self, index: usize) -> Option<Wanted> {
        let known = self.methods.get(index)?;
        let Kind::Ask { repeats_flag, .. } = known.method.kind else {
            return None;
        };
        let needs_nothing = known.arguments.is_empty() && known.method.set.is_empty();
        // The arguments are wishes about size and age: what was recorded is the nearest to them.
        let is_picture = self.device_type == DeviceType::CAMERA && known.method.name == "Picture";
        if !needs_nothing && !is_picture {
            return None;
        }
        let mut prefix = Vec::new();
        for flag in known.flags.iter().filter(|_| repeats_flag) {
            encode_key(*flag, WireType::Varint, &mut prefix);
            prefix.push(1);
        }
        Some(Wanted {
            name: known.method.answer.first()?.name.clone(),
            fields: known.answer.clone(),
            may_have: known.may_answer.clone(),
            prefix,
        })
    }

    /// The fields of an answer that refuses the request, if the device has such answers.
    pub(crate) fn refusal(&self, index: usize, why: &str) -> Option<Vec<u8>> {
        let Kind::Ask {
            refusal: Some(field),
            ..
        } = &self.methods.get(index)?.method.kind
        else {
            return None;
        };
        let value = match &*field.type_name {
            "string" => json!(why),
            "amber.mediator_proto.Refusal" => json!({ "reason": "FAILED", "message": why }),
            // The description names no field for the reason.
            _ => return None,
        };
        let schemas = self.schemas.for_device(Some(self.device_type));
        let (outer, inner) = extension(schemas, &field.path)?;
        let nested = |value: Value, name: &str| json!({ name: value });
        let value = inner
            .rsplit('.')
            .filter(|name| !name.is_empty())
            .fold(value, nested);
        let fields = Map::from_iter([(outer.full_name().to_owned(), value)]);
        let message = self.schemas.encode(self.device_type, &fields);
        play::key(&message.ok()?)
    }
}

impl Wanted {
    /// The fields of an answer with the value that a message has.
    pub(crate) fn answer(&self, message: &[u8]) -> Option<Vec<u8>> {
        let fields = play::fields(message)?.into_iter();
        let own = fields
            .filter(|(number, _)| self.fields.contains(number) || self.may_have.contains(number));
        let mut answer = self.prefix.clone();
        own.for_each(|(_, bytes)| answer.extend_from_slice(bytes));
        Some(answer)
    }
}

/// The outermost field of a path, and the rest of the path.
fn extension<'a>(schemas: &Schemas, path: &'a str) -> Option<(ExtensionDescriptor, &'a str)> {
    let ends = path
        .match_indices('.')
        .map(|(end, _)| end)
        .chain([path.len()]);
    ends.into_iter().find_map(|end| {
        let found = schemas.pool().get_extension_by_name(&path[..end])?;
        Some((found, path[end..].trim_start_matches('.')))
    })
}

#[cfg(test)]
mod tests {
    use amber_proto::{DeviceMessage, collision_avoidance, hokuyo, location, ninedof, roboclaw};
    use prost::Message;

    use super::*;

    fn requests(device_type: DeviceType) -> Requests {
        Requests::new(Schemas::built_in(), device_type)
    }

    #[test]
    fn questions_commands_and_streams_are_told_apart() {
        let roboclaw = requests(DeviceType::ROBOCLAW);
        let mut message = roboclaw::DriverMsg::data();
        message.current_speed_request = Some(true);
        let Meaning::Ask(Some(index)) = roboclaw.meaning(&message.encode_to_vec()) else {
            panic!("not a question")
        };
        assert_eq!(roboclaw.value(index).unwrap().name, "currentSpeed");
        message = roboclaw::DriverMsg::data();
        message.motors_command = Some(roboclaw::MotorsSpeed::default());
        assert_eq!(roboclaw.meaning(&message.encode_to_vec()), Meaning::Command);
        assert_eq!(roboclaw.meaning(b"\x10\x01"), Meaning::Ask(None));
        assert!(!roboclaw.has_streams_by_request());

        let ninedof = requests(DeviceType::NINEDOF);
        assert!(ninedof.has_streams_by_request());
        let mut message = ninedof::DriverMsg::data();
        let start = Meaning::Start(Duration::from_millis(100));
        for (freq, expected) in [(0, Meaning::Stop), (100, start)] {
            message.subscribe_action = Some(ninedof::SubscribeAction {
                freq: Some(freq),
                ..ninedof::SubscribeAction::default()
            });
            assert_eq!(ninedof.meaning(&message.encode_to_vec()), expected);
        }
        message = ninedof::DriverMsg::data();
        message.data_request = Some(ninedof::DataRequest::default());
        let Meaning::Ask(Some(index)) = ninedof.meaning(&message.encode_to_vec()) else {
            panic!("not a question")
        };
        // It has arguments.
        assert_eq!(ninedof.value(index), None);
    }

    #[test]
    fn a_picture_of_any_kind_is_the_recorded_one() {
        use amber_proto::camera::{self, PictureRequest, PictureStream};

        let requests = requests(DeviceType::CAMERA);
        let mut message = camera::DriverMsg::data();
        message.get_picture = Some(PictureRequest {
            max_width: Some(320),
            ..PictureRequest::default()
        });
        let Meaning::Ask(Some(index)) = requests.meaning(&message.encode_to_vec()) else {
            panic!("not a question")
        };
        let wanted = requests.value(index).unwrap();
        assert_eq!((&*wanted.name, &wanted.fields[..]), ("picture", &[261][..]));
        message = camera::DriverMsg::data();
        message.stream_pictures = Some(PictureStream {
            period: Some(200),
            ..PictureStream::default()
        });
        let start = Meaning::Start(Duration::from_millis(200));
        assert_eq!(requests.meaning(&message.encode_to_vec()), start);
        // What it says about itself is for other clients.
        assert_eq!(requests.published(), [265].into());
    }

    #[test]
    fn a_published_value_answers_a_question() {
        let hokuyo = requests(DeviceType::HOKUYO);
        let mut message = hokuyo::DriverMsg::data();
        message.get_single_scan = Some(true);
        let Meaning::Ask(Some(index)) = hokuyo.meaning(&message.encode_to_vec()) else {
            panic!("not a question")
        };
        let wanted = hokuyo.value(index).unwrap();
        assert_eq!((&*wanted.name, &wanted.fields[..]), ("scan", &[41][..]));
        let mut published = hokuyo::DriverMsg::data();
        published.set_ack(Some(amber_proto::SynNum(0)));
        published.scan = Some(hokuyo::Scan::default());
        published.timestamp = Some(5);
        let answer = wanted.answer(&published.encode_to_vec()).unwrap();
        let answer = hokuyo::DriverMsg::decode(&answer[..]).unwrap();
        assert_eq!((answer.timestamp, answer.ack_num), (Some(5), None));
        assert!(answer.scan.is_some());
    }

    #[test]
    fn an_answer_repeats_the_flag_if_the_device_does() {
        let avoidance = requests(DeviceType::COLLISION_AVOIDANCE);
        let mut message = collision_avoidance::DriverMsg::data();
        message.get_scan = Some(true);
        let Meaning::Ask(Some(index)) = avoidance.meaning(&message.encode_to_vec()) else {
            panic!("not a question")
        };
        message.get_scan = None;
        message.scan = Some(collision_avoidance::Scan::default());
        let wanted = avoidance.value(index).unwrap();
        let answer = wanted.answer(&message.encode_to_vec()).unwrap();
        let answer = collision_avoidance::DriverMsg::decode(&answer[..]).unwrap();
        assert_eq!((answer.get_scan, answer.scan.is_some()), (Some(true), true));
    }

    #[test]
    fn a_device_with_refusals_refuses() {
        // The mediator has them. It is never played, but its description is a good example.
        let mediator = requests(DeviceType::MEDIATOR);
        let mut indexes = 0..mediator.methods.len();
        let fields = indexes
            .find_map(|index| mediator.refusal(index, "because"))
            .unwrap();
        let answer = amber_proto::mediator::DriverMsg::decode(&fields[..]).unwrap();
        assert!(format!("{answer:?}").contains("because"));
        let location = requests(DeviceType::LOCATION);
        let mut message = location::DriverMsg::data();
        message.get_map = Some(true);
        let Meaning::Ask(Some(index)) = location.meaning(&message.encode_to_vec()) else {
            panic!("not a question")
        };
        let fields = location.refusal(index, "because").unwrap();
        let answer = location::DriverMsg::decode(&fields[..]).unwrap();
        assert_eq!(answer.map_refused.as_deref(), Some("because"));
    }

    #[test]
    fn every_request_of_every_device_is_understood() {
        for interface in amber_reflect::built_in() {
            let requests = requests(DeviceType(interface.device_type));
            for known in &requests.methods {
                let is_known = !known.flags.is_empty() || !known.arguments.is_empty();
                let needs = !matches!(known.method.kind, Kind::Subscribe);
                assert!(
                    is_known || !needs,
                    "{} {}",
                    interface.name,
                    known.method.name
                );
            }
        }
    }
}
