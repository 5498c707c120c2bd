//! The commands of the documentation work: those that only read are run against the demo robot, and
//! tests/end_to_end/documented.md names the others.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread;

use nix::sys::signal::Signal;

use crate::common::{AMBER, Mediator, demo_with, ready_demo, root, signal, wait_for};
use crate::gallery::{LATE, TRIES};

#[path = "../../mediator/src/cli/documented/pages.rs"]
mod pages;

/// What runs until Ctrl-C, by its beginning or, after `*`, by a word.
const UNTIL_CTRL_C: [&str; 5] = [
    "amber watch ",
    "amber events",
    "amber ping dummy",
    "*--follow",
    "*--watch",
];

/// Commands that a device refuses while it carries out another one of them.
const TAKES_TURNS: [&str; 2] = [
    "amber call ninedof calibrate",
    "amber call ninedof self-test",
];
static TURNS: Mutex<()> = Mutex::new(());

/// What may exit with 1, because the answer is no on this machine.
const MAY_SAY_NO: [&str; 1] = ["amber doctor"];

/// The commands in the first column of the two tables of tests/end_to_end/documented.md.
fn not_run() -> [Vec<String>; 2] {
    let page = fs::read_to_string(root().join("tests/end_to_end/documented.md")).unwrap();
    let (amber, others) = page.split_once("## Other commands").unwrap();
    [amber, others].map(|part| {
        part.lines()
            .filter_map(|line| line.strip_prefix("| `")?.split('`').next())
            .map(str::to_owned)
            .collect()
    })
}

/// Whether a command is the one in a row, in which `...` stands for any further words.
fn fits(row: &str, command: &str) -> bool {
    match row.strip_suffix("...") {
        Some(start) => command == start.trim_end() || command.starts_with(start),
        None => command == row,
    }
}

/// The commands of all pages that no row has, each once. Rows without a command are an error.
fn without_rows(rows: &[String], commands: Vec<(String, String)>) -> Vec<(String, String)> {
    let mut used = BTreeSet::new();
    let mut seen = BTreeSet::new();
    let mut left = Vec::new();
    for (place, command) in commands {
        match rows.iter().find(|row| fits(row, &command)) {
            Some(row) => drop(used.insert(row)),
            None if seen.insert(command.clone()) => left.push((place, command)),
            None => {}
        }
    }
    let unused: Vec<_> = rows.iter().filter(|row| !used.contains(row)).collect();
    assert!(
        unused.is_empty(),
        "tests/end_to_end/documented.md lists {unused:?}, which no page shows"
    );
    left
}

fn of_all_pages<T>(commands: fn(&str) -> Vec<(usize, T)>) -> Vec<(String, T)> {
    let mut all = Vec::new();
    for path in pages::pages() {
        let page = fs::read_to_string(&path).unwrap();
        let place = |line| format!("{}:{line}", path.display());
        all.extend(
            commands(&page)
                .into_iter()
                .map(|(line, command)| (place(line), command)),
        );
    }
    all
}

#[test]
fn every_command_that_only_reads_works() {
    let [rows, _] = not_run();
    let commands = of_all_pages(pages::commands);
    let words: Vec<_> = (commands.into_iter())
        .map(|(place, words)| (place, shell_words::join(words)))
        .collect();
    let left = without_rows(&rows, words);
    assert!(left.len() > 50, "only {} commands would be run", left.len());

    // The pages also read the battery.
    let (demo, devices) = demo_with("battery:0=amber driver battery");
    demo.wait_until_ready();
    demo.wait_for_line("up driver=battery:0");
    for device in ["location", "drive-to-point"] {
        demo.wait_for_line(&format!("up driver={device}:0"));
    }
    let folder = tempfile::tempdir().unwrap();
    prepare(&demo, folder.path());
    let failed = Mutex::new(Vec::new());
    let left = Mutex::new(left.into_iter());
    let work = || {
        loop {
            let Some((place, command)) = left.lock().unwrap().next() else {
                return;
            };
            let attempt = || run(&demo, devices.path(), folder.path(), &command);
            if let Err(error) = patiently(attempt) {
                let failure = format!("{place}: {command}: {error}");
                failed.lock().unwrap().push(failure);
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(work);
        }
    });
    let failed = failed.into_inner().unwrap();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// A busy machine may answer later than a command or a driver waits: then the command is run again.
fn patiently(mut attempt: impl FnMut() -> Result<(), String>) -> Result<(), String> {
    for _ in 1..TRIES {
        match attempt() {
            Err(late) if late.contains(LATE) => {}
            ended => return ended,
        }
    }
    attempt()
}

/// Makes the files that the commands name.
fn prepare(demo: &Mediator, folder: &Path) {
    let mut record = demo.amber(&["record", "-o", "drive.mcap", "--for", "1s"]);
    let output = record.current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let battery = root().join("tests/end_to_end/battery/battery.proto");
    fs::copy(battery, folder.join("battery.proto")).unwrap();
    let configuration =
        "[[driver]]\ndevice = \"dummy:0\"\ncommand = [\"amber\", \"driver\", \"dummy\"]\n";
    fs::write(folder.join("amber.toml"), configuration).unwrap();
}

fn run(demo: &Mediator, devices: &Path, folder: &Path, text: &str) -> Result<(), String> {
    let words = shell_words::split(text).unwrap();
    let words: Vec<_> = words.iter().skip(1).map(String::as_str).collect();
    let mut command = demo.amber(&words);
    let programs = Path::new(AMBER).parent().unwrap().display();
    command
        .current_dir(folder)
        .env("AMBER_SIM_DIR", devices.join("sim"))
        .env(
            "PATH",
            format!("{programs}:{}", std::env::var("PATH").unwrap()),
        );
    let endless = UNTIL_CTRL_C
        .iter()
        .any(|known| match known.strip_prefix('*') {
            Some(word) => words.contains(&word),
            None => text.starts_with(known),
        });
    let takes_turns = TAKES_TURNS.iter().any(|known| text.starts_with(known));
    let _turn = takes_turns.then(|| TURNS.lock().unwrap_or_else(PoisonError::into_inner));
    let output = if endless && !words.contains(&"--help") {
        interrupted(command)
    } else {
        command.output().unwrap()
    };
    let may_say_no = MAY_SAY_NO.iter().any(|known| text.starts_with(known));
    match output.status.code() {
        Some(0) => Ok(()),
        Some(1) if may_say_no => Ok(()),
        _ => Err(format!(
            "{}: {}{}",
            output.status,
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        )),
    }
}

/// Runs a command until it has printed something, and then presses Ctrl-C.
fn interrupted(mut command: Command) -> std::process::Output {
    let file = tempfile::NamedTempFile::new().unwrap();
    let both = || Stdio::from(file.reopen().unwrap());
    let mut child = command.stdout(both()).stderr(both()).spawn().unwrap();
    let mut ended = None;
    wait_for("a line or the end", || {
        ended = child.try_wait().unwrap();
        let printed = fs::metadata(file.path()).unwrap().len() > 0;
        (ended.is_some() || printed).then_some(())
    });
    if ended.is_none() {
        signal(child.id(), Signal::SIGINT);
    }
    let status = wait_for("its end", || child.try_wait().unwrap());
    let stderr = fs::read(file.path()).unwrap();
    std::process::Output {
        status,
        stdout: Vec::new(),
        stderr,
    }
}

#[test]
fn every_other_command_is_listed_with_what_runs_it() {
    let [_, rows] = not_run();
    let left = without_rows(&rows, of_all_pages(pages::other_commands));
    assert!(
        left.is_empty(),
        "missing in tests/end_to_end/documented.md: {left:#?}"
    );
}

#[test]
fn the_program_of_the_tutorial_drives_the_robot() {
    if !crate::python_package::can_run("the tutorial", "google.protobuf") {
        return;
    }
    let page = fs::read_to_string(root().join("docs/tutorial.md")).unwrap();
    let program = page
        .split("```python\n")
        .nth(1)
        .unwrap()
        .split("```")
        .next()
        .unwrap();
    let (demo, folder) = ready_demo();
    // The demo is at another port than the one of the page.
    let program = program.replace("127.0.0.1", &demo.address.to_string());
    let before = crate::python_package::truth(folder.path(), "travelled_m");
    let output = Command::new("python3")
        .args(["-c", &program])
        .env("PYTHONPATH", root().join(crate::python_package::SOURCE))
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let driven = (crate::python_package::truth(folder.path(), "travelled_m") - before).abs();
    assert!((0.2..0.6).contains(&driven), "{driven} m");
}
