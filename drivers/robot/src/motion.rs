//! Motion in messages for Amber's devices, by their descriptions. PURE.
//!
//! A client of a gateway may send messages to a device as they are. Those that move wheels must
//! obey the rules for motion like any other command, so they are recognised here.

use std::sync::LazyLock;

use amber_proto::{Device, DeviceType};
use amber_reflect::{Motion as Moved, Schemas};
use amber_schema::{Interface, Method};
use amber_values::WheelSpeeds;
use bytes::{Buf, Bytes, BytesMut};
use prost::encoding::{DecodeContext, decode_key, encode_key, skip_field};
use serde_json::{Map, Value};

use crate::errand::Errand;

/// Fields that ask for nothing: number and type of the message, `joins` of a client that joins pieces,
/// `want_outcome` and `max_answer_bytes` of `proto/mediator.proto`, `valid_ms` and `for_client` of
/// `proto/motion.proto`.
const NO_REQUESTS: [u32; 10] = [1, 2, 3, 4, 5, 9, 186, 189, 197, 199];

/// The motion in a message.
#[derive(Clone, Debug, PartialEq)]
pub enum Motion {
    /// Nothing.
    None,
    /// Wheels. The second part is the message without these speeds, if it has other requests.
    Wheels(WheelSpeeds, Option<Bytes>),
    /// It begins or changes an errand.
    Begin(Errand),
    /// It ends an errand.
    End(Errand),
}

/// The message cannot be read, and its device moves wheels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid message")]
pub struct Unreadable;

/// The motion in a message. `wheels` is a device that takes the commands of a Roboclaw, whatever
/// its type.
///
/// # Errors
/// The message cannot be read.
pub fn of(device: Device, wheels: Device, message: &Bytes) -> Result<Motion, Unreadable> {
    let own = interface(device.device_type);
    let as_wheels = || (device == wheels).then(|| interface(DeviceType::ROBOCLAW))?;
    let Some(interface) = own.filter(|it| it.moves()).or_else(as_wheels) else {
        return Ok(Motion::None);
    };
    let values = SCHEMAS.values(message).ok_or(Unreadable)?;
    let moved = SCHEMAS.motion(interface, message);
    let is_errand = |method: &Method| method.moves.as_ref().is_some_and(|it| it.errand);
    let has_errands = interface.methods.iter().any(is_errand);
    match (moved, has_errands) {
        (Moved::Nothing, _) => Ok(Motion::None),
        (Moved::Stops, true) => Ok(Motion::End(Errand::of(device))),
        (Moved::Moves | Moved::Errand, true) => Ok(Motion::Begin(Errand::of(device))),
        (_, false) => of_wheels(interface, &values, message),
    }
}

/// Whether a message moves something of a device, of any kind, such as a servo. Users' own devices are
/// unknown here.
#[must_use]
pub fn moves(device: Device, message: &[u8]) -> bool {
    let moved = |interface| SCHEMAS.motion(interface, message);
    interface(device.device_type).map(moved) > Some(Moved::Stops)
}

static SCHEMAS: LazyLock<Schemas> = LazyLock::new(Schemas::built_in);

fn interface(device_type: DeviceType) -> Option<&'static Interface> {
    let mut all = amber_reflect::built_in().iter();
    all.find(|interface| interface.device_type == device_type.0)
}

/// The speeds of the first request that sets them. Things that move, but are no wheels, such as
/// servos, are left to their driver.
fn of_wheels(
    interface: &Interface,
    values: &Map<String, Value>,
    message: &Bytes,
) -> Result<Motion, Unreadable> {
    let moving = interface.methods.iter().filter(|it| it.moves.is_some());
    let (mut speeds, mut numbers) = (None, Vec::new());
    for method in moving {
        let Some(found) = speeds_of(method, values) else {
            continue;
        };
        speeds.get_or_insert(found);
        let paths = method.request.iter().map(|field| &field.path);
        let extensions = paths.chain(&method.flags).filter_map(|path| {
            let pool = SCHEMAS.pool();
            pool.get_extension_by_name(path)
        });
        numbers.extend(extensions.map(|extension| extension.number()));
    }
    match speeds {
        None => Ok(Motion::None),
        Some(speeds) => {
            let rest = without(message, |number| numbers.contains(&number))?;
            Ok(Motion::Wheels(speeds, rest))
        }
    }
}

/// The speeds in a request, if it is one for wheels.
fn speeds_of(method: &Method, values: &Map<String, Value>) -> Option<WheelSpeeds> {
    let has = |path: &String| SCHEMAS.value_at(values, path).is_some();
    let [field] = &method.request[..] else {
        return None;
    };
    let is_wheels = field.value.as_deref() == Some("WheelSpeeds");
    if !is_wheels || !has(&field.path) || !method.flags.iter().all(has) {
        return None;
    }
    let speed = |wheel: &str| {
        let path = format!("{}.{wheel}", field.path);
        let speed = SCHEMAS.value_at(values, &path).and_then(Value::as_i64);
        i32::try_from(speed.unwrap_or_default()).unwrap_or_default()
    };
    Some(WheelSpeeds {
        front_left_mm_s: speed("frontLeftSpeed"),
        front_right_mm_s: speed("frontRightSpeed"),
        rear_left_mm_s: speed("rearLeftSpeed"),
        rear_right_mm_s: speed("rearRightSpeed"),
    })
}

/// The message without some of its fields; `None` if no request is left.
fn without(message: &Bytes, drop: impl Fn(u32) -> bool) -> Result<Option<Bytes>, Unreadable> {
    let (mut rest, mut kept) = (message.clone(), BytesMut::new());
    let mut has_request = false;
    while rest.has_remaining() {
        let (tag, kind) = decode_key(&mut rest).map_err(|_| Unreadable)?;
        let mut value = rest.clone();
        skip_field(kind, tag, &mut rest, DecodeContext::default()).map_err(|_| Unreadable)?;
        if !drop(tag) {
            value.truncate(value.len() - rest.len());
            encode_key(tag, kind, &mut kept);
            kept.extend_from_slice(&value);
            has_request |= !NO_REQUESTS.contains(&tag);
        }
    }
    Ok(has_request.then(|| kept.freeze()))
}

#[cfg(test)]
mod tests {
    use amber_proto::pieces::Ability;
    use amber_proto::{
        DeviceMessage, MsgType, collision_avoidance, drive_to_point, mediator,
        pid_follow_trajectory, roboclaw,
    };
    use prost::Message;

    use super::*;
    use crate::errand::stop_trajectory;

    fn unhex(text: &str) -> Vec<u8> {
        let digits: Vec<char> = text.chars().filter(|c| !c.is_whitespace()).collect();
        let pairs = digits.chunks(2).map(|pair| pair.iter().collect::<String>());
        pairs
            .map(|pair| u8::from_str_radix(&pair, 16).unwrap())
            .collect()
    }

    const WHEELS: Device = Device::new(DeviceType::ROBOCLAW, 0);
    const GUARDED: Device = Device::new(DeviceType::COLLISION_AVOIDANCE, 0);

    fn motion(device: Device, message: &impl Message) -> Result<Motion, Unreadable> {
        of(device, WHEELS, &message.encode_to_vec().into())
    }

    fn speeds() -> WheelSpeeds {
        WheelSpeeds::sides(-100, 250)
    }

    fn command() -> roboclaw::DriverMsg {
        let mut message = roboclaw::DriverMsg::data();
        message.motors_command = Some(speeds().into());
        message
    }

    #[test]
    fn wheel_speeds_are_found_on_all_devices_that_take_them() {
        let wheels = Ok(Motion::Wheels(speeds(), None));
        let lamp: Device = "111:3".parse().unwrap();
        assert_eq!(motion(WHEELS, &command()), wheels);
        assert_eq!(motion(GUARDED, &command()), wheels);
        assert_eq!(motion(lamp, &command()), Ok(Motion::None));
        let as_wheels = of(lamp, lamp, &command().encode_to_vec().into());
        assert_eq!(as_wheels, wheels);

        let mut guarded = collision_avoidance::DriverMsg::data();
        guarded.motors_speed = Some(speeds().into());
        assert_eq!(motion(GUARDED, &guarded), Ok(Motion::None));
        guarded.set_speed = Some(true);
        assert_eq!(motion(GUARDED, &guarded), wheels);
        assert_eq!(motion(WHEELS, &guarded), Ok(Motion::None));
    }

    #[test]
    fn requests_of_the_same_message_are_left() {
        let mut both = command();
        both.syn_num = Some(7);
        both.current_speed_request = Some(true);
        let Ok(Motion::Wheels(found, Some(rest))) = motion(WHEELS, &both) else {
            panic!("no rest");
        };
        both.motors_command = None;
        assert_eq!(found, speeds());
        assert_eq!(roboclaw::DriverMsg::decode(rest).unwrap(), both);
    }

    #[test]
    fn how_a_command_is_sent_is_no_request() {
        let mut bytes = command().encode_to_vec();
        let asks = mediator::DriverMsg {
            want_outcome: Some(true),
            max_answer_bytes: Some(1200),
            ..mediator::DriverMsg::default()
        };
        let lasts = amber_proto::motion::DriverMsg {
            valid_ms: Some(500),
            for_client: Some(3),
            ..Default::default()
        };
        bytes.extend(asks.encode_to_vec());
        bytes.extend(lasts.encode_to_vec());
        bytes.extend(Ability::of_client(true).to_append());
        let found = of(WHEELS, WHEELS, &bytes.clone().into());
        assert_eq!(found, Ok(Motion::Wheels(speeds(), None)));
        // A request for the lease is one.
        let lease = amber_proto::motion::DriverMsg {
            lease_request: Some(amber_proto::motion::LeaseRequest::default()),
            ..Default::default()
        };
        bytes.extend(lease.encode_to_vec());
        let found = of(WHEELS, WHEELS, &bytes.into());
        assert!(matches!(found, Ok(Motion::Wheels(_, Some(_)))), "{found:?}");
    }

    #[test]
    fn subscriptions_and_pings_move_nothing() {
        for kind in [MsgType::Subscribe, MsgType::Ping, MsgType::ClientDied] {
            let mut message = command();
            message.r#type = Some(kind.into());
            assert_eq!(motion(WHEELS, &message), Ok(Motion::None), "{kind:?}");
        }
        let mut without_type = command();
        without_type.r#type = None;
        assert!(matches!(
            motion(WHEELS, &without_type),
            Ok(Motion::Wheels(..))
        ));
    }

    #[test]
    fn targets_and_trajectories_are_errands() {
        let device = Device::new(DeviceType::DRIVE_TO_POINT, 0);
        let errand = Errand::Targets(device);
        let mut message = drive_to_point::DriverMsg::data();
        message.get_progress = Some(true);
        assert_eq!(motion(device, &message), Ok(Motion::None));
        message.set_targets = Some(true);
        assert_eq!(motion(device, &message), Ok(Motion::End(errand)));
        message.targets = Some(drive_to_point::Targets {
            longitudes: vec![1.0],
            latitudes: vec![1.0],
            radiuses: vec![1.0],
        });
        assert_eq!(motion(device, &message), Ok(Motion::Begin(errand)));
        let mut order = drive_to_point::DriverMsg::data();
        order.order_id = Some(5);
        assert_eq!(motion(device, &order), Ok(Motion::None));
        order.go = Some(drive_to_point::Go::default());
        assert_eq!(motion(device, &order), Ok(Motion::Begin(errand)));

        let device = Device::new(DeviceType::PID_FOLLOW_TRAJECTORY, 0);
        let errand = Errand::Trajectory(device);
        let mut message = pid_follow_trajectory::DriverMsg::data();
        message.set_targets = Some(true);
        assert_eq!(motion(device, &message), Ok(Motion::None));
        message.step_execution = Some(true);
        assert_eq!(motion(device, &message), Ok(Motion::Begin(errand)));
        let mut order = pid_follow_trajectory::DriverMsg::data();
        order.follow = Some(pid_follow_trajectory::Follow::default());
        assert_eq!(motion(device, &order), Ok(Motion::Begin(errand)));
        let stop = of(device, WHEELS, &stop_trajectory());
        assert_eq!(stop, Ok(Motion::End(errand)));
    }

    #[test]
    fn servos_move_too_but_are_no_wheels() {
        let servos: Device = "maestro:0".parse().unwrap();
        let mut message = amber_proto::maestro::DriverMsg::data();
        assert!(!moves(servos, &message.encode_to_vec()));
        message.set_angle_command = Some(amber_proto::maestro::SetAngleCommand {
            servo_address: 1,
            angle: 45,
        });
        assert!(moves(servos, &message.encode_to_vec()));
        assert_eq!(motion(servos, &message), Ok(Motion::None));
        assert!(moves(WHEELS, &command().encode_to_vec()));
    }

    #[test]
    fn what_cannot_be_read_does_not_reach_wheels() {
        for bytes in ["ff", "a20105", "a2010208"] {
            let bytes = Bytes::from(unhex(bytes));
            assert_eq!(of(WHEELS, WHEELS, &bytes), Err(Unreadable));
            assert_eq!(of(GUARDED, WHEELS, &bytes), Err(Unreadable));
            let scanner = Device::new(DeviceType::HOKUYO, 0);
            assert_eq!(of(scanner, WHEELS, &bytes), Ok(Motion::None));
        }
    }
}
