//! Finds processes: those with a mark in their environment, and children. From /proc on Linux. IO.

use std::fs;
use std::path::Path;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// A process with a mark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Marked {
    /// Its process id.
    pub pid: u32,
    /// Its process group.
    pub group: u32,
    pub command: String,
}

/// All processes with this text in their environment, which child processes inherit. Excludes
/// processes that have ended but were not reaped.
pub fn marked(mark: &str) -> Vec<Marked> {
    all().filter_map(|pid| look(pid, mark)).collect()
}

/// The children of these processes, with their names.
pub fn children(parents: &[u32]) -> Vec<(u32, String)> {
    let named = all().filter_map(|pid| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name is in brackets and may contain anything.
        let (head, tail) = stat.rsplit_once(')')?;
        let parent: u32 = tail.split_whitespace().nth(1)?.parse().ok()?;
        let name = head.split_once('(')?.1.to_owned();
        parents.contains(&parent).then_some((pid, name))
    });
    named.collect()
}

/// The ids of all processes.
fn all() -> impl Iterator<Item = u32> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Sends a signal to a process if it still has the mark, since its id may have been reused. Returns
/// false if not.
pub fn signal(pid: u32, mark: &str, signal: Signal) -> bool {
    look(pid, mark).is_some() && kill(Pid::from_raw(pid.cast_signed()), signal).is_ok()
}

fn look(pid: u32, mark: &str) -> Option<Marked> {
    let folder = Path::new("/proc").join(pid.to_string());
    let environment = fs::read(folder.join("environ")).ok()?;
    let mut words = environment.split(|byte| *byte == 0);
    words.find(|word| *word == mark.as_bytes())?;
    let stat = fields_of(pid)?;
    let command = fs::read(folder.join("cmdline")).ok()?;
    let command = String::from_utf8_lossy(&command).replace('\0', " ");
    (stat.first()? != "Z").then_some(Marked {
        pid,
        group: stat.get(2)?.parse().ok()?,
        command: command.trim_end().to_owned(),
    })
}

/// The fields of /proc/PID/stat after the name: state, parent, group and so on.
pub(crate) fn fields_of(pid: u32) -> Option<Vec<String>> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(") ")?;
    Some(rest.split_whitespace().map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn marked_processes_are_found_with_their_children() {
        let mark = format!("AMBER_TEST_MARK={}", std::process::id());
        let (name, value) = mark.split_once('=').unwrap();
        let mut shell = Command::new("sh")
            .args(["-c", "sleep 1000 & echo up; wait"])
            .env(name, value)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut up = [0; 3];
        std::io::Read::read_exact(shell.stdout.as_mut().unwrap(), &mut up).unwrap();
        // The shell may print "up" before its child has executed the program.
        let (found, sleeps) = loop {
            let found = marked(&mark);
            if let Some(sleeps) = found.iter().find(|p| p.command == "sleep 1000").cloned() {
                break (found, sleeps);
            }
            std::thread::yield_now();
        };
        assert!(found.iter().any(|p| p.pid == shell.id()));
        assert!(!signal(
            sleeps.pid,
            "AMBER_TEST_MARK=other",
            Signal::SIGKILL
        ));
        assert!(signal(shell.id(), &mark, Signal::SIGKILL));
        assert!(signal(sleeps.pid, &mark, Signal::SIGKILL));
        shell.wait().unwrap();
        while !marked(&mark).is_empty() {
            std::thread::yield_now();
        }
    }
}
