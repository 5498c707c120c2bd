//! Descriptions from bytes, which anyone may have made.

#![allow(clippy::unwrap_used)] // Helpers of tests are tests.

use std::fs;
use std::path::Path;

use amber_proto::{DESCRIPTORS, DeviceType};
use amber_reflect::{MAX_DESCRIPTOR_BYTES, Schemas};
use proptest::prelude::*;
use prost::Message;
use prost_types::{FileDescriptorProto, FileDescriptorSet};
use protox::file::{ChainFileResolver, DescriptorSetFileResolver, IncludeFileResolver};

const BATTERY: &str = r#"syntax = "proto2";
package battery;
import "drivermsg.proto";
import "interface.proto";
extend amber.DriverMsg {
  optional bool get_charge = 110;
  optional double charge = 111 [(amber.unit) = "%"];
}
// A battery gauge.
service Battery {
  option (amber.device) = { type: 211 name: "gauge" };
  // How full the battery is.
  rpc Charge(amber.DriverMsg) returns (amber.DriverMsg) {
    option (amber.ask) = { flag: "get_charge" answer: "charge" };
  }
}
"#;

/// The descriptors of a file, with or without what it imports.
fn descriptors(source: &str, with_imports: bool) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("battery.proto"), source).unwrap();
    compiled(folder.path(), with_imports)
}

fn compiled(folder: &Path, with_imports: bool) -> Vec<u8> {
    let mut resolver = ChainFileResolver::new();
    resolver.add(DescriptorSetFileResolver::decode(DESCRIPTORS).unwrap());
    resolver.add(IncludeFileResolver::new(folder.to_owned()));
    let mut compiler = protox::Compiler::with_file_resolver(resolver);
    compiler
        .include_imports(with_imports)
        .include_source_info(true)
        .open_file("battery.proto")
        .unwrap_or_else(|error| panic!("{error:?}"));
    compiler.encode_file_descriptor_set()
}

fn error(bytes: &[u8]) -> String {
    Schemas::from_descriptors(bytes).unwrap_err().text
}

#[test]
fn a_device_is_known_by_its_descriptors() {
    for with_imports in [false, true] {
        let bytes = descriptors(BATTERY, with_imports);
        let schemas = Schemas::from_descriptors(&bytes).unwrap();
        let battery = schemas.interface(DeviceType(211)).unwrap();
        assert_eq!(battery.docs, "A battery gauge.");
        let charge = battery.method("charge").unwrap();
        assert_eq!(charge.docs, "How full the battery is.");
        assert_eq!(charge.answer[0].unit.as_deref(), Some("%"));
        let message = b"\x10\x01\xf9\x06\0\0\0\0\0\0\x49\x40";
        let own = schemas.for_device(Some(DeviceType(211)));
        assert_eq!(own.brief_message(message), "DATA  charge: 50.0");
        // Amber's devices stay known.
        assert!(schemas.interface(DeviceType::HOKUYO).is_some());
    }
}

#[test]
fn what_breaks_a_rule_is_an_error() {
    // No compiler takes this, but a driver may send it.
    let mut set = FileDescriptorSet::decode(&*descriptors(BATTERY, false)).unwrap();
    set.file[0].extension[1].number = Some(110);
    assert_eq!(
        error(&set.encode_to_vec()),
        "battery.proto: field 'charge' has number 110, which 'get_charge' already has"
    );
    for number in [20, 40, 51, 180] {
        let bytes = descriptors(&BATTERY.replace("111 [", &format!("{number} [")), false);
        let error = error(&bytes);
        let expected = format!("field charge: number {number} is reserved");
        assert!(error.contains(&expected), "{error}");
    }
    for syntax in ["editions", "proto4", ""] {
        let mut set = FileDescriptorSet::decode(&*descriptors(BATTERY, false)).unwrap();
        set.file[0].syntax = Some(syntax.into());
        let expected = format!("battery.proto: syntax '{syntax}' is not supported");
        assert_eq!(error(&set.encode_to_vec()), expected);
    }
    for name in ["Bat.ery", "", "1", "\x1b[2J"] {
        let mut set = FileDescriptorSet::decode(&*descriptors(BATTERY, false)).unwrap();
        set.file[0].service[0].name = Some(name.into());
        let expected = format!("battery.proto: invalid name '{}'", name.escape_default());
        assert_eq!(error(&set.encode_to_vec()), expected);
    }
    let error_of = |from, to| error(&descriptors(&BATTERY.replace(from, to), false));
    assert!(error_of("type: 211", "type: 4").contains("device type 4 is reserved"));
    assert!(error_of("\"gauge\" }", "\"hokuyo\" }").contains("the name of a device of Amber"));
    assert!(error_of("package battery", "package amber.x").contains("'amber.x' is reserved"));
    let plain = &BATTERY[..BATTERY.find("// A battery gauge").unwrap()];
    assert!(error(&descriptors(plain, false)).contains("describe no device"));
}

#[test]
fn what_is_no_descriptor_set_is_an_error() {
    assert!(error(b"hello").contains("invalid descriptors"));
    assert!(error(b"").contains("describe no device"));
    assert!(error(&vec![0; MAX_DESCRIPTOR_BYTES + 1]).contains("longer than 1 MiB"));
    let file = |name: &str, imports: &[&str]| FileDescriptorProto {
        name: Some(name.into()),
        dependency: imports.iter().map(|&it| it.to_owned()).collect(),
        ..FileDescriptorProto::default()
    };
    let set = |files: &[FileDescriptorProto]| {
        let set = FileDescriptorSet {
            file: files.to_vec(),
        };
        error(&set.encode_to_vec())
    };
    assert!(set(&[file("a", &["b"])]).contains("lack 'b'"));
    assert!(set(&[file("a", &["b"]), file("b", &["a"])]).contains("circular import"));
    assert!(set(&[file("a", &["a"])]).contains("circular import"));
    assert!(set(&vec![file("a", &[]); 300]).contains("more than 256 files"));
    set(&[file("a", &[]), file("a", &["drivermsg.proto"])]);
    set(&[file("drivermsg.proto", &[])]);
}

/// Messages inside messages double with each level.
#[test]
fn a_description_that_would_grow_without_bound_is_refused() {
    let mut source = BATTERY.replace("optional double charge", "optional M0 charge");
    source = source.replace(" [(amber.unit) = \"%\"]", "");
    for level in 0..40 {
        let next = level + 1;
        source +=
            &format!("message M{level} {{ optional M{next} a = 1; optional M{next} b = 2; }}\n");
    }
    source += "message M40 {}\n";
    let error = error(&descriptors(&source, false));
    assert!(error.contains("more than 500 fields"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Bytes that are nearly descriptors give an error or a description, and never a panic.
    #[test]
    fn changed_descriptors_never_panic(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        static BYTES: std::sync::LazyLock<Vec<u8>> =
            std::sync::LazyLock::new(|| descriptors(BATTERY, false));
        let mut bytes = BYTES.clone();
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        if let Ok(schemas) = Schemas::from_descriptors(&bytes) {
            for interface in schemas.own_interfaces() {
                let own = schemas.for_device(Some(DeviceType(interface.device_type)));
                own.brief_message(b"\x10\x01\xf9\x06\0\0\0\0\0\0\x49\x40");
            }
        }
    }
}
