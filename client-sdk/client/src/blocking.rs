//! The same interface without async, for scripts, tests and threaded programs.
//! IO.
//!
//! ```no_run
//! # fn run() -> amber_client::Result<()> {
//! let client = amber_client::blocking::Client::connect("127.0.0.1")?;
//! let dummy = client.dummy(0);
//! dummy.message("hello")?;
//! for update in dummy.messages()?.take(10) {
//!     println!("{}", update.message);
//! }
//! client.close();
//! # Ok(())
//! # }
//! ```
//!
//! A separate thread runs the client's task; it ends with the last handle.
//! These functions panic inside an async runtime: use [`crate::Client`] there.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use amber_proto::{Device, DeviceMessage};
use bytes::Bytes;
use tokio::runtime::{Builder, Handle};

use crate::client::{self, Announcement};
use crate::error::{Error, Result};
use crate::proxy;
use crate::subscription::{self, Update};

pub use crate::proxy::blocking::*;

/// A connection to a mediator: a cheap handle that can be cloned.
///
/// Dropping the last handle never blocks, so a program that exits right away
/// may exit before the mediator is informed. [`Client::close`] waits.
#[derive(Clone, Debug)]
pub struct Client {
    client: client::Client,
    runtime: Handle,
}

/// Any device, for your own messages.
#[derive(Clone, Debug)]
pub struct Proxy {
    proxy: proxy::Proxy,
    runtime: Handle,
}

/// A subscription as a blocking iterator. It ends when the client is closed.
#[must_use = "dropping it unsubscribes"]
pub struct Subscription<T> {
    subscription: subscription::Subscription<T>,
    runtime: Handle,
}

impl Client {
    /// Like [`crate::Client::connect`].
    ///
    /// # Errors
    /// The same errors, or the system cannot start a thread.
    pub fn connect(mediator: impl fmt::Display) -> Result<Self> {
        let mediator = mediator.to_string();
        let name = mediator.clone();
        let failed = move |error: io::Error| Error::Unreachable {
            mediator: name,
            source: Arc::new(error),
        };
        let runtime = match Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => runtime,
            Err(error) => return Err(failed(error)),
        };
        let handle = runtime.handle().clone();
        let (connected, wait) = mpsc::channel();
        let spawned = thread::Builder::new()
            .name("amber-client".into())
            .spawn(move || {
                runtime.block_on(async {
                    let client = client::Client::connect(mediator).await;
                    let ended = client.as_ref().ok().map(client::Client::ended);
                    // The caller waits for this.
                    let _ = connected.send(client);
                    if let Some(ended) = ended {
                        ended.await;
                    }
                });
            });
        if let Err(error) = spawned {
            return Err(failed(error));
        }
        let client = wait.recv().unwrap_or_else(|_| {
            Err(Error::Closed {
                cause: "its thread has ended".into(),
            })
        })?;
        Ok(Self {
            client,
            runtime: handle,
        })
    }

    /// The address of the mediator, for messages to people.
    pub fn mediator_address(&self) -> &str {
        self.client.mediator_address()
    }

    /// The device with this address, for your own messages.
    pub fn device(&self, device: Device) -> Proxy {
        Proxy {
            proxy: self.client.device(device),
            runtime: self.runtime.clone(),
        }
    }

    /// Returns the same client with another deadline for everything made from
    /// it.
    pub fn with_deadline(self, deadline: Duration) -> Self {
        Self {
            client: self.client.with_deadline(deadline),
            runtime: self.runtime,
        }
    }

    /// Whether the mediator has ever answered this client itself.
    pub fn announcement(&self) -> Announcement {
        self.client.announcement()
    }

    /// Tells the mediator that this client leaves, and ends it with all its
    /// clones.
    pub fn close(self) {
        self.runtime.block_on(self.client.close());
    }
}

impl Proxy {
    /// The address of this device.
    pub fn address(&self) -> Device {
        self.proxy.address()
    }

    /// Like [`crate::Proxy::with_deadline`].
    pub fn with_deadline(self, deadline: Duration) -> Self {
        Self {
            proxy: self.proxy.with_deadline(deadline),
            runtime: self.runtime,
        }
    }

    pub(crate) fn into_parts(self) -> (proxy::Proxy, Handle) {
        (self.proxy, self.runtime)
    }

    /// Like [`crate::Proxy::request`].
    ///
    /// # Errors
    /// The same errors.
    pub fn request<M: DeviceMessage>(&self, request: M) -> Result<M> {
        self.runtime.block_on(self.proxy.request(request))
    }

    /// Like [`crate::Proxy::request_raw`].
    ///
    /// # Errors
    /// The same errors.
    pub fn request_raw(&self, request: Bytes) -> Result<Bytes> {
        self.runtime.block_on(self.proxy.request_raw(request))
    }

    /// Like [`crate::Proxy::send`].
    ///
    /// # Errors
    /// The same errors.
    pub fn send<M: DeviceMessage>(&self, message: M) -> Result<()> {
        self.runtime.block_on(self.proxy.send(message))
    }

    /// Like [`crate::Proxy::send_raw`].
    ///
    /// # Errors
    /// The same errors.
    pub fn send_raw(&self, message: Bytes) -> Result<()> {
        self.runtime.block_on(self.proxy.send_raw(message))
    }

    /// Like [`crate::Proxy::ping`].
    ///
    /// # Errors
    /// The same errors.
    pub fn ping(&self) -> Result<Duration> {
        self.runtime.block_on(self.proxy.ping())
    }

    /// Like [`crate::Proxy::subscribe`].
    ///
    /// # Errors
    /// The same errors.
    pub fn subscribe<M: DeviceMessage + 'static>(&self) -> Result<Subscription<M>> {
        let subscription = self.runtime.block_on(self.proxy.subscribe())?;
        Ok(Subscription::new(subscription, &self.runtime))
    }

    /// Like [`crate::Proxy::subscribe_with`].
    ///
    /// # Errors
    /// The same errors.
    pub fn subscribe_with<M: DeviceMessage + 'static>(
        &self,
        parameters: M,
    ) -> Result<Subscription<M>> {
        let subscription = (self.runtime).block_on(self.proxy.subscribe_with(parameters))?;
        Ok(Subscription::new(subscription, &self.runtime))
    }

    /// Like [`crate::Proxy::subscribe_raw`].
    ///
    /// # Errors
    /// The same errors.
    pub fn subscribe_raw(&self) -> Result<Subscription<Bytes>> {
        let subscription = self.runtime.block_on(self.proxy.subscribe_raw())?;
        Ok(Subscription::new(subscription, &self.runtime))
    }
}

impl<T> Subscription<T> {
    pub(crate) fn new(subscription: subscription::Subscription<T>, runtime: &Handle) -> Self {
        Self {
            subscription,
            runtime: runtime.clone(),
        }
    }

    /// Like [`subscription::Subscription::missed`].
    pub fn missed(&self) -> u64 {
        self.subscription.missed()
    }

    /// The next message or interruption; `None` when the client has ended.
    pub fn next_event(&mut self) -> Option<subscription::Event<T>> {
        self.runtime.block_on(self.subscription.next_event())
    }

    /// The next message, if one comes within a time.
    pub fn next_within(&mut self, patience: Duration) -> Option<Update<T>> {
        let next = async { tokio::time::timeout(patience, self.subscription.next()).await };
        self.runtime.block_on(next).ok().flatten()
    }
}

impl<T> Iterator for Subscription<T> {
    type Item = Update<T>;

    fn next(&mut self) -> Option<Update<T>> {
        self.runtime.block_on(self.subscription.next())
    }
}

impl<T> fmt::Debug for Subscription<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.subscription.fmt(f)
    }
}
