//! A gamepad as a message of ROS 2. PURE.

use amber_proto::gamepad::GamepadState;
use amber_ros2::messages::{Header, Joy};

/// The frame of `game_controller_node`.
const FRAME: &str = "joy";

/// What a person does with a gamepad. Without one, all is at rest.
#[must_use]
pub fn joy(state: &GamepadState, stamp_ns: u64) -> Joy {
    let amber_values::Joy { axes, buttons } = state.into();
    Joy {
        header: Header::new(stamp_ns, FRAME),
        axes: axes.map(|axis| axis as f32).to_vec(),
        buttons: buttons.to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gamepad_has_all_its_axes_and_buttons() {
        let state = GamepadState {
            connected: Some(true),
            left_x: Some(0.5),
            buttons: vec![9],
            ..GamepadState::default()
        };
        let message = joy(&state, 1_000_000_002);
        assert_eq!(message.header.frame_id, "joy");
        assert_eq!(message.header.stamp.nanosec, 2);
        assert_eq!(message.axes, [-0.5, 0.0, 0.0, 0.0, 0.0, 0.0]);
        assert_eq!((message.buttons.len(), message.buttons[9]), (15, 1));
    }
}
