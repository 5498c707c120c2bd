//! Gamepads as other robot systems have them. PURE.

use amber_proto::gamepad::GamepadState;
use amber_proto::gamepad::gamepad_state::Button;

/// A gamepad in the terms of `sensor_msgs/Joy` of ROS, in the order of its `game_controller_node`.
/// Without a gamepad, all is at rest.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Joy {
    /// The left stick, the right stick, and both triggers. For ROS, the left and up are 1, and a trigger
    /// that is pressed is -1.
    pub axes: [f64; 6],
    /// The buttons, by the numbers of [`Button`]: 1 while one is held.
    pub buttons: [i32; 15],
}

impl From<&GamepadState> for Joy {
    fn from(state: &GamepadState) -> Self {
        let mut buttons = [0; 15];
        for button in state.buttons() {
            buttons[button as usize] = 1;
        }
        // Without negative zeros.
        let turned = |axis: f64| 0.0 - axis;
        Self {
            axes: [
                turned(state.left_x()),
                state.left_y(),
                turned(state.right_x()),
                state.right_y(),
                turned(state.left_trigger()),
                turned(state.right_trigger()),
            ],
            buttons,
        }
    }
}

const _: () = assert!(Button::Right as usize == 14, "the last one");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_left_is_positive_and_buttons_have_their_places() {
        let state = GamepadState {
            connected: Some(true),
            left_x: Some(0.5),
            left_y: Some(1.0),
            right_y: Some(-0.25),
            right_trigger: Some(0.75),
            buttons: vec![Button::South.into(), Button::LeftShoulder.into(), 99],
            ..GamepadState::default()
        };
        let joy = Joy::from(&state);
        assert_eq!(joy.axes, [-0.5, 1.0, 0.0, -0.25, 0.0, -0.75]);
        assert!(joy.axes[2].is_sign_positive());
        let held: Vec<_> = (0..15).filter(|index| joy.buttons[*index] == 1).collect();
        assert_eq!(held, [0, 9]);
        assert_eq!(Joy::from(&GamepadState::default()), Joy::default());
    }
}
