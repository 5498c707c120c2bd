//! Requests to the mediator that take several steps. IO.

use amber_proto::mediator::{ClientInfo, Driver, ProcessUsage, Traced, change_driver::Action};
use amber_proto::{Device, mediator};
use prost::Message;

use super::{Mediator, blocking};
use crate::client::Announcement;
use crate::dispatch::UNFRAGMENTED;
use crate::error::{Error, Result};
use crate::subscription::Subscription;

/// All entries of a list that comes in pages.
macro_rules! pages {
    ($this:ident, $list:ident, $entries:ident) => {{
        let (mut mediator, mut all) = ($this.clone(), Vec::new());
        loop {
            let page = match mediator.$list(Some(all.len() as u32)).await {
                Ok(page) => page,
                Err(error) => {
                    mediator = mediator.with_short_answers_after(error)?;
                    continue;
                }
            };
            let is_last = page.$entries.is_empty();
            all.extend(page.$entries);
            if is_last || all.len() >= page.total as usize {
                return Ok(all);
            }
        }
    }};
}

impl Mediator {
    /// The same mediator, whose answers fit into datagrams that are not fragmented, with 1200 bytes.
    /// Lists and logs then have more pages, and statistics may lack their counters.
    ///
    /// [`Mediator::drivers`], [`Mediator::clients`] and [`Mediator::processes`] use it by themselves
    /// where long answers do not arrive.
    pub fn with_short_answers(&self) -> Self {
        let mut short = self.clone();
        let wish = mediator::DriverMsg {
            max_answer_bytes: Some(UNFRAGMENTED),
            ..mediator::DriverMsg::default()
        };
        short.proxy.terms = wish.encode_to_vec().into();
        short
    }

    /// The same after an error, if it may come from lost fragments: there was no answer although the
    /// mediator lives. So a request that only reads can be repeated.
    ///
    /// # Errors
    /// Otherwise, the error itself.
    pub fn with_short_answers_after(&self, error: Error) -> Result<Self> {
        let is_short = !self.proxy.terms.is_empty();
        let lives = self.proxy.client.announcement() == Announcement::Answered;
        match error {
            Error::TimedOut { .. } if lives && !is_short => Ok(self.with_short_answers()),
            error => Err(error),
        }
    }

    /// All drivers, in the order of the configuration.
    ///
    /// # Errors
    /// Those of [`Mediator::list_drivers`]. The deadline is that of each page.
    pub async fn drivers(&self) -> Result<Vec<Driver>> {
        pages!(self, list_drivers, drivers)
    }

    /// All known clients.
    ///
    /// # Errors
    /// Those of [`Mediator::list_clients`]. The deadline is that of each page.
    pub async fn clients(&self) -> Result<Vec<ClientInfo>> {
        pages!(self, list_clients, clients)
    }

    /// The running processes: the mediator first, then its drivers in the order of the
    /// configuration.
    ///
    /// # Errors
    /// Those of [`Mediator::list_processes`]. The deadline is that of each page.
    pub async fn processes(&self) -> Result<Vec<ProcessUsage>> {
        pages!(self, list_processes, processes)
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
