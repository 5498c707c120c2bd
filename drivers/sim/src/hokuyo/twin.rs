//! The laser scanners in the robot: their options, and what they measure between its walls. PURE.

use std::net::SocketAddr;
use std::time::Duration;

use amber_map::Point;

use super::{Hokuyo, Model, Quirks, Scan, Sweep, Transport, is_dark};
use crate::ceiling::Ceiling;
use crate::control::SimulationState;
use crate::device::{Connection, Device, Kind};
use crate::twin::{Setup, Surroundings, Twin};
use crate::world::World;

/// The laser scanner.
pub const DEVICE: Device = Device {
    name: "hokuyo",
    connection: Connection::Serial,
    is_extra: false,
    driver: "hokuyo",
    options: &[],
    files: &[],
    model_option: None,
    demonstrations: &[("scan --plot", "laser scan")],
};

/// The laser scanner connected over TCP.
pub const TCP_DEVICE: Device = Device {
    name: "hokuyo-tcp",
    connection: Connection::Tcp,
    is_extra: true,
    driver: "hokuyo",
    options: &[],
    files: &[],
    model_option: None,
    demonstrations: &[],
};

/// The variants of the laser scanners.
#[derive(clap::Args, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[group(skip)]
pub struct Options {
    /// Model of the laser scanner
    #[arg(long = "hokuyo", value_name = "HOKUYO", value_enum, default_value_t)]
    pub model: Model,
    /// Add a laser scanner that listens on TCP
    #[arg(long = "hokuyo-tcp", value_name = "ADDRESS:PORT")]
    pub tcp: Option<SocketAddr>,
    /// Where the scanners differ from other scanners.
    #[command(flatten)]
    pub quirks: Quirks,
}

impl Kind for Options {
    const DEVICES: &'static [Device] = &[DEVICE, TCP_DEVICE];

    fn twins(&self, _setup: &Setup<'_>) -> Vec<(Device, Box<dyn Twin>)> {
        let scanner = |link, quirks| {
            let scanner = Hokuyo::with_quirks(self.model, link, quirks, Duration::ZERO);
            Box::new(scanner) as Box<dyn Twin>
        };
        // Ethernet scanners are too new for SCIP 1.1.
        let new = Quirks {
            starts_in_scip_1: false,
            ..self.quirks
        };
        vec![
            (DEVICE, scanner(Transport::Serial, self.quirks)),
            (TCP_DEVICE, scanner(Transport::Ethernet, new)),
        ]
    }

    fn address(&self, device: Device) -> Option<SocketAddr> {
        self.tcp.filter(|_| device == TCP_DEVICE)
    }
}

impl Twin for Hokuyo {
    fn advance(&mut self, now: Duration, around: &mut Surroundings<'_>) {
        while let Some(sweep) = self.poll_sweep(now) {
            let scan = measure(self.model(), self.quirks.is_upside_down, sweep, around);
            self.scans += 1;
            self.handle_scan(now, sweep, scan);
        }
    }

    fn handle_bytes(&mut self, now: Duration, bytes: &[u8]) {
        Hokuyo::handle_bytes(self, now, bytes);
    }

    fn handle_hang_up(&mut self) {
        Hokuyo::handle_hang_up(self);
    }

    fn poll_output(&mut self, _now: Duration) -> Option<Vec<u8>> {
        Hokuyo::poll_output(self)
    }

    fn poll_hang_up(&mut self) -> bool {
        Hokuyo::poll_hang_up(self)
    }

    fn next_timeout(&self) -> Option<Duration> {
        Hokuyo::next_timeout(self)
    }

    fn handle_plug_in(&mut self, now: Duration) {
        *self = self.restarted(now);
    }

    fn show(&self, _world: &World, _ceiling: &Ceiling, state: &mut SimulationState) {
        state.scans += self.scans;
        state.laser_on |= self.is_laser_on();
    }
}

fn measure(
    model: Model,
    is_upside_down: bool,
    sweep: Sweep,
    around: &mut Surroundings<'_>,
) -> Scan {
    let limit_m = f64::from(model.max_mm()) / 1000.0;
    let distances: Vec<_> = (0..=model.last_step())
        .map(|step| {
            let time = model.beam_time(sweep, step);
            // On the robot.
            let angle = match is_upside_down {
                true => -model.angle(step),
                false => model.angle(step),
            };
            let way_m = around.world.beam(time, angle, limit_m)?;
            let pose = around.world.pose_at(time);
            let way = Point::new(way_m, 0.0).turned(pose.heading + angle);
            // Only the URG cannot see dark walls.
            let is_lost = model == Model::Urg04Lx && is_dark(pose.at.plus(way));
            (!is_lost).then_some(way_m)
        })
        .collect();
    model.measure(&distances, around.random)
}
