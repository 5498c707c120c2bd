//! The driver of a simulated robot: a laser scanner and wheels, as light as possible. IO.

use std::error::Error;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use amber_driver::devices::hokuyo::{self, HokuyoDriver, HokuyoLink, ScanAnswer, ScansData};
use amber_driver::devices::roboclaw::{self, RoboclawDriver};
use amber_driver::{Devices, Outcome, Reply};
use amber_proto::battery_state::BatteryState;
use amber_proto::hokuyo::{Scan, Scanner as ScannerMessage};
use amber_proto::roboclaw::MotorsSpeed;
use amber_proto::{Device, DeviceType};

use crate::clock::monotonic_ns;
use crate::motion::line;

/// The laser scanner of each robot.
pub(crate) const SCANNER: Device = Device::new(DeviceType::HOKUYO, 0);
/// The wheels of each robot.
pub(crate) const WHEELS: Device = Device::new(DeviceType::ROBOCLAW, 0);
/// The time between two scans.
pub(crate) const SCAN_PERIOD: Duration = Duration::from_millis(100);
/// The points of a scan: those of a URG-04LX.
const POINTS: u16 = 682;

/// Serves both devices until the mediator ends it. Commands of the wheels are written to a file, if
/// there is a path.
pub(crate) fn serve(log: Option<&str>) -> ExitCode {
    let scanner = Scanner {
        link: None,
        number: 0,
        due: amber_driver::now() + phase(),
    };
    let log = log.map(|path| OpenOptions::new().create(true).append(true).open(path));
    let wheels = match log.transpose() {
        Ok(log) => Wheels {
            speeds: MotorsSpeed::default(),
            log,
        },
        Err(_) => return ExitCode::FAILURE,
    };
    let devices = Devices::new()
        .add(SCANNER, hokuyo::driver(scanner))
        .add(WHEELS, roboclaw::driver(wheels));
    amber_driver::serve_many(devices)
}

/// A random part of the period, so that robots do not scan at the same moment.
pub(crate) fn phase() -> Duration {
    SCAN_PERIOD.mul_f64(fastrand::f64())
}

/// A scan. Its first distance is its number, which begins again after 60 000.
pub(crate) fn scan(number: u64) -> Scan {
    let angle = |step: u16| -120.0 + f64::from(step) * 240.0 / f64::from(POINTS - 1);
    let mut distances = vec![4321; POINTS.into()];
    distances[0] = (number % 60_000) as i32;
    Scan {
        angles: (0..POINTS).map(angle).collect(),
        distances,
    }
}

/// Publishes a scan each period, with the time of CLOCK_MONOTONIC in nanoseconds as its timestamp.
struct Scanner {
    link: Option<HokuyoLink>,
    number: u64,
    due: Instant,
}

impl HokuyoDriver for Scanner {
    async fn start(&mut self, link: HokuyoLink) -> Result<(), Box<dyn Error + Send + Sync>> {
        self.link = Some(link);
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
        Some(self.due)
    }

    async fn wake(&mut self) {
        self.due += SCAN_PERIOD;
        self.number += 1;
        if let Some(link) = &self.link
            && link.subscriptions() > 0
        {
            let _ = link.scans(ScansData {
                scan: scan(self.number),
                timestamp_ms: Some(monotonic_ns() as i64),
            });
        }
    }
}

/// Wheels that turn as commanded, at once and until the next command.
struct Wheels {
    speeds: MotorsSpeed,
    log: Option<File>,
}

impl RoboclawDriver for Wheels {
    async fn drive(&mut self, speeds: MotorsSpeed, outcome: Outcome) {
        self.speeds = speeds;
        if let Some(log) = &mut self.log
            && log
                .write_all(line(monotonic_ns(), &speeds).as_bytes())
                .is_err()
        {
            return outcome.refuse("the command cannot be logged");
        }
        outcome.done();
    }

    async fn speeds(&mut self, reply: Reply<MotorsSpeed>) {
        reply.send(self.speeds);
    }

    async fn battery(&mut self, reply: Reply<BatteryState>) {
        reply.refuse("no voltage is measured");
    }
}
