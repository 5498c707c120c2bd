//! The five UDP ports of each RflySim vehicle. PURE.

use std::fmt;

/// The number of a vehicle; the first is 1.
///
/// The ports of vehicle `n` are those of vehicle 1 plus `2 (n - 1)`.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Vehicle(u16);

impl Vehicle {
    /// The highest number. The ranges of ports are 10 000 apart, and the highest, from 40 100,
    /// must stay below the ports that the system assigns itself on many hosts (49 152).
    pub const MAX: u16 = 4_500;

    /// The vehicle with this number, if it is within 1 to [`Self::MAX`].
    pub fn new(number: u16) -> Option<Self> {
        (1..=Self::MAX).contains(&number).then_some(Self(number))
    }

    pub fn number(self) -> u16 {
        self.0
    }

    /// The UDP port of this vehicle with this meaning.
    pub fn port(self, port: Port) -> u16 {
        port.of_first_vehicle() + 2 * (self.0 - 1)
    }
}

impl fmt::Display for Vehicle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The meaning of a UDP port. The simulator listens on the even ports, programs outside on the
/// odd ones.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Port {
    /// Commands to the autopilot.
    Control,
    /// The state as the autopilot estimates it.
    Estimate,
    /// Inputs of the simulated vehicle.
    Model,
    /// The true state of the simulated vehicle.
    Truth,
    /// Messages of the autopilot to outside programs.
    External,
}

impl Port {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Control,
        Self::Estimate,
        Self::Model,
        Self::Truth,
        Self::External,
    ];

    /// The port number of vehicle 1.
    pub fn of_first_vehicle(self) -> u16 {
        match self {
            Self::Control => 20_100,
            Self::Estimate => 20_101,
            Self::Model => 30_100,
            Self::Truth => 30_101,
            Self::External => 40_101,
        }
    }

    /// Meaning and vehicle of a port number, for vehicles up to [`Vehicle::MAX`].
    pub fn from_number(number: u16) -> Option<(Self, Vehicle)> {
        Self::ALL.into_iter().find_map(|port| {
            let offset = number.checked_sub(port.of_first_vehicle())?;
            let vehicle = Vehicle::new(offset / 2 + 1)?;
            (offset % 2 == 0).then_some((port, vehicle))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_of_the_first_vehicles() {
        let ports = |number| Port::ALL.map(|port| Vehicle::new(number).unwrap().port(port));
        assert_eq!(ports(1), [20_100, 20_101, 30_100, 30_101, 40_101]);
        assert_eq!(ports(2), [20_102, 20_103, 30_102, 30_103, 40_103]);
        assert_eq!(ports(10), [20_118, 20_119, 30_118, 30_119, 40_119]);
    }

    #[test]
    fn every_port_tells_its_meaning_and_vehicle() {
        for number in 1..=Vehicle::MAX {
            let vehicle = Vehicle::new(number).unwrap();
            for port in Port::ALL {
                let found = Port::from_number(vehicle.port(port));
                assert_eq!(found, Some((port, vehicle)));
            }
        }
        for other in [0, 20_099, 40_100, 50_000, u16::MAX] {
            assert_eq!(Port::from_number(other), None, "{other}");
        }
        assert_eq!(Vehicle::new(0), None);
        assert_eq!(Vehicle::new(Vehicle::MAX + 1), None);
    }
}
