//! The battery as a message of ROS 2. PURE.

use amber_proto::battery_state::BatteryState as Measured;
use amber_robot::battery::RosBattery;
use amber_ros2::messages::{BatteryState, Header};

use super::convert::Frames;

/// A battery. What is not measured is not a number.
#[must_use]
pub fn battery(state: &Measured, frames: &Frames, stamp_ns: u64) -> BatteryState {
    let battery = RosBattery::from(state);
    let number = |value: Option<f64>| value.map_or(f32::NAN, |value| value as f32);
    BatteryState {
        header: Header::new(stamp_ns, &frames.base),
        voltage: number(battery.voltage),
        temperature: f32::NAN,
        current: number(battery.current),
        charge: f32::NAN,
        capacity: f32::NAN,
        design_capacity: f32::NAN,
        percentage: number(battery.percentage),
        power_supply_status: battery.status,
        power_supply_health: battery.health,
        power_supply_technology: battery.technology,
        present: battery.present,
        ..BatteryState::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_measured_is_a_number() {
        let state = Measured {
            voltage: Some(12_100),
            charge: Some(50.0),
            present: Some(true),
            ..Measured::default()
        };
        let message = battery(&state, &Frames::with_prefix("r1/"), 1_000_000_002);
        assert_eq!(message.header.frame_id, "r1/base_link");
        assert_eq!(message.header.stamp.nanosec, 2);
        assert_eq!((message.voltage, message.percentage), (12.1, 0.5));
        assert!(message.present && message.current.is_nan() && message.charge.is_nan());
    }
}
