//! `amber snapshot`: asks the recorders of this user to write what they hold in memory. IO.
//!
//! Each recorder with `--snapshot` has a Unix socket in a folder that only its user can open, named
//! after the port of its mediator. A line with a remark asks it; a line of JSON is its answer.

mod folder;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use amber_client::MediatorAddress;
use amber_terminal::{Failure, Human, show};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, unix::OwnedWriteHalf};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use super::limits::{ANSWER_BYTES, ANSWER_PATIENCE, END_PATIENCE, REMARK_BYTES};
use super::report::Written;
use folder::folder;

pub(in super::super) const HELP: &str = "\
Examples:
  amber record --snapshot 30s     (in another terminal, or as a service)
  amber snapshot
  amber snapshot 'it turned left instead of right'

The remark is stored in the file; `amber info` shows it.";

/// Options of `amber snapshot`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// A remark for the file
    remark: Option<String>,
}

/// The wish for a snapshot.
#[derive(Debug)]
pub(super) struct Asked {
    remark: String,
    answer: oneshot::Sender<Result<Written, Failure>>,
}

impl Asked {
    /// The reason.
    pub(super) fn remark(&self) -> &str {
        &self.remark
    }

    /// Says what was written.
    pub(super) fn answer(self, written: Result<Written, Failure>) {
        // It may not wait any longer.
        let _ = self.answer.send(written);
    }

    /// Says why there is none.
    pub(super) fn refuse(self, why: Failure) {
        self.answer(Err(why));
    }
}

/// The socket of a recorder; the file is removed at the end.
pub(super) struct Socket {
    path: PathBuf,
    asked: mpsc::Receiver<Asked>,
}

impl Socket {
    /// Opens the socket for the recorder of the mediator at this port.
    ///
    /// # Errors
    /// The folder or the socket cannot be made.
    pub(super) fn open(port: u16) -> Result<Self, Failure> {
        let name = format!("{}{}", prefix(port), std::process::id());
        let path = folder()?.join(name);
        // Of a recorder that was killed and had the same process id.
        let _ = fs::remove_file(&path);
        let listener = UnixListener::bind(&path).map_err(|error| {
            Failure::new(format!(
                "cannot make the socket {}: {error}",
                path.display()
            ))
        })?;
        let (sender, asked) = mpsc::channel(1);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (read, write) = stream.into_split();
                let mut read = tokio::io::BufReader::new(read).take(REMARK_BYTES as u64 + 1);
                let mut line = String::new();
                let came = timeout(END_PATIENCE, read.read_line(&mut line)).await;
                if !matches!(came, Ok(Ok(1..))) {
                    continue;
                }
                let (answer, written) = oneshot::channel();
                let remark = line.trim_end().to_owned();
                if sender.send(Asked { remark, answer }).await.is_err() {
                    return;
                }
                if let Ok(written) = written.await {
                    reply(write, written).await;
                }
            }
        });
        Ok(Self { path, asked })
    }

    /// The next wish. Dropping the future loses none.
    pub(super) async fn next(&mut self) -> Option<Asked> {
        self.asked.recv().await
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        // It may have been removed by hand.
        let _ = fs::remove_file(&self.path);
    }
}

async fn reply(mut to: OwnedWriteHalf, written: Result<Written, Failure>) {
    let value = match written {
        Ok(mut written) => {
            // The other program may have another working folder.
            if let Ok(path) = std::path::absolute(&written.file) {
                written.file = path;
            }
            json!(written)
        }
        Err(failure) => json!({ "error": failure.text() }),
    };
    // It may have gone.
    let _ = to.write_all(format!("{value}\n").as_bytes()).await;
}

fn prefix(port: u16) -> String {
    format!("snapshot-{port}-")
}

/// Asks all recorders of a mediator.
pub(in super::super) fn run(
    mediator: &MediatorAddress,
    options: &Options,
    as_json: bool,
) -> Result<(), Failure> {
    let port = mediator.port();
    let remark = options.remark.as_deref().unwrap_or("amber snapshot");
    if remark.len() > REMARK_BYTES || remark.contains(['\n', '\r']) {
        let text = format!("a remark is one line of up to {REMARK_BYTES} bytes");
        return Err(Failure::wrong(text));
    }
    let mut count = 0;
    for path in sockets(&folder()?, port) {
        let Some(answer) = ask(&path, remark)? else {
            continue;
        };
        if let Some(error) = answer["error"].as_str() {
            return Err(Failure::new(format!("no snapshot: {error}")));
        }
        show(&Answer(answer), as_json)?;
        count += 1;
    }
    match count {
        0 => Err(Failure::new(format!(
            "no recorder holds a snapshot of the mediator at {mediator}"
        ))
        .hint("start one as this user: `amber record --snapshot 30s`")),
        _ => Ok(()),
    }
}

#[derive(Serialize)]
struct Answer(Value);

impl Human for Answer {
    fn human(&self) -> String {
        let text = |name: &str| self.0[name].as_str().unwrap_or_default().to_owned();
        let number = |name: &str| self.0[name].as_u64().unwrap_or_default();
        let written = Written {
            file: text("file").into(),
            bytes: number("bytes"),
            messages: number("messages"),
            missing_messages: number("missing_messages"),
            seconds: self.0["seconds"].as_f64().unwrap_or_default(),
            reason: None,
        };
        format!("{}\n", written.brief())
    }
}

/// Asks one recorder; `None` if it is gone.
fn ask(path: &Path, remark: &str) -> Result<Option<Value>, Failure> {
    let Ok(mut stream) = UnixStream::connect(path) else {
        // Of a recorder that was killed.
        let _ = fs::remove_file(path);
        return Ok(None);
    };
    let mut line = String::new();
    let answered = stream
        .set_read_timeout(Some(ANSWER_PATIENCE))
        .and_then(|()| stream.write_all(format!("{remark}\n").as_bytes()))
        .and_then(|()| BufReader::new(stream.take(ANSWER_BYTES)).read_line(&mut line));
    answered.map_err(|error| Failure::new(format!("the recorder did not answer: {error}")))?;
    let answer = serde_json::from_str(&line);
    answer.map(Some).map_err(|_| {
        Failure::new("the recorder ended before it wrote a snapshot")
            .hint("see its terminal or log for the reason")
    })
}

/// The sockets of all recorders of a mediator.
fn sockets(folder: &Path, port: u16) -> Vec<PathBuf> {
    let is_one = |path: &PathBuf| {
        let name = path.file_name().map(|name| name.to_string_lossy());
        name.is_some_and(|name| name.starts_with(&prefix(port)))
    };
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<_> = entries.map(|entry| entry.path()).filter(is_one).collect();
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recorders_are_found_by_the_port_of_their_mediator() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["snapshot-4000-7", "snapshot-40001-8", "feed-7-0"] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        assert_eq!(
            sockets(folder.path(), 4000),
            [folder.path().join("snapshot-4000-7")]
        );
    }

    #[test]
    fn the_socket_of_a_killed_recorder_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("snapshot-4000-7");
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        assert_eq!(ask(&path, "").unwrap(), None);
        assert!(!path.exists());
    }
}
