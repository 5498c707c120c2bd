//! A complete driver: the Dummy, a flag and a text that all clients share.
//!
//! ```sh
//! amber mediator --driver 'dummy:0=target/debug/dummy_driver'
//! ```

use std::process::ExitCode;
use std::time::Duration;

use amber_sdk::driver::devices::dummy::{self, DriverMsg, DummyDriver, StatusAnswer};
use amber_sdk::driver::{Outcome, Reply, Request};

struct Dummy {
    enable: bool,
    message: String,
    responses: u64,
}

impl DummyDriver for Dummy {
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

    /// A message that changes something asks for nothing, as in the original Dummy.
    fn received(&mut self, request: &mut Request<DriverMsg>) {
        let message = &mut request.message;
        if message.enable.is_some() || message.message.is_some() {
            message.get_status = None;
        }
    }

    fn period(&self) -> Option<Duration> {
        Some(Duration::from_millis(100))
    }

    async fn publish(&mut self) -> Option<String> {
        self.responses += 1;
        Some(format!("Response {}", self.responses))
    }
}

fn main() -> ExitCode {
    amber_sdk::driver::serve(dummy::driver(Dummy {
        enable: false,
        message: "Message".into(),
        responses: 0,
    }))
}
