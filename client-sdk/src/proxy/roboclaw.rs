//! Four driven wheels on two RoboClaw motor controllers. IO.

use std::time::Duration;

use amber_proto::roboclaw::DriverMsg;
use amber_proto::{Device, DeviceMessage};
use amber_values::WheelSpeeds;

use super::Proxy;
use crate::error::Result;

/// Four driven wheels.
///
/// The driver stops the wheels some time after the last command (4 s unless
/// configured otherwise) and when the client leaves, so repeat the command
/// while you drive.
///
/// You may drop the future of any method: an unsent request is cancelled, and a
/// late answer is ignored. **Dropping does not stop the wheels**: only
/// [`Roboclaw::stop`] and the driver do.
#[derive(Clone, Debug)]
pub struct Roboclaw {
    proxy: Proxy,
}

impl Roboclaw {
    pub(crate) fn new(proxy: Proxy) -> Self {
        Self { proxy }
    }

    /// The address of this device.
    pub fn address(&self) -> Device {
        self.proxy.address()
    }

    /// The same device with another deadline.
    pub fn with_deadline(self, deadline: Duration) -> Self {
        Self {
            proxy: self.proxy.with_deadline(deadline),
        }
    }

    /// Measures the round-trip time of a PING to the driver.
    ///
    /// # Errors
    /// There is no answer within the deadline, or the mediator reports that
    /// none will come.
    pub async fn ping(&self) -> Result<Duration> {
        self.proxy.ping().await
    }

    /// Sets the speeds of the wheels. The device does not answer;
    /// [`Roboclaw::speeds`] returns the actual speeds.
    ///
    /// The driver ignores a command with any speed beyond its limit (1200 mm/s
    /// in either direction unless configured otherwise).
    ///
    /// Resolves when the command has been handed to the system. If you drop the
    /// future earlier, the message may or may not be sent.
    ///
    /// # Errors
    /// The message could not be sent.
    pub async fn drive(&self, speeds: WheelSpeeds) -> Result<()> {
        self.proxy.send(command(speeds)).await
    }

    /// Stops all wheels; the same as driving at [`WheelSpeeds::STOP`].
    ///
    /// If you drop the future, the command may or may not be sent.
    ///
    /// # Errors
    /// The message could not be sent.
    pub async fn stop(&self) -> Result<()> {
        self.drive(WheelSpeeds::STOP).await
    }

    /// The measured speeds of the wheels.
    ///
    /// # Errors
    /// There is no answer within the deadline, or the mediator reports that
    /// none will come.
    pub async fn speeds(&self) -> Result<WheelSpeeds> {
        let answer = self.proxy.request(question()).await?;
        match answer.current_speed {
            Some(speeds) => Ok(speeds.into()),
            None => Err(self.proxy.bad_answer("there are no speeds in it")),
        }
    }
}

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

#[cfg(test)]
mod tests {
    use prost::Message;

    use super::*;
    use crate::error::Error;
    use crate::fake::Fake;

    /// Message bytes that the hardware sheet gives.
    const STRAIGHT_300: &[u8] =
        b"\x10\x01\xa2\x01\x0c\x08\xac\x02\x10\xac\x02\x18\xac\x02\x20\xac\x02";
    const LEFT_BACK_300: &[u8] = b"\x10\x01\xa2\x01\x1c\
        \x08\xd4\xfd\xff\xff\xff\xff\xff\xff\xff\x01\x10\xac\x02\
        \x18\xd4\xfd\xff\xff\xff\xff\xff\xff\xff\x01\x20\xac\x02";
    const ASK_100: &[u8] = b"\x10\x01\x18\x64\xa8\x01\x01";
    const ANSWER_100: &[u8] = b"\x10\x01\x20\x64\xb2\x01\x1c\
        \x08\xab\x02\x10\xab\x02\
        \x18\xd5\xfd\xff\xff\xff\xff\xff\xff\xff\x01\
        \x20\xd5\xfd\xff\xff\xff\xff\xff\xff\xff\x01";

    #[tokio::test]
    async fn commands_are_the_bytes_that_drivers_know() {
        let (client, mut fake) = Fake::new();
        let roboclaw = client.roboclaw(0);
        roboclaw.drive(WheelSpeeds::all(300)).await.unwrap();
        roboclaw.drive(WheelSpeeds::sides(-300, 300)).await.unwrap();
        roboclaw.stop().await.unwrap();
        for expected in [
            STRAIGHT_300,
            LEFT_BACK_300,
            b"\x10\x01\xa2\x01\x08\x08\0\x10\0\x18\0\x20\0",
        ] {
            let sent = fake.receive().await.unwrap();
            assert_eq!(sent.device.to_string(), "roboclaw:0");
            assert_eq!(sent.without_syn(), expected);
        }
    }

    #[tokio::test]
    async fn speeds_are_asked_for_and_read() {
        let (client, mut fake) = Fake::new();
        let device = tokio::spawn(async move {
            let asked = fake.receive().await.unwrap();
            fake.answer(&asked, ANSWER_100).await;
            (asked, fake)
        });
        let speeds = client.roboclaw(0).speeds().await.unwrap();
        let measured = WheelSpeeds {
            front_left_mm_s: 299,
            front_right_mm_s: 299,
            rear_left_mm_s: -299,
            rear_right_mm_s: -299,
        };
        assert_eq!(speeds, measured);
        let (asked, _fake) = device.await.unwrap();
        let mut expected = DriverMsg::decode(ASK_100).unwrap();
        expected.syn_num = Some(asked.syn());
        assert_eq!(DriverMsg::decode(asked.bytes).unwrap(), expected);
    }

    #[tokio::test]
    async fn an_absent_wheel_is_0_but_absent_speeds_are_an_error() {
        let (client, mut fake) = Fake::new();
        let device = tokio::spawn(async move {
            for answer in [&b"\x10\x01\xb2\x01\x02\x08\x07"[..], b"\x10\x01"] {
                let asked = fake.receive().await.unwrap();
                fake.answer(&asked, answer).await;
            }
            fake
        });
        let roboclaw = client.roboclaw(0);
        let measured = WheelSpeeds {
            front_left_mm_s: 7,
            ..WheelSpeeds::STOP
        };
        assert_eq!(roboclaw.speeds().await.unwrap(), measured);
        match roboclaw.speeds().await {
            Err(Error::BadAnswer { device, .. }) => assert_eq!(device, roboclaw.address()),
            other => panic!("{other:?}"),
        }
        device.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_device_is_a_time_out() {
        let (client, _fake) = Fake::new();
        let deadline = Duration::from_millis(300);
        match client.roboclaw(0).with_deadline(deadline).speeds().await {
            Err(Error::TimedOut { waited, .. }) => assert!(waited >= deadline),
            other => panic!("{other:?}"),
        }
    }
}
