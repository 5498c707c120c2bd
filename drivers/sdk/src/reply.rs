//! Replies of a driver to requests: the answer, the outcome of a command, the start and the end
//! of a stream. Generated traits of drivers use these types. PURE.

use std::fmt;

use amber_proto::{ClientId, DeviceMessage};

use crate::link::{Link, SendError};
use crate::request::Origin;

type Sender<T> = Box<dyn FnOnce(&Origin, Verdict<'_, T>) -> Result<(), SendError> + Send>;

/// The message to send to the client.
enum Verdict<'a, T> {
    Answer(T),
    Refusal(&'a str),
}

/// Answers one request, now or later, from any task or thread.
///
/// If it is dropped, the request has no answer, and the client's request times out. A request
/// without a number (synNum) cannot be answered; sending does nothing then.
pub struct Reply<T> {
    origin: Origin,
    sender: Sender<T>,
}

impl<T: 'static> Reply<T> {
    /// Creates one that sends answers of the form of `message`. If the device has answers that
    /// refuse a request, `refusal` makes them. Generated code does so.
    pub fn new<M>(
        link: &Link<M>,
        origin: &Origin,
        message: fn(T) -> M,
        refusal: Option<fn(&str) -> M>,
    ) -> Self
    where
        M: DeviceMessage + Send + 'static,
    {
        let link = link.clone();
        Self {
            origin: origin.clone(),
            sender: Box::new(move |origin, verdict| match (verdict, refusal) {
                (Verdict::Answer(answer), _) => link.answer(origin, message(answer)),
                (Verdict::Refusal(why), Some(refusal)) => link.answer(origin, refusal(why)),
                (Verdict::Refusal(why), None) => link.refused(origin, why),
            }),
        }
    }
}

impl<T> Reply<T> {
    /// Sends the answer. If it cannot be sent, logs the reason; see [`Reply::try_send`].
    pub fn send(self, answer: T) {
        log(self.try_send(answer));
    }

    /// Sends the answer.
    ///
    /// # Errors
    /// The answer was not sent.
    pub fn try_send(self, answer: T) -> Result<(), SendError> {
        (self.sender)(&self.origin, Verdict::Answer(answer))
    }

    /// Sends the reason why the device refuses the request: one sentence for people.
    ///
    /// If the description of the request has a field for it (`refusal`), this is the answer.
    /// Otherwise only clients that asked for the outcome get it, as in [`Link::refused`], and
    /// others time out.
    pub fn refuse(self, why: &str) {
        log((self.sender)(&self.origin, Verdict::Refusal(why)));
    }

    /// Whether the request has a number, so that it can be answered.
    pub fn is_possible(&self) -> bool {
        self.origin.syn.is_some()
    }

    /// The origin of the request.
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// The sender, if it is a single client.
    pub fn client(&self) -> Option<ClientId> {
        self.origin.client()
    }

    /// Keeps only the origin. The link of the driver can answer it.
    pub fn into_origin(self) -> Origin {
        self.origin
    }
}

impl<T> fmt::Debug for Reply<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reply")
            .field("origin", &self.origin)
            .finish_non_exhaustive()
    }
}

/// Reports whether a driver carries out a command that has no answer, now or later, from any task
/// or thread.
///
/// Only clients that asked for it get the report, as `amber call` does. If it is dropped, their
/// requests time out.
pub struct Outcome {
    origin: Origin,
    /// `None` if the client did not ask for the outcome.
    sender: Option<Sender<()>>,
}

impl Outcome {
    /// Creates one that reports to the sender of a request. Generated code does so.
    pub fn new<M>(link: &Link<M>, origin: &Origin) -> Self
    where
        M: DeviceMessage + Send + 'static,
    {
        let sender = origin.wants_outcome.then(|| {
            let link = link.clone();
            let send = move |origin: &Origin, verdict: Verdict<'_, ()>| match verdict {
                Verdict::Answer(()) => link.accepted(origin),
                Verdict::Refusal(why) => link.refused(origin, why),
            };
            Box::new(send) as Sender<()>
        });
        Self {
            origin: origin.clone(),
            sender,
        }
    }

    /// Reports that the driver carries out the command.
    pub fn done(self) {
        if let Some(sender) = self.sender {
            log(sender(&self.origin, Verdict::Answer(())));
        }
    }

    /// Reports that the driver does not carry out the command, with the reason: one sentence for
    /// people, as in [`Link::refused`].
    pub fn refuse(self, why: &str) {
        if let Some(sender) = self.sender {
            log(sender(&self.origin, Verdict::Refusal(why)));
        }
    }

    /// The origin of the command.
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// The sender, if it is a single client.
    pub fn client(&self) -> Option<ClientId> {
        self.origin.client()
    }
}

impl fmt::Debug for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outcome")
            .field("origin", &self.origin)
            .finish_non_exhaustive()
    }
}

/// A change of a stream that clients start and stop by a request.
#[derive(Clone, Debug, PartialEq)]
pub enum StreamRequest<T> {
    /// Starts the stream, or changes it if it runs already.
    Start(T),
    /// Stops the stream. The arguments are those that the client sent.
    Stop(T),
    /// The client has left or died. Also comes for clients that never started the stream.
    ClientGone,
}

/// Refuses the requests that no method accepts. Generated code uses it.
#[derive(Debug, Default)]
pub struct UnknownRequests {
    has_warned: bool,
}

impl UnknownRequests {
    /// Refuses a request, and logs the first one.
    pub fn refuse<M: DeviceMessage>(&mut self, link: &Link<M>, origin: &Origin) {
        log(link.refused(origin, "not a request for this device"));
        if !std::mem::replace(&mut self.has_warned, true) {
            let clients = &origin.clients;
            tracing::warn!(?clients, "not a request for this device (logged once)");
        }
    }
}

fn log(sent: Result<(), SendError>) {
    match sent {
        Ok(()) => {}
        Err(error @ SendError::TooLong(_)) => tracing::error!("a message was not sent: {error}"),
        // The mediator does not read, or the driver ends.
        Err(error) => tracing::debug!("a message was not sent: {error}"),
    }
}
