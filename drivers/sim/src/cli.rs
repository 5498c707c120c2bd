//! The command `amber sim`. IO.

mod start;

use std::fmt;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use amber_map::{BUILT_IN, Map, MapFile};
use clap::{Args, Subcommand, ValueEnum};
use tokio::io::AsyncReadExt;
use tokio::signal::unix::{SignalKind, signal};

use self::start::Start;
use crate::control::{self, Answer, BoardPin, Request, Servo, SimulationState};
use crate::device::Device;
use crate::gamepad::Hold;
use crate::robot::Fault;
use crate::simulator::{self, Simulator};

/// `amber sim`, and commands for a running simulation.
#[derive(Args, Clone, Debug)]
#[command(after_help = "Examples:
  amber sim
  amber sim --map lab.roson --start 1.5,2,90
  amber sim state
  amber sim fault unplug hokuyo --for 10")]
pub struct Options {
    /// Folder for the links to the devices and the control socket
    #[arg(long, value_name = "FOLDER", env = "AMBER_SIM_DIR", default_value_os_t = default_folder(), hide_default_value = true, global = true)]
    pub dir: PathBuf,
    #[command(flatten)]
    start: Start,
    #[command(subcommand)]
    verb: Option<Verb>,
}

#[derive(Clone, Debug, Subcommand)]
enum Verb {
    /// Show the true state: where the robot is, and what it touched
    #[command(after_help = "Example:\n  amber sim state")]
    State,
    /// Start or clear a fault
    #[command(after_help = "Examples:
  amber sim fault unplug hokuyo --for 10
  amber sim fault stuck-wheel front-left
  amber sim fault clear")]
    Fault {
        /// Fault
        kind: FaultKind,
        #[arg(help = format!("Device ({}) or wheel (front-left and so on)", Device::names()))]
        about: Option<String>,
        /// Clear the fault after this time, in simulated seconds
        #[arg(long = "for", value_name = "SECONDS")]
        seconds: Option<f64>,
    },
    /// Pull the reset line of the motor controllers
    #[command(after_help = "Example:\n  amber sim reset")]
    Reset,
    /// Hold parts of the simulated gamepad, and release all others
    #[command(after_help = "Examples:
  amber sim hold left-shoulder left-y=0.5
  amber sim hold")]
    Hold {
        #[arg(
            value_name = "PART[=VALUE]",
            help = format!("Sticks from -1 to 1, triggers from 0 to 1, and buttons ({})", Hold::names())
        )]
        parts: Vec<Hold>,
    },
    /// Turn a servo on a bus by hand; its motor must be off
    #[command(after_help = "Example, to the middle of a turn:\n  amber sim turn 3 2048")]
    Turn {
        /// The id of the servo
        #[arg(value_name = "ID")]
        servo: u8,
        /// Where to, in steps as `amber sim state` shows them
        #[arg(value_name = "STEPS", allow_hyphen_values = true)]
        steps: f64,
    },
    /// Move the robot to another place
    #[command(after_help = "Example:\n  amber sim place 1.2,1,90")]
    Place {
        /// Position as in the map: metres with y down, degrees clockwise
        #[arg(value_name = "X,Y,HEADING", allow_hyphen_values = true)]
        place: PoseArgument,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
enum FaultKind {
    /// Unplug a device
    Unplug,
    /// Plug a device in again
    Replug,
    /// A device does not respond
    Stall,
    /// A device sends corrupt data
    Corrupt,
    /// The battery is almost empty
    LowBattery,
    /// A current of 10 A makes the battery dip by 0.8 V
    SaggingBattery,
    /// A wheel does not turn
    StuckWheel,
    /// Something is between the robot and the sky: no GPS
    Tunnel,
    /// A Create 2 feels that its wheels hang in the air
    Lift,
    /// The camera sends the same picture again and again
    FrozenPicture,
    /// The light is off
    DarkPicture,
    /// The end of each picture is missing
    HalfPicture,
    /// The Huffman tables of pictures are missing
    NoTables,
    /// The camera takes two pictures per second
    SlowPictures,
    /// Clear all faults
    Clear,
}

/// A pose in map coordinates.
#[derive(Clone, Copy, Debug, PartialEq)]
struct PoseArgument {
    x_m: f64,
    y_m: f64,
    heading_deg: f64,
}

/// Why a command failed.
#[derive(Debug)]
pub struct Failure {
    /// What happened, in lower case.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
    /// Whether the request is invalid in itself.
    pub wrong_request: bool,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

impl From<simulator::Error> for Failure {
    fn from(error: simulator::Error) -> Self {
        use simulator::Error::{InUse, Io, Unsafe};
        Self {
            message: error.to_string(),
            hint: error.hint().map(str::to_owned),
            wrong_request: !matches!(error, InUse(_) | Io { .. } | Unsafe(_)),
        }
    }
}

impl FromStr for PoseArgument {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers: Vec<f64> = text
            .split(',')
            .map(|number| {
                number
                    .trim()
                    .parse()
                    .ok()
                    .filter(|number: &f64| number.is_finite())
            })
            .collect::<Option<_>>()
            .unwrap_or_default();
        match numbers[..] {
            [x_m, y_m] => Ok(Self {
                x_m,
                y_m,
                heading_deg: 0.0,
            }),
            [x_m, y_m, heading_deg] => Ok(Self {
                x_m,
                y_m,
                heading_deg,
            }),
            _ => Err("two or three numbers are needed, as in 1.5,2,90".to_owned()),
        }
    }
}

impl Options {
    /// The configuration, with the map loaded.
    ///
    /// # Errors
    /// The map cannot be read or is invalid.
    pub fn config(&self) -> Result<simulator::Config, Failure> {
        self.start.config(self.dir.clone())
    }
}

/// Runs a simulation until Ctrl-C, or sends a request to the running one. Data goes to stdout;
/// `json` selects JSON.
///
/// # Errors
/// See [`Failure`].
pub fn run(options: &Options, json: bool) -> Result<(), Failure> {
    let Some(verb) = &options.verb else {
        return simulate(options, json);
    };
    match ask(&options.dir, request(verb)?)? {
        Answer::Error(message) => Err(Failure {
            message,
            hint: None,
            wrong_request: true,
        }),
        Answer::Done if json => print("{}\n"),
        Answer::Done => Ok(()),
        Answer::State(state) if json => {
            let text = serde_json::to_string(&state).map_err(|error| failure(error.to_string()))?;
            print(&format!("{text}\n"))
        }
        Answer::State(state) => print(&people(&state)),
    }
}

/// The default folder: one per user.
#[must_use]
pub fn default_folder() -> PathBuf {
    match std::env::var_os("XDG_RUNTIME_DIR") {
        Some(folder) if !folder.is_empty() => Path::new(&folder).join("amber-sim"),
        _ => {
            let user = rustix::process::getuid().as_raw();
            PathBuf::from(format!("/tmp/amber-sim-{user}"))
        }
    }
}

fn simulate(options: &Options, json: bool) -> Result<(), Failure> {
    let config = options.config()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| failure(format!("cannot start: {error}")))?;
    let result = runtime.block_on(async {
        let end = end(options.start.until_eof)?;
        let simulator = Simulator::open(config).await?;
        let mut text = String::new();
        for (device, path) in simulator.devices() {
            if json {
                let line = serde_json::json!({ "device": device.name(), "path": path });
                text.push_str(&format!("{line}\n"));
            } else {
                text.push_str(&format!("{device} {path}\n"));
            }
        }
        print(&text)?;
        Ok(simulator.run(end).await?)
    });
    // A thread may still be reading stdin.
    runtime.shutdown_background();
    result
}

/// Completes at Ctrl-C, SIGTERM or SIGHUP, and at the end of stdin if `until_eof` is set.
fn end(until_eof: bool) -> Result<impl Future<Output = ()>, Failure> {
    let on =
        |kind| signal(kind).map_err(|error| failure(format!("cannot wait for signals: {error}")));
    let mut interrupt = on(SignalKind::interrupt())?;
    let mut terminate = on(SignalKind::terminate())?;
    let mut hang_up = on(SignalKind::hangup())?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hang_up.recv() => {}
            () = end_of_stdin(), if until_eof => {}
        }
    })
}

async fn end_of_stdin() {
    let mut stdin = tokio::io::stdin();
    let mut buffer = [0; 256];
    while stdin.read(&mut buffer).await.is_ok_and(|count| count > 0) {}
}

fn request(verb: &Verb) -> Result<Request, Failure> {
    Ok(match verb {
        Verb::State => Request::State,
        Verb::Reset => Request::Reset,
        Verb::Hold { parts } => Request::Hold {
            parts: parts.iter().map(Hold::to_string).collect(),
        },
        Verb::Turn { servo, steps } => match steps.is_finite() {
            true => Request::Turn {
                servo: *servo,
                steps: *steps,
            },
            false => return Err(wrong("the steps must be a number")),
        },
        Verb::Place { place } => Request::Place {
            x_m: place.x_m,
            y_m: place.y_m,
            heading_deg: place.heading_deg,
        },
        Verb::Fault {
            kind: FaultKind::Clear,
            ..
        } => Request::Clear,
        Verb::Fault {
            kind: FaultKind::Replug,
            about,
            ..
        } => Request::Replug {
            device: about
                .clone()
                .ok_or_else(|| wrong("replug needs the name of a device"))?,
        },
        Verb::Fault {
            kind,
            about,
            seconds,
        } => {
            let fault = kind
                .to_possible_value()
                .map(|value| value.get_name().to_owned())
                .unwrap_or_default();
            Fault::parse(&fault, about.as_deref()).map_err(|error| wrong(&error.to_string()))?;
            if seconds.is_some_and(|seconds| seconds.is_nan() || seconds < 0.0) {
                return Err(wrong("the duration of a fault must not be negative"));
            }
            Request::Fault {
                fault,
                about: about.clone(),
                seconds: *seconds,
            }
        }
    })
}

fn ask(folder: &Path, request: Request) -> Result<Answer, Failure> {
    control::ask(folder, &request).map_err(|error| {
        let is_absent = matches!(
            error.kind(),
            io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused
        );
        if is_absent {
            Failure {
                message: format!("no simulation is running in {}", folder.display()),
                hint: Some(
                    "start one with `amber sim`, or select its folder with --dir".to_owned(),
                ),
                wrong_request: false,
            }
        } else {
            failure(format!(
                "the simulation in {} does not answer: {error}",
                folder.display()
            ))
        }
    })
}

/// A map: a file, or a map of the program if there is no such file.
///
/// # Errors
/// The file cannot be read, is too long, or is invalid.
pub fn map(file: &Path) -> Result<MapFile, Failure> {
    let built_in = BUILT_IN.iter().find(|(name, _)| file == Path::new(name));
    let map = match built_in.filter(|_| !file.exists()) {
        Some((_, text)) => MapFile::read(file, |_| Ok(text.as_bytes().to_vec())),
        None => MapFile::open(file),
    };
    map.map_err(|error| Failure {
        hint: Some(format!("{}; --map also takes flat or maze", error.hint())),
        ..wrong(&error.to_string())
    })
}

fn read_map(file: &Path) -> Result<Map, Failure> {
    let walls = map(file)?.into_walls();
    walls.map_err(|error| wrong(&format!("{}: {error}", file.display())))
}

/// Formats the state for people.
fn people(state: &SimulationState) -> String {
    let wheels = state.wheels_mm_per_s;
    let mut text = format!(
        "time       {:.1} s{}\n\
         pose       x {:.3} m, y {:.3} m, heading {:.1} deg (map: y down, clockwise)\n\
         wheels     front {:.0} {:.0}, rear {:.0} {:.0} mm/s (left, right)\n\
         travelled  {:.3} m\n\
         contacts   {}{}\n\
         clearance  {:.3} m\n\
         scans      {}, laser {}\n\
         markers    {}\n\
         servos     {}\n",
        state.time_s,
        left_out(state.left_out_s),
        state.x_m,
        state.y_m,
        state.heading_deg,
        wheels.front_left,
        wheels.front_right,
        wheels.rear_left,
        wheels.rear_right,
        state.travelled_m,
        state.contacts,
        if state.touching { ", touching now" } else { "" },
        state.clearance_m,
        state.scans,
        if state.laser_on { "on" } else { "off" },
        markers(&state.markers),
        servos(&state.servos),
    );
    if !state.i2c_servos.is_empty() {
        text.push_str(&format!("i2c servos {}\n", servos(&state.i2c_servos)));
    }
    if !state.board.is_empty() {
        text.push_str(&format!("board      {}\n", board(&state.board)));
    }
    for fault in &state.faults {
        text.push_str(&format!("fault      {fault}\n"));
    }
    text
}

/// Says that simulated time is slower than real time, if that is visible.
fn left_out(seconds: f64) -> String {
    match seconds < 0.05 {
        true => String::new(),
        false => format!(", and {seconds:.1} s left out: the machine was too busy"),
    }
}

/// The servos that receive pulses.
fn servos(servos: &[Servo]) -> String {
    let driven = servos
        .iter()
        .enumerate()
        .filter(|(_, servo)| servo.target_us > 0.0);
    let angle =
        |(channel, servo): (usize, &Servo)| format!("{channel} at {:.1} deg", servo.angle_deg);
    let angles: Vec<_> = driven.map(angle).collect();
    match angles.is_empty() {
        true => "none receives pulses".to_owned(),
        false => angles.join(", "),
    }
}

/// The outputs of a board that are not 0.
fn board(pins: &[BoardPin]) -> String {
    let set = pins.iter().filter(|pin| pin.value > 0);
    let set = set.map(|pin| format!("pin {} {} {}", pin.number, pin.mode, pin.value));
    let set: Vec<_> = set.collect();
    match set.is_empty() {
        true => "all outputs are 0".to_owned(),
        false => set.join(", "),
    }
}

fn markers(in_view: &[u32]) -> String {
    match in_view {
        [] => "none in view".to_owned(),
        [nearest, others @ ..] => others
            .iter()
            .fold(format!("{nearest} in view"), |text, other| {
                format!("{text}, {other}")
            }),
    }
}

/// Writes data to stdout. A closed pipe is not an error.
fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(failure(format!("cannot write: {error}")))
        }
        _ => Ok(()),
    }
}

fn failure(message: String) -> Failure {
    Failure {
        message,
        hint: None,
        wrong_request: false,
    }
}

fn wrong(message: &str) -> Failure {
    Failure {
        message: message.to_owned(),
        hint: None,
        wrong_request: true,
    }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use super::*;
    use crate::hokuyo::Model;
    use crate::roboclaw::Firmware;

    #[derive(Debug, Parser)]
    struct Cli {
        #[command(flatten)]
        options: Options,
    }

    fn parse(line: &str) -> Options {
        Cli::try_parse_from(line.split(' ')).expect(line).options
    }

    /// Checks the request for a running simulation that a command line produces, or its error.
    fn check(line: &str, expected: Result<Request, &str>) {
        let verb = parse(line).verb.expect("a verb");
        let found = request(&verb);
        match (found, expected) {
            (Ok(found), Ok(expected)) => assert_eq!(found, expected, "{line}"),
            (Err(failure), Err(message)) => {
                assert_eq!(failure.to_string(), message, "{line}");
                assert!(failure.wrong_request);
            }
            other => panic!("{line}: {other:?}"),
        }
    }

    fn fault(name: &str, about: Option<&str>, seconds: Option<f64>) -> Request {
        Request::Fault {
            fault: name.to_owned(),
            about: about.map(str::to_owned),
            seconds,
        }
    }

    #[test]
    fn the_options_are_valid() {
        Cli::command().debug_assert();
    }

    #[test]
    fn command_lines_become_requests() {
        check("sim state", Ok(Request::State));
        check("sim reset", Ok(Request::Reset));
        check(
            "sim hold left-shoulder left-y=-0.5",
            Ok(Request::Hold {
                parts: vec!["left-shoulder".to_owned(), "left-y=-0.5".to_owned()],
            }),
        );
        let turn = Request::Turn {
            servo: 3,
            steps: -20.5,
        };
        check("sim turn 3 -20.5", Ok(turn));
        check("sim turn 3 nan", Err("the steps must be a number"));
        check("sim fault clear", Ok(Request::Clear));
        check(
            "sim fault low-battery",
            Ok(fault("low-battery", None, None)),
        );
        check(
            "sim fault unplug hokuyo --for 10",
            Ok(fault("unplug", Some("hokuyo"), Some(10.0))),
        );
        check(
            "sim fault stuck-wheel rear-left",
            Ok(fault("stuck-wheel", Some("rear-left"), None)),
        );
        check(
            "sim place -1,2.5,-90",
            Ok(Request::Place {
                x_m: -1.0,
                y_m: 2.5,
                heading_deg: -90.0,
            }),
        );
        check("sim fault stall", Err("stall needs the name of a device"));
        check("sim fault replug", Err("replug needs the name of a device"));
        check(
            "sim fault low-battery --for nan",
            Err("the duration of a fault must not be negative"),
        );
    }

    #[test]
    fn options_become_a_configuration() {
        let line = "sim --dir /here --start 1,2 --roboclaw legacy --hokuyo utm-30lx --speed 5";
        let config = parse(line).config().unwrap();
        assert_eq!(config.folder, Path::new("/here"));
        assert_eq!(config.start, Some((1.0, 2.0, 0.0)));
        assert_eq!(config.devices.roboclaw.firmware, Firmware::Legacy);
        assert_eq!(config.devices.hokuyo.model, Model::Utm30Lx);
        assert_eq!(config.speed, 5.0);
        assert_eq!(config.map.name, "flat");
        assert_eq!(parse("sim --map maze").config().unwrap().map.name, "maze");
        assert_eq!(parse("sim state --dir /there").dir, Path::new("/there"));
    }

    #[test]
    fn unreadable_maps_are_reported() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("bad.roson");
        std::fs::write(&file, "{}").unwrap();
        for (file, message) in [
            (file, "bad.roson: not a .roson map: missing field `walls`"),
            (folder.path().join("none"), "none: No such file"),
        ] {
            let line = format!("sim --map {}", file.display());
            let failure = parse(&line).config().unwrap_err();
            assert!(failure.message.contains(message), "{failure}");
            assert!(failure.wrong_request);
        }
        assert!(Cli::try_parse_from(["sim", "--start", "1,x"]).is_err());
    }

    #[test]
    fn without_a_simulation_there_is_an_error_with_a_hint() {
        let folder = tempfile::tempdir().unwrap();
        let failure = ask(folder.path(), Request::State).unwrap_err();
        assert!(failure.message.starts_with("no simulation is running in "));
        assert!(failure.hint.is_some() && !failure.wrong_request);
    }
}
