//! The messages are those of the public package of schemas.

#![allow(clippy::unwrap_used)]

use std::io::Write;
use std::process::{Command, Stdio};

use amber_foxglove::Schema;

/// Compares all messages and enums of a descriptor set on stdin with those of the package.
const COMPARE: &str = r#"
import importlib, pkgutil, sys
import foxglove_schemas_protobuf as package
from google.protobuf import descriptor_pb2

theirs = {}
for module in pkgutil.iter_modules(package.__path__):
    module = importlib.import_module(f"{package.__name__}.{module.name}")
    file = descriptor_pb2.FileDescriptorProto()
    module.DESCRIPTOR.CopyToProto(file)
    theirs.update((message.name, message) for message in file.message_type)

def shape(message):
    fields = {(it.name, it.number, it.type, it.label, it.type_name) for it in message.field}
    enums = {(it.name, tuple((v.name, v.number) for v in it.value)) for it in message.enum_type}
    return fields, enums

files = descriptor_pb2.FileDescriptorSet.FromString(sys.stdin.buffer.read()).file
ours = [message for file in files if file.package == "foxglove" for message in file.message_type]
different = [it.name for it in ours if shape(it) != shape(theirs[it.name])]
assert not different, different
print(len(ours))
"#;

#[test]
fn names_numbers_and_types_are_those_of_the_public_schemas() {
    let python = |script: &str| {
        let mut command = Command::new("python3");
        command.args(["-c", script]).stdin(Stdio::piped());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    };
    let works = python("import foxglove_schemas_protobuf").output();
    if !works.is_ok_and(|output| output.status.success()) {
        let _ = writeln!(
            std::io::stderr(),
            "SKIP public schemas of Foxglove: no python3 with foxglove-schemas-protobuf"
        );
        return;
    }
    let mut child = python(COMPARE).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(Schema::Log.descriptors()).unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let compared: u32 = String::from_utf8(output.stdout)
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    assert!(compared > 20, "{compared}");
}
