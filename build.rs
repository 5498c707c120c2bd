//! Compiles `proto/*.proto` to Rust without `protoc`, with extensions folded.
//!
//! The files themselves remain canonical proto2 for all other languages. The unfolded
//! descriptors are kept for tools that use reflection.

use std::path::Path;
use std::{env, error, fs};

fn main() -> Result<(), Box<dyn error::Error>> {
    println!("cargo:rerun-if-changed=proto");
    let out = env::var("OUT_DIR")?;

    let mut files: Vec<_> = fs::read_dir("proto")?
        .map(|entry| entry.map(|e| e.path()))
        .collect::<Result<_, _>>()?;
    files.retain(|path| path.extension().is_some_and(|ext| ext == "proto"));
    files.sort();

    let mut compiler = protox::Compiler::new(["proto"])?;
    compiler.include_imports(true).include_source_info(true);
    compiler.open_files(&files)?;
    // Only this form has the options of interface.proto.
    let descriptors = amber_build::keep_comments_only(&compiler.encode_file_descriptor_set())?;
    fs::write(Path::new(&out).join("descriptors.bin"), descriptors)?;
    let names = amber_build::device_names(&amber_build::our_interfaces()?)?;
    fs::write(Path::new(&out).join("devices.rs"), names)?;
    let mut set = compiler.file_descriptor_set();
    amber_build::fold_extensions(&mut set)?;
    // For tests/schemas.rs: the call of `with` for the type of each message.
    let messages = set.file.iter().flat_map(|file| {
        let messages = file.message_type.iter();
        messages.map(|message| call_with_type(file.package(), message.name()))
    });
    let messages: String = messages.collect();
    fs::write(
        Path::new(&out).join("messages.rs"),
        format!("match (name, package) {{\n{messages}    _ => None,\n}}\n"),
    )?;
    prost_build::Config::new()
        .bytes(["."])
        .include_file("_all.rs")
        .compile_fds(set)?;
    Ok(())
}

/// An arm of a `match` on the name of a message and the package whose extensions it has.
fn call_with_type(package: &str, message: &str) -> String {
    let device = package.strip_prefix("amber.");
    let module = device.map_or(String::new(), |it| it.replace("_proto", "::"));
    let name = match message {
        "DriverMsg" => "amber.DriverMsg".to_owned(),
        message => format!("{package}.{message}"),
    };
    format!("    ({name:?}, {package:?}) => Some(with::<amber_proto::{module}{message}>(bytes)),\n")
}
