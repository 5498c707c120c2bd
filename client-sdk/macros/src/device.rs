//! The code of a device from its file. IO.

use std::env;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// The module of the device, or why there is none. `literal` is the path as it stands in the program:
/// from the folder of its `Cargo.toml`.
pub(crate) fn module(literal: &str) -> Result<String, String> {
    let path = (literal.strip_prefix('"'))
        .and_then(|rest| rest.strip_suffix('"'))
        .filter(|path| !path.contains('\\'))
        .ok_or("the path is a plain string, such as \"lamp.proto\"")?;
    let package = env::var_os("CARGO_MANIFEST_DIR").map_or_else(PathBuf::new, PathBuf::from);
    let device = amber_build::device(&package.join(path)).map_err(|error| error.to_string())?;
    let mut code = format!("pub mod {} {{\n", name(&device.package));
    code += &device.messages;
    code += &device.clients;
    if cfg!(feature = "driver") {
        code += &device.drivers;
    }
    // Cargo compiles the program again when one of the files changes.
    for file in &device.read {
        let _ = writeln!(
            code,
            "const _: &[u8] = ::core::include_bytes!({:?});",
            full(file)
        );
    }
    code.push('}');
    Ok(format!(
        "#[allow(missing_docs, unreachable_pub, clippy::all, clippy::pedantic)]\n{code}"
    ))
}

/// `lamp` for the package `acme.lamp`.
fn name(package: &str) -> &str {
    package.rsplit('.').next().unwrap_or(package)
}

fn full(file: &Path) -> PathBuf {
    file.canonicalize().unwrap_or_else(|_| file.to_owned())
}
