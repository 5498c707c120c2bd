//! `robot.toml`, the file that describes the robot: its shape, and the devices with their roles. IO.
//!
//! The driver `robot` serves it. Drivers with the option `--robot` read the same keys.

use std::path::Path;
use std::time::Duration;

use amber_driver::devices::robot::{Place, Role, Sector, Shape};
use amber_map::{Outline, Point, Pose};
use amber_navigation::collision;
use amber_navigation::kinematics::SkidSteer;
use amber_navigation::scan;
use amber_proto::{Device, DeviceType};
use serde::{Deserialize, Deserializer};

use crate::options::{OptionsError, check, read};
use crate::robot_options::{Devices, LASER, Setup};
use crate::scanner::sectors::Sectors;
use crate::sim_clock::SimClockOption;

/// A laser that sees less cannot lead a robot. More likely, the borders of a sector are exchanged.
const MAX_MASKED_DEG: u16 = 300;

/// The keys of the file. The defaults fit the Capo robot.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct RobotFile {
    /// The name of the robot, for people.
    pub(crate) name: Option<String>,
    /// The laser scanner.
    #[serde(deserialize_with = "device")]
    pub(crate) laser: Option<Device>,
    /// The driver of the wheels.
    #[serde(deserialize_with = "device")]
    pub(crate) wheels: Option<Device>,
    /// The motion sensors.
    #[serde(deserialize_with = "device")]
    pub(crate) imu: Option<Device>,
    /// What the robot feels.
    #[serde(deserialize_with = "device")]
    pub(crate) bumper: Option<Device>,
    #[serde(deserialize_with = "device")]
    pub(crate) camera: Option<Device>,
    /// The pose on the map.
    #[serde(deserialize_with = "device")]
    pub(crate) location: Option<Device>,
    /// The mediator of these devices.
    pub(crate) devices_of: Option<String>,
    /// The place of the laser: ahead of the centre between the wheels, to its left, above the floor,
    /// and its rotation to the right.
    pub(crate) laser_offset_mm: Option<f64>,
    pub(crate) laser_left_mm: Option<f64>,
    pub(crate) laser_height_mm: Option<f64>,
    pub(crate) laser_angle_deg: Option<f64>,
    /// Whether the laser is mounted upside down.
    pub(crate) laser_mirrored: Option<bool>,
    /// The sectors in which the laser sees parts of the robot: degrees to the right, as in its scans.
    pub(crate) laser_masked_deg: Option<Sectors>,
    /// The time of one turn of the laser, and that from the end of a scan to its timestamp.
    pub(crate) scan_turn_ms: Option<f64>,
    pub(crate) scan_delay_ms: Option<f64>,
    /// The place of the camera; its tilt is downwards.
    pub(crate) camera_offset_mm: Option<f64>,
    pub(crate) camera_left_mm: Option<f64>,
    pub(crate) camera_height_mm: Option<f64>,
    pub(crate) camera_angle_deg: Option<f64>,
    pub(crate) camera_tilt_deg: Option<f64>,
    /// The place of the motion sensors.
    pub(crate) imu_offset_mm: Option<f64>,
    pub(crate) imu_left_mm: Option<f64>,
    pub(crate) imu_height_mm: Option<f64>,
    pub(crate) imu_angle_deg: Option<f64>,
    /// The outline: a rectangle around the centre between the wheels.
    pub(crate) length_mm: Option<f64>,
    pub(crate) width_mm: Option<f64>,
    pub(crate) height_mm: Option<f64>,
    /// The effective distance between left and right wheels in turns.
    pub(crate) track_mm: Option<f64>,
    /// The wheels: radius, the real distance between left and right, and between the axles.
    pub(crate) wheel_radius_mm: Option<f64>,
    pub(crate) wheel_distance_mm: Option<f64>,
    pub(crate) wheel_base_mm: Option<f64>,
    /// Drive backwards only into areas that the laser has seen or where the robot has been.
    pub(crate) look_before_reversing: Option<bool>,
    /// The rooms are larger than the range of the laser: drive also where it has never seen anything.
    pub(crate) large_rooms: Option<bool>,
    /// The maximum speed of a wheel.
    pub(crate) max_speed_mm_s: Option<f64>,
}

fn device<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Device>, D::Error> {
    let text = String::deserialize(deserializer)?;
    text.parse().map(Some).map_err(serde::de::Error::custom)
}

/// The values of one description, and for absent values those of another one.
macro_rules! layers {
    ($over:ident over $under:ident: $($field:ident)*) => {
        Self { $($field: $over.$field.or($under.$field),)* }
    };
}

impl RobotFile {
    /// Reads the file; all values are absent if there is no path.
    ///
    /// # Errors
    /// It cannot be read, or contains an error.
    pub(crate) fn read(path: Option<&Path>) -> Result<Self, OptionsError> {
        read(path)
    }

    /// These values, and those of `under` where they are absent.
    #[must_use]
    pub(crate) fn over(self, under: Self) -> Self {
        layers!(self over under: name laser wheels imu bumper camera location devices_of laser_offset_mm
            laser_left_mm laser_height_mm laser_angle_deg laser_mirrored laser_masked_deg scan_turn_ms
            scan_delay_ms camera_offset_mm camera_left_mm camera_height_mm camera_angle_deg camera_tilt_deg imu_offset_mm
            imu_left_mm imu_height_mm imu_angle_deg length_mm width_mm height_mm track_mm
            wheel_radius_mm wheel_distance_mm wheel_base_mm look_before_reversing
            large_rooms max_speed_mm_s)
    }

    /// How drivers use the robot, with these wheels unless others are named.
    ///
    /// # Errors
    /// A value is invalid, or the place of the laser is missing.
    pub(crate) fn setup(&self, usual_wheels: Device) -> Result<Setup, OptionsError> {
        let shape = self.shape()?;
        let Some(laser) = &shape.laser else {
            return Err(OptionsError::Missing {
                name: "--laser-offset-mm",
                hint: "measure how far the laser is ahead of the centre between the wheels; 0 if \
                       it is above the centre",
            });
        };
        Ok(Setup {
            devices: Devices {
                laser: Some(self.laser.unwrap_or(LASER)),
                wheels: self.wheels.unwrap_or(usual_wheels),
                imu: self.imu,
                bumper: self.bumper,
                poses: None,
            },
            devices_of: self.devices_of.clone(),
            scanner: scan::Laser {
                turn: Duration::from_secs_f64(shape.scan_turn()),
                delay: Duration::from_secs_f64(shape.scan_delay()),
                is_mirrored: laser.upside_down(),
                // The scanner says it itself.
                turns_right: false,
            },
            collision: collision::Config {
                drive: SkidSteer {
                    track_m: shape.track(),
                    max_wheel_m_s: shape.max_wheel_speed(),
                },
                outline: Outline {
                    half_length_m: shape.length() / 2.0,
                    half_width_m: shape.width() / 2.0,
                },
                reverses_blindly: !shape.looks_before_reversing(),
                large_rooms: shape.large_rooms(),
                has_bumper: self.bumper.is_some(),
                ..collision::Config::new(Pose {
                    at: Point::new(laser.x(), laser.y()),
                    heading: laser.yaw(),
                })
            },
            masked: self.laser_masked_deg.clone().unwrap_or_default(),
            clock: SimClockOption::default(),
        })
    }

    /// The shape of the robot.
    ///
    /// # Errors
    /// A value is invalid.
    pub(crate) fn shape(&self) -> Result<Shape, OptionsError> {
        let m = |name, mm: Option<f64>, range| -> Result<Option<f64>, OptionsError> {
            let checked = mm.map(|mm| check(name, mm, range)).transpose()?;
            Ok(checked.map(|mm| mm / 1000.0))
        };
        let size = 50.0..=5_000.0;
        let part = 1.0..=5_000.0;
        let length_mm = self.length_mm.or(Some(370.0));
        let width_mm = self.width_mm.or(Some(330.0));
        let track_mm = self.track_mm.or(Some(420.0));
        let max_speed_mm_s = self.max_speed_mm_s.or(Some(1_200.0));
        let turn_ms = self.scan_turn_ms.or(Some(100.0));
        Ok(Shape {
            name: self.name.clone(),
            length: m("length_mm", length_mm, size.clone())?,
            width: m("width_mm", width_mm, size.clone())?,
            height: m("height_mm", self.height_mm, part.clone())?,
            track: m("track_mm", track_mm, size)?,
            max_wheel_speed: m("max_speed_mm_s", max_speed_mm_s, 1.0..=10_000.0)?,
            wheel_radius: m("wheel_radius_mm", self.wheel_radius_mm, part.clone())?,
            wheel_distance: m("wheel_distance_mm", self.wheel_distance_mm, part.clone())?,
            wheel_base: m("wheel_base_mm", self.wheel_base_mm, part)?,
            laser: place(
                [
                    ("laser_offset_mm", self.laser_offset_mm),
                    ("laser_left_mm", self.laser_left_mm),
                    ("laser_height_mm", self.laser_height_mm),
                ],
                [("laser_angle_deg", self.laser_angle_deg), ("", None)],
            )?
            .map(|laser| Place {
                upside_down: self.laser_mirrored.filter(|is_mirrored| *is_mirrored),
                ..laser
            }),
            scan_turn: m("scan_turn_ms", turn_ms, 1.0..=1_000.0)?,
            scan_delay: m("scan_delay_ms", self.scan_delay_ms, 0.0..=1_000.0)?,
            camera: place(
                [
                    ("camera_offset_mm", self.camera_offset_mm),
                    ("camera_left_mm", self.camera_left_mm),
                    ("camera_height_mm", self.camera_height_mm),
                ],
                [
                    ("camera_angle_deg", self.camera_angle_deg),
                    ("camera_tilt_deg", self.camera_tilt_deg),
                ],
            )?,
            imu: place(
                [
                    ("imu_offset_mm", self.imu_offset_mm),
                    ("imu_left_mm", self.imu_left_mm),
                    ("imu_height_mm", self.imu_height_mm),
                ],
                [("imu_angle_deg", self.imu_angle_deg), ("", None)],
            )?,
            looks_before_reversing: Some(self.look_before_reversing.unwrap_or(false)),
            large_rooms: self.large_rooms,
            roles: self.roles()?,
            masked: self.masked()?,
        })
    }

    /// The sectors in which the laser sees parts of the robot.
    fn masked(&self) -> Result<Vec<Sector>, OptionsError> {
        let Some(sectors) = &self.laser_masked_deg else {
            return Ok(Vec::new());
        };
        let covered_deg = sectors.covered_deg();
        if covered_deg > MAX_MASKED_DEG {
            return Err(OptionsError::Value {
                name: "laser_masked_deg",
                problem: format!(
                    "hides {covered_deg} of 360 degrees: a sector goes to the right, from its left \
                     border to its right one"
                ),
            });
        }
        Ok(sectors.messages())
    }

    /// The devices with their roles. The usual ones count unless others are named.
    fn roles(&self) -> Result<Vec<Role>, OptionsError> {
        // CollisionAvoidance also accepts the messages of RoboClaw.
        let wheels = &[DeviceType::ROBOCLAW, DeviceType::COLLISION_AVOIDANCE];
        let usual_wheels = Device::new(DeviceType::ROBOCLAW, 0);
        let roles = [
            (
                "wheels",
                Some(self.wheels.unwrap_or(usual_wheels)),
                &wheels[..],
            ),
            (
                "laser",
                Some(self.laser.unwrap_or(LASER)),
                &[DeviceType::HOKUYO],
            ),
            ("imu", self.imu, &[DeviceType::NINEDOF]),
            ("bumper", self.bumper, &[DeviceType::BUMPER]),
            ("location", self.location, &[DeviceType::LOCATION]),
            // There is more than one type of cameras.
            ("camera", self.camera, &[]),
        ];
        let mut out = Vec::new();
        for (name, device, types) in roles {
            let Some(device) = device else {
                continue;
            };
            if !types.is_empty() && !types.contains(&device.device_type) {
                let problem = format!("{device} is not a {}", types[0]);
                return Err(OptionsError::Value { name, problem });
            }
            out.push(Role {
                role: name.to_owned(),
                r#type: device.device_type.0,
                id: device.id.0,
            });
        }
        Ok(out)
    }
}

/// The place of a device, which is known if its distance ahead is.
fn place(
    [ahead, left, height]: [(&'static str, Option<f64>); 3],
    [angle, tilt]: [(&'static str, Option<f64>); 2],
) -> Result<Option<Place>, OptionsError> {
    let Some(ahead_mm) = ahead.1 else {
        let lonely = [left, height, angle, tilt].into_iter();
        return match lonely.into_iter().find(|(_, value)| value.is_some()) {
            // A driver gets the distance from elsewhere, or says that it is missing.
            None | Some(("laser_left_mm" | "laser_height_mm" | "laser_angle_deg", _)) => Ok(None),
            Some((name, _)) => Err(OptionsError::Value {
                name,
                problem: format!("needs {} as well", ahead.0),
            }),
        };
    };
    let mm = |name, value: Option<f64>| -> Result<Option<f64>, OptionsError> {
        let checked = value.map(|mm| check(name, mm, -2_000.0..=2_000.0));
        Ok(checked.transpose()?.map(|mm| mm / 1000.0))
    };
    let rad = |(name, value): (&'static str, Option<f64>)| -> Result<f64, OptionsError> {
        Ok(check(name, value.unwrap_or(0.0), -180.0..=180.0)?.to_radians())
    };
    // A sum, so that -0 becomes 0.
    let yaw = -rad(angle)? + 0.0;
    let pitch = rad(tilt)?;
    Ok(Some(Place {
        x: mm(ahead.0, Some(ahead_mm))?,
        y: mm(left.0, Some(left.1.unwrap_or(0.0)))?,
        z: mm(height.0, height.1)?,
        yaw: Some(yaw),
        pitch: (pitch != 0.0).then_some(pitch),
        upside_down: None,
    }))
}

impl From<&Shape> for RobotFile {
    /// What a robot device says, as values of a file.
    fn from(shape: &Shape) -> Self {
        let mm = |m: Option<f64>| m.map(|m| m * 1000.0);
        let role = |name: &str| {
            let role = shape.roles.iter().find(|it| it.role == name)?;
            Some(Device::new(DeviceType(role.r#type), role.id))
        };
        let laser = shape.laser.as_ref();
        Self {
            name: shape.name.clone(),
            laser: role("laser"),
            wheels: role("wheels"),
            imu: role("imu"),
            bumper: role("bumper"),
            camera: role("camera"),
            location: role("location"),
            laser_offset_mm: mm(laser.map(Place::x)),
            laser_left_mm: mm(laser.map(Place::y)),
            laser_angle_deg: laser.map(|it| -it.yaw().to_degrees()),
            laser_mirrored: laser.and_then(|it| it.upside_down),
            laser_masked_deg: Some(Sectors::of(&shape.masked)).filter(|it| !it.is_empty()),
            scan_turn_ms: mm(shape.scan_turn),
            scan_delay_ms: mm(shape.scan_delay),
            length_mm: mm(shape.length),
            width_mm: mm(shape.width),
            height_mm: mm(shape.height),
            track_mm: mm(shape.track),
            look_before_reversing: shape.looks_before_reversing,
            large_rooms: shape.large_rooms,
            max_speed_mm_s: mm(shape.max_wheel_speed),
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FULL: &str = "\
name = \"Ada\"
imu = \"ninedof:0\"
bumper = \"bumper:0\"
laser_offset_mm = 100
laser_left_mm = -20
laser_height_mm = 250
laser_angle_deg = 90
laser_mirrored = true
laser_masked_deg = \"-140:-130, 170:-170\"
scan_delay_ms = 20
camera_offset_mm = 150
camera_tilt_deg = 30
length_mm = 400
wheel_radius_mm = 60
";

    fn file(text: &str) -> RobotFile {
        toml::from_str(text).unwrap()
    }

    fn error(text: &str) -> String {
        file(text).shape().unwrap_err().to_string()
    }

    #[test]
    fn the_shape_has_metres_and_radians_and_defaults() {
        let shape = file(FULL).shape().unwrap();
        assert_eq!(
            shape.laser,
            Some(Place {
                x: Some(0.1),
                y: Some(-0.02),
                z: Some(0.25),
                yaw: Some(-std::f64::consts::FRAC_PI_2),
                pitch: None,
                upside_down: Some(true),
            })
        );
        let camera = shape.camera.unwrap();
        assert_eq!((camera.x(), camera.z), (0.15, None));
        assert!((camera.pitch() - 30_f64.to_radians()).abs() < 1e-12);
        assert_eq!(shape.imu, None);
        assert_eq!((shape.length, shape.width), (Some(0.4), Some(0.33)));
        assert_eq!((shape.track, shape.wheel_radius), (Some(0.42), Some(0.06)));
        let roles: Vec<_> = (shape.roles.iter())
            .map(|it| (it.role.as_str(), it.r#type, it.id))
            .collect();
        assert_eq!(
            roles,
            [
                ("wheels", 2, 0),
                ("laser", 4, 0),
                ("imu", 1, 0),
                ("bumper", 22, 0)
            ]
        );
    }

    #[test]
    fn invalid_values_are_refused() {
        for (text, expected) in [
            ("imu = \"hokuyo:0\"", "imu: hokuyo:0 is not a ninedof"),
            ("track_mm = 1", "track_mm: 1 is not within 50 to 5000"),
            (
                "laser_offset_mm = 1e9",
                "laser_offset_mm: 1000000000 is not within -2000 to 2000",
            ),
            (
                "camera_tilt_deg = 3",
                "camera_tilt_deg: needs camera_offset_mm as well",
            ),
            (
                "laser_masked_deg = \"-130:-140\"",
                "laser_masked_deg: hides 350 of 360 degrees: a sector goes to the right, from its left \
                 border to its right one",
            ),
        ] {
            assert_eq!(error(text), expected);
        }
    }

    #[test]
    fn masked_sectors_are_served_as_they_are_written() {
        let full = file(FULL);
        let shape = full.shape().unwrap();
        assert_eq!(shape.masked.len(), 2);
        let begin_deg = shape.masked[0].begin.to_degrees();
        assert!((begin_deg - 130.0).abs() < 1e-9, "{begin_deg}");
        assert_eq!(
            RobotFile::from(&shape).laser_masked_deg,
            full.laser_masked_deg
        );
        assert_eq!(file("").shape().unwrap().masked, []);
        // The line of the file comes with it.
        let wrong = toml::from_str::<RobotFile>("laser_masked_deg = \"130\"").unwrap_err();
        let text = wrong.to_string();
        assert!(
            text.contains("\"130\" is not like -140:-130,130:140"),
            "{text}"
        );
    }

    #[test]
    fn a_driver_gets_the_same_setup_from_the_file_and_from_the_robot_device() {
        let wheels = Device::new(DeviceType::ROBOCLAW, 0);
        let file = file(FULL);
        let own = file.setup(wheels).unwrap();
        let asked = RobotFile::from(&file.shape().unwrap());
        let asked = asked.setup(wheels).unwrap();
        assert_eq!(asked.devices, own.devices);
        assert_eq!(asked.scanner, own.scanner);
        assert_eq!(asked.masked, own.masked);
        assert!(own.scanner.is_mirrored);
        assert_eq!(own.scanner.delay, Duration::from_millis(20));
        let (asked, own) = (asked.collision, own.collision);
        assert!(asked.laser.at.minus(own.laser.at).length() < 1e-9);
        assert!((asked.laser.heading - own.laser.heading).abs() < 1e-9);
        assert!((asked.outline.half_length_m - own.outline.half_length_m).abs() < 1e-9);
        assert!((asked.drive.track_m - own.drive.track_m).abs() < 1e-9);
    }

    #[test]
    fn what_the_driver_itself_states_counts_first() {
        let shape = file(FULL).shape().unwrap();
        let own = file("track_mm = 500");
        let both = own.over(RobotFile::from(&shape));
        assert_eq!(both.track_mm, Some(500.0));
        assert!((both.laser_offset_mm.unwrap() - 100.0).abs() < 1e-9);
    }
}
