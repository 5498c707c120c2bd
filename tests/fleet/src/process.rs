//! The processes of the fleet. IO.

use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};

use amber_harness::Program;
use anyhow::Context;
use nix::sys::signal::Signal;

/// Starts a program. Raw peers end when their input is closed. What it logs goes to a file of this name,
/// if there is a folder for it.
pub(crate) fn start(
    mut command: Command,
    name: &str,
    logs: Option<&Path>,
) -> anyhow::Result<Program> {
    let log = match logs {
        Some(folder) => File::create(folder.join(format!("{name}.log")))?.into(),
        None => Stdio::null(),
    };
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let child = command.stderr(log).spawn();
    Ok(Program::of(
        child.with_context(|| format!("cannot start {command:?}"))?,
    ))
}

/// Ends all of these, at the same time.
pub(crate) fn end(programs: Vec<Program>) {
    for program in &programs {
        let _ = program.signal(Signal::SIGTERM);
    }
}
