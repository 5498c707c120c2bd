//! Starts the process of a driver. IO.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf, absolute};
use std::process::{Child, Command, Stdio};

use nix::errno::Errno;
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use nix::unistd::{getpid, getppid};
use rustix::io::pwrite;

use super::guard::{Announce, Guard, Slot};
use super::service;
use super::strays::{Run, Strays, TAG};
use amber_core::config::DriverConfig;

/// The reason why a driver could not be started, and what to check.
pub(super) struct SpawnError {
    pub(super) error: String,
    pub(super) hint: String,
}

/// The hint if there is no file descriptor left, for example for the pipes of a driver.
pub const NO_FILES: &str = "the mediator, or the system, has no file descriptors left: see \
     `ulimit -n`; of a service it is `LimitNOFILE=`";

/// A process that was just started.
pub(super) struct Started {
    pub(super) process: Child,
    pub(super) run: Run,
    pub(super) slot: Slot,
}

/// What a driver gets from the mediator besides its configuration.
pub(super) struct Environment<'a> {
    /// The program `amber`.
    pub(super) amber: &'a Path,
    /// The address of the mediator.
    pub(super) mediator: SocketAddr,
    /// The devices that are halted; see `Core::halts`.
    pub(super) halts: Option<&'a str>,
}

/// Starts a driver in its own process group, with pipes for its three standard streams. The
/// guard knows the process, and its environment has a tag.
pub(super) fn spawn(
    config: &DriverConfig,
    environment: &Environment<'_>,
    guard: &mut Guard,
    strays: &mut Strays,
) -> Result<Started, SpawnError> {
    let (run, slot) = (strays.next_run(), guard.reserve());
    let announce = guard.announce_at(slot);
    match start(config, environment, &strays.tag(run), announce) {
        Ok(process) => {
            guard.watch(slot, process.id());
            Ok(Started { process, run, slot })
        }
        Err(error) => {
            guard.forget(slot);
            Err(error)
        }
    }
}

fn start(
    config: &DriverConfig,
    environment: &Environment<'_>,
    tag: &str,
    announce: Option<Announce>,
) -> Result<Child, SpawnError> {
    let directory = config.directory.as_deref();
    let program = program(&config.command[0], directory, environment.amber);
    if let Some(directory) = directory.filter(|directory| !directory.is_dir()) {
        return Err(SpawnError {
            error: format!("directory {} does not exist", directory.display()),
            hint: "check `directory` of this driver in the configuration".into(),
        });
    }
    let device = config.devices[0];
    let devices: Vec<String> = config.devices.iter().map(ToString::to_string).collect();
    let mut command = Command::new(&program);
    command
        .args(&config.command[1..])
        .env("AMBER_DEVICE", devices.join(","))
        .env("AMBER_DEVICE_TYPE", device.device_type.0.to_string())
        .env("AMBER_DEVICE_ID", device.id.to_string())
        .env("AMBER_MEDIATOR", environment.mediator.to_string())
        .env_remove("AMBER_HALTED")
        .envs(environment.halts.map(|halts| ("AMBER_HALTED", halts)))
        .envs(&config.env)
        .env(TAG, tag)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    if let Some(directory) = directory {
        command.current_dir(directory);
    }
    for variable in service::VARIABLES
        .iter()
        .filter(|name| !config.env.contains_key(**name))
    {
        command.env_remove(variable);
    }
    die_with_parent(&mut command, announce);
    command.spawn().map_err(|error| explain(&error, &program))
}

/// `amber` is this binary, paths are relative to the driver's directory, and the system looks
/// up plain names.
fn program(word: &str, directory: Option<&Path>, amber: &Path) -> PathBuf {
    match directory {
        _ if word == "amber" => amber.to_owned(),
        // The new process changes its directory before it looks for the program.
        Some(directory) if word.contains('/') => {
            let program = directory.join(word);
            absolute(&program).unwrap_or(program)
        }
        _ => word.into(),
    }
}

fn explain(error: &io::Error, program: &Path) -> SpawnError {
    let path = program.display();
    let is_path = program.components().count() > 1;
    let (what, hint) = match error.kind() {
        ErrorKind::NotFound if is_path => (
            format!("file {path} does not exist"),
            "check the path".to_owned(),
        ),
        ErrorKind::NotFound => (
            format!("program {path} does not exist"),
            "check the name; it is looked up in PATH as the mediator sees it".to_owned(),
        ),
        ErrorKind::PermissionDenied => (
            format!("{path} is not executable"),
            format!("try `chmod +x {path}`"),
        ),
        _ if is_out_of_files(error) => (error.to_string(), NO_FILES.to_owned()),
        _ => (
            format!("{path}: {error}"),
            "run the command by hand to see more".to_owned(),
        ),
    };
    SpawnError { error: what, hint }
}

/// Whether there is no file descriptor left.
pub fn is_out_of_files(error: &io::Error) -> bool {
    let code = error.raw_os_error().map(Errno::from_raw);
    matches!(code, Some(Errno::EMFILE | Errno::ENFILE))
}

/// The driver gets SIGTERM when the mediator dies, even if it is killed; and the guard knows it
/// before its program runs.
#[allow(unsafe_code)]
fn die_with_parent(command: &mut Command, announce: Option<Announce>) {
    let parent = getpid();
    let in_child = move || {
        set_pdeathsig(Signal::SIGTERM)?;
        if getppid() != parent {
            // The mediator died before the signal was set up.
            return Err(io::Error::from(ErrorKind::BrokenPipe));
        }
        if let Some(Announce { table, offset }) = announce {
            // SAFETY: the guard's table is open: the parent, of which this is a
            // copy, held it when it started us, and nothing here closes it.
            let table = unsafe { BorrowedFd::borrow_raw(table) };
            // The mediator writes the same as soon as it knows the pid.
            let _ = pwrite(table, &getpid().as_raw().to_ne_bytes(), offset);
        }
        Ok(())
    };
    // SAFETY: between fork and exec only prctl(2), getppid(2), getpid(2) and
    // pwrite(2) are called, which are safe there, and no memory is allocated: all
    // errors are codes without a heap value.
    unsafe { command.pre_exec(in_child) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn start_errors_name_what_is_missing() {
        for (code, program, error, hint) in [
            (Errno::ENOENT, "x", "program x does not exist", "PATH"),
            (Errno::ENOENT, "./x", "file ./x does not exist", "path"),
            (Errno::EACCES, "./x", "./x is not executable", "chmod"),
            (Errno::EMFILE, "x", "Too many open files", "ulimit -n"),
            (Errno::ENFILE, "x", "Too many open files", "ulimit -n"),
            (Errno::ENOMEM, "x", "x: ", "by hand"),
        ] {
            let said = explain(&io::Error::from(code), Path::new(program));
            assert!(said.error.starts_with(error), "{}", said.error);
            assert!(said.hint.contains(hint), "{}", said.hint);
        }
    }
}
