//! Generates the traits of drivers from the descriptions of Amber's own devices.

use std::path::Path;
use std::{env, error, fs};

fn main() -> Result<(), Box<dyn error::Error>> {
    // What the traits are made from is part of amber-build.
    println!("cargo:rerun-if-changed=build.rs");
    let out = env::var("OUT_DIR")?;
    fs::write(
        Path::new(&out).join("devices.rs"),
        amber_build::our_drivers()?,
    )?;
    Ok(())
}
