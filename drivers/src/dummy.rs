//! The Dummy driver: for experiments without hardware. PURE.

use std::time::Duration;

use amber_driver::{Driver, Request};
use amber_proto::dummy::DriverMsg;

/// Options of the Dummy driver.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Milliseconds between two messages to subscribers
    #[arg(long, value_name = "MS", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..))]
    pub period_ms: u64,
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

impl Driver for Dummy {
    type Message = DriverMsg;

    /// Only the first field present, in this order, takes effect, whatever its value. The original
    /// driver behaves the same way.
    async fn request(&mut self, request: Request<DriverMsg>) -> Option<DriverMsg> {
        let ask = request.message;
        if let Some(enable) = ask.enable {
            self.enable = enable;
        } else if let Some(message) = ask.message {
            self.message = message;
        } else if ask.get_status.is_some() {
            return Some(DriverMsg {
                enable: Some(self.enable),
                message: Some(self.message.clone()),
                ..DriverMsg::default()
            });
        } else {
            tracing::warn!(client = ?request.origin.clients, "not a request for the dummy");
        }
        None
    }

    fn period(&self) -> Option<Duration> {
        Some(self.period)
    }

    async fn publish(&mut self) -> Option<DriverMsg> {
        self.responses += 1;
        Some(DriverMsg {
            message: Some(format!("Response {}", self.responses)),
            ..DriverMsg::default()
        })
    }
}
