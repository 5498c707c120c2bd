//! A robot is found in its network, with its devices, and no longer when it is gone.

use std::process::Stdio;

use serde_json::Value;

use crate::common::wait_for;
use crate::network::{Killed, Network};

/// What the laptop finds.
fn found(network: &Network) -> Vec<Value> {
    let words = ["discover", "--for", "2", "--json"];
    let found = Network::on(&network.laptop, &words).output().unwrap();
    let found: Value = serde_json::from_slice(&found.stdout).unwrap();
    found["robots"].as_array().unwrap().clone()
}

#[test]
fn a_robot_is_found_by_name_until_it_is_gone() {
    let Some(network) = Network::new("found") else {
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
        found(&network)
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
        found(&network).is_empty().then_some(())
    });

    // One key turns it off. The mediator answers before anything is searched.
    let _silent = start("false");
    wait_for("the mediator", || {
        let words = ["-m", "10.77.0.1", "ping", "dummy", "-c", "1"];
        let asked = Network::on(&network.laptop, &words).output().unwrap();
        asked.status.success().then_some(())
    });
    assert_eq!(found(&network), [] as [Value; 0]);
}
