//! The meaning of keys. PURE.

use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use crate::control::Command;
use crate::limits::JUMP_MS;

/// The meaning of a key.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Key {
    /// A command to the player.
    Do(Command),
    /// The program ends.
    Quit,
}

/// The keys, for the help and the first line on the terminal.
pub(crate) const KEYS: &str =
    "space pauses, left and right jump 5 s, . plays one message, + and - change the rate, q quits";

/// The meaning of a key; `None` if it has none.
pub(crate) fn meaning(event: &Event) -> Option<Key> {
    let Event::Key(KeyEvent {
        code,
        modifiers,
        kind,
        ..
    }) = *event
    else {
        return None;
    };
    if kind == KeyEventKind::Release {
        return None;
    }
    if modifiers.contains(KeyModifiers::CONTROL) {
        return matches!(code, KeyCode::Char('c' | 'd')).then_some(Key::Quit);
    }
    Some(match code {
        KeyCode::Char(' ') => Key::Do(Command::Toggle),
        KeyCode::Char('.') => Key::Do(Command::Step),
        KeyCode::Left => Key::Do(Command::JumpMs(-JUMP_MS)),
        KeyCode::Right => Key::Do(Command::JumpMs(JUMP_MS)),
        KeyCode::Char('+' | '=') => Key::Do(Command::Faster(2.0)),
        KeyCode::Char('-') => Key::Do(Command::Faster(0.5)),
        KeyCode::Char('q' | 'Q') => Key::Quit,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_their_meaning() {
        let plain = KeyModifiers::NONE;
        for (code, modifiers, expected) in [
            (KeyCode::Char(' '), plain, Some(Key::Do(Command::Toggle))),
            (KeyCode::Left, plain, Some(Key::Do(Command::JumpMs(-5000)))),
            (KeyCode::Right, plain, Some(Key::Do(Command::JumpMs(5000)))),
            (KeyCode::Char('.'), plain, Some(Key::Do(Command::Step))),
            (
                KeyCode::Char('='),
                plain,
                Some(Key::Do(Command::Faster(2.0))),
            ),
            (
                KeyCode::Char('-'),
                plain,
                Some(Key::Do(Command::Faster(0.5))),
            ),
            (KeyCode::Char('q'), plain, Some(Key::Quit)),
            (KeyCode::Char('c'), KeyModifiers::CONTROL, Some(Key::Quit)),
            (KeyCode::Char('x'), plain, None),
        ] {
            let event = Event::Key(KeyEvent::new(code, modifiers));
            assert_eq!(meaning(&event), expected, "{code:?}");
        }
        assert_eq!(meaning(&Event::Resize(1, 1)), None);
    }
}
