//! What a scanner says about itself. PURE.

use amber_proto::hokuyo::Scanner;

use super::scip::{Geometry, Reply};

/// What a scanner says about itself in its replies to `VV`, `PP` and `II`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Description {
    product: Option<String>,
    model: Option<String>,
    firmware: Option<String>,
    serial_number: Option<String>,
    min_mm: Option<u32>,
    max_mm: Option<u32>,
}

impl Description {
    /// The reply to `VV`.
    pub fn read_version(&mut self, reply: &Reply) {
        self.product = text(reply, "PROD");
        self.firmware = text(reply, "FIRM");
        self.serial_number = text(reply, "SERI");
    }

    /// The reply to `PP`.
    pub fn read_parameters(&mut self, reply: &Reply) {
        // Such as "URG-04LX(Hokuyo Automatic Co.,Ltd.)".
        self.model = text(reply, "MODL")
            .and_then(|name| name.split('(').next().map(|name| name.trim().to_owned()));
        let number = |key| reply.value(key)?.parse().ok();
        self.min_mm = number("DMIN");
        self.max_mm = number("DMAX");
    }

    /// Product and firmware, for the log.
    pub fn name(&self) -> String {
        let known = |text: &Option<String>| text.clone().unwrap_or_else(|| "?".into());
        let (product, firmware) = (known(&self.product), known(&self.firmware));
        format!("{product}, firmware {firmware}")
    }

    /// The message for clients. `angles` are those of its scans, in degrees.
    pub fn message(&self, geometry: Geometry, angles: &[f64]) -> Scanner {
        let ends = angles.first().zip(angles.last());
        let intervals = angles.len().saturating_sub(1);
        let step = ends.filter(|_| intervals > 0);
        let point_ns = geometry.turn_ns() / u64::from(geometry.steps_per_turn.max(1));
        Scanner {
            model: self.model.clone().or_else(|| self.product.clone()),
            firmware: self.firmware.clone(),
            serial_number: self.serial_number.clone(),
            min_distance: self.min_mm,
            // Limits in the wrong order say nothing.
            max_distance: self.max_mm.filter(|max| Some(*max) > self.min_mm),
            first_angle: ends.map(|(first, _)| *first),
            last_angle: ends.map(|(_, last)| *last),
            angle_step: step.map(|(first, last)| (last - first) / intervals as f64),
            turn_time: (geometry.turn_ns() / 1000).try_into().ok(),
            point_time: point_ns.try_into().ok(),
            turns_right: Some(false),
        }
    }
}

/// The speed of the motor in turns per minute, from the reply to `II`: its line is such as
/// `SCSP:Initial(600[rpm])<-Default setting by user`.
pub fn rpm(reply: &Reply) -> Option<u16> {
    let before = reply.value("SCSP")?.split("[rpm]").next()?;
    let digits = before.rsplit(|it: char| !it.is_ascii_digit()).next()?;
    digits.parse().ok().filter(|rpm| *rpm > 0)
}

fn text(reply: &Reply, key: &str) -> Option<String> {
    let value = reply.value(key)?.trim();
    (!value.is_empty()).then(|| value.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(lines: &[&str]) -> Reply {
        Reply {
            echo: String::new(),
            status: "00".into(),
            lines: lines.iter().map(|line| line.as_bytes().to_vec()).collect(),
        }
    }

    #[test]
    fn the_speed_of_the_motor_is_found_in_its_sentence() {
        for (line, expected) in [
            ("SCSP:Initial(600[rpm])<-Default setting by user", Some(600)),
            ("SCSP:Initial(540[rpm])<-Changed by user", Some(540)),
            ("SCSP:2400[rpm]", Some(2400)),
            ("SCSP:Initial", None),
            ("SCSP:Initial(0[rpm])", None),
            ("SCSP:Initial(99999[rpm])", None),
            ("LASR:OFF", None),
        ] {
            assert_eq!(rpm(&reply(&[line])), expected, "{line}");
        }
    }

    #[test]
    fn a_scanner_is_described_by_its_own_words() {
        let mut description = Description::default();
        description.read_version(&reply(&[
            "PROD:SOKUIKI Sensor TOP-URG UTM-30LX",
            "FIRM:1.18.01",
            "SERI:H1112345",
        ]));
        let parameters = [
            "MODL:UTM-30LX(Hokuyo Automatic Co.,Ltd.)",
            "DMIN:23",
            "DMAX:60000",
            "ARES:1440",
            "AMIN:0",
            "AMAX:1080",
            "AFRT:540",
            "SCAN:2400",
        ];
        description.read_parameters(&reply(&parameters));
        let geometry = Geometry::of(&reply(&parameters)).unwrap();
        let message = description.message(geometry, &[-135.0, 0.0, 135.0]);
        let expected = Scanner {
            model: Some("UTM-30LX".into()),
            firmware: Some("1.18.01".into()),
            serial_number: Some("H1112345".into()),
            min_distance: Some(23),
            max_distance: Some(60_000),
            first_angle: Some(-135.0),
            last_angle: Some(135.0),
            angle_step: Some(135.0),
            turn_time: Some(25_000),
            point_time: Some(17_361),
            turns_right: Some(false),
        };
        assert_eq!(message, expected);
    }

    #[test]
    fn what_a_scanner_does_not_say_is_absent() {
        let mut description = Description::default();
        description.read_version(&reply(&["PROD:X"]));
        description.read_parameters(&reply(&["DMIN:far", "DMAX:-1"]));
        assert_eq!(description.name(), "X, firmware ?");
        let message = description.message(Geometry::URG_04LX, &[3.0]);
        assert_eq!(message.model.as_deref(), Some("X"));
        let absent = (
            message.min_distance,
            message.max_distance,
            message.angle_step,
        );
        assert_eq!(absent, (None, None, None));
        // Limits in the wrong order.
        description.read_parameters(&reply(&["DMIN:20", "DMAX:10"]));
        let message = description.message(Geometry::URG_04LX, &[]);
        assert_eq!((message.max_distance, message.first_angle), (None, None));
    }
}
