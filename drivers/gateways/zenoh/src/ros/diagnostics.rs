//! The states of the devices for `/diagnostics`. PURE.

use std::collections::BTreeMap;

use amber_proto::Device;
use amber_ros2::messages::{DiagnosticArray, DiagnosticStatus, Header, KeyValue, Level};

use super::clock::in_words;
use crate::health::{Health, State};

/// The states of all devices of a robot. `None`: the mediator does not answer. `clocks` has the topics
/// with commands from a clock that does not agree, with the milliseconds that it is ahead. `refused` is
/// why the last goal was refused, if that was a moment ago.
#[must_use]
pub fn array(
    robot: &str,
    devices: Option<&BTreeMap<Device, Health>>,
    clocks: &BTreeMap<String, i64>,
    refused: Option<&str>,
    stamp_ns: u64,
) -> DiagnosticArray {
    let mediator = DiagnosticStatus {
        level: match devices {
            Some(_) => Level::OK,
            None => Level::STALE,
        },
        name: format!("{robot}: mediator"),
        message: match devices {
            Some(_) => "it answers".to_owned(),
            None => "it does not answer".to_owned(),
        },
        hardware_id: robot.to_owned(),
        values: Vec::new(),
    };
    let devices = devices.into_iter().flatten();
    let devices = devices.map(|(device, health)| status(robot, *device, health));
    DiagnosticArray {
        header: Header::new(stamp_ns, ""),
        status: [mediator, clock(robot, clocks), goals(robot, refused)]
            .into_iter()
            .chain(devices)
            .collect(),
    }
}

fn goals(robot: &str, refused: Option<&str>) -> DiagnosticStatus {
    DiagnosticStatus {
        level: if refused.is_some() {
            Level::WARN
        } else {
            Level::OK
        },
        name: format!("{robot}: goals"),
        message: match refused {
            Some(why) => format!("a goal is not carried out: {why}"),
            None => "no goal was refused".to_owned(),
        },
        hardware_id: robot.to_owned(),
        values: Vec::new(),
    }
}

fn clock(robot: &str, clocks: &BTreeMap<String, i64>) -> DiagnosticStatus {
    let values = clocks.iter().map(|(topic, ahead_ms)| KeyValue {
        key: topic.clone(),
        value: in_words(*ahead_ms),
    });
    DiagnosticStatus {
        level: if clocks.is_empty() {
            Level::OK
        } else {
            Level::WARN
        },
        name: format!("{robot}: clocks"),
        message: match clocks.first_key_value() {
            None => "no node with commands has another time".to_owned(),
            Some((topic, ahead_ms)) => {
                format!("the clock of a node on {topic} is {}", in_words(*ahead_ms))
            }
        },
        hardware_id: robot.to_owned(),
        values: values.collect(),
    }
}

fn status(robot: &str, device: Device, health: &Health) -> DiagnosticStatus {
    let (level, usual) = match health.state {
        State::Up => (Level::OK, "it works"),
        State::Trouble => (Level::ERROR, "it does not work"),
        State::Down => (Level::ERROR, "its driver does not run"),
    };
    let hint = health.hint.as_ref().map(|hint| KeyValue {
        key: "hint".to_owned(),
        value: hint.clone(),
    });
    let restarts = KeyValue {
        key: "restarts".to_owned(),
        value: health.restarts.to_string(),
    };
    DiagnosticStatus {
        level,
        name: format!("{robot}: {device}"),
        message: health.text.clone().unwrap_or_else(|| usual.to_owned()),
        hardware_id: robot.to_owned(),
        values: hint.into_iter().chain([restarts]).collect(),
    }
}

#[cfg(test)]
mod tests {
    use amber_proto::DeviceType;

    use super::*;

    #[test]
    fn each_device_has_a_state() {
        let hokuyo = Device::new(DeviceType::HOKUYO, 0);
        let health = |state, text: Option<&str>| Health {
            device: hokuyo.to_string(),
            state,
            text: text.map(str::to_owned),
            hint: Some("check the cable".to_owned()),
            holder: None,
            halted_by: None,
            restarts: 3,
        };
        for (health, level, message) in [
            (health(State::Up, None), Level::OK, "it works"),
            (
                health(State::Trouble, Some("no port")),
                Level::ERROR,
                "no port",
            ),
            (
                health(State::Down, None),
                Level::ERROR,
                "its driver does not run",
            ),
        ] {
            let array = array(
                "r1",
                Some(&[(hokuyo, health)].into()),
                &BTreeMap::new(),
                None,
                7,
            );
            let [mediator, clocks, goals, found] = &array.status[..] else {
                panic!("{array:?}");
            };
            assert_eq!((mediator.level, found.level), (Level::OK, level));
            assert_eq!((clocks.level, goals.level), (Level::OK, Level::OK));
            assert_eq!(found.name, "r1: hokuyo:0");
            assert_eq!(found.message, message);
            assert_eq!(found.values[0].value, "check the cable");
            assert_eq!(found.values[1].value, "3");
        }
        let clocks = [("/r1/cmd_vel".to_owned(), -700)].into();
        let stale = array("r1", None, &clocks, Some("occupied by bob"), 7);
        assert_eq!(stale.status.len(), 3);
        let goal = &stale.status[2];
        assert_eq!((goal.level, goal.name.as_str()), (Level::WARN, "r1: goals"));
        assert!(goal.message.ends_with("occupied by bob"));
        assert_eq!(stale.status[0].level, Level::STALE);
        let clock = &stale.status[1];
        assert_eq!(
            (clock.level, clock.name.as_str()),
            (Level::WARN, "r1: clocks")
        );
        let expected = "the clock of a node on /r1/cmd_vel is 0.7 s behind that of the robot";
        assert_eq!(clock.message, expected);
    }
}
