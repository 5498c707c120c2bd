//! Takes the lease of the wheels, or of other devices that a driver moves, for the client that holds
//! the lease of this driver. IO.
//!
//! So one lease covers the whole chain. If the wheels refuse, the client loses the lease of this
//! driver, with the name of the client that holds the wheels as the reason.

use std::env;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use amber_driver::client::lease::{Lease, Terms};
use amber_driver::client::{Error, Proxy};
use amber_driver::{Holder, HolderWatch, Link};
use amber_proto::{Device, DeviceMessage, DeviceType};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

/// The lease of the wheels ends if this driver falls silent for this time.
const PERIOD: Duration = Duration::from_secs(1);
/// How long to wait for the answer of the wheels.
const DEADLINE: Duration = Duration::from_millis(200);
/// The time until the next attempt if the wheels do not answer as they should.
const RETRY: Duration = Duration::from_millis(200);
/// The wheels may be free in a moment: their holder has just released them.
const GRACE: Duration = Duration::from_millis(300);
const AGAIN: Duration = Duration::from_millis(50);
/// How long clients of this driver are told why the wheels refuse, before they may try again.
const BLOCKED: Duration = Duration::from_millis(500);

/// The lease, while this is kept.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    refused: Refused,
    task: Option<JoinHandle<()>>,
}

impl Kept {
    /// Whether another client moves the wheels. Then this driver must not even stop them.
    pub(crate) fn is_refused(&self) -> bool {
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

/// Whether another client moves the wheels.
#[derive(Clone, Debug, Default)]
struct Refused(Arc<AtomicBool>);

impl Refused {
    fn get(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    fn set(&self, refused: bool) {
        self.0.store(refused, Ordering::Relaxed);
    }
}

/// Starts a task that holds the lease of the wheels while a client holds that of this driver. It ends
/// with the link, or when the result is dropped.
pub(crate) fn follow_lease<L, M>(link: &L, wheels: Device) -> Kept
where
    L: Deref<Target = Link<M>>,
    M: DeviceMessage + Send + 'static,
{
    let (link, refused) = (Link::clone(link), Refused::default());
    let told = refused.clone();
    let task = tokio::spawn(async move {
        let wheels = link.devices().device(wheels).with_deadline(DEADLINE);
        hold(&link, &wheels, &told).await;
    });
    Kept {
        refused,
        task: Some(task),
    }
}

async fn hold<M: DeviceMessage>(link: &Link<M>, wheels: &Proxy, refused: &Refused) {
    let mut holder = link.holder();
    loop {
        let wanted = holder.latest();
        let lease = match &wanted {
            Some(holder) => take(holder, wheels).await,
            None => Ok(None),
        };
        let goes_on = match &lease {
            // The lease is kept until the holder changes.
            Ok(Some(lease)) => tokio::select! {
                changed = holder.changed() => changed,
                _ = lease.lost() => true,
            },
            Ok(None) => holder.changed().await,
            Err(Error::Refused { message, .. }) => {
                refused.set(true);
                let refuses = match wheels.address().device_type {
                    DeviceType::ARM => "the arm refuses",
                    DeviceType::BUS_SERVOS => "the servos refuse",
                    _ => "the wheels refuse",
                };
                block(link, &mut holder, &format!("{refuses}: {message}")).await;
                refused.set(false);
                true
            }
            Err(_) => tokio::select! {
                changed = holder.changed() => changed,
                () = sleep(RETRY) => true,
            },
        };
        // Before the next one: a late release would end it.
        if let Ok(Some(lease)) = lease {
            let _ = lease.release().await;
        }
        if !goes_on {
            return;
        }
    }
}

/// Nobody moves this driver for a while, because the wheels refuse. A client that takes its lease by
/// force takes that of the wheels, too.
async fn block<M: DeviceMessage>(link: &Link<M>, holder: &mut HolderWatch, why: &str) {
    if link.block_motion(Some(why)).is_err() {
        return sleep(RETRY).await;
    }
    let _blocked = Blocked(link);
    let forced = async {
        while !holder.latest().is_some_and(|it| it.was_forced) && holder.changed().await {}
    };
    let _ = timeout(BLOCKED, forced).await;
}

/// While this is kept, nobody moves this driver.
struct Blocked<'a, M: DeviceMessage>(&'a Link<M>);

impl<M: DeviceMessage> Drop for Blocked<'_, M> {
    // Also if the task is aborted: the driver may go on without this robot.
    fn drop(&mut self) {
        let _ = self.0.block_motion(None);
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
    let until = Instant::now() + GRACE;
    loop {
        let terms = terms.clone();
        let taken = match holder.was_forced {
            true => terms.take_by_force(wheels).await,
            false => terms.take(wheels).await,
        };
        match taken {
            Ok(lease) => return Ok(Some(lease)),
            Err(Error::TimedOut { .. }) => return Ok(None),
            Err(Error::Refused { .. }) if Instant::now() < until => sleep(AGAIN).await,
            Err(error) => return Err(error),
        }
    }
}
