//! Opens a gamepad, and reads it as a stream of bytes: see [`amber_gamepad::Reader`]. IO.

use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::thread;

use amber_gamepad::{Event, Gamepad, REPORT, SYN};
use tokio::io::AsyncWriteExt;
use tokio::task::spawn_blocking;

use crate::connection::{Connect, Connection, Endpoint};

/// Simulated gamepads are pseudo-terminals, as other simulated devices are.
const TERMINALS: &str = "/dev/pts";

/// Where the gamepad is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GamepadPort {
    /// Its file, or that of a simulated one. `None` for the first one that is found.
    pub path: Option<PathBuf>,
}

impl Connect for GamepadPort {
    async fn connect(&mut self) -> io::Result<Box<dyn Connection>> {
        if let Some(path) = &self.path
            && path.canonicalize()?.starts_with(TERMINALS)
        {
            return simulated(path).await;
        }
        let path = self.path.clone();
        let opened = spawn_blocking(move || Gamepad::open(path.as_deref())).await;
        let gamepad = opened.map_err(io::Error::other)?;
        let gamepad = gamepad.map_err(io::Error::other)?;
        let (near, far) = UnixStream::pair()?;
        near.set_nonblocking(true)?;
        // The thread stays in its read, so it is not joined. It ends with the gamepad, or with the first
        // event after the other end was closed.
        thread::Builder::new()
            .name("gamepad".into())
            .spawn(move || forward(gamepad, far))?;
        Ok(Box::new(tokio::net::UnixStream::from_std(near)?))
    }

    fn place(&self) -> String {
        match &self.path {
            Some(path) => path.display().to_string(),
            None => "the gamepad".to_owned(),
        }
    }
}

/// A simulated gamepad says what it is when it is asked, as Linux does for a real one.
async fn simulated(path: &Path) -> io::Result<Box<dyn Connection>> {
    let mut endpoint = Endpoint::Serial {
        path: path.to_owned(),
        baud: 115_200,
    };
    let mut port = endpoint.connect().await?;
    port.write_all(b"\n").await?;
    Ok(port)
}

/// Writes what the gamepad is, and its events, until one of them is gone.
fn forward(mut gamepad: Gamepad, mut stream: UnixStream) -> io::Result<()> {
    const END: Event = Event {
        kind: SYN,
        code: REPORT,
        value: 0,
    };
    stream.write_all(&gamepad.description().line())?;
    loop {
        let mut events = gamepad.read()?;
        events.push(END);
        let bytes: Vec<u8> = events.into_iter().flat_map(Event::bytes).collect();
        stream.write_all(&bytes)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::open;

    #[tokio::test]
    async fn what_cannot_be_opened_says_what_to_check() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "no gamepad").unwrap();
        let nowhere = folder.path().join("nowhere");
        for (path, expected) in [
            (&nowhere, "nowhere does not exist"),
            (&file, "file: Inappropriate ioctl"),
        ] {
            let mut port = GamepadPort {
                path: Some(path.clone()),
            };
            let error = open(&mut port).await.err().unwrap();
            assert!(error.contains(expected), "{error}");
        }
    }
}
