//! Descriptors become source text that compiles to the same descriptors.

#![allow(clippy::unwrap_used)] // Helpers of tests are tests.

use amber_proto::DESCRIPTORS;
use prost_reflect::{DescriptorPool, DynamicMessage, FileDescriptor};
use protox::file::{ChainFileResolver, DescriptorSetFileResolver, File, FileResolver};

struct Source {
    name: String,
    text: String,
}

impl FileResolver for Source {
    fn open_file(&self, name: &str) -> Result<File, protox::Error> {
        match name == self.name {
            true => File::from_source(name, &self.text),
            false => Err(protox::Error::file_not_found(name)),
        }
    }
}

fn compiled(name: &str, text: &str) -> DescriptorPool {
    let mut resolver = ChainFileResolver::new();
    resolver.add(Source {
        name: name.to_owned(),
        text: text.to_owned(),
    });
    resolver.add(DescriptorSetFileResolver::decode(DESCRIPTORS).unwrap());
    let mut compiler = protox::Compiler::with_file_resolver(resolver);
    compiler.include_imports(true).include_source_info(true);
    let done = compiler.open_file(name);
    done.unwrap_or_else(|error| panic!("{error:?}\n{text}"));
    DescriptorPool::decode(&*compiler.encode_file_descriptor_set()).unwrap()
}

/// The whole file with all options, but without the positions of its parts.
fn content(file: &FileDescriptor) -> DynamicMessage {
    let pool = amber_reflect::built_in_pool();
    let descriptor = pool.get_message_by_name("google.protobuf.FileDescriptorProto");
    let mut message = DynamicMessage::decode(descriptor.unwrap(), &*file.encode_to_vec()).unwrap();
    message.clear_field_by_name("source_code_info");
    message
}

#[track_caller]
fn check(file: &FileDescriptor) {
    let text = amber_reflect::source(file);
    let pool = compiled(file.name(), &text);
    let again = pool.get_file_by_name(file.name()).unwrap();
    assert_eq!(content(file), content(&again), "{text}");
    let interfaces = |file| amber_schema::read(file, &[]).unwrap();
    assert_eq!(interfaces(file), interfaces(&again), "{text}");
    // And so does the text.
    assert_eq!(amber_reflect::source(&again), text);
}

#[test]
fn the_files_of_amber_survive() {
    let pool = amber_reflect::built_in_pool();
    for file in pool
        .files()
        .filter(|it| it.package_name().starts_with("amber"))
    {
        check(&file);
    }
}

#[test]
fn everything_that_a_file_may_have_survives() {
    let text = r#"// The license.

// About the file.
syntax = "proto2";
package odd;
import "drivermsg.proto";
import "interface.proto";
option java_package = "a \"b\" \\ \n";
extend amber.DriverMsg {
  optional Outer outer = 110;
  repeated Outer.Inner inner = 111;
  optional string text = 112 [default = "a\tb\"", deprecated = true];
}
extend Outer { optional int32 more = 100 [(amber.unit) = "mm", (amber.min) = -5.5]; }
// About the message.
message Outer {
  option (amber.value) = "Outer";
  // An inner message with the name of an outer one.
  message Inner { optional Outer Outer = 1; optional Inner other = 2; }
  enum Mode { option allow_alias = true; ON = 1; RUN = 1 [deprecated = true]; OFF = -2; reserved 7 to 9; reserved "OLD"; }
  optional Mode mode = 1 [default = OFF];
  oneof choice { int32 a = 2; Inner b = 3; }
  map<string, Inner> by_name = 4;
  repeated double list = 5 [packed = true, (amber.unit) = "m/s"];
  optional double inf = 6 [default = -inf];
  optional bytes raw = 7 [default = "\001\377"];
  optional string named = 8 [json_name = "other"];
  required sfixed64 fixed = 9;
  extensions 100 to 200;
  reserved 10, 20 to 30;
  reserved "gone";
}
service Odd {
  option (amber.device) = { type: 211 name: "odd" };
  // About the method, "quoted".
  rpc Set(amber.DriverMsg) returns (amber.Nothing) { option (amber.tell) = { request: ["outer", "text"] set: { field: "outer.mode" value: "ON" } }; }
}
service Plain { rpc Call(stream Outer) returns (Outer.Inner); }
"#;
    let pool = compiled("odd.proto", text);
    check(&pool.get_file_by_name("odd.proto").unwrap());
    let new = r#"syntax = "proto3";
message Top { int32 a = 1; optional int32 b = 2; repeated Top all = 3; }
enum E { ZERO = 0; }
"#;
    let pool = compiled("new.proto", new);
    check(&pool.get_file_by_name("new.proto").unwrap());
}
