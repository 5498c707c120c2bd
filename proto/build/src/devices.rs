//! The Rust names of Amber's own devices, for the crate amber-proto. PURE.

use std::fmt::Write;

use amber_schema::Interface;

/// The constants of `DeviceType`, and one module of messages per device.
///
/// # Errors
/// A file does not lie in the package that its name asks for.
pub(crate) fn rust(interfaces: &[Interface]) -> Result<String, String> {
    let mut out = String::from("impl DeviceType {\n");
    let mut names = String::new();
    let mut aliases = Vec::new();
    for interface in interfaces {
        let (number, name) = (interface.device_type, &interface.name);
        let constant = name.to_uppercase().replace('-', "_");
        for line in interface.docs.lines().take_while(|line| !line.is_empty()) {
            let _ = writeln!(out, "    /// {line}");
        }
        let _ = writeln!(out, "    pub const {constant}: Self = Self({number});");
        let _ = writeln!(names, "        (Self::{constant}, {name:?}),");
        if let Some(alias) = &interface.alias {
            aliases.push(format!("        (Self::{constant}, {alias:?}),\n"));
        }
    }
    let (count, second) = (interfaces.len(), aliases.len());
    let aliases = aliases.concat();
    let _ = write!(
        out,
        "\n    /// The device types that have a name.\n    \
         pub const NAMES: [(Self, &'static str); {count}] = [\n{names}    ];\n\n    \
         /// The second names of device types, which say what the devices do.\n    \
         pub const ALIASES: [(Self, &'static str); {second}] = [\n{aliases}    ];\n}}\n\n"
    );
    for interface in interfaces {
        let module = interface.file.trim_end_matches(".proto");
        let package = format!("amber.{module}_proto.");
        if !interface.service.starts_with(&package) {
            return Err(format!("{}: its package is not {package}", interface.file));
        }
        let _ = writeln!(
            out,
            "pub use crate::generated::amber::{module}_proto as {module};"
        );
        let _ = writeln!(out, "device_message!({module}::DriverMsg);");
    }
    Ok(out)
}
