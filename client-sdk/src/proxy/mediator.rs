//! Requests to the mediator that take several steps. IO.

use amber_proto::mediator::{ClientInfo, Driver, ProcessUsage, Traced, change_driver::Action};
use amber_proto::{Device, mediator};

use super::{Mediator, blocking};
use crate::error::Result;
use crate::subscription::Subscription;

impl Mediator {
    /// All drivers, in the order of the configuration.
    ///
    /// # Errors
    /// Those of [`Mediator::list_drivers`]. The deadline is that of each page.
    pub async fn drivers(&self) -> Result<Vec<Driver>> {
        let mut drivers = Vec::new();
        loop {
            let page = self.list_drivers(Some(drivers.len() as u32)).await?;
            let is_last = page.drivers.is_empty();
            drivers.extend(page.drivers);
            if is_last || drivers.len() >= page.total as usize {
                return Ok(drivers);
            }
        }
    }

    /// All known clients.
    ///
    /// # Errors
    /// Those of [`Mediator::list_clients`]. The deadline is that of each page.
    pub async fn clients(&self) -> Result<Vec<ClientInfo>> {
        let mut clients = Vec::new();
        loop {
            let page = self.list_clients(Some(clients.len() as u32)).await?;
            let is_last = page.clients.is_empty();
            clients.extend(page.clients);
            if is_last || clients.len() >= page.total as usize {
                return Ok(clients);
            }
        }
    }

    /// The running processes: the mediator first, then its drivers in the order of the
    /// configuration.
    ///
    /// # Errors
    /// Those of [`Mediator::list_processes`]. The deadline is that of each page.
    pub async fn processes(&self) -> Result<Vec<ProcessUsage>> {
        let mut processes = Vec::new();
        loop {
            let page = self.list_processes(Some(processes.len() as u32)).await?;
            let is_last = page.processes.is_empty();
            processes.extend(page.processes);
            if is_last || processes.len() >= page.total as usize {
                return Ok(processes);
            }
        }
    }

    /// Details of the driver that serves a device.
    ///
    /// # Errors
    /// Those of [`Mediator::describe_driver`].
    pub async fn driver(&self, device: Device) -> Result<Driver> {
        self.describe_driver(device.device_type.0, device.id.0)
            .await
    }

    /// Starts the driver of a device. Returns a sentence that describes the result.
    ///
    /// # Errors
    /// Those of [`Mediator::change_driver`].
    pub async fn start(&self, device: Device) -> Result<String> {
        self.change_driver(device, Action::Start).await
    }

    /// Stops the driver of a device. Returns a sentence that describes the result.
    ///
    /// # Errors
    /// Those of [`Mediator::change_driver`].
    pub async fn stop(&self, device: Device) -> Result<String> {
        self.change_driver(device, Action::Stop).await
    }

    /// Restarts the driver of a device. Returns a sentence that describes the result.
    ///
    /// # Errors
    /// Those of [`Mediator::change_driver`].
    pub async fn restart(&self, device: Device) -> Result<String> {
        self.change_driver(device, Action::Restart).await
    }

    /// The frames between the mediator and one driver, from now on; allowed on
    /// the mediator's machine only. It ends when this client is closed.
    ///
    /// It does not resume after a restart of the mediator: call
    /// [`Mediator::trace`] then.
    ///
    /// # Errors
    /// Those of [`Mediator::traced`] and [`Mediator::trace`].
    pub async fn trace_device(&self, device: Device) -> Result<Subscription<Traced>> {
        let frames = self.traced().await?;
        self.trace(device, None).await?;
        Ok(frames)
    }
}

/// The same without async.
macro_rules! blocking {
    ($($(#[$docs:meta])* $name:ident($($argument:ident: $type:ty)?) -> $returned:ty;)*) => {
        impl blocking::Mediator {
            $(
                $(#[$docs])*
                ///
                /// # Errors
                /// The same errors.
                pub fn $name(&self $(, $argument: $type)?) -> Result<$returned> {
                    self.device.run(|device| device.$name($($argument)?))
                }
            )*
        }
    };
}

blocking! {
    /// Like [`Mediator::drivers`](crate::Mediator::drivers).
    drivers() -> Vec<Driver>;
    /// Like [`Mediator::clients`](crate::Mediator::clients).
    clients() -> Vec<ClientInfo>;
    /// Like [`Mediator::processes`](crate::Mediator::processes).
    processes() -> Vec<ProcessUsage>;
    /// Like [`Mediator::driver`](crate::Mediator::driver).
    driver(device: Device) -> Driver;
    /// Like [`Mediator::start`](crate::Mediator::start).
    start(device: Device) -> String;
    /// Like [`Mediator::stop`](crate::Mediator::stop).
    stop(device: Device) -> String;
    /// Like [`Mediator::restart`](crate::Mediator::restart).
    restart(device: Device) -> String;
}

impl blocking::Mediator {
    /// Like [`Mediator::trace_device`](crate::Mediator::trace_device).
    ///
    /// # Errors
    /// The same errors.
    pub fn trace_device(
        &self,
        device: Device,
    ) -> Result<crate::blocking::Subscription<mediator::Traced>> {
        self.device
            .subscribe(|mediator| mediator.trace_device(device))
    }
}
