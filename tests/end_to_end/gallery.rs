//! The ten programs of docs/gallery.md, in three languages, with the robot of the demo.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use amber_client::Scan;
use amber_proto::hokuyo;
use amber_sim::control::SimulationState;
use nix::sys::signal::Signal;
use prost::Message;
use tempfile::TempDir;

use crate::common::{
    AMBER, PATIENCE, Running, demo_with_all, is_running, lines_of, root, signal, wait_for,
};
use crate::driving::robot_of;
use crate::languages::{assert_whole, has};
use crate::python_package::{SOURCE, can_run, shown};
use crate::record::{Recorder, frames};
use crate::robot::{AT_ONCE_S, Robot, stands};

/// The programs, in the order of the page.
const PROGRAMS: [&str; 10] = [
    "hello",
    "square",
    "follow_wall",
    "battery",
    "tour",
    "picture",
    "record_event",
    "lamp_driver",
    "take_turns",
    "rule",
];
const LAMP: &str = "client-sdk/examples/lamp.proto";
/// A place in the living room with a metre of space around it.
const SPACE: &str = "2.1,4.3,0";
/// The start of the robot, in the corridor, and its direction.
const HALL: (f64, f64) = (3.5, 2.6);
/// How far the robot may be from the centre of a target: its radius and the error of its pose.
const NEAR_M: f64 = 0.35;
/// How long a busy machine is given for a square.
const SQUARES: Duration = Duration::from_secs(300);
/// How often a step is tried.
pub const TRIES: usize = 4;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Language {
    Rust,
    Python,
    JavaScript,
}

impl Language {
    const ALL: [Self; 3] = [Self::Rust, Self::Python, Self::JavaScript];

    /// The file of a program, from the top folder of the repository.
    fn file(self, program: &str) -> String {
        match self {
            Self::Rust => format!("client-sdk/examples/{program}.rs"),
            Self::Python => format!("client-sdk/python/examples/{program}.py"),
            Self::JavaScript => format!("client-sdk/js/examples/{program}.js"),
        }
    }

    /// The words that start a program.
    fn words(self, program: &str) -> Vec<String> {
        let file = root().join(self.file(program)).display().to_string();
        match self {
            Self::Rust => {
                let built = Path::new(AMBER).with_file_name("examples").join(program);
                assert!(
                    built.exists(),
                    "{} is not built; `cargo build --workspace --examples` does it",
                    built.display()
                );
                vec![built.display().to_string()]
            }
            Self::Python => vec!["python3".into(), "-u".into(), file],
            Self::JavaScript => vec!["node".into(), file],
        }
    }

    /// The language of its code blocks.
    fn fence(self) -> &'static str {
        match self {
            Self::Rust => "rust,ignore",
            Self::Python => "python",
            Self::JavaScript => "js",
        }
    }
}

#[test]
fn in_rust() {
    Gallery::start(Language::Rust).run_all();
}

#[test]
fn in_python() {
    if can_run("the gallery in Python", "google.protobuf, grpc_tools") {
        Gallery::start(Language::Python).run_all();
    }
}

#[test]
fn in_javascript() {
    if has("the gallery in JavaScript", "node --version") {
        Gallery::start(Language::JavaScript).run_all();
    }
}

/// A robot for the programs of one language.
struct Gallery {
    language: Language,
    robot: Robot,
    /// The folder in which the programs run.
    folder: TempDir,
}

impl Gallery {
    fn start(language: Language) -> Self {
        let lamp = shell_words::join(language.words("lamp_driver"));
        let drivers = [
            "battery:0=amber driver battery".to_owned(),
            format!("201:0={lamp}"),
        ];
        let robot = robot_of(Robot::of(demo_with_all(&drivers)));
        robot.demo.wait_until_ready();
        (robot.demo).wait_for_line_with(&["INFO ready: ", " driver=camera:0"]);
        Self {
            language,
            robot,
            folder: tempfile::tempdir().unwrap(),
        }
    }

    fn run_all(&self) {
        self.hello();
        self.picture();
        self.lamp_driver();
        self.take_turns();
        self.square();
        self.follow_wall();
        self.tour();
        self.record_event();
        steadily(|| self.try_rule());
        assert_eq!(self.robot.state().contacts, 0);
        self.battery(); // Without it, the wheels do not turn any more.
    }

    fn command(&self, program: &str) -> Command {
        let words = self.language.words(program);
        let programs = Path::new(AMBER).parent().unwrap().display();
        let path = format!("{programs}:{}", std::env::var("PATH").unwrap());
        let mut command = Command::new(&words[0]);
        command
            .args(&words[1..])
            .current_dir(self.folder.path())
            .env("AMBER_MEDIATOR", self.robot.demo.address.to_string())
            .env("PATH", path)
            .env("PYTHONPATH", root().join(SOURCE))
            // The sockets of its recorders.
            .env("XDG_RUNTIME_DIR", self.folder.path())
            .stdin(Stdio::null());
        command
    }

    /// Runs a program up to its end. Returns what it prints.
    #[track_caller]
    fn output(&self, program: &str) -> String {
        let mut said = String::new();
        steadily(|| {
            let output = self.command(program).output().unwrap();
            said = String::from_utf8_lossy(&output.stdout).into_owned();
            match output.status.success() {
                true => Ok(()),
                false => Err(late(String::from_utf8_lossy(&output.stderr).into())),
            }
        });
        said
    }

    fn hello(&self) {
        let said = self.output("hello");
        let mm = between(&said, "an object is ", " mm away, at ");
        // The walls of the corridor.
        let mm: u32 = mm.parse().unwrap();
        assert!((300..900).contains(&mm), "{said}");
        let speeds = [
            "front_left_mm_s: 0",
            "front_left_mm_s=0",
            "frontLeftSpeed: 0",
        ];
        assert!(speeds.iter().any(|it| said.contains(it)), "{said}");
    }

    fn picture(&self) {
        let said = self.output("picture");
        let size = between(&said, "picture.jpg has ", " pixels");
        let (width, height) = size.split_once(" x ").unwrap();
        let picture = fs::read(self.folder.path().join("picture.jpg")).unwrap();
        assert_whole(&picture, (width.parse().unwrap(), height.parse().unwrap()));
    }

    fn lamp_driver(&self) {
        let demo = &self.robot.demo;
        demo.wait_for_line("up driver=201:0");
        let proto = root().join(LAMP).display().to_string();
        let mut call = demo.amber(&["call", "201:0", "--timeout", "60", "--proto", &proto]);
        let output = call.args(["set-brightness", "40"]).output().unwrap();
        assert_eq!(
            String::from_utf8_lossy(&output.stdout),
            "brightness: 40 %\n"
        );
        let watch = ["watch", "201:0", "brightness", "--proto", &proto];
        let mut watched = Running::start(demo, &watch);
        let line = watched.line();
        assert!(line.contains("40"), "{line}");

        let mut check = demo.amber(&["check", "--timeout", "60", "--proto", &proto]);
        check.args(["--request", "set_brightness=10", "--"]);
        check.args(self.language.words("lamp_driver"));
        let output = check
            .env("PYTHONPATH", root().join(SOURCE))
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
    }

    fn take_turns(&self) {
        let begin = self.robot.state();
        steadily(|| self.try_take_turns());
        let end = self.robot.until("it stands", stands);
        let turned_deg = (end.heading_deg - begin.heading_deg).abs();
        assert!(turned_deg > 20.0, "{turned_deg}");
    }

    /// Two programs print into one file, so that the order of their lines is that of what they do.
    fn try_take_turns(&self) -> Result<(), String> {
        let said = self.folder.path().join("said");
        let complained = self.folder.path().join("complained");
        let file = File::create(&said).unwrap();
        let errors = File::create(&complained).unwrap();
        let begin = || {
            let mut command = self.command("take_turns");
            command.stdout(file.try_clone().unwrap());
            Program(command.stderr(errors.try_clone().unwrap()).spawn().unwrap())
        };
        let programs = [begin(), begin()];
        let mut ends = programs
            .map(|mut program| program.0.wait().unwrap())
            .into_iter();
        if !ends.all(|status| status.success()) {
            return Err(late(fs::read_to_string(&complained).unwrap()));
        }
        let lines = BufReader::new(File::open(&said).unwrap()).lines();
        let lines: Vec<_> = lines.map(Result::unwrap).collect();
        let (waiting, driving): (Vec<_>, Vec<_>) = lines.iter().partition(|it| *it == "waiting");
        assert_eq!(waiting.len(), 2, "{lines:?}");
        assert_eq!(driving, ["driving", "done", "driving", "done"], "{lines:?}");
        Ok(())
    }

    /// The program measures its sides by its own time, which a busy machine delays.
    fn square(&self) {
        let patience = Instant::now() + SQUARES;
        let mut others = Vec::new();
        while let Err(other) = self.try_square() {
            others.push(other);
            assert!(Instant::now() < patience, "no square: {others:#?}");
        }
    }

    /// Returns why the way was no square.
    fn try_square(&self) -> Result<(), String> {
        assert!(self.robot.sim(&["place", SPACE]));
        let begin = self.robot.state();
        let mut program = Program(self.command("square").spawn().unwrap());
        let mut way = vec![begin];
        while is_running(program.0.id()) {
            way.push(self.robot.state());
            thread::sleep(Duration::from_millis(5));
        }
        program.ends();
        let end = self.robot.until("it stands", stands);
        // Each side of the square, and of the box around the way.
        let size_m = |of: fn(&SimulationState) -> f64| {
            let all = || way.iter().map(of);
            all().fold(f64::MIN, f64::max) - all().fold(f64::MAX, f64::min)
        };
        let sides_m = [size_m(|it| it.x_m), size_m(|it| it.y_m)];
        let off_m = (end.x_m - way[0].x_m).hypot(end.y_m - way[0].y_m);
        let is_square = sides_m.iter().all(|m| (0.2..0.5).contains(m)) && off_m < 0.2;
        let travelled_m = end.travelled_m - way[0].travelled_m;
        match is_square && (1.0..1.6).contains(&travelled_m) {
            true => Ok(()),
            false => Err(format!(
                "{sides_m:?} m, {travelled_m} m, ends {off_m} m away"
            )),
        }
    }

    fn follow_wall(&self) {
        let (x_m, y_m) = HALL;
        assert!(self.robot.sim(&["place", &format!("{x_m},{y_m},0")]));
        let begin = self.robot.state();
        let mut program = Program(self.command("follow_wall").spawn().unwrap());
        let way = self.robot.until("a way along the wall", |state| {
            state.travelled_m > begin.travelled_m + 1.5
        });
        assert_eq!(way.contacts, 0);
        program.interrupt();
        let told = self.robot.state();
        let took_s = self.robot.until("it stands", stands).time_s - told.time_s;
        assert!(took_s < AT_ONCE_S, "{took_s} s");
        program.0.wait().unwrap();
    }

    fn tour(&self) {
        let (x_m, y_m) = HALL;
        self.robot.carry(x_m, y_m);
        let mut command = self.command("tour");
        let mut program = Program(command.stdout(Stdio::piped()).spawn().unwrap());
        let lines = program.lines();
        for (room, x_m, y_m) in [
            ("kitchen", 1.4, 1.0),
            ("bath", 3.35, 1.0),
            ("bedroom", 5.5, 1.0),
            ("hall", x_m, y_m),
        ] {
            self.robot.until(room, |state| {
                (state.x_m - x_m).hypot(state.y_m - y_m) < NEAR_M
            });
            let line = lines.recv_timeout(PATIENCE).unwrap();
            assert!(line.starts_with(&format!("{room}: arrived")), "{line}");
        }
        program.ends();
    }

    fn record_event(&self) {
        let demo = &self.robot.demo;
        let (x_m, y_m) = HALL;
        assert!(self.robot.sim(&["place", &format!("{x_m},{y_m},0")]));
        let recorder = Recorder::start(demo, &self.folder, &["--snapshot", "60s"]);
        let scans = self.robot.state().scans;
        self.robot.until("scans", |state| state.scans > scans + 5);
        let mut program = Program(self.command("record_event").spawn().unwrap());
        // In front of a wall of the corridor.
        let beside_m = y_m + 0.2;
        assert!(self.robot.sim(&["place", &format!("{x_m},{beside_m},90")]));
        program.ends();
        // The recorder also writes one when a driver has trouble.
        let snapshot = loop {
            let snapshot = recorder.wait_for("snapshot");
            if snapshot["reason"] == "close" {
                break snapshot;
            }
        };
        let path = self.folder.path().join(snapshot["file"].as_str().unwrap());
        let ahead_mm: Vec<_> = frames(&path)
            .iter()
            .filter(|(topic, _)| topic == "/hokuyo/0/scan")
            .filter_map(|(_, message)| hokuyo::DriverMsg::decode(&**message).unwrap().scan)
            .map(|scan| Scan::new(&scan.angles, &scan.distances, None).unwrap())
            .map(|scan| {
                scan.nearest(-30.0..=30.0)
                    .map_or(i32::MAX, |it| it.distance_mm)
            })
            .collect();
        let before = ahead_mm.iter().take_while(|mm| **mm >= 400).count();
        let after = ahead_mm.len() - before;
        assert!(before > 3 && after > 3, "{ahead_mm:?}");
        recorder.finish();
    }

    fn try_rule(&self) -> Result<(), String> {
        assert!(self.robot.sim(&["place", SPACE]));
        let turning = Program(self.robot.turning());
        let mut command = self.command("rule");
        let mut program = Program(command.stdout(Stdio::piped()).spawn().unwrap());
        let lines = program.lines();
        // The rule holds once the program listens.
        let began = Instant::now();
        let line = loop {
            assert!(self.robot.amber(&["stop", "hokuyo:0"]));
            match lines.recv_timeout(Duration::from_secs(10)) {
                Ok(line) => break line,
                Err(RecvTimeoutError::Timeout) if began.elapsed() < PATIENCE => {
                    assert!(self.robot.amber(&["start", "hokuyo:0"]));
                }
                Err(error) => {
                    assert!(self.robot.amber(&["start", "hokuyo:0"]));
                    return Err(error.to_string());
                }
            }
        };
        assert_eq!(line, "no laser: the robot stands");
        self.robot.until("it stands", stands);
        drop(turning);
        let drive = ["drive", "--for", "1s", "--left", "-200", "--right", "200"];
        let refused = self.robot.demo.amber(&drive).output().unwrap();
        let words = String::from_utf8(refused.stderr).unwrap();
        assert!(
            !refused.status.success() && words.contains("no laser"),
            "{words}"
        );

        assert!(self.robot.amber(&["start", "hokuyo:0"]));
        let line = lines.recv_timeout(PATIENCE).unwrap();
        assert_eq!(line, "the laser works: drive on");
        // The driver hears a little later of it.
        wait_for("a drive", || self.robot.amber(&drive).then_some(()));
        program.interrupt();
        program.0.wait().unwrap();
        self.robot.until("it stands", stands);
        Ok(())
    }

    fn battery(&self) {
        let mut command = self.command("battery");
        let mut program = Program(command.stdout(Stdio::piped()).spawn().unwrap());
        let lines = program.lines();
        let line = lines.recv_timeout(PATIENCE).unwrap();
        let volts: f64 = line.strip_suffix(" V").unwrap().parse().unwrap();
        assert!((11.0..14.0).contains(&volts), "{line}");
        assert!(self.robot.sim(&["fault", "low-battery"]));
        program.ends();
        let last = lines.iter().last();
        assert_eq!(last.as_deref(), Some("the battery is low: charge it"));
    }
}

/// Words of the programs that ended because an answer came too late, in each language.
pub const LATE: &str = "no answer from ";

/// What a program says that ended by an answer that came too late. Any other error is a failure of the test.
#[track_caller]
fn late(complaint: String) -> String {
    assert!(complaint.contains(LATE), "{complaint}");
    complaint
}

/// A busy machine may delay a command, or an answer for longer than a program waits.
#[track_caller]
fn steadily(mut attempt: impl FnMut() -> Result<(), String>) {
    let mut problems = Vec::new();
    while let Err(problem) = attempt() {
        problems.push(problem);
        assert!(problems.len() < TRIES, "{problems:#?}");
    }
}

/// The words between others.
#[track_caller]
fn between<'a>(text: &'a str, before: &str, after: &str) -> &'a str {
    let rest = text
        .split_once(before)
        .and_then(|(_, rest)| rest.split_once(after));
    rest.unwrap_or_else(|| panic!("{text}")).0
}

/// A running program, which is killed when this is dropped.
struct Program(Child);

impl Program {
    /// What it prints from now on.
    fn lines(&mut self) -> Receiver<String> {
        lines_of(self.0.stdout.take().unwrap())
    }

    /// Waits for its end, which must be a success.
    #[track_caller]
    fn ends(&mut self) {
        let status = self.0.wait().unwrap();
        assert!(status.success(), "{status}");
    }

    /// Presses Ctrl-C.
    fn interrupt(&self) {
        signal(self.0.id(), Signal::SIGINT);
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A program without the comment at its beginning, which the page says in its own words.
fn without_header(text: &str) -> &str {
    let is_header = |line: &&str| {
        let begins = ["#!/", "//", "\"\"\""]
            .iter()
            .any(|it| line.starts_with(it));
        begins || line.trim().is_empty()
    };
    let header = text.split_inclusive('\n').take_while(is_header);
    &text[header.map(str::len).sum::<usize>()..]
}

#[test]
fn the_page_shows_the_programs() {
    let page = fs::read_to_string(root().join("docs/gallery.md")).unwrap();
    let sections: Vec<_> = page.split("\n## ").skip(1).collect();
    assert_eq!(sections.len(), PROGRAMS.len());
    for (program, section) in PROGRAMS.into_iter().zip(sections) {
        assert_eq!(between(section, "`", "`"), program);
        for language in Language::ALL {
            let file = language.file(program);
            let text = fs::read_to_string(root().join(&file)).unwrap();
            let fence = format!("```{}\n", language.fence());
            let is_shown = between(section, &fence, "```") == without_header(&text);
            assert!(is_shown, "copy {file} to docs/gallery.md");
        }
        // Tabs in the book are blocks that follow one another: docs/tabs.js.
        for next in ["```\n\n```python\n", "```\n\n```js\n"] {
            assert!(section.contains(next), "{program}");
        }
    }
}

#[test]
fn the_lamp_has_one_description() {
    let original = shown(
        &fs::read_to_string(root().join("docs/write-a-driver.md")).unwrap(),
        "lamp.proto",
    );
    let copies = [
        LAMP,
        "client-sdk/python/examples/lamp.proto",
        "client-sdk/js/examples/lamp.proto",
        "drivers/examples/node/proto/lamp.proto",
    ];
    for copy in copies.map(|copy| -> PathBuf { root().join(copy) }) {
        let is_same = fs::read_to_string(&copy).unwrap() == original;
        assert!(
            is_same,
            "copy it from write-a-driver.md to {}",
            copy.display()
        );
    }
}
