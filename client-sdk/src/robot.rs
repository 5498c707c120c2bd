//! A robot, as programs see it. IO.

use std::env;
use std::fmt;
use std::ops::Deref;

use amber_client::lease::Terms;
use amber_client::{Client, Lease, Proxy, Result};
use amber_proto::robot::Shape;
use amber_proto::{Device, DeviceId, DeviceType};

/// The variable with the address of the mediator.
const MEDIATOR: &str = "AMBER_MEDIATOR";
/// The address without it.
const THIS_MACHINE: &str = "127.0.0.1";

/// A robot: a connection to its mediator, with a method for each kind of device.
///
/// It is a [`Client`] with some methods more, and can be cloned as cheaply. `robot.hokuyo(0)` is its
/// first laser scanner, and so on.
///
/// ```no_run
/// #[amber_sdk::main]
/// async fn main(robot: amber_sdk::Robot) -> amber_sdk::Result<()> {
///     let mut scans = robot.hokuyo(0).scans().await?;
///     while let Some(scan) = scans.next().await {
///         println!("{} points, {} scans missed", scan.message.points().len(), scan.missed);
///     }
///     Ok(())
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Robot {
    client: Client,
}

impl Robot {
    /// Connects to the robot that the environment variable `AMBER_MEDIATOR` names; without it, to the
    /// one on this machine.
    ///
    /// # Errors
    /// Those of [`Client::connect`].
    pub async fn here() -> Result<Self> {
        Self::connect(env::var(MEDIATOR).unwrap_or_else(|_| THIS_MACHINE.into())).await
    }

    /// Connects to a robot, as [`Client::connect`] does.
    ///
    /// # Errors
    /// Those of [`Client::connect`].
    pub async fn connect(mediator: impl fmt::Display) -> Result<Self> {
        Client::connect(mediator).await.map(Self::from)
    }

    /// The connection.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The device with a role, such as `"wheels"` or `"laser"`, by the configuration of the robot;
    /// `None` if no device has it, or if the robot has no configuration.
    ///
    /// # Errors
    /// There is no answer from the device `robot:0` although a driver serves it.
    pub async fn with_role(&self, role: &str) -> Result<Option<Device>> {
        match self.robot(0).shape().await {
            Ok(shape) => Ok(role_in(&shape, role)),
            Err(amber_client::Error::NoSuchDevice { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Takes the lease of the wheels: until it is released, nobody else drives this robot. `name` is
    /// that of the program, for people. [`Terms`] has more choices.
    ///
    /// # Errors
    /// Another client holds it: the error names that client. Or those of requests.
    pub async fn take_wheels(&self, name: &str) -> Result<Lease> {
        Terms::new(name).take(&self.wheels().await?).await
    }

    /// The same, but waits until it is this program's turn. Dropping the future leaves the list.
    ///
    /// # Errors
    /// Too many clients wait, or those of requests.
    pub async fn wait_for_wheels(&self, name: &str) -> Result<Lease> {
        Terms::new(name).wait(&self.wheels().await?).await
    }

    /// The same, but takes the lease from its holder. The wheels stop if the holder moved them.
    ///
    /// # Errors
    /// Those of requests.
    pub async fn take_wheels_by_force(&self, name: &str) -> Result<Lease> {
        Terms::new(name).take_by_force(&self.wheels().await?).await
    }

    /// The wheels, of any type.
    async fn wheels(&self) -> Result<Proxy> {
        let wheels = self.with_role("wheels").await?;
        let wheels = wheels.unwrap_or(Device::new(DeviceType::ROBOCLAW, 0));
        Ok(self.client.device(wheels))
    }

    /// Leaves the robot: what this program has set in motion stops. It ends all clones.
    pub async fn close(self) {
        self.client.close().await;
    }
}

/// The device with a role.
fn role_in(shape: &Shape, role: &str) -> Option<Device> {
    let role = shape.roles.iter().find(|it| it.role == role)?;
    Some(Device {
        device_type: DeviceType(role.r#type),
        id: DeviceId(role.id),
    })
}

impl From<Client> for Robot {
    fn from(client: Client) -> Self {
        Self { client }
    }
}

impl Deref for Robot {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

#[cfg(test)]
mod tests {
    use amber_proto::robot::Role;

    use super::*;

    #[test]
    fn threads_can_share_a_robot() {
        fn shared<T: Send + Sync>() {}
        shared::<Robot>();
    }

    #[test]
    fn a_role_names_a_device() {
        let role = |role: &str, r#type, id| Role {
            role: role.into(),
            r#type,
            id,
        };
        let shape = Shape {
            roles: vec![role("wheels", 2, 0), role("laser", 4, 1)],
            ..Shape::default()
        };
        let laser = Device::new(DeviceType::HOKUYO, 1);
        assert_eq!(role_in(&shape, "laser"), Some(laser));
        assert_eq!(role_in(&shape, "camera"), None);
    }
}
