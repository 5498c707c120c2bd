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

use amber_examples::thermometer::{self, Temperature, ThermometerDriver};
use amber_sdk::driver::Reply;

struct Thermometer;

impl ThermometerDriver for Thermometer {
    async fn temperature(&mut self, reply: Reply<Temperature>) {
        reply.send(warmest(Path::new("/sys/class/thermal")));
    }

    fn period(&self) -> Option<Duration> {
        Some(Duration::from_secs(1))
    }

    async fn publish(&mut self) -> Option<Temperature> {
        Some(warmest(Path::new("/sys/class/thermal")))
    }
}

/// The warmest sensor in Linux; without content if none can be read. Kernel files can be read
/// without blocking.
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
    amber_sdk::driver::serve(thermometer::driver(Thermometer))
}
