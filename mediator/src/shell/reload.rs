//! Reads the configuration again on another thread. IO.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Instant;

use mio::Waker;
use tracing::error;

use super::Shell;
use amber_core::Ticket;
use amber_core::config::{Config, ConfigError};
use amber_core::limits::RELOADS;

const NO_DRIVERS: &str = "the file has no drivers, so all drivers would stop";
const NO_DRIVERS_HINT: &str = "if they are to stop, write `driver = []` as its first line";

/// The result of a reload: a summary, or an error and a hint.
type Outcome = Result<String, (String, Option<String>)>;

/// Reloads; they run one after the other.
#[derive(Debug)]
pub(super) struct Reloads {
    /// Wakes the loop when a file was read.
    waker: Arc<Waker>,
    /// The requests that wait for an answer, if any.
    waiting: VecDeque<Option<Ticket>>,
    running: Option<Running>,
}

#[derive(Debug)]
struct Running {
    ticket: Option<Ticket>,
    read: Receiver<Result<Config, ConfigError>>,
}

impl Reloads {
    pub(super) fn new(waker: Arc<Waker>) -> Self {
        Self {
            waker,
            waiting: VecDeque::new(),
            running: None,
        }
    }
}

impl Shell {
    /// Reads the configuration again, after any running reload. The result is logged, and sent
    /// to the holder of the ticket.
    pub(super) fn reload(&mut self, ticket: Option<Ticket>) {
        if self.reloads.waiting.len() < RELOADS {
            self.reloads.waiting.push_back(ticket);
            self.next_reload();
        } else if let Some(ticket) = ticket {
            let busy = ("too many reloads are already waiting".to_owned(), None);
            self.core.answer(ticket, Err(busy));
        }
    }

    fn next_reload(&mut self) {
        while self.reloads.running.is_none()
            && let Some(ticket) = self.reloads.waiting.pop_front()
        {
            self.service.reloading();
            self.tell_service();
            let (sender, read) = mpsc::channel();
            let (hook, waker) = (self.hooks.reload.clone(), self.reloads.waker.clone());
            // Reading a file may take long.
            let thread = thread::Builder::new().name("reload".into());
            let started = thread.spawn(move || {
                // The receiver is gone when the mediator has ended.
                let _ = sender.send(hook());
                let _ = waker.wake();
            });
            match started {
                Ok(_) => self.reloads.running = Some(Running { ticket, read }),
                Err(error) => {
                    error!(%error, "configuration not changed: cannot start a thread to read it");
                    self.reload_ends(ticket, Err((error.to_string(), None)));
                }
            }
        }
    }

    /// A configuration may have been read.
    pub(super) fn reloaded(&mut self) {
        let Some(Running { ticket, read }) = self.reloads.running.take() else {
            return;
        };
        match read.try_recv() {
            Ok(config) => {
                let outcome = self.apply(config);
                // The service is ready when the new drivers were started.
                self.settle();
                self.reload_ends(ticket, outcome);
                self.next_reload();
            }
            // The thread wakes the loop when it is done.
            Err(_) => self.reloads.running = Some(Running { ticket, read }),
        }
    }

    fn apply(&mut self, config: Result<Config, ConfigError>) -> Outcome {
        let config = config.map_err(|error| {
            error!(hint = error.hint(), "configuration not changed: {error}");
            (error.to_string(), error.hint())
        })?;
        if self.core.is_stopping() {
            return Err(("the mediator is shutting down".into(), None));
        }
        if self.core.would_lose_all_drivers(&config) {
            error!(
                hint = NO_DRIVERS_HINT,
                "configuration not changed: {NO_DRIVERS}"
            );
            return Err((NO_DRIVERS.into(), Some(NO_DRIVERS_HINT.into())));
        }
        (self.hooks.set_log_rate)(config.limits.log_lines_per_second);
        Ok(self.core.apply(Instant::now(), &config))
    }

    fn reload_ends(&mut self, ticket: Option<Ticket>, outcome: Outcome) {
        if let Some(ticket) = ticket {
            self.core.answer(ticket, outcome);
        }
        self.service.ready();
        self.tell_service();
    }
}
