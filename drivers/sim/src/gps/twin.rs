//! The receiver in the robot: its options, and how its place in the world becomes one on Earth. PURE.

use std::str::FromStr;
use std::time::Duration;

use super::{Model, Motion, Receiver};
use crate::device::{Connection, Device, Kind};
use crate::twin::{Setup, Surroundings, Twin};
use crate::world::World;

/// The receiver, in the centre of the robot.
pub const DEVICE: Device = Device {
    name: "gps",
    connection: Connection::Serial,
    is_extra: true,
    driver: "gps",
    options: &[],
    files: &[],
    model_option: None,
    demonstrations: &[("call gps fix", "position on Earth")],
};

/// The metres in a degree of latitude.
const DEGREE_M: f64 = 111_320.0;
/// The velocity is that of this time before.
const MOMENT: Duration = Duration::from_millis(200);

/// The variants of the receiver.
#[derive(clap::Args, Clone, Copy, Debug, Default, PartialEq)]
#[group(skip)]
pub struct Options {
    /// Add a GPS receiver
    #[arg(id = "gps", long, value_name = "MODEL", value_enum)]
    pub model: Option<Model>,
    /// Where on Earth the origin of the map is, in degrees, and the direction of its x axis, clockwise
    /// from north [default: 50.0682,19.9126,90]
    #[arg(
        long = "gps-origin",
        value_name = "LATITUDE,LONGITUDE,BEARING",
        allow_hyphen_values = true,
        requires = "gps"
    )]
    pub origin: Option<Origin>,
    /// Whether positions have no noise, for tests.
    #[arg(skip)]
    pub is_exact: bool,
}

/// Where the world is on Earth.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Origin {
    /// Positive in the north.
    pub latitude_deg: f64,
    /// Positive in the east.
    pub longitude_deg: f64,
    /// The direction of the x axis, clockwise from north.
    pub bearing_deg: f64,
}

impl Default for Origin {
    fn default() -> Self {
        Self {
            latitude_deg: 50.0682,
            longitude_deg: 19.9126,
            bearing_deg: 90.0,
        }
    }
}

impl Origin {
    /// A vector in the frame of the world, to the north and to the east.
    pub(super) fn turned(self, [x, y]: [f64; 2]) -> [f64; 2] {
        let (sin, cos) = self.bearing_deg.to_radians().sin_cos();
        // y is to the left of x.
        [x * cos + y * sin, x * sin - y * cos]
    }

    /// The latitude and longitude so many metres to the north and to the east.
    pub(super) fn moved(self, [north_m, east_m]: [f64; 2]) -> [f64; 2] {
        let latitude_deg = self.latitude_deg + north_m / DEGREE_M;
        let narrower = self.latitude_deg.to_radians().cos();
        let longitude_deg = self.longitude_deg + east_m / (DEGREE_M * narrower);
        // Across the date line.
        let longitude_deg = (longitude_deg + 180.0).rem_euclid(360.0) - 180.0;
        [latitude_deg, longitude_deg]
    }
}

impl FromStr for Origin {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers = text.split(',').map(|number| number.trim().parse().ok());
        let numbers: Vec<f64> = numbers.collect::<Option<_>>().unwrap_or_default();
        let (latitude_deg, longitude_deg, bearing_deg) = match numbers[..] {
            [latitude, longitude] => (latitude, longitude, Self::default().bearing_deg),
            [latitude, longitude, bearing] => (latitude, longitude, bearing),
            _ => return Err("two or three numbers are needed, as in 50.0682,19.9126,90".to_owned()),
        };
        // At the poles, there is no east.
        if !(-89.0..=89.0).contains(&latitude_deg) {
            return Err(format!("the latitude {latitude_deg} is not from -89 to 89"));
        }
        if !(-180.0..=180.0).contains(&longitude_deg) {
            return Err(format!(
                "the longitude {longitude_deg} is not from -180 to 180"
            ));
        }
        if !(-360.0..=360.0).contains(&bearing_deg) {
            return Err(format!("the bearing {bearing_deg} is not from -360 to 360"));
        }
        Ok(Self {
            latitude_deg,
            longitude_deg,
            bearing_deg,
        })
    }
}

impl Kind for Options {
    const DEVICES: &'static [Device] = &[DEVICE];

    fn twins(&self, setup: &Setup<'_>) -> Vec<(Device, Box<dyn Twin>)> {
        let twin = |model| {
            let origin = self.origin.unwrap_or_default();
            let mut receiver = Receiver::new(model, origin, setup.seed, Duration::ZERO);
            receiver.set_noise(!self.is_exact);
            (DEVICE, Box::new(receiver) as Box<dyn Twin>)
        };
        self.model.map(twin).into_iter().collect()
    }
}

impl Motion {
    /// That of the robot at a time within the last half second.
    fn of(world: &World, time: Duration) -> Self {
        let at = world.pose_at(time).at;
        let before = world.pose_at(time.saturating_sub(MOMENT)).at;
        let moved = at.minus(before).times(1.0 / MOMENT.as_secs_f64());
        Self {
            at_m: [at.x, at.y],
            velocity_m_s: [moved.x, moved.y],
        }
    }
}

impl Twin for Receiver {
    fn advance(&mut self, now: Duration, around: &mut Surroundings<'_>) {
        while let Some(time) = self.poll_epoch(now) {
            self.measure(time, &Motion::of(around.world, time));
        }
    }

    fn poll_output(&mut self, _now: Duration) -> Option<Vec<u8>> {
        Self::poll_output(self)
    }

    fn next_timeout(&self) -> Option<Duration> {
        Some(self.next_epoch())
    }

    fn handle_plug_in(&mut self, now: Duration) {
        self.restart(now);
    }

    fn set_covered(&mut self, is_covered: bool) {
        Self::set_covered(self, is_covered);
    }
}
