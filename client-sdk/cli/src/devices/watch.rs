//! `amber devices --watch`: an updated table, or a line per change. IO.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, SystemTime};

use amber_client::{Error, Mediator, Subscription, subscription};
use amber_proto::mediator::Event;
use amber_terminal::{Failure, Human, local_time, note, show};
use crossterm::cursor::{Hide, MoveTo, Show};
use crossterm::event::{Event as Input, KeyCode, KeyEventKind, KeyModifiers};
use crossterm::style::Print;
use crossterm::terminal::{Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, size};
use crossterm::{execute, queue};
use tokio::time::{MissedTickBehavior, interval};

use super::{Devices, changes};
use crate::drive::keyboard::Keyboard;

/// Update interval of the times in the table. Events of the mediator show changes immediately.
const PERIOD: Duration = Duration::from_secs(1);

pub(super) async fn run(mediator: &Mediator, json: bool) -> Result<(), Failure> {
    if !json && io::stdout().is_terminal() && io::stdin().is_terminal() {
        return on_terminal(mediator).await;
    }
    crate::until_interrupt(in_lines(mediator, json)).await
}

/// Prints each change.
async fn in_lines(mediator: &Mediator, json: bool) -> Result<(), Failure> {
    let mut looks = Looks::new(mediator).await?;
    let mut last = Devices::default();
    let mut is_interrupted = false;
    loop {
        match looks.next().await {
            Ok(devices) => {
                is_interrupted = false;
                for change in changes::between(&last.devices, &devices.devices, now_ms()) {
                    show(&change, json)?;
                }
                last = devices;
            }
            Err(error) => {
                if !std::mem::replace(&mut is_interrupted, true) {
                    note(format!("interrupted: {error}; retrying"));
                }
            }
        }
    }
}

/// Draws each update until `q` or Ctrl-C.
async fn on_terminal(mediator: &Mediator) -> Result<(), Failure> {
    let failed = |error: io::Error| Failure::new(format!("cannot use the terminal: {error}"));
    let mut looks = Looks::new(mediator).await?;
    let mut devices = looks.next().await?;
    let mut problem = None;
    let (_keyboard, mut keys) = Keyboard::new(key).map_err(failed)?;
    let _screen = Screen::open().map_err(failed)?;
    loop {
        let state = match &problem {
            None => format!("{}  (q quits)", local_time(now_ms())),
            Some(error) => format!("{}  {error}", local_time(now_ms())),
        };
        draw(&devices, &state).map_err(failed)?;
        tokio::select! {
            key = keys.recv() => match key {
                Some(Key::Redraw) => {}
                // Without a key, the terminal is closed.
                Some(Key::Quit) | None => return Ok(()),
            },
            look = looks.next() => match look {
                Ok(look) => (devices, problem) = (look, None),
                Err(error) => problem = Some(error),
            },
        }
    }
}

fn draw(devices: &Devices, state: &str) -> io::Result<()> {
    let (columns, rows) = size()?;
    let mut out = io::stdout().lock();
    let text = format!("{}\n{state}", devices.human());
    for (row, line) in (0..rows).zip(text.lines()) {
        // Keep characters whole, and prevent line breaks by the terminal.
        let line: String = line.chars().take(columns.into()).collect();
        let line = amber_proto::printable_line(&line);
        let rest = Clear(ClearType::UntilNewLine);
        queue!(out, MoveTo(0, row), Print(line), rest)?;
    }
    queue!(out, Clear(ClearType::FromCursorDown))?;
    out.flush()
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Key {
    Quit,
    Redraw,
}

fn key(event: &Input) -> Option<Key> {
    match event {
        Input::Resize(..) => Some(Key::Redraw),
        Input::Key(key) if key.kind != KeyEventKind::Release => {
            let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
            let quits = match key.code {
                KeyCode::Char('c' | 'd') => is_control,
                KeyCode::Char('q' | 'Q') | KeyCode::Esc => true,
                _ => false,
            };
            quits.then_some(Key::Quit)
        }
        _ => None,
    }
}

/// Requests the list of devices: each second, and after each event.
struct Looks<'a> {
    mediator: &'a Mediator,
    events: Subscription<Event>,
    ticks: tokio::time::Interval,
}

impl<'a> Looks<'a> {
    async fn new(mediator: &'a Mediator) -> Result<Self, Error> {
        // A mediator of the original system has no list and does not answer.
        mediator.ping().await?;
        let mut ticks = interval(PERIOD);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Ok(Self {
            mediator,
            events: mediator.events().await?,
            ticks,
        })
    }

    async fn next(&mut self) -> Result<Devices, Error> {
        tokio::select! {
            _ = self.ticks.tick() => {}
            () = event(&mut self.events) => {}
        }
        Ok(Devices::new(&self.mediator.drivers().await?))
    }
}

/// Waits for an event.
async fn event(events: &mut Subscription<Event>) {
    match events.next_event().await {
        Some(subscription::Event::Message(_) | subscription::Event::Resumed) => {}
        // There are no events until it resumes; the ticks continue.
        Some(subscription::Event::Interrupted(_)) | None => std::future::pending().await,
    }
}

/// The alternate screen of the terminal. Dropping this restores the main screen.
struct Screen;

impl Screen {
    fn open() -> io::Result<Self> {
        execute!(io::stdout(), EnterAlternateScreen, Hide)?;
        Ok(Self)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // An error means that the terminal is closed.
        let _ = execute!(io::stdout(), Show, LeaveAlternateScreen);
    }
}

fn now_ms() -> u64 {
    let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let ms = since_epoch.unwrap_or_default().as_millis();
    ms.try_into().unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use crossterm::event::KeyEvent;

    use super::*;

    #[test]
    fn q_and_ctrl_c_quit() {
        let press = |code, modifiers| key(&Input::Key(KeyEvent::new(code, modifiers)));
        let plain = KeyModifiers::NONE;
        assert_eq!(press(KeyCode::Char('q'), plain), Some(Key::Quit));
        assert_eq!(
            press(KeyCode::Char('c'), KeyModifiers::CONTROL),
            Some(Key::Quit)
        );
        assert_eq!(press(KeyCode::Char('c'), plain), None);
        assert_eq!(key(&Input::Resize(9, 9)), Some(Key::Redraw));
    }
}
