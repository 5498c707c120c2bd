//! `amber demo`: runs a mediator with a simulated robot. IO.
//!
//! The mediator, the drivers and the serial protocols are those of a real robot.
//! Only the hardware behind the serial ports is simulated, by `amber sim` in its
//! own process.

use std::collections::HashMap;
use std::env;
use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use amber_core::config::DEFAULT_PORT;
use amber_gateways::Demonstration;
use amber_map::{MapFile, MapPose, Point, Pose, Walls, ros_map};
use amber_mediator::shell::{Hangup, this_program};
use amber_sim::camera::{AHEAD_M, HEIGHT_M, markers};
use amber_sim::cli::default_folder;
use amber_sim::clock_file;
use amber_sim::robot::Device;
use amber_terminal::{Failure, note};

use self::parts::{Part, Robot};
use super::{failed, mediator};

#[cfg(feature = "web")]
mod dashboard;
mod layout;
mod parts;

/// The shape of the simulated robots, behind the name: that of a Capo. The scanner is above the centre
/// between the wheels.
const SHAPE: &str = "\
laser = \"hokuyo:0\"
wheels = \"roboclaw:0\"
imu = \"ninedof:0\"
location = \"location:0\"
laser_offset_mm = 0
imu_offset_mm = 0
length_mm = 370
width_mm = 330
track_mm = 420
wheel_radius_mm = 60
max_speed_mm_s = 1200
";
/// Its file.
const ROBOT_FILE: &str = "robot.toml";

/// The names of the copy of the map. A map of ROS also has an image.
const MAP: &str = "map.roson";
const ROS_MAP: &str = "map.yaml";
const IMAGE: &str = "map.pgm";

const PYTHON_DRIVER: &str = "drivers/examples/python/dummy_driver.py";

#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  amber demo
  amber demo --robot turtle
  amber demo --robot lekiwi
  amber demo --gateways
  amber demo --driver '201:0=python3 my_driver.py'
  amber demo --proto lamp.proto --driver 'lamp:0=python3 lamp_driver.py'
  amber demo --port 0 --dir /tmp/second-robot
  amber demo -v

Then type the commands that it shows in another terminal. Ctrl-C ends the demo.")]
pub(crate) struct Options {
    /// Listen on this port of the loopback address; 0 picks one
    #[arg(long, default_value_t = DEFAULT_PORT)]
    port: u16,
    /// Map: a .roson file, the YAML file of a map of ROS map_server, or a built-in map: flat or
    /// maze
    #[arg(long, value_name = "FILE", default_value = "flat")]
    map: PathBuf,
    /// Robot: capo, the robot of the laboratory; turtle, with parts that many people own; lekiwi, with
    /// an arm; or a TOML file that lists the parts of yours
    #[arg(long, value_name = "ROBOT", default_value = "capo")]
    robot: String,
    /// Folder for the simulated devices; a second demo needs its own, and --port 0
    #[arg(long, value_name = "FOLDER", env = "AMBER_SIM_DIR", default_value_os_t = default_folder(), hide_default_value = true)]
    dir: PathBuf,
    /// Do not serve the dashboard
    #[cfg(feature = "web")]
    #[arg(long)]
    no_dashboard: bool,
    /// Let programs for other robots drive this one, on the usual ports of their protocols
    #[arg(long)]
    gateways: bool,
    /// Log everything: what drivers start, stop and say. Without it, only what is wrong
    #[arg(short, long)]
    verbose: bool,
    /// Run another driver: split like a shell would, without a shell (may be given several times)
    #[arg(long, value_name = "DEVICE=COMMAND ARGS...")]
    driver: Vec<String>,
    /// Description of your own devices: --driver may use their names (may be given several times)
    #[arg(long, value_name = "FILE")]
    proto: Vec<PathBuf>,
}

impl Options {
    pub(crate) fn run(self, options: &amber_cli::Options) -> Result<(), Failure> {
        let model = Robot::read(&self.robot)?;
        let parts = model.parts();
        let robot = SimProcess::start(&model, &self.map, &self.dir)?;
        let python = python_driver();
        let second = match &python {
            Ok(script) => format!("python3 -u {}", quoted(&script.to_string_lossy())),
            Err(_) => "amber driver dummy".to_owned(),
        };
        let simulated = parts.iter().map(|part| {
            let place = robot.at(part.simulated);
            let command = shell_words::join(part.driver(&self.dir, place));
            format!("{}={command}", part.device)
        });
        let map = quoted(&robot.map.to_string_lossy());
        let shape = quoted(&robot.shape.to_string_lossy());
        let clock = self.dir.join(clock_file::FILE);
        let clock = format!("--sim-clock {}", quoted(&clock.to_string_lossy()));
        let maps = quoted(&self.dir.to_string_lossy());
        let others = [
            format!("robot:0=amber driver robot --config {shape} {clock}"),
            format!("location:0=amber driver location --map {map} {clock}"),
            format!("collision-avoidance:0=amber driver collision_avoidance {clock}"),
            format!("drive-to-point:0=amber driver drive_to_point --map {map} {clock}"),
            format!("pid-follow-trajectory:0=amber driver pid_follow_trajectory {clock}"),
            format!("mapping:0=amber driver mapping --maps {maps} {clock}"),
            "dummy:0=amber driver dummy".to_owned(),
            format!("dummy:1={second}"),
        ];
        let has_camera = parts.iter().any(|part| part.device == "camera:0");
        let markers = has_camera.then(|| {
            let file = self.dir.join(markers::FILE);
            let file = quoted(&file.to_string_lossy());
            format!("markers:0=amber driver markers --markers {file}")
        });
        let gateways = if self.gateways {
            amber_gateways::DEMO
        } else {
            &[]
        };
        let commands = gateways.iter().enumerate();
        let commands = commands.map(|(id, gateway)| format!("gateway:{id}={}", gateway.command));
        let own = model.drivers(&self.dir);
        let drivers: Vec<_> = (simulated.chain(own).chain(others))
            .chain(markers)
            .chain(commands)
            .chain(self.driver)
            .collect();
        let mediator = mediator::Options {
            listen: vec![(Ipv4Addr::LOCALHOST, self.port).into()],
            driver: drivers.clone(),
            proto: self.proto,
            log: if self.verbose { "info" } else { "warn" }.into(),
            hangup: Hangup::End,
            ..mediator::Options::default()
        };
        #[cfg(feature = "web")]
        let mut dashboard = None;
        mediator.serve(options, |addresses| {
            let missing = python.err();
            #[cfg(feature = "web")]
            if let (Some(address), false) = (addresses.first(), self.no_dashboard) {
                dashboard = Some(dashboard::Dashboard::start(*address)?);
            }
            #[cfg(feature = "web")]
            let page = dashboard.as_ref().map(|it| it.shown.as_str());
            #[cfg(not(feature = "web"))]
            let page = None;
            let introduction = Introduction {
                addresses,
                page,
                robot: &model,
                parts: &parts,
                drivers: &drivers,
                gateways,
                goto: &robot.goto,
                folder: &self.dir,
                missing,
                is_verbose: self.verbose,
            };
            introduction.print()
        })
    }
}

/// The simulated robot; it stops when this is dropped.
struct SimProcess {
    process: Child,
    /// The path of each device.
    places: HashMap<String, String>,
    /// A copy of its map, in its folder: drivers replace the file when a map is uploaded.
    map: PathBuf,
    /// The image of a map of ROS, in the same folder.
    image: Option<PathBuf>,
    /// The description of the robot.
    shape: PathBuf,
    /// What its drivers need besides.
    files: Vec<PathBuf>,
    /// The command that drives to another room.
    goto: String,
}

impl SimProcess {
    fn start(model: &Robot, map_file: &Path, folder: &Path) -> Result<Self, Failure> {
        let parts = model.parts();
        let amber = this_program().map_err(|error| failed("cannot find this program", &error))?;
        let mut command = Command::new(amber);
        command.args(["sim", "--until-eof", "--dir"]).arg(folder);
        command.arg("--map").arg(map_file).args(model.options());
        // Ctrl-C is for the mediator: it stops the drivers. Then the end of stdin stops the
        // robot.
        command.process_group(0);
        let mut process = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| failed("cannot start the simulated robot", &error))?;
        let mut places = HashMap::new();
        let lines = process.stdout.take().map(BufReader::new);
        for line in lines
            .into_iter()
            .flat_map(BufRead::lines)
            .map_while(Result::ok)
        {
            if let Some((device, place)) = line.split_once(' ') {
                places.insert(device.to_owned(), place.to_owned());
            }
            let is_there = |part: &Part| places.contains_key(part.simulated.name());
            if parts.iter().all(is_there) {
                let map = amber_sim::cli::map(map_file).map_err(super::simulation_failed)?;
                if let Some(doubt) = map.doubt() {
                    note(format_args!("warning: {doubt}"));
                }
                let mut robot = Self {
                    process,
                    places,
                    map: folder.join(MAP),
                    image: None,
                    shape: folder.join(ROBOT_FILE),
                    files: Vec::new(),
                    goto: String::new(),
                };
                robot.copy(model, &map, folder)?;
                robot.goto = goto(map).unwrap_or_default();
                return Ok(robot);
            }
        }
        // It has printed the reason and a hint on stderr.
        let status = process.wait();
        let text = "the simulated robot did not start";
        Err(match status.is_ok_and(|status| status.code() == Some(2)) {
            true => Failure::wrong(text),
            false => Failure::new(text),
        })
    }

    /// Writes the copy of the map, and the description of the robot.
    fn copy(&mut self, model: &Robot, map: &MapFile, folder: &Path) -> Result<(), Failure> {
        let write = |path: &Path, content: &[u8]| {
            fs::write(path, content)
                .map_err(|error| failed(&format!("cannot write {}", path.display()), &error))
        };
        for (name, text) in &model.files {
            let path = folder.join(name);
            write(&path, text.as_bytes())?;
            self.files.push(path);
        }
        let parts = model.parts();
        let has = |device| parts.iter().any(|it| it.device.contains(device));
        let lines = SHAPE.lines().filter(|line| {
            let key = line.split(' ').next().unwrap_or_default();
            let is_absent = key.starts_with("imu") && !has("ninedof:0");
            !is_absent && !model.shape.contains_key(key)
        });
        // Written like a string of Rust, which TOML reads.
        let mut shape = format!("name = {:?}\n", model.name);
        shape.extend(lines.map(|line| format!("{line}\n")));
        let own = model.shape.iter();
        shape.extend(own.map(|(key, value)| format!("{key} = {value}\n")));
        if has("bumper:0") {
            shape += "bumper = \"bumper:0\"\n";
        }
        if has("camera:0") {
            let [ahead_mm, height_mm] = [AHEAD_M, HEIGHT_M].map(|m| m * 1_000.0);
            shape += &format!(
                "camera = \"camera:0\"\ncamera_offset_mm = {ahead_mm}\n\
                 camera_height_mm = {height_mm}\n"
            );
        }
        write(&self.shape, shape.as_bytes())?;
        match map {
            MapFile::Roson { text, .. } => write(&self.map, text.as_bytes()),
            MapFile::Grid { grid, .. } => {
                let (yaml, pgm) = ros_map::write(grid, IMAGE);
                self.map = folder.join(ROS_MAP);
                write(self.image.insert(folder.join(IMAGE)), &pgm)?;
                write(&self.map, yaml.as_bytes())
            }
        }
    }

    /// The path of a device.
    fn at(&self, device: Device) -> &str {
        self.places.get(device.name()).map_or("", String::as_str)
    }
}

impl Drop for SimProcess {
    fn drop(&mut self) {
        let files = [Some(&self.map), Some(&self.shape), self.image.as_ref()];
        for file in files.into_iter().flatten().chain(&self.files) {
            let _ = fs::remove_file(file);
        }
        // The end of its stdin makes it exit.
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}

/// The command that drives to another room, if the map names rooms, or to a visible point.
fn goto(map: MapFile) -> Option<String> {
    const FAR_M: f64 = 1.0;
    const ROOM_M: f64 = 0.35;
    const ANGLES: u32 = 16;
    let map = map.into_walls().ok()?;
    let start = map.robots.first()?.at;
    let faces = map.faces();
    let mut nodes = map.nodes.into_iter();
    let place = nodes.find(|node| node.minus(start).length() > FAR_M);
    let place = place.or_else(|| {
        let walls = Walls::new(faces);
        let around = (0..ANGLES).map(|step| {
            let angle = f64::from(step) * std::f64::consts::TAU / f64::from(ANGLES);
            // Tenths are easy to type.
            let at = start.plus(Point::new(FAR_M, 0.0).turned(angle)).times(10.0);
            Point::new(at.x.round(), at.y.round()).times(0.1)
        });
        let free = around.filter(|at| walls.is_open(start, *at));
        let roomy = free.map(|at| (walls.clearance_m(at), at));
        let best = roomy.max_by(|a, b| a.0.total_cmp(&b.0));
        best.filter(|(clearance_m, _)| *clearance_m > ROOM_M)
            .map(|(_, at)| at)
    })?;
    let MapPose { x_m, y_m, .. } = Pose::new(place.x, place.y, 0.0).into();
    // A sum, so that -0 becomes 0.
    let [x_m, y_m] = [x_m, y_m].map(|number| (number * 100.0).round() / 100.0 + 0.0);
    Some(format!("goto {x_m} {y_m}"))
}

/// What the demo says about itself.
struct Introduction<'a> {
    addresses: &'a [SocketAddr],
    /// The line about the dashboard.
    page: Option<&'a str>,
    robot: &'a Robot,
    parts: &'a [Part],
    drivers: &'a [String],
    gateways: &'a [Demonstration],
    /// The command that drives to another place; empty if there is none.
    goto: &'a str,
    /// The folder of the simulated devices.
    folder: &'a Path,
    /// Why the Python example does not run.
    missing: Option<String>,
    is_verbose: bool,
}

impl Introduction<'_> {
    /// Prints the running parts, example commands, and last the address to open.
    fn print(self) -> io::Result<()> {
        let Self {
            addresses,
            page,
            robot,
            parts,
            drivers,
            gateways,
            goto,
            folder,
            missing,
            is_verbose,
        } = self;
        let columns = amber_terminal::terminal_columns().unwrap_or(layout::MAX_COLUMNS);
        let columns = columns.min(layout::MAX_COLUMNS);
        let mut out = io::stdout().lock();
        for address in addresses {
            writeln!(out, "listening on {address}")?;
        }
        let amber = amber_command();
        let to = match addresses.first() {
            Some(address) if address.port() != DEFAULT_PORT => format!(" -m {address}"),
            _ => String::new(),
        };
        // The other terminal may lack the variable that names the folder.
        let state = match folder == default_folder() {
            true => "sim state".to_owned(),
            false => format!("sim state --dir {}", quoted(&folder.to_string_lossy())),
        };
        let with = match robot.about.as_str() {
            "" => String::new(),
            about => format!(" with {about}"),
        };
        let stands = format!(
            "A simulated robot{with} stands on its map. These drivers run, each in its own process:"
        );
        write!(out, "\n{}", layout::wrapped(&stands, "", columns))?;
        for (device, command) in drivers.iter().filter_map(|driver| driver.split_once('=')) {
            let line = format!("  {device:23} {command}");
            write!(out, "{}", layout::wrapped(&line, "      ", columns))?;
        }
        if let Some(missing) = missing {
            let line = format!("  (The Python example does not run: {missing})");
            write!(out, "{}", layout::wrapped(&line, "      ", columns))?;
        }
        if !gateways.is_empty() {
            writeln!(
                out,
                "\nPrograms for other robots can connect here (docs/gateways.md):"
            )?;
        }
        for (id, gateway) in gateways.iter().enumerate() {
            let line = format!("  gateway:{id:<15} {}", gateway.about);
            write!(out, "{}", layout::wrapped(&line, "      ", columns))?;
        }
        writeln!(out, "\nType in another terminal:")?;
        let mut commands = vec![
            ("devices", "devices and drivers"),
            ("drive", "drive with the arrow keys"),
            (
                "drive --left 200 --right 300 --for 2",
                "drive for two seconds, in mm/s",
            ),
        ];
        let shown = parts
            .iter()
            .flat_map(|part| part.simulated.demonstrations());
        commands.extend(shown.map(|&(command, what)| (command, what)));
        let own = robot.commands.iter();
        commands.extend(own.map(|(command, what)| (command.as_str(), what.as_str())));
        if parts.iter().any(|part| part.device == "camera:0") {
            commands.push(("watch markers", "markers on the walls; Ctrl-C ends"));
        }
        commands.extend([
            ("call location pose", "position by the laser and the map"),
            (goto, "drive to a point on the map; Ctrl-C stops"),
            ("map show", "the robot on its map; --live updates it"),
            ("robot show", "its shape, with the place of the laser"),
            (state.as_str(), "true position of the robot"),
            ("watch dummy", "published messages; Ctrl-C ends"),
            ("ping dummy", "round-trip time; Ctrl-C ends"),
            ("events", "then kill a driver by its pid in `devices`"),
        ]);
        let commands: Vec<_> = commands
            .into_iter()
            .filter(|(command, _)| !command.is_empty())
            .map(|(command, what)| {
                // The simulation is on this machine.
                let to = if command == state { "" } else { &to };
                (format!("{amber}{to} {command}"), what)
            })
            .collect();
        write!(out, "{}", layout::commands(&commands, columns))?;
        let log = match is_verbose {
            true => "Its log follows.",
            false => "Its log follows, which says only what is wrong; -v shows all of it.",
        };
        let end = format!("Ctrl-C here ends the mediator and all drivers. {log}");
        write!(out, "\n{}\n", layout::wrapped(&end, "", columns))?;
        // The last line, so that it stays in sight.
        if let Some(page) = page {
            writeln!(out, "{}", layout::wrapped(page, "", columns))?;
        }
        out.flush()
    }
}

fn quoted(word: &str) -> String {
    shell_words::quote(word).into_owned()
}

/// The Python example, or the reason why it cannot run.
fn python_driver() -> Result<PathBuf, String> {
    // The example is in the clone that this program was built in. A path stored by the compiler
    // could belong to another machine.
    let program = env::current_exe().unwrap_or_default();
    let clone = program.ancestors().skip(1);
    let script = [PathBuf::from(PYTHON_DRIVER)]
        .into_iter()
        .chain(clone.map(|folder| folder.join(PYTHON_DRIVER)))
        .find(|script| script.is_file())
        .ok_or_else(|| format!("{PYTHON_DRIVER} is missing"))?;
    let check = Command::new("python3")
        .args(["-c", "import google.protobuf"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    match check {
        Ok(status) if status.success() => Ok(script),
        Ok(_) => Err("`pip install protobuf` is missing".into()),
        Err(_) => Err("python3 is not installed".into()),
    }
}

/// The command by which the user can run this program.
fn amber_command() -> String {
    let Ok(program) = env::current_exe() else {
        return "amber".into();
    };
    let in_path = env::var_os("PATH").is_some_and(|path| {
        env::split_paths(&path).any(|directory| directory.join("amber") == program)
    });
    if in_path {
        return "amber".into();
    }
    let here = env::current_dir().ok();
    let relative = here.and_then(|here| program.strip_prefix(here).ok().map(Path::to_owned));
    relative.unwrap_or(program).display().to_string()
}
