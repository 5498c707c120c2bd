//! Reading the configuration again, beside the data path. IO.

use std::rc::Rc;
use std::time::Instant;

use tokio::sync::mpsc;
use tokio::task::{spawn_blocking, spawn_local};
use tracing::error;

use super::Shell;
use crate::core::Ticket;
use crate::limits::RELOADS;

/// What a reload has led to: what was done, or what is wrong and what to do.
type Outcome = Result<String, (String, Option<String>)>;

/// Asks for reloads, which are done one after the other.
#[derive(Clone, Debug)]
pub(super) struct Reloads(mpsc::Sender<Option<Ticket>>);

impl Reloads {
    pub(super) fn new() -> (Self, mpsc::Receiver<Option<Ticket>>) {
        let (sender, wanted) = mpsc::channel(RELOADS);
        (Self(sender), wanted)
    }

    /// Asks for one; its outcome is in the log, and goes to who holds the ticket.
    pub(super) fn ask(&self, shell: &Shell, ticket: Option<Ticket>) {
        if self.0.try_send(ticket).is_err()
            && let Some(ticket) = ticket
        {
            let busy = ("too many reloads wait already".to_owned(), None);
            shell.core.borrow_mut().answer(ticket, Err(busy));
        }
    }
}

/// Does what is asked for, in turn.
pub(super) fn start(shell: &Rc<Shell>, mut wanted: mpsc::Receiver<Option<Ticket>>) {
    let shell = shell.clone();
    spawn_local(async move {
        while let Some(ticket) = wanted.recv().await {
            shell.service.reloading();
            let outcome = reload(&shell).await;
            if let Some(ticket) = ticket {
                shell.core.borrow_mut().answer(ticket, outcome);
            }
            shell.settle();
            shell.service.ready();
        }
    });
}

async fn reload(shell: &Shell) -> Outcome {
    // A file may lie where it takes long to be read.
    let read = shell.hooks.reload.clone();
    let config = match spawn_blocking(move || read()).await {
        Ok(Ok(config)) => config,
        Ok(Err(error)) => {
            error!(hint = error.hint(), "configuration not changed: {error}");
            return Err((error.to_string(), error.hint()));
        }
        // The program is ending.
        Err(error) => return Err((error.to_string(), None)),
    };
    let core = &mut *shell.core.borrow_mut();
    if core.is_stopping() {
        return Err(("the mediator is shutting down".into(), None));
    }
    (shell.hooks.set_log_rate)(config.limits.log_lines_per_second);
    Ok(core.apply(Instant::now(), &config))
}
