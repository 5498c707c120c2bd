//! The terminal of a player: status, events and keys. IO.

use std::io::{self, BufRead, BufReader, IsTerminal, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use rustix::stdio::stdin;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcgetpgrp, tcsetattr};
use tempfile::TempDir;

use crate::control::{Command, Report, line};
use crate::keys::{self, Key};
use crate::limits;

/// The texts of the console.
pub trait Shown: Send + 'static {
    /// Text for an encoded event, with its line break.
    fn event(&self, event: &[u8]) -> String;
}

/// Keys and status of a player in another process.
///
/// Dropping this restores the terminal.
pub struct Console {
    // The socket is in it.
    folder: TempDir,
    listener: Option<UnixListener>,
    before: Option<Termios>,
}

/// How reports are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Style {
    /// A status line that is updated in place, and lines above it.
    Terminal,
    /// Lines of text, without the status.
    Text,
    /// Lines of JSON.
    Json,
}

impl Console {
    /// Waits for a player at a separate socket.
    ///
    /// # Errors
    /// The socket cannot be made.
    pub fn new() -> io::Result<Self> {
        let folder = tempfile::Builder::new().prefix("amber-play-").tempdir()?;
        let listener = UnixListener::bind(folder.path().join("socket"))?;
        Ok(Self {
            folder,
            listener: Some(listener),
            before: None,
        })
    }

    /// The socket, for [`crate::DriverOptions`].
    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("socket")
    }

    /// Shows reports, and reads keys if there is a terminal, in separate threads. Returns the keys
    /// for people, if there are any. `quit` is called for q.
    ///
    /// # Errors
    /// The system has no more threads.
    pub fn start(
        &mut self,
        json: bool,
        shown: impl Shown,
        quit: impl Fn() + Send + 'static,
    ) -> io::Result<Option<&'static str>> {
        let Some(listener) = self.listener.take() else {
            return Ok(None);
        };
        let has_keys = !json && self.prepare_terminal().is_some();
        let style = match json {
            true => Style::Json,
            false if has_keys && io::stdout().is_terminal() => Style::Terminal,
            false => Style::Text,
        };
        let player: Arc<Mutex<Option<UnixStream>>> = Arc::default();
        let newest = player.clone();
        spawn("player", move || {
            // A player that was restarted connects again.
            for stream in listener.incoming().map_while(Result::ok) {
                let reader = stream.try_clone();
                *newest.lock().unwrap_or_else(PoisonError::into_inner) = Some(stream);
                if let Ok(reader) = reader {
                    follow(reader, style, &shown);
                }
            }
        })?;
        if !has_keys {
            return Ok(None);
        }
        spawn("keyboard", move || {
            while let Ok(event) = crossterm::event::read() {
                match keys::meaning(&event) {
                    Some(Key::Quit) => quit(),
                    Some(Key::Do(command)) => send(&player, command),
                    None => {}
                }
            }
        })?;
        Ok(Some(keys::KEYS))
    }

    /// Makes the terminal report each key at once, without showing it. Ctrl-C stays a signal, and
    /// output stays as it is.
    fn prepare_terminal(&mut self) -> Option<()> {
        let before = tcgetattr(stdin()).ok()?;
        // In the background, a change would stop the process.
        if tcgetpgrp(stdin()).is_ok_and(|group| group != rustix::process::getpgrp()) {
            return None;
        }
        let mut single = before.clone();
        single.local_modes &= !(LocalModes::ICANON | LocalModes::ECHO);
        tcsetattr(stdin(), OptionalActions::Now, &single).ok()?;
        self.before = Some(before);
        Some(())
    }
}

impl Drop for Console {
    fn drop(&mut self) {
        if let Some(before) = self.before.take() {
            // An error means that the terminal is closed.
            let _ = tcsetattr(stdin(), OptionalActions::Now, &before);
            let _ = io::stdout().write_all(b"\n");
        }
    }
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    // They end with the process.
    thread::Builder::new()
        .name(name.into())
        .spawn(work)
        .map(drop)
}

fn send(player: &Mutex<Option<UnixStream>>, command: Command) {
    let mut player = player.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(stream) = &mut *player
        && stream.write_all(line(&command).as_bytes()).is_err()
    {
        *player = None;
    }
}

/// Shows the reports of one player until it ends.
fn follow(reader: UnixStream, style: Style, shown: &impl Shown) {
    let mut reader = BufReader::new(reader);
    let mut text = String::new();
    while matches!(
        (&mut reader).take(limits::LINE_BYTES).read_line(&mut text),
        Ok(1..)
    ) {
        if let Ok(report) = serde_json::from_str(&text) {
            let out = show(&report, style, shown);
            let mut stdout = io::stdout().lock();
            // The player continues without a reader.
            let _ = stdout
                .write_all(out.as_bytes())
                .and_then(|()| stdout.flush());
        }
        text.clear();
    }
}

/// The text of a report.
fn show(report: &Report, style: Style, shown: &impl Shown) -> String {
    const START_OF_LINE: &str = "\r\x1b[K";
    if style == Style::Json {
        return match report {
            // The fields of the event by name.
            Report::Event(event) => shown.event(event),
            report => line(report),
        };
    }
    let text = match report {
        Report::Status(status) => {
            return match style {
                // The cursor returns, so that a line of the log does not begin behind the status.
                Style::Terminal => format!("{START_OF_LINE}{}\r", crate::line::status(status)),
                Style::Text | Style::Json => String::new(),
            };
        }
        Report::Event(event) => shown.event(event),
        Report::Gap(gap) => crate::line::gap(gap) + "\n",
        Report::Damaged(what, gap) => crate::line::damaged(what, gap) + "\n",
        Report::Again => "the recording starts again\n".into(),
        Report::End => "the recording has ended; clients still get the last answers\n".into(),
        Report::Problem(text) => format!("cannot continue: {text}\n"),
    };
    let text = amber_proto::printable(&text);
    match style {
        Style::Terminal => format!("{START_OF_LINE}{text}"),
        Style::Text | Style::Json => text.into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::Status;

    struct Silent;

    impl Shown for Silent {
        fn event(&self, _: &[u8]) -> String {
            String::new()
        }
    }

    #[test]
    fn what_others_print_does_not_begin_behind_the_state() {
        let report = Report::Status(Status::default());
        let shown = show(&report, Style::Terminal, &Silent);
        assert!(
            shown.starts_with("\r\x1b[K") && shown.ends_with(" UTC\r"),
            "{shown:?}"
        );
        assert_eq!(show(&report, Style::Text, &Silent), "");
    }
}
