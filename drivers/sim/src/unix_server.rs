//! A listening Unix socket with a task for each connection. IO.

use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use tokio::net::{UnixListener, UnixStream};
use tokio::task::{JoinHandle, JoinSet};

/// The maximum number of simultaneous connections.
const MAX_CONNECTIONS: usize = 16;

/// Dropping it closes the connections and removes the socket.
#[derive(Debug)]
pub(crate) struct UnixServer {
    task: JoinHandle<()>,
    path: PathBuf,
}

impl UnixServer {
    /// Listens at a path, replacing a stale socket.
    pub(crate) fn open<F>(
        path: &Path,
        serve: impl Fn(UnixStream) -> F + Send + 'static,
    ) -> io::Result<Self>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        if std::fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket()) {
            std::fs::remove_file(path)?;
        }
        let listener = UnixListener::bind(path)?;
        let task = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                while connections.try_join_next().is_some() {}
                if connections.len() < MAX_CONNECTIONS {
                    connections.spawn(serve(stream));
                }
            }
        });
        Ok(Self {
            task,
            path: path.to_owned(),
        })
    }
}

impl Drop for UnixServer {
    fn drop(&mut self) {
        self.task.abort();
        let _ = std::fs::remove_file(&self.path);
    }
}
