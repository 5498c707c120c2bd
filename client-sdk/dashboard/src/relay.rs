//! What may pass between a page that is a client of the mediator itself and its socket there. PURE.
//!
//! The page sends frames as other clients do over UDP, each after the time on its clock. A view-only
//! page may only read. Motions that the network has delayed are not passed on, and a page that has
//! moved something and falls silent leaves the mediator: the drivers then stop its motions.
//!
//! Which requests read and which move something is in the descriptions. A page that uses a user's own
//! device asks the mediator for its description first, so the relay sees the answer, too.

use std::collections::{BTreeSet, VecDeque};
use std::sync::LazyLock;
use std::time::Duration;

use amber_proto::mediator::reply::What;
use amber_proto::mediator::{self, Reply};
use amber_proto::prost::Message;
use amber_proto::prost::encoding::{DecodeContext, decode_key, skip_field};
use amber_proto::{Device, DeviceType, DriverHdr, Packet, motion};
use amber_reflect::{Motion, Schemas};
use amber_robot::bucket::Bucket;
use amber_robot::lag::Lag;
use amber_schema::{Harmless, Interface};
use amber_web::Role;
use bytes::{Buf, Bytes};
use serde_json::{Map, Value, json};

use crate::limits::{FRAME_RATE, MAX_DESCRIPTIONS, MAX_USED_DEVICES, MOTION_LAG};

/// The bytes before each frame: the time on the clock of the page in ms, as a double, little-endian.
const STAMP_BYTES: usize = 8;

/// The message CLIENT_DIED.
const FAREWELL: [u8; 2] = [0x10, 4];

/// Fields of a request that ask for nothing that a view-only page may not have: type and numbers,
/// `missing`, `receipt` and `joins` of pieces, `want_outcome`, `max_answer_bytes`, `get_motion_state`.
const BASE_FIELDS: [u32; 10] = [2, 3, 4, 5, 7, 8, 9, 186, 198, 199];

/// What a view-only page may ask the mediator: about drivers, but not about clients and processes.
const MEDIATOR_READS: [&str; 6] = [
    "ListDrivers",
    "DescribeDriver",
    "GetDescription",
    "Statistics",
    "ExplainCounters",
    "ReadLog",
];

static SCHEMAS: LazyLock<Schemas> = LazyLock::new(Schemas::built_in);

/// The state of one page.
#[derive(Debug)]
pub struct Relay {
    role: Role,
    lag: Lag,
    frames: Bucket,
    own: OwnDevices,
    /// The devices that know this client.
    used: BTreeSet<(i32, i32)>,
    has_moved: bool,
    /// The client has left because the page was silent.
    has_left: bool,
    counts: Counts,
}

/// What has become of the frames of a page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub passed: u64,
    /// Not frames of a client.
    pub malformed: u64,
    /// Above the rate.
    pub excess: u64,
    /// Motions that the network has delayed.
    pub late: u64,
    /// A view-only page may not send them, or the page uses too many devices.
    pub refused: u64,
}

/// What to do with a frame of a page.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// Send it to the mediator.
    Pass(Packet),
    /// Nothing, as a network does.
    Drop,
    /// Tell the page why the request has no effect.
    Refuse(Refused),
}

/// A request that is not passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    pub device: Device,
    /// The number that the page has given it; 0 without one.
    pub number: u32,
    pub why: &'static str,
}

impl Relay {
    /// For a page that may do this. `at_ms` is the time on its clock.
    #[must_use]
    pub fn new(role: Role, now: Duration, at_ms: Option<f64>) -> Self {
        let mut lag = Lag::default();
        if let Some(at_ms) = at_ms {
            lag.arrived(now, nanoseconds(at_ms));
        }
        Self {
            role,
            lag,
            frames: Bucket::new(FRAME_RATE),
            own: OwnDevices::default(),
            used: BTreeSet::new(),
            has_moved: false,
            has_left: false,
            counts: Counts::default(),
        }
    }

    /// The page has sent this: the time on its clock, and a frame.
    pub fn said(&mut self, now: Duration, bytes: &Bytes) -> Verdict {
        let Some((late, device, message)) = self.read(now, bytes) else {
            self.counts.malformed += 1;
            return Verdict::Drop;
        };
        let (schemas, interface) = self.own.schemas(device.device_type);
        let Some(values) = schemas.values(&message) else {
            self.counts.malformed += 1;
            return Verdict::Drop;
        };
        let is_data = is_type(&values, "DATA");
        let motion = interface.map_or(Motion::Nothing, |it| schemas.motion(it, &message));
        let halt = halt_of(&message);
        let stops = motion == Motion::Stops || halt == Some(true);
        // A stop always passes.
        if !stops && !self.frames.take(now) {
            self.counts.excess += 1;
            return Verdict::Drop;
        }
        let refused = |why| {
            let number = values.get("synNum").and_then(Value::as_u64).unwrap_or(0);
            Verdict::Refuse(Refused {
                device,
                number: u32::try_from(number).unwrap_or(0),
                why,
            })
        };
        let may_read = || only_reads(schemas, interface, device, &message, &values);
        if self.role == Role::Look && is_data && !may_read() {
            self.counts.refused += 1;
            return refused("this page is view-only");
        }
        // The release of a halt lets others move.
        if late > MOTION_LAG && (motion > Motion::Stops || halt == Some(false)) {
            self.counts.late += 1;
            return refused("the network delays this page: its old commands are dropped");
        }
        let key = (device.device_type.0, device.id.0);
        if is_type(&values, "CLIENT_DIED") {
            self.used.remove(&key);
        } else if device != Device::MEDIATOR && !self.used.contains(&key) {
            if self.used.len() >= MAX_USED_DEVICES {
                self.counts.refused += 1;
                return refused("this page uses too many devices");
            }
            self.used.insert(key);
        }
        // Requests to unknown devices may move something.
        self.has_moved |= is_data && (motion > Motion::Stops || interface.is_none());
        self.counts.passed += 1;
        Verdict::Pass(packet(device, message))
    }

    /// The mediator or a device has sent this. Returns what the page gets.
    pub fn answered(&mut self, mut packet: Packet) -> Packet {
        let Packet { header, message } = &packet;
        if (header.device_type(), header.device_id()) != (0, 0) {
            return packet;
        }
        let Ok(mut told) = mediator::DriverMsg::decode(message.clone()) else {
            return packet;
        };
        match &mut told.reply {
            Some(Reply {
                what: Some(What::Description(found)),
            }) => self.own.learn(&found.files),
            // A command line may contain secrets.
            Some(Reply {
                what: Some(What::Driver(driver)),
            }) if self.role == Role::Look => {
                driver.command.clear();
                packet.message = told.encode_to_vec().into();
            }
            _ => {}
        }
        packet
    }

    /// The page has not answered for a while. Returns what to send, if it has moved something.
    pub fn silent(&mut self) -> Vec<Packet> {
        if !self.has_moved {
            return Vec::new();
        }
        self.has_moved = false;
        self.has_left = true;
        self.gone()
    }

    /// The page is there. Returns whether the client has left in the meantime: the page must announce
    /// itself and subscribe again.
    pub fn heard(&mut self) -> bool {
        std::mem::take(&mut self.has_left)
    }

    /// The page is gone. Returns what to send.
    pub fn gone(&mut self) -> Vec<Packet> {
        let used = std::mem::take(&mut self.used).into_iter();
        let devices = used.map(|(device_type, id)| Device::new(DeviceType(device_type), id));
        let all = devices.chain([Device::MEDIATOR]);
        all.map(|device| packet(device, Bytes::from_static(&FAREWELL)))
            .collect()
    }

    /// What has become of the frames so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// How late a frame is, the device, and the message; `None` if it is not one of a client.
    fn read(&mut self, now: Duration, bytes: &Bytes) -> Option<(Duration, Device, Bytes)> {
        let mut stamp = bytes.get(..STAMP_BYTES)?;
        let at_ms = stamp.get_f64_le();
        let datagram = bytes.slice(STAMP_BYTES..);
        let Packet { header, message } = Packet::from_datagram(&datagram).ok()?;
        if !header.client_ids.is_empty() || !at_ms.is_finite() {
            return None;
        }
        let device_type = DeviceType(header.device_type());
        let device = Device::new(device_type, header.device_id());
        Some((self.lag.arrived(now, nanoseconds(at_ms)), device, message))
    }
}

/// The descriptions of users' own devices that a page has asked for.
#[derive(Debug, Default)]
struct OwnDevices(VecDeque<(Bytes, Schemas)>);

impl OwnDevices {
    /// Takes a description from the mediator. One that is invalid has no effect: requests to the device
    /// then count as requests to an unknown one.
    fn learn(&mut self, files: &Bytes) {
        if self.0.iter().any(|(known, _)| known == files) {
            return;
        }
        let Ok(schemas) = Schemas::from_descriptors(files) else {
            return;
        };
        // Its driver may have another description now.
        self.0.push_front((files.clone(), schemas));
        self.0.truncate(MAX_DESCRIPTIONS);
    }

    /// The schemas for the messages of a device, and its description.
    fn schemas(&self, device_type: DeviceType) -> (&Schemas, Option<&Interface>) {
        // Nobody describes Amber's devices anew.
        if let Some(known) = SCHEMAS.interface(device_type) {
            return (&*SCHEMAS, Some(known));
        }
        let mut own = self.0.iter().map(|(_, schemas)| schemas);
        let found = own.find_map(|it| Some((it, it.interface(device_type)?)));
        found.map_or((&*SCHEMAS, None), |(schemas, interface)| {
            (schemas.for_device(Some(device_type)), Some(interface))
        })
    }
}

/// What a page is told about a request that is not passed on.
#[must_use]
pub fn refusal(refused: Refused) -> Value {
    let Refused {
        device,
        number,
        why,
    } = refused;
    json!({
        "t": "refused", "type": device.device_type.0, "id": device.id.0, "number": number, "text": why,
    })
}

fn packet(device: Device, message: Bytes) -> Packet {
    let header = DriverHdr {
        device_type: Some(device.device_type.0),
        device_id: Some(device.id.0),
        ..DriverHdr::default()
    };
    Packet { header, message }
}

/// Casts from floating point saturate.
fn nanoseconds(ms: f64) -> u64 {
    (ms * 1e6) as u64
}

fn is_type(values: &Map<String, Value>, name: &str) -> bool {
    match values.get("type") {
        Some(given) => given.as_str() == Some(name),
        None => name == "DATA",
    }
}

/// Whether a request halts its device, or releases the halt; `None` if it does neither.
fn halt_of(message: &Bytes) -> Option<bool> {
    let asked = motion::DriverMsg::decode(message.clone()).ok()?;
    asked.halt_request.map(|it| it.halt)
}

/// Whether a request changes nothing, by the description.
fn only_reads(
    schemas: &Schemas,
    interface: Option<&Interface>,
    device: Device,
    message: &Bytes,
    values: &Map<String, Value>,
) -> bool {
    let methods = interface.into_iter().flat_map(|it| &it.methods);
    let reading = methods.filter(|method| {
        let may = device != Device::MEDIATOR || MEDIATOR_READS.contains(&method.name.as_str());
        may && method.harmless == Harmless::Any && schemas.holds(values, &method.set)
    });
    let fields = |method| {
        let method: &amber_schema::Method = method;
        let requests = method.request.iter().map(|field| field.path.as_str());
        requests.chain(method.flags.iter().map(String::as_str))
    };
    let paths: Vec<_> = reading.flat_map(fields).collect();
    let Some(numbers) = numbers(message) else {
        return false;
    };
    numbers.iter().all(|number| {
        if BASE_FIELDS.contains(number) {
            return true;
        }
        let message = schemas.pool().get_message_by_name("amber.DriverMsg");
        let extension = message.and_then(|it| it.get_extension(*number));
        extension.is_some_and(|it| {
            let value = values.get(it.name()).unwrap_or(&Value::Null);
            is_covered(it.full_name(), value, &paths)
        })
    })
}

/// Whether these paths have all that a field contains.
fn is_covered(path: &str, value: &Value, paths: &[&str]) -> bool {
    if paths.contains(&path) {
        return true;
    }
    let inside = |(name, value): (&String, &Value)| {
        let path = format!("{path}.{name}");
        is_covered(&path, value, paths)
    };
    let fields = value.as_object().filter(|fields| !fields.is_empty());
    fields.is_some_and(|fields| fields.iter().all(inside))
}

/// The numbers of the fields of a message; `None` if it is not one.
fn numbers(message: &Bytes) -> Option<Vec<u32>> {
    let mut rest = message.clone();
    let mut numbers = Vec::new();
    while rest.has_remaining() {
        let (number, wire_type) = decode_key(&mut rest).ok()?;
        skip_field(wire_type, number, &mut rest, DecodeContext::default()).ok()?;
        numbers.push(number);
    }
    Some(numbers)
}

#[cfg(test)]
mod tests;
