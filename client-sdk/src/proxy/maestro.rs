//! Hobby servos. IO.

use std::time::Duration;

use amber_proto::maestro::{
    DriverMsg, SetAngleCommand, SetDifferentAnglesCommand, SetSameAngleCommand, SetSpeedCommand,
};
use amber_proto::{Device, DeviceMessage};

use super::Proxy;
use crate::error::Result;

/// Hobby servos, numbered from 0.
///
/// The device answers PINGs only. The driver drops and logs invalid commands,
/// such as a servo that does not exist or an angle beyond its limits.
///
/// Methods that send a command resolve when it has been handed to the system.
/// If you drop the future earlier, the message may or may not be sent. Servos
/// keep their position when a client leaves.
#[derive(Clone, Debug)]
pub struct Maestro {
    proxy: Proxy,
}

impl Maestro {
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

    /// Turns one servo, 0 to 180 degrees unless it is configured otherwise.
    ///
    /// # Errors
    /// The message could not be sent.
    pub async fn set_angle(&self, servo: u32, angle_deg: i32) -> Result<()> {
        self.proxy.send(set_angle(servo, angle_deg)).await
    }

    /// Turns several servos to the same angle; all or none.
    ///
    /// # Errors
    /// The message could not be sent.
    pub async fn set_same_angle(&self, servos: &[u32], angle_deg: i32) -> Result<()> {
        self.proxy.send(set_same_angle(servos, angle_deg)).await
    }

    /// Turns several servos, each to its own angle; all or none.
    ///
    /// # Errors
    /// The message could not be sent.
    pub async fn set_angles(&self, servos_and_angles_deg: &[(u32, i32)]) -> Result<()> {
        self.proxy.send(set_angles(servos_and_angles_deg)).await
    }

    /// Sets the speed of a servo in quarters of a microsecond per 10 ms (20 is
    /// about 50 degrees per second); 0 is the maximum speed.
    ///
    /// # Errors
    /// The message could not be sent.
    pub async fn set_speed(&self, servo: u32, speed: i32) -> Result<()> {
        self.proxy.send(set_speed(servo, speed)).await
    }
}

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

#[cfg(test)]
mod tests {
    use crate::fake::Fake;

    /// Message bytes that the hardware sheet gives.
    #[tokio::test]
    async fn commands_are_the_bytes_that_drivers_know() {
        let (client, mut fake) = Fake::new();
        let maestro = client.maestro(0);
        maestro.set_angle(2, 90).await.unwrap();
        maestro.set_same_angle(&[0, 1], 45).await.unwrap();
        maestro.set_angles(&[(0, 45), (1, 135)]).await.unwrap();
        maestro.set_speed(2, 20).await.unwrap();
        for expected in [
            &b"\x10\x01\xb2\x04\x04\x08\x02\x10\x5a"[..],
            b"\x10\x01\xba\x04\x06\x0a\x02\x00\x01\x10\x2d",
            b"\x10\x01\xc2\x04\x09\x0a\x02\x00\x01\x12\x03\x2d\x87\x01",
            b"\x10\x01\xca\x04\x04\x08\x02\x10\x14",
        ] {
            let sent = fake.receive().await.unwrap();
            assert_eq!(sent.device.to_string(), "maestro:0");
            assert_eq!(sent.without_syn(), expected);
        }
    }
}
