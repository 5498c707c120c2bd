//! The laser scanner of a map: which device, and where it is on the robot. IO.

use std::time::Duration;

use amber_client::Client;
use amber_map::Pose;
use amber_proto::{Device, DeviceType};
use amber_terminal::Failure;

/// The mediator answers from memory, so a late answer means that it has none.
const DEADLINE: Duration = Duration::from_millis(500);
/// Drivers that are started with the place of the laser, in the order of preference.
const KNOW_IT: [DeviceType; 4] = [
    DeviceType::LOCATION,
    DeviceType::DRIVE_TO_POINT,
    DeviceType::COLLISION_AVOIDANCE,
    DeviceType::PID_FOLLOW_TRAJECTORY,
];
/// A laser farther away is not on the robot.
const MAX_MM: f64 = 2_000.0;

/// Options of the laser scanner, for all commands of `amber map`.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct LaserOptions {
    /// Laser scanner
    #[arg(long, value_name = "DEVICE", default_value = "hokuyo:0")]
    pub(super) laser: Device,
    /// Position of the laser ahead of the centre between the wheels [default: that of the mediator's
    /// own location driver]
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
    /// Direction of the front of the laser, to the right of that of the robot [default: 0]
    #[arg(
        long,
        value_name = "DEG",
        requires = "laser_offset_mm",
        allow_negative_numbers = true
    )]
    laser_angle_deg: Option<f64>,
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

    /// Where the options say that the laser is on the robot, if they do.
    fn place(&self) -> Result<Option<Pose>, Failure> {
        let Some(offset_mm) = self.laser_offset_mm else {
            return Ok(None);
        };
        let checked = |name, value: f64, max: f64| match value.abs() <= max {
            true => Ok(value),
            false => Err(Failure::wrong(format!(
                "--{name} {value}: it must be within -{max} to {max}"
            ))),
        };
        let ahead_mm = checked("laser-offset-mm", offset_mm, MAX_MM)?;
        let left_mm = checked("laser-left-mm", self.laser_left_mm.unwrap_or(0.0), MAX_MM)?;
        let angle = self.laser_angle_deg.unwrap_or(0.0);
        let angle_deg = checked("laser-angle-deg", angle, 180.0)?;
        // Options have the signs of messages: clockwise is positive.
        Ok(Some(Pose::new(
            ahead_mm / 1000.0,
            left_mm / 1000.0,
            -angle_deg.to_radians(),
        )))
    }

    /// Where the laser is on the robot: from the options, or else from the command of a driver of
    /// this mediator that was started with it.
    ///
    /// # Errors
    /// Neither says it. A wrong place does more harm than an error.
    pub(super) async fn mount(&self, client: &Client) -> Result<Pose, Failure> {
        if let Some(place) = self.place()? {
            return Ok(place);
        }
        let mediator = client.mediator().with_deadline(DEADLINE);
        for device_type in KNOW_IT {
            let device = Device::new(device_type, 0);
            let Ok(driver) = mediator.driver(device).await else {
                continue;
            };
            if let Some(place) = of_command(&driver.command) {
                return Ok(place);
            }
        }
        Err(Failure::wrong(
            "the position of the laser on the robot is unknown: --laser-offset-mm is required",
        )
        .hint(
            "measure how far the laser is ahead of the centre between the wheels; 0 if it is \
             above the centre, negative if it is behind",
        ))
    }
}

/// The place of the laser in the command of a driver.
fn of_command(words: &[String]) -> Option<Pose> {
    let value = |name: &str| {
        let place = words.iter().position(|word| word == name);
        let next = place.and_then(|place| words.get(place + 1)).cloned();
        let joined = |word: &String| Some(word.strip_prefix(name)?.strip_prefix('=')?.to_owned());
        next.or_else(|| words.iter().find_map(joined))
    };
    let number = |name| match value(name) {
        None => Some(None),
        Some(text) => text.parse().ok().map(Some),
    };
    let options = LaserOptions {
        laser: Device::new(DeviceType::HOKUYO, 0),
        laser_offset_mm: number("--laser-offset-mm")?,
        laser_left_mm: number("--laser-left-mm")?,
        laser_angle_deg: number("--laser-angle-deg")?,
    };
    options.place().ok()?
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(command: &str) -> Option<Pose> {
        let words: Vec<String> = command.split_whitespace().map(str::to_owned).collect();
        of_command(&words)
    }

    #[test]
    fn the_command_of_a_driver_says_where_the_laser_is() {
        let ahead = Pose::new(0.12, 0.0, 0.0);
        for (command, place) in [
            ("amber driver location --laser-offset-mm 120", Some(ahead)),
            (
                "amber driver location --laser-offset-mm=120 --map a",
                Some(ahead),
            ),
            (
                "amber driver location --laser-left-mm -50 --laser-offset-mm 0 --laser-angle-deg 90",
                Some(Pose::new(0.0, -0.05, -std::f64::consts::FRAC_PI_2)),
            ),
            ("amber driver location --config robot.toml", None),
            ("python3 location.py", None),
            ("amber driver location --laser-offset-mm", None),
            ("amber driver location --laser-offset-mm far", None),
            ("amber driver location --laser-offset-mm 9e9", None),
        ] {
            assert_eq!(found(command), place, "{command}");
        }
    }
}
