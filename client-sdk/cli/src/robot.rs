//! `amber robot`: shows the shape of the robot, and checks it. IO.
//!
//! `check` compares the shape with measurements, and `checked` is its result.
//! `shown` is what is known, as text and as JSON. `plot` is the drawing for the terminal, and
//! `picture` the PNG file; all are pure.

use std::path::PathBuf;

use amber_client::{Client, Error};
use amber_proto::robot::{Role, Shape};
use amber_proto::{Device, DeviceType};
use amber_terminal::{Failure, print};
use clap::Subcommand;

use self::shown::Shown;
use super::file;

mod check;
mod checked;
mod picture;
mod plot;
mod shown;

const HELP: &str = "\
The drawing is the robot from above, with its front at the top: the outline, the laser (L) with a
line in the direction of its front, the camera (C) and the motion sensors (I). If the laser is on
the wrong side here, a sign in robot.toml is wrong.

Examples:
  amber robot show
  amber robot show --png robot.png
  amber robot show --urdf > robot.urdf";

/// Options of `amber robot`.
#[derive(Clone, Debug, clap::Args)]
#[command(arg_required_else_help = true)]
pub struct Options {
    #[command(subcommand)]
    verb: Verb,
}

/// The subcommands for the robot.
#[derive(Clone, Debug, Subcommand)]
enum Verb {
    /// Show the shape of the robot, its devices and who drives, with a drawing from above
    #[command(after_help = HELP)]
    Show(Show),
    /// Check by measurements whether the shape of the robot is right, and print what to correct
    #[command(after_help = check::HELP)]
    Check(check::Check),
}

/// Options of `amber robot show`.
#[derive(Clone, Debug, clap::Args)]
struct Show {
    /// Robot device
    #[arg(default_value = "robot:0")]
    device: Device,
    /// Write the drawing as a PNG picture to this file, or to stdout for `-`
    #[arg(long, value_name = "FILE", conflicts_with = "urdf")]
    png: Option<PathBuf>,
    /// Print the shape as URDF, for ROS, RViz and Foxglove
    #[arg(long)]
    urdf: bool,
}

impl Options {
    /// Checks the options before anything is sent.
    pub(super) fn checked(self, json: bool) -> Result<Self, Failure> {
        let show = match &self.verb {
            Verb::Show(show) => show,
            Verb::Check(check) => {
                check.checked()?;
                return Ok(self);
            }
        };
        if show.device.device_type != DeviceType::ROBOT {
            return Err(
                Failure::wrong(format!("{} is not a robot device", show.device))
                    .hint("leave the device out; `amber devices` lists all devices"),
            );
        }
        if let Some(path) = &show.png {
            file::check("--png", path)?;
        }
        if json && (show.png.is_some() || show.urdf) {
            return Err(
                Failure::wrong("--json cannot be combined with --png or --urdf")
                    .hint("leave out one of them"),
            );
        }
        Ok(self)
    }
}

pub(super) async fn run(client: &Client, options: Options, json: bool) -> Result<(), Failure> {
    let options = match options.verb {
        Verb::Show(show) => show,
        Verb::Check(check) => return check::run(client, &check, json).await,
    };
    let robot = client.robot(options.device.id.0);
    if options.urdf {
        let text = robot.urdf().await.map_err(unknown)?;
        return print(text.as_bytes());
    }
    let shape = robot.shape().await.map_err(unknown)?;
    if let Some(path) = &options.png {
        let picture = picture::png(&shape)
            .map_err(|error| Failure::new(format!("cannot make the picture: {error}")))?;
        file::write(path, &picture)?;
        file::wrote(path);
        return Ok(());
    }
    let (driven_by, halted_by) = motion(client, &shape).await;
    let shown = Shown::new(options.device, &shape, driven_by, halted_by);
    amber_terminal::show(&shown, json)?;
    if !json {
        let columns = amber_terminal::terminal_columns().unwrap_or(plot::COLUMNS);
        let drawing = plot::draw(&shape, columns, amber_terminal::has_colours());
        print(drawing.as_bytes())?;
    }
    Ok(())
}

/// The device with a role.
fn with_role(shape: &Shape, role: &str) -> Option<Device> {
    let is_it = |it: &&Role| it.role == role;
    let role = shape.roles.iter().find(is_it)?;
    Some(Device::new(DeviceType(role.r#type), role.id))
}

/// Who drives and who has halted the wheels, according to the mediator. An old one does not say.
async fn motion(client: &Client, shape: &Shape) -> (Option<String>, Option<String>) {
    let Some(wheels) = with_role(shape, "wheels") else {
        return (None, None);
    };
    let Ok(driver) = client.mediator().driver(wheels).await else {
        return (None, None);
    };
    let is_it = |it: &amber_proto::mediator::DeviceMotion| Device::from(it.device) == wheels;
    match driver.motions.into_iter().find(is_it) {
        Some(motion) => (motion.holder, motion.halted_by),
        None => (None, None),
    }
}

/// Without a robot device, the error says how to get one.
fn unknown(error: Error) -> Failure {
    let hint = "run `amber driver robot --config robot.toml`: docs/robot.md shows how";
    Failure::from(error).hint(hint)
}
