//! The example drivers and clients of every language follow the protocol and work together under
//! the mediator.
//!
//! A missing language toolchain is reported; nothing is downloaded.

use std::fs;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;

use amber_proto::DeviceMessage;
use amber_proto::camera::{self, Picture};
use amber_proto::limits::MAX_PART;
use amber_reflect::hex;
use prost::Message;
use tempfile::TempDir;
use zune_jpeg::JpegDecoder;
use zune_jpeg::zune_core::bytestream::ZCursor;
use zune_jpeg::zune_core::options::DecoderOptions;

use crate::camera::Robot;
use crate::common::{AMBER, Mediator, root, rust_examples, wait_for};
use crate::relay::Relay;

/// A timeout in seconds, longer than any answer or run of a client takes, even on a busy machine.
const PATIENCE: &str = "60";

/// The commands of one language.
struct Language {
    dummy: Vec<String>,
    thermometer: Option<Vec<String>>,
    client: Option<Vec<String>>,
    /// A client that saves a picture of a camera to a file.
    picture: Option<Vec<String>>,
    /// The address argument of the client, in the form of `amber check-client`.
    address: &'static str,
    /// The environment of all of them.
    environment: Vec<(&'static str, PathBuf)>,
    _built: TempDir,
}

fn words(command: &str) -> Vec<String> {
    command.split(' ').map(str::to_owned).collect()
}

fn examples() -> PathBuf {
    root().join("drivers/examples")
}

/// Whether a command works; prints what is missing if not.
pub fn has(test: &str, command: &str) -> bool {
    let list = words(command);
    let found = Command::new(&list[0])
        .args(&list[1..])
        .current_dir(examples())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if !found {
        let _ = writeln!(
            std::io::stderr(),
            "SKIP {test}: `{command}` does not work here"
        );
    }
    found
}

/// Runs a command and returns its output.
fn build(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Copies the folder of a language out of the repository, with its installed or built files.
fn copied(language: &str) -> TempDir {
    let folder = TempDir::new().unwrap();
    build(
        Command::new("cp")
            .arg("-r")
            .arg(examples().join(language))
            .arg(folder.path()),
    );
    folder
}

fn at_once(checks: &[&(dyn Fn() + Sync)]) {
    thread::scope(|scope| {
        for check in checks {
            scope.spawn(check);
        }
    });
}

/// Checks that a file is a whole JPEG of this size: nothing is missing, and all parts are in their places.
#[track_caller]
pub(crate) fn assert_whole(file: &[u8], size: (usize, usize)) {
    assert!(file.starts_with(b"\xff\xd8\xff") && file.ends_with(b"\xff\xd9"));
    let strict = DecoderOptions::default().set_strict_mode(true);
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(file), strict);
    decoder.decode().unwrap();
    assert_eq!(decoder.dimensions(), Some(size));
}

impl Language {
    fn new(dummy: &str, thermometer: &str, client: &str) -> Self {
        let some = |command: &str| (!command.is_empty()).then(|| words(command));
        Self {
            dummy: words(dummy),
            thermometer: some(thermometer),
            client: some(client),
            picture: None,
            address: "{host} {port}",
            environment: Vec::new(),
            _built: TempDir::new().unwrap(),
        }
    }

    fn in_environment(&self, command: &mut Command) {
        command.current_dir(examples());
        for (name, value) in &self.environment {
            command.env(name, value);
        }
    }

    /// Checks a client, which gets the address of the mediator as `address`.
    fn check_client(&self, client: &[String], address: &str) {
        let mut check = Command::new(AMBER);
        check.args(["check-client", "--timeout", PATIENCE]);
        check.args(["--proto", "thermometer.proto"]);
        check.args(["--proto", "follow_wall.proto"]);
        check.args([
            "--answer",
            "201:0=temperature={\"celsius\": 20.5, \"sensor\": \"cpu\"}",
            "--answer",
            "202:0=status={\"following\": true}",
        ]);
        check.arg("--").args(client).args(words(address));
        self.in_environment(&mut check);
        let report = build(&mut check);
        // The client notices the death of a driver, and the mediator notices the loss of the
        // client.
        for check in ["announces", "ping"] {
            assert!(report.contains(&format!("pass  {check} ")), "{report}");
        }
    }

    /// Checks a driver with its requests.
    fn check_driver(&self, device: &str, command: &[String]) {
        let mut check = Command::new(AMBER);
        check.args(["check", "--device", device, "--timeout", PATIENCE]);
        check.args(match device {
            "dummy:0" => &["--as", "dummy"][..],
            "201:0" => &[
                "--proto",
                "thermometer.proto",
                "--request",
                "get_temperature=true",
            ],
            _ => &[
                "--proto",
                "follow_wall.proto",
                "--request",
                "get_status=true",
                "--request",
                "follow=true",
            ],
        });
        check.arg("--").args(command);
        self.in_environment(&mut check);
        build(&mut check);
    }

    /// Checks the drivers and the client, and runs them together. All run in parallel, because they
    /// mostly wait for messages that must not arrive.
    fn check(&self) {
        at_once(&[
            &|| self.check_driver("dummy:0", &self.dummy),
            &|| {
                if let Some(thermometer) = &self.thermometer {
                    self.check_driver("201:0", thermometer);
                }
            },
            &|| {
                if let Some(client) = &self.client {
                    self.check_client(client, self.address);
                }
            },
            &|| self.work_together(),
            &|| {
                if let Some(picture) = &self.picture {
                    self.check_short_pictures(picture);
                }
            },
            &|| {
                if let Some(picture) = &self.picture {
                    self.save_pictures(picture);
                }
            },
        ]);
    }

    /// Checks the client for pictures with one that fits into a frame, like any other client.
    fn check_short_pictures(&self, picture: &[String]) {
        let folder = TempDir::new().unwrap();
        let file = folder.path().join("picture.jpg");
        let answer = camera::DriverMsg {
            picture: Some(Picture {
                data: Some(b"\xff\xd8\xff\xd9".to_vec().into()),
                ..Picture::default()
            }),
            ..camera::DriverMsg::data()
        };
        let answer = format!("camera:0={}", hex(&answer.encode_to_vec()));
        let mut check = Command::new(AMBER);
        check.args(["check-client", "--timeout", PATIENCE, "--answer", &answer]);
        check.arg("--").args(picture).arg(&file);
        self.in_environment(check.args(words(self.address)));
        let report = build(&mut check);
        for check in ["announces", "ping"] {
            assert!(report.contains(&format!("pass  {check} ")), "{report}");
        }
        assert_eq!(fs::read(&file).unwrap(), b"\xff\xd8\xff\xd9");
    }

    /// The client for pictures joins the pieces of a long answer, and calls for those that are lost.
    fn save_pictures(&self, picture: &[String]) {
        let folder = TempDir::new().unwrap();
        let robot = Robot::with_pictures_of("800x600");
        let camera = format!(
            "camera:0=amber driver camera --url http://{}/stream",
            robot.place
        );
        let mediator = Mediator::start(&[&camera]);
        mediator.wait_for_line("INFO ready: pictures of 800 x 600");
        let relay = Relay::start(mediator.address);
        for (name, address) in [("direct", mediator.address), ("lossy", relay.address)] {
            let file = folder.path().join(name);
            let mut client = Command::new(&picture[0]);
            client.args(&picture[1..]).arg(&file);
            client.arg(address.ip().to_string());
            client.arg(address.port().to_string());
            self.in_environment(&mut client);
            build(&mut client);
            let bytes = fs::read(&file).unwrap();
            assert!(bytes.len() > MAX_PART, "{} bytes fit", bytes.len());
            assert_whole(&bytes, (800, 600));
        }
        assert!(relay.lost() > 0 && relay.calls() > 0);
    }

    /// Runs the drivers under a mediator, with their client.
    fn work_together(&self) {
        let mut command = Command::new(AMBER);
        command.args(["mediator", "--listen", "127.0.0.1:0"]);
        command.args(["--driver", &format!("dummy:0={}", self.dummy.join(" "))]);
        if let Some(thermometer) = &self.thermometer {
            command.args(["--driver", &format!("201:0={}", thermometer.join(" "))]);
        }
        self.in_environment(&mut command);
        let mediator = Mediator::run(command);
        mediator.wait_for_line("up driver=dummy:0");
        let output = mediator
            .amber(&["call", "dummy", "status", "--timeout", PATIENCE])
            .output();
        let output = output.unwrap();
        assert!(output.status.success(), "{output:?}");

        let Some(client) = &self.client else { return };
        mediator.wait_for_line("up driver=201:0");
        let address = mediator.address;
        let filled = (self.address)
            .replace("{host}", &address.ip().to_string())
            .replace("{port}", &address.port().to_string())
            .replace("{}", &address.to_string());
        let mut told = Command::new(&client[0]);
        told.args(&client[1..]).args(words(&filled));
        let mut from_environment = Command::new(&client[0]);
        from_environment.args(&client[1..]);
        from_environment.env("AMBER_MEDIATOR", address.to_string());
        for command in [&mut told, &mut from_environment] {
            self.in_environment(command);
            let said = build(command);
            for device in ["dummy", "thermometer"] {
                assert!(said.contains(device), "{device}: {said}");
            }
        }
    }
}

#[test]
fn c() {
    if !has("examples in C", "make --version") || !has("examples in C", "cc --version") {
        return;
    }
    let built = TempDir::new().unwrap();
    let out = built.path().to_str().unwrap().to_owned();
    let mut make = Command::new("make");
    make.args(["-s", "-C", "c", &format!("OUT={out}")]);
    build(make.current_dir(examples()));
    let language = Language {
        _built: built,
        picture: Some(vec![format!("{out}/picture")]),
        ..Language::new(
            &format!("{out}/dummy_driver"),
            &format!("{out}/thermometer_driver"),
            &format!("{out}/client"),
        )
    };
    language.check();
}

#[test]
fn node() {
    if !has("examples on Node", "node -e require('./node/amber')") {
        return;
    }
    let copy = copied("node");
    let program = |name: &str| format!("node {}/node/{name}.js", copy.path().display());
    let language = Language {
        picture: Some(words(&program("picture"))),
        ..Language::new(
            &program("dummy_driver"),
            &program("thermometer_driver"),
            &program("client"),
        )
    };
    language.check();
    let mut lamp = Command::new(AMBER);
    lamp.args(["check", "--timeout", "60", "--proto"]);
    lamp.arg(examples().join("node/proto/lamp.proto"));
    lamp.args(["--request", "set_brightness=10", "--"]);
    build(lamp.args(words(&program("lamp_driver"))));
}

#[test]
fn java() {
    if !has("examples in Java", "javac --version")
        || !has("examples in Java", "protoc --version")
        || !has("examples in Java", "ls /usr/share/java/protobuf.jar")
    {
        return;
    }
    let copy = copied("java");
    build(&mut Command::new(copy.path().join("java/build.sh")));
    let program = |name: &str| format!("{}/java/run {name}", copy.path().display());
    let language = Language {
        picture: Some(words(&program("Picture"))),
        ..Language::new(
            &program("DummyDriver"),
            &program("ThermometerDriver"),
            &program("Client"),
        )
    };
    language.check();
}

#[test]
fn bash() {
    if !has("example in bash", "od --version") {
        return;
    }
    Language::new("bash shell/dummy_driver.sh", "", "").check();
}

#[test]
fn python() {
    if !has("examples in Python", "python3 -c import\tgoogle.protobuf") {
        return;
    }
    let plain = Language::new("python3 python/dummy_driver.py", "", "");
    at_once(&[
        &|| plain.check(),
        &|| plain.check_client(&words("python3 python/dummy_client.py"), "{}"),
        &|| python_finds_the_mediator(),
    ]);
}

/// A driver that reads stdin must end all the same: the system may give the signal to any of its
/// threads, and it may come just before the read.
#[test]
fn a_driver_in_python_ends_at_sigterm_whichever_thread_gets_it() {
    const PING: &[u8] = &[0, 3, 0x1a, 1, 5, 0, 4, 0x10, 2, 0x18, 1];
    const TO_THREAD: &str = "import ctypes, signal, sys\n\
                             process, thread = map(int, sys.argv[1:])\n\
                             ctypes.CDLL(None).tgkill(process, thread, signal.SIGTERM)";
    if !has("examples in Python", "python3 -c import\tgoogle.protobuf") {
        return;
    }
    for name in ["dummy_driver.py", "thermometer_driver.py"] {
        let mut driver = Command::new("python3")
            .arg(examples().join("python").join(name))
            .env("PYTHONPATH", root().join("client-sdk/python/src"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = driver.stdin.take().unwrap();
        stdin.write_all(PING).unwrap();
        // Then it waits for more.
        let mut pong = [0; 11];
        driver
            .stdout
            .as_mut()
            .unwrap()
            .read_exact(&mut pong)
            .unwrap();
        let main = driver.id().to_string();
        let other = wait_for("another thread", || {
            let threads = fs::read_dir(format!("/proc/{main}/task")).unwrap();
            let mut threads = threads.map(|it| it.unwrap().file_name().into_string().unwrap());
            threads.find(|thread| *thread != main)
        });
        let mut kill = Command::new("python3");
        build(kill.args(["-c", TO_THREAD, &main, &other]));
        wait_for("the end of the driver", || {
            driver.try_wait().unwrap().map(drop)
        });
    }
}

/// The plain client reads the address of the mediator from the environment.
fn python_finds_the_mediator() {
    let mediator = Mediator::run({
        let mut command = Command::new(AMBER);
        command.args(["mediator", "--listen", "127.0.0.1:0"]);
        command.args(["--driver", &format!("dummy:0={AMBER} driver dummy")]);
        command
    });
    mediator.wait_for_line("up driver=dummy:0");
    let mut client = Command::new("python3");
    client
        .arg(examples().join("python/dummy_client.py"))
        .env("AMBER_MEDIATOR", mediator.address.to_string());
    assert!(build(&mut client).contains("message: hello from Python"));
}

/// Folders that can be copied out of the repository have their own schemas.
#[test]
fn copies_of_schemas_are_up_to_date() {
    for language in ["java", "node"] {
        for (name, original) in [
            ("drivermsg.proto", root().join("proto/drivermsg.proto")),
            ("interface.proto", root().join("proto/interface.proto")),
            ("dummy.proto", root().join("proto/dummy.proto")),
            ("camera.proto", root().join("proto/camera.proto")),
            ("thermometer.proto", examples().join("thermometer.proto")),
        ] {
            let copy = examples().join(language).join("proto").join(name);
            assert_eq!(
                fs::read_to_string(&copy).unwrap(),
                fs::read_to_string(&original).unwrap(),
                "copy {} to {}",
                original.display(),
                copy.display()
            );
        }
    }
}

#[test]
fn python_with_the_package() {
    if !has(
        "examples with the Python package",
        "python3 -c import\tgrpc_tools",
    ) {
        return;
    }
    let package = Language {
        environment: vec![("PYTHONPATH", root().join("client-sdk/python/src"))],
        ..Language::new("", "", "")
    };
    at_once(&[
        &|| package.check_driver("201:0", &words("python3 python/thermometer_driver.py")),
        &|| package.check_driver("202:0", &words("python3 python/follow_wall.py")),
        &|| package.check_client(&words("python3 python/thermometer_client.py"), "{}"),
    ]);
}

#[test]
fn rust() {
    let built = rust_examples();
    let program = |name: &str| built.join(name).to_str().unwrap().to_owned();
    let language = Language {
        address: "{}",
        ..Language::new(
            &program("dummy_driver"),
            &program("thermometer_driver"),
            &program("client"),
        )
    };
    at_once(&[
        &|| language.check(),
        &|| language.check_driver("202:0", &words(&program("follow_wall"))),
        &|| language.check_client(&words(&program("follow_wall_client")), "{} 3"),
    ]);
    language.work_together();
}
