//! The state of a robot and its devices for the fleet: JSON. PURE.

use std::collections::BTreeMap;

use amber_proto::Device;
use amber_proto::mediator::{Driver, DriverState};
use serde::{Deserialize, Serialize};

use crate::names::Name;

/// The answer of `amber/<robot>/info`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Info {
    pub robot: Name,
    /// The version of its `amber-zenoh`.
    pub version: String,
    /// A random number of this start.
    pub boot: String,
    /// The time since it joined the fleet.
    pub uptime_ms: u64,
    /// Its clock: milliseconds since 1970.
    pub time_ms: u64,
    /// Whether its mediator answers.
    pub mediator: bool,
    pub devices: Vec<Health>,
    /// The programs of operators that use it.
    pub operators: Vec<OperatorInfo>,
    /// Counters of forwarded and dropped messages.
    pub counters: BTreeMap<String, u64>,
    /// The topics of ROS 2 with commands from a clock that does not agree with that of the robot: how
    /// many milliseconds it is ahead, or behind if negative.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub clocks: BTreeMap<String, i64>,
}

/// The state of a device.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Health {
    /// The device, such as `hokuyo:0`.
    pub device: String,
    /// Whether it is available.
    pub state: State,
    /// The problem.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// What to check.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Who holds its lease, in words: who drives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<String>,
    /// Who halted it, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub halted_by: Option<String>,
    /// How often its driver was restarted.
    pub restarts: u32,
}

/// Whether a device is available.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// It works.
    Up,
    /// Its driver runs, but the device does not work.
    Trouble,
    /// Its driver does not run.
    Down,
}

/// A program of an operator.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct OperatorInfo {
    /// The operator.
    pub who: Name,
    /// The number of the program.
    pub instance: String,
    /// Whether it moves the robot.
    pub drives: bool,
}

/// The seat of a robot: the answer of `amber/<robot>/seat`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct SeatInfo {
    /// The id of the devices of the robot: a mediator may have several robots.
    pub id: i32,
    pub holder: Option<SeatHolder>,
    /// The waiting operators, in the order in which they get it.
    pub waiting: Vec<SeatWaiting>,
}

/// The operator who holds a seat.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct SeatHolder {
    /// The operator.
    pub who: Name,
    /// For how long.
    pub held_ms: u64,
    /// When the seat is free if this operator sends nothing further.
    pub free_in_ms: u64,
    /// Whether the operator has driven in the last second, and not only claimed the seat.
    pub drives: bool,
}

/// An operator who waits for a seat.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct SeatWaiting {
    /// The operator.
    pub who: Name,
    /// For how long.
    pub waits_ms: u64,
}

impl SeatInfo {
    /// No operator holds the seat.
    #[must_use]
    pub fn free(id: i32) -> Self {
        Self {
            id,
            holder: None,
            waiting: Vec::new(),
        }
    }
}

/// The devices of a mediator with their states.
#[must_use]
pub fn of_drivers(drivers: &[Driver]) -> BTreeMap<Device, Health> {
    let all = drivers.iter().flat_map(|driver| {
        let devices = driver.devices.iter();
        devices.map(move |device| (Device::from(*device), of_driver(driver, *device)))
    });
    all.collect()
}

fn of_driver(driver: &Driver, device: amber_proto::mediator::Device) -> Health {
    let trouble = driver.troubles.iter().find(|it| it.device == device);
    let (state, text, hint) = match (driver.state(), trouble) {
        (DriverState::Up, None) => (State::Up, None, None),
        (DriverState::Up, Some(trouble)) => (State::Trouble, Some(trouble.text.clone()), None),
        (state, _) => {
            let reason = driver.reason.clone().or_else(|| driver.last_exit.clone());
            let text = reason.unwrap_or_else(|| explained(state).to_owned());
            (State::Down, Some(text), driver.hint.clone())
        }
    };
    let motion = driver.motions.iter().find(|it| it.device == device);
    Health {
        device: Device::from(device).to_string(),
        state,
        text,
        hint,
        holder: motion.and_then(|it| it.holder.clone()),
        halted_by: motion.and_then(|it| it.halted_by.clone()),
        restarts: driver.restarts(),
    }
}

fn explained(state: DriverState) -> &'static str {
    match state {
        DriverState::Down => "its driver was stopped",
        DriverState::Starting => "its driver starts",
        DriverState::Stopping => "its driver is being stopped",
        DriverState::Backoff => "its driver will be started again",
        DriverState::Failed => "its driver was given up",
        DriverState::Up => "its driver runs",
    }
}

#[cfg(test)]
mod tests {
    use amber_proto::DeviceType;
    use amber_proto::mediator::Trouble;

    use super::*;

    #[test]
    fn states_of_drivers_become_those_of_devices() {
        let hokuyo = Device::new(DeviceType::HOKUYO, 0);
        let driver = |state, reason: Option<&str>, troubles| Driver {
            devices: vec![hokuyo.into()],
            state: state as i32,
            reason: reason.map(str::to_owned),
            troubles,
            ..Driver::default()
        };
        let trouble = Trouble {
            device: hokuyo.into(),
            text: "no such file".into(),
            since_ms: 5,
        };
        for (driver, state, text) in [
            (driver(DriverState::Up, None, vec![]), State::Up, None),
            (
                driver(DriverState::Up, None, vec![trouble]),
                State::Trouble,
                Some("no such file"),
            ),
            (
                driver(DriverState::Backoff, Some("it exited with code 1"), vec![]),
                State::Down,
                Some("it exited with code 1"),
            ),
            (
                driver(DriverState::Down, None, vec![]),
                State::Down,
                Some("its driver was stopped"),
            ),
        ] {
            let health = &of_drivers(&[driver])[&hokuyo];
            assert_eq!((health.state, health.text.as_deref()), (state, text));
            assert_eq!(health.device, "hokuyo:0");
        }
    }
}
