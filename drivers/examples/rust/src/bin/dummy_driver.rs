//! A complete driver: the Dummy, a flag and a text that all clients share.
//!
//! ```sh
//! amber mediator --driver 'dummy:0=target/debug/dummy_driver'
//! ```

use std::process::ExitCode;
use std::time::Duration;

use amber_driver::proto::dummy::DriverMsg;
use amber_driver::{Driver, Request};

struct Dummy {
    enable: bool,
    message: String,
    responses: u64,
}

impl Driver for Dummy {
    type Message = DriverMsg;

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
        }
        None
    }

    fn period(&self) -> Option<Duration> {
        Some(Duration::from_millis(100))
    }

    async fn publish(&mut self) -> Option<DriverMsg> {
        self.responses += 1;
        Some(DriverMsg {
            message: Some(format!("Response {}", self.responses)),
            ..DriverMsg::default()
        })
    }
}

fn main() -> ExitCode {
    amber_driver::serve(Dummy {
        enable: false,
        message: "Message".into(),
        responses: 0,
    })
}
