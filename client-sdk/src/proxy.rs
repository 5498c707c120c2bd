//! Devices as seen from a program: one typed proxy per kind, over any transport. IO.

use std::time::{Duration, Instant};

use amber_proto::{Device, DeviceMessage, MsgType};
use bytes::Bytes;

use crate::client::Client;
use crate::error::{Error, Result};
use crate::subscription::{Decode, Subscription};
use crate::subscriptions::Terms;
use crate::wire::Envelope;

pub(crate) mod dummy;
pub(crate) mod hokuyo;
pub(crate) mod maestro;
mod mediator;
pub(crate) mod ninedof;
pub(crate) mod roboclaw;
pub(crate) mod stargazer;

pub use dummy::{Dummy, DummyStatus};
pub use hokuyo::Hokuyo;
pub use maestro::Maestro;
pub use mediator::Mediator;
pub use ninedof::{Attitude, Finding, ImuReading, NineDof, Sensors, Vector};
pub use roboclaw::{Roboclaw, WheelSpeeds};
pub use stargazer::{Pose, Stargazer};

/// Any device, for messages of your own; typed proxies are made of this.
///
/// `M` is a `DriverMsg` with the device's extensions, such as
/// [`amber_proto::dummy::DriverMsg`]; for a device of your own implement
/// [`DeviceMessage`], or use the methods that take raw bytes.
#[derive(Clone, Debug)]
pub struct Proxy {
    client: Client,
    device: Device,
    deadline: Duration,
}

impl Proxy {
    pub(crate) fn new(client: Client, device: Device) -> Self {
        let deadline = client.deadline();
        Self {
            client,
            device,
            deadline,
        }
    }

    /// The same device with another deadline.
    pub fn with_deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// Which device this is.
    pub fn address(&self) -> Device {
        self.device
    }

    /// Sends a request and waits for its answer. The type becomes DATA unless
    /// it is set; synNum is set here.
    ///
    /// Dropping the future takes the request back if it is still here, and
    /// forgets the answer if it is not: the device may have carried it out.
    ///
    /// # Errors
    /// No answer within the deadline, or the news that none will come.
    pub async fn request<M: DeviceMessage>(&self, mut request: M) -> Result<M> {
        let device = self.device;
        if request.kind().is_none() {
            request.set_kind(MsgType::Data);
        }
        request.set_syn(None);
        let answer = self.request_raw(request.encode_to_vec().into()).await?;
        M::decode(answer).map_err(|error| Error::BadAnswer {
            device,
            message: error.to_string(),
        })
    }

    /// Like [`Proxy::request`], with an encoded `DriverMsg`; synNum is appended.
    ///
    /// Dropping the future does the same as there.
    ///
    /// # Errors
    /// As there.
    pub async fn request_raw(&self, request: Bytes) -> Result<Bytes> {
        self.client.call(self.device, request, self.deadline).await
    }

    /// Sends a message that the device does not answer. The type becomes DATA
    /// unless it is set; synNum is set here.
    ///
    /// Resolves when the message has been handed to the system. Dropping the
    /// future earlier leaves open whether it is sent.
    ///
    /// # Errors
    /// It could not be sent. That the device got it, nobody knows.
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
    /// As there.
    pub async fn send_raw(&self, message: Bytes) -> Result<()> {
        self.client.send(self.device, message, self.deadline).await
    }

    /// How long a PING takes to the driver and back. Not every driver answers.
    ///
    /// Dropping the future only forgets the answer.
    ///
    /// # Errors
    /// No answer within the deadline, or the news that none will come.
    pub async fn ping(&self) -> Result<Duration> {
        let start = Instant::now();
        self.request_raw(Envelope::new(MsgType::Ping, None, None).bytes())
            .await?;
        Ok(start.elapsed())
    }

    /// Everything that the device publishes from now on.
    ///
    /// Resolves when SUBSCRIBE has been sent, or at once when this client has
    /// subscribed to the device already. Dropping the future takes it back.
    ///
    /// # Errors
    /// The client is closed. That the device is not there is no error: the
    /// subscription begins when it comes.
    pub async fn subscribe<M: DeviceMessage + 'static>(&self) -> Result<Subscription<M>> {
        self.subscribe_as(|bytes| Ok(Some(M::decode(bytes)?))).await
    }

    /// Like [`Proxy::subscribe`], with parameters for devices that have some:
    /// extensions in the SUBSCRIBE message. The latest hold for all
    /// subscriptions of this client to the device.
    ///
    /// Dropping the future takes it back.
    ///
    /// # Errors
    /// As there.
    pub async fn subscribe_with<M: DeviceMessage + 'static>(
        &self,
        mut parameters: M,
    ) -> Result<Subscription<M>> {
        parameters.set_kind(MsgType::Subscribe);
        parameters.set_syn(None);
        let terms = usual_terms(parameters.encode_to_vec().into());
        self.client
            .subscribe(self.device, terms, |bytes| Ok(Some(M::decode(bytes)?)))
            .await
    }

    /// Like [`Proxy::subscribe`], with encoded messages.
    ///
    /// Dropping the future takes it back.
    ///
    /// # Errors
    /// As there.
    pub async fn subscribe_raw(&self) -> Result<Subscription<Bytes>> {
        self.subscribe_as(|bytes| Ok(Some(bytes))).await
    }

    pub(crate) async fn subscribe_as<T>(&self, decode: Decode<T>) -> Result<Subscription<T>> {
        let subscribe = Envelope::new(MsgType::Subscribe, None, None).bytes();
        self.subscribe_by(usual_terms(subscribe), decode).await
    }

    /// For devices that want another message than SUBSCRIBE.
    pub(crate) async fn subscribe_by<T>(
        &self,
        terms: Terms,
        decode: Decode<T>,
    ) -> Result<Subscription<T>> {
        self.client.subscribe(self.device, terms, decode).await
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
