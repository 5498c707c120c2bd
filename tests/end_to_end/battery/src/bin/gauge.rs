//! The driver of a battery gauge.

use std::error::Error;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use amber_sdk::driver::{Origin, Outcome, Periodic, Reply, StreamRequest};
use ::battery::battery::{self, BatteryDriver, BatteryLink, ChargeAnswer, Watch};

#[derive(Default)]
struct Gauge {
    capacity: u32,
    watched: Periodic<Watch>,
    link: Option<BatteryLink>,
}

impl BatteryDriver for Gauge {
    async fn start(&mut self, link: BatteryLink) -> Result<(), Box<dyn Error + Send + Sync>> {
        self.capacity = 2000;
        self.link = Some(link);
        Ok(())
    }

    async fn charge(&mut self, reply: Reply<ChargeAnswer>) {
        reply.send(ChargeAnswer {
            charge_percent: 87.5,
            capacity: Some(self.capacity),
        });
    }

    async fn set_capacity(&mut self, capacity: u32, outcome: Outcome) {
        if capacity < 100 {
            return outcome.refuse("no battery is that small");
        }
        self.capacity = capacity;
        outcome.done();
    }

    fn period(&self) -> Option<Duration> {
        Some(Duration::from_millis(100))
    }

    async fn publish(&mut self) -> Option<f64> {
        Some(87.5)
    }

    async fn voltages(&mut self, origin: Origin, request: StreamRequest<Watch>) {
        let period = |watch: &Watch| Duration::from_millis(watch.period_ms.unwrap_or(1000).into());
        self.watched
            .handle(amber_sdk::driver::now(), &origin, request, period);
    }

    fn wake_at(&self) -> Option<Instant> {
        self.watched.next_due()
    }

    async fn wake(&mut self) {
        for (origin, watch) in self.watched.take_due(amber_sdk::driver::now()) {
            if let Some(link) = &self.link {
                // Fails only when the mediator is gone, and then the driver ends.
                let _ = link.voltages(&origin, 3700 + watch.cell.unwrap_or(1));
            }
        }
    }
}

fn main() -> ExitCode {
    amber_sdk::driver::serve(battery::driver(Gauge::default()))
}
