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
    prost_build::Config::new()
        .bytes(["."])
        .include_file("_all.rs")
        .compile_fds(set)?;
    Ok(())
}
