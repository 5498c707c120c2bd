//! `amber location`: what a person knows about the pose of the robot. IO.

use amber_client::Client;
use amber_client::values::MapPose;
use amber_proto::location::KnownPose;
use amber_proto::{Device, DeviceType};
use amber_terminal::{Failure, Human, show};
use clap::Subcommand;
use serde::Serialize;

const HELP: &str = "\
Use it when `amber goto` says that the pose is unknown, or when the robot is somewhere else than
on `amber map show`. X, Y and DEG are as on the map: y points down, and DEG turns to the right from
the x axis. About is enough: the driver finds the exact pose near it, if the next scans agree.

Examples:
  amber location here 1.4 1.1 -- -90
  amber location here 1.4 1.1 90 --within 0.5";

/// Farther away than any map.
const FAR_M: f64 = 1e6;

/// Options of `amber location`.
#[derive(Clone, Debug, clap::Args)]
#[command(arg_required_else_help = true)]
pub struct Options {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Clone, Debug, Subcommand)]
enum Verb {
    /// Tell the robot where it is
    #[command(after_help = HELP)]
    Here(Here),
}

/// Options of `amber location here`.
#[derive(Clone, Debug, clap::Args)]
struct Here {
    /// x on the map, to the right, in metres
    #[arg(allow_negative_numbers = true)]
    x: f64,
    /// y on the map, downwards, in metres
    #[arg(allow_negative_numbers = true)]
    y: f64,
    /// The direction of its front: 0 is that of the x axis, and 90 down on the map
    #[arg(value_name = "DEG", allow_negative_numbers = true)]
    heading: f64,
    /// The position is right within about this distance
    #[arg(long, value_name = "METRES", default_value_t = 0.5)]
    within: f64,
    /// The direction is right within about this angle
    #[arg(long, value_name = "DEG", default_value_t = 30.0)]
    within_deg: f64,
    /// The driver that finds the pose
    #[arg(long, default_value = "location:0")]
    device: Device,
}

impl Options {
    /// Checks the options before anything is sent.
    pub(super) fn checked(self) -> Result<Self, Failure> {
        let Verb::Here(here) = &self.verb;
        if here.device.device_type != DeviceType::LOCATION {
            let text = format!("{} does not find the pose of the robot", here.device);
            return Err(Failure::wrong(text)
                .hint("try --device location:0; `amber devices` lists all devices"));
        }
        let places = [here.x, here.y, here.heading];
        if !places.iter().all(|value| value.abs() <= FAR_M) {
            return Err(Failure::wrong("X, Y and DEG must be numbers")
                .hint("X and Y are metres on the map, see `amber map show`"));
        }
        for (name, value, most) in [
            ("--within", here.within, 20.0),
            ("--within-deg", here.within_deg, 180.0),
        ] {
            if !(value > 0.0 && value <= most) {
                let text = format!("{name} {value}: it must be above 0, and at most {most}");
                return Err(Failure::wrong(text));
            }
        }
        Ok(self)
    }
}

impl Here {
    fn known(&self) -> KnownPose {
        KnownPose {
            x: self.x,
            y: self.y,
            alfa: self.heading.to_radians(),
            // People mean about two standard deviations.
            sigma: Some(self.within / 2.0),
            sigma_alfa: Some(self.within_deg.to_radians() / 2.0),
        }
    }
}

pub(super) async fn run(client: &Client, options: Options, json: bool) -> Result<(), Failure> {
    let Verb::Here(here) = options.verb;
    let location = client.location(here.device.id.0);
    location.set_pose(here.known()).await?;
    show(&Told::new(&here), json)
}

#[derive(Debug, Serialize)]
struct Told {
    device: String,
    x_m: f64,
    y_m: f64,
    heading_deg: f64,
}

impl Told {
    fn new(here: &Here) -> Self {
        let pose = MapPose::new(here.x, here.y, here.heading.to_radians());
        Self {
            device: here.device.to_string(),
            x_m: pose.x_m,
            y_m: pose.y_m,
            heading_deg: here.heading,
        }
    }
}

impl Human for Told {
    fn human(&self) -> String {
        format!(
            "{} looks near ({} m, {} m); `amber watch location` shows whether the scans agree\n",
            self.device, self.x_m, self.y_m
        )
    }
}

#[cfg(test)]
mod tests {
    use amber_client::fake::Fake;
    use amber_proto::DeviceMessage;
    use amber_proto::location::DriverMsg;
    use prost::Message;

    use super::*;

    fn here(x: f64, within: f64, device: &str) -> Options {
        Options {
            verb: Verb::Here(Here {
                x,
                y: 2.0,
                heading: 180.0,
                within,
                within_deg: 30.0,
                device: device.parse().unwrap(),
            }),
        }
    }

    #[test]
    fn impossible_places_are_refused_before_anything_is_sent() {
        assert!(here(1.0, 0.5, "location:0").checked().is_ok());
        for (x, within, device) in [
            (f64::NAN, 0.5, "location:0"),
            (1e308, 0.5, "location:0"),
            (1.0, 0.0, "location:0"),
            (1.0, f64::NAN, "location:0"),
            (1.0, 0.5, "hokuyo:0"),
        ] {
            assert!(
                here(x, within, device).checked().is_err(),
                "{x} {within} {device}"
            );
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_driver_gets_metres_radians_and_the_uncertainty() {
        let (client, mut fake) = Fake::new();
        let sent = tokio::spawn(async move {
            let asked = fake.receive().await.unwrap();
            DriverMsg::decode(&asked.bytes[..]).unwrap()
        });
        // Nobody answers.
        let _ = run(&client, here(1.5, 0.5, "location:0"), true).await;
        let known = sent.await.unwrap().set_pose.unwrap();
        assert_eq!((known.x, known.y, known.sigma), (1.5, 2.0, Some(0.25)));
        assert!((known.alfa - std::f64::consts::PI).abs() < 1e-9);
        assert_eq!(DriverMsg::data().set_pose, None);
    }
}
