//! The position of the laser on the robot. IO.

use std::time::Duration;

use amber_client::Client;
use amber_map::Pose;
use amber_proto::{Device, DeviceType};

/// The mediator answers from memory, so without an answer in this time it has none.
const DEADLINE: Duration = Duration::from_millis(500);
/// Drivers that have the position of the laser in their options, in the order of preference.
const KNOW_IT: [DeviceType; 4] = [
    DeviceType::LOCATION,
    DeviceType::DRIVE_TO_POINT,
    DeviceType::COLLISION_AVOIDANCE,
    DeviceType::PID_FOLLOW_TRAJECTORY,
];
/// A laser farther away is not on the robot.
const MAX_MM: f64 = 2_000.0;

/// The position of the laser in the form of command line options. Clockwise is positive.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Mount {
    /// The distance ahead of the centre between the wheels.
    pub offset_mm: f64,
    /// The distance to the left of the centre.
    pub left_mm: f64,
    /// The direction of its front, to the right of that of the robot.
    pub angle_deg: f64,
}

impl Mount {
    /// The same as a pose on the robot.
    ///
    /// # Errors
    /// A number is out of its range.
    pub fn pose(self) -> Result<Pose, String> {
        let checked = |name, value: f64, max: f64| match value.abs() <= max {
            true => Ok(value),
            false => Err(format!(
                "--{name} {value}: it must be within -{max} to {max}"
            )),
        };
        let ahead_mm = checked("laser-offset-mm", self.offset_mm, MAX_MM)?;
        let left_mm = checked("laser-left-mm", self.left_mm, MAX_MM)?;
        let angle_deg = checked("laser-angle-deg", self.angle_deg, 180.0)?;
        Ok(Pose::new(
            ahead_mm / 1000.0,
            left_mm / 1000.0,
            -angle_deg.to_radians(),
        ))
    }
}

/// The position of the laser, from the command line of a driver of this mediator. `None` if no
/// driver has it. A wrong position does more harm than none.
pub async fn find(client: &Client) -> Option<Pose> {
    let mediator = client.mediator().with_deadline(DEADLINE);
    for device_type in KNOW_IT {
        let device = Device::new(device_type, 0);
        let Ok(driver) = mediator.driver(device).await else {
            continue;
        };
        if let Some(place) = of_command(&driver.command) {
            return Some(place);
        }
    }
    None
}

/// The position of the laser in the command line of a driver.
fn of_command(words: &[String]) -> Option<Pose> {
    let value = |name: &str| {
        let place = words.iter().position(|word| word == name);
        let next = place.and_then(|place| words.get(place + 1)).cloned();
        let joined = |word: &String| Some(word.strip_prefix(name)?.strip_prefix('=')?.to_owned());
        next.or_else(|| words.iter().find_map(joined))
    };
    let number = |name| value(name).map_or(Some(0.0), |text| text.parse().ok());
    value("--laser-offset-mm")?;
    let mount = Mount {
        offset_mm: number("--laser-offset-mm")?,
        left_mm: number("--laser-left-mm")?,
        angle_deg: number("--laser-angle-deg")?,
    };
    mount.pose().ok()
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
