//! Devices of the test mediator, which answer at once. PURE.

use amber_proto::{
    DeviceMessage, DeviceType, collision_avoidance, drive_to_point, dummy, hokuyo, location,
    ninedof, pid_follow_trajectory, roboclaw, stargazer,
};
use prost::Message;

/// The state of all of them.
#[derive(Clone, Debug)]
pub(super) struct Fakes {
    enable: bool,
    text: String,
    speeds: roboclaw::MotorsSpeed,
    published: u32,
    /// Messages that a user's own devices answer and publish.
    own: Vec<(amber_proto::Device, Vec<u8>)>,
}

impl Fakes {
    pub(super) fn new(own: Vec<(amber_proto::Device, Vec<u8>)>) -> Self {
        Self {
            enable: false,
            text: "Message".into(),
            speeds: roboclaw::MotorsSpeed::default(),
            published: 0,
            own,
        }
    }

    /// Whether the device exists.
    pub(super) fn serves(&self, device: amber_proto::Device) -> bool {
        crate::devices::known(device.device_type).is_some()
            || self.own.iter().any(|(own, _)| *own == device)
    }

    /// The answer to a DATA message, without its number; `None` if there is none.
    pub(super) fn answer(&mut self, device: amber_proto::Device, ask: &[u8]) -> Option<Vec<u8>> {
        if let Some((_, answer)) = self.own.iter().find(|(own, _)| *own == device) {
            return Some(answer.clone());
        }
        match device.device_type {
            DeviceType::DUMMY => self.dummy(dummy::DriverMsg::decode(ask).ok()?),
            DeviceType::ROBOCLAW => {
                let ask = roboclaw::DriverMsg::decode(ask).ok()?;
                if let Some(speeds) = ask.motors_command {
                    self.speeds = speeds;
                    return None;
                }
                ask.current_speed_request?;
                encoded(roboclaw::DriverMsg {
                    current_speed: Some(self.speeds),
                    ..DeviceMessage::data()
                })
            }
            DeviceType::HOKUYO => {
                hokuyo::DriverMsg::decode(ask).ok()?.get_single_scan?;
                self.publication(device)
            }
            DeviceType::NINEDOF => {
                ninedof::DriverMsg::decode(ask).ok()?.data_request?;
                self.publication(device)
            }
            DeviceType::STARGAZER => {
                stargazer::DriverMsg::decode(ask).ok()?.data_request?;
                self.publication(device)
            }
            DeviceType::LOCATION => {
                location::DriverMsg::decode(ask).ok()?.get_location?;
                encoded(location::DriverMsg {
                    current_location: Some(location::Location {
                        x: Some(1.0),
                        y: Some(2.0),
                        p: Some(0.9),
                        alfa: Some(0.5),
                        time_stamp: Some(1_700_000_000_000),
                    }),
                    ..DeviceMessage::data()
                })
            }
            DeviceType::DRIVE_TO_POINT => {
                let mut answer = drive_to_point::DriverMsg::decode(ask).ok()?;
                if answer.set_targets.is_some() {
                    return None;
                }
                answer.targets = Some(drive_to_point::Targets::default());
                answer.location = Some(drive_to_point::Location::default());
                answer.configuration = Some(drive_to_point::Configuration {
                    max_speed: Some(300.0),
                });
                answer.syn_num = None;
                encoded(answer)
            }
            DeviceType::COLLISION_AVOIDANCE => {
                let mut answer = collision_avoidance::DriverMsg::decode(ask).ok()?;
                if answer.set_speed.is_some() {
                    return None;
                }
                answer.motors_speed = Some(collision_avoidance::MotorsSpeed::default());
                answer.scan = Some(collision_avoidance::Scan {
                    angles: vec![-90.0, 0.0, 90.0],
                    distances: vec![500, 1000, 1500],
                });
                answer.syn_num = None;
                encoded(answer)
            }
            DeviceType::PID_FOLLOW_TRAJECTORY => {
                let mut answer = pid_follow_trajectory::DriverMsg::decode(ask).ok()?;
                answer.get_next_targets.or(answer.get_visited_targets)?;
                answer.targets = Some(pid_follow_trajectory::Targets::default());
                answer.syn_num = None;
                encoded(answer)
            }
            _ => None,
        }
    }

    /// The next publication of a device. A user's own device publishes its answer.
    pub(super) fn publication(&mut self, device: amber_proto::Device) -> Option<Vec<u8>> {
        if let Some((_, answer)) = self.own.iter().find(|(own, _)| *own == device) {
            return Some(answer.clone());
        }
        self.published += 1;
        let n = self.published;
        match device.device_type {
            DeviceType::DUMMY => encoded(dummy::DriverMsg {
                message: Some(format!("Response {n}")),
                ..DeviceMessage::data()
            }),
            DeviceType::HOKUYO => encoded(hokuyo::DriverMsg {
                scan: Some(hokuyo::Scan {
                    angles: (-120..=120).step_by(2).map(f64::from).collect(),
                    distances: (0..121).map(|i| 500 + 10 * i).collect(),
                }),
                timestamp: Some(1_700_000_000_000 + i64::from(n) * 100),
                ..DeviceMessage::data()
            }),
            DeviceType::NINEDOF => {
                let axes = |x| ninedof::AxisData {
                    x_axis: x,
                    y_axis: 0,
                    z_axis: 0,
                };
                encoded(ninedof::DriverMsg {
                    sensor_data: Some(ninedof::SensorData {
                        accel: Some(axes(1000)),
                        gyro: Some(axes(0)),
                        magnet: Some(axes(300)),
                        timestamp: Some(n * 100),
                        ..Default::default()
                    }),
                    ..DeviceMessage::data()
                })
            }
            DeviceType::STARGAZER => encoded(stargazer::DriverMsg {
                localization_data: Some(stargazer::LocalizationData {
                    lost_ms: None,
                    x_pos: 100.0,
                    y_pos: 200.0,
                    z_pos: 240.0,
                    angle: 45.0,
                    marker_id: 544,
                    timestamp: Some(n * 100),
                }),
                ..DeviceMessage::data()
            }),
            _ => None,
        }
    }

    fn dummy(&mut self, ask: dummy::DriverMsg) -> Option<Vec<u8>> {
        if let Some(enable) = ask.enable {
            self.enable = enable;
        } else if let Some(text) = ask.message {
            self.text = text;
        } else if ask.get_status.is_some() {
            return encoded(dummy::DriverMsg {
                enable: Some(self.enable),
                message: Some(self.text.clone()),
                ..DeviceMessage::data()
            });
        }
        None
    }
}

fn encoded(message: impl DeviceMessage) -> Option<Vec<u8>> {
    Some(message.encode_to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::devices::{self, Answer};

    #[test]
    fn a_users_own_device_answers_and_publishes_the_same() {
        let own = amber_proto::Device::new(DeviceType(201), 0);
        let message = b"\x10\x01\xf0\x06\x01".to_vec();
        let mut fakes = Fakes::new(vec![(own, message.clone())]);
        assert!(fakes.serves(own));
        assert_eq!(fakes.answer(own, b"\x10\x01"), Some(message.clone()));
        assert_eq!(fakes.publication(own), Some(message));
        let other = amber_proto::Device::new(DeviceType(201), 1);
        assert!(!fakes.serves(other));
        assert_eq!(fakes.publication(other), None);
    }

    #[test]
    fn requests_of_known_devices_are_answered() {
        let mut fakes = Fakes::new(vec![]);
        let schemas = amber_reflect::Schemas::built_in();
        for (kind, name) in DeviceType::NAMES {
            let Some(known) = devices::known(kind) else {
                continue;
            };
            for ask in known.asks {
                let answer = fakes.answer(amber_proto::Device::new(kind, 0), &ask.message);
                let Answer::Fields(fields) = &ask.answer else {
                    assert_eq!(answer, None, "{name} {}", ask.name);
                    continue;
                };
                let has = schemas.decode(&answer.unwrap()).unwrap();
                assert!(
                    fields.iter().any(|f| has.contains_key(f)),
                    "{name} {}",
                    ask.name
                );
            }
        }
    }
}
