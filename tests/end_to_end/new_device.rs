//! A device of a user needs its `.proto` and its driver, and nothing else: outside of this
//! repository, in Rust. (`python_package` has the same in Python.)

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use amber_proto::mediator::DriverState;
use nix::sys::signal::Signal;
use tempfile::TempDir;

use crate::common::{AMBER, Mediator, Running, root, signal, wait_for};
use crate::robot::{drives, stands};

/// Writes a package with these dependencies into an empty folder, and builds it. Returns the folder of
/// its programs. Dependencies are built only as far as the workspace has not built them.
fn built(name: &str, dependencies: &str, files: &[(&str, String)]) -> (TempDir, PathBuf) {
    let folder = TempDir::new().unwrap();
    for (file, text) in files {
        let path = folder.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let manifest = format!(
        "[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n\
         [dependencies]\n{dependencies}\n\
         [profile.dev]\ndebug = \"line-tables-only\"\nincremental = false\n\n\
         [profile.dev.package.\"*\"]\ndebug = false\n\n[workspace]\n"
    );
    fs::write(folder.path().join("Cargo.toml"), manifest).unwrap();
    // The same versions as here, so that nothing is downloaded.
    fs::copy(root().join("Cargo.lock"), folder.path().join("Cargo.lock")).unwrap();
    let target = Path::new(AMBER).ancestors().nth(2).unwrap();
    let output = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--offline", "--bins"])
        // Leave CPU time for other tests, which have deadlines.
        .args(["--jobs", "1", "--target-dir"])
        .arg(target)
        // Users compile with rustc, even if this test was compiled by Clippy.
        .env_remove("RUSTC_WORKSPACE_WRAPPER")
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    (folder, target.join("debug"))
}

/// The battery gauge in this folder.
fn battery() -> (TempDir, PathBuf) {
    let original = root().join("tests/end_to_end/battery");
    let files = [
        "battery.proto",
        "src/lib.rs",
        "src/bin/ask.rs",
        "src/bin/gauge.rs",
    ];
    let files = files.map(|file| (file, fs::read_to_string(original.join(file)).unwrap()));
    let dependencies = format!(
        "amber-sdk = {{ path = {:?}, features = [\"driver\"] }}\n\
         tokio = {{ version = \"1\", features = [\"rt\", \"time\"] }}\n",
        root().join("client-sdk"),
    );
    built("battery", &dependencies, &files)
}

/// The block of code of a page that contains these words.
fn block(page: &str, words: &str) -> String {
    let text = fs::read_to_string(root().join(page)).unwrap();
    let blocks = text.split("```").skip(1).step_by(2);
    let mut blocks = blocks.filter(|block| block.contains(words));
    let (_, block) = blocks.next().unwrap().split_once('\n').unwrap();
    assert!(blocks.next().is_none(), "{words}");
    block.to_owned()
}

#[test]
fn the_rust_program_of_the_readme_drives_the_robot() {
    let here = "path = \"amber/client-sdk\"";
    let manifest = block("README.md", here);
    let dependencies = manifest.strip_prefix("[dependencies]\n").unwrap();
    let path = format!("path = {:?}", root().join("client-sdk"));
    let dependencies = dependencies.replace(here, &path);
    let program = block("README.md", "#[amber_sdk::main]");
    let (folder, programs) = built("of-the-readme", &dependencies, &[("src/main.rs", program)]);
    let program = || Command::new(programs.join("of-the-readme"));

    let robot = crate::driving::robot();
    let address = robot.demo.address.to_string();
    // Ctrl-C stops the robot.
    let mut interrupted = program();
    let mut interrupted = (interrupted.env("AMBER_MEDIATOR", &address).spawn()).unwrap();
    robot.until("it drives", drives);
    signal(interrupted.id(), Signal::SIGINT);
    assert_eq!(interrupted.wait().unwrap().code(), Some(130));
    robot.until("it stands", stands);

    let (code, out) = run(program().env("AMBER_MEDIATOR", &address), &folder);
    assert!(code == 0 && out.starts_with("arrived at 1."), "{out}");
    let state = robot.state();
    let distance_m = (state.x_m - 1.4).hypot(state.y_m - 1.0);
    assert!(distance_m < 0.35, "{distance_m}");

    // Without a robot, there is an error with a hint.
    drop(robot);
    let (code, out) = run(program().env("AMBER_MEDIATOR", "127.0.0.1:1"), &folder);
    assert!(
        code == 1 && out.starts_with("error: no mediator at 127.0.0.1:1: "),
        "{out}"
    );
    assert!(out.contains("\nhint: "), "{out}");
    let (code, out) = run(program().env("AMBER_MEDIATOR", "nobody at home"), &folder);
    assert!(code == 1 && out.contains("\nhint: write HOST"), "{out}");
}

/// Runs a command in the folder, and returns its exit code and its output.
fn run(command: &mut Command, folder: &TempDir) -> (i32, String) {
    let output = command.current_dir(folder.path()).output().unwrap();
    let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    (output.status.code().unwrap(), text.concat())
}

#[test]
fn a_device_of_a_user_needs_its_description_and_its_driver() {
    let (folder, programs) = battery();
    let gauge = programs.join("gauge");
    let mediator = Mediator::start(&[&format!("211:0={}", gauge.display())]);
    mediator.wait_for_line("up driver=211:0");

    // Typed clients in Rust.
    let address = mediator.address.to_string();
    let (code, out) = run(Command::new(programs.join("ask")).arg(&address), &folder);
    let charge = "BatteryCharge { charge_percent: 87.5, capacity: Some(1800) }";
    let expected = format!(
        "blocking {charge}\nblocking charges Some(87.5)\n\
         async {charge}\nasync voltages Some(3702)\nboth true true\none true\n"
    );
    assert_eq!((code, out), (0, expected));

    // The command line, without the file: the driver has handed its description to the mediator.
    let call = |words: &[&str]| {
        let words = [&["call", "--timeout", "30", "211"], words].concat();
        run(&mut mediator.amber(&words), &folder)
    };
    let (code, out) = call(&["charge"]);
    assert!(code == 0 && out.contains("87.5 %"), "{out}");
    assert_eq!(call(&["set-capacity", "2500"]).0, 0);
    let (code, out) = call(&["charge", "--json"]);
    assert!(code == 0 && out.contains("2500"), "{out}");
    let (code, out) = call(&["set-capacity", "50"]);
    assert!(code == 2 && out.contains("100"), "{out}");
    let mut watched = Running::start(&mediator, &["watch", "211", "voltages", "50ms", "3"]);
    let line = watched.line();
    assert!(line.contains("3703"), "{line}");
    watched.interrupt();

    // Help, completion and the interface come from the driver, too.
    let amber = |words: &[&str]| run(&mut mediator.amber(words), &folder);
    // A person who presses Tab does not wait for long, so on a busy machine completion may know less.
    let shown = |words: &[&str], expected: &str| {
        let is_right = |(code, out): &(i32, String)| *code == 0 && out.contains(expected);
        match words[0] {
            "complete" => wait_for(&format!("{words:?}"), || {
                Some(amber(words)).filter(is_right)
            }),
            _ => amber(words),
        }
    };
    for (words, expected) in [
        (&["call", "211", "--help"][..], "How full the battery is"),
        (
            &["call", "211:0", "set-capacity", "-h"],
            "from 100 to 20000 mA*h",
        ),
        (&["watch", "211", "--help"], "The voltage of one cell"),
        (&["describe", "211"], "gauge (device type 211)"),
        (&["describe", "211", "--as", "proto"], "service Battery {"),
        (&["describe", "211", "--json"], "\"set-capacity\""),
        (&["complete", "--", "call", "211", "s"], "set-capacity\t"),
        (
            &["complete", "--", "watch", "211", "voltages", ""],
            "period=",
        ),
    ] {
        let (code, out) = shown(words, expected);
        assert!(code == 0 && out.contains(expected), "{words:?}: {out}");
        assert!(!out.contains("hint: "), "{words:?}: {out}");
    }
    // So does its name.
    for (words, expected) in [
        (&["call", "gauge", "charge"][..], "87.5 %"),
        (&["call", "Gauge:0", "charge"], "87.5 %"),
        (&["call", "gauge", "--help"], "How full the battery is"),
        (&["describe", "gauge"], "gauge (device type 211)"),
        (&["status", "gauge"], "211:0"),
        (&["logs", "gauge"], "up"),
        (&["bench", "gauge", "-s", "0.1"], "211:0"),
        (&["complete", "--", "restart", "gau"], "gauge"),
        (
            &["complete", "--", "bench", "--svg", "f.svg", "gau"],
            "gauge",
        ),
        (&["complete", "--", "call", "gauge", "s"], "set-capacity\t"),
        (
            &[
                "complete",
                "--",
                "call",
                "--timeout",
                "2",
                "gauge",
                "set-capacity",
                "",
            ],
            "capacity=",
        ),
        (
            &["complete", "--", "watch", "gauge", "voltages", ""],
            "period=",
        ),
    ] {
        let (code, out) = shown(words, expected);
        assert!(code == 0 && out.contains(expected), "{words:?}: {out}");
    }
    for (words, why) in [
        (["call", "gaug:0", "charge"], "unknown device type 'gaug'"),
        (["call", "gauge:x", "charge"], "'x'"),
    ] {
        let (code, out) = amber(&words);
        assert!(code == 2 && out.contains(why), "{words:?}: {out}");
    }
    // The mediator that the line names is asked, rather than that of the environment.
    let mut elsewhere = Command::new(AMBER);
    elsewhere.env("AMBER_MEDIATOR", "127.0.0.1:1");
    elsewhere.args(["complete", "--", "-m", &address, "call", "211", "charg"]);
    let charge = (0, "charge\tHow full the battery is\n".to_owned());
    wait_for("a completion from the other mediator", || {
        (run(&mut elsewhere, &folder) == charge).then_some(())
    });

    // Tools with the file.
    let mut describe = Command::new(AMBER);
    describe.args(["describe", "--proto", "battery.proto"]);
    let (code, out) = run(&mut describe, &folder);
    assert!(
        code == 0 && out.contains("How full the battery is."),
        "{out}"
    );
    let mut check = Command::new(AMBER);
    check.args(["check", "--timeout", "20", "--device", "211:0"]);
    check.args(["--proto", "battery.proto", "--"]).arg(&gauge);
    let (code, out) = run(&mut check, &folder);
    assert!(code == 0 && !out.contains("FAIL"), "{out}");

    // A recording has the description, and answers in its place.
    let mut recorder = mediator.amber(&["record", "gauge", "-o", "b.mcap", "--for", "2s"]);
    let mut recorder = recorder.current_dir(folder.path()).spawn().unwrap();
    while recorder.try_wait().unwrap().is_none() {
        assert_eq!(call(&["charge"]).0, 0);
    }
    assert!(recorder.wait().unwrap().success());
    drop(mediator);
    let nowhere = |words: &[&str]| {
        let mut command = Command::new(AMBER);
        command.env("AMBER_MEDIATOR", "127.0.0.1:1").args(words);
        run(&mut command, &folder)
    };
    let (code, out) = nowhere(&["export", "b.mcap", "gauge", "--csv"]);
    assert!(code == 0 && out.contains("87.5"), "{out}");
    let (code, out) = nowhere(&["complete", "--", "export", "b.mcap", "--csv", "gau"]);
    assert_eq!((code, out.as_str()), (0, "gauge\t\n"));
    let mut player = Command::new(AMBER);
    player.args([
        "play",
        "b.mcap",
        "--listen",
        "127.0.0.1:0",
        "--devices",
        "gauge",
    ]);
    player.current_dir(folder.path());
    let player = Mediator::run(player);
    player.wait_for_state("211:0", DriverState::Up);
    let played = |words: &[&str]| run(&mut player.amber(words), &folder);
    let (code, out) = played(&["call", "--timeout", "30", "gauge", "charge", "--json"]);
    assert!(
        code == 0 && out.contains("87.5") && out.contains("2500"),
        "{out}"
    );
    let (code, out) = played(&["call", "gauge", "set-capacity", "300"]);
    assert!(code != 0 && out.contains("this is a recording"), "{out}");
    wait_for("a completion from the recording", || {
        let completed = played(&["complete", "--", "call", "gauge", "c"]);
        (completed == charge).then_some(())
    });
}

#[test]
fn a_configuration_may_name_the_device_of_a_user() {
    let folder = TempDir::new().unwrap();
    let original = root().join("tests/end_to_end/battery/battery.proto");
    fs::copy(original, folder.path().join("battery.proto")).unwrap();
    let config = folder.path().join("amber.toml");
    let text = "[mediator]\nlisten = [\"127.0.0.1:0\"]\nproto = [\"battery.proto\"]\n\
                [[driver]]\ndevice = \"gauge:0\"\ncommand = [\"amber\", \"driver\", \"dummy\"]\n";
    fs::write(&config, text).unwrap();
    let mut command = Command::new(AMBER);
    command.args(["mediator", "-c"]).arg(&config);
    let mediator = Mediator::run(command);
    mediator.wait_for_line("up driver=211:0");
    let second = text.replace("gauge:0", "gauge:1");
    fs::write(
        &config,
        format!("{text}{}", &second[second.find("[[driver]]").unwrap()..]),
    )
    .unwrap();
    let (code, out) = run(&mut mediator.amber(&["reload"]), &folder);
    assert_eq!(code, 0, "{out}");
    mediator.wait_for_line("up driver=211:1");

    let mut shown = Command::new(AMBER);
    shown.args(["mediator", "--print-config", "--proto", "battery.proto"]);
    shown.args(["--driver", "gauge:3=amber driver dummy"]);
    let (code, out) = run(&mut shown, &folder);
    assert!(code == 0 && out.contains("device = \"211:3\""), "{out}");
    let mut wrong = Command::new(AMBER);
    wrong.args(["mediator", "--print-config", "--proto", "missing.proto"]);
    let (code, out) = run(&mut wrong, &folder);
    assert!(
        code == 2 && out.contains("--proto: ") && out.contains("missing.proto"),
        "{out}"
    );
}
