//! The clients have the methods of the descriptions, under the same names with and without async.

use std::collections::BTreeSet;

const GENERATED: &str = include_str!(concat!(env!("OUT_DIR"), "/clients.rs"));

/// The methods in a block of the generated code.
fn methods(start: &str, end: &str) -> BTreeSet<String> {
    let block = GENERATED
        .split_once(start)
        .and_then(|(_, code)| code.split_once(end));
    let (block, _) = block.unwrap_or_else(|| panic!("there is no {start}"));
    let names = block.lines().filter_map(|line| {
        let line = line.trim_start().strip_prefix("pub ")?;
        let line = line.strip_prefix("async ").unwrap_or(line);
        let name = line.strip_prefix("fn ")?;
        Some(name[..name.find('(')?].to_owned())
    });
    names.collect()
}

#[test]
fn each_client_has_the_methods_of_its_description() {
    let mut devices = BTreeSet::new();
    for interface in amber_reflect::built_in() {
        let service = interface.service.rsplit('.').next().unwrap();
        let described = interface
            .methods
            .iter()
            .map(|method| method.command.replace('-', "_"));
        let always = [
            "address",
            "new",
            "of",
            "ping",
            "with_deadline",
            "without_waiting",
        ];
        let mut expected: BTreeSet<_> = described.chain(always.map(str::to_owned)).collect();
        let mut moves = interface.methods.iter().filter_map(|it| it.moves.as_ref());
        let has_validity = moves.any(|it| !it.errand);
        expected.extend(has_validity.then(|| "with_validity".to_owned()));
        let mut with_async = methods(&format!("\nimpl {service} {{\n"), "\n}\n");
        // Only drivers move a device for somebody else, and they are async.
        assert_eq!(with_async.remove("for_client"), has_validity, "{service}");
        assert_eq!(with_async, expected, "{service}");
        let blocking = methods(&format!("\n    impl {service} {{\n"), "\n    }\n");
        assert_eq!(blocking, expected, "blocking::{service}");
        devices.insert(interface.name.replace('-', "_"));
    }
    assert_eq!(devices.len(), amber_proto::DeviceType::NAMES.len());
    for client in ["::amber_client::Client", "::amber_client::blocking::Client"] {
        let accessors = methods(&format!("\nimpl {client} {{\n"), "\n}\n");
        assert_eq!(accessors, devices, "{client}");
    }
}
