//! The service of systemd. IO.

use std::path::Path;
use std::process::{Command, Stdio};

use amber_terminal::{Failure, note};

use crate::cli::robot::doctor::facts::is_unit_installed;
use crate::cli::robot::failed;

/// Whether systemd runs, and has the unit of the service.
pub(super) fn is_installed(root: &Path) -> bool {
    root.join("run/systemd/system").is_dir() && is_unit_installed(root)
}

/// Starts the service, now and whenever the computer starts. If it runs already, it reads its
/// configuration again.
///
/// # Errors
/// `systemctl` fails. It has said why.
pub(super) fn start() -> Result<(), Failure> {
    let ran = |arguments: &[&str]| {
        let mut command = Command::new("systemctl");
        // The output is for the result.
        let status = command.args(arguments).stdout(Stdio::null()).status();
        status.map_err(|error| failed("cannot run systemctl", &error))
    };
    let was_running = ran(&["is-active", "--quiet", "amber"])?.success();
    let enable = &["enable", "--now", "amber"][..];
    let reload = &["reload", "amber"][..];
    let commands = if was_running {
        vec![enable, reload]
    } else {
        vec![enable]
    };
    for arguments in commands {
        let shown = format!("systemctl {}", arguments.join(" "));
        note(&shown);
        if !ran(arguments)?.success() {
            return Err(Failure::new(format!("`{shown}` failed"))
                .hint("`journalctl -u amber -p warning` shows why; the files are written"));
        }
    }
    Ok(())
}
