//! Plausibility of the values of known device types. PURE.
//!
//! The limits are generous. They find wrong units, lists of unequal length and
//! values that were never set.

use std::borrow::Cow;
use std::ops::RangeInclusive;

use amber_proto::{
    DeviceType, collision_avoidance, drive_to_point, dummy, hokuyo, location, ninedof,
    pid_follow_trajectory, roboclaw, stargazer,
};
use amber_reflect::{Schemas, help};
use amber_schema::{Field, Interface};
use prost::Message;
use serde_json::Value;

/// No scanner covers more than a full turn.
const ANGLES_DEG: RangeInclusive<f64> = -180.0..=180.0;
/// 0 and codes below 20 are not distances; the longest range is 60 m.
const DISTANCES_MM: RangeInclusive<i32> = 0..=65_535;
/// 10 m/s.
const SPEEDS_MM_S: RangeInclusive<i32> = -10_000..=10_000;
/// 1 km.
const PLACES_CM: RangeInclusive<f32> = -100_000.0..=100_000.0;
/// 100 g, 100 gauss, or 100 turns in a second.
const AXES: RangeInclusive<i32> = -100_000..=100_000;

/// An implausible value, and what was expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Implausible {
    pub(crate) what: String,
    pub(crate) expected: Cow<'static, str>,
}

type Plausibility = Result<(), Implausible>;

/// Checks the fields of a device type in a message.
pub(crate) fn look(kind: DeviceType, message: &[u8]) -> Plausibility {
    match kind {
        DeviceType::DUMMY => read(message, |it: dummy::DriverMsg| match it.enable {
            Some(_) if it.message.is_none() => {
                wrong("enable without message", "both fields in one answer")
            }
            _ => Ok(()),
        }),
        DeviceType::HOKUYO => read(message, |it: hokuyo::DriverMsg| {
            it.scan
                .map_or(Ok(()), |scan| scan_is(&scan.angles, &scan.distances))
        }),
        DeviceType::ROBOCLAW => read(message, |it: roboclaw::DriverMsg| {
            it.current_speed.map_or(Ok(()), |it| {
                speeds_are([
                    it.front_left_speed,
                    it.front_right_speed,
                    it.rear_left_speed,
                    it.rear_right_speed,
                ])
            })
        }),
        DeviceType::NINEDOF => read(message, |it: ninedof::DriverMsg| {
            let data = it.sensor_data.unwrap_or_default();
            for (name, axes) in [
                ("accel", data.accel),
                ("gyro", data.gyro),
                ("magnet", data.magnet),
            ] {
                let axes = axes.map(|it| [it.x_axis, it.y_axis, it.z_axis]);
                let odd = axes.into_iter().flatten().find(|axis| !AXES.contains(axis));
                if let Some(axis) = odd {
                    return wrong(
                        format!("{name} of {axis}"),
                        "thousandths of g, degrees per second, thousandths of gauss",
                    );
                }
            }
            Ok(())
        }),
        DeviceType::STARGAZER => read(message, |it: stargazer::DriverMsg| {
            let Some(pose) = it.localization_data else {
                return Ok(());
            };
            let places = [pose.x_pos, pose.y_pos, pose.z_pos];
            if let Some(place) = places.iter().find(|place| !PLACES_CM.contains(place)) {
                return wrong(format!("a position of {place} cm"), "centimetres");
            }
            match (-360.0..=360.0).contains(&pose.angle) {
                true => Ok(()),
                false => wrong(format!("an angle of {}", pose.angle), "degrees"),
            }
        }),
        DeviceType::LOCATION => read(message, |it: location::DriverMsg| {
            let pose = it.current_location.unwrap_or_default();
            let (x, y, alfa) = (pose.x(), pose.y(), pose.alfa());
            if !(x.is_finite() && y.is_finite() && alfa.is_finite()) {
                return wrong(format!("x {x}, y {y}, alfa {alfa}"), "finite numbers");
            }
            match (0.0..=1.0).contains(&pose.p()) {
                true => Ok(()),
                false => wrong(format!("a quality p of {}", pose.p()), "p from 0 to 1"),
            }
        }),
        DeviceType::DRIVE_TO_POINT => read(message, |it: drive_to_point::DriverMsg| {
            let it = it.targets.unwrap_or_default();
            targets_are(it.longitudes.len(), it.latitudes.len(), it.radiuses.len())
        }),
        DeviceType::PID_FOLLOW_TRAJECTORY => {
            read(message, |it: pid_follow_trajectory::DriverMsg| {
                let it = it.targets.unwrap_or_default();
                targets_are(it.longitudes.len(), it.latitudes.len(), it.times.len())
            })
        }
        DeviceType::COLLISION_AVOIDANCE => read(message, |it: collision_avoidance::DriverMsg| {
            it.motors_speed.map_or(Ok(()), |it| {
                speeds_are([
                    it.front_left_speed,
                    it.front_right_speed,
                    it.rear_left_speed,
                    it.rear_right_speed,
                ])
            })?;
            it.scan
                .map_or(Ok(()), |scan| scan_is(&scan.angles, &scan.distances))
        }),
        _ => Ok(()),
    }
}

/// Holds the fields of a message against the ranges in the description of a device.
pub(crate) fn described(interface: &Interface, schemas: &Schemas, message: &[u8]) -> Plausibility {
    let Some(values) = schemas.decode(message) else {
        return Ok(());
    };
    for method in &interface.methods {
        for field in method.answer.iter().chain(&method.may_answer) {
            if let Some(value) = schemas.value_at(&values, &field.path) {
                is_described(field, value)?;
            }
        }
    }
    Ok(())
}

fn is_described(field: &Field, value: &Value) -> Plausibility {
    let name = &field.name;
    match value {
        Value::Array(all) => all.iter().try_for_each(|value| is_described(field, value)),
        Value::Object(values) => {
            for inner in &field.fields {
                values
                    .get(&inner.name)
                    .map_or(Ok(()), |value| is_described(inner, value))?;
            }
            let lengths = field.fields.iter().map(|column| {
                let list = values.get(&column.name).and_then(Value::as_array);
                list.map_or(0, Vec::len)
            });
            let lengths: Vec<_> = lengths.collect();
            match field.columns && lengths.iter().any(|length| *length != lengths[0]) {
                true => wrong(
                    format!("lists of {lengths:?} values in {name}"),
                    "lists of the same length",
                ),
                false => Ok(()),
            }
        }
        // JSON has no NaN and no infinity.
        Value::Null => wrong(format!("a {name} of NaN"), "a number"),
        Value::Number(number) => {
            let number = number.as_f64().unwrap_or_default();
            let is_small = field.min.is_some_and(|min| number < min);
            match is_small || field.max.is_some_and(|max| number > max) {
                true => wrong(format!("a {name} of {number}"), help::range(field)),
                false => Ok(()),
            }
        }
        Value::Bool(_) | Value::String(_) => Ok(()),
    }
}

fn read<M: Message + Default>(
    message: &[u8],
    look: impl FnOnce(M) -> Plausibility,
) -> Plausibility {
    match M::decode(message) {
        Ok(message) => look(message),
        Err(error) => wrong(
            format!("fields that cannot be parsed ({error})"),
            "the fields in the .proto file of the device",
        ),
    }
}

fn scan_is(angles: &[f64], distances: &[i32]) -> Plausibility {
    if angles.len() != distances.len() {
        return wrong(
            format!("{} angles but {} distances", angles.len(), distances.len()),
            "one distance for each angle",
        );
    }
    if let Some(angle) = angles.iter().find(|angle| !ANGLES_DEG.contains(angle)) {
        return wrong(format!("an angle of {angle}"), "degrees, from -180 to 180");
    }
    match distances.iter().find(|it| !DISTANCES_MM.contains(it)) {
        Some(distance) => wrong(
            format!("a distance of {distance}"),
            "millimetres, or 0 for no distance",
        ),
        None => Ok(()),
    }
}

fn speeds_are(speeds: [Option<i32>; 4]) -> Plausibility {
    let expected = "four speeds in mm/s";
    for speed in speeds {
        match speed {
            None => return wrong("a speed is missing", expected),
            Some(speed) if !SPEEDS_MM_S.contains(&speed) => {
                return wrong(format!("a speed of {speed}"), expected);
            }
            Some(_) => {}
        }
    }
    Ok(())
}

fn targets_are(longitudes: usize, latitudes: usize, thirds: usize) -> Plausibility {
    match longitudes == latitudes && latitudes == thirds {
        true => Ok(()),
        false => wrong(
            format!("lists of {longitudes}, {latitudes} and {thirds} numbers"),
            "lists of the same length",
        ),
    }
}

fn wrong(what: impl Into<String>, expected: impl Into<Cow<'static, str>>) -> Plausibility {
    Err(Implausible {
        what: what.into(),
        expected: expected.into(),
    })
}

#[cfg(test)]
mod tests {
    use amber_proto::DeviceMessage;

    use super::*;

    #[track_caller]
    fn check(kind: DeviceType, message: impl DeviceMessage, what: Option<&str>) {
        let found = look(kind, &message.encode_to_vec()).err();
        assert_eq!(found.map(|it| it.what).as_deref(), what);
    }

    fn scan(angles: &[f64], distances: &[i32]) -> hokuyo::DriverMsg {
        let (angles, distances) = (angles.to_vec(), distances.to_vec());
        hokuyo::DriverMsg {
            scan: Some(hokuyo::Scan { angles, distances }),
            ..hokuyo::DriverMsg::data()
        }
    }

    #[test]
    fn scans() {
        for (angles, distances, what) in [
            (&[-120.0, 0.0][..], &[0, 5600][..], None),
            (&[], &[], None),
            (&[0.0], &[], Some("1 angles but 0 distances")),
            (&[f64::NAN], &[1], Some("an angle of NaN")),
            (&[240.0], &[1], Some("an angle of 240")),
            (&[0.0], &[-1], Some("a distance of -1")),
        ] {
            check(DeviceType::HOKUYO, scan(angles, distances), what);
        }
        check(DeviceType::HOKUYO, hokuyo::DriverMsg::data(), None);
    }

    #[test]
    fn speeds() {
        for (speed, what) in [
            (Some(300), None),
            (Some(-1200), None),
            (None, Some("a speed is missing")),
            (Some(65_000), Some("a speed of 65000")),
        ] {
            let message = roboclaw::DriverMsg {
                current_speed: Some(roboclaw::MotorsSpeed {
                    front_left_speed: Some(0),
                    front_right_speed: Some(0),
                    rear_left_speed: Some(0),
                    rear_right_speed: speed,
                }),
                ..roboclaw::DriverMsg::data()
            };
            check(DeviceType::ROBOCLAW, message, what);
        }
    }

    #[test]
    fn poses() {
        let pose = |x_pos, angle| stargazer::DriverMsg {
            localization_data: Some(stargazer::LocalizationData {
                x_pos,
                angle,
                ..Default::default()
            }),
            ..stargazer::DriverMsg::data()
        };
        check(DeviceType::STARGAZER, pose(350.0, -179.5), None);
        check(
            DeviceType::STARGAZER,
            pose(1e9, 0.0),
            Some("a position of 1000000000 cm"),
        );
        check(
            DeviceType::STARGAZER,
            pose(0.0, 1e4),
            Some("an angle of 10000"),
        );
        let place = |p, x| location::DriverMsg {
            current_location: Some(location::Location {
                p: Some(p),
                x: Some(x),
                ..Default::default()
            }),
            ..location::DriverMsg::data()
        };
        check(DeviceType::LOCATION, place(1.0, 3.5), None);
        check(
            DeviceType::LOCATION,
            place(95.0, 3.5),
            Some("a quality p of 95"),
        );
        let what = Some("x inf, y 0, alfa 0");
        check(DeviceType::LOCATION, place(0.5, f64::INFINITY), what);
    }

    #[test]
    fn the_rest() {
        let dummy = |message| dummy::DriverMsg {
            enable: Some(true),
            message,
            ..dummy::DriverMsg::data()
        };
        check(DeviceType::DUMMY, dummy(Some("hi".into())), None);
        check(
            DeviceType::DUMMY,
            dummy(None),
            Some("enable without message"),
        );
        let axes = |x_axis| ninedof::DriverMsg {
            sensor_data: Some(ninedof::SensorData {
                gyro: Some(ninedof::AxisData {
                    x_axis,
                    ..Default::default()
                }),
                ..Default::default()
            }),
            ..ninedof::DriverMsg::data()
        };
        check(DeviceType::NINEDOF, axes(-500), None);
        check(
            DeviceType::NINEDOF,
            axes(1_000_000),
            Some("gyro of 1000000"),
        );
        let targets = drive_to_point::DriverMsg {
            targets: Some(drive_to_point::Targets {
                longitudes: vec![1.0],
                ..Default::default()
            }),
            ..drive_to_point::DriverMsg::data()
        };
        let what = Some("lists of 1, 0 and 0 numbers");
        check(DeviceType::DRIVE_TO_POINT, targets, what);
        // The fields of one device under the numbers of another.
        let bytes = b"\x10\x01\xca\x02\x02\xff\xff";
        assert!(look(DeviceType::HOKUYO, bytes).is_err());
        assert_eq!(look(DeviceType(201), bytes), Ok(()));
    }
}
