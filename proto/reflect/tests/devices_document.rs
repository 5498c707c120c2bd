//! docs/devices.md says what the descriptions say.

#![allow(clippy::unwrap_used)] // Helpers of tests are tests.

use std::fs;

#[test]
fn the_document_is_up_to_date() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/devices.md");
    let document = fs::read_to_string(path).unwrap();
    let (_, generated) = document.split_once("<!-- generated -->\n\n").unwrap();
    let interfaces = amber_reflect::built_in();
    let expected = amber_schema::markdown(interfaces);
    assert!(
        generated == expected,
        "docs/devices.md is not what the files in proto say: run scripts/reference"
    );
}
