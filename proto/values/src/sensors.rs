//! A choice of sensors. PURE.

use std::fmt;
use std::str::FromStr;

use amber_proto::ninedof::{DataRequest, SubscribeAction};

/// Some of the sensors of a NineDof. As text, `accel,gyro,magnet` or some of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sensors {
    /// Acceleration.
    pub accel: bool,
    /// Turn rate.
    pub gyro: bool,
    /// Magnetic field.
    pub magnet: bool,
}

impl Sensors {
    /// All three.
    pub const ALL: Self = Self {
        accel: true,
        gyro: true,
        magnet: true,
    };
}

/// Also requests the fields that only new drivers know.
impl From<Sensors> for DataRequest {
    fn from(sensors: Sensors) -> Self {
        Self {
            accel: Some(sensors.accel),
            gyro: Some(sensors.gyro),
            magnet: Some(sensors.magnet),
            extended: Some(true),
        }
    }
}

/// Also requests the fields that only new drivers know. Without a period.
impl From<Sensors> for SubscribeAction {
    fn from(sensors: Sensors) -> Self {
        Self {
            freq: None,
            accel: Some(sensors.accel),
            gyro: Some(sensors.gyro),
            magnet: Some(sensors.magnet),
            extended: Some(true),
        }
    }
}

/// Absent sensors are not requested.
impl From<DataRequest> for Sensors {
    fn from(request: DataRequest) -> Self {
        Self {
            accel: request.accel(),
            gyro: request.gyro(),
            magnet: request.magnet(),
        }
    }
}

/// Absent sensors are not requested.
impl From<SubscribeAction> for Sensors {
    fn from(action: SubscribeAction) -> Self {
        Self {
            accel: action.accel(),
            gyro: action.gyro(),
            magnet: action.magnet(),
        }
    }
}

/// The text is not the name of a sensor.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown sensor '{0}': use accel, gyro and magnet")]
pub struct UnknownSensor(String);

impl FromStr for Sensors {
    type Err = UnknownSensor;

    fn from_str(text: &str) -> Result<Self, UnknownSensor> {
        let mut sensors = Self {
            accel: false,
            gyro: false,
            magnet: false,
        };
        for name in text.split(',') {
            match name.trim() {
                "accel" => sensors.accel = true,
                "gyro" => sensors.gyro = true,
                "magnet" => sensors.magnet = true,
                other => return Err(UnknownSensor(other.to_owned())),
            }
        }
        Ok(sensors)
    }
}

impl fmt::Display for Sensors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = [
            (self.accel, "accel"),
            (self.gyro, "gyro"),
            (self.magnet, "magnet"),
        ];
        let names = all.iter().filter(|(is_wanted, _)| *is_wanted);
        let names: Vec<_> = names.map(|(_, name)| *name).collect();
        f.write_str(&names.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sensors_are_read_as_they_are_written() {
        for text in ["accel", "gyro,magnet", "accel,gyro,magnet"] {
            assert_eq!(text.parse::<Sensors>().unwrap().to_string(), text);
        }
        assert_eq!(
            "magnet, accel".parse::<Sensors>().unwrap().to_string(),
            "accel,magnet"
        );
        for text in ["", "sonar", "accel,"] {
            assert!(text.parse::<Sensors>().is_err(), "{text}");
        }
    }

    #[test]
    fn messages_keep_the_choice() {
        for text in ["accel", "gyro,magnet"] {
            let sensors: Sensors = text.parse().unwrap();
            assert_eq!(Sensors::from(DataRequest::from(sensors)), sensors);
            assert_eq!(Sensors::from(SubscribeAction::from(sensors)), sensors);
        }
    }
}
