//! Waiting for whichever of several comes first. PURE.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

/// Completes with the first of these futures that is ready, the earliest of several, and drops the
/// others. Never completes if there are none.
pub(crate) async fn first<F: Future>(futures: impl Iterator<Item = F>) -> F::Output {
    let mut futures: Vec<_> = futures.map(Box::pin).collect();
    poll_fn(|cx| {
        let polled = futures.iter_mut().map(|it| Pin::as_mut(it).poll(cx));
        let mut ready = polled.filter(Poll::is_ready);
        ready.next().unwrap_or(Poll::Pending)
    })
    .await
}
