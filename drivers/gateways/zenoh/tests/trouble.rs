//! What goes wrong between people and robots is said in words: real processes.

// The helpers are no tests for clippy.
#![allow(clippy::print_stderr, clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::thread;

use amber_proto::{DeviceMessage, MsgType, dummy};
use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose, Issuer, KeyPair};
use serde_json::Value;
use time::{Duration, OffsetDateTime};

use self::common::{
    Operator, Process, Router, amber_zenoh, dummy_mediator, free_port, next, private, robot,
    secure_robot, settings, wait_for, with_rights,
};

#[allow(dead_code)]
mod common;

const RIGHTS: &str = "
    router = { names = ['localhost'] }
    [[robot]]
    name = 'r1'
    [[operator]]
    name = 'alice'
    drives = ['r1']";

/// A certificate of the authority in a folder that has expired an hour ago.
fn expire(folder: &Path, name: &str, usage: ExtendedKeyUsagePurpose) {
    let read = |file: &str| std::fs::read_to_string(folder.join(file)).unwrap();
    let key = KeyPair::from_pem(&read("ca.key")).unwrap();
    let issuer = Issuer::from_ca_cert_pem(&read("ca.pem"), key).unwrap();
    let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    params.distinguished_name.push(DnType::CommonName, name);
    params.extended_key_usages = vec![usage];
    params.not_before = OffsetDateTime::now_utc() - Duration::days(2);
    params.not_after = OffsetDateTime::now_utc() - Duration::hours(1);
    let key = KeyPair::generate().unwrap();
    let certificate = params.signed_by(&key, &issuer).unwrap();
    std::fs::write(folder.join(name).with_extension("pem"), certificate.pem()).unwrap();
    std::fs::write(folder.join(name).with_extension("key"), key.serialize_pem()).unwrap();
}

/// A configuration of these files.
fn config(at: &Path, name: &str, ca: PathBuf, own: PathBuf) -> PathBuf {
    let file = at.join(name).with_extension("toml");
    let text = format!(
        "[zenoh]\nca = '{}'\ncertificate = '{}'\nkey = '{}'\n",
        ca.display(),
        own.display(),
        own.with_extension("key").display()
    );
    std::fs::write(&file, text).unwrap();
    file
}

#[test]
fn each_trouble_with_a_link_has_its_own_words() {
    let (_kept, folder, router) = with_rights(RIGHTS);
    let (_other_kept, other, _other_router) = with_rights(RIGHTS);
    let (_late_kept, late, mut late_router) = with_rights(RIGHTS);
    expire(&late, "router", ExtendedKeyUsagePurpose::ServerAuth);
    expire(&late, "bob", ExtendedKeyUsagePurpose::ClientAuth);
    late_router.end();
    late_router.begin();
    let plain = Router::start();

    let kept = tempfile::tempdir().unwrap();
    let file = |name: &str, ca: &Path, own: &Path, who: &str| {
        config(
            kept.path(),
            name,
            ca.join("ca.pem"),
            own.join(format!("{who}.pem")),
        )
    };
    let right = file("right", &folder, &folder, "alice");
    let local = router.endpoint.replace("localhost", "127.0.0.1");
    let nobody = format!("tcp/127.0.0.1:{}", free_port());
    let cases = [
        ("nothing listens there", &right, nobody),
        (
            "it requires TLS: ",
            &right,
            router.endpoint.replace("tls/", "tcp/"),
        ),
        (
            "it does not answer with TLS",
            &right,
            plain.endpoint.replace("tcp/", "tls/"),
        ),
        (
            "the certificate of the router is not for '127.0.0.1'",
            &right,
            local,
        ),
        (
            "the certificate of the router is of another authority",
            &file("foreign", &other, &folder, "alice"),
            router.endpoint.clone(),
        ),
        (
            "the router does not know the authority of the certificate",
            &file("own", &folder, &other, "alice"),
            router.endpoint.clone(),
        ),
        (
            "the certificate of the router has expired",
            &file("late", &late, &late, "alice"),
            late_router.endpoint.clone(),
        ),
        (
            "bob.pem has expired",
            &file("bob", &late, &late, "bob"),
            router.endpoint.clone(),
        ),
    ];
    thread::scope(|scope| {
        for (words, config, endpoint) in &cases {
            scope.spawn(move || {
                let mut command = amber_zenoh();
                command.args([
                    "fleet",
                    "--deadline",
                    "1s",
                    "--connect",
                    endpoint,
                    "--config",
                ]);
                let output = command.arg(config).output().unwrap();
                let error = String::from_utf8(output.stderr).unwrap();
                let words = words.trim_end_matches(": ");
                assert!(error.contains(words), "{words}: {error}");
                assert_eq!(output.status.code(), Some(1), "{error}");
            });
        }
    });
    // No link is tried without the files, so this ends at once.
    let missing = file("missing", &folder, &folder, "nobody");
    for args in [
        &["fleet", "--deadline", "3600s"][..],
        &["robot", "--name", "r1"],
    ] {
        let mut command = amber_zenoh();
        command
            .args(args)
            .args(["--connect", &router.endpoint, "--config"]);
        let mut process = Process::start({
            command.arg(&missing);
            command
        });
        process.line("nobody.key: there is no such file");
        assert_ne!(process.wait(), Some(0));
    }
}

#[test]
fn the_doctor_knows_link_certificates_clocks_and_drops() {
    let (_kept, folder, router) = with_rights(RIGHTS);
    let (_mediator, address) = dummy_mediator();
    let config = settings("alice", "alice", &folder);
    let doctor = |more: &[&str]| {
        let mut command = amber_zenoh();
        command.args(["doctor", "--connect", &router.endpoint, "--config", &config]);
        command.args(more).output().unwrap()
    };
    // Nobody is there.
    let output = doctor(&["--robot", "r1", "--deadline", "2s"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("problem: r1 is not in the fleet"), "{text}");
    assert_eq!(output.status.code(), Some(1));

    let _robot = secure_robot("r1", "r1", &folder, &address, &router);
    let mut alice = Operator::secure(&router, "alice", "alice", &folder);
    wait_for("the robot", || alice.json("amber/r1/info"));
    // Something that the robot refuses.
    let subscribe = dummy::DriverMsg::of_kind(MsgType::Subscribe);
    wait_for("a refusal", || {
        alice
            .try_ask("amber/r1/dummy/0/call", subscribe.clone())?
            .err()
    });
    let report = wait_for("a report", || {
        let output = doctor(&["--json"]);
        let report: Value = serde_json::from_slice(&output.stdout).ok()?;
        output.status.success().then_some(report)
    });
    assert_eq!(report["problems"].as_array().unwrap().len(), 0, "{report}");
    assert_eq!(report["linked"].as_array().unwrap().len(), 1, "{report}");
    let days = report["certificates"][1]["days_left"].as_i64().unwrap();
    assert!((88..=90).contains(&days), "{report}");
    let row = &report["robots"][0];
    assert_eq!(row["robot"], "r1");
    assert!(row["clock_ms"].as_i64().unwrap().abs() < 60_000, "{report}");
    let drops = row["drops"].as_object().unwrap();
    assert!(
        drops.keys().any(|name| name.starts_with("refused_")),
        "{report}"
    );
}

#[test]
fn a_robot_that_is_not_there_is_named() {
    let router = Router::start();
    let called = private(&router, "call", &["dummy", "status"]);
    let error = String::from_utf8(called.stderr).unwrap();
    assert_eq!(called.status.code(), Some(1), "{error}");
    assert!(error.contains("r2 is not in the fleet"), "{error}");
    assert!(
        error.contains("`amber-zenoh fleet` lists the robots"),
        "{error}"
    );
    assert!(!error.contains("mediator"), "{error}");
}

#[test]
fn nobody_is_an_operator_named_like_the_nodes_of_ros() {
    let router = Router::start();
    let (_mediator, address) = dummy_mediator();
    let mut ros = Operator::new(&router, "ros");
    let tokens = ros.tokens("amber/r1/dummy/0/alive/*");
    let _robot = robot("r1", &address, &router);
    next(&tokens, true);
    let nothing = amber_proto::DriverMsg::default();
    let refused = ros.ask("amber/r1/dummy/0/call", nothing).unwrap_err();
    assert!(
        refused.message.contains("'ros' is the name of the nodes"),
        "{refused:?}"
    );
    let seat = ros.problem("amber/r1/seat/ros?action=take");
    assert!(
        seat.message.contains("'ros' is the name of the nodes"),
        "{seat:?}"
    );
    let mut command = amber_zenoh();
    command.args(["seat", "--robot", "r1", "--operator", "ros"]);
    let output = command.output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("use another one"), "{error}");
}
