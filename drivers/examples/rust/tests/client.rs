//! The client says what is wrong without a mediator. With this file, `cargo test` also builds the
//! programs, which tests elsewhere run.

use std::net::UdpSocket;
use std::process::Command;

#[test]
fn without_a_mediator_the_client_says_what_to_do() {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut client = Command::new(env!("CARGO_BIN_EXE_client"));
    let address = silent.local_addr().unwrap().to_string();
    let output = client.arg(address).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        !output.status.success() && output.stdout.is_empty(),
        "{said}"
    );
    assert!(
        said.contains("no answer from dummy:0") && said.contains("hint: "),
        "{said}"
    );
}
