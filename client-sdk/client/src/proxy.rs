//! Proxies of devices: one typed proxy per device type, over any transport. IO.
//!
//! The typed proxies are generated from the descriptions in the `.proto` files. For your own
//! device, `amber_sdk::device!` does the same.

use std::time::{Duration, Instant};

use amber_proto::{ClientId, Device, DeviceMessage, MsgType, motion};
use bytes::Bytes;
use prost::Message;

use crate::client::Client;
use crate::error::{Error, Result};
use crate::subscription::{Decode, Subscription};
use crate::subscriptions::{Fields, Terms};
use crate::wire::{Envelope, decode};

mod command;
mod extras;
mod mediator;
#[cfg(test)]
mod tests;
mod trip;

pub use trip::{DriveEnd, OrderState, TrajectoryTrip, Trip, new_order_id};

pub use amber_values::{
    Attitude, Finding, ImuReading, MapPose, MarkerPose as Pose, Sensors, Target, TrajectoryPoint,
    Vector, WheelSpeeds,
};

// One client per device, and `blocking` with the same without async.
include!(concat!(env!("OUT_DIR"), "/clients.rs"));

/// Any device, for your own messages. The typed proxies are built on this.
///
/// `M` is a `DriverMsg` with the device's extensions, such as
/// [`amber_proto::dummy::DriverMsg`]. For your own device, `amber_sdk::device!` generates it, or use
/// the methods that take raw bytes.
#[derive(Clone, Debug)]
pub struct Proxy {
    client: Client,
    device: Device,
    deadline: Duration,
    /// Whether the caller has set the deadline of this proxy, and not only that of the client.
    has_own_deadline: bool,
    /// Gets the refusals of commands, which do not wait then.
    report: Option<command::Report>,
    /// For how long commands that move something hold.
    validity: Option<Duration>,
    /// The client for which a driver moves the device.
    for_client: Option<ClientId>,
    /// Encoded fields that each message gets.
    terms: Bytes,
}

impl Proxy {
    pub(crate) fn new(client: Client, device: Device) -> Self {
        let deadline = client.deadline();
        let validity = client.validity();
        Self {
            client,
            device,
            deadline,
            has_own_deadline: false,
            report: None,
            validity,
            for_client: None,
            terms: Bytes::new(),
        }
    }

    /// The same device; commands that move it hold only for this time. See
    /// [`Client::with_validity`].
    #[must_use]
    pub fn with_validity(mut self, validity: Duration) -> Self {
        self.validity = Some(validity);
        self
    }

    /// The same device, for a driver that moves it for a client of its own: if that client holds the
    /// lease, the driver may move it.
    #[must_use]
    pub fn for_client(mut self, client: Option<ClientId>) -> Self {
        self.for_client = client;
        self
    }

    /// The same device, for messages of your own that move it: they say for how long they hold.
    /// Typed proxies do so by themselves.
    #[must_use]
    pub fn moving(&self) -> Self {
        let terms = motion::DriverMsg {
            valid_ms: (self.validity).map(|it| it.as_millis().try_into().unwrap_or(u32::MAX)),
            for_client: self.for_client.map(|client| client.0),
            ..motion::DriverMsg::default()
        };
        let terms = terms.encode_to_vec().into();
        Self {
            terms,
            ..self.clone()
        }
    }

    /// A message with the terms of this proxy. Protobuf merges the fields.
    fn with_terms(&self, message: Bytes) -> Bytes {
        match self.terms.is_empty() {
            true => message,
            false => [message, self.terms.clone()].concat().into(),
        }
    }

    /// The same device with another deadline for all requests, even for those that
    /// have their own deadline.
    pub fn with_deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self.has_own_deadline = true;
        self
    }

    /// The address of this device.
    pub fn address(&self) -> Device {
        self.device
    }

    /// Sends a request and waits for its answer. The type becomes DATA unless
    /// you set it; synNum is always set here.
    ///
    /// Dropping the future cancels an unsent request and ignores the answer to
    /// a sent one, which the device may have carried out.
    ///
    /// # Errors
    /// There is no answer within the deadline, or the mediator reports that
    /// none will come.
    pub async fn request<M: DeviceMessage>(&self, request: M) -> Result<M> {
        self.request_within(request, None).await
    }

    /// Like [`Proxy::request`], for a request that may need a longer time. A deadline of this proxy
    /// itself counts in any case.
    pub(crate) async fn request_within<M: DeviceMessage>(
        &self,
        mut request: M,
        wait: Option<Duration>,
    ) -> Result<M> {
        let device = self.device;
        let deadline = match wait {
            Some(wait) if !self.has_own_deadline => wait.max(self.deadline),
            _ => self.deadline,
        };
        if request.kind().is_none() {
            request.set_kind(MsgType::Data);
        }
        request.set_syn(None);
        let request = self.with_terms(request.encode_to_vec().into());
        let answer = self.client.call(device, request, deadline).await?;
        decode(&answer).map_err(|error| self.bad_answer(error.to_string()))
    }

    /// Like [`Proxy::request`], with an encoded `DriverMsg`; synNum is appended.
    ///
    /// Dropping the future does the same as there.
    ///
    /// # Errors
    /// The same errors.
    pub async fn request_raw(&self, request: Bytes) -> Result<Bytes> {
        let request = self.with_terms(request);
        self.client.call(self.device, request, self.deadline).await
    }

    /// Sends a message that the device does not answer. The type becomes DATA
    /// unless you set it; synNum is always set here.
    ///
    /// Resolves when the message has been handed to the system. If you drop the
    /// future earlier, the message may or may not be sent.
    ///
    /// # Errors
    /// The message could not be sent. Success does not mean that the device
    /// received it.
    pub async fn send<M: DeviceMessage>(&self, mut message: M) -> Result<()> {
        if message.kind().is_none() {
            message.set_kind(MsgType::Data);
        }
        message.set_syn(None);
        self.send_raw(message.encode_to_vec().into()).await
    }

    /// Like [`Proxy::send`], with an encoded `DriverMsg`; synNum is appended.
    ///
    /// Dropping the future does the same as there.
    ///
    /// # Errors
    /// The same errors.
    pub async fn send_raw(&self, message: Bytes) -> Result<()> {
        let message = self.with_terms(message);
        self.client.send(self.device, message, self.deadline).await
    }

    /// Measures the round-trip time of a PING to the driver. Not every driver
    /// answers.
    ///
    /// If you drop the future, the answer is ignored.
    ///
    /// # Errors
    /// There is no answer within the deadline, or the mediator reports that
    /// none will come.
    pub async fn ping(&self) -> Result<Duration> {
        let start = Instant::now();
        self.request_raw(Envelope::new(MsgType::Ping, None, None).bytes())
            .await?;
        Ok(start.elapsed())
    }

    /// Subscribes to everything that the device publishes.
    ///
    /// Resolves when SUBSCRIBE has been sent, or at once if this client is
    /// already subscribed to the device. Dropping the future cancels it.
    ///
    /// # Errors
    /// The client is closed. A missing device is not an error: the subscription
    /// starts when the device appears.
    pub async fn subscribe<M: DeviceMessage + 'static>(&self) -> Result<Subscription<M>> {
        self.subscribe_as(&[], |bytes| Ok(Some(decode(&bytes)?)))
            .await
    }

    /// Like [`Proxy::subscribe`], with parameters as extensions in the
    /// SUBSCRIBE message, for devices that take some. The most recent
    /// parameters apply to all subscriptions of this client to the device that
    /// use SUBSCRIBE.
    ///
    /// Dropping the future cancels it.
    ///
    /// # Errors
    /// The same errors.
    pub async fn subscribe_with<M: DeviceMessage + 'static>(
        &self,
        mut parameters: M,
    ) -> Result<Subscription<M>> {
        parameters.set_kind(MsgType::Subscribe);
        parameters.set_syn(None);
        let terms = usual_terms(parameters.encode_to_vec().into());
        self.client
            .subscribe(self.device, terms, &[], |bytes| Ok(Some(decode(&bytes)?)))
            .await
    }

    /// Like [`Proxy::subscribe`], with encoded messages.
    ///
    /// Dropping the future cancels it.
    ///
    /// # Errors
    /// The same errors.
    pub async fn subscribe_raw(&self) -> Result<Subscription<Bytes>> {
        self.subscribe_as(&[], |bytes| Ok(Some(bytes))).await
    }

    /// Like [`Proxy::subscribe_raw`], for devices that publish after a request with parameters
    /// instead of SUBSCRIBE: `start` begins and `stop` ends it, both encoded DATA messages without
    /// synNum. `period` is the expected time between messages.
    ///
    /// Dropping the future cancels it.
    ///
    /// # Errors
    /// The same errors.
    pub async fn subscribe_raw_by(
        &self,
        start: Bytes,
        stop: Bytes,
        period: Duration,
    ) -> Result<Subscription<Bytes>> {
        let terms = Terms {
            join: start,
            leave: stop,
            period,
        };
        self.subscribe_by(terms, &[], |bytes| Ok(Some(bytes))).await
    }

    /// `decode` reads these fields, or every message if there are none.
    pub(crate) async fn subscribe_as<T>(
        &self,
        fields: Fields,
        decode: Decode<T>,
    ) -> Result<Subscription<T>> {
        let subscribe = Envelope::new(MsgType::Subscribe, None, None).bytes();
        self.subscribe_by(usual_terms(subscribe), fields, decode)
            .await
    }

    /// For devices that need a different message than SUBSCRIBE.
    pub(crate) async fn subscribe_by<T>(
        &self,
        terms: Terms,
        fields: Fields,
        decode: Decode<T>,
    ) -> Result<Subscription<T>> {
        (self.client)
            .subscribe(self.device, terms, fields, decode)
            .await
    }

    pub(crate) fn bad_answer(&self, message: impl Into<String>) -> Error {
        Error::BadAnswer {
            device: self.device,
            message: message.into(),
        }
    }
}

/// A subscription that ends with UNSUBSCRIBE.
fn usual_terms(join: Bytes) -> Terms {
    let leave = Envelope::new(MsgType::Unsubscribe, None, None).bytes();
    let period = Duration::ZERO;
    Terms {
        join,
        leave,
        period,
    }
}
