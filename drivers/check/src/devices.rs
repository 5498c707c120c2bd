//! Requests for the known device types, with values that move nothing. PURE.

use amber_proto::{
    DeviceMessage, DeviceType, collision_avoidance, drive_to_point, dummy, hokuyo, location,
    maestro, ninedof, pid_follow_trajectory, roboclaw, stargazer,
};

/// A request, and the expected answer.
#[derive(Clone, Debug)]
pub(crate) struct Ask {
    pub(crate) name: String,
    /// A DATA message without a number.
    pub(crate) message: Vec<u8>,
    pub(crate) answer: Answer,
}

/// The expected answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// DATA with at least one of these fields.
    Fields(&'static [&'static str]),
    /// Any DATA.
    Any,
    /// No answer.
    Nothing,
}

/// A device type.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    pub(crate) asks: Vec<Ask>,
    /// Subscribers regularly get data.
    pub(crate) publishes: bool,
    /// It needs hardware or other devices. If they are missing, the driver may
    /// rightly be silent.
    pub(crate) may_be_silent: bool,
}

/// What is known about a device type; `None` for a user's own.
pub(crate) fn known(kind: DeviceType) -> Option<Known> {
    let (asks, publishes) = match kind {
        DeviceType::DUMMY => (dummy(), true),
        DeviceType::HOKUYO => (hokuyo(), true),
        DeviceType::ROBOCLAW => (roboclaw(), false),
        DeviceType::NINEDOF => (ninedof(), false),
        DeviceType::STARGAZER => (stargazer(), false),
        DeviceType::LOCATION => (location(), false),
        DeviceType::MAESTRO => (maestro(), false),
        DeviceType::DRIVE_TO_POINT => (drive_to_point(), false),
        DeviceType::COLLISION_AVOIDANCE => (collision_avoidance(), false),
        DeviceType::PID_FOLLOW_TRAJECTORY => (pid_follow_trajectory(), false),
        _ => return None,
    };
    Some(Known {
        asks,
        publishes,
        may_be_silent: kind != DeviceType::DUMMY,
    })
}

fn ask(name: &'static str, fields: &'static [&'static str], message: impl DeviceMessage) -> Ask {
    Ask {
        name: name.into(),
        message: message.encode_to_vec(),
        answer: Answer::Fields(fields),
    }
}

fn tell(name: &'static str, message: impl DeviceMessage) -> Ask {
    Ask {
        name: name.into(),
        message: message.encode_to_vec(),
        answer: Answer::Nothing,
    }
}

fn dummy() -> Vec<Ask> {
    use dummy::DriverMsg;
    let status = DriverMsg {
        get_status: Some(true),
        ..DriverMsg::data()
    };
    let enable = DriverMsg {
        enable: Some(true),
        ..DriverMsg::data()
    };
    let message = DriverMsg {
        message: Some("amber check \u{17c}\u{f3}\u{142}w".into()),
        ..DriverMsg::data()
    };
    vec![
        ask("get_status", &["enable", "message"], status),
        tell("enable", enable),
        tell("message", message),
    ]
}

fn hokuyo() -> Vec<Ask> {
    let scan = hokuyo::DriverMsg {
        get_single_scan: Some(true),
        ..hokuyo::DriverMsg::data()
    };
    vec![ask("get_single_scan", &["scan"], scan)]
}

fn roboclaw() -> Vec<Ask> {
    use roboclaw::{DriverMsg, MotorsSpeed};
    let speeds = DriverMsg {
        current_speed_request: Some(true),
        ..DriverMsg::data()
    };
    let stop = DriverMsg {
        motors_command: Some(MotorsSpeed {
            front_left_speed: Some(0),
            front_right_speed: Some(0),
            rear_left_speed: Some(0),
            rear_right_speed: Some(0),
        }),
        ..DriverMsg::data()
    };
    vec![
        ask("currentSpeedRequest", &["currentSpeed"], speeds),
        tell("motorsCommand 0", stop),
    ]
}

fn ninedof() -> Vec<Ask> {
    use ninedof::{DataRequest, DriverMsg, SubscribeAction};
    let all = DriverMsg {
        data_request: Some(DataRequest {
            accel: Some(true),
            gyro: Some(true),
            magnet: Some(true),
            ..DataRequest::default()
        }),
        ..DriverMsg::data()
    };
    let off = DriverMsg {
        subscribe_action: Some(SubscribeAction {
            freq: Some(0),
            ..SubscribeAction::default()
        }),
        ..DriverMsg::data()
    };
    vec![
        ask("dataRequest", &["sensorData"], all),
        tell("subscribeAction off", off),
    ]
}

fn stargazer() -> Vec<Ask> {
    use stargazer::subscribe_action::Action;
    use stargazer::{DataRequest, DriverMsg, SubscribeAction};
    let last = DriverMsg {
        data_request: Some(DataRequest {}),
        ..DriverMsg::data()
    };
    let off = DriverMsg {
        subscribe_action: Some(SubscribeAction {
            action: Action::Unsubscribe.into(),
            freq: None,
        }),
        ..DriverMsg::data()
    };
    vec![
        ask("dataRequest", &["localizationData"], last),
        tell("subscribeAction off", off),
    ]
}

fn location() -> Vec<Ask> {
    let pose = location::DriverMsg {
        get_location: Some(true),
        ..location::DriverMsg::data()
    };
    vec![ask("get_location", &["currentLocation"], pose)]
}

fn maestro() -> Vec<Ask> {
    let speed = maestro::DriverMsg {
        set_speed_command: Some(maestro::SetSpeedCommand {
            servo_address: 0,
            speed: 0,
        }),
        ..maestro::DriverMsg::data()
    };
    vec![tell("setSpeedCommand", speed)]
}

fn drive_to_point() -> Vec<Ask> {
    use drive_to_point::{DriverMsg, Targets};
    let next = DriverMsg {
        get_next_targets: Some(true),
        ..DriverMsg::data()
    };
    let visited = DriverMsg {
        get_visited_targets: Some(true),
        ..DriverMsg::data()
    };
    let stop = DriverMsg {
        set_targets: Some(true),
        targets: Some(Targets::default()),
        ..DriverMsg::data()
    };
    vec![
        ask("getNextTargets", &["getNextTargets", "targets"], next),
        ask(
            "getVisitedTargets",
            &["getVisitedTargets", "targets"],
            visited,
        ),
        tell("setTargets none", stop),
    ]
}

fn collision_avoidance() -> Vec<Ask> {
    use collision_avoidance::{DriverMsg, MotorsSpeed};
    let speed = DriverMsg {
        get_speed: Some(true),
        ..DriverMsg::data()
    };
    let scan = DriverMsg {
        get_scan: Some(true),
        ..DriverMsg::data()
    };
    let stop = DriverMsg {
        set_speed: Some(true),
        motors_speed: Some(MotorsSpeed {
            front_left_speed: Some(0),
            front_right_speed: Some(0),
            rear_left_speed: Some(0),
            rear_right_speed: Some(0),
        }),
        ..DriverMsg::data()
    };
    vec![
        ask("getSpeed", &["getSpeed", "motorsSpeed"], speed),
        ask("getScan", &["getScan", "scan"], scan),
        tell("setSpeed 0", stop),
    ]
}

fn pid_follow_trajectory() -> Vec<Ask> {
    use pid_follow_trajectory::DriverMsg;
    let next = DriverMsg {
        get_next_targets: Some(true),
        ..DriverMsg::data()
    };
    let visited = DriverMsg {
        get_visited_targets: Some(true),
        ..DriverMsg::data()
    };
    let stop = DriverMsg {
        stop_execution: Some(true),
        ..DriverMsg::data()
    };
    vec![
        ask("getNextTargets", &["getNextTargets", "targets"], next),
        ask(
            "getVisitedTargets",
            &["getVisitedTargets", "targets"],
            visited,
        ),
        tell("stopExecution", stop),
    ]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use amber_reflect::Schemas;

    use super::*;

    #[test]
    fn every_request_uses_fields_of_its_schema() {
        let schemas = Schemas::built_in();
        for (kind, name) in DeviceType::NAMES {
            if [DeviceType::MEDIATOR, DeviceType::GATEWAY].contains(&kind) {
                assert!(known(kind).is_none());
                continue;
            }
            let known = known(kind).unwrap_or_else(|| panic!("{name} is not known"));
            for ask in known.asks {
                assert!(
                    schemas.decode(&ask.message).is_some(),
                    "{name} {}",
                    ask.name
                );
                let Answer::Fields(fields) = ask.answer else {
                    continue;
                };
                for field in fields {
                    let null = serde_json::Map::from_iter([((*field).to_owned(), 7.into())]);
                    let error = schemas.encode(kind, &null).err().map(|e| format!("{e:?}"));
                    assert!(
                        !error.unwrap_or_default().contains("unknown field"),
                        "{name} {field}"
                    );
                }
            }
        }
    }

    /// Requests to devices, and the fields of the replies, are those of the descriptions.
    #[test]
    fn every_device_is_asked_what_its_description_says() {
        let schemas = Schemas::built_in();
        for interface in amber_reflect::built_in() {
            let Some(known) = known(DeviceType(interface.device_type)) else {
                assert_eq!(interface.name, "mediator");
                continue;
            };
            let last = |path: &str| path.rsplit('.').next().unwrap().to_owned();
            for ask in known.asks {
                let sent = schemas.decode(&ask.message).unwrap();
                let mut methods = interface.methods.iter();
                let method = methods.find(|method| {
                    let request = method.request.iter().map(|field| field.name.clone());
                    let flags = method.flags.iter().map(|flag| last(flag));
                    let fields: BTreeSet<_> = flags.chain(request).collect();
                    sent.keys().eq(&fields)
                });
                let name = format!("{} {}", interface.name, ask.name);
                let method = method.unwrap_or_else(|| panic!("{name} is not described"));
                let Answer::Fields(fields) = ask.answer else {
                    assert!(
                        !matches!(method.kind, amber_schema::Kind::Ask { .. }),
                        "{name}"
                    );
                    continue;
                };
                let mut described: Vec<_> = (method.answer.iter().chain(&method.may_answer))
                    .map(|field| field.name.clone())
                    .collect();
                if let amber_schema::Kind::Ask {
                    repeats_flag: true, ..
                } = method.kind
                {
                    described.extend(method.flags.iter().map(|flag| last(flag)));
                }
                for field in fields {
                    assert!(described.iter().any(|it| it == field), "{name}: {field}");
                }
            }
            let publishes =
                |method: &amber_schema::Method| method.kind == amber_schema::Kind::Subscribe;
            let is_described = interface.methods.iter().any(publishes);
            assert_eq!(known.publishes, is_described, "{}", interface.name);
        }
    }
}
