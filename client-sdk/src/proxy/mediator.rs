//! The mediator as a device: what runs, how it is, and changing that. IO.

use std::time::Duration;

use amber_proto::mediator::{
    ChangeDriver, ClientInfo, Device as WireDevice, Driver, DriverMsg, Event, GetStatistics,
    ListClients, ListDrivers, Reload, Request, SetLogLevel, Statistics, Trace, Traced,
    change_driver::Action, reply, request,
};
use amber_proto::{Device, DeviceMessage};
use prost::Message;

use super::Proxy;
use crate::error::{Error, Reason, Result};
use crate::subscription::Subscription;

/// Changes may start processes.
const CHANGE_DEADLINE: Duration = Duration::from_secs(5);

/// The mediator itself.
///
/// A mediator of the original system answers none of these requests. You may
/// drop the future of any method: an unsent request is cancelled, and a late
/// answer is ignored. A change may have been made.
#[derive(Clone, Debug)]
pub struct Mediator {
    proxy: Proxy,
}

impl Mediator {
    pub(crate) fn new(proxy: Proxy) -> Self {
        Self { proxy }
    }

    /// The same with another deadline (of each page, for lists).
    pub fn with_deadline(self, deadline: Duration) -> Self {
        Self {
            proxy: self.proxy.with_deadline(deadline),
        }
    }

    /// Measures the round-trip time of a PING to the mediator.
    ///
    /// # Errors
    /// There is no answer within the deadline, or the mediator reports that
    /// none will come.
    pub async fn ping(&self) -> Result<Duration> {
        self.proxy.ping().await
    }

    /// All drivers, in the order of the configuration.
    ///
    /// # Errors
    /// There is no answer within the deadline, or the mediator refuses.
    pub async fn drivers(&self) -> Result<Vec<Driver>> {
        let mut drivers = Vec::new();
        loop {
            let skip = Some(drivers.len() as u32);
            let page = match self
                .ask(request::What::ListDrivers(ListDrivers { skip }))
                .await?
            {
                reply::What::Drivers(page) => page,
                _ => return Err(self.unexpected("list_drivers")),
            };
            let last = page.drivers.is_empty();
            drivers.extend(page.drivers);
            if last || drivers.len() >= page.total as usize {
                return Ok(drivers);
            }
        }
    }

    /// Details of the driver that serves a device.
    ///
    /// # Errors
    /// There is no answer within the deadline, or the mediator refuses.
    pub async fn driver(&self, device: Device) -> Result<Driver> {
        match self
            .ask(request::What::DescribeDriver(on_wire(device)))
            .await?
        {
            reply::What::Driver(driver) => Ok(driver),
            _ => Err(self.unexpected("describe_driver")),
        }
    }

    /// All clients that the mediator knows.
    ///
    /// # Errors
    /// There is no answer within the deadline, or the mediator refuses.
    pub async fn clients(&self) -> Result<Vec<ClientInfo>> {
        let mut clients = Vec::new();
        loop {
            let skip = Some(clients.len() as u32);
            let page = match self
                .ask(request::What::ListClients(ListClients { skip }))
                .await?
            {
                reply::What::Clients(page) => page,
                _ => return Err(self.unexpected("list_clients")),
            };
            let last = page.clients.is_empty();
            clients.extend(page.clients);
            if last || clients.len() >= page.total as usize {
                return Ok(clients);
            }
        }
    }

    /// Version, uptime and counters.
    ///
    /// # Errors
    /// There is no answer within the deadline, or the mediator refuses.
    pub async fn statistics(&self) -> Result<Statistics> {
        match self
            .ask(request::What::GetStatistics(GetStatistics {}))
            .await?
        {
            reply::What::Statistics(statistics) => Ok(statistics),
            _ => Err(self.unexpected("get_statistics")),
        }
    }

    /// Starts the driver of a device. Returns a sentence that says what
    /// happens.
    ///
    /// # Errors
    /// There is no answer within five seconds, or the mediator refuses.
    pub async fn start(&self, device: Device) -> Result<String> {
        self.change(device, Action::Start).await
    }

    /// Stops the driver of a device. Returns a sentence that says what happens.
    ///
    /// # Errors
    /// There is no answer within five seconds, or the mediator refuses.
    pub async fn stop(&self, device: Device) -> Result<String> {
        self.change(device, Action::Stop).await
    }

    /// Restarts the driver of a device. Returns a sentence that says what
    /// happens.
    ///
    /// # Errors
    /// There is no answer within five seconds, or the mediator refuses.
    pub async fn restart(&self, device: Device) -> Result<String> {
        self.change(device, Action::Restart).await
    }

    /// Makes the mediator reload its configuration. Returns a sentence that
    /// says what happens.
    ///
    /// # Errors
    /// There is no answer within five seconds, or the mediator refuses.
    pub async fn reload(&self) -> Result<String> {
        self.done(request::What::Reload(Reload {})).await
    }

    /// Changes what the mediator logs, e.g. `debug`. Returns a sentence that
    /// says what happens.
    ///
    /// # Errors
    /// There is no answer within five seconds, or the mediator refuses.
    pub async fn set_log_level(&self, filter: impl Into<String>) -> Result<String> {
        let filter = filter.into();
        self.done(request::What::SetLogLevel(SetLogLevel { filter }))
            .await
    }

    /// What happens to drivers and clients from now on.
    ///
    /// Resolves when SUBSCRIBE has been sent.
    ///
    /// # Errors
    /// The client is closed.
    pub async fn events(&self) -> Result<Subscription<Event>> {
        self.proxy
            .subscribe_as(|bytes| Ok(DriverMsg::decode(bytes)?.event))
            .await
    }

    /// The frames between the mediator and one driver, from now on; allowed on
    /// the mediator's own machine only. It ends when this client is closed.
    ///
    /// It does not resume after a restart of the mediator: call
    /// [`Mediator::trace_on`] then.
    ///
    /// # Errors
    /// There is no answer within five seconds, or the mediator refuses.
    pub async fn trace(&self, device: Device) -> Result<Subscription<Traced>> {
        let frames = self
            .proxy
            .subscribe_as(|bytes| Ok(DriverMsg::decode(bytes)?.traced))
            .await?;
        self.trace_on(device).await?;
        Ok(frames)
    }

    /// Begins a trace for a subscription of [`Mediator::trace`].
    ///
    /// # Errors
    /// There is no answer within five seconds, or the mediator refuses.
    pub async fn trace_on(&self, device: Device) -> Result<String> {
        let device = on_wire(device);
        self.done(request::What::Trace(Trace { device, off: None }))
            .await
    }

    async fn change(&self, device: Device, action: Action) -> Result<String> {
        let change = ChangeDriver {
            device: on_wire(device),
            action: action.into(),
        };
        self.done(request::What::ChangeDriver(change)).await
    }

    async fn done(&self, what: request::What) -> Result<String> {
        let patient = Self::new(self.proxy.clone().with_deadline(CHANGE_DEADLINE));
        match patient.ask(what).await? {
            reply::What::Done(text) => Ok(text),
            _ => Err(self.unexpected("a change")),
        }
    }

    async fn ask(&self, what: request::What) -> Result<reply::What> {
        let request = DriverMsg {
            request: Some(Request { what: Some(what) }),
            ..DriverMsg::data()
        };
        let answer = self.proxy.request(request).await?;
        match answer.reply.and_then(|reply| reply.what) {
            Some(reply::What::Refused(refusal)) => Err(Error::Refused {
                device: Device::MEDIATOR,
                reason: Reason::try_from(refusal.reason).unwrap_or(Reason::Failed),
                message: refusal.message,
                hint: refusal.hint,
            }),
            Some(what) => Ok(what),
            None => Err(self.proxy.bad_answer("there is no reply in it")),
        }
    }

    fn unexpected(&self, request: &str) -> Error {
        self.proxy.bad_answer(format!("it does not fit {request}"))
    }
}

fn on_wire(device: Device) -> WireDevice {
    WireDevice {
        r#type: device.device_type.0,
        id: device.id.0,
    }
}
