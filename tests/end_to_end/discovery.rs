//! A robot is found in its network, with its devices, and no longer when it is gone.

use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

use crate::common::{AMBER, wait_for};

/// Two machines with one network between them.
struct Network {
    robot: String,
    laptop: String,
}

impl Network {
    /// `None` without the rights or the program to make one.
    fn new() -> Option<Self> {
        let pid = std::process::id();
        let network = Self {
            robot: format!("amber-robot-{pid}"),
            laptop: format!("amber-laptop-{pid}"),
        };
        let (robot, laptop) = (&network.robot, &network.laptop);
        let is_made = [
            format!("netns add {robot}"),
            format!("netns add {laptop}"),
            format!("link add r0 netns {robot} type veth peer name l0 netns {laptop}"),
            format!("-n {robot} addr add 10.77.0.1/24 dev r0"),
            format!("-n {laptop} addr add 10.77.0.2/24 dev l0"),
            format!("-n {robot} link set lo up"),
            format!("-n {laptop} link set lo up"),
            format!("-n {robot} link set r0 up"),
            format!("-n {laptop} link set l0 up"),
        ]
        .iter()
        .all(|words| ip(words).is_some_and(|done| done.status.success()));
        if !is_made {
            return None;
        }
        wait_for("the link", || {
            let link = ip(&format!("-n {laptop} -o link show l0"))?;
            String::from_utf8_lossy(&link.stdout)
                .contains("state UP")
                .then_some(())
        });
        Some(network)
    }

    /// A program on one of the machines.
    fn on(machine: &str, words: &[&str]) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", machine, AMBER]).args(words);
        command.stdin(Stdio::null());
        command
    }

    /// What the laptop finds.
    fn found(&self) -> Vec<Value> {
        let words = ["discover", "--for", "2", "--json"];
        let found = Self::on(&self.laptop, &words).output().unwrap();
        let found: Value = serde_json::from_slice(&found.stdout).unwrap();
        found["robots"].as_array().unwrap().clone()
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for machine in [&self.robot, &self.laptop] {
            let _ = ip(&format!("netns del {machine}"));
        }
    }
}

fn ip(words: &str) -> Option<Output> {
    Command::new("ip").args(words.split(' ')).output().ok()
}

/// A process that is killed at the end.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_robot_is_found_by_name_until_it_is_gone() {
    let Some(network) = Network::new() else {
        eprintln!("SKIP robots found in a network: needs root and the program ip");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let start = |announce: &str| {
        let file = folder.path().join("amber.toml");
        let text = format!(
            "[mediator]\nname = 'Robot 2'\nannounce = {announce}\n\
             [[driver]]\ndevice = 'dummy:0'\ncommand = ['amber', 'driver', 'dummy']\n"
        );
        std::fs::write(&file, text).unwrap();
        let words = ["mediator", "--config", file.to_str().unwrap()];
        let mut command = Network::on(&network.robot, &words);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        Killed(command.spawn().unwrap())
    };

    let mediator = start("true");
    let robot = wait_for("the robot", || {
        let found = network.found();
        found
            .into_iter()
            .find(|robot| robot["devices"][0] == "dummy:0")
    });
    assert_eq!(robot["name"], "Robot 2");
    assert_eq!(robot["version"], env!("CARGO_PKG_VERSION"));
    let address = robot["addresses"][0].as_str().unwrap();
    assert_eq!(address, "10.77.0.1:26233");
    let asked = Network::on(
        &network.laptop,
        &["-m", address, "ping", "dummy", "-c", "1"],
    );
    assert!({ asked }.status().unwrap().success());

    // Even the death of the mediator is noticed.
    drop(mediator);
    wait_for("the end of the robot", || {
        network.found().is_empty().then_some(())
    });

    // One key turns it off. The mediator answers before anything is searched.
    let _silent = start("false");
    wait_for("the mediator", || {
        let words = ["-m", "10.77.0.1", "ping", "dummy", "-c", "1"];
        let asked = Network::on(&network.laptop, &words).output().unwrap();
        asked.status.success().then_some(())
    });
    assert_eq!(network.found(), [] as [Value; 0]);
}
