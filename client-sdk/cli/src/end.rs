//! Ctrl-C, SIGTERM and SIGHUP, for commands that must stop the robot before they end. IO.

use amber_terminal::Failure;
#[cfg(unix)]
use tokio::signal::unix::{SignalKind, signal};

/// The signals that end this process.
pub(super) struct End {
    #[cfg(unix)]
    signals: [tokio::signal::unix::Signal; 3],
}

impl End {
    /// From here on, the signals no longer end the process.
    #[cfg(unix)]
    pub(super) fn new() -> Result<Self, Failure> {
        let listen = |kind| {
            signal(kind)
                .map_err(|error| Failure::new(format!("cannot listen for signals: {error}")))
        };
        Ok(Self {
            signals: [
                listen(SignalKind::interrupt())?,
                listen(SignalKind::terminate())?,
                listen(SignalKind::hangup())?,
            ],
        })
    }

    /// Waits for one of the signals.
    #[cfg(unix)]
    pub(super) async fn wait(&mut self) {
        let [interrupt, terminate, hangup] = &mut self.signals;
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
    }

    #[cfg(not(unix))]
    pub(super) fn new() -> Result<Self, Failure> {
        Ok(Self {})
    }

    #[cfg(not(unix))]
    pub(super) async fn wait(&mut self) {
        // An error means that Ctrl-C is not available.
        if super::interrupt().await.is_err() {
            std::future::pending().await
        }
    }
}
