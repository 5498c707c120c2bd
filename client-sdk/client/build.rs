//! Generates the clients of Amber's own devices from their descriptions.

use std::path::Path;
use std::{env, error, fs};

fn main() -> Result<(), Box<dyn error::Error>> {
    // The descriptions are a part of amber-build, so Cargo knows when they change.
    println!("cargo:rerun-if-changed=build.rs");
    let out = env::var("OUT_DIR")?;
    fs::write(
        Path::new(&out).join("clients.rs"),
        amber_build::our_clients()?,
    )?;
    Ok(())
}
