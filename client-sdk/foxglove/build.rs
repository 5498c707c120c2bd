//! Generates the messages of `proto/foxglove.proto`, and keeps their descriptors.

use std::path::Path;
use std::{env, error, fs};

fn main() -> Result<(), Box<dyn error::Error>> {
    println!("cargo:rerun-if-changed=proto");
    let out = env::var("OUT_DIR")?;
    let mut compiler = protox::Compiler::new(["proto"])?;
    compiler.include_imports(true).include_source_info(false);
    compiler.open_file("foxglove.proto")?;
    fs::write(
        Path::new(&out).join("descriptors.bin"),
        compiler.encode_file_descriptor_set(),
    )?;
    prost_build::Config::new().compile_fds(compiler.file_descriptor_set())?;
    Ok(())
}
