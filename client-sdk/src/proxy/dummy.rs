//! The dummy device: no hardware, for trying things out. IO.

use std::time::Duration;

use amber_proto::{Device, DeviceMessage, dummy::DriverMsg};
use prost::Message;

use super::Proxy;
use crate::error::Result;
use crate::subscription::Subscription;

/// A dummy device.
///
/// You may drop the future of any method: an unsent request is cancelled, and a
/// late answer is ignored.
#[derive(Clone, Debug)]
pub struct Dummy {
    proxy: Proxy,
}

/// What a dummy device remembers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DummyStatus {
    /// The flag.
    pub enable: bool,
    /// The text.
    pub message: String,
}

impl Dummy {
    pub(crate) fn new(proxy: Proxy) -> Self {
        Self { proxy }
    }

    /// The address of this device.
    pub fn address(&self) -> Device {
        self.proxy.address()
    }

    /// The same device with another deadline.
    pub fn with_deadline(self, deadline: Duration) -> Self {
        Self {
            proxy: self.proxy.with_deadline(deadline),
        }
    }

    /// Measures the round-trip time of a PING to the driver.
    ///
    /// # Errors
    /// There is no answer within the deadline, or the mediator reports that
    /// none will come.
    pub async fn ping(&self) -> Result<Duration> {
        self.proxy.ping().await
    }

    /// Sets the flag. The device does not answer.
    ///
    /// # Errors
    /// The message could not be sent.
    pub async fn enable(&self, enable: bool) -> Result<()> {
        let message = DriverMsg {
            enable: Some(enable),
            ..DriverMsg::data()
        };
        self.proxy.send(message).await
    }

    /// Sets the text. The device does not answer.
    ///
    /// # Errors
    /// The message could not be sent.
    pub async fn message(&self, text: impl Into<String>) -> Result<()> {
        let message = DriverMsg {
            message: Some(text.into()),
            ..DriverMsg::data()
        };
        self.proxy.send(message).await
    }

    /// The flag and the text.
    ///
    /// # Errors
    /// There is no answer within the deadline, or the mediator reports that
    /// none will come.
    pub async fn status(&self) -> Result<DummyStatus> {
        let answer = self.proxy.request(question()).await?;
        match (answer.enable, answer.message) {
            (Some(enable), Some(message)) => Ok(DummyStatus { enable, message }),
            _ => Err(self.proxy.bad_answer("enable or message is missing")),
        }
    }

    /// The texts that the device publishes, ten a second.
    ///
    /// Resolves when SUBSCRIBE has been sent.
    ///
    /// # Errors
    /// The client is closed.
    pub async fn subscribe(&self) -> Result<Subscription<String>> {
        self.proxy
            .subscribe_as(|bytes| Ok(DriverMsg::decode(bytes)?.message))
            .await
    }
}

/// The message that asks for the flag and the text.
pub(crate) fn question() -> DriverMsg {
    DriverMsg {
        get_status: Some(true),
        ..DriverMsg::data()
    }
}
