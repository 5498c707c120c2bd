//! The pure logic of one model of laser scanner. PURE.

use std::time::Instant;

use amber_driver::Origin;
use amber_proto::hokuyo::Scanner;

use super::{Output, Service};

/// The logic of a laser scanner at a byte stream.
///
/// Report each event, drain [`Model::poll_output`] after every change, and carry out each output. Call
/// [`Model::handle_timeout`] at [`Model::wake_at`].
pub trait Model: Send + 'static {
    /// What the options of the driver say.
    type Settings: Send + 'static;

    /// Starts without a connection.
    fn new(settings: Self::Settings, now: Instant) -> Self;

    /// Who wants scans, and whether the scanner works.
    fn service(&self) -> &Service;

    /// The same, to change it.
    fn service_mut(&mut self) -> &mut Service;

    /// More or fewer clients want scans. A scanner that always sends needs to do nothing.
    fn handle_demand(&mut self, _now: Instant) {}

    /// The connection is open.
    fn opened(&mut self, now: Instant);

    /// The connection cannot be opened, or has failed.
    fn failed(&mut self, now: Instant, reason: &str);

    /// Bytes from the scanner; `timestamp_ms` is the time since 1970.
    fn handle_bytes(&mut self, now: Instant, timestamp_ms: i64, bytes: &[u8]);

    /// Handles expired timers.
    fn handle_timeout(&mut self, now: Instant);

    /// Brings the scanner to rest, then returns [`Output::End`].
    fn shut_down(&mut self, now: Instant);

    /// When to call [`Model::handle_timeout`] if nothing happens earlier.
    fn wake_at(&self) -> Option<Instant>;

    /// What the scanner can measure.
    ///
    /// # Errors
    /// No scanner works: the reason.
    fn scanner(&self) -> Result<Scanner, &str>;

    /// A client requests a scan.
    ///
    /// The reply holds a scan that was complete after this call. Without a scanner there is no reply,
    /// and the client's request times out.
    fn ask(&mut self, now: Instant, origin: Origin) {
        self.service_mut().ask(now, origin);
        self.handle_demand(now);
    }

    /// Sets the number of subscribers.
    fn handle_listeners(&mut self, now: Instant, listeners: usize) {
        if self.service_mut().set_listeners(now, listeners) {
            self.handle_demand(now);
        }
    }

    /// The next action for the caller.
    fn poll_output(&mut self) -> Option<Output> {
        self.service_mut().poll_output()
    }

    /// The reason why there are no scans, if there is a problem.
    fn trouble(&self) -> Option<&str> {
        self.service().trouble()
    }
}
