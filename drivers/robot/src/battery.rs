//! The battery in the terms of `sensor_msgs/BatteryState` of ROS. PURE.

use amber_proto::battery_state::BatteryState;
use amber_proto::battery_state::battery_state::{Chemistry, Health};

/// A smaller current neither charges nor uses the battery.
const REST_MA: i32 = 20;

/// The members of `sensor_msgs/BatteryState` that a robot of Amber may know. An absent number is not
/// measured: not a number in ROS.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RosBattery {
    /// Volts.
    pub voltage: Option<f64>,
    /// Amperes, negative while it discharges.
    pub current: Option<f64>,
    /// From 0 to 1.
    pub percentage: Option<f64>,
    /// `power_supply_status`: 0 unknown, 1 charging, 2 discharging, 3 not charging.
    pub status: u8,
    /// `power_supply_health`: 0 unknown, 1 good; others are faults.
    pub health: u8,
    /// `power_supply_technology`: 0 unknown; others are kinds of cells.
    pub technology: u8,
    /// Whether there is a battery.
    pub present: bool,
}

impl From<&BatteryState> for RosBattery {
    fn from(state: &BatteryState) -> Self {
        let milli = |number: i64| number as f64 / 1000.0;
        Self {
            voltage: state.voltage.map(|mv| milli(mv.into())),
            current: state.current.map(|ma| milli(ma.into())),
            percentage: state.charge.map(|percent| percent / 100.0),
            status: match state.current {
                None => 0,
                Some(ma) if ma > REST_MA => 1,
                Some(ma) if ma < -REST_MA => 2,
                Some(_) => 3,
            },
            health: match state.health.and_then(|it| Health::try_from(it).ok()) {
                None => 0,
                // An empty battery is a good one: ROS means its condition.
                Some(Health::Good | Health::Low) => 1,
                Some(Health::Overheated) => 2,
                Some(Health::Dead) => 3,
                Some(Health::Overvoltage) => 4,
            },
            technology: match state.chemistry.and_then(|it| Chemistry::try_from(it).ok()) {
                // ROS has no lead.
                None | Some(Chemistry::LeadAcid) => 0,
                Some(Chemistry::NiMh) => 1,
                Some(Chemistry::LiIon) => 2,
                Some(Chemistry::LiPo) => 3,
                Some(Chemistry::LiFe) => 4,
            },
            // A voltage comes from a battery.
            present: state.present.unwrap_or(state.voltage.is_some()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_measured_is_unknown() {
        let battery = RosBattery::from(&BatteryState::default());
        assert_eq!(battery, RosBattery::default());
        let measured = BatteryState {
            voltage: Some(12_100),
            ..BatteryState::default()
        };
        let battery = RosBattery::from(&measured);
        assert_eq!((battery.voltage, battery.present), (Some(12.1), true));
        assert_eq!((battery.percentage, battery.current), (None, None));
    }

    #[test]
    fn a_known_battery_has_the_numbers_of_ros() {
        let mut state = BatteryState {
            voltage: Some(11_000),
            current: Some(-1_500),
            charge: Some(25.0),
            present: Some(true),
            health: Some(Health::Low.into()),
            chemistry: Some(Chemistry::LiPo.into()),
            ..BatteryState::default()
        };
        let battery = RosBattery::from(&state);
        let numbers = (battery.current, battery.percentage);
        assert_eq!(numbers, (Some(-1.5), Some(0.25)));
        let kinds = (battery.status, battery.health, battery.technology);
        assert_eq!(kinds, (2, 1, 3));
        for (ma, status) in [(800, 1), (0, 3)] {
            state.current = Some(ma);
            assert_eq!(RosBattery::from(&state).status, status);
        }
        // Values of a later version.
        (state.health, state.chemistry) = (Some(77), Some(77));
        let battery = RosBattery::from(&state);
        assert_eq!((battery.health, battery.technology), (0, 0));
    }
}
