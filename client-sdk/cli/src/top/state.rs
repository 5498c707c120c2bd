//! The user's selections in `amber top`, and the effects of keys. PURE.

use amber_proto::Device;
use crossterm::event::{Event, KeyCode, KeyEventKind, KeyModifiers};

use super::sample::View;

/// The current selection and view.
#[derive(Clone, Debug)]
pub(super) struct State {
    /// The address of the mediator.
    pub(super) mediator: String,
    /// Whether the terminal has colours, and the user wants them.
    pub(super) has_colours: bool,
    /// The number of the selected device.
    pub(super) selected: usize,
    /// The table below the devices if there is room for only one.
    pub(super) panel: Panel,
    pub(super) is_paused: bool,
    /// The latest message.
    pub(super) message: Option<String>,
    asked: Option<(Change, Device)>,
}

/// A table below the devices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Panel {
    #[default]
    Clients,
    Drops,
}

/// An action on a driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Start,
    Stop,
    Restart,
}

/// A key with a meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    Quit,
    Up,
    Down,
    Restart,
    StopOrStart,
    Pause,
    Panel,
    Yes,
    /// Any other key: cancels a question.
    Other,
    /// The size of the terminal has changed.
    Resized,
}

/// The effect of a key, other than a change of the display.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    Quit,
    Change(Change, Device),
}

impl State {
    /// The initial state: the first device is selected.
    pub(super) fn new(mediator: String, has_colours: bool) -> Self {
        Self {
            mediator,
            has_colours,
            selected: 0,
            panel: Panel::default(),
            is_paused: false,
            message: None,
            asked: None,
        }
    }

    /// The pending question.
    pub(super) fn question(&self) -> Option<String> {
        let (change, device) = self.asked?;
        Some(format!("{} {device}? Press y to confirm.", change.verb()))
    }

    /// Handles a key.
    pub(super) fn press(&mut self, key: Key, view: &View) -> Option<Effect> {
        let last = view.devices.len().saturating_sub(1);
        self.selected = self.selected.min(last);
        if key == Key::Resized {
            return None;
        }
        self.message = None;
        if let Some((change, device)) = self.asked.take() {
            match key {
                Key::Yes => return Some(Effect::Change(change, device)),
                Key::Quit => return Some(Effect::Quit),
                _ => return None,
            }
        }
        let row = view.devices.get(self.selected);
        match key {
            Key::Quit => return Some(Effect::Quit),
            Key::Up => self.selected = self.selected.saturating_sub(1),
            Key::Down => self.selected = (self.selected + 1).min(last),
            Key::Pause => self.is_paused = !self.is_paused,
            Key::Panel => {
                self.panel = match self.panel {
                    Panel::Clients => Panel::Drops,
                    Panel::Drops => Panel::Clients,
                }
            }
            Key::Restart | Key::StopOrStart => {
                let row = row?;
                let change = match (key, row.state) {
                    (Key::Restart, _) => Change::Restart,
                    (_, "down" | "failed" | "stopping") => Change::Start,
                    _ => Change::Stop,
                };
                self.asked = row.device.parse().ok().map(|device| (change, device));
            }
            Key::Yes | Key::Other | Key::Resized => {}
        }
        None
    }
}

impl Change {
    fn verb(self) -> &'static str {
        match self {
            Self::Start => "Start",
            Self::Stop => "Stop",
            Self::Restart => "Restart",
        }
    }
}

/// The meaning of a terminal event.
pub(super) fn meaning(event: &Event) -> Option<Key> {
    let key = match event {
        Event::Key(key) if key.kind != KeyEventKind::Release => key,
        Event::Resize(..) => return Some(Key::Resized),
        _ => return None,
    };
    let has_control = key.modifiers.contains(KeyModifiers::CONTROL);
    Some(match key.code {
        KeyCode::Char('c') if has_control => Key::Quit,
        KeyCode::Char('q') | KeyCode::Esc => Key::Quit,
        KeyCode::Up | KeyCode::Char('k') => Key::Up,
        KeyCode::Down | KeyCode::Char('j') => Key::Down,
        KeyCode::Char('r') => Key::Restart,
        KeyCode::Char('s') => Key::StopOrStart,
        KeyCode::Char('p' | ' ') => Key::Pause,
        KeyCode::Tab => Key::Panel,
        KeyCode::Char('y') => Key::Yes,
        _ => Key::Other,
    })
}

#[cfg(test)]
mod tests {
    use crossterm::event::KeyEvent;

    use super::super::sample::tests::look;
    use super::*;

    #[test]
    fn changes_are_confirmed() {
        let view = View::between(None, &look(1));
        let mut state = State::new(String::new(), true);
        assert_eq!(state.press(Key::Restart, &view), None);
        assert_eq!(
            state.question().as_deref(),
            Some("Restart hokuyo:0? Press y to confirm.")
        );
        assert_eq!(state.press(Key::Other, &view), None);
        assert_eq!(state.press(Key::Yes, &view), None, "nothing is asked");
        for _ in 0..5 {
            state.press(Key::Down, &view);
        }
        assert_eq!(state.selected, 1);
        state.press(Key::StopOrStart, &view);
        let wheels = "roboclaw:0".parse().unwrap();
        let stop = Effect::Change(Change::Stop, wheels);
        assert_eq!(state.press(Key::Yes, &view), Some(stop));
        assert_eq!(state.question(), None);
        let mut down = view.clone();
        down.devices[1].state = "failed";
        state.press(Key::StopOrStart, &down);
        let start = Effect::Change(Change::Start, wheels);
        assert_eq!(state.press(Key::Yes, &down), Some(start));
        assert_eq!(state.press(Key::Quit, &down), Some(Effect::Quit));
    }

    #[test]
    fn without_devices_there_is_nothing_to_change() {
        let mut state = State::new(String::new(), true);
        for key in [Key::Restart, Key::StopOrStart, Key::Down, Key::Up, Key::Yes] {
            assert_eq!(state.press(key, &View::default()), None);
        }
        assert_eq!(state.question(), None);
    }

    #[test]
    fn keys_have_their_usual_meaning() {
        let key = |code, modifiers| meaning(&Event::Key(KeyEvent::new(code, modifiers)));
        let plain = KeyModifiers::NONE;
        assert_eq!(key(KeyCode::Char('q'), plain), Some(Key::Quit));
        let control = KeyModifiers::CONTROL;
        assert_eq!(key(KeyCode::Char('c'), control), Some(Key::Quit));
        assert_eq!(key(KeyCode::Char('x'), plain), Some(Key::Other));
        assert_eq!(meaning(&Event::Resize(1, 1)), Some(Key::Resized));
        assert_eq!(meaning(&Event::FocusLost), None);
    }
}
