//! The questions to the person: at most five, each with a default. IO, except for reading the answers.

use std::io::BufRead;
use std::ops::RangeInclusive;
use std::path::absolute;

use amber_drivers::probe::{Kind, PROBES};
use amber_terminal::{Failure, note};

use super::files::Robot;
use super::look::{self, At, Looked};

/// How often a question is repeated after an invalid answer.
const TRIES: usize = 3;

/// Asks a person, or takes the defaults.
pub(super) struct Questions<R> {
    /// `None`: nobody is asked.
    input: Option<R>,
}

/// A number of an answer: its name, and what is possible.
struct Number {
    name: &'static str,
    range: RangeInclusive<f64>,
}

const fn number(name: &'static str, range: RangeInclusive<f64>) -> Number {
    Number { name, range }
}

/// The ranges are those of the drivers.
static SIZE: [Number; 2] = [
    number("length", 50.0..=5_000.0),
    number("width", 50.0..=5_000.0),
];
static OFFSET: [Number; 1] = [number("distance", -2_000.0..=2_000.0)];
static WHEELS: [Number; 3] = [
    number("radius", 1.0..=5_000.0),
    number("pulses per turn", 1.0..=10_000_000.0),
    number("pulses per second", 1.0..=10_000_000.0),
];
static TWO_WHEELS: [Number; 2] = [
    number("radius", 1.0..=5_000.0),
    number("counts per turn", 1.0..=10_000_000.0),
];

impl<R: BufRead> Questions<R> {
    pub(super) fn new(input: Option<R>) -> Self {
        Self { input }
    }

    /// 1: what is connected to these ports, each with what is known of it.
    ///
    /// # Errors
    /// Nobody answers.
    pub(super) fn ports(&mut self, unknown: &[(String, String)]) -> Result<Vec<At>, Failure> {
        if unknown.is_empty() {
            return Ok(Vec::new());
        }
        let listed: String = unknown
            .iter()
            .map(|(path, words)| format!("\n  {path}  {words}"))
            .collect();
        let first = &unknown[0].0;
        let question = format!(
            "These ports do not tell what is connected to them:{listed}\nWhat is? Write for example \
             `stargazer={first}`. Devices: {}. Only named ports are opened",
            serial_devices()
        );
        self.ask(&question, "nothing", Vec::new(), |answer| {
            words(answer).map(at).collect()
        })
    }

    /// 2 to 4: what only a ruler and the data sheets of the motors know. Only what the devices need.
    ///
    /// # Errors
    /// Nobody answers.
    pub(super) fn robot(&mut self, looked: &Looked, mut robot: Robot) -> Result<Robot, Failure> {
        let has_laser = looked.first(look::LASER).is_some();
        let wheels = looked.first_of(look::WHEELS);
        if has_laser || wheels.is_some() {
            let default = [robot.length_mm, robot.width_mm];
            let question = "Length and width of the robot, in mm";
            [robot.length_mm, robot.width_mm] = self.numbers(question, default, &SIZE)?;
        }
        if has_laser {
            let question = "How far is the laser ahead of the centre between the wheels, in mm? Negative if it \
                            is behind";
            [robot.laser_offset_mm] = self.numbers(question, [robot.laser_offset_mm], &OFFSET)?;
        }
        // All Create 2 have the same wheels.
        let asks = wheels.is_some_and(|(_, kind, _)| kind != Kind::Create2);
        if asks && robot.max_qpps.is_none() {
            let question = "Radius of the wheels in mm, and encoder counts per turn of a wheel (amber.toml \
                            explains them; you can change them there)";
            let default = [robot.wheel_radius_mm, robot.pulses_per_turn];
            [robot.wheel_radius_mm, robot.pulses_per_turn] =
                self.numbers(question, default, &TWO_WHEELS)?;
        }
        if wheels.is_some()
            && let Some(max_qpps) = robot.max_qpps
        {
            let question = "Radius of the wheels in mm, encoder pulses per turn of a wheel, and pulses per \
                            second at full power (amber.toml explains them; you can change them there)";
            let default = [robot.wheel_radius_mm, robot.pulses_per_turn, max_qpps];
            let max_qpps;
            [robot.wheel_radius_mm, robot.pulses_per_turn, max_qpps] =
                self.numbers(question, default, &WHEELS)?;
            // The driver takes a whole number.
            robot.max_qpps = Some(max_qpps.round());
        }
        Ok(robot)
    }

    /// 5: whether to start the service. Without a person, it is not started.
    ///
    /// # Errors
    /// Nobody answers.
    pub(super) fn starts_service(&mut self) -> Result<bool, Failure> {
        if self.input.is_none() {
            return Ok(false);
        }
        let question = "Start the service amber now, and whenever the robot starts?";
        self.ask(question, "yes", true, |answer| {
            match answer.to_lowercase().as_str() {
                "y" | "yes" => Ok(true),
                "n" | "no" => Ok(false),
                _ => Err("write yes or no".to_owned()),
            }
        })
    }

    fn numbers<const N: usize>(
        &mut self,
        question: &str,
        default: [f64; N],
        meaning: &[Number; N],
    ) -> Result<[f64; N], Failure> {
        let shown = default.map(|number| number.to_string()).join(" ");
        self.ask(question, &shown, default, |answer| numbers(answer, meaning))
    }

    fn ask<T>(
        &mut self,
        question: &str,
        shown: &str,
        default: T,
        read: impl Fn(&str) -> Result<T, String>,
    ) -> Result<T, Failure> {
        let Some(input) = &mut self.input else {
            return Ok(default);
        };
        for _ in 0..TRIES {
            note(format_args!("{question} [{shown}]:"));
            let mut answer = String::new();
            let length = input.read_line(&mut answer);
            if !matches!(length, Ok(1..)) {
                return Err(Failure::wrong("nobody answers the question")
                    .hint("`amber init --yes` takes the default answers"));
            }
            match answer.trim() {
                "" => return Ok(default),
                answer => match read(answer) {
                    Ok(value) => return Ok(value),
                    Err(problem) => note(problem),
                },
            }
        }
        Err(Failure::wrong("the question was not answered")
            .hint("press Enter for the default, which is in brackets"))
    }
}

/// The words of an answer, with spaces or commas between them.
fn words(answer: &str) -> impl Iterator<Item = &str> {
    let words = answer.split(|it: char| it.is_whitespace() || it == ',');
    words.filter(|word| !word.is_empty())
}

/// Reads numbers, which may have spaces, commas or `x` between them.
fn numbers<const N: usize>(answer: &str, meaning: &[Number; N]) -> Result<[f64; N], String> {
    let answer = answer.replace('x', " ");
    let words: Vec<_> = words(&answer).collect();
    let words: [&str; N] = words.try_into().map_err(|_| match N {
        1 => "write one number".to_owned(),
        _ => format!("write {N} numbers with spaces between them"),
    })?;
    let mut values = [0.0; N];
    for ((value, word), Number { name, range }) in values.iter_mut().zip(words).zip(meaning) {
        let number: Option<f64> = word.parse().ok();
        *value = number
            .filter(|number| range.contains(number))
            .ok_or_else(|| {
                format!(
                    "{name}: {word} is not a number from {} to {}",
                    range.start(),
                    range.end()
                )
            })?;
    }
    Ok(values)
}

/// Reads `DEVICE=PORT`.
pub(super) fn at(text: &str) -> Result<At, String> {
    let Some((device, port)) = text.split_once('=').filter(|(_, port)| !port.is_empty()) else {
        return Err(format!(
            "{text:?} is not of the form DEVICE=PORT, such as roboclaw=/dev/ttyAMA0"
        ));
    };
    let named = PROBES.iter().find(|probe| probe.driver == device);
    match named.filter(|probe| probe.kind.is_serial()) {
        Some(probe) => Ok(At {
            kind: probe.kind,
            // The drivers are started in another folder.
            port: absolute(port).map_err(|error| format!("{port:?}: {error}"))?,
        }),
        None => Err(format!("{device:?} is none of {}", serial_devices())),
    }
}

/// The devices that may be at a serial port.
fn serial_devices() -> String {
    let serial = PROBES.iter().filter(|probe| probe.kind.is_serial());
    serial
        .map(|probe| probe.driver)
        .collect::<Vec<_>>()
        .join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn questions(answers: &str) -> Questions<&[u8]> {
        Questions::new(Some(answers.as_bytes()))
    }

    #[test]
    fn numbers_are_read_with_any_space_between_them() {
        let size = |answer| numbers(answer, &SIZE);
        for answer in ["400 300", "400x300", "400, 300", " 400   300.0 "] {
            assert_eq!(size(answer), Ok([400.0, 300.0]), "{answer}");
        }
        for (answer, error) in [
            ("400", "write 2 numbers with spaces between them"),
            ("400 wide", "width: wide is not a number from 50 to 5000"),
            ("0.4 300", "length: 0.4 is not a number from 50 to 5000"),
            ("nan 300", "length: nan is not a number from 50 to 5000"),
        ] {
            assert_eq!(size(answer), Err(error.to_owned()), "{answer}");
        }
    }

    #[test]
    fn ports_are_named_with_their_devices() {
        let expected = At {
            kind: Kind::Stargazer,
            port: "/dev/ttyUSB0".into(),
        };
        assert_eq!(at("stargazer=/dev/ttyUSB0"), Ok(expected));
        for wrong in [
            "stargazer",
            "stargazer=",
            "ninedof=/dev/i2c-1",
            "mpu=/dev/i2c-1",
            "ina2xx=/dev/i2c-1",
            "lidar=/dev/x",
        ] {
            assert!(at(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_invalid_answer_is_asked_for_again_and_no_answer_is_an_error() {
        let ports = [("/dev/ttyUSB0".to_owned(), "CP2102".to_owned())];
        let answered = questions("a laser\nhokuyo=/dev/ttyUSB0\n").ports(&ports);
        assert_eq!(answered.unwrap()[0].kind, Kind::Hokuyo);
        assert_eq!(questions("\n").ports(&ports).unwrap(), []);
        assert!(questions("").ports(&ports).is_err());
        assert!(questions("x\nx\nx\n\n").ports(&ports).is_err());
        // Without a port, there is no question.
        assert_eq!(questions("").ports(&[]).unwrap(), []);
    }

    #[test]
    fn without_a_person_the_defaults_count_and_no_service_is_started() {
        let mut nobody = Questions::<&[u8]>::new(None);
        let ports = [("/dev/ttyUSB0".to_owned(), "CP2102".to_owned())];
        assert_eq!(nobody.ports(&ports).unwrap(), []);
        assert!(!nobody.starts_service().unwrap());
        assert!(questions("\n").starts_service().unwrap());
        assert!(!questions("no\n").starts_service().unwrap());
    }
}
