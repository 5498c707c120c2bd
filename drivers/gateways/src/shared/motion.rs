//! Motion in messages for Amber's devices. PURE.
//!
//! A client of a gateway may send messages to a device as they are. Those that move wheels must
//! obey the rules for motion like any other command, so they are recognised here.

use amber_proto::{Device, DeviceMessage, DeviceType, MsgType};
use amber_proto::{collision_avoidance, drive_to_point, pid_follow_trajectory, roboclaw};
use amber_values::WheelSpeeds;
use bytes::{Buf, Bytes, BytesMut};
use prost::Message;
use prost::encoding::{DecodeContext, decode_key, encode_key, skip_field};

use super::helm::Errand;

/// The numbers of fields that move wheels.
const MOTORS_COMMAND: u32 = 20;
const SET_SPEED: u32 = 90;
const MOTORS_SPEED: u32 = 94;
/// Higher numbers are requests and data; lower ones number and type.
const LAST_BASE_FIELD: u32 = 5;

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
    match device.device_type {
        DeviceType::ROBOCLAW => of_wheels(message, &[]),
        DeviceType::COLLISION_AVOIDANCE => of_wheels(message, &[SET_SPEED, MOTORS_SPEED]),
        DeviceType::DRIVE_TO_POINT => {
            let read: drive_to_point::DriverMsg = read(message)?;
            let errand = Errand::Targets(device);
            let has_targets = (read.targets.as_ref()).is_some_and(|it| !it.longitudes.is_empty());
            Ok(match is_data(read.kind()) {
                true if read.go.is_some() => Motion::Begin(errand),
                true if read.set_targets.is_some() && has_targets => Motion::Begin(errand),
                true if read.set_targets.is_some() => Motion::End(errand),
                _ => Motion::None,
            })
        }
        DeviceType::PID_FOLLOW_TRAJECTORY => {
            let read: pid_follow_trajectory::DriverMsg = read(message)?;
            let errand = Errand::Trajectory(device);
            let begins = read.start_execution.is_some()
                || read.step_execution.is_some()
                || read.follow.is_some();
            Ok(match is_data(read.kind()) {
                true if begins => Motion::Begin(errand),
                true if read.stop_execution.is_some() => Motion::End(errand),
                _ => Motion::None,
            })
        }
        _ if device == wheels => of_wheels(message, &[]),
        _ => Ok(Motion::None),
    }
}

/// The message that stops a PidFollowTrajectory.
#[must_use]
pub fn stop_trajectory() -> Bytes {
    let mut message = pid_follow_trajectory::DriverMsg::data();
    message.stop_execution = Some(true);
    message.encode_to_vec().into()
}

/// `others` are further fields that the device takes for wheel speeds.
fn of_wheels(message: &Bytes, others: &[u32]) -> Result<Motion, Unreadable> {
    let plain: roboclaw::DriverMsg = read(message)?;
    if !is_data(plain.kind()) {
        return Ok(Motion::None);
    }
    let mut speeds = plain.motors_command.map(WheelSpeeds::from);
    if !others.is_empty() {
        let guarded: collision_avoidance::DriverMsg = read(message)?;
        let set = guarded.set_speed.and(guarded.motors_speed);
        speeds = set.map(WheelSpeeds::from).or(speeds);
    }
    let Some(speeds) = speeds else {
        return Ok(Motion::None);
    };
    let is_motion = |tag| tag == MOTORS_COMMAND || others.contains(&tag);
    Ok(Motion::Wheels(speeds, without(message, is_motion)?))
}

fn read<M: Message + Default>(message: &Bytes) -> Result<M, Unreadable> {
    M::decode(message.clone()).map_err(|_| Unreadable)
}

/// A missing type means DATA.
fn is_data(kind: Option<MsgType>) -> bool {
    matches!(kind, None | Some(MsgType::Data))
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
            has_request |= tag > LAST_BASE_FIELD;
        }
    }
    Ok(has_request.then(|| kept.freeze()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::unhex;

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
