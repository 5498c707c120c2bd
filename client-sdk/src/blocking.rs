//! The same interface without async, for scripts, tests and threaded programs.
//! IO.
//!
//! ```no_run
//! # fn run() -> amber_client::Result<()> {
//! let client = amber_client::blocking::Client::connect("127.0.0.1")?;
//! let dummy = client.dummy(0);
//! dummy.message("hello")?;
//! for update in dummy.subscribe()?.take(10) {
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

use amber_proto::mediator::{ClientInfo, Driver, Event, Statistics};
use amber_proto::{Device, DeviceMessage};
use bytes::Bytes;
use tokio::runtime::{Builder, Handle};

use crate::client::{self, Announcement};
use crate::error::{Error, Result};
use crate::proxy::{self, DummyStatus, Finding, ImuReading, Pose, Sensors, WheelSpeeds};
use crate::scan::Scan;
use crate::subscription::{self, Update};

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

/// A dummy device.
#[derive(Clone, Debug)]
pub struct Dummy {
    dummy: proxy::Dummy,
    runtime: Handle,
}

/// An accelerometer, a gyroscope and a magnetometer.
#[derive(Clone, Debug)]
pub struct NineDof {
    ninedof: proxy::NineDof,
    runtime: Handle,
}

/// Four driven wheels.
#[derive(Clone, Debug)]
pub struct Roboclaw {
    roboclaw: proxy::Roboclaw,
    runtime: Handle,
}

/// A laser scanner.
#[derive(Clone, Debug)]
pub struct Hokuyo {
    hokuyo: proxy::Hokuyo,
    runtime: Handle,
}

/// Positioning by markers on the ceiling.
#[derive(Clone, Debug)]
pub struct Stargazer {
    stargazer: proxy::Stargazer,
    runtime: Handle,
}

/// Hobby servos.
#[derive(Clone, Debug)]
pub struct Maestro {
    maestro: proxy::Maestro,
    runtime: Handle,
}

/// The mediator itself.
#[derive(Clone, Debug)]
pub struct Mediator {
    mediator: proxy::Mediator,
    runtime: Handle,
}

/// A subscription as a blocking iterator. It ends when the client is closed.
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
                    // Whoever asked waits for this.
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

    /// The dummy device with this id.
    pub fn dummy(&self, id: i32) -> Dummy {
        Dummy {
            dummy: self.client.dummy(id),
            runtime: self.runtime.clone(),
        }
    }

    /// The accelerometer, gyroscope and magnetometer with this id.
    pub fn ninedof(&self, id: i32) -> NineDof {
        NineDof {
            ninedof: self.client.ninedof(id),
            runtime: self.runtime.clone(),
        }
    }

    /// The four driven wheels with this id.
    pub fn roboclaw(&self, id: i32) -> Roboclaw {
        Roboclaw {
            roboclaw: self.client.roboclaw(id),
            runtime: self.runtime.clone(),
        }
    }

    /// The laser scanner with this id.
    pub fn hokuyo(&self, id: i32) -> Hokuyo {
        Hokuyo {
            hokuyo: self.client.hokuyo(id),
            runtime: self.runtime.clone(),
        }
    }

    /// The ceiling-marker positioning system with this id.
    pub fn stargazer(&self, id: i32) -> Stargazer {
        Stargazer {
            stargazer: self.client.stargazer(id),
            runtime: self.runtime.clone(),
        }
    }

    /// The servos with this id.
    pub fn maestro(&self, id: i32) -> Maestro {
        Maestro {
            maestro: self.client.maestro(id),
            runtime: self.runtime.clone(),
        }
    }

    /// The mediator itself.
    pub fn mediator(&self) -> Mediator {
        Mediator {
            mediator: self.client.mediator(),
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

    /// Like [`crate::Proxy::subscribe_raw`].
    ///
    /// # Errors
    /// The same errors.
    pub fn subscribe_raw(&self) -> Result<Subscription<Bytes>> {
        let subscription = self.runtime.block_on(self.proxy.subscribe_raw())?;
        Ok(Subscription::new(subscription, &self.runtime))
    }
}

impl Dummy {
    /// Like [`crate::Dummy::enable`].
    ///
    /// # Errors
    /// The same errors.
    pub fn enable(&self, enable: bool) -> Result<()> {
        self.runtime.block_on(self.dummy.enable(enable))
    }

    /// Like [`crate::Dummy::message`].
    ///
    /// # Errors
    /// The same errors.
    pub fn message(&self, text: impl Into<String>) -> Result<()> {
        self.runtime.block_on(self.dummy.message(text))
    }

    /// Like [`crate::Dummy::status`].
    ///
    /// # Errors
    /// The same errors.
    pub fn status(&self) -> Result<DummyStatus> {
        self.runtime.block_on(self.dummy.status())
    }

    /// Like [`crate::Dummy::subscribe`].
    ///
    /// # Errors
    /// The same errors.
    pub fn subscribe(&self) -> Result<Subscription<String>> {
        let subscription = self.runtime.block_on(self.dummy.subscribe())?;
        Ok(Subscription::new(subscription, &self.runtime))
    }
}

impl NineDof {
    /// The same device with another deadline.
    pub fn with_deadline(self, deadline: Duration) -> Self {
        Self {
            ninedof: self.ninedof.with_deadline(deadline),
            runtime: self.runtime,
        }
    }

    /// Like [`crate::NineDof::data`].
    ///
    /// # Errors
    /// The same errors.
    pub fn data(&self, sensors: Sensors) -> Result<ImuReading> {
        self.runtime.block_on(self.ninedof.data(sensors))
    }

    /// Like [`crate::NineDof::subscribe`].
    ///
    /// # Errors
    /// The same errors.
    pub fn subscribe(
        &self,
        period: Duration,
        sensors: Sensors,
    ) -> Result<Subscription<ImuReading>> {
        let subscription = (self.runtime).block_on(self.ninedof.subscribe(period, sensors))?;
        Ok(Subscription::new(subscription, &self.runtime))
    }

    /// Like [`crate::NineDof::self_test`].
    ///
    /// # Errors
    /// The same errors.
    pub fn self_test(&self) -> Result<Vec<Finding>> {
        self.runtime.block_on(self.ninedof.self_test())
    }

    /// Like [`crate::NineDof::calibrate_gyroscope`].
    ///
    /// # Errors
    /// The same errors.
    pub fn calibrate_gyroscope(&self, time: Duration) -> Result<Vec<Finding>> {
        (self.runtime).block_on(self.ninedof.calibrate_gyroscope(time))
    }

    /// Like [`crate::NineDof::calibrate_magnetometer`].
    ///
    /// # Errors
    /// The same errors.
    pub fn calibrate_magnetometer(&self, time: Duration) -> Result<Vec<Finding>> {
        (self.runtime).block_on(self.ninedof.calibrate_magnetometer(time))
    }
}

impl Stargazer {
    /// The same device with another deadline.
    pub fn with_deadline(self, deadline: Duration) -> Self {
        Self {
            stargazer: self.stargazer.with_deadline(deadline),
            runtime: self.runtime,
        }
    }

    /// Like [`crate::Stargazer::pose`].
    ///
    /// # Errors
    /// The same errors.
    pub fn pose(&self) -> Result<Option<Pose>> {
        self.runtime.block_on(self.stargazer.pose())
    }

    /// Like [`crate::Stargazer::subscribe`].
    ///
    /// # Errors
    /// The same errors.
    pub fn subscribe(&self, period: Option<Duration>) -> Result<Subscription<Pose>> {
        let subscription = self.runtime.block_on(self.stargazer.subscribe(period))?;
        Ok(Subscription::new(subscription, &self.runtime))
    }
}

impl Maestro {
    /// The same device with another deadline.
    pub fn with_deadline(self, deadline: Duration) -> Self {
        Self {
            maestro: self.maestro.with_deadline(deadline),
            runtime: self.runtime,
        }
    }

    /// Like [`crate::Maestro::set_angle`].
    ///
    /// # Errors
    /// The same errors.
    pub fn set_angle(&self, servo: u32, angle_deg: i32) -> Result<()> {
        self.runtime
            .block_on(self.maestro.set_angle(servo, angle_deg))
    }

    /// Like [`crate::Maestro::set_same_angle`].
    ///
    /// # Errors
    /// The same errors.
    pub fn set_same_angle(&self, servos: &[u32], angle_deg: i32) -> Result<()> {
        self.runtime
            .block_on(self.maestro.set_same_angle(servos, angle_deg))
    }

    /// Like [`crate::Maestro::set_angles`].
    ///
    /// # Errors
    /// The same errors.
    pub fn set_angles(&self, servos_and_angles_deg: &[(u32, i32)]) -> Result<()> {
        self.runtime
            .block_on(self.maestro.set_angles(servos_and_angles_deg))
    }

    /// Like [`crate::Maestro::set_speed`].
    ///
    /// # Errors
    /// The same errors.
    pub fn set_speed(&self, servo: u32, speed: i32) -> Result<()> {
        self.runtime.block_on(self.maestro.set_speed(servo, speed))
    }
}

impl Roboclaw {
    /// The same device with another deadline.
    pub fn with_deadline(self, deadline: Duration) -> Self {
        Self {
            roboclaw: self.roboclaw.with_deadline(deadline),
            runtime: self.runtime,
        }
    }

    /// Like [`crate::Roboclaw::drive`].
    ///
    /// # Errors
    /// The same errors.
    pub fn drive(&self, speeds: WheelSpeeds) -> Result<()> {
        self.runtime.block_on(self.roboclaw.drive(speeds))
    }

    /// Like [`crate::Roboclaw::stop`].
    ///
    /// # Errors
    /// The same errors.
    pub fn stop(&self) -> Result<()> {
        self.runtime.block_on(self.roboclaw.stop())
    }

    /// Like [`crate::Roboclaw::speeds`].
    ///
    /// # Errors
    /// The same errors.
    pub fn speeds(&self) -> Result<WheelSpeeds> {
        self.runtime.block_on(self.roboclaw.speeds())
    }
}

impl Hokuyo {
    /// The same device with another deadline.
    pub fn with_deadline(self, deadline: Duration) -> Self {
        Self {
            hokuyo: self.hokuyo.with_deadline(deadline),
            runtime: self.runtime,
        }
    }

    /// Like [`crate::Hokuyo::scan`].
    ///
    /// # Errors
    /// The same errors.
    pub fn scan(&self) -> Result<Scan> {
        self.runtime.block_on(self.hokuyo.scan())
    }

    /// Like [`crate::Hokuyo::subscribe`].
    ///
    /// # Errors
    /// The same errors.
    pub fn subscribe(&self) -> Result<Subscription<Scan>> {
        let subscription = self.runtime.block_on(self.hokuyo.subscribe())?;
        Ok(Subscription::new(subscription, &self.runtime))
    }
}

impl Mediator {
    /// Like [`crate::Mediator::ping`].
    ///
    /// # Errors
    /// The same errors.
    pub fn ping(&self) -> Result<Duration> {
        self.runtime.block_on(self.mediator.ping())
    }

    /// Like [`crate::Mediator::drivers`].
    ///
    /// # Errors
    /// The same errors.
    pub fn drivers(&self) -> Result<Vec<Driver>> {
        self.runtime.block_on(self.mediator.drivers())
    }

    /// Like [`crate::Mediator::driver`].
    ///
    /// # Errors
    /// The same errors.
    pub fn driver(&self, device: Device) -> Result<Driver> {
        self.runtime.block_on(self.mediator.driver(device))
    }

    /// Like [`crate::Mediator::clients`].
    ///
    /// # Errors
    /// The same errors.
    pub fn clients(&self) -> Result<Vec<ClientInfo>> {
        self.runtime.block_on(self.mediator.clients())
    }

    /// Like [`crate::Mediator::statistics`].
    ///
    /// # Errors
    /// The same errors.
    pub fn statistics(&self) -> Result<Statistics> {
        self.runtime.block_on(self.mediator.statistics())
    }

    /// Like [`crate::Mediator::start`].
    ///
    /// # Errors
    /// The same errors.
    pub fn start(&self, device: Device) -> Result<String> {
        self.runtime.block_on(self.mediator.start(device))
    }

    /// Like [`crate::Mediator::stop`].
    ///
    /// # Errors
    /// The same errors.
    pub fn stop(&self, device: Device) -> Result<String> {
        self.runtime.block_on(self.mediator.stop(device))
    }

    /// Like [`crate::Mediator::restart`].
    ///
    /// # Errors
    /// The same errors.
    pub fn restart(&self, device: Device) -> Result<String> {
        self.runtime.block_on(self.mediator.restart(device))
    }

    /// Like [`crate::Mediator::reload`].
    ///
    /// # Errors
    /// The same errors.
    pub fn reload(&self) -> Result<String> {
        self.runtime.block_on(self.mediator.reload())
    }

    /// Like [`crate::Mediator::events`].
    ///
    /// # Errors
    /// The same errors.
    pub fn events(&self) -> Result<Subscription<Event>> {
        let subscription = self.runtime.block_on(self.mediator.events())?;
        Ok(Subscription::new(subscription, &self.runtime))
    }
}

impl<T> Subscription<T> {
    fn new(subscription: subscription::Subscription<T>, runtime: &Handle) -> Self {
        Self {
            subscription,
            runtime: runtime.clone(),
        }
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
