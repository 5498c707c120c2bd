//! Reads single keys from the terminal. IO.

use std::io;
use std::thread;

use crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use crossterm::terminal;
use tokio::sync::mpsc;

use super::held_key::{Direction, Key};

/// A terminal that reports each key at once and does not show it. Dropping this restores
/// the terminal.
pub(crate) struct Keyboard {
    _raw: (),
}

impl Keyboard {
    /// Reports the events that have a meaning. They end when the terminal is closed.
    pub(crate) fn new<T: Send + 'static>(
        meaning: fn(&Event) -> Option<T>,
    ) -> io::Result<(Self, mpsc::Receiver<T>)> {
        terminal::enable_raw_mode()?;
        let keyboard = Self { _raw: () };
        let (keys, received) = mpsc::channel(64);
        // The thread stays in an uninterruptible read, so it is not joined.
        thread::Builder::new()
            .name("keyboard".into())
            .spawn(move || {
                while let Ok(event) = event::read() {
                    if let Some(key) = meaning(&event)
                        && keys.blocking_send(key).is_err()
                    {
                        break;
                    }
                }
            })?;
        Ok((keyboard, received))
    }
}

impl Drop for Keyboard {
    fn drop(&mut self) {
        // An error means that the terminal is closed.
        let _ = terminal::disable_raw_mode();
    }
}

/// The meaning of a key for driving.
pub(super) fn meaning(event: &Event) -> Option<Key> {
    let Event::Key(key) = event else { return None };
    let KeyEvent {
        code,
        modifiers,
        kind,
        ..
    } = *key;
    if kind == KeyEventKind::Release {
        return None;
    }
    if modifiers.contains(KeyModifiers::CONTROL) {
        return matches!(code, KeyCode::Char('c' | 'd' | 'z')).then_some(Key::Quit);
    }
    match code {
        KeyCode::Up | KeyCode::Char('w' | 'W') => Some(Key::Go(Direction::Forward)),
        KeyCode::Down | KeyCode::Char('s' | 'S') => Some(Key::Go(Direction::Back)),
        KeyCode::Left | KeyCode::Char('a' | 'A') => Some(Key::Go(Direction::Left)),
        KeyCode::Right | KeyCode::Char('d' | 'D') => Some(Key::Go(Direction::Right)),
        KeyCode::Char('+' | '=') => Some(Key::Faster),
        KeyCode::Char('-') => Some(Key::Slower),
        KeyCode::Char('q' | 'Q') | KeyCode::Esc => Some(Key::Quit),
        // Any key stops the robot in an emergency.
        _ => Some(Key::Stop),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_their_usual_meaning() {
        let check = |code, modifiers, expected| {
            let event = Event::Key(KeyEvent::new(code, modifiers));
            assert_eq!(meaning(&event), expected, "{code:?}");
        };
        let plain = KeyModifiers::NONE;
        check(KeyCode::Up, plain, Some(Key::Go(Direction::Forward)));
        check(KeyCode::Char('a'), plain, Some(Key::Go(Direction::Left)));
        check(KeyCode::Char('d'), plain, Some(Key::Go(Direction::Right)));
        check(KeyCode::Char('d'), KeyModifiers::CONTROL, Some(Key::Quit));
        check(KeyCode::Char('c'), KeyModifiers::CONTROL, Some(Key::Quit));
        check(KeyCode::Char('z'), KeyModifiers::CONTROL, Some(Key::Quit));
        check(KeyCode::Char('w'), KeyModifiers::CONTROL, None);
        check(KeyCode::Esc, plain, Some(Key::Quit));
        check(KeyCode::Char(' '), plain, Some(Key::Stop));
        let mut released = KeyEvent::new(KeyCode::Up, plain);
        released.kind = KeyEventKind::Release;
        assert_eq!(meaning(&Event::Key(released)), None);
        assert_eq!(meaning(&Event::Resize(1, 1)), None);
    }
}
