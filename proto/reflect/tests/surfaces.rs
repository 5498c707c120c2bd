//! Every surface has the methods of the descriptions.

#![allow(clippy::unwrap_used)] // Helpers of tests are tests.

use std::fs;

use amber_schema::Interface;

/// A file of the Python package.
fn python(file: &str) -> String {
    let package = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../client-sdk/python/src/amber"
    );
    fs::read_to_string(format!("{package}/{file}")).unwrap()
}

/// The part of a Python file that belongs to one class.
fn class<'a>(text: &'a str, name: &str) -> &'a str {
    let (_, rest) = text
        .split_once(&format!("\nclass {name}("))
        .unwrap_or_else(|| panic!("no class {name}"));
    rest.split_once("\nclass ").map_or(rest, |(body, _)| body)
}

fn service(interface: &Interface) -> &str {
    interface.service.rsplit('.').next().unwrap()
}

#[test]
fn the_python_clients_have_the_methods_of_the_descriptions() {
    for file in ["proxies.pyi", "devices.pyi"] {
        let text = python(file);
        for interface in amber_reflect::built_in() {
            let class = class(&text, service(interface));
            for method in &interface.methods {
                let name = method.command.replace('-', "_");
                let start = format!("def {name}(");
                assert!(class.contains(&start), "{file}: no {start} in {class}");
            }
            let accessor = format!("    def {}(self", interface.name.replace('-', "_"));
            assert!(text.contains(&accessor), "{file}: no {accessor}");
        }
    }
}

#[test]
fn the_python_drivers_have_the_methods_of_the_descriptions() {
    let text = python("drivers.pyi");
    let is_device = |it: &&Interface| it.device_type != 0;
    for interface in amber_reflect::built_in().iter().filter(is_device) {
        let class = class(&text, &format!("{}Driver", service(interface)));
        for method in &interface.methods {
            let name = method.command.replace('-', "_");
            // A driver has a start and a stop of its own.
            let starts = [format!("def {name}("), format!("def {name}_(")];
            let is_there = starts.iter().any(|start| class.contains(start));
            assert!(is_there, "no {name} in {class}");
        }
    }
}
