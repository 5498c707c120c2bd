//! The dashboard of the demo, in its own process. IO.

use std::io::{self, BufRead, BufReader};
use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use amber_mediator::shell::this_program;

/// The running dashboard; it ends when this is dropped.
pub(super) struct Dashboard {
    process: Option<Child>,
    /// A line for people: its address, or that it does not run.
    pub(super) shown: String,
}

impl Dashboard {
    /// Starts it for the mediator at this address. If its usual port is taken, it gets another one.
    /// The demo also runs without it.
    pub(super) fn start(mediator: SocketAddr) -> io::Result<Self> {
        let usual = amber_dashboard::DEFAULT_LISTEN;
        if let Some((process, url)) = listening(mediator, usual, Stdio::null())? {
            let shown = format!("Open {url} in a browser to see the robot and to drive it.");
            return Ok(Self {
                process: Some(process),
                shown,
            });
        }
        // It explains on stderr why it did not start.
        let found = listening(mediator, "127.0.0.1:0", Stdio::inherit())?;
        let Some((process, url)) = found else {
            return Ok(Self {
                process: None,
                shown: "(The dashboard does not run.)".to_owned(),
            });
        };
        let shown = format!(
            "Open {url} in a browser to see the robot and to drive it. (Another program uses \
             {usual}, perhaps another demo.)"
        );
        Ok(Self {
            process: Some(process),
            shown,
        })
    }
}

/// The process and its address; `None` if it does not start.
fn listening(
    mediator: SocketAddr,
    listen: &str,
    errors: Stdio,
) -> io::Result<Option<(Child, String)>> {
    let mut command = Command::new(this_program()?);
    command
        .args(["dashboard", "--until-eof", "--listen", listen, "-m"])
        .arg(mediator.to_string())
        // Ctrl-C is for the mediator. Then the end of stdin stops the dashboard.
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(errors);
    let mut process = command.spawn()?;
    let mut line = String::new();
    if let Some(stdout) = process.stdout.take() {
        BufReader::new(stdout).read_line(&mut line)?;
    }
    match line.trim_end().strip_prefix("dashboard: ") {
        Some(url) => Ok(Some((process, url.to_owned()))),
        None => {
            process.wait()?;
            Ok(None)
        }
    }
}

impl Drop for Dashboard {
    fn drop(&mut self) {
        if let Some(process) = &mut self.process {
            // The end of its stdin makes it exit.
            drop(process.stdin.take());
            let _ = process.wait();
        }
    }
}
