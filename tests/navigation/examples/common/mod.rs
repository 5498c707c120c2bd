//! Common code of the programs that measure.
#![expect(clippy::print_stderr, reason = "programs for the terminal")]

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use amber_map::Map;

/// The map of a file, or the flat of the demo.
pub(crate) fn map(path: Option<&Path>) -> Result<Map, String> {
    let Some(path) = path else {
        return Ok(Map::flat());
    };
    let failed = |error: &dyn std::error::Error| format!("{}: {error}", path.display());
    let text = fs::read_to_string(path).map_err(|error| failed(&error))?;
    Map::parse(&text).map_err(|error| failed(&error))
}

/// Prints the error of a measurement, if there is one.
pub(crate) fn measured(result: Result<(), String>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}\nhint: --help shows the options");
            ExitCode::from(2)
        }
    }
}
