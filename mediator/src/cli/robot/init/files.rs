//! The text of `amber.toml` and `robot.toml`. PURE.

use std::fmt::Write as _;
use std::path::Path;

use amber_drivers::probe::Kind;
use amber_proto::printable_line;

use super::look::{BATTERY, Finding, LASER, Looked, MOTION_SENSOR, State, WHEELS};

/// What the machine cannot know about the robot. The defaults fit the Capo robot.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Robot {
    pub(super) name: String,
    pub(super) length_mm: f64,
    pub(super) width_mm: f64,
    /// How far the laser is ahead of the centre between the wheels.
    pub(super) laser_offset_mm: f64,
    pub(super) wheel_radius_mm: f64,
    /// Encoder pulses per turn of a wheel.
    pub(super) pulses_per_turn: f64,
    /// Pulses per second of a motor at full power; `None` if the driver does not need it.
    pub(super) max_qpps: Option<f64>,
    /// The distance between left and right wheels in turns, compared with the width.
    track_per_width: f64,
}

impl Robot {
    /// A robot with this name, and the usual numbers for its wheels and the options of their driver:
    /// those of the Capo robot with RoboClaws, and those of a small kit with an Arduino, VESCs or an
    /// ODrive.
    pub(super) fn new(name: String, wheels: Option<(Kind, &[String])>) -> Self {
        let is_single = |option: &String| option.starts_with("--address=");
        match wheels {
            Some((Kind::Diffdrive | Kind::Vesc | Kind::Odrive, _)) => Self::small(name),
            Some((Kind::Create2, _)) => Self::create2(name),
            // One controller usually has two wheels, which do not skid.
            Some((Kind::Roboclaw, options)) if options.iter().any(is_single) => Self {
                track_per_width: 1.0,
                ..Self::capo(name)
            },
            _ => Self::capo(name),
        }
    }

    /// Two wheels of 65 mm, with encoders on motors with a gear of 1:30.
    fn small(name: String) -> Self {
        Self {
            name,
            length_mm: 200.0,
            width_mm: 180.0,
            laser_offset_mm: 0.0,
            wheel_radius_mm: 32.5,
            pulses_per_turn: 1_320.0,
            max_qpps: None,
            track_per_width: 1.0,
        }
    }

    /// A round base of 340 mm, whose wheels are 235 mm apart.
    fn create2(name: String) -> Self {
        Self {
            name,
            length_mm: 340.0,
            width_mm: 340.0,
            laser_offset_mm: 0.0,
            wheel_radius_mm: 36.0,
            pulses_per_turn: 508.8,
            max_qpps: None,
            track_per_width: 235.0 / 340.0,
        }
    }

    fn capo(name: String) -> Self {
        Self {
            name,
            length_mm: 370.0,
            width_mm: 330.0,
            laser_offset_mm: 0.0,
            wheel_radius_mm: 60.0,
            pulses_per_turn: 1_865.0,
            max_qpps: Some(13_800.0),
            // Four wheels skid: they turn as if they were further apart.
            track_per_width: 420.0 / 330.0,
        }
    }

    /// The effective distance between left and right wheels in turns.
    fn track_mm(&self) -> f64 {
        (self.width_mm * self.track_per_width).round()
    }

    /// The speed of the wheels at full power, at most the limit of the Capo robot. If it is not known:
    /// what kits of motors reach.
    fn max_speed_mm_s(&self) -> f64 {
        let Some(max_qpps) = self.max_qpps else {
            return 500.0;
        };
        let turns_per_s = max_qpps / self.pulses_per_turn;
        let full_mm_s = turns_per_s * std::f64::consts::TAU * self.wheel_radius_mm;
        full_mm_s.clamp(1.0, 1_200.0).floor()
    }
}

/// Both files.
#[derive(Clone, Debug)]
pub(super) struct Files {
    pub(super) amber: String,
    pub(super) robot: String,
    /// Whether a driver needs the folder for maps.
    pub(super) has_maps: bool,
}

/// The name under which drivers expect the map.
const MAP: &str = "home";

/// Writes both files. `maps` is the folder for maps.
pub(super) fn write(looked: &Looked, robot: &Robot, maps: &Path) -> Files {
    let has = |device_type| looked.first(device_type).is_some();
    let has_maps = has(LASER) && has(WHEELS);
    Files {
        amber: amber(looked, robot, has_maps.then_some(maps)),
        robot: robot_file(looked, robot, has_maps),
        has_maps,
    }
}

/// The command of the driver of a device.
pub(super) fn command(finding: &Finding, kind: Kind, robot: &Robot) -> Vec<String> {
    let (driver, option) = (kind.probe().driver, kind.place_option());
    let words = ["amber", "driver", driver, option, finding.place.as_str()];
    let mut command: Vec<_> = words.map(str::to_owned).into();
    command.extend(finding.options.iter().cloned());
    match kind {
        Kind::Roboclaw => {
            command.extend([
                format!("--wheel-radius-mm={}", robot.wheel_radius_mm),
                format!("--pulses-per-turn={}", robot.pulses_per_turn),
            ]);
        }
        Kind::Diffdrive => command.extend([
            format!("--wheel-diameter-mm={}", 2.0 * robot.wheel_radius_mm),
            format!("--counts-per-turn={}", robot.pulses_per_turn),
        ]),
        Kind::Create2 => {}
        Kind::Vesc | Kind::Odrive => {
            if kind == Kind::Vesc {
                command.extend(["--can-id=1", "--pole-pairs=7"].map(str::to_owned));
            }
            command.extend([
                "--gear-ratio=1".to_owned(),
                format!("--wheel-diameter-mm={}", 2.0 * robot.wheel_radius_mm),
            ]);
        }
        _ => return command,
    }
    // What robot.toml says holds at the motors.
    command.push(format!("--max-speed-mm-s={}", robot.max_speed_mm_s()));
    command
}

fn amber(looked: &Looked, robot: &Robot, maps: Option<&Path>) -> String {
    let mut out = "\
# Written by `amber init`, and yours to change: `amber reload` reads it again.
# docs/configuration.md explains all keys; `amber doctor -c amber.toml` checks this file.

[mediator]
# Programs on other computers may use and drive the robot. To let only those on this one:
# listen = [\"127.0.0.1:26233\"]
"
    .to_owned();
    for (finding, kind, device) in looked.configured() {
        comment(&mut out, &finding.what, true);
        if let Some(note) = finding
            .note
            .as_deref()
            .filter(|_| finding.state != State::Ready)
        {
            comment(&mut out, &format!("When this was written: {note}"), false);
        }
        if kind == Kind::Roboclaw {
            out += "\
# Wrong numbers make the wheels turn at wrong speeds. Check them with the wheels off the ground:
# `amber drive --left 200 --right 200 --for 2`, while `amber watch roboclaw` shows the speeds.
#   pulses-per-turn: pulses of the encoder per turn of the motor, times 4, times the gear
#   if a wheel turns the wrong way: --reverse-left true, --reverse-right true, --swap-sides true
# The controllers keep the speed control that Motion Studio has stored in them. To set that of the
# Capo robot at each start: --preset=capo.
";
        }
        if kind == Kind::Diffdrive {
            out += "\
# Wrong numbers make the wheels turn at wrong speeds. Check them with the wheels off the ground:
# `amber drive --left 100 --right 100 --for 2`, while `amber watch roboclaw` shows the speeds.
#   counts-per-turn: turn a wheel by hand ten times, and see how far its encoder counts
#   if a wheel turns the wrong way: --reverse-left true, --reverse-right true, --swap-sides true
";
        }
        if kind == Kind::Vesc {
            out += "\
# These numbers are guesses. VESC Tool shows them: can-id is VESC ID of the other VESC in App
# Settings, General; pole-pairs is half of Motor Poles in Motor Settings, Additional Info.
#   gear-ratio: turns of a motor per turn of its wheel
#   if the other VESC has a port of its own: --second-port=PORT instead of --can-id
# Check them with the wheels off the ground: `amber drive --left 300 --right 300 --for 2`, while
# `amber watch roboclaw` shows the speeds.
#   if a wheel turns the wrong way: --reverse-left true, --reverse-right true, --swap-sides true
";
        }
        if kind == Kind::Odrive {
            out += "\
# Wrong numbers make the wheels turn at wrong speeds. Check them with the wheels off the ground:
# `amber drive --left 300 --right 300 --for 2`, while `amber watch roboclaw` shows the speeds.
#   gear-ratio: turns of a motor per turn of its wheel
#   if a wheel turns the wrong way: --reverse-left true, --reverse-right true, --swap-sides true
# The driver does not calibrate the motors: do it in odrivetool, and store it there.
";
        }
        if kind == Kind::Ldrobot {
            out += "\
# It does not tell which one it is. `--model`: ld19 (also STL-19P; without the option), ld06, ld14p.
";
        }
        if kind == Kind::Ina2xx {
            out += "\
# `--shunt-mohm`: what is printed on its shunt; R100 is 100, as without the option, and R010 is 10.
# If the current is positive while the battery is used: --invert-current true.
# With --cells and --chemistry, it also says how full the battery is: docs/robot.md
";
        }
        if matches!(kind, Kind::Feetech | Kind::Dynamixel) {
            out += "\
# For an arm, `amber arm calibrate arm.json` writes its calibration while you move the joints by hand.
# Then add a [[driver]] with the device \"arm:0\": docs/arms.md
";
        }
        if kind == Kind::Camera {
            out += "\
# 640 x 480 pixels, 15 times per second, unless you add --width, --height and --rate.
# `amber call camera info` shows what it offers. With `--calibration FILE`, programs can measure in
# its pictures: docs/hardware.md
";
        }
        if kind == Kind::Firmata {
            out += "\
# Name the pins that are used, each with `--pin`: \"--pin\", \"led=13:output\", \"--pin\", \"light=A0:analog\".
# docs/hardware.md explains the modes, and the safe values of what moves.
";
        }
        let devices = [&[device.to_owned()], besides(kind, device).as_slice()].concat();
        driver_of(&mut out, &devices, &command(finding, kind, robot));
    }
    let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
    comment(
        &mut out,
        "The shape of the robot, for all that drive or draw it",
        true,
    );
    driver(
        &mut out,
        "robot:0",
        &words("amber driver robot --config robot.toml"),
    );
    // An Arduino does not measure the battery, and a sensor measures it better.
    if let (None, Some((_, Kind::Roboclaw | Kind::Create2 | Kind::Vesc | Kind::Odrive, wheels))) =
        (looked.first(BATTERY), looked.first_of(WHEELS))
    {
        comment(
            &mut out,
            "The battery. With --cells and --chemistry, it also says how full it is: docs/robot.md",
            true,
        );
        let line = format!("amber driver battery --of {wheels}");
        driver(&mut out, "battery:0", &words(&line));
    }
    if let Some(maps) = maps {
        let folder = maps.display().to_string();
        let map = maps.join(format!("{MAP}.roson")).display().to_string();
        comment(
            &mut out,
            "Drives the wheels, and stops before obstacles",
            true,
        );
        let line = "amber driver collision_avoidance";
        driver(&mut out, "collision-avoidance:0", &words(line));
        comment(
            &mut out,
            &format!(
                "Makes maps: `amber map make`, or the button in the dashboard. The next three drivers \
                 need a map with the name {MAP}, and wait for it"
            ),
            true,
        );
        let mut with_path = words("amber driver mapping --maps");
        with_path.push(folder);
        driver(&mut out, "mapping:0", &with_path);
        for (about, device, line) in [
            (
                "The pose on the map",
                "location:0",
                "amber driver location --map",
            ),
            (
                "Drives to points",
                "drive-to-point:0",
                "amber driver drive_to_point --map",
            ),
        ] {
            comment(&mut out, about, true);
            let mut with_path = words(line);
            with_path.push(map.clone());
            driver(&mut out, device, &with_path);
        }
        comment(&mut out, "Follows trajectories", true);
        let line = "amber driver pid_follow_trajectory";
        driver(&mut out, "pid-follow-trajectory:0", &words(line));
    }
    let unused = looked.findings.iter().filter(|it| it.device.is_none());
    let unused: Vec<_> = unused.collect();
    if !unused.is_empty() {
        comment(&mut out, "Found, but not configured:", true);
        for finding in unused {
            let note = finding.note.as_deref().unwrap_or_default();
            comment(
                &mut out,
                &format!("- {} at {}: {note}", finding.what, finding.place),
                false,
            );
        }
    }
    out
}

/// A comment, wrapped; `is_first` puts an empty line before it.
fn comment(out: &mut String, text: &str, is_first: bool) {
    if is_first {
        out.push('\n');
    }
    let mut line = "#".to_owned();
    // Devices choose their own names.
    for word in printable_line(text).split(' ') {
        if line.len() + 1 + word.len() > 100 && line.len() > 1 {
            let _ = writeln!(out, "{line}");
            line = "#  ".to_owned();
        }
        let _ = write!(line, " {word}");
    }
    let _ = writeln!(out, "{line}");
}

fn driver(out: &mut String, device: &str, command: &[String]) {
    driver_of(out, &[device.to_owned()], command);
}

/// A process that serves one or more devices.
fn driver_of(out: &mut String, devices: &[String], command: &[String]) {
    let list = |words: &[String]| {
        let words: Vec<_> = words.iter().map(|word| quoted(word)).collect();
        words.join(", ")
    };
    let devices = match devices {
        [device] => format!("device  = {}", quoted(device)),
        several => format!("devices = [{}]", list(several)),
    };
    let command = list(command);
    let _ = writeln!(out, "[[driver]]\n{devices}\ncommand = [{command}]");
}

/// What the driver of a device serves besides: with the same number.
fn besides(kind: Kind, device: &str) -> Vec<String> {
    let number = device.split_once(':').map_or("0", |(_, number)| number);
    let names = kind.besides().iter();
    names.map(|name| format!("{name}:{number}")).collect()
}

/// A text as a TOML string.
fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

fn robot_file(looked: &Looked, robot: &Robot, has_location: bool) -> String {
    let mut out = format!(
        "\
# Written by `amber init`, and yours to change: the robot uses a change within a second.
# docs/robot.md explains all keys; `amber robot show` draws the robot, and `amber robot check`
# measures what a drawing cannot show.

name = {}
length_mm = {}  # the outline, around the centre between the wheels
width_mm = {}
",
        quoted(&robot.name),
        robot.length_mm,
        robot.width_mm
    );
    let role = |out: &mut String, name: &str, device_type| {
        if let Some(device) = looked.first(device_type) {
            let _ = writeln!(out, "{name} = {}", quoted(device));
        }
    };
    if looked.first(WHEELS).is_some() {
        let _ = writeln!(
            out,
            "\n# The distance between left and right wheels in turns: a guess from the width, until\n\
             # `amber robot check` has measured it.\ntrack_mm = {}\nwheel_radius_mm = {}\n\
             max_speed_mm_s = {}  # commands with a faster wheel are dropped",
            robot.track_mm(),
            robot.wheel_radius_mm,
            robot.max_speed_mm_s(),
        );
        role(&mut out, "wheels", WHEELS);
        let of_base = looked.first_of(WHEELS).into_iter();
        let mut besides = of_base.flat_map(|(_, kind, device)| besides(kind, device));
        if let Some(bumper) = besides.find(|it| it.starts_with("bumper:")) {
            let _ = writeln!(
                out,
                "bumper = {}  # what it touches stops the robot",
                quoted(&bumper)
            );
        }
    }
    if looked.first(LASER).is_some() {
        let _ = writeln!(
            out,
            "\n# How far the laser is ahead of the centre between the wheels (behind: negative). Measure it:\n\
             # with a wrong value, maps are bent.\nlaser_offset_mm = {}\n\
             laser_left_mm = 0  # to the left of the centre\n\
             laser_angle_deg = 0  # its rotation to the right\n\
             laser_mirrored = false  # true: it is mounted upside down",
            robot.laser_offset_mm
        );
        role(&mut out, "laser", LASER);
    }
    if looked.first(MOTION_SENSOR).is_some() {
        out.push_str("\n# The motion sensors: x to the right, y ahead, z up. They detect slipping wheels and bumps.\n");
        role(&mut out, "imu", MOTION_SENSOR);
    }
    if has_location {
        out.push_str("\nlocation = \"location:0\"\n");
    }
    out
}

#[cfg(test)]
mod tests {
    use amber_core::config::Config;

    use super::*;

    fn finding(kind: Kind, device: &str, place: &str) -> Finding {
        Finding {
            place: place.to_owned(),
            state: State::Ready,
            what: format!("a {device}"),
            device: Some(device.to_owned()),
            note: None,
            kind: Some(kind),
            options: Vec::new(),
        }
    }

    fn looked(findings: Vec<Finding>) -> Looked {
        Looked {
            ports: 2,
            buses: 1,
            findings,
            left_alone: Vec::new(),
        }
    }

    fn written(findings: Vec<Finding>) -> (Files, Config) {
        let files = write(
            &looked(findings),
            &Robot::capo("ada".into()),
            Path::new("maps"),
        );
        let config = Config::parse(&files.amber, Path::new("amber.toml"), &|_| None);
        let config = config.unwrap_or_else(|error| panic!("{error}\n{}", files.amber));
        (files, config)
    }

    fn devices(config: &Config) -> Vec<String> {
        let drivers = config.drivers.iter();
        drivers.map(|it| it.devices[0].to_string()).collect()
    }

    #[test]
    fn a_robot_with_laser_and_wheels_can_make_maps_and_drive_on_them() {
        let (files, config) = written(vec![
            finding(Kind::Hokuyo, "hokuyo:0", "/dev/serial/by-id/usb-Hokuyo"),
            finding(Kind::Roboclaw, "roboclaw:0", "/dev/ttyACM1"),
            finding(Kind::Ninedof, "ninedof:0", "/dev/i2c-1"),
        ]);
        let expected = [
            "hokuyo:0",
            "roboclaw:0",
            "ninedof:0",
            "robot:0",
            "battery:0",
            "collision-avoidance:0",
            "mapping:0",
            "location:0",
            "drive-to-point:0",
            "pid-follow-trajectory:0",
        ];
        assert_eq!(devices(&config), expected);
        assert!(files.has_maps);
        let line = |at: usize| config.drivers[at].command.join(" ");
        assert_eq!(
            line(0),
            "amber driver hokuyo --port /dev/serial/by-id/usb-Hokuyo"
        );
        assert_eq!(line(2), "amber driver ninedof --bus /dev/i2c-1");
        assert_eq!(line(7), "amber driver location --map maps/home.roson");
        for key in [
            "name = \"ada\"",
            "track_mm = 420",
            "max_speed_mm_s = 1200",
            "laser_offset_mm = 0",
            "wheels = \"roboclaw:0\"",
            "laser = \"hokuyo:0\"",
            "imu = \"ninedof:0\"",
            "location = \"location:0\"",
        ] {
            assert!(files.robot.contains(key), "{key}:\n{}", files.robot);
        }
    }

    #[test]
    fn another_model_has_the_same_role() {
        let (files, config) = written(vec![
            finding(Kind::Ldrobot, "hokuyo:0", "/dev/ttyUSB0"),
            finding(Kind::Roboclaw, "roboclaw:0", "/dev/ttyACM1"),
        ]);
        let first = &config.drivers[0];
        assert_eq!(first.devices[0].to_string(), "hokuyo:0");
        assert_eq!(
            first.command.join(" "),
            "amber driver ldrobot --port /dev/ttyUSB0"
        );
        assert!(files.has_maps && files.robot.contains("laser = \"hokuyo:0\""));
    }

    #[test]
    fn a_base_with_two_wheels_has_no_battery_and_another_track() {
        let found = finding(Kind::Diffdrive, "roboclaw:0", "/dev/ttyUSB0");
        let robot = Robot::new("bea".into(), Some((Kind::Diffdrive, &[])));
        let files = write(&looked(vec![found]), &robot, Path::new("maps"));
        let command = "[\"amber\", \"driver\", \"diffdrive\", \"--port\", \"/dev/ttyUSB0\", \
                       \"--wheel-diameter-mm=65\", \"--counts-per-turn=1320\", \
                       \"--max-speed-mm-s=500\"]";
        assert!(files.amber.contains(command), "{}", files.amber);
        assert!(!files.amber.contains("battery:0"));
        for key in [
            "track_mm = 180",
            "wheel_radius_mm = 32.5",
            "max_speed_mm_s = 500",
            "wheels = \"roboclaw:0\"",
        ] {
            assert!(files.robot.contains(key), "{key}:\n{}", files.robot);
        }
    }

    #[test]
    fn a_create_2_has_its_own_numbers_and_a_battery() {
        let found = finding(Kind::Create2, "roboclaw:0", "/dev/ttyUSB0");
        let robot = Robot::new("dora".into(), Some((Kind::Create2, &[])));
        let files = write(&looked(vec![found]), &robot, Path::new("maps"));
        let command = "devices = [\"roboclaw:0\", \"bumper:0\"]\n\
                       command = [\"amber\", \"driver\", \"create2\", \"--port\", \"/dev/ttyUSB0\", \
                       \"--max-speed-mm-s=500\"]";
        assert!(files.amber.contains(command), "{}", files.amber);
        assert!(files.amber.contains("battery:0"));
        Config::parse(&files.amber, Path::new("amber.toml"), &|_| None).unwrap();
        assert!(files.robot.contains("bumper = \"bumper:0\""));
        for key in [
            "track_mm = 235",
            "wheel_radius_mm = 36",
            "max_speed_mm_s = 500",
            "wheels = \"roboclaw:0\"",
        ] {
            assert!(files.robot.contains(key), "{key}:\n{}", files.robot);
        }
    }

    #[test]
    fn vescs_and_an_odrive_have_two_wheels_and_measure_the_battery() {
        for (kind, options) in [
            (Kind::Vesc, "\"--can-id=1\", \"--pole-pairs=7\", "),
            (Kind::Odrive, ""),
        ] {
            let found = finding(kind, "roboclaw:0", "/dev/ttyACM0");
            let robot = Robot::new("dora".into(), Some((kind, &[])));
            let files = write(&looked(vec![found]), &robot, Path::new("maps"));
            let driver = kind.probe().driver;
            let command = format!(
                "[\"amber\", \"driver\", \"{driver}\", \"--port\", \"/dev/ttyACM0\", {options}\
                 \"--gear-ratio=1\", \"--wheel-diameter-mm=65\", \"--max-speed-mm-s=500\"]"
            );
            assert!(files.amber.contains(&command), "{}", files.amber);
            assert!(files.amber.contains("battery:0"), "{}", files.amber);
            assert!(files.robot.contains("track_mm = 180"), "{}", files.robot);
        }
    }

    #[test]
    fn one_roboclaw_has_two_wheels_and_keeps_its_tuning() {
        let mut found = finding(Kind::Roboclaw, "roboclaw:0", "/dev/ttyACM0");
        found.options = vec!["--address=128".to_owned()];
        let robot = Robot::new("cleo".into(), Some((Kind::Roboclaw, &found.options)));
        let files = write(&looked(vec![found]), &robot, Path::new("maps"));
        let command = "[\"amber\", \"driver\", \"roboclaw\", \"--port\", \"/dev/ttyACM0\", \
                       \"--address=128\", \"--wheel-radius-mm=60\", \"--pulses-per-turn=1865\", \
                       \"--max-speed-mm-s=1200\"]";
        assert!(files.amber.contains(command), "{}", files.amber);
        assert!(files.robot.contains("track_mm = 330"), "{}", files.robot);
    }

    #[test]
    fn a_sensor_of_the_battery_is_the_battery_and_not_the_controllers() {
        let sensor = Finding {
            options: vec!["--address=0x40".into(), "--chip=ina219".into()],
            ..finding(Kind::Ina2xx, "battery:0", "/dev/i2c-1")
        };
        let wheels = finding(Kind::Roboclaw, "roboclaw:0", "/dev/ttyACM1");
        let (files, config) = written(vec![wheels, sensor]);
        assert_eq!(devices(&config), ["roboclaw:0", "battery:0", "robot:0"]);
        let command = config.drivers[1].command.join(" ");
        let expected = "amber driver ina2xx --bus /dev/i2c-1 --address=0x40 --chip=ina219";
        assert_eq!(command, expected);
        assert!(files.amber.contains("--shunt-mohm"), "{}", files.amber);
    }

    #[test]
    fn what_is_missing_is_not_configured() {
        let (files, config) = written(vec![finding(Kind::Maestro, "maestro:0", "/dev/ttyACM0")]);
        assert_eq!(devices(&config), ["maestro:0", "robot:0"]);
        assert!(!files.has_maps && !files.robot.contains("laser_offset_mm"));
        assert!(toml::from_str::<toml::Table>(&files.robot).is_ok());
    }

    #[test]
    fn another_driver_of_the_same_device_type_has_its_options() {
        let mpu = Finding {
            options: vec!["--address=0x69".into()],
            ..finding(Kind::Mpu, "ninedof:0", "/dev/i2c-1")
        };
        let (files, config) = written(vec![mpu]);
        assert_eq!(devices(&config), ["ninedof:0", "robot:0"]);
        let command = config.drivers[0].command.join(" ");
        assert_eq!(command, "amber driver mpu --bus /dev/i2c-1 --address=0x69");
        assert!(files.robot.contains("imu = \"ninedof:0\""));
    }

    #[test]
    fn foreign_text_stays_in_comments_and_paths_are_quoted() {
        let evil = Finding {
            what: "laser\n[[driver]]\ndevice = \"dummy:0\"".into(),
            ..finding(Kind::Hokuyo, "hokuyo:0", "/dev/a \"b\"\\c")
        };
        let unused = Finding {
            device: None,
            note: Some("x\ny".into()),
            ..finding(Kind::Maestro, "", "/dev/x")
        };
        let (files, config) = written(vec![evil, unused]);
        assert_eq!(devices(&config), ["hokuyo:0", "robot:0"]);
        assert_eq!(config.drivers[0].command[4], "/dev/a \"b\"\\c");
        assert!(files.amber.contains("Found, but not configured:"));
        assert!(
            files.amber.lines().all(|line| line.len() < 130),
            "{}",
            files.amber
        );
    }

    #[test]
    fn the_limit_of_the_speed_is_what_the_motors_can() {
        let slow = Robot {
            max_qpps: Some(1_865.0),
            ..Robot::capo(String::new())
        };
        assert_eq!(slow.max_speed_mm_s(), 376.0);
        let wide = Robot {
            width_mm: 500.0,
            ..slow
        };
        assert_eq!(wide.track_mm(), 636.0);
    }
}
