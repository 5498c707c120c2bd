//! Assigns the devices of a robot to the parts of the page. PURE.

use amber_proto::mediator::{Driver, DriverState};
use amber_proto::{Device, DeviceType};
use serde::Serialize;

/// The devices that the page shows together: of each type, the one with the lowest number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parts {
    /// The wheels.
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
    /// The servos.
    pub servos: Option<Device>,
    /// Makes maps.
    pub mapping: Option<Device>,
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
        }
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
        }
    }
}

/// Whether the driver of a device runs.
#[must_use]
pub fn is_up(drivers: &[Driver], device: Device) -> bool {
    let serves = |driver: &&Driver| {
        let mut devices = driver.devices.iter();
        devices.any(|it| it.r#type == device.device_type.0 && it.id == device.id.0)
    };
    let found = drivers.iter().find(serves);
    found.is_some_and(|driver| matches!(driver.state(), DriverState::Up | DriverState::Starting))
}

#[cfg(test)]
pub(crate) mod tests {
    use amber_proto::mediator::Device as WireDevice;

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
}
