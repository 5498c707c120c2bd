//! Differences between commands and the description of a device: familiar spellings, and advice.
//! PURE.

use amber_proto::DeviceType;
use amber_reflect::arguments::Spelling;

/// The special treatment of a method on the command line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Custom {
    device_type: DeviceType,
    /// The name on the command line.
    method: &'static str,
    /// The syntax of its arguments.
    pub(super) spelling: Spelling<'static>,
    /// More about the arguments, for `--help`.
    pub(super) help: &'static str,
    /// Advice before the request is sent; `{time}` is the argument for the duration.
    pub(super) before: Option<&'static str>,
    /// Advice after the command was sent, unless all its arguments are 0.
    pub(super) after: Option<&'static str>,
}

/// An alias for a request with arguments.
pub(super) struct Alias {
    device_type: DeviceType,
    pub(super) name: &'static str,
    pub(super) method: &'static str,
    pub(super) arguments: &'static [&'static str],
    pub(super) about: &'static str,
}

const NONE: Spelling<'_> = Spelling {
    spread: None,
    flags: None,
    defaults: &[],
};

const USUAL: Custom = Custom {
    device_type: DeviceType::MEDIATOR,
    method: "",
    spelling: NONE,
    help: "",
    before: None,
    after: None,
};

const SENSORS: &str = "accel,gyro,magnet";

const CUSTOMS: [Custom; 6] = [
    Custom {
        device_type: DeviceType::ROBOCLAW,
        method: "drive",
        // Left and right.
        spelling: Spelling {
            spread: Some((2, &[0, 1, 0, 1])),
            ..NONE
        },
        help: "\nTwo speeds are those of the left and the right side: drive 200 -200.\n",
        after: Some("the wheels stop when this command exits; use `amber drive` to keep moving"),
        ..USUAL
    },
    Custom {
        device_type: DeviceType::NINEDOF,
        method: "data",
        spelling: Spelling {
            flags: Some(SENSORS),
            defaults: &[("extended", "true")],
            ..NONE
        },
        ..USUAL
    },
    Custom {
        device_type: DeviceType::NINEDOF,
        method: "readings",
        spelling: Spelling {
            flags: Some(SENSORS),
            defaults: &[("extended", "true")],
            ..NONE
        },
        ..USUAL
    },
    Custom {
        device_type: DeviceType::NINEDOF,
        method: "self-test",
        spelling: Spelling {
            defaults: &[("milliseconds", "1s")],
            ..NONE
        },
        ..USUAL
    },
    Custom {
        device_type: DeviceType::NINEDOF,
        method: "calibrate-gyro",
        spelling: Spelling {
            defaults: &[("milliseconds", "2s")],
            ..NONE
        },
        before: Some("keep the robot still for {time}"),
        ..USUAL
    },
    Custom {
        device_type: DeviceType::NINEDOF,
        method: "calibrate-magnet",
        spelling: Spelling {
            defaults: &[("milliseconds", "60s")],
            ..NONE
        },
        before: Some("turn the robot all the way round within {time}, e.g. with `amber drive`"),
        ..USUAL
    },
];

const ALIASES: [Alias; 1] = [Alias {
    device_type: DeviceType::ROBOCLAW,
    name: "stop",
    method: "drive",
    arguments: &["0", "0", "0", "0"],
    about: "Stops the wheels",
}];

/// The special treatment of a method; most have none.
pub(super) fn of(device_type: DeviceType, method: &str) -> &'static Custom {
    let is = |custom: &&Custom| custom.device_type == device_type && custom.method == method;
    CUSTOMS.iter().find(is).unwrap_or(&USUAL)
}

pub(super) fn aliases(device_type: DeviceType) -> impl Iterator<Item = &'static Alias> {
    (ALIASES.iter()).filter(move |alias| alias.device_type == device_type)
}
