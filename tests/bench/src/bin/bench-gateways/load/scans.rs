//! The scanners of the load: their scans tell a number, so that a lost one is noticed. IO.

use std::time::{Duration, Instant};

use amber_driver::devices::hokuyo::{self, HokuyoDriver, HokuyoLink, ScanAnswer, ScansData};
use amber_driver::{Devices, Reply};
use amber_proto::Device;
use amber_proto::hokuyo::{Scan, Scanner as ScannerMessage};

use super::{FIRST_MM, NUMBERS, POINTS, SCANS, STEP_MM};

/// The driver of the scanners: one on each device.
pub(crate) fn scanners() -> std::process::ExitCode {
    let devices = (0..)
        .zip(SCANS)
        .fold(Devices::new(), |devices, (id, rate)| {
            let period = Duration::from_millis(1000 / rate);
            devices.add(
                scanner(id),
                hokuyo::driver(Scanner {
                    link: None,
                    number: 0,
                    period,
                    due: None,
                }),
            )
        });
    amber_driver::serve_many(devices)
}

fn scanner(id: u32) -> Device {
    format!("hokuyo:{id}")
        .parse()
        .unwrap_or_else(|_| unreachable!())
}

struct Scanner {
    link: Option<HokuyoLink>,
    number: u32,
    period: Duration,
    due: Option<Instant>,
}

/// A scan that shows its number by its distances.
pub(super) fn scan(number: u32) -> Scan {
    let angle = |step: u16| -120.0 + f64::from(step) * 240.0 / f64::from(POINTS - 1);
    let distance_mm = FIRST_MM + STEP_MM * (number % NUMBERS) as i32;
    Scan {
        angles: (0..POINTS).map(angle).collect(),
        distances: vec![distance_mm; POINTS.into()],
    }
}

/// The number of the scan with this distance.
fn number_of(distance_m: f64) -> Option<u32> {
    let step = (distance_m * 1000.0 - f64::from(FIRST_MM)) / f64::from(STEP_MM);
    let number = step.round();
    (number >= 0.0 && number < f64::from(NUMBERS)).then_some(number as u32)
}

/// Numbers of scans as they arrive at one receiver.
#[derive(Default)]
pub(super) struct Series {
    last: Option<u32>,
    pub(super) arrived: u64,
    pub(super) lost: u64,
}

impl Series {
    pub(super) fn take(&mut self, distance_m: Option<f64>) {
        let Some(number) = distance_m.and_then(number_of) else {
            self.lost += 1;
            return;
        };
        if let Some(last) = self.last {
            self.lost += u64::from((number + NUMBERS - last - 1) % NUMBERS);
        }
        self.last = Some(number);
        self.arrived += 1;
    }
}

impl HokuyoDriver for Scanner {
    async fn start(
        &mut self,
        link: HokuyoLink,
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        self.link = Some(link);
        self.due = Some(amber_driver::now() + self.period);
        Ok(())
    }

    async fn scan(&mut self, reply: Reply<ScanAnswer>) {
        reply.send(ScanAnswer {
            scan: scan(0),
            timestamp_ms: None,
        });
    }

    async fn scanner(&mut self, reply: Reply<ScannerMessage>) {
        reply.refuse("this scanner does not describe itself");
    }

    fn wake_at(&self) -> Option<Instant> {
        self.due
    }

    async fn wake(&mut self) {
        self.due = self.due.map(|due| due + self.period);
        self.number += 1;
        if let Some(link) = &self.link {
            let _ = link.scans(ScansData {
                scan: scan(self.number),
                timestamp_ms: None,
            });
        }
    }
}
