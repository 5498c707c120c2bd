//! What a message does to the things that its device moves, by the description. PURE.

use amber_proto::MsgType;
use amber_schema::{Interface, Method, Setting};
use serde_json::{Map, Value};

use crate::Schemas;

/// What a request does to the things that a device moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Motion {
    /// It moves nothing.
    Nothing,
    /// It stops all motion.
    Stops,
    /// It starts or changes a motion.
    Moves,
    /// The same; the motion goes on until it is done.
    Errand,
}

impl Schemas {
    /// What a message does. These are the schemas for messages of the device.
    pub fn motion(&self, interface: &Interface, message: &[u8]) -> Motion {
        let Some(values) = self.values(message) else {
            return Motion::Nothing;
        };
        if !is_data(&values) {
            return Motion::Nothing;
        }
        let methods = interface.methods.iter();
        let requested = methods.filter(|method| self.requests(method, &values));
        let motions = requested.map(|method| self.motion_by(method, &values));
        motions.max().unwrap_or(Motion::Nothing)
    }

    /// The method that a message requests, and the message's fields.
    pub fn requested<'a>(
        &self,
        interface: &'a Interface,
        message: &[u8],
    ) -> Option<(&'a Method, Map<String, Value>)> {
        let values = self.values(message)?;
        let mut methods = interface.methods.iter();
        let method = methods.find(|method| self.requests(method, &values))?;
        Some((method, values))
    }

    /// Whether the fields of a request have these values. An absent number is 0 for a device.
    pub fn holds(&self, values: &Map<String, Value>, settings: &[Setting]) -> bool {
        settings.iter().all(|setting| {
            let value = self.value_at(values, &setting.field);
            value.map_or(setting.value == "0", |value| is(value, setting))
        })
    }

    fn requests(&self, method: &Method, values: &Map<String, Value>) -> bool {
        let has = |path: &str| self.value_at(values, path).is_some();
        let is_there = match method.flags.is_empty() {
            true => method.request.iter().any(|field| has(&field.path)),
            // The flags alone are the request; absent arguments are empty.
            false => method.flags.iter().all(|path| has(path)),
        };
        is_there && self.holds(values, &method.set)
    }

    /// What a request of this method does.
    fn motion_by(&self, method: &Method, values: &Map<String, Value>) -> Motion {
        let Some(moves) = &method.moves else {
            return Motion::Nothing;
        };
        let stops = |stop: &Vec<Setting>| {
            let holds = |setting: &Setting| {
                let value = self.value_at(values, &setting.field);
                value.is_none_or(|value| is(value, setting))
            };
            let is_empty = |path: &str| self.value_at(values, path).is_none_or(is_empty);
            stop.iter().all(holds)
                && method
                    .empty_to_stop(stop)
                    .all(|field| is_empty(&field.path))
        };
        match (moves.stop.as_ref().is_some_and(stops), moves.errand) {
            (true, _) => Motion::Stops,
            (false, true) => Motion::Errand,
            (false, false) => Motion::Moves,
        }
    }
}

fn is(value: &Value, setting: &Setting) -> bool {
    match value {
        Value::Number(number) => number.as_f64() == setting.value.parse().ok(),
        Value::String(text) => *text == setting.value,
        Value::Bool(flag) => setting.value.parse() == Ok(*flag),
        _ => false,
    }
}

/// A message without content.
fn is_empty(value: &Value) -> bool {
    value.as_object().is_some_and(Map::is_empty)
}

/// A missing type means DATA.
fn is_data(values: &Map<String, Value>) -> bool {
    match values.get("type") {
        None => true,
        Some(Value::String(name)) => name == MsgType::Data.as_str_name(),
        Some(number) => number.as_i64() == Some(i64::from(i32::from(MsgType::Data))),
    }
}

#[cfg(test)]
mod tests {
    use amber_proto::{DeviceMessage, DeviceType};
    use amber_proto::{drive_to_point, maestro, pid_follow_trajectory, roboclaw};
    use prost::Message;

    use super::*;

    fn motion(device: DeviceType, message: &impl Message) -> Motion {
        let schemas = Schemas::built_in();
        let interface = schemas.interface(device).unwrap();
        schemas.motion(interface, &message.encode_to_vec())
    }

    fn wheels(speed: Option<i32>) -> roboclaw::DriverMsg {
        roboclaw::DriverMsg {
            motors_command: Some(roboclaw::MotorsSpeed {
                front_left_speed: speed,
                ..roboclaw::MotorsSpeed::default()
            }),
            ..roboclaw::DriverMsg::data()
        }
    }

    #[test]
    fn motion_is_found_by_the_description() {
        let device = DeviceType::ROBOCLAW;
        assert_eq!(motion(device, &wheels(Some(5))), Motion::Moves);
        assert_eq!(motion(device, &wheels(Some(0))), Motion::Stops);
        assert_eq!(motion(device, &wheels(None)), Motion::Stops);
        let mut both = wheels(Some(5));
        both.current_speed_request = Some(true);
        assert_eq!(motion(device, &both), Motion::Moves);
        both.motors_command = None;
        assert_eq!(motion(device, &both), Motion::Nothing);
        // Also with the message of another device.
        let guard = DeviceType::COLLISION_AVOIDANCE;
        assert_eq!(motion(guard, &wheels(Some(5))), Motion::Moves);
        assert_eq!(
            motion(DeviceType::HOKUYO, &wheels(Some(5))),
            Motion::Nothing
        );
        for kind in [MsgType::Subscribe, MsgType::Ping, MsgType::ClientDied] {
            let mut message = wheels(Some(5));
            message.r#type = Some(kind.into());
            assert_eq!(motion(device, &message), Motion::Nothing, "{kind:?}");
        }
        let mut message = wheels(Some(5));
        message.r#type = None;
        assert_eq!(motion(device, &message), Motion::Moves);
    }

    #[test]
    fn errands_go_on_and_empty_lists_stop() {
        let device = DeviceType::DRIVE_TO_POINT;
        let mut message = drive_to_point::DriverMsg::data();
        message.get_progress = Some(true);
        assert_eq!(motion(device, &message), Motion::Nothing);
        message.set_targets = Some(true);
        assert_eq!(motion(device, &message), Motion::Stops);
        message.targets = Some(drive_to_point::Targets::default());
        assert_eq!(motion(device, &message), Motion::Stops);
        message.targets = Some(drive_to_point::Targets {
            longitudes: vec![1.0],
            latitudes: vec![1.0],
            radiuses: vec![1.0],
        });
        assert_eq!(motion(device, &message), Motion::Errand);

        let device = DeviceType::PID_FOLLOW_TRAJECTORY;
        let mut message = pid_follow_trajectory::DriverMsg::data();
        message.start_execution = Some(true);
        assert_eq!(motion(device, &message), Motion::Errand);
        let mut message = pid_follow_trajectory::DriverMsg::data();
        message.step_execution = Some(true);
        assert_eq!(motion(device, &message), Motion::Moves);
        let mut message = pid_follow_trajectory::DriverMsg::data();
        message.stop_execution = Some(true);
        assert_eq!(motion(device, &message), Motion::Stops);
        let nothing = maestro::DriverMsg::data();
        assert_eq!(motion(DeviceType::MAESTRO, &nothing), Motion::Nothing);
    }

    #[test]
    fn what_cannot_be_read_moves_nothing() {
        let schemas = Schemas::built_in();
        let interface = schemas.interface(DeviceType::ROBOCLAW).unwrap();
        assert_eq!(schemas.motion(interface, b"\xff"), Motion::Nothing);
    }
}
