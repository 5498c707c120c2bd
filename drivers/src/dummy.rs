//! The Dummy driver: for experiments without hardware. PURE.

use std::time::Duration;

use amber_driver::devices::dummy::{self, DriverMsg, DummyDriver, StatusAnswer};
use amber_driver::{Driver, Outcome, Reply, Request};

use crate::options::OptionsError;

/// Options of the Dummy driver.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Milliseconds between two messages to subscribers
    #[arg(long, value_name = "MS", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..))]
    pub period_ms: u64,
}

impl Options {
    /// Creates the driver from these options.
    ///
    /// # Errors
    /// None: all of them are valid.
    pub fn driver(self) -> Result<impl Driver, OptionsError> {
        Ok(dummy::driver(Dummy::new(self)))
    }
}

/// A flag and a text that all clients share, and a counter for subscribers.
#[derive(Clone, Debug)]
pub struct Dummy {
    enable: bool,
    message: String,
    responses: u64,
    period: Duration,
}

impl Dummy {
    /// Creates a Dummy in its initial state.
    pub fn new(options: Options) -> Self {
        Self {
            enable: false,
            message: "Message".into(),
            responses: 0,
            period: Duration::from_millis(options.period_ms),
        }
    }
}

impl DummyDriver for Dummy {
    /// Only the first field present, in this order, takes effect, whatever its value. The original
    /// driver behaves the same way.
    fn received(&mut self, request: &mut Request<DriverMsg>) {
        let message = &mut request.message;
        if message.enable.is_some() {
            message.message = None;
        }
        if message.enable.is_some() || message.message.is_some() {
            message.get_status = None;
        }
    }

    async fn status(&mut self, reply: Reply<StatusAnswer>) {
        reply.send(StatusAnswer {
            enable: self.enable,
            message: self.message.clone(),
        });
    }

    async fn enable(&mut self, enable: bool, outcome: Outcome) {
        self.enable = enable;
        outcome.done();
    }

    async fn message(&mut self, message: String, outcome: Outcome) {
        self.message = message;
        outcome.done();
    }

    fn period(&self) -> Option<Duration> {
        Some(self.period)
    }

    async fn publish(&mut self) -> Option<String> {
        self.responses += 1;
        Some(format!("Response {}", self.responses))
    }
}
