//! The camera on the robot: its options, and its view. PURE.

use std::net::SocketAddr;
use std::time::Duration;

use amber_map::{Point, Pose, Segment};

use super::markers::{self, WallMarkers};
use super::render::{Optics, Painter};
use super::{AHEAD_M, Camera, PictureFault, Size, VIEW_DEG};
use crate::device::{Connection, Device, Kind};
use crate::twin::{Setup, Surroundings, Twin};
use crate::world::World;

/// The file with its calibration, in the folder of the devices.
pub const CALIBRATION_FILE: &str = "camera.yaml";

/// The camera, at the front of the robot.
pub const DEVICE: Device = Device {
    name: "camera",
    connection: Connection::Http,
    is_extra: true,
    driver: "camera",
    options: &[],
    files: &[("--calibration", CALIBRATION_FILE)],
    model_option: None,
    demonstrations: &[("camera", "what the camera sees")],
};

/// Enough to drive by hand. The simulation waits while it draws, so more would make others late.
const USUAL_RATE_HZ: f64 = 10.0;

/// The variants of the camera.
#[derive(clap::Args, Clone, Copy, Debug, Default, PartialEq)]
#[group(skip)]
pub struct Options {
    /// Add a network camera with the view of the robot, which listens there [default: a free port of
    /// this machine]
    #[arg(
        id = "camera",
        long,
        value_name = "ADDRESS:PORT",
        num_args = 0..=1,
        default_missing_value = "127.0.0.1:0"
    )]
    pub address: Option<SocketAddr>,
    /// Size of its pictures [default: 640x480]
    #[arg(long = "camera-size", value_name = "WIDTHxHEIGHT", requires = "camera")]
    pub size: Option<Size>,
    /// Pictures per second [default: 10]
    #[arg(long = "camera-rate", value_name = "HZ", requires = "camera", value_parser = rate)]
    pub rate_hz: Option<f64>,
}

fn rate(text: &str) -> Result<f64, String> {
    let rate_hz = text
        .parse()
        .ok()
        .filter(|rate_hz| (0.1..=60.0).contains(rate_hz));
    rate_hz.ok_or_else(|| "a number from 0.1 to 60 is needed".to_owned())
}

impl Options {
    /// The files for programs that use the camera, with their names: the places of the markers on the
    /// walls, and the calibration.
    pub(crate) fn files(&self, walls: &[Segment]) -> Vec<(&'static str, String)> {
        let files = self.address.map(|_| {
            let optics = Optics::new(self.size.unwrap_or_default(), VIEW_DEG);
            vec![
                (markers::FILE, WallMarkers::on(walls).file()),
                (CALIBRATION_FILE, optics.calibration()),
            ]
        });
        files.unwrap_or_default()
    }
}

impl Kind for Options {
    const DEVICES: &'static [Device] = &[DEVICE];

    fn twins(&self, setup: &Setup<'_>) -> Vec<(Device, Box<dyn Twin>)> {
        let twin = |_| {
            let size = self.size.unwrap_or_default();
            let camera = Camera::new(size, self.rate_hz.unwrap_or(USUAL_RATE_HZ));
            let twin = CameraTwin {
                painter: Painter::new(camera.optics(), setup.seed),
                markers: WallMarkers::on(setup.walls),
                camera,
            };
            (DEVICE, Box::new(twin) as Box<dyn Twin>)
        };
        self.address.map(twin).into_iter().collect()
    }

    fn address(&self, device: Device) -> Option<SocketAddr> {
        self.address.filter(|_| device == DEVICE)
    }
}

/// The camera between the walls.
#[derive(Debug)]
struct CameraTwin {
    camera: Camera,
    painter: Painter,
    markers: WallMarkers,
}

/// The pose of the camera at a time within the last half second.
fn pose(world: &World, time: Duration) -> Pose {
    let robot = world.pose_at(time);
    Pose {
        at: robot.global(Point::new(AHEAD_M, 0.0)),
        heading: robot.heading,
    }
}

impl Twin for CameraTwin {
    fn advance(&mut self, now: Duration, around: &mut Surroundings<'_>) {
        while let Some(time) = self.camera.poll_shot(now) {
            let camera = pose(around.world, time);
            let walls = around.world.walls().segments();
            let code = self.camera.code(time);
            let view = self.painter.paint(camera, walls, self.markers.all(), code);
            self.camera.expose(time, view);
        }
    }

    fn handle_bytes(&mut self, now: Duration, bytes: &[u8]) {
        self.camera.handle_bytes(now, bytes);
    }

    fn handle_hang_up(&mut self) {
        self.camera.handle_hang_up();
    }

    fn poll_output(&mut self, _now: Duration) -> Option<Vec<u8>> {
        self.camera.poll_output()
    }

    fn poll_hang_up(&mut self) -> bool {
        self.camera.poll_hang_up()
    }

    fn next_timeout(&self) -> Option<Duration> {
        self.camera.next_shot()
    }

    fn set_picture_fault(&mut self, fault: PictureFault, is_on: bool) {
        self.camera.set_fault(fault, is_on);
    }
}
