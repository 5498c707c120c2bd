//! Harmless requests for a device, by its description. PURE.

use amber_proto::DeviceType;
use amber_reflect::Schemas;
use amber_reflect::arguments::Given;
use amber_schema::{Harmless, Interface, Kind, Method};

use crate::sample;

/// A request, and the expected answer.
#[derive(Clone, Debug)]
pub(crate) struct Ask {
    pub(crate) name: String,
    /// A DATA message without a number.
    pub(crate) message: Vec<u8>,
    pub(crate) answer: Answer,
}

/// The expected answer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Answer {
    /// That of this method.
    Of(Box<Method>),
    /// Any DATA.
    Any,
    /// No answer.
    Nothing,
}

/// The description of a type of device, which is not the mediator.
pub(crate) fn interface(schemas: &Schemas, kind: DeviceType) -> Option<&Interface> {
    (kind != DeviceType::MEDIATOR).then(|| schemas.interface(kind))?
}

/// The requests that move nothing, by the description of a device; the schemas are those of its
/// messages.
pub(crate) fn asks(interface: &Interface, schemas: &Schemas) -> Vec<Ask> {
    let methods = interface.methods.iter();
    methods.filter_map(|method| ask(method, schemas)).collect()
}

fn ask(method: &Method, schemas: &Schemas) -> Option<Ask> {
    let (name, answer) = match &method.kind {
        Kind::Subscribe => return None,
        Kind::StreamByRequest { .. } => (format!("{} off", method.command), Answer::Nothing),
        Kind::Tell => (method.command.clone(), Answer::Nothing),
        Kind::Ask { .. } => (method.command.clone(), Answer::Of(Box::new(method.clone()))),
    };
    let message = match &method.harmless {
        Harmless::Unknown => return None,
        Harmless::With(values) => {
            let mut fixed = method.clone();
            fixed.set.extend(values.iter().cloned());
            schemas.request(&fixed, &Given::default()).ok()?
        }
        Harmless::Any => {
            let arguments = sample::arguments(method)?;
            match method.is_stream() {
                true => schemas.start_stop(method, &arguments).ok()?.stop,
                false => schemas.request(method, &arguments).ok()?,
            }
        }
    };
    Some(Ask {
        name,
        message,
        answer,
    })
}

#[cfg(test)]
mod tests {
    use amber_reflect::{built_in, hex};

    use super::*;

    fn asks_of(device: &str) -> Vec<Ask> {
        let schemas = Schemas::built_in();
        let interface = interface(&schemas, device.parse().unwrap()).unwrap();
        asks(interface, &schemas)
    }

    #[test]
    fn devices_are_asked_what_moves_nothing() {
        for (device, expected) in [
            ("ninedof", "data, readings off"),
            ("roboclaw", "drive, speeds, battery"),
            ("hokuyo", "scan, scanner"),
            ("dummy", "status, enable, message"),
            ("location", "pose, quality, particles, map, geometry"),
            ("maestro", "stop, angles, set-speed"),
            (
                "drive-to-point",
                "set-targets, order, orders, next-target, next-targets, visited-target, \
                 visited-targets, configuration, progress",
            ),
            (
                "collision-avoidance",
                "drive, speeds, scan, speeds-and-scan, drive-as-roboclaw, speeds-as-roboclaw",
            ),
            (
                "pid-follow-trajectory",
                "order, orders, next-targets, visited-targets, stop",
            ),
            ("board", "pins, info, stop"),
            ("base", "drive, state"),
            ("bus-servos", "servos, stop"),
        ] {
            let asks = asks_of(device);
            let names: Vec<_> = asks.iter().map(|ask| ask.name.as_str()).collect();
            assert_eq!(names.join(", "), expected, "{device}");
        }
        let schemas = Schemas::built_in();
        assert!(interface(&schemas, DeviceType::MEDIATOR).is_none());
        assert!(interface(&schemas, DeviceType(201)).is_none());
    }

    /// docs/devices.md says of the others that they are not sent.
    #[test]
    fn all_requests_are_sent_that_the_description_calls_harmless() {
        let schemas = Schemas::built_in();
        let mut is_sent_or_not = std::collections::BTreeSet::new();
        for it in built_in() {
            if interface(&schemas, DeviceType(it.device_type)).is_none() {
                continue;
            }
            let asks = asks(it, &schemas);
            for method in it.methods.iter().filter(|it| it.kind != Kind::Subscribe) {
                let is_sent = asks.iter().any(|ask| ask.name.starts_with(&method.command));
                let is_harmless = method.harmless != Harmless::Unknown;
                assert_eq!(is_sent, is_harmless, "{} {}", it.name, method.command);
                is_sent_or_not.insert(is_sent);
            }
        }
        assert_eq!(is_sent_or_not.len(), 2);
    }

    #[test]
    fn requests_are_these_bytes() {
        for (device, name, bytes) in [
            ("dummy", "status", "1001a00301"),
            ("hokuyo", "scan", "1001c00201"),
            ("roboclaw", "speeds", "1001a80101"),
            ("roboclaw", "drive", "1001a201080800100018002000"),
            ("ninedof", "data", "10015a080801100118012001"),
            ("ninedof", "readings off", "1001620a08001001180120012801"),
            ("maestro", "set-speed", "1001ca040408001000"),
            ("drive-to-point", "set-targets", "1001800501aa0500"),
            ("pid-follow-trajectory", "stop", "1001c80601"),
        ] {
            let asks = asks_of(device);
            let ask = asks.iter().find(|ask| ask.name == name).unwrap();
            assert_eq!(hex(&ask.message), bytes, "{device} {name}");
        }
    }

    #[test]
    fn a_request_is_recognized() {
        let schemas = Schemas::built_in();
        for interface in built_in() {
            for ask in asks(interface, &schemas) {
                let (method, _) = schemas.requested(interface, &ask.message).unwrap();
                let name = ask.name.trim_end_matches(" off");
                assert_eq!(method.command, name, "{}", interface.name);
            }
            assert!(schemas.requested(interface, b"\x10\x01").is_none());
        }
        let ninedof = interface(&schemas, DeviceType::NINEDOF).unwrap();
        // Service 2, CALIBRATE_GYRO.
        let (method, _) = schemas
            .requested(ninedof, b"\x10\x01\x6a\x02\x08\x02")
            .unwrap();
        assert_eq!(method.name, "CalibrateGyro");
    }
}
