//! Two machines with a cable between them, as network namespaces.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::common::{AMBER, wait_for};

/// The address of the robot at first.
pub const ROBOT: &str = "10.77.0.1";
/// That of the laptop.
pub const LAPTOP: &str = "10.77.0.2";

/// The robot has the network card `r0`, and the laptop `l0`.
pub struct Network {
    pub robot: String,
    pub laptop: String,
}

impl Network {
    /// `None` without the rights or the program to make one. The name is unique in this program.
    pub fn new(name: &str) -> Option<Self> {
        let pid = std::process::id();
        let network = Self {
            robot: format!("amber-robot-{name}-{pid}"),
            laptop: format!("amber-laptop-{name}-{pid}"),
        };
        let (robot, laptop) = (&network.robot, &network.laptop);
        let is_made = [
            format!("netns add {robot}"),
            format!("netns add {laptop}"),
            format!("link add r0 netns {robot} type veth peer name l0 netns {laptop}"),
            format!("-n {robot} addr add {ROBOT}/24 dev r0"),
            format!("-n {laptop} addr add {LAPTOP}/24 dev l0"),
            format!("-n {robot} link set lo up"),
            format!("-n {laptop} link set lo up"),
            format!("-n {robot} link set r0 up"),
            format!("-n {laptop} link set l0 up"),
        ]
        .iter()
        .all(|words| ip(words).is_some_and(|done| done.status.success()));
        if !is_made {
            return None;
        }
        network.wait_for_link();
        Some(network)
    }

    pub fn wait_for_link(&self) {
        wait_for("the link", || {
            let link = ip(&format!("-n {} -o link show l0", self.laptop))?;
            String::from_utf8_lossy(&link.stdout)
                .contains("state UP")
                .then_some(())
        });
    }

    /// Changes the network of the robot.
    pub fn robot(&self, words: &str) {
        self.change(&self.robot, words);
    }

    /// Changes the network of the laptop.
    pub fn laptop(&self, words: &str) {
        self.change(&self.laptop, words);
    }

    fn change(&self, machine: &str, words: &str) {
        let done = ip(&format!("-n {machine} {words}")).unwrap();
        assert!(done.status.success(), "ip {words}: {done:?}");
    }

    /// Sets the address of a name on the laptop, for programs that run there already as well.
    pub fn name(&self, name: &str, address: &str) {
        let etc = Self::etc(&self.laptop);
        fs::create_dir_all(&etc).unwrap();
        // Programs see this very file, so it must not be replaced.
        fs::write(etc.join("hosts"), format!("{address} {name}\n")).unwrap();
    }

    /// `ip netns exec` puts the files in this folder over those in `/etc`.
    pub fn etc(machine: &str) -> PathBuf {
        PathBuf::from(format!("/etc/netns/{machine}"))
    }

    /// `amber` on one of the machines.
    pub fn on(machine: &str, words: &[&str]) -> Command {
        let mut command = Self::program_on(machine, AMBER);
        command.args(words);
        command
    }

    /// Any program on one of the machines.
    pub fn program_on(machine: &str, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", machine, program]);
        command.stdin(Stdio::null());
        command
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for machine in [&self.robot, &self.laptop] {
            let _ = fs::remove_dir_all(Self::etc(machine));
            // What still runs there would keep the network.
            let left = ip(&format!("netns pids {machine}"));
            let left = left.map_or(String::new(), |left| {
                String::from_utf8_lossy(&left.stdout).into_owned()
            });
            for pid in left.lines().filter_map(|line| line.trim().parse().ok()) {
                let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
            }
            let _ = ip(&format!("netns del {machine}"));
        }
    }
}

fn ip(words: &str) -> Option<Output> {
    Command::new("ip").args(words.split(' ')).output().ok()
}

/// A process that is killed at the end.
pub struct Killed(pub Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
