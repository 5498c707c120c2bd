//! A terminal for commands that read keys or draw in place.

use std::fs::File;
use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

use nix::pty::{Winsize, openpty};

/// A command in a terminal of its own.
pub struct Terminal {
    pub process: Child,
    pub keys: File,
    shown: Arc<Mutex<Vec<u8>>>,
}

impl Terminal {
    pub fn of(mut command: Command) -> Self {
        let size = Winsize {
            ws_row: 30,
            ws_col: 100,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        let pty = openpty(&size, None).unwrap();
        let end = || Stdio::from(pty.slave.try_clone().unwrap());
        command.env("TERM", "xterm-256color").env_remove("NO_COLOR");
        let process = command.stdin(end()).stdout(end()).stderr(end()).spawn();
        let keys = File::from(pty.master);
        let mut output = keys.try_clone().unwrap();
        let shown = Arc::new(Mutex::new(Vec::new()));
        let all = shown.clone();
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            // An error means that the terminal has no process any more.
            while let Ok(length @ 1..) = output.read(&mut buffer) {
                all.lock().unwrap().extend(&buffer[..length]);
            }
        });
        Self {
            process: process.unwrap(),
            keys,
            shown,
        }
    }

    /// All that it has shown.
    pub fn shown(&self) -> String {
        String::from_utf8_lossy(&self.shown.lock().unwrap()).into_owned()
    }
}
