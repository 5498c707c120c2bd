//! Messages that the command line makes itself. PURE.

pub(crate) mod dummy {
    //! The dummy device. PURE.

    use amber_proto::{DeviceMessage, dummy::DriverMsg};

    /// The message that asks for the flag and the text.
    pub(crate) fn question() -> DriverMsg {
        DriverMsg {
            get_status: Some(true),
            ..DriverMsg::data()
        }
    }
}

pub(crate) mod hokuyo {
    //! The laser scanner. PURE.

    use amber_proto::{DeviceMessage, hokuyo::DriverMsg};

    /// The message that asks for one scan.
    pub(crate) fn question() -> DriverMsg {
        DriverMsg {
            get_single_scan: Some(true),
            ..DriverMsg::data()
        }
    }
}

pub(crate) mod roboclaw {
    //! The wheels. PURE.

    use amber_proto::{DeviceMessage, roboclaw::DriverMsg};
    use amber_values::WheelSpeeds;

    /// The message that asks for the speeds of the wheels.
    pub(crate) fn question() -> DriverMsg {
        DriverMsg {
            current_speed_request: Some(true),
            ..DriverMsg::data()
        }
    }

    /// The message that sets the speeds of the wheels.
    pub(crate) fn command(speeds: WheelSpeeds) -> DriverMsg {
        DriverMsg {
            motors_command: Some(speeds.into()),
            ..DriverMsg::data()
        }
    }
}

pub(crate) mod stargazer {
    //! Positioning by markers. IO.

    use std::time::Duration;

    use amber_proto::DeviceMessage;
    use amber_proto::stargazer::subscribe_action::Action;
    use amber_proto::stargazer::{DataRequest, DriverMsg, SubscribeAction};
    use bytes::Bytes;

    use crate::error::Result;
    use crate::proxy::Stargazer;
    use crate::subscription::Subscription;

    /// The message that asks for the last pose.
    pub(crate) fn question() -> DriverMsg {
        DriverMsg {
            data_request: Some(DataRequest {}),
            ..DriverMsg::data()
        }
    }

    impl Stargazer {
        /// Like [`Stargazer::poses`], with encoded messages.
        pub(crate) async fn subscribe_raw(
            &self,
            period: Option<Duration>,
        ) -> Result<Subscription<Bytes>> {
            let ms = |period: Duration| u32::try_from(period.as_millis()).unwrap_or(u32::MAX);
            let period_ms = period.map_or(0, |period| ms(period).max(1));
            let message = |action: Action| DriverMsg {
                subscribe_action: Some(SubscribeAction {
                    action: action.into(),
                    freq: Some(period_ms),
                }),
                ..DriverMsg::data()
            };
            let (start, stop) = (message(Action::Subscribe), message(Action::Unsubscribe));
            let decode = |bytes| Ok(Some(bytes));
            let period = period.unwrap_or_default();
            crate::generated::stream(&self.proxy, start, stop, period, decode).await
        }
    }
}

pub(crate) mod ninedof {
    //! The inertial sensors. IO.

    use std::time::Duration;

    use amber_proto::DeviceMessage;
    use amber_proto::ninedof::{DriverMsg, SubscribeAction};
    use amber_values::Sensors;
    use bytes::Bytes;

    use crate::error::Result;
    use crate::proxy::NineDof;
    use crate::subscription::Subscription;

    /// The message that asks for one reading.
    pub(crate) fn question(sensors: Sensors) -> DriverMsg {
        DriverMsg {
            data_request: Some(sensors.into()),
            ..DriverMsg::data()
        }
    }

    impl NineDof {
        /// Like [`NineDof::readings`], with encoded messages.
        pub(crate) async fn subscribe_raw(
            &self,
            period: Duration,
            sensors: Sensors,
        ) -> Result<Subscription<Bytes>> {
            let period_ms = u32::try_from(period.as_millis()).unwrap_or(u32::MAX).max(1);
            let message = |period_ms| DriverMsg {
                subscribe_action: Some(SubscribeAction {
                    freq: Some(period_ms),
                    ..sensors.into()
                }),
                ..DriverMsg::data()
            };
            let decode = |bytes| Ok(Some(bytes));
            let (start, stop) = (message(period_ms), message(0));
            crate::generated::stream(&self.proxy, start, stop, period, decode).await
        }
    }
}

pub(crate) mod maestro {
    //! The servos. PURE.

    use amber_proto::DeviceMessage;
    use amber_proto::maestro::{
        DriverMsg, SetAngleCommand, SetDifferentAnglesCommand, SetSameAngleCommand, SetSpeedCommand,
    };

    pub(crate) fn set_angle(servo_address: u32, angle: i32) -> DriverMsg {
        DriverMsg {
            set_angle_command: Some(SetAngleCommand {
                servo_address,
                angle,
            }),
            ..DriverMsg::data()
        }
    }

    pub(crate) fn set_same_angle(servos: &[u32], angle: i32) -> DriverMsg {
        DriverMsg {
            set_same_angle_command: Some(SetSameAngleCommand {
                servo_addresses: servos.to_vec(),
                angle,
            }),
            ..DriverMsg::data()
        }
    }

    pub(crate) fn set_angles(servos_and_angles: &[(u32, i32)]) -> DriverMsg {
        let (servo_addresses, angles) = servos_and_angles.iter().copied().unzip();
        DriverMsg {
            set_different_angles_command: Some(SetDifferentAnglesCommand {
                servo_addresses,
                angles,
            }),
            ..DriverMsg::data()
        }
    }

    pub(crate) fn set_speed(servo_address: u32, speed: i32) -> DriverMsg {
        DriverMsg {
            set_speed_command: Some(SetSpeedCommand {
                servo_address,
                speed,
            }),
            ..DriverMsg::data()
        }
    }
}
