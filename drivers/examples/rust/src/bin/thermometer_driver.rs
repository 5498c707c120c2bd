//! A driver for a user-defined device: the warmest sensor of this computer.
//!
//! ```sh
//! amber mediator --driver '201:0=target/debug/thermometer_driver'
//! ```
//!
//! Its messages are in `thermometer.proto`.

use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use amber_driver::{Driver, Request};
use amber_examples::thermometer::{DriverMsg, Temperature};

struct Thermometer;

impl Driver for Thermometer {
    type Message = DriverMsg;

    async fn request(&mut self, request: Request<DriverMsg>) -> Option<DriverMsg> {
        if request.message.get_temperature.is_some() {
            return self.publish().await;
        }
        eprintln!("not a request for the thermometer");
        None
    }

    fn period(&self) -> Option<Duration> {
        Some(Duration::from_secs(1))
    }

    async fn publish(&mut self) -> Option<DriverMsg> {
        Some(DriverMsg {
            // Present even if no sensor can be read.
            temperature: Some(warmest(Path::new("/sys/class/thermal"))),
            ..DriverMsg::default()
        })
    }
}

/// The warmest sensor in Linux. Kernel files can be read without blocking.
fn warmest(folder: &Path) -> Temperature {
    let zones = fs::read_dir(folder).into_iter().flatten().flatten();
    let readings = zones.filter_map(|zone| {
        let read = |file| fs::read_to_string(zone.path().join(file)).ok();
        let thousandths: f64 = read("temp")?.trim().parse().ok()?;
        Some((thousandths / 1000.0, read("type")?.trim().to_owned()))
    });
    match readings.max_by(|a, b| a.0.total_cmp(&b.0)) {
        Some((celsius, sensor)) => Temperature {
            celsius: Some(celsius),
            sensor: Some(sensor),
        },
        None => Temperature::default(),
    }
}

fn main() -> ExitCode {
    amber_driver::serve(Thermometer)
}
