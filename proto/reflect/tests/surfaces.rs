//! The clients that are written by hand use fields as the descriptions say.

#![allow(clippy::unwrap_used)] // Helpers of tests are tests.

use std::collections::BTreeSet;
use std::fs;

/// Every field that the Python package uses is a part of a method of that device.
#[test]
fn the_python_package_uses_described_fields() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../client-sdk/python/src/amber/proxies.py"
    );
    let source = fs::read_to_string(path).unwrap();
    let mut described = BTreeSet::new();
    for interface in amber_reflect::built_in() {
        let device = interface.name.replace('-', "_");
        for method in interface.methods.iter().cloned() {
            let fields = method
                .request
                .into_iter()
                .chain(method.answer)
                .chain(method.may_answer);
            for path in fields.map(|field| field.path).chain(method.flags) {
                // amber.dummy_proto.enable, amber.mediator_proto.request.reload
                let field = path.split('.').nth(2).unwrap();
                described.insert(format!("{device}.{field}"));
            }
        }
    }
    let mut used = 0;
    for words in source.split("schemas.").skip(1) {
        let end = words
            .find(|c: char| !c.is_alphanumeric() && !"_.".contains(c))
            .unwrap();
        let mut parts = words[..end].split('.');
        let (device, Some(field)) = (parts.next().unwrap(), parts.next()) else {
            continue;
        };
        // Messages and enums begin with a capital.
        if field.starts_with(char::is_lowercase) {
            let name = format!("{device}.{field}");
            assert!(described.contains(&name), "{name} is not described");
            used += 1;
        }
    }
    assert!(used > 30, "{used}");
}
