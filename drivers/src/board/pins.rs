//! The pins of the configuration: how each is used, its limits and its safe value. PURE.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use serde::Deserialize;

/// The pulses that a servo may get, in microseconds. The library of an Arduino takes smaller numbers for
/// angles.
const PULSES_US: RangeInclusive<u16> = 544..=2500;

/// The most pins of a board.
const MAX_PINS: u8 = 128;

/// The most labelled analog inputs of a board.
const MAX_CHANNELS: u8 = 16;

/// The longest name of a pin, in bytes.
const MAX_NAME: usize = 32;

/// How a pin is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// A digital input.
    Input,
    /// A digital input with a resistor to the supply.
    InputPullUp,
    /// A digital output.
    Output,
    /// An analog input.
    Analog,
    /// An output that is high for a share of the time.
    Pwm,
    /// An output with the pulses of a servo.
    Servo,
}

impl Mode {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Input,
        Self::InputPullUp,
        Self::Output,
        Self::Analog,
        Self::Pwm,
        Self::Servo,
    ];

    /// The word in the configuration.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Input => "input",
            Self::InputPullUp => "input-pull-up",
            Self::Output => "output",
            Self::Analog => "analog",
            Self::Pwm => "pwm",
            Self::Servo => "servo",
        }
    }

    /// Whether it is a digital input.
    #[must_use]
    pub fn is_input(self) -> bool {
        matches!(self, Self::Input | Self::InputPullUp)
    }
}

/// Words for people.
impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Input => "a digital input",
            Self::InputPullUp => "a digital input with pull-up",
            Self::Output => "a digital output",
            Self::Analog => "an analog input",
            Self::Pwm => "a PWM output",
            Self::Servo => "a servo",
        })
    }
}

/// A number or a text in a file.
#[derive(Deserialize)]
#[serde(untagged)]
enum NumberOrText {
    Number(f64),
    Text(String),
}

/// Where a pin is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "NumberOrText")]
pub enum Place {
    /// The number by which the board knows it, such as 13.
    Number(u8),
    /// The label of an analog input: 0 is A0.
    Analog(u8),
}

impl FromStr for Place {
    type Err = String;

    /// Reads `13` or `A0`.
    fn from_str(text: &str) -> Result<Self, String> {
        let (digits, limit, place) = match text.strip_prefix(['A', 'a']) {
            Some(digits) => (digits, MAX_CHANNELS, Self::Analog as fn(u8) -> Self),
            None => (text, MAX_PINS, Self::Number as fn(u8) -> Self),
        };
        // `parse` takes a sign, too.
        let is_plain = digits.bytes().all(|byte| byte.is_ascii_digit());
        let number = digits.parse::<u8>().ok();
        let number = number.filter(|number| is_plain && *number < limit);
        number
            .map(place)
            .ok_or_else(|| format!("{text:?} is no pin: use its number, such as 13, or A0 to A15"))
    }
}

impl TryFrom<NumberOrText> for Place {
    type Error = String;

    fn try_from(given: NumberOrText) -> Result<Self, String> {
        match given {
            NumberOrText::Number(number) => number.to_string().parse(),
            NumberOrText::Text(text) => text.parse(),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Analog(channel) => write!(f, "A{channel}"),
        }
    }
}

/// The safe value of an output, as in the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(try_from = "NumberOrText")]
pub enum Safe {
    /// A share of the time in percent, or the angle of a servo in degrees.
    Number(f64),
    /// A digital output is low.
    Low,
    /// A digital output is high.
    High,
    /// A servo gets no pulses.
    Release,
    /// The output keeps what it has.
    Keep,
}

impl FromStr for Safe {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "low" => Ok(Self::Low),
            "high" => Ok(Self::High),
            "release" => Ok(Self::Release),
            "keep" => Ok(Self::Keep),
            number => number.parse().map(Self::Number).map_err(|_| {
                format!("safe: {text:?} is neither low, high, release, keep nor a number")
            }),
        }
    }
}

impl TryFrom<NumberOrText> for Safe {
    type Error = String;

    fn try_from(given: NumberOrText) -> Result<Self, String> {
        match given {
            NumberOrText::Number(number) => Ok(Self::Number(number)),
            NumberOrText::Text(text) => text.parse(),
        }
    }
}

/// A pin, as in the file: a section `[[pin]]`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PinOptions {
    /// Where it is.
    pub pin: Place,
    /// The name by which clients may call it.
    pub name: Option<String>,
    /// How it is used.
    pub mode: Mode,
    /// What it gets when the client that has set it is gone, and when the driver ends.
    pub safe: Option<Safe>,
    /// The smallest angle of a servo.
    pub min_deg: Option<f64>,
    /// The largest angle of a servo.
    pub max_deg: Option<f64>,
    /// The shortest pulse of a servo.
    pub min_us: Option<u16>,
    /// The longest pulse of a servo.
    pub max_us: Option<u16>,
    /// The pulse of a servo at 0 degrees.
    pub zero_us: Option<f64>,
    /// The change of the pulse of a servo per degree.
    pub us_per_deg: Option<f64>,
    /// Whether a servo turns on and on, as a motor does.
    #[serde(default)]
    pub continuous: bool,
}

impl FromStr for PinOptions {
    type Err = String;

    /// Reads `led=13:output` or `5:pwm:0`: the name, the pin, how it is used, and its safe value.
    fn from_str(text: &str) -> Result<Self, String> {
        let (name, rest) = match text.split_once('=') {
            Some((name, rest)) => (Some(name.to_owned()), rest),
            None => (None, text),
        };
        let parts: Vec<_> = rest.split(':').collect();
        let (place, word, safe) = match parts[..] {
            [place, word] => (place, word, None),
            [place, word, safe] => (place, word, Some(safe)),
            _ => return Err(format!("{text:?} is not like led=13:output or 5:pwm:0")),
        };
        let mode = Mode::ALL.into_iter().find(|mode| mode.word() == word);
        let mode = mode.ok_or_else(|| {
            let words = Mode::ALL.map(Mode::word).join(", ");
            format!("{word:?} is none of {words}")
        })?;
        Ok(Self {
            pin: place.parse()?,
            name,
            mode,
            safe: safe.map(str::parse).transpose()?,
            min_deg: None,
            max_deg: None,
            min_us: None,
            max_us: None,
            zero_us: None,
            us_per_deg: None,
            continuous: false,
        })
    }
}

/// What an output is told.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// Of a digital output: whether it is high.
    Level(bool),
    /// Of a PWM output: the share of the time in percent.
    Duty(f64),
    /// Of a servo: its pulse in microseconds.
    Pulse(u16),
    /// Of a servo: no pulses.
    Released,
}

/// The range of a servo.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ServoRange {
    /// The smallest angle, in degrees.
    pub min_deg: f64,
    /// The largest angle, in degrees.
    pub max_deg: f64,
    /// The shortest pulse, in microseconds.
    pub min_us: u16,
    /// The longest pulse, in microseconds.
    pub max_us: u16,
    zero_us: f64,
    us_per_deg: f64,
}

impl ServoRange {
    /// That of the library of an Arduino.
    const USUAL: Self = Self {
        min_deg: 0.0,
        max_deg: 180.0,
        min_us: 544,
        max_us: 2400,
        zero_us: 544.0,
        us_per_deg: (2400.0 - 544.0) / 180.0,
    };

    fn of(options: &PinOptions) -> Result<Self, String> {
        let usual = Self::USUAL;
        let range = Self {
            min_deg: options.min_deg.unwrap_or(usual.min_deg),
            max_deg: options.max_deg.unwrap_or(usual.max_deg),
            min_us: options.min_us.unwrap_or(usual.min_us),
            max_us: options.max_us.unwrap_or(usual.max_us),
            zero_us: options.zero_us.unwrap_or(usual.zero_us),
            us_per_deg: options.us_per_deg.unwrap_or(usual.us_per_deg),
        };
        let numbers = [
            range.min_deg,
            range.max_deg,
            range.zero_us,
            range.us_per_deg,
        ];
        let is_sound = numbers.iter().all(|number| number.is_finite())
            && range.us_per_deg != 0.0
            && range.min_deg <= range.max_deg
            && range.min_us <= range.max_us
            && PULSES_US.contains(&range.min_us)
            && PULSES_US.contains(&range.max_us);
        match is_sound {
            true => Ok(range),
            false => Err(format!(
                "min must not exceed max, us_per_deg must not be 0, and pulses are {} to {} us",
                PULSES_US.start(),
                PULSES_US.end()
            )),
        }
    }

    /// The pulse at an angle, in microseconds.
    ///
    /// # Errors
    /// It is beyond the range: the reason.
    pub fn pulse_us(&self, deg: f64) -> Result<u16, String> {
        if !(self.min_deg..=self.max_deg).contains(&deg) {
            let (min, max) = (self.min_deg, self.max_deg);
            return Err(format!("turns from {min} to {max} degrees, not to {deg}"));
        }
        // The conversion limits.
        let us = (self.zero_us + self.us_per_deg * deg).round() as u16;
        self.check_us(us.into())
    }

    /// A pulse within the range, in microseconds.
    ///
    /// # Errors
    /// It is beyond the range: the reason.
    pub fn check_us(&self, us: u32) -> Result<u16, String> {
        let within = u16::try_from(us).ok();
        let within = within.filter(|us| (self.min_us..=self.max_us).contains(us));
        let (min, max) = (self.min_us, self.max_us);
        within.ok_or_else(|| format!("takes pulses of {min} to {max} us, not of {us}"))
    }

    /// The angle at a pulse, in degrees.
    #[must_use]
    pub fn angle_deg(&self, us: u16) -> f64 {
        (f64::from(us) - self.zero_us) / self.us_per_deg
    }
}

/// A pin of the configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct Pin {
    /// Where it is.
    pub place: Place,
    /// The name by which clients may call it.
    pub name: Option<String>,
    /// How it is used.
    pub mode: Mode,
    /// What it gets when the client that has set it is gone; `None`: it keeps what it has.
    pub safe: Option<Value>,
    /// The range, if it is a servo.
    pub range: ServoRange,
}

impl fmt::Display for Pin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "pin {} ({name})", self.place),
            None => write!(f, "pin {}", self.place),
        }
    }
}

impl Pin {
    fn of(options: &PinOptions) -> Result<Self, String> {
        if let Some(name) = &options.name {
            check_name(name)?;
        }
        let is_servo = options.mode == Mode::Servo;
        let of_servo = [
            ("min_deg", options.min_deg.is_some()),
            ("max_deg", options.max_deg.is_some()),
            ("min_us", options.min_us.is_some()),
            ("max_us", options.max_us.is_some()),
            ("zero_us", options.zero_us.is_some()),
            ("us_per_deg", options.us_per_deg.is_some()),
            ("continuous", options.continuous),
        ];
        let given = of_servo.into_iter().find(|(_, is_given)| *is_given);
        if let Some((name, _)) = given.filter(|_| !is_servo) {
            return Err(format!("{name} is only for servos"));
        }
        let range = ServoRange::of(options)?;
        Ok(Self {
            place: options.pin,
            name: options.name.clone(),
            mode: options.mode,
            safe: safe_value(options, &range)?,
            range,
        })
    }
}

/// What clients write must be the name of one pin only.
fn check_name(name: &str) -> Result<(), String> {
    let is_word = (1..=MAX_NAME).contains(&name.len())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_graphic() && byte != b'=' && byte != b':');
    match name.parse::<Place>() {
        Ok(_) => Err(format!("the name {name:?} looks like another pin")),
        Err(_) if is_word => Ok(()),
        Err(_) => Err(format!(
            "the name {name:?} must have 1 to {MAX_NAME} letters, digits or signs, without = and :"
        )),
    }
}

/// The safe value of an output.
fn safe_value(options: &PinOptions, range: &ServoRange) -> Result<Option<Value>, String> {
    let allowed = match (options.mode, options.safe) {
        (Mode::Output, None | Some(Safe::Keep)) => return Ok(None),
        (Mode::Output, Some(Safe::Low)) => return Ok(Some(Value::Level(false))),
        (Mode::Output, Some(Safe::High)) => return Ok(Some(Value::Level(true))),
        (Mode::Output, Some(_)) => "low, high or keep",
        (Mode::Pwm, None) => return Ok(Some(Value::Duty(0.0))),
        (Mode::Pwm, Some(Safe::Keep)) => return Ok(None),
        (Mode::Pwm, Some(Safe::Number(percent))) if (0.0..=100.0).contains(&percent) => {
            return Ok(Some(Value::Duty(percent)));
        }
        (Mode::Pwm, Some(_)) => "0 to 100, in percent, or keep",
        (Mode::Servo, Some(Safe::Number(deg))) => {
            let us = range
                .pulse_us(deg)
                .map_err(|why| format!("safe: it {why}"))?;
            return Ok(Some(Value::Pulse(us)));
        }
        (Mode::Servo, Some(Safe::Release)) => return Ok(Some(Value::Released)),
        // It would turn on and on.
        (Mode::Servo, None) if options.continuous => return Ok(Some(Value::Released)),
        (Mode::Servo, None | Some(Safe::Keep)) if !options.continuous => return Ok(None),
        (Mode::Servo, _) if options.continuous => "release or an angle, as it turns like a motor",
        (Mode::Servo, _) => "release, keep or an angle",
        (Mode::Input | Mode::InputPullUp | Mode::Analog, None) => return Ok(None),
        (Mode::Input | Mode::InputPullUp | Mode::Analog, Some(_)) => {
            return Err("safe is only for outputs".to_owned());
        }
    };
    Err(format!("safe must be {allowed}"))
}

/// The pins of the configuration, in its order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pins(Vec<Pin>);

impl Pins {
    /// Checks the pins.
    ///
    /// # Errors
    /// Describes the invalid value.
    pub fn new(options: &[PinOptions]) -> Result<Self, String> {
        let mut pins = Vec::new();
        let (mut places, mut names) = (BTreeSet::new(), BTreeSet::new());
        for options in options {
            let place = options.pin;
            let pin = Pin::of(options).map_err(|why| format!("pin {place}: {why}"))?;
            if !places.insert(place) {
                return Err(format!("pin {place} is configured twice"));
            }
            if let Some(name) = &pin.name
                && !names.insert(name.clone())
            {
                return Err(format!("two pins have the name {name:?}"));
            }
            pins.push(pin);
        }
        Ok(Self(pins))
    }

    /// The pins.
    #[must_use]
    pub fn into_vec(self) -> Vec<Pin> {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pins(text: &str) -> Result<Vec<Pin>, String> {
        #[derive(Deserialize)]
        struct File {
            pin: Vec<PinOptions>,
        }
        let file: File = toml::from_str(text).map_err(|error| error.message().to_owned())?;
        Pins::new(&file.pin).map(Pins::into_vec)
    }

    fn pin(text: &str) -> Result<Pin, String> {
        let options: PinOptions = text.parse()?;
        let mut pins = Pins::new(&[options])?.into_vec();
        Ok(pins.remove(0))
    }

    #[test]
    fn a_file_and_the_command_line_describe_the_same_pins() {
        let file = pins(
            "[[pin]]\npin = 13\nname = \"led\"\nmode = \"output\"\n\
             [[pin]]\npin = \"A0\"\nmode = \"analog\"\n\
             [[pin]]\npin = 2\nmode = \"input-pull-up\"\n\
             [[pin]]\npin = 5\nmode = \"pwm\"\nsafe = 20\n\
             [[pin]]\npin = 9\nmode = \"servo\"\nsafe = \"release\"\n",
        );
        let words = [
            "led=13:output",
            "A0:analog",
            "2:input-pull-up",
            "5:pwm:20",
            "9:servo:release",
        ];
        let line: Result<Vec<_>, _> = words.map(pin).into_iter().collect();
        assert_eq!(file, line);
        let pins = file.unwrap();
        assert_eq!(pins[0].to_string(), "pin 13 (led)");
        assert_eq!(pins[1].to_string(), "pin A0");
    }

    #[test]
    fn each_kind_of_output_has_its_safe_value() {
        for (text, safe) in [
            ("13:output", None),
            ("13:output:keep", None),
            ("13:output:low", Some(Value::Level(false))),
            ("13:output:high", Some(Value::Level(true))),
            ("5:pwm", Some(Value::Duty(0.0))),
            ("5:pwm:7.5", Some(Value::Duty(7.5))),
            ("5:pwm:keep", None),
            ("9:servo", None),
            ("9:servo:keep", None),
            ("9:servo:release", Some(Value::Released)),
            ("9:servo:90", Some(Value::Pulse(1472))),
            ("2:input", None),
        ] {
            assert_eq!(pin(text).unwrap().safe, safe, "{text}");
        }
        let turning = "[[pin]]\npin = 9\nmode = \"servo\"\ncontinuous = true\n";
        assert_eq!(pins(turning).unwrap()[0].safe, Some(Value::Released));
        let error = pins(&format!("{turning}safe = \"keep\"\n")).unwrap_err();
        assert!(
            error.ends_with("release or an angle, as it turns like a motor"),
            "{error}"
        );
    }

    #[test]
    fn invalid_pins_are_rejected() {
        for (text, error) in [
            ("13", "\"13\" is not like led=13:output or 5:pwm:0"),
            ("13:output:low:1", "is not like led=13:output"),
            (
                "13:out",
                "\"out\" is none of input, input-pull-up, output, analog, pwm, servo",
            ),
            (
                "128:output",
                "\"128\" is no pin: use its number, such as 13, or A0 to A15",
            ),
            ("+5:output", "\"+5\" is no pin"),
            (":output", "\"\" is no pin"),
            ("A16:analog", "\"A16\" is no pin"),
            (
                "5=13:output",
                "pin 13: the name \"5\" looks like another pin",
            ),
            (
                "a1=13:output",
                "pin 13: the name \"a1\" looks like another pin",
            ),
            (
                "=13:output",
                "pin 13: the name \"\" must have 1 to 32 letters",
            ),
            (
                "the led=13:output",
                "pin 13: the name \"the led\" must have",
            ),
            ("13:output:1", "pin 13: safe must be low, high or keep"),
            (
                "13:output:no",
                "safe: \"no\" is neither low, high, release, keep nor a number",
            ),
            (
                "5:pwm:101",
                "pin 5: safe must be 0 to 100, in percent, or keep",
            ),
            (
                "5:pwm:nan",
                "pin 5: safe must be 0 to 100, in percent, or keep",
            ),
            (
                "9:servo:low",
                "pin 9: safe must be release, keep or an angle",
            ),
            (
                "9:servo:181",
                "pin 9: safe: it turns from 0 to 180 degrees, not to 181",
            ),
            ("2:input:low", "pin 2: safe is only for outputs"),
        ] {
            let found = pin(text).unwrap_err();
            assert!(found.contains(error), "{text}: {found}");
        }
        for (text, error) in [
            ("pin = 13.5\nmode = \"output\"", "\"13.5\" is no pin"),
            ("pin = -1\nmode = \"output\"", "\"-1\" is no pin"),
            ("pin = 13\nmode = \"out\"", "unknown variant `out`"),
            (
                "pin = 13\nmode = \"output\"\nmin_us = 600",
                "min_us is only for servos",
            ),
            (
                "pin = 9\nmode = \"servo\"\nmin_us = 500",
                "pulses are 544 to 2500 us",
            ),
            (
                "pin = 9\nmode = \"servo\"\nus_per_deg = 0",
                "us_per_deg must not be 0",
            ),
            (
                "pin = 9\nmode = \"servo\"\nmin_deg = 181",
                "min must not exceed max",
            ),
            (
                "pin = 9\nmode = \"servo\"\nwidth = 1",
                "unknown field `width`",
            ),
            (
                "pin = 9\nmode = \"servo\"\n[[pin]]\npin = 9\nmode = \"pwm\"",
                "pin 9 is configured twice",
            ),
            (
                "pin = 9\nname = \"x\"\nmode = \"servo\"\n[[pin]]\npin = 5\nname = \"x\"\nmode = \"pwm\"",
                "two pins have the name \"x\"",
            ),
        ] {
            let found = pins(&format!("[[pin]]\n{text}\n")).unwrap_err();
            assert!(found.contains(error), "{text}: {found}");
        }
    }

    #[test]
    fn angles_are_pulses_within_the_range() {
        let range = pin("9:servo").unwrap().range;
        for (deg, us) in [(0.0, 544), (90.0, 1472), (180.0, 2400)] {
            assert_eq!(range.pulse_us(deg), Ok(us));
            assert!((range.angle_deg(us) - deg).abs() < 1e-9);
        }
        for deg in [-0.1, 180.1, f64::NAN, f64::INFINITY] {
            let error = range.pulse_us(deg).unwrap_err();
            assert!(error.starts_with("turns from 0 to 180 degrees"), "{error}");
        }
        assert_eq!(range.check_us(544), Ok(544));
        let error = range.check_us(543).unwrap_err();
        assert_eq!(error, "takes pulses of 544 to 2400 us, not of 543");
        assert!(range.check_us(70_000).is_err());
        let text = "[[pin]]\npin = 9\nmode = \"servo\"\nmin_deg = -45\nmax_deg = 45\n\
                    zero_us = 1500\nus_per_deg = -10\nmin_us = 1200\n";
        let range = pins(text).unwrap()[0].range;
        assert_eq!(range.pulse_us(-45.0), Ok(1950));
        let error = range.pulse_us(40.0).unwrap_err();
        assert_eq!(error, "takes pulses of 1200 to 2400 us, not of 1100");
    }
}
