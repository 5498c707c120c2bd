//! The recipes of docs/over-wifi.md, as they are typed on a robot and a laptop.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

use crate::common::{AMBER, root, wait_for};
use crate::network::{Killed, LAPTOP, Network, ROBOT};

/// What the page calls the robot.
const NAME: &str = "robot.local";
/// The robot and the laptop in the tunnel.
const ROBOT_INSIDE: &str = "10.26.0.1";
const LAPTOP_INSIDE: &str = "10.26.0.2";
const SSHD: &str = "/usr/sbin/sshd";
const DUMMY: &str = "[[driver]]\ndevice = 'dummy:0'\ncommand = ['amber', 'driver', 'dummy']\n";

/// A code block of the page: its first line, which says where it belongs, and the rest.
#[derive(Clone)]
struct Block {
    head: String,
    text: String,
}

/// The code blocks of a section.
fn blocks(section: &str) -> Vec<Block> {
    let page = fs::read_to_string(root().join("docs/over-wifi.md")).unwrap();
    let start = page.find(&format!("\n## {section}\n")).unwrap() + 1;
    let end = page[start..]
        .find("\n## ")
        .map_or(page.len(), |end| start + end);
    let parts = page[start..end].split("\n```");
    let blocks = parts.skip(1).step_by(2).map(|block| {
        let (_language, block) = block.split_once('\n').unwrap();
        let (head, text) = block.split_once('\n').unwrap();
        let head = head.strip_prefix("# ").unwrap().to_owned();
        Block {
            head,
            text: text.to_owned(),
        }
    });
    blocks.collect()
}

/// Whether a program can be found.
fn is_here(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).exists())
}

/// Two machines, and what a person would have on them.
struct Desk {
    network: Network,
    folder: TempDir,
}

impl Desk {
    fn new(network: Network) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let desk = Self { network, folder };
        // The test is root already.
        desk.program("sudo", "exec \"$@\"");
        desk.network.name(NAME, ROBOT);
        desk
    }

    /// Makes a program that comes before those of the system.
    fn program(&self, name: &str, script: &str) {
        let file = self.folder.path().join(name);
        fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(file, Permissions::from_mode(0o755)).unwrap();
    }

    fn path(&self) -> String {
        let amber = Path::new(AMBER).parent().unwrap().display();
        let own = self.folder.path().display();
        let others = std::env::var("PATH").unwrap();
        format!("{own}:{amber}:{others}:/usr/sbin:/sbin")
    }

    /// A shell on a machine, with these lines.
    fn shell(&self, machine: &str, lines: &str) -> Command {
        let mut shell = Network::program_on(machine, "bash");
        shell.args(["-e", "-c", lines]).env("PATH", self.path());
        shell
    }

    /// What lines print, which must work.
    fn typed(&self, machine: &str, lines: &str) -> String {
        let done = self.shell(machine, lines).output().unwrap();
        assert!(done.status.success(), "{lines}: {done:?}");
        String::from_utf8(done.stdout).unwrap()
    }

    /// A mediator on the robot with a configuration of the page and a driver.
    fn start_mediator(&self, configuration: &str) -> Killed {
        let file = self.folder.path().join("amber.toml");
        fs::write(&file, format!("{configuration}\n{DUMMY}")).unwrap();
        let words = ["mediator", "--config", file.to_str().unwrap()];
        let mut mediator = Network::on(&self.network.robot, &words);
        mediator.stdout(Stdio::null()).stderr(Stdio::null());
        let mediator = Killed(mediator.spawn().unwrap());
        self.wait_for_ping(&self.network.robot, "127.0.0.1");
        mediator
    }

    fn wait_for_ping(&self, machine: &str, address: &str) {
        wait_for("an answer of the robot", || {
            self.ping(machine, address).status.success().then_some(())
        });
    }

    fn ping(&self, machine: &str, address: &str) -> Output {
        let words = ["-m", address, "ping", "dummy", "-c", "1"];
        Network::on(machine, &words).output().unwrap()
    }

    /// The text that the dummy has.
    fn message(&self) -> String {
        self.typed(&self.network.robot, "amber call dummy status --json")
    }
}

/// The tunnel of both machines; it ends with the test, and with it the programs that serve it.
struct Tunnel<'a>(&'a Network);

impl Drop for Tunnel<'_> {
    fn drop(&mut self) {
        for (machine, name) in [(&self.0.robot, "amber"), (&self.0.laptop, "robot")] {
            let words = ["-n", machine, "link", "del", name];
            let _ = Command::new("ip").args(words).output();
        }
    }
}

/// Why there can be no tunnel here.
fn without_wireguard(network: &Network) -> Option<&'static str> {
    if !["wg", "wg-quick", "nft"].into_iter().all(is_here) {
        return Some("needs wireguard-tools and nftables");
    }
    let link = |words: &[&str]| {
        let done = Command::new("ip")
            .args(["-n", &network.laptop, "link"])
            .args(words)
            .output();
        done.unwrap().status.success()
    };
    if link(&["add", "try", "type", "wireguard"]) {
        assert!(link(&["del", "try"]));
        return None;
    }
    if !Path::new("/dev/net/tun").exists() {
        return Some("the kernel has neither WireGuard nor /dev/net/tun");
    }
    (!is_here("wireguard-go")).then_some("the kernel has no WireGuard: needs wireguard-go")
}

#[test]
fn the_recipe_for_wireguard_lets_in_the_laptop_alone() {
    let Some(network) = Network::new("tunnel") else {
        eprintln!("SKIP WireGuard: needs root and the program ip");
        return;
    };
    if let Some(reason) = without_wireguard(&network) {
        eprintln!("SKIP WireGuard: {reason}");
        return;
    }
    let desk = Desk::new(network);
    let (robot, laptop) = (&desk.network.robot, &desk.network.laptop);
    fs::create_dir_all("/etc/wireguard").unwrap();
    for machine in [robot, laptop] {
        fs::create_dir_all(Network::etc(machine).join("wireguard")).unwrap();
    }

    let (mut rules, mut typed) = (String::new(), Vec::new());
    for block in blocks("Everything through WireGuard") {
        match block.head.starts_with("/etc/amber/amber.toml") {
            true => rules = block.text,
            false => typed.push(block),
        }
    }
    assert_eq!(
        typed.len(),
        7,
        "keys, files, starts, and the commands of the laptop"
    );
    let _mediator = desk.start_mediator(&rules);
    assert!(
        !desk.ping(laptop, ROBOT).status.success(),
        "the rules let in the Wi-Fi"
    );

    let _tunnel = Tunnel(&desk.network);
    let mut keys: Vec<String> = Vec::new();
    for block in typed {
        if let Some(line) = block.head.strip_prefix("/etc/wireguard/") {
            let (file, machine) = line.split_once(" on the ").unwrap();
            let text = block.text.replace("KEY_OF_THE_ROBOT", &keys[0]);
            let text = text.replace("KEY_OF_THE_LAPTOP", &keys[1]);
            let machine = if machine == "robot" { robot } else { laptop };
            fs::write(Network::etc(machine).join("wireguard").join(file), text).unwrap();
            continue;
        }
        let machine = if block.head == "on the robot" {
            robot
        } else {
            laptop
        };
        let lines = block
            .text
            .lines()
            .filter(|line| !line.starts_with("sudo apt install "));
        let lines = lines.collect::<Vec<_>>().join("\n");
        if lines.contains("amber -m") {
            desk.wait_for_ping(laptop, ROBOT_INSIDE);
        }
        let said = desk.typed(machine, &lines);
        if lines.contains("wg pubkey") {
            keys.push(said.trim().to_owned());
        }
        if lines.contains("amber -m") {
            assert!(said.contains("dummy:0"), "{said}");
            let pass = format!("100, 1400, 7000 bytes pass to {ROBOT_INSIDE}");
            assert!(said.contains(&pass), "{said}");
        }
    }

    // A neighbour in the Wi-Fi claims to be the laptop in the tunnel. The route makes this machine
    // do so. The answers go into the tunnel, so only the robot knows what has arrived.
    desk.network.laptop(&format!(
        "route replace {ROBOT}/32 dev l0 src {LAPTOP_INSIDE}"
    ));
    let forge = |text: &str| {
        let words = ["-m", ROBOT, "call", "dummy", "message", text];
        Network::on(laptop, &words).output().unwrap();
    };
    forge("forged");
    assert!(!desk.message().contains("forged"), "{}", desk.message());
    // It is the rule of nft that drops it.
    desk.typed(robot, "nft delete table inet amber");
    wait_for("the forged message without the rule", || {
        forge("without the rule");
        desk.message().contains("without the rule").then_some(())
    });
    desk.network.laptop(&format!("route del {ROBOT}/32 dev l0"));

    desk.network.laptop(&format!("addr del {LAPTOP}/24 dev l0"));
    desk.network.laptop("addr add 10.77.0.3/24 dev l0");
    desk.wait_for_ping(laptop, ROBOT_INSIDE);

    desk.network.robot(&format!("addr del {ROBOT}/24 dev r0"));
    desk.network.robot("addr add 10.77.0.9/24 dev r0");
    desk.network.name(NAME, "10.77.0.9");
    desk.typed(laptop, "sudo wg-quick down robot");
    desk.typed(laptop, "sudo wg-quick up robot");
    desk.wait_for_ping(laptop, ROBOT_INSIDE);
}

/// A server for SSH on the robot, and a client on the laptop that it lets in.
fn start_ssh(desk: &Desk) -> Killed {
    let file = |name: &str| -> PathBuf { desk.folder.path().join(name) };
    for key in ["host-key", "laptop-key"] {
        let mut make = Command::new("ssh-keygen");
        make.args(["-q", "-t", "ed25519", "-N", "", "-f"])
            .arg(file(key));
        assert!(make.status().unwrap().success());
    }
    // Its packages make this folder when the machine starts.
    fs::create_dir_all("/run/sshd").unwrap();
    let folder = desk.folder.path().display();
    let server = format!(
        "HostKey {folder}/host-key\nAuthorizedKeysFile {folder}/laptop-key.pub\n\
         StrictModes no\nUsePAM no\nPidFile none\nSetEnv PATH={}\n",
        desk.path()
    );
    fs::write(file("sshd_config"), server).unwrap();
    let client = format!(
        "IdentityFile {folder}/laptop-key\nIdentitiesOnly yes\nBatchMode yes\n\
         StrictHostKeyChecking accept-new\nUserKnownHostsFile {folder}/known-hosts\n"
    );
    fs::write(file("ssh_config"), client).unwrap();
    desk.program(
        "ssh",
        &format!("exec /usr/bin/ssh -F {folder}/ssh_config \"$@\""),
    );

    let mut server = Network::program_on(&desk.network.robot, SSHD);
    server.args(["-D", "-e", "-f"]).arg(file("sshd_config"));
    let server = Killed(server.stderr(Stdio::null()).spawn().unwrap());
    wait_for("the server for SSH", || {
        let mut asked = desk.shell(&desk.network.laptop, &format!("ssh root@{NAME} true"));
        asked.output().unwrap().status.success().then_some(())
    });
    server
}

#[test]
fn commands_and_the_dashboard_pass_through_ssh_to_a_closed_robot() {
    let Some(network) = Network::new("ssh") else {
        eprintln!("SKIP SSH: needs root and the program ip");
        return;
    };
    if !Path::new(SSHD).exists() || !Path::new("/usr/bin/ssh").exists() {
        eprintln!("SKIP SSH: needs openssh-server and openssh-client");
        return;
    }
    let desk = Desk::new(network);
    let laptop = &desk.network.laptop;
    let _mediator = desk.start_mediator(&blocks("Close the robot")[0].text);
    assert!(
        !desk.ping(laptop, ROBOT).status.success(),
        "the robot is open"
    );
    let _server = start_ssh(&desk);

    // The user of the page does not exist here.
    let typed = |section: &str| blocks(section)[0].text.replace("pi@", "root@");
    let devices = desk.typed(laptop, &typed("Commands over SSH"));
    assert!(devices.contains("dummy:0"), "{devices}");

    // This test has no terminal, so the second t insists on one.
    let command = typed("The dashboard through SSH").replace("ssh -t ", "ssh -tt ");
    let mut tunnel = desk.shell(laptop, &command);
    let _tunnel = Killed(
        tunnel
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap(),
    );
    let ask = "exec 3<>/dev/tcp/127.0.0.1/8026\n\
               printf 'GET / HTTP/1.1\\r\\nHost: 127.0.0.1:8026\\r\\nConnection: close\\r\\n\\r\\n' >&3\n\
               cat <&3";
    let page = wait_for("the dashboard", || {
        let asked = desk.shell(laptop, ask).output().unwrap();
        let text = String::from_utf8_lossy(&asked.stdout).into_owned();
        text.starts_with("HTTP/1.1 200").then_some(text)
    });
    assert!(page.contains("<title>"), "{page}");
}
