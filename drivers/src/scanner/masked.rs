//! The sectors that the robot device masks for a laser. IO.

use amber_driver::client::Client;
use amber_driver::client::proxy::Robot;
use amber_proto::robot::Shape;
use amber_proto::{Device, DeviceType};
use tokio::sync::watch;
use tokio::task::AbortHandle;

use super::sectors::Sectors;
use crate::robot_options::{LASER, ROBOT};

/// Follows the robot device. Ends when it is dropped.
#[derive(Debug)]
pub(super) struct Masked {
    task: AbortHandle,
}

impl Drop for Masked {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Masked {
    /// Follows the robot device among these devices, and reports the sectors for the laser `own`.
    ///
    /// Only subscribes: the robot device says its shape at once and repeats it, and where there is none,
    /// nothing is asked.
    pub(super) fn follow(devices: &Client, own: Device, found: watch::Sender<Sectors>) -> Self {
        let robot = Robot::new(devices.device(ROBOT));
        let follow = async move {
            let Ok(mut shapes) = robot.shape_updates().await else {
                return;
            };
            while let Some(update) = shapes.next().await {
                let sectors = sectors(own, &update.message);
                found.send_if_modified(|before| {
                    let is_news = *before != sectors;
                    *before = sectors;
                    is_news
                });
            }
        };
        Self {
            task: tokio::spawn(follow).abort_handle(),
        }
    }
}

/// The sectors for this laser: a robot may have a second one, which sees other parts.
fn sectors(own: Device, shape: &Shape) -> Sectors {
    let role = shape.roles.iter().find(|it| it.role == "laser");
    let laser = role.map_or(LASER, |it| Device::new(DeviceType(it.r#type), it.id));
    match laser == own {
        true => Sectors::of(&shape.masked),
        false => Sectors::default(),
    }
}

#[cfg(test)]
mod tests {
    use amber_proto::robot::{Role, Sector};

    use super::*;

    #[test]
    fn only_the_laser_of_the_robot_is_masked() {
        let second = Device::new(DeviceType::HOKUYO, 1);
        let role = |id| Role {
            role: "laser".into(),
            r#type: DeviceType::HOKUYO.0,
            id,
        };
        let shape = |roles| Shape {
            masked: vec![Sector {
                begin: 0.0,
                end: 0.1,
            }],
            roles,
            ..Shape::default()
        };
        for (own, roles, is_masked) in [
            (LASER, vec![], true),
            (LASER, vec![role(0)], true),
            (LASER, vec![role(1)], false),
            (second, vec![role(1)], true),
            (second, vec![role(0)], false),
            (second, vec![], false),
        ] {
            let found = sectors(own, &shape(roles.clone()));
            assert_eq!(!found.is_empty(), is_masked, "{own} {roles:?}");
        }
    }
}
