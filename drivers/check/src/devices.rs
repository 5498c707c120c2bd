//! Requests for devices by their descriptions, with values that move nothing. PURE.

use amber_proto::DeviceType;
use amber_reflect::arguments::{self, Spelling};
use amber_reflect::{Schemas, built_in};
use amber_schema::{Interface, Kind, Method};

/// A request, and the expected answer.
#[derive(Clone, Debug)]
pub(crate) struct Ask {
    pub(crate) name: String,
    /// A DATA message without a number.
    pub(crate) message: Vec<u8>,
    pub(crate) answer: Answer,
}

/// The expected answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// DATA with at least one of these fields.
    Fields(Vec<String>),
    /// Any DATA.
    Any,
    /// No answer.
    Nothing,
}

/// A device type.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    pub(crate) asks: Vec<Ask>,
    /// Subscribers regularly get data.
    pub(crate) publishes: bool,
    /// It needs hardware or other devices. If they are missing, the driver may
    /// rightly be silent.
    pub(crate) may_be_silent: bool,
}

/// Commands that move nothing, by device and method, with their arguments. No description can say
/// which these are.
const HARMLESS: [(&str, &str, &[&str]); 7] = [
    ("collision-avoidance", "drive", &["0", "0", "0", "0"]),
    ("drive-to-point", "set-targets", &["none"]),
    ("dummy", "enable", &["true"]),
    // Letters beyond ASCII.
    ("dummy", "message", &["amber check \u{17c}\u{f3}\u{142}w"]),
    ("maestro", "set-speed", &["0", "0"]),
    ("pid-follow-trajectory", "stop", &[]),
    ("roboclaw", "drive", &["0", "0", "0", "0"]),
];

/// What is known about a device type of Amber; `None` for a user's own and for the mediator.
pub(crate) fn known(kind: DeviceType) -> Option<Known> {
    let interface = built_in().iter().find(|it| it.device_type == kind.0)?;
    (kind != DeviceType::MEDIATOR).then(|| of(interface, &Schemas::built_in()))
}

/// What a description says about a device; the schemas are those of its messages.
pub(crate) fn of(interface: &Interface, schemas: &Schemas) -> Known {
    let asks = interface.methods.iter();
    Known {
        asks: asks
            .filter_map(|method| ask(interface, method, schemas))
            .collect(),
        publishes: (interface.methods.iter()).any(|method| method.kind == Kind::Subscribe),
        may_be_silent: interface.device_type != DeviceType::DUMMY.0,
    }
}

/// The request of a method, if it moves nothing and its arguments are known.
fn ask(interface: &Interface, method: &Method, schemas: &Schemas) -> Option<Ask> {
    let harmless = (HARMLESS.iter())
        .find(|(device, name, _)| *device == interface.name && *name == method.command);
    let (words, answer) = match &method.kind {
        // A calibration or the like.
        Kind::Ask {
            duration: Some(_), ..
        }
        | Kind::Subscribe => return None,
        Kind::Ask { repeats_flag, .. } => {
            let flags = method.flags.iter().filter(|_| *repeats_flag);
            let flags = flags.filter_map(|path| path.rsplit('.').next().map(str::to_owned));
            let fields = method.answer.iter().chain(&method.may_answer);
            let fields = fields.filter_map(|field| outermost(schemas, &field.path));
            (
                everything(method),
                Answer::Fields(flags.chain(fields).collect()),
            )
        }
        Kind::Tell => {
            let words = harmless?.2.iter().map(|&word| word.to_owned());
            (words.collect(), Answer::Nothing)
        }
        Kind::StreamByRequest { .. } => (period(method), Answer::Nothing),
    };
    let given = arguments::read(method, &words, Spelling::default()).ok()?;
    let is_stream = method.is_stream();
    Some(Ask {
        name: match is_stream {
            true => format!("{} off", method.command),
            false => method.command.clone(),
        },
        message: match is_stream {
            true => schemas.start_stop(method, &given).ok()?.stop,
            false => schemas.request(method, &given).ok()?,
        },
        answer,
    })
}

/// The extension of `DriverMsg` in which a field is.
fn outermost(schemas: &Schemas, path: &str) -> Option<String> {
    let mut ends = path
        .match_indices('.')
        .map(|(end, _)| end)
        .chain([path.len()]);
    let found = ends.find_map(|end| schemas.pool().get_extension_by_name(&path[..end]))?;
    Some(found.name().to_owned())
}

/// All flags that a request may have.
fn everything(method: &Method) -> Vec<String> {
    let arguments = arguments::arguments(method).into_iter();
    let flags = arguments.filter(|it| it.field.type_name == "bool" && !it.is_required);
    flags.map(|flag| format!("{}=true", flag.name)).collect()
}

fn period(method: &Method) -> Vec<String> {
    let arguments = arguments::arguments(method).into_iter();
    let period = arguments.filter(|it| it.name == "period" && it.is_required);
    period.map(|_| "period=1000ms".to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use amber_reflect::hex;

    use super::*;

    #[test]
    fn devices_are_asked_what_moves_nothing() {
        for (name, expected) in [
            ("ninedof", "data, readings off"),
            ("roboclaw", "drive, speeds"),
            ("stargazer", "pose, poses off"),
            ("hokuyo", "scan"),
            ("dummy", "status, enable, message"),
            ("location", "pose, quality, particles"),
            ("maestro", "set-speed"),
            (
                "drive-to-point",
                "set-targets, next-target, next-targets, visited-target, visited-targets, \
                 configuration",
            ),
            (
                "collision-avoidance",
                "drive, speeds, scan, speeds-and-scan",
            ),
            (
                "pid-follow-trajectory",
                "next-targets, visited-targets, stop",
            ),
        ] {
            let kind: DeviceType = name.parse().unwrap();
            let asks = known(kind).unwrap().asks;
            let names: Vec<_> = asks.iter().map(|ask| ask.name.as_str()).collect();
            assert_eq!(names.join(", "), expected, "{name}");
        }
        assert!(known(DeviceType::MEDIATOR).is_none());
        assert!(known(DeviceType(201)).is_none());
    }

    #[test]
    fn requests_are_these_bytes() {
        for (kind, name, bytes) in [
            (DeviceType::DUMMY, "status", "1001a00301"),
            (DeviceType::HOKUYO, "scan", "1001c00201"),
            (DeviceType::ROBOCLAW, "speeds", "1001a80101"),
            (DeviceType::ROBOCLAW, "drive", "1001a201080800100018002000"),
            (DeviceType::NINEDOF, "data", "10015a080801100118012001"),
            (DeviceType::NINEDOF, "readings off", "100162020800"),
            (DeviceType::STARGAZER, "pose", "1001fa0100"),
            (DeviceType::STARGAZER, "poses off", "10018202020802"),
            (DeviceType::MAESTRO, "set-speed", "1001ca040408001000"),
            (
                DeviceType::DRIVE_TO_POINT,
                "set-targets",
                "1001800501aa0500",
            ),
            (DeviceType::PID_FOLLOW_TRAJECTORY, "stop", "1001c80601"),
        ] {
            let asks = known(kind).unwrap().asks;
            let ask = asks.iter().find(|ask| ask.name == name).unwrap();
            assert_eq!(hex(&ask.message), bytes, "{kind} {name}");
        }
    }

    #[test]
    fn answers_have_the_fields_of_the_description() {
        let fields = |kind, name: &str| {
            let asks = known(kind).unwrap().asks;
            asks.into_iter()
                .find(|ask| ask.name == name)
                .unwrap()
                .answer
        };
        let expected =
            |names: &[&str]| Answer::Fields(names.iter().map(|&name| name.to_owned()).collect());
        assert_eq!(
            fields(DeviceType::HOKUYO, "scan"),
            expected(&["scan", "timestamp"])
        );
        assert_eq!(
            fields(DeviceType::COLLISION_AVOIDANCE, "speeds"),
            expected(&["getSpeed", "motorsSpeed"])
        );
        assert_eq!(fields(DeviceType::ROBOCLAW, "drive"), Answer::Nothing);
    }
}
