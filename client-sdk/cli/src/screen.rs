//! A terminal whose content is redrawn continuously, until a key ends that. IO.

use std::future::pending;
use std::io::{self, IsTerminal, Write};
use std::panic;

use amber_terminal::{Failure, print};
use crossterm::event::{Event, KeyCode, KeyEventKind, KeyModifiers};
use tokio::sync::mpsc;

use crate::drive::keyboard::Keyboard;

/// Switches to the alternate screen and hides the cursor.
const BEGIN: &str = "\x1b[?1049h\x1b[?25l";
/// Restores the main screen.
const END: &str = "\x1b[?25h\x1b[?1049l";

/// The whole terminal. Dropping this restores it; so does a panic.
pub(crate) struct Screen {
    _open: (),
}

impl Screen {
    /// Only for a terminal at stdout.
    pub(crate) fn open() -> Result<Self, Failure> {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |what| {
            restore();
            before(what);
        }));
        print(BEGIN.as_bytes())?;
        Ok(Self { _open: () })
    }

    /// Replaces what is shown; the text has at most as many lines as the terminal.
    pub(crate) fn draw(&mut self, text: &str) -> Result<(), Failure> {
        print(frame(text).as_bytes())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
    }
}

fn restore() {
    let mut out = io::stdout().lock();
    // An error means that the terminal is closed.
    let _ = out.write_all(END.as_bytes()).and_then(|()| out.flush());
}

/// The keys that end a command, if it has a keyboard. Dropping this restores the terminal.
pub(crate) struct Quit {
    _keyboard: Option<Keyboard>,
    pressed: Option<mpsc::Receiver<()>>,
}

impl Quit {
    /// Reads the keyboard if the command draws and stdin is a terminal.
    pub(crate) fn new(draws: bool) -> Result<Self, Failure> {
        let reads_keys = draws && io::stdin().is_terminal();
        let keyboard = reads_keys.then(|| Keyboard::new(is_quit)).transpose();
        let (_keyboard, pressed) = keyboard
            .map_err(|error| Failure::new(format!("cannot read the keyboard: {error}")))?
            .unzip();
        Ok(Self { _keyboard, pressed })
    }

    /// Waits for such a key.
    pub(crate) async fn pressed(&mut self) {
        match &mut self.pressed {
            Some(pressed) => {
                pressed.recv().await;
            }
            None => pending().await,
        }
    }
}

fn is_quit(event: &Event) -> Option<()> {
    let Event::Key(key) = event else { return None };
    if key.kind == KeyEventKind::Release {
        return None;
    }
    let is_quit = match key.code {
        KeyCode::Char('c' | 'd') => key.modifiers.contains(KeyModifiers::CONTROL),
        KeyCode::Char('q' | 'Q') | KeyCode::Esc => true,
        _ => false,
    };
    is_quit.then_some(())
}

/// The columns and rows of the terminal now.
pub(crate) fn size() -> (usize, usize) {
    match terminal_size::terminal_size() {
        Some((width, height)) => (width.0.into(), height.0.into()),
        None => (80, 40),
    }
}

/// Replaces the last text, in one step on terminals that support it. Each line clears its rest, and
/// the end clears the rows below. The last line feed is omitted, because it would scroll.
fn frame(text: &str) -> String {
    let lines = text.trim_end_matches('\n').replace('\n', "\x1b[K\r\n");
    format!("\x1b[?2026h\x1b[H{lines}\x1b[K\x1b[J\x1b[?2026l")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_replaces_the_last_one_without_scrolling() {
        assert_eq!(
            frame("ab\n\nc\n"),
            "\x1b[?2026h\x1b[Hab\x1b[K\r\n\x1b[K\r\nc\x1b[K\x1b[J\x1b[?2026l"
        );
    }
}
