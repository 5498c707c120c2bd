//! What is known of the robot, for people and programs. PURE.

use amber_proto::robot::{Place, Role, Sector, Shape};
use amber_proto::{Device, DeviceType};
use amber_terminal::{Human, fields};
use serde::Serialize;

/// Lengths in millimetres and angles in degrees, as in `robot.toml`. What is absent is unknown.
#[derive(Debug, Serialize)]
pub(super) struct Shown {
    device: String,
    name: Option<String>,
    length_mm: Option<f64>,
    width_mm: Option<f64>,
    height_mm: Option<f64>,
    track_mm: Option<f64>,
    max_speed_mm_s: Option<f64>,
    wheel_radius_mm: Option<f64>,
    wheel_distance_mm: Option<f64>,
    wheel_base_mm: Option<f64>,
    laser: Option<Placed>,
    /// As in `robot.toml`.
    laser_masked_deg: Option<String>,
    camera: Option<Placed>,
    imu: Option<Placed>,
    scan_turn_ms: Option<f64>,
    scan_delay_ms: Option<f64>,
    looks_before_reversing: bool,
    large_rooms: bool,
    roles: Vec<Roled>,
    driven_by: Option<String>,
    halted_by: Option<String>,
}

#[derive(Debug, Serialize)]
struct Placed {
    offset_mm: f64,
    left_mm: f64,
    height_mm: Option<f64>,
    angle_deg: f64,
    tilt_deg: f64,
    upside_down: bool,
}

#[derive(Debug, Serialize)]
struct Roled {
    role: String,
    device: String,
}

impl Shown {
    pub(super) fn new(
        device: Device,
        shape: &Shape,
        driven_by: Option<String>,
        halted_by: Option<String>,
    ) -> Self {
        let mm = |m: Option<f64>| m.map(thousand);
        let role = |it: &Role| Roled {
            role: it.role.clone(),
            device: Device::new(DeviceType(it.r#type), it.id).to_string(),
        };
        Self {
            device: device.to_string(),
            name: shape.name.clone(),
            length_mm: mm(shape.length),
            width_mm: mm(shape.width),
            height_mm: mm(shape.height),
            track_mm: mm(shape.track),
            max_speed_mm_s: mm(shape.max_wheel_speed),
            wheel_radius_mm: mm(shape.wheel_radius),
            wheel_distance_mm: mm(shape.wheel_distance),
            wheel_base_mm: mm(shape.wheel_base),
            laser: shape.laser.as_ref().map(Placed::new),
            laser_masked_deg: masked(&shape.masked),
            camera: shape.camera.as_ref().map(Placed::new),
            imu: shape.imu.as_ref().map(Placed::new),
            scan_turn_ms: mm(shape.scan_turn),
            scan_delay_ms: mm(shape.scan_delay),
            looks_before_reversing: shape.looks_before_reversing(),
            large_rooms: shape.large_rooms(),
            roles: shape.roles.iter().map(role).collect(),
            driven_by,
            halted_by,
        }
    }
}

impl Placed {
    fn new(place: &Place) -> Self {
        Self {
            offset_mm: thousand(place.x()),
            left_mm: thousand(place.y()),
            height_mm: place.z.map(thousand),
            angle_deg: rounded(-place.yaw().to_degrees()),
            tilt_deg: rounded(place.pitch().to_degrees()),
            upside_down: place.upside_down(),
        }
    }

    /// Such as "120 mm ahead, 20 mm to the right".
    fn words(&self) -> String {
        let along = match self.offset_mm {
            0.0 => None,
            mm if mm > 0.0 => Some(format!("{mm} mm ahead")),
            mm => Some(format!("{} mm behind", -mm)),
        };
        let aside = match self.left_mm {
            0.0 => None,
            mm if mm > 0.0 => Some(format!("{mm} mm to the left")),
            mm => Some(format!("{} mm to the right", -mm)),
        };
        let places: Vec<_> = along.into_iter().chain(aside).collect();
        let mut out = match places.is_empty() {
            true => "above the centre between the wheels".to_owned(),
            false => places.join(", "),
        };
        if let Some(mm) = self.height_mm {
            out += &format!(", {mm} mm high");
        }
        match self.angle_deg {
            0.0 => {}
            deg if deg > 0.0 => out += &format!(", turned {deg}° to the right"),
            deg => out += &format!(", turned {}° to the left", -deg),
        }
        if self.tilt_deg != 0.0 {
            out += &format!(", tilted {}° downwards", self.tilt_deg);
        }
        if self.upside_down {
            out += ", upside down";
        }
        out
    }
}

/// Sectors in degrees to the right, such as "-140:-130,130:140".
fn masked(sectors: &[Sector]) -> Option<String> {
    let right_deg = |rad: f64| rounded(-rad.to_degrees());
    let sector = |it: &Sector| format!("{}:{}", right_deg(it.end), right_deg(it.begin));
    let sectors: Vec<_> = sectors.iter().map(sector).collect();
    (!sectors.is_empty()).then(|| sectors.join(","))
}

fn thousand(m: f64) -> f64 {
    rounded(m * 1000.0)
}

/// A thousandth is enough. A sum, so that -0 becomes 0.
fn rounded(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0 + 0.0
}

impl Human for Shown {
    fn human(&self) -> String {
        let mm = |value: Option<f64>| value.map(|mm| format!("{mm} mm"));
        let outline = self.length_mm.zip(self.width_mm).map(|(length, width)| {
            let height = mm(self.height_mm).map_or(String::new(), |mm| format!(", {mm} high"));
            format!("{length} x {width} mm{height}")
        });
        let unknown = "unknown: set laser_offset_mm in its file".to_owned();
        let laser = self.laser.as_ref().map_or(unknown, Placed::words);
        let roles = self
            .roles
            .iter()
            .map(|it| format!("{} {}", it.role, it.device));
        let roles: Vec<_> = roles.collect();
        let driven = match (&self.halted_by, &self.driven_by) {
            (None, None) => "nobody".to_owned(),
            (None, Some(by)) => by.clone(),
            (Some(by), None) => format!("nobody: halted by {by}"),
            (Some(by), Some(holder)) => format!("{holder}: halted by {by}"),
        };
        let reversing = match self.looks_before_reversing {
            true => "only into areas that the laser has seen",
            false => "also into areas that the laser has not seen",
        };
        fields(&[
            ("robot", Some(self.device.clone())),
            ("name", self.name.clone()),
            ("outline", outline),
            ("track", mm(self.track_mm)),
            (
                "fastest wheel",
                self.max_speed_mm_s.map(|mm_s| format!("{mm_s} mm/s")),
            ),
            ("wheel radius", mm(self.wheel_radius_mm)),
            ("wheel distance", mm(self.wheel_distance_mm)),
            ("wheel base", mm(self.wheel_base_mm)),
            ("laser", Some(laser)),
            (
                "laser masked",
                self.laser_masked_deg.as_ref().map(|it| format!("{it} °")),
            ),
            ("camera", self.camera.as_ref().map(Placed::words)),
            ("motion sensors", self.imu.as_ref().map(Placed::words)),
            ("reverses", Some(reversing.to_owned())),
            (
                "rooms",
                self.large_rooms
                    .then(|| "larger than the range of the laser".to_owned()),
            ),
            ("roles", (!roles.is_empty()).then(|| roles.join(", "))),
            ("driven by", Some(driven)),
        ])
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A laser ahead, on the right, that looks to the right.
    pub(crate) fn shape() -> Shape {
        Shape {
            name: Some("Ada".into()),
            length: Some(0.4),
            width: Some(0.3),
            track: Some(0.42),
            laser: Some(Place {
                x: Some(0.12),
                y: Some(-0.05),
                z: Some(0.25),
                yaw: Some(-std::f64::consts::FRAC_PI_2),
                ..Place::default()
            }),
            roles: vec![Role {
                role: "wheels".into(),
                r#type: 2,
                id: 0,
            }],
            ..Shape::default()
        }
    }

    fn shown(shape: &Shape, driven_by: Option<&str>) -> Shown {
        let device = Device::new(DeviceType::ROBOT, 0);
        Shown::new(device, shape, driven_by.map(str::to_owned), None)
    }

    #[test]
    fn people_read_which_way_up_the_laser_is() {
        let mut upside_down = shape();
        upside_down.laser.as_mut().unwrap().upside_down = Some(true);
        let text = shown(&upside_down, None).human();
        assert!(
            text.contains("turned 90° to the right, upside down\n"),
            "{text}"
        );
    }

    #[test]
    fn people_read_millimetres_and_sides() {
        assert_eq!(
            shown(&shape(), Some("amber goto")).human(),
            "\
robot:          robot:0
name:           Ada
outline:        400 x 300 mm
track:          420 mm
laser:          120 mm ahead, 50 mm to the right, 250 mm high, turned 90° to the right
reverses:       also into areas that the laser has not seen
roles:          wheels roboclaw:0
driven by:      amber goto
"
        );
    }

    #[test]
    fn masked_sectors_are_shown_as_in_the_file() {
        let sector = |begin_deg: f64, end_deg: f64| Sector {
            begin: begin_deg.to_radians(),
            end: end_deg.to_radians(),
        };
        let masked = Shape {
            masked: vec![sector(130.0, 140.0), sector(-140.5, -130.0)],
            ..shape()
        };
        let text = shown(&masked, None).human();
        assert!(
            text.contains("laser masked:   -140:-130,130:140.5 °\n"),
            "{text}"
        );
    }

    #[test]
    fn an_unknown_laser_is_said() {
        let human = shown(&Shape::default(), None).human();
        assert!(human.contains("unknown: set laser_offset_mm"), "{human}");
        assert!(human.contains("nobody"), "{human}");
    }

    #[test]
    fn programs_get_numbers() {
        let json = serde_json::to_value(shown(&shape(), None)).unwrap();
        assert_eq!(json["laser"]["offset_mm"], 120.0);
        assert_eq!(json["laser"]["angle_deg"], 90.0);
        assert_eq!(json["roles"][0]["device"], "roboclaw:0");
        assert_eq!(json["height_mm"], serde_json::Value::Null);
    }
}
