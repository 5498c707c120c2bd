//! Support for the code that `amber-build` generates. Not a part of the interface: it changes with
//! the generator. IO.

use std::fmt;
use std::time::Duration;

use amber_proto::mediator::Refusal;
use amber_proto::{DeviceMessage, MsgType};
use amber_values::{Row, UnequalColumns};
use bytes::Bytes;
use tokio::runtime::Handle;

use crate::blocking;
use crate::error::{Error, Reason, Result};
use crate::proxy::Proxy;
use crate::subscription::{Decode, Subscription};
use crate::subscriptions::Terms;

/// Extra time for an answer beyond the time limit of the device: `ninedof` takes up to 5 s more to get
/// enough readings on a busy machine.
const MARGIN: Duration = Duration::from_secs(6);

/// The reason why an answer is not a result.
#[derive(Debug)]
pub enum NoResult {
    /// It is invalid.
    Invalid(String),
    /// The device refuses the request.
    Refused(Refusal),
}

impl From<String> for NoResult {
    fn from(why: String) -> Self {
        Self::Invalid(why)
    }
}

/// A refusal that is a text.
pub fn refused(message: &str) -> NoResult {
    NoResult::Refused(Refusal {
        reason: Reason::Failed.into(),
        message: message.to_owned(),
        hint: None,
    })
}

/// A refusal with a reason.
pub fn refusal(refusal: &Refusal) -> NoResult {
    NoResult::Refused(refusal.clone())
}

/// Sends a request and reads its answer. `wait` is the time to wait unless the caller has set a
/// deadline.
///
/// # Errors
/// Those of [`Proxy::request`], or the answer is invalid or a refusal.
pub async fn ask<M: DeviceMessage, T>(
    proxy: &Proxy,
    request: M,
    wait: Option<Duration>,
    read: fn(M) -> std::result::Result<T, NoResult>,
) -> Result<T> {
    let answer = proxy.request_within(request, wait).await?;
    read(answer).map_err(|error| match error {
        NoResult::Invalid(why) => proxy.bad_answer(why),
        NoResult::Refused(refusal) => Error::Refused {
            device: proxy.address(),
            reason: Reason::try_from(refusal.reason).unwrap_or(Reason::Failed),
            message: refusal.message,
            hint: refusal.hint,
        },
    })
}

/// Subscribes by SUBSCRIBE. `fields` are the numbers of the fields of `DriverMsg` that carry the
/// data.
///
/// # Errors
/// The client is closed.
pub async fn subscribe<T>(
    proxy: &Proxy,
    fields: &'static [u32],
    decode: Decode<T>,
) -> Result<Subscription<T>> {
    proxy.subscribe_as(fields, decode).await
}

/// Subscribes by a message in place of SUBSCRIBE. `fields` are as in [`subscribe`].
///
/// # Errors
/// The client is closed.
pub async fn stream<M: DeviceMessage, T>(
    proxy: &Proxy,
    start: M,
    stop: M,
    period: Duration,
    fields: &'static [u32],
    decode: Decode<T>,
) -> Result<Subscription<T>> {
    let terms = terms(start, stop, period);
    proxy.subscribe_by(terms, fields, decode).await
}

/// Drivers of the original system accept these only in DATA messages.
pub(crate) fn terms<M: DeviceMessage>(start: M, stop: M, period: Duration) -> Terms {
    let bytes = |mut message: M| -> Bytes {
        message.set_kind(MsgType::Data);
        message.encode_to_vec().into()
    };
    Terms {
        join: bytes(start),
        leave: bytes(stop),
        period,
    }
}

/// How long to wait for the answer of a device that may take some time.
pub fn longer_than(duration: Option<Duration>) -> Option<Duration> {
    duration.map(|duration| duration.saturating_add(MARGIN))
}

/// A required field.
///
/// # Errors
/// It is not.
pub fn required<T>(field: Option<T>, name: &str) -> std::result::Result<T, String> {
    field.ok_or_else(|| format!("the field {name} is missing"))
}

/// The value of a message.
///
/// # Errors
/// The message is invalid.
pub fn value<M, V>(message: M) -> std::result::Result<V, String>
where
    V: TryFrom<M>,
    V::Error: fmt::Display,
{
    V::try_from(message).map_err(|error| error.to_string())
}

/// The rows of a table.
///
/// # Errors
/// The columns differ in length.
pub fn rows<M, V: Row<M>>(table: &M) -> std::result::Result<Vec<V>, String> {
    V::rows(table).map_err(|error| error.to_string())
}

/// Checks the lengths of the columns of a table.
///
/// # Errors
/// The columns differ in length.
pub fn columns(lengths: &[usize]) -> std::result::Result<(), String> {
    UnequalColumns::check(lengths).map_err(|error| error.to_string())
}

/// A client of a device whose methods wait for their futures.
#[derive(Clone, Debug)]
pub struct Blocking<T> {
    device: T,
    runtime: Handle,
}

impl<T> Blocking<T> {
    /// The device with the address of a proxy.
    pub fn new(proxy: blocking::Proxy, device: fn(Proxy) -> T) -> Self {
        let (proxy, runtime) = proxy.into_parts();
        Self {
            device: device(proxy),
            runtime,
        }
    }

    /// The client with async methods.
    pub fn inner(&self) -> &T {
        &self.device
    }

    /// Changes the client.
    #[must_use]
    pub fn map(self, change: impl FnOnce(T) -> T) -> Self {
        Self {
            device: change(self.device),
            runtime: self.runtime,
        }
    }

    /// Waits for a method.
    pub fn run<'a, F: Future>(&'a self, method: impl FnOnce(&'a T) -> F) -> F::Output {
        self.runtime.block_on(method(&self.device))
    }

    /// Waits for a method that subscribes.
    ///
    /// # Errors
    /// Those of the method.
    pub fn subscribe<'a, M, F>(
        &'a self,
        method: impl FnOnce(&'a T) -> F,
    ) -> Result<blocking::Subscription<M>>
    where
        F: Future<Output = Result<Subscription<M>>>,
    {
        let subscription = self.run(method)?;
        Ok(blocking::Subscription::new(subscription, &self.runtime))
    }
}
