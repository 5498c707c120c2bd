//! Every command of docs/fleet.md runs: real processes.

// The helpers are no tests for clippy.
#![allow(clippy::print_stderr, clippy::unwrap_used)]

use std::path::Path;
use std::process::Command;

use self::common::{Process, amber_path, amber_zenoh, demo, free_port, wait_for};

#[allow(dead_code)]
mod common;

const PAGE: &str = include_str!("../../../../docs/fleet.md");

/// What a command needs, and how it shows that it works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A program that is not part of Amber, or the shell.
    Foreign,
    /// It goes on, and logs this.
    Stays(&'static str),
    /// It ends without an error, and prints this.
    Ends(&'static str),
    /// The same with certificates.
    Secure(&'static str),
    /// It goes on with certificates.
    SecureStays(&'static str),
}

/// The beginning of each command, and its kind: the first one that fits counts.
const COMMANDS: [(&str, Kind); 24] = [
    ("cargo install", Kind::Foreign),
    ("ros2 ", Kind::Foreign),
    ("rviz2", Kind::Foreign),
    ("export ", Kind::Foreign),
    ("zenoh-bridge-ros2dds ", Kind::Foreign),
    (
        "amber-zenoh access",
        Kind::Secure("amber-zenoh router --config"),
    ),
    (
        "amber-zenoh router --config",
        Kind::SecureStays("the router listens on"),
    ),
    (
        "amber-zenoh robot --config",
        Kind::SecureStays("in the fleet"),
    ),
    ("amber-zenoh fleet --config", Kind::Secure("r1")),
    (
        "amber-zenoh router --listen",
        Kind::Stays("the router listens on"),
    ),
    // As a node of ROS 2: in place of the plain one.
    (
        "amber-zenoh robot --name r1 --connect tcp/192.168.0.7:7447 --ros",
        Kind::Stays("a node of ROS 2"),
    ),
    ("amber-zenoh robot --name r1", Kind::Stays("in the fleet")),
    ("amber-zenoh robot --name r2", Kind::Stays("in the fleet")),
    ("amber-zenoh fleet --connect", Kind::Ends("r2")),
    ("amber-zenoh doctor", Kind::Ends("r2: round trip")),
    ("amber-zenoh call --robot r1", Kind::Ends("mm/s")),
    ("amber-zenoh call --robot r2", Kind::Ends("mm/s")),
    ("amber-zenoh watch --robot r2", Kind::Stays("messages/s")),
    (
        "amber-zenoh with --robot r2",
        Kind::Ends("the mediator is 127.0.0.1:"),
    ),
    (
        "amber-zenoh seat --robot r2 --operator alice take",
        Kind::Ends("alice has the seat"),
    ),
    (
        "amber-zenoh seat --robot r2 --operator alice release-halt",
        Kind::Ends("r2"),
    ),
    (
        "amber-zenoh seat --robot r2 --operator alice release",
        Kind::Ends("nobody drives r2"),
    ),
    (
        "amber-zenoh seat --robot r2 --operator alice halt",
        Kind::Ends("r2"),
    ),
    (
        "amber-zenoh seat --robot r2 --operator alice",
        Kind::Ends("nobody drives r2"),
    ),
];

/// The commands of the page, each once, in their order.
fn commands() -> Vec<(&'static str, Kind)> {
    let mut all = Vec::new();
    for block in blocks("sh") {
        for line in block.lines() {
            let command = line.split(" #").next().unwrap().trim();
            if command.is_empty() || command.starts_with('#') {
                continue;
            }
            let known = COMMANDS
                .iter()
                .find(|(start, _)| command.starts_with(start));
            let (_, kind) = known.unwrap_or_else(|| panic!("no test knows how to run: {command}"));
            if !all.contains(&(command, *kind)) {
                all.push((command, *kind));
            }
        }
    }
    all
}

/// The blocks of code in this language.
fn blocks(language: &str) -> Vec<&'static str> {
    let parts = PAGE.split("\n```").skip(1).step_by(2);
    let fence = format!("{language}\n");
    parts
        .filter_map(|part| part.strip_prefix(fence.as_str()))
        .collect()
}

/// The block with a configuration that begins so.
fn settings(start: &str) -> String {
    let all = blocks("toml");
    let found = all.iter().find(|it| it.starts_with(start));
    (*found.unwrap_or_else(|| panic!("{start} in docs/fleet.md"))).to_owned()
}

/// Runs commands in a folder, with a port of its own in place of 7447.
struct Shell {
    folder: tempfile::TempDir,
    router: String,
    mediator: String,
    running: Vec<(String, Process)>,
}

impl Shell {
    fn new(router: &str, mediator: &str) -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            router: format!("{router}:{}", free_port()),
            mediator: mediator.to_owned(),
            running: Vec::new(),
        }
    }

    fn write(&self, file: &str, text: &str) {
        std::fs::write(self.folder.path().join(file), text).unwrap();
    }

    fn command(&self, command: &str) -> Command {
        let mut words = command.split_whitespace();
        assert_eq!(words.next(), Some("amber-zenoh"));
        let mut process = amber_zenoh();
        let mut words: Vec<_> = words
            .map(|it| it.replace("tcp/192.168.0.7:7447", &self.router))
            .collect();
        let verb = words[0].clone();
        let names_router = ["--connect", "--config", "--listen"];
        let is_local =
            verb == "access" || names_router.iter().any(|it| words.iter().any(|w| w == it));
        if !is_local {
            // Before the program that it may run.
            words.splice(1..1, ["--connect".to_owned(), self.router.clone()]);
        }
        if command.starts_with("amber-zenoh router --config") {
            words.extend([
                "--listen".to_owned(),
                self.router.replace("localhost", "127.0.0.1"),
            ]);
        }
        let path = std::env::var("PATH").unwrap();
        let amber = amber_path();
        process.env(
            "PATH",
            format!("{}:{path}", amber.parent().unwrap().display()),
        );
        process.env("AMBER_MEDIATOR", &self.mediator);
        process.current_dir(self.folder.path()).args(words);
        process
    }

    fn run(&mut self, command: &str, kind: Kind) {
        match kind {
            Kind::Foreign => {}
            Kind::Stays(text) | Kind::SecureStays(text) => {
                // Another one in its place.
                let name = command.split(" --connect").next().unwrap().to_owned();
                self.running.retain(|(other, _)| *other != name);
                let process = Process::start(self.command(command));
                process.line(text);
                self.running.push((name, process));
            }
            Kind::Ends(text) | Kind::Secure(text) => {
                // A robot that has just started may not be there yet.
                wait_for(command, || {
                    let output = self.command(command).output().unwrap();
                    let shown = [output.stdout, output.stderr].concat();
                    let shown = String::from_utf8_lossy(&shown).into_owned();
                    let is_done = output.status.success() && shown.contains(text);
                    if !is_done {
                        eprintln!("{command}: {shown}");
                    }
                    is_done.then_some(())
                });
            }
        }
    }
}

#[test]
fn every_command_of_the_page_runs() {
    let (process, address, _folder) = demo();
    process.line("INFO ready: ");
    let all = commands();
    for (start, _) in COMMANDS {
        let is_used = all.iter().any(|(command, _)| command.starts_with(start));
        assert!(is_used, "no command of the page begins so: {start}");
    }

    let mut open = Shell::new("tcp/127.0.0.1", &address);
    open.write(
        "my_program.py",
        "import os\nprint('the mediator is', os.environ['AMBER_MEDIATOR'])\n",
    );
    let is_open = |kind: Kind| matches!(kind, Kind::Stays(_) | Kind::Ends(_));
    let plain = all.iter().copied().filter(|(_, kind)| is_open(*kind));
    // Both robots come first.
    let (mut first, mut then): (Vec<_>, Vec<_>) = plain.partition(|(command, _)| {
        command.contains(" router ") || command.contains(" robot --name")
    });
    first.sort_by_key(|(command, _)| !command.contains(" router "));
    for (command, kind) in first.drain(..).chain(then.drain(..)) {
        open.run(command, kind);
    }
    // The example that did not work.
    for command in [
        "amber-zenoh call --robot r2 --operator alice roboclaw drive 100 100 100 100",
        "amber-zenoh with --robot r2 --operator alice --devices roboclaw:0 -- \
            amber drive --left 100 --right 100 --for 0.3s",
    ] {
        open.run(command, Kind::Ends(""));
    }

    let mut secure = Shell::new("tls/localhost", &address);
    let place = |text: &str, shell: &Shell| {
        let text = text.replace("tls/fleet.example:7447", &shell.router);
        text.replace("192.168.0.7", "localhost")
    };
    let rights = place(&settings("[router]"), &secure);
    secure.write("rights.toml", &rights);
    let robot = place(&settings("[zenoh]\nconnect = [\"tls/"), &secure);
    secure.write("r1.toml", &robot);
    let alice = robot.replace("certificates/r1.", "certificates/alice.");
    let alice = alice.replace("[fleet]\nname = \"r1\"", "[operator]\nname = \"alice\"");
    secure.write("alice.toml", &alice);
    assert!(alice.contains("[operator]"), "{alice}");
    for (command, kind) in &all {
        if matches!(kind, Kind::Secure(_) | Kind::SecureStays(_)) {
            secure.run(command, *kind);
        }
    }
    assert!(
        Path::new(secure.folder.path())
            .join("certificates/ca.key")
            .exists()
    );
}
