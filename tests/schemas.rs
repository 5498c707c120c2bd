//! The schemas have the same meaning for Google's compiler and library, for reflection, and for the
//! Rust types with their folded extensions.

#![allow(clippy::unwrap_used)] // Helpers of tests are tests.

use std::io::{self, Write};
use std::process::{Command, Stdio};
use std::{fs, path::Path};

use amber_proto::DESCRIPTORS;
use amber_schema::{Field, Interface};
use prost::Message;
use prost_reflect::{
    DescriptorPool, DynamicMessage, ExtensionDescriptor, FieldDescriptor, Kind, MessageDescriptor,
    Value,
};
use prost_types::FileDescriptorSet;

/// Files that declare options only.
const OPTIONS: [&str; 2] = ["google/protobuf/descriptor.proto", "interface.proto"];

/// The base fields of `DriverMsg` for pieces of long messages.
const PIECES: std::ops::RangeInclusive<u32> = 6..=9;

#[test]
fn the_rust_types_preserve_every_message() {
    for Sample {
        name,
        package,
        bytes,
    } in samples()
    {
        let rewritten = rewrite(&name, &package, &bytes);
        assert_eq!(
            hex(&rewritten),
            hex(&bytes),
            "{name} with the extensions of {package}"
        );
    }
}

#[test]
fn googles_library_preserves_every_message() {
    let Some(protoc) = protoc() else { return };
    let folder = tempfile::tempdir().unwrap();
    let descriptors = folder.path().join("descriptors.bin");
    protoc.compile(&descriptors);

    let samples = samples();
    let lines = |sample: &Sample| format!("{} {}\n", sample.name, hex(&sample.bytes));
    let input = folder.path().join("samples");
    fs::write(&input, samples.iter().map(lines).collect::<String>()).unwrap();
    let output = Command::new("python3")
        .arg(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/tests/schemas/rewrite.py"
        ))
        .arg(&descriptors)
        .stdin(fs::File::open(&input).unwrap())
        .stderr(Stdio::inherit())
        .output()
        .unwrap();
    assert!(output.status.success());

    let output = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.lines().count(), samples.len());
    for (
        Sample {
            name,
            package,
            bytes,
        },
        theirs,
    ) in samples.iter().zip(output.lines())
    {
        let what = format!("{name} with the extensions of {package}");
        if name == "amber.DriverMsg" {
            // Google's C library writes extensions in any order; the bytes are compared after the
            // Rust type has ordered them.
            assert_eq!(theirs.len(), 2 * bytes.len(), "{what}: {theirs}");
            assert_eq!(
                hex(&rewrite(name, package, &unhex(theirs))),
                hex(bytes),
                "{what}"
            );
        } else {
            assert_eq!(theirs, hex(bytes), "{what}");
        }
    }
}

#[test]
fn googles_compiler_and_ours_read_the_schemas_alike() {
    let Some(protoc) = protoc() else { return };
    let folder = tempfile::tempdir().unwrap();
    let descriptors = folder.path().join("descriptors.bin");
    protoc.compile(&descriptors);
    let descriptors = fs::read(descriptors).unwrap();
    let theirs = FileDescriptorSet::decode(&*descriptors).unwrap();
    let ours = FileDescriptorSet::decode(DESCRIPTORS).unwrap();
    assert_eq!(essence(theirs), essence(ours));

    // prost_types drops the options of interface.proto: compare them as tools read them.
    let theirs = DescriptorPool::decode(&*descriptors).unwrap();
    let theirs = amber_schema::read_all(&theirs, &[]).unwrap();
    let theirs: Vec<_> = theirs.into_iter().map(without_comments).collect();
    let ours = amber_reflect::built_in();
    assert_eq!(theirs.len(), ours.len());
    for ours in ours.iter().cloned().map(without_comments) {
        let theirs = theirs.iter().find(|it| it.device_type == ours.device_type);
        assert_eq!(theirs, Some(&ours));
    }
}

/// Google's compiler was not asked for comments.
fn without_comments(mut interface: Interface) -> Interface {
    fn strip(field: &mut Field) {
        field.docs.clear();
        field
            .choices
            .iter_mut()
            .for_each(|choice| choice.docs.clear());
        field.fields.iter_mut().for_each(strip);
    }
    interface.docs.clear();
    for method in &mut interface.methods {
        method.docs.clear();
        let fields = method.request.iter_mut().chain(&mut method.answer);
        fields.chain(&mut method.may_answer).for_each(strip);
        if let amber_schema::Kind::Ask {
            refusal: Some(refusal),
            ..
        } = &mut method.kind
        {
            strip(refusal);
        }
    }
    interface
}

#[test]
fn no_two_devices_use_the_same_number() {
    let pool = DescriptorPool::decode(DESCRIPTORS).unwrap();
    let driver_msg = pool.get_message_by_name("amber.DriverMsg").unwrap();
    let mut numbers: Vec<_> = driver_msg.extensions().map(|e| e.number()).collect();
    let count = numbers.len();
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len(), count);
    assert!(count > 40);
}

/// An encoded message of the schemas, created by reflection.
struct Sample {
    /// The name of the message.
    name: String,
    /// The package whose extensions it may contain.
    package: String,
    bytes: Vec<u8>,
}

/// The contents of the fields of a sample.
#[derive(Clone, Copy, Debug)]
enum Fill {
    Least,
    Most,
    Zero,
    /// Only required fields.
    Required,
}

/// Every message of every file, `amber.DriverMsg` with the extensions of each file.
fn samples() -> Vec<Sample> {
    let pool = DescriptorPool::decode(DESCRIPTORS).unwrap();
    let mut samples = Vec::new();
    // The messages of interface.proto never travel, and have no Rust types.
    let travels = |message: &MessageDescriptor| !OPTIONS.contains(&message.parent_file().name());
    for message in pool.all_messages().filter(travels) {
        add_samples(&mut samples, &message, &[], message.package_name());
    }
    let driver_msg = pool.get_message_by_name("amber.DriverMsg").unwrap();
    for file in pool.files() {
        let extensions: Vec<_> = (file.extensions())
            .filter(|extension| extension.containing_message() == driver_msg)
            .collect();
        if !extensions.is_empty() {
            add_samples(&mut samples, &driver_msg, &extensions, file.package_name());
        }
    }
    assert!(samples.len() > 200, "{}", samples.len());
    samples
}

fn add_samples(
    samples: &mut Vec<Sample>,
    descriptor: &MessageDescriptor,
    extensions: &[ExtensionDescriptor],
    package: &str,
) {
    // Each alternative of a oneof needs its own message.
    let alternatives = descriptor
        .oneofs()
        .map(|oneof| oneof.fields().count())
        .max();
    for fill in [Fill::Least, Fill::Most, Fill::Zero, Fill::Required] {
        for choice in 0..alternatives.unwrap_or(1) {
            let mut message = filled(descriptor, fill, choice);
            if !extensions.is_empty() {
                // The messages of devices do not have the fields for pieces.
                let fields = descriptor.fields();
                for field in fields.filter(|field| PIECES.contains(&field.number())) {
                    message.clear_field(&field);
                }
            }
            for extension in extensions {
                if !matches!(fill, Fill::Required) {
                    let value = value_of(&extension.kind(), extension.is_list(), fill, choice);
                    message.set_extension(extension, value);
                }
            }
            samples.push(Sample {
                name: descriptor.full_name().into(),
                package: package.into(),
                bytes: message.encode_to_vec(),
            });
        }
    }
}

fn filled(descriptor: &MessageDescriptor, fill: Fill, choice: usize) -> DynamicMessage {
    let mut message = DynamicMessage::new(descriptor.clone());
    let is_wanted = |field: &FieldDescriptor| match field.containing_oneof() {
        _ if matches!(fill, Fill::Required) => {
            field.cardinality() == prost_reflect::Cardinality::Required
        }
        Some(oneof) => oneof.fields().nth(choice).as_ref() == Some(field),
        None => true,
    };
    for field in descriptor.fields().filter(is_wanted) {
        message.set_field(
            &field,
            value_of(&field.kind(), field.is_list(), fill, choice),
        );
    }
    message
}

fn value_of(kind: &Kind, is_list: bool, fill: Fill, choice: usize) -> Value {
    if !is_list {
        return single(kind, fill, choice);
    }
    let fills: &[Fill] = match fill {
        Fill::Least | Fill::Required => &[],
        Fill::Most => &[Fill::Least, Fill::Zero, Fill::Most, Fill::Least],
        Fill::Zero => &[Fill::Zero],
    };
    Value::List(
        fills
            .iter()
            .map(|fill| single(kind, *fill, choice))
            .collect(),
    )
}

fn single(kind: &Kind, fill: Fill, choice: usize) -> Value {
    /// The choice for `Least`, `Most` and the other kinds.
    fn pick<T>(fill: Fill, [least, most, zero]: [T; 3]) -> T {
        match fill {
            Fill::Least => least,
            Fill::Most => most,
            Fill::Zero | Fill::Required => zero,
        }
    }
    match kind {
        Kind::Double => Value::F64(pick(fill, [f64::MIN, f64::INFINITY, -0.0])),
        Kind::Float => Value::F32(pick(fill, [f32::MIN, f32::MIN_POSITIVE, -0.0])),
        Kind::Int32 | Kind::Sint32 | Kind::Sfixed32 => {
            Value::I32(pick(fill, [i32::MIN, i32::MAX, 0]))
        }
        Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 => {
            Value::I64(pick(fill, [i64::MIN, i64::MAX, 0]))
        }
        Kind::Uint32 | Kind::Fixed32 => Value::U32(pick(fill, [1, u32::MAX, 0])),
        Kind::Uint64 | Kind::Fixed64 => Value::U64(pick(fill, [1, u64::MAX, 0])),
        Kind::Bool => Value::Bool(pick(fill, [false, true, false])),
        Kind::String => {
            let long = "żółw \u{1f422}\n".repeat(30);
            Value::String(pick(fill, [String::new(), long, "x".into()]))
        }
        Kind::Bytes => {
            let all = (0..=255).collect::<Vec<u8>>();
            Value::Bytes(pick(fill, [vec![], all, vec![0]]).into())
        }
        Kind::Message(message) => Value::Message(filled(message, fill, choice)),
        Kind::Enum(values) => {
            let mut numbers: Vec<_> = values.values().map(|value| value.number()).collect();
            numbers.sort_unstable();
            let middle = numbers[numbers.len() / 2];
            Value::EnumNumber(pick(fill, [numbers[0], numbers[numbers.len() - 1], middle]))
        }
    }
}

/// Decodes and encodes a message with its Rust type.
fn rewrite(name: &str, package: &str, bytes: &[u8]) -> Vec<u8> {
    fn with<M: Message + Default>(bytes: &[u8]) -> Vec<u8> {
        M::decode(bytes).unwrap().encode_to_vec()
    }

    // Written by build.rs, from the messages of all files.
    let rewritten = include!(concat!(env!("OUT_DIR"), "/messages.rs"));
    rewritten.unwrap_or_else(|| panic!("{name} of {package} has no Rust type"))
}

/// The parts on which compilers agree: no comments, and no derived names.
fn essence(mut set: FileDescriptorSet) -> Vec<prost_types::FileDescriptorProto> {
    // Each compiler has a version of its own.
    (set.file).retain(|file| file.name() != "google/protobuf/descriptor.proto");
    for file in &mut set.file {
        file.source_code_info = None;
        // Remove the default value.
        file.syntax = file.syntax.take().filter(|syntax| syntax != "proto2");
        let fields = file
            .message_type
            .iter_mut()
            .flat_map(|message| &mut message.field);
        for field in fields.chain(&mut file.extension) {
            field.json_name = None;
        }
    }
    set.file.sort_by(|a, b| a.name().cmp(b.name()));
    set.file
}

/// Google's compiler: a separate program, or part of the PyPI package grpcio-tools.
struct Protoc(&'static [&'static str]);

/// Finds Google's compiler and library; prints a message if they are missing.
fn protoc() -> Option<Protoc> {
    let protocs = [&["protoc"][..], &["python3", "-m", "grpc_tools.protoc"]];
    let Some(protoc) = protocs.into_iter().find(|protoc| compiles(protoc)) else {
        return skip(
            "no protoc with google/protobuf/descriptor.proto, no grpcio-tools for python3",
        );
    };
    if !runs(&["python3"], &["-c", "import google.protobuf"]) {
        return skip("no protobuf for python3");
    }
    Some(Protoc(protoc))
}

impl Protoc {
    /// Compiles all schemas to a descriptor set.
    fn compile(&self, descriptors: &Path) {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("proto");
        let names = fs::read_dir(&folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name());
        let schemas: Vec<_> = names
            .filter(|name| Path::new(name).extension() == Some("proto".as_ref()))
            .collect();
        assert!(schemas.len() >= 12);
        let output = Command::new(self.0[0])
            .args(&self.0[1..])
            .args(["-I.", "--include_imports"])
            .arg(format!("--descriptor_set_out={}", descriptors.display()))
            .args(schemas)
            .current_dir(folder)
            .output()
            .unwrap();
        let complaints = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{complaints}");
        assert_eq!(complaints, "");
    }
}

/// Whether this is a complete compiler: Debian has descriptor.proto in libprotobuf-dev.
fn compiles(protoc: &[&str]) -> bool {
    let folder = tempfile::tempdir().unwrap();
    let include = format!("-I{}", folder.path().display());
    let out = format!("--descriptor_set_out={}/out", folder.path().display());
    let source = "syntax = \"proto2\"; import public \"google/protobuf/descriptor.proto\";";
    fs::write(folder.path().join("probe.proto"), source).unwrap();
    runs(protoc, &[&include, &out, "probe.proto"])
}

fn runs(program: &[&str], args: &[&str]) -> bool {
    let mut command = Command::new(program[0]);
    let status = command
        .args(&program[1..])
        .args(args)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    status.status().is_ok_and(|status| status.success())
}

fn skip<T>(reason: &str) -> Option<T> {
    // Not eprintln!, whose output the test harness hides.
    let _ = writeln!(io::stderr(), "SKIP schemas in Google's protobuf: {reason}");
    None
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(hex: &str) -> Vec<u8> {
    let byte = |i| u8::from_str_radix(&hex[i..i + 2], 16).unwrap();
    (0..hex.len()).step_by(2).map(byte).collect()
}
