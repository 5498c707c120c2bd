//! Assigns the devices of a robot to the parts of the page. PURE.

use amber_proto::mediator::{Device as WireDevice, Driver, DriverState};
use amber_proto::{Device, DeviceType};
use serde::Serialize;

/// The devices that the page shows together: of each type, the one with the lowest number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parts {
    pub wheels: Option<Device>,
    /// Drives like the wheels, and stops before obstacles.
    pub guard: Option<Device>,
    /// The laser scanner.
    pub scanner: Option<Device>,
    /// The pose on the map.
    pub location: Option<Device>,
    /// The motion sensors.
    pub imu: Option<Device>,
    /// Drives to targets.
    pub targets: Option<Device>,
    pub servos: Option<Device>,
    /// Makes maps.
    pub mapping: Option<Device>,
    pub battery: Option<Device>,
}

/// The same as text, for the page.
#[derive(Debug, Serialize)]
pub struct PartsShown {
    wheels: Option<String>,
    guard: Option<String>,
    scanner: Option<String>,
    location: Option<String>,
    imu: Option<String>,
    targets: Option<String>,
    servos: Option<String>,
    mapping: Option<String>,
    battery: Option<String>,
}

impl Parts {
    /// The parts of a robot with these drivers.
    #[must_use]
    pub fn of(drivers: &[Driver]) -> Self {
        let first = |wanted: DeviceType| {
            let devices = drivers.iter().flat_map(|driver| &driver.devices);
            let ids = devices.filter(|it| it.r#type == wanted.0).map(|it| it.id);
            ids.min().map(|id| Device::new(wanted, id))
        };
        Self {
            wheels: first(DeviceType::ROBOCLAW),
            guard: first(DeviceType::COLLISION_AVOIDANCE),
            scanner: first(DeviceType::HOKUYO),
            location: first(DeviceType::LOCATION),
            imu: first(DeviceType::NINEDOF),
            targets: first(DeviceType::DRIVE_TO_POINT),
            servos: first(DeviceType::MAESTRO),
            mapping: first(DeviceType::MAPPING),
            battery: first(DeviceType::BATTERY),
        }
    }

    /// Whether a device drives the robot by itself, until it is stopped.
    #[must_use]
    pub fn has_errands(&self, device: Device) -> bool {
        [self.targets, self.mapping].contains(&Some(device))
    }

    /// The same as text.
    #[must_use]
    pub fn shown(&self) -> PartsShown {
        let text = |device: Option<Device>| device.map(|device| device.to_string());
        PartsShown {
            wheels: text(self.wheels),
            guard: text(self.guard),
            scanner: text(self.scanner),
            location: text(self.location),
            imu: text(self.imu),
            targets: text(self.targets),
            servos: text(self.servos),
            mapping: text(self.mapping),
            battery: text(self.battery),
        }
    }
}

/// The reasons why the robot does not do what the page shows a control for, in words. `None`: no reason
/// is known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Problems {
    /// The stick.
    wheels: Option<String>,
    /// The stick while the robot stops before obstacles.
    guard: Option<String>,
    /// A click on the map.
    targets: Option<String>,
    /// The robot on the map.
    map: Option<String>,
}

impl Problems {
    /// The problems of a robot with these drivers. If a device needs others, theirs are the cause.
    #[must_use]
    pub fn of(drivers: &[Driver]) -> Self {
        let parts = Parts::of(drivers);
        let first = |row: &[Option<Device>]| {
            let problem = |device: Option<Device>| problem(drivers, device?);
            row.iter().copied().find_map(problem)
        };
        // A robot without these devices has no such control.
        let of = |part: Option<Device>, needs: &[Option<Device>]| {
            part.and_then(|_| first(needs).or_else(|| first(&[part])))
        };
        let Parts {
            wheels,
            scanner,
            location,
            ..
        } = parts;
        Self {
            wheels: of(wheels, &[]),
            guard: of(parts.guard, &[wheels, scanner]),
            targets: of(parts.targets, &[wheels, scanner, location]),
            map: of(location.or(scanner), &[scanner]),
        }
    }
}

/// A camera, for the page.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CameraShown {
    /// Its name.
    pub device: String,
    /// The reason why it sends no pictures, in words. `None`: no reason is known.
    pub problem: Option<String>,
}

/// All cameras of a robot with these drivers, the one with the lowest number first.
#[must_use]
pub fn cameras(drivers: &[Driver]) -> Vec<CameraShown> {
    let devices = drivers.iter().flat_map(|driver| &driver.devices);
    let mut cameras: Vec<_> = (devices.filter(|it| it.r#type == DeviceType::CAMERA.0))
        .map(|it| Device::new(DeviceType::CAMERA, it.id))
        .collect();
    cameras.sort_by_key(|it| it.id);
    let shown = |&device: &Device| CameraShown {
        device: device.to_string(),
        problem: problem(drivers, device),
    };
    cameras.iter().map(shown).collect()
}

/// The reason why a device does not work, if it does not.
fn problem(drivers: &[Driver], device: Device) -> Option<String> {
    let driver = driver_of(drivers, device)?;
    let reason = driver.reason.as_ref().or(driver.last_exit.as_ref());
    let because = |what: &str| {
        let reason = reason.map(|it| format!(": {it}")).unwrap_or_default();
        Some(format!("{device} {what}{reason}"))
    };
    match driver.state() {
        DriverState::Up => {
            let mut troubles = driver.troubles.iter();
            let trouble = troubles.find(|it| is(&it.device, device))?;
            Some(format!("{device}: {}", trouble.text))
        }
        DriverState::Starting => Some(format!("{device} is starting")),
        DriverState::Stopping => Some(format!("{device} is stopping")),
        DriverState::Down => Some(format!("{device} is stopped: start it under Devices")),
        DriverState::Backoff => because("starts again soon"),
        DriverState::Failed => because("has failed"),
    }
}

/// Whether the driver of a device runs.
#[must_use]
pub fn is_up(drivers: &[Driver], device: Device) -> bool {
    let found = driver_of(drivers, device);
    found.is_some_and(|driver| matches!(driver.state(), DriverState::Up | DriverState::Starting))
}

fn driver_of(drivers: &[Driver], device: Device) -> Option<&Driver> {
    let serves = |driver: &&Driver| driver.devices.iter().any(|it| is(it, device));
    drivers.iter().find(serves)
}

fn is(wire: &WireDevice, device: Device) -> bool {
    (wire.r#type, wire.id) == (device.device_type.0, device.id.0)
}

#[cfg(test)]
pub(crate) mod tests {
    use amber_proto::mediator::Trouble;

    use super::*;

    /// Drivers with one device each: type, id, state.
    pub(crate) fn drivers(all: &[(i32, i32, DriverState)]) -> Vec<Driver> {
        let drivers = all.iter().map(|&(r#type, id, state)| Driver {
            devices: vec![WireDevice { r#type, id }],
            state: state.into(),
            ..Driver::default()
        });
        drivers.collect()
    }

    #[test]
    fn the_lowest_number_of_each_type_counts() {
        let up = DriverState::Up;
        let drivers = drivers(&[(2, 1, up), (2, 0, DriverState::Failed), (4, 3, up)]);
        let parts = Parts::of(&drivers);
        let wheels = Device::new(DeviceType::ROBOCLAW, 0);
        assert_eq!(parts.wheels, Some(wheels));
        assert_eq!(parts.scanner, Some(Device::new(DeviceType::HOKUYO, 3)));
        assert_eq!(parts.guard, None);
        assert!(!is_up(&drivers, wheels));
        assert!(is_up(&drivers, Device::new(DeviceType::ROBOCLAW, 1)));
        assert!(!is_up(&drivers, Device::new(DeviceType::ROBOCLAW, 7)));
    }

    #[test]
    fn all_cameras_are_listed_with_what_is_wrong_with_them() {
        let (up, failed) = (DriverState::Up, DriverState::Failed);
        assert_eq!(cameras(&drivers(&[(2, 0, up)])), []);
        let mut drivers = drivers(&[(17, 10, up), (2, 0, up), (17, 2, failed)]);
        let shown = |device: &str, problem: Option<&str>| CameraShown {
            device: device.to_owned(),
            problem: problem.map(str::to_owned),
        };
        let failed = shown("camera:2", Some("camera:2 has failed"));
        assert_eq!(cameras(&drivers), [failed, shown("camera:10", None)]);
        drivers.pop();
        drivers[0].troubles = vec![Trouble {
            device: WireDevice { r#type: 17, id: 10 },
            text: "/dev/video0 is not there".into(),
            since_ms: 1,
        }];
        let unplugged = Some("camera:10: /dev/video0 is not there");
        assert_eq!(cameras(&drivers), [shown("camera:10", unplugged)]);
    }

    #[test]
    fn what_does_not_work_is_named_where_people_look_for_it() {
        let up = DriverState::Up;
        let robot = || drivers(&[(2, 0, up), (4, 0, up), (6, 0, up), (8, 0, up), (9, 0, up)]);
        assert_eq!(Problems::of(&robot()), Problems::default());
        assert_eq!(Problems::of(&[]), Problems::default());

        let stopped = |index: usize| {
            let mut drivers = robot();
            drivers[index].state = DriverState::Down.into();
            Problems::of(&drivers)
        };
        let words = |device: &str| Some(format!("{device}:0 is stopped: start it under Devices"));
        let wheels = words("roboclaw");
        assert_eq!(
            stopped(0),
            Problems {
                wheels: wheels.clone(),
                guard: wheels.clone(),
                targets: wheels,
                map: None,
            }
        );
        let laser = words("hokuyo");
        assert_eq!(
            stopped(1),
            Problems {
                wheels: None,
                guard: laser.clone(),
                targets: laser.clone(),
                map: laser,
            }
        );
        assert_eq!(
            stopped(3),
            Problems {
                targets: words("drive-to-point"),
                ..Problems::default()
            }
        );

        let mut drivers = robot();
        drivers[0].troubles = vec![Trouble {
            device: WireDevice { r#type: 2, id: 0 },
            text: "/dev/roboclaw is not there".into(),
            since_ms: 1,
        }];
        let unplugged = Problems::of(&drivers).wheels;
        let words = "roboclaw:0: /dev/roboclaw is not there";
        assert_eq!(unplugged.as_deref(), Some(words));
        drivers[0].state = DriverState::Failed.into();
        drivers[0].reason = Some("exit code 2".into());
        let failed = Problems::of(&drivers).wheels;
        assert_eq!(
            failed.as_deref(),
            Some("roboclaw:0 has failed: exit code 2")
        );
    }
}
