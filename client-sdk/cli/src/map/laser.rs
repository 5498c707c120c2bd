//! The laser scanner of a map: its device, and its position on the robot. IO.

use amber_client::Client;
use amber_map::Mounting;
use amber_proto::{Device, DeviceType};
use amber_scene::mount::{self, Mount};
use amber_terminal::Failure;

/// Options of the laser scanner, for all commands of `amber map`.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct LaserOptions {
    /// Laser scanner
    #[arg(long, value_name = "DEVICE", default_value = "hokuyo:0")]
    pub(super) laser: Device,
    /// Position of the laser ahead of the centre between the wheels [default: as the robot device
    /// says]
    #[arg(long, value_name = "MM", allow_negative_numbers = true)]
    laser_offset_mm: Option<f64>,
    /// Position of the laser to the left of the centre [default: 0]
    #[arg(
        long,
        value_name = "MM",
        requires = "laser_offset_mm",
        allow_negative_numbers = true
    )]
    laser_left_mm: Option<f64>,
    /// Rotation of the laser to the right, relative to the front of the robot [default: 0]
    #[arg(
        long,
        value_name = "DEG",
        requires = "laser_offset_mm",
        allow_negative_numbers = true
    )]
    laser_angle_deg: Option<f64>,
    /// The laser is mounted upside down
    #[arg(long, requires = "laser_offset_mm")]
    laser_mirrored: bool,
}

impl LaserOptions {
    /// Checks the options before anything is sent.
    pub(super) fn check(&self) -> Result<(), Failure> {
        if self.laser.device_type != DeviceType::HOKUYO {
            return Err(
                Failure::wrong(format!("{} is not a laser scanner", self.laser))
                    .hint("try --laser hokuyo:0; `amber devices` lists all devices"),
            );
        }
        self.place().map(|_| ())
    }

    /// The position of the laser on the robot, if the options set it.
    fn place(&self) -> Result<Option<Mounting>, Failure> {
        let Some(offset_mm) = self.laser_offset_mm else {
            return Ok(None);
        };
        let mount = Mount {
            offset_mm,
            left_mm: self.laser_left_mm.unwrap_or(0.0),
            angle_deg: self.laser_angle_deg.unwrap_or(0.0),
        };
        let pose = mount.pose().map_err(Failure::wrong)?;
        Ok(Some(Mounting {
            pose,
            is_upside_down: self.laser_mirrored,
        }))
    }

    /// The position of the laser on the robot: from the options, or else from the robot device.
    ///
    /// # Errors
    /// Neither contains it. A wrong position does more harm than an error.
    pub(super) async fn mount(&self, client: &Client) -> Result<Mounting, Failure> {
        if let Some(place) = self.place()? {
            return Ok(place);
        }
        if let Some(place) = mount::find(client).await {
            return Ok(place);
        }
        Err(Failure::wrong(
            "the position of the laser on the robot is unknown: --laser-offset-mm is required",
        )
        .hint(format!(
            "measure how far the laser is ahead of the centre between the wheels (0 if it is above \
             the centre, negative if it is behind), or {}",
            mount::HINT
        )))
    }
}
