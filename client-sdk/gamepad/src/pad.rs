//! The state of a gamepad, from its events. PURE.
//!
//! Buttons have the names of their places, not of their labels: the left shoulder button is LB on an
//! Xbox pad, L1 on a PlayStation pad and L on a Switch pad.

use amber_proto::gamepad::GamepadState;
use amber_proto::gamepad::gamepad_state::Button;

use super::event::{ABS, DROPPED, Description, Event, KEY, Range, SYN};

/// A stick that is moved less than this part of its way is at rest, unless the caller says otherwise.
pub const DEAD_ZONE: f64 = 0.12;

/// The places of axes in [`Pad::axes`].
const LEFT: [usize; 2] = [0, 1];
const RIGHT: [usize; 2] = [2, 3];
const TRIGGERS: [usize; 2] = [4, 5];

/// Makers whose drivers name the upper and the left button by their place. Those for Xbox pads name
/// them by their labels X and Y, which the other makers have the other way round.
const BY_PLACE: [u16; 2] = [0x054C, 0x057E];

/// The place of an axis.
fn place(code: u16) -> Option<usize> {
    match code {
        0x00 => Some(LEFT[0]),
        0x01 => Some(LEFT[1]),
        0x03 => Some(RIGHT[0]),
        0x04 => Some(RIGHT[1]),
        0x02 | 0x15 => Some(TRIGGERS[0]),
        0x05 | 0x14 => Some(TRIGGERS[1]),
        _ => None,
    }
}

fn button(code: u16, is_by_place: bool) -> Option<Button> {
    Some(match code {
        0x130 => Button::South,
        0x131 => Button::East,
        0x133 if is_by_place => Button::North,
        0x134 if is_by_place => Button::West,
        0x133 => Button::West,
        0x134 => Button::North,
        0x136 => Button::LeftShoulder,
        0x137 => Button::RightShoulder,
        0x13A => Button::Select,
        0x13B => Button::Start,
        0x13C => Button::Mode,
        0x13D => Button::LeftStick,
        0x13E => Button::RightStick,
        0x220 | 0x2C2 => Button::Up,
        0x221 | 0x2C3 => Button::Down,
        0x222 | 0x2C0 => Button::Left,
        0x223 | 0x2C1 => Button::Right,
        _ => return None,
    })
}

/// An axis, and what is known of it.
#[derive(Clone, Copy, Debug)]
struct Axis {
    range: Range,
    is_trigger: bool,
    dead: f64,
    value: f64,
    /// It has reported that it is at rest. Before, its value may be wrong: the system reports 0 until
    /// an axis moves, and on many gamepads 0 is one end.
    was_at_rest: bool,
}

impl Axis {
    fn handle(&mut self, value: i32) {
        self.value = match self.is_trigger {
            true => self.range.pressed(value),
            false => self.range.centred(value),
        };
        self.was_at_rest |= self.value.abs() <= self.dead;
    }

    fn known(self) -> f64 {
        if self.was_at_rest { self.value } else { 0.0 }
    }
}

/// How far something is moved, from the end of its dead zone on.
fn moved(far: f64, dead: f64) -> f64 {
    (far.min(1.0) - dead).max(0.0) / (1.0 - dead)
}

/// A gamepad.
#[derive(Clone, Debug)]
pub struct Pad {
    name: String,
    is_by_place: bool,
    axes: [Option<Axis>; 6],
    /// Buttons instead of such axes.
    triggers: [Option<bool>; 2],
    /// A bit for each [`Button`]: those that are held, and those whose next press may be none by a
    /// person, because they were not seen up.
    held: u32,
    unclear: u32,
}

impl Pad {
    /// A gamepad that was just opened. Sticks and triggers that are moved less than `dead_zone`, a part
    /// of their way, are at rest.
    pub fn new(description: Description, dead_zone: f64) -> Self {
        let Description {
            name,
            vendor,
            axes: described,
            held,
        } = description;
        let is_by_place = BY_PLACE.contains(&vendor);
        let mut axes = [None; 6];
        for (code, range) in described {
            if let Some(place) = place(code) {
                axes[place] = Some(Axis {
                    range,
                    is_trigger: TRIGGERS.contains(&place),
                    dead: range.dead(dead_zone),
                    value: 0.0,
                    was_at_rest: false,
                });
            }
        }
        let held = held
            .into_iter()
            .filter_map(|code| button(code, is_by_place));
        Self {
            name,
            is_by_place,
            axes,
            triggers: [None; 2],
            held: 0,
            unclear: held.fold(0, |bits, it| bits | bit(it)),
        }
    }

    /// Takes what has changed.
    pub fn handle(&mut self, event: Event) {
        let Event { kind, code, value } = event;
        match (kind, code) {
            (KEY, 0x138) => self.triggers[0] = Some(value != 0),
            (KEY, 0x139) => self.triggers[1] = Some(value != 0),
            (KEY, _) => {
                if let Some(button) = button(code, self.is_by_place) {
                    self.hold(button, value != 0);
                }
            }
            // The direction pad.
            (ABS, 0x10) => {
                self.hold(Button::Left, value < 0);
                self.hold(Button::Right, value > 0);
            }
            (ABS, 0x11) => {
                self.hold(Button::Up, value < 0);
                self.hold(Button::Down, value > 0);
            }
            (ABS, _) => {
                if let Some(axis) = place(code).and_then(|place| self.axes[place].as_mut()) {
                    axis.handle(value);
                }
            }
            (SYN, DROPPED) => self.doubt(),
            _ => {}
        }
    }

    /// What a person does with it.
    pub fn state(&self) -> GamepadState {
        let stick = |places| self.stick(places).map(|way| way.map(rounded));
        let (left, right) = (stick(LEFT), stick(RIGHT));
        let trigger = |index: usize| {
            let axis = self.axes[TRIGGERS[index]];
            let axis = axis.map(|axis| moved(axis.known(), axis.dead));
            let button = self.triggers[index].map(|is_down| f64::from(u8::from(is_down)));
            axis.or(button).map(rounded)
        };
        let buttons = 0..=Button::Right as i32;
        GamepadState {
            connected: Some(true),
            name: Some(self.name.clone()),
            trouble: None,
            left_x: left.map(|[x, _]| x),
            left_y: left.map(|[_, y]| y),
            right_x: right.map(|[x, _]| x),
            right_y: right.map(|[_, y]| y),
            left_trigger: trigger(0),
            right_trigger: trigger(1),
            buttons: buttons.filter(|it| (self.held >> it) & 1 == 1).collect(),
            age: None,
        }
    }

    /// How far a stick is moved to the right and up, at most by 1 in all.
    fn stick(&self, places: [usize; 2]) -> Option<[f64; 2]> {
        let [x, y] = [self.axes[places[0]]?, self.axes[places[1]]?];
        let way = [x.known(), -y.known()];
        let far = way[0].hypot(way[1]);
        let part = moved(far, x.dead.max(y.dead));
        if part == 0.0 {
            return Some([0.0; 2]);
        }
        Some(way.map(|it| it / far * part))
    }

    fn hold(&mut self, button: Button, is_down: bool) {
        let bit = bit(button);
        match is_down {
            true => self.held |= bit & !self.unclear,
            false => {
                self.held &= !bit;
                self.unclear &= !bit;
            }
        }
    }

    /// What it reports may be wrong: buttons count when they are pressed again, and axes after they
    /// have been at rest.
    fn doubt(&mut self) {
        (self.held, self.unclear) = (0, !0);
        self.triggers = [None; 2];
        for axis in self.axes.iter_mut().flatten() {
            axis.was_at_rest = false;
        }
    }
}

fn bit(button: Button) -> u32 {
    1 << button as u32
}

/// The nearest thousandth: hands tremble.
fn rounded(value: f64) -> f64 {
    // Without a negative zero.
    (value * 1000.0).round() / 1000.0 + 0.0
}

#[cfg(test)]
mod tests;
