//! Takes the lease of the wheels for the client that holds the lease of this driver. IO.
//!
//! So one lease covers the whole chain, and whoever is refused at the wheels learns the name of the
//! client.

use std::env;
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use amber_driver::client::lease::{Lease, Terms};
use amber_driver::client::{Error, Proxy};
use amber_driver::{Holder, Link};
use amber_proto::{Device, DeviceMessage};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::sleep;

/// The lease of the wheels ends if this driver falls silent for this time.
const PERIOD: Duration = Duration::from_secs(1);
/// How long to wait for the answer of the wheels.
const DEADLINE: Duration = Duration::from_millis(200);
/// The time until the next attempt.
const RETRY: Duration = Duration::from_millis(200);

/// The lease, while this is kept.
#[derive(Debug, Default)]
pub(super) struct Kept {
    refused: Refused,
    task: Option<JoinHandle<()>>,
}

impl Kept {
    /// Why the lease cannot be taken.
    pub(super) fn refused(&self) -> Option<String> {
        self.refused.get()
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            // This releases the lease.
            task.abort();
        }
    }
}

/// Why the lease cannot be taken.
#[derive(Clone, Debug, Default)]
struct Refused(Arc<Mutex<Option<String>>>);

impl Refused {
    fn get(&self) -> Option<String> {
        self.lock().clone()
    }

    fn set(&self, why: Option<String>) {
        *self.lock() = why;
    }

    fn lock(&self) -> MutexGuard<'_, Option<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Starts a task that holds the lease of the wheels while a client holds that of this driver. It ends
/// with the link, or when the result is dropped.
pub(super) fn follow_lease<L, M>(link: &L, wheels: Device) -> Kept
where
    L: Deref<Target = Link<M>>,
    M: DeviceMessage,
{
    let refused = Refused::default();
    let wheels = link.devices().device(wheels).with_deadline(DEADLINE);
    let task = tokio::spawn(hold(link.holder(), wheels, refused.clone()));
    Kept {
        refused,
        task: Some(task),
    }
}

async fn hold(mut holder: watch::Receiver<Option<Holder>>, wheels: Proxy, refused: Refused) {
    loop {
        let wanted = holder.borrow_and_update().clone();
        let lease = match &wanted {
            Some(holder) => take(holder, &wheels).await,
            None => Ok(None),
        };
        refused.set(match &lease {
            Err(Error::Refused { message, .. }) => Some(format!("the wheels refuse: {message}")),
            _ => None,
        });
        let changed = match &lease {
            // The lease is kept until the holder changes.
            Ok(Some(lease)) => tokio::select! {
                changed = holder.changed() => changed,
                _ = lease.lost() => Ok(()),
            },
            Ok(None) => holder.changed().await,
            Err(_) => tokio::select! {
                changed = holder.changed() => changed,
                () = sleep(RETRY) => Ok(()),
            },
        };
        if changed.is_err() {
            return;
        }
        // Before the next one: a late release would end it.
        if let Ok(Some(lease)) = lease {
            let _ = lease.release().await;
        }
    }
}

/// `None`: the driver of the wheels keeps no leases.
async fn take(holder: &Holder, wheels: &Proxy) -> Result<Option<Lease>, Error> {
    let name = match env::var("AMBER_DEVICE") {
        Ok(own) => format!("{} via {own}", holder.name),
        Err(_) => holder.name.clone(),
    };
    let terms = Terms::new(name)
        .with_period(PERIOD)
        .for_client(holder.client);
    let taken = match holder.was_forced {
        true => terms.take_by_force(wheels).await,
        false => terms.take(wheels).await,
    };
    match taken {
        Ok(lease) => Ok(Some(lease)),
        Err(Error::TimedOut { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}
