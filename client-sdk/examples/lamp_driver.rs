//! A driver of one's own: a lamp, which `lamp.proto` describes.

use std::process::ExitCode;
use std::time::Duration;

use amber_sdk::driver::{self, Reply};

amber_sdk::device!("examples/lamp.proto"); // from the folder of Cargo.toml

struct Lamp {
    percent: u32,
}

impl lamp::LampDriver for Lamp {
    async fn set_brightness(&mut self, percent: u32, reply: Reply<u32>) {
        self.percent = percent; // your hardware here
        reply.send(self.percent);
    }

    async fn get_brightness(&mut self, reply: Reply<u32>) {
        reply.send(self.percent);
    }

    fn period(&self) -> Option<Duration> {
        Some(Duration::from_secs(1))
    }

    async fn publish(&mut self) -> Option<u32> {
        Some(self.percent)
    }
}

fn main() -> ExitCode {
    driver::serve(lamp::driver(Lamp { percent: 0 }))
}
