//! The bodies of answers: whole ones, and those that go on until the peer leaves. IO.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::stream::{Stream, unfold};
use http_body_util::Full;
use hyper::body::{Frame, SizeHint};

/// The body of an answer.
pub struct Body(Kind);

enum Kind {
    Whole(Full<Bytes>),
    Endless(Pin<Box<dyn Stream<Item = Bytes> + Send>>, Taken),
}

/// Whether the peer has taken a part since the last look.
#[derive(Clone, Debug, Default)]
pub(crate) struct Taken(Arc<AtomicBool>);

impl Taken {
    pub(crate) fn look(&self) -> bool {
        self.0.swap(false, Ordering::Relaxed)
    }
}

/// What an endless body consists of.
pub trait Parts: Send + 'static {
    /// The next part; `None` ends the answer. It is asked for when the connection has room for one,
    /// so a slow peer needs no queue: the newest part will do.
    fn next(&mut self) -> impl Future<Output = Option<Bytes>> + Send;
}

impl Body {
    pub(crate) fn whole(bytes: Bytes) -> Self {
        Self(Kind::Whole(Full::new(bytes)))
    }

    pub(crate) fn endless(parts: impl Parts) -> Self {
        let parts = unfold(parts, |mut parts| async move {
            let part = parts.next().await?;
            Some((part, parts))
        });
        Self(Kind::Endless(Box::pin(parts), Taken::default()))
    }

    /// Tells there when a part of an endless body was taken.
    pub(crate) fn report_to(&mut self, there: &Taken) {
        if let Kind::Endless(_, taken) = &mut self.0 {
            *taken = there.clone();
        }
    }
}

impl hyper::body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut self.get_mut().0 {
            Kind::Whole(bytes) => Pin::new(bytes).poll_frame(cx),
            Kind::Endless(parts, taken) => parts.as_mut().poll_next(cx).map(|part| {
                taken.0.store(true, Ordering::Relaxed);
                part.map(|part| Ok(Frame::data(part)))
            }),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Kind::Whole(bytes) => bytes.is_end_stream(),
            Kind::Endless(..) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Whole(bytes) => bytes.size_hint(),
            Kind::Endless(..) => SizeHint::default(),
        }
    }
}
