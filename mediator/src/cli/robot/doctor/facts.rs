//! The facts that `amber doctor` reads from this machine. IO.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use std::{env, fs, io};

use amber_cli::names::described;
use amber_client::blocking::Client;
use amber_core::config::{Config, DEFAULT_PORT};
use amber_core::limits::SOCKET_BUFFER_BYTES;
use amber_drivers::presence::Asked;
use amber_drivers::probe::NoAnswer;
use amber_mediator::config_file;
use amber_mediator::shell::port_holder;
use amber_proto::mediator::{self, DriverState};
use amber_proto::{Device, DeviceType};
use rustix::fs::{Access, access};
use rustix::process::{Resource, getrlimit, getuid};

use crate::cli::robot::built_in;

/// Time limit for another program to print its version.
const PATIENCE: Duration = Duration::from_secs(3);
/// Time limit for an answer of a mediator.
const DEADLINE: Duration = Duration::from_secs(1);

/// See the [module](self).
pub(super) struct Facts {
    /// The name of the user, or the user id.
    pub(super) user: String,
    pub(super) configuration: Option<Configuration>,
    pub(super) port: Port,
    pub(super) serial_ports: Vec<DeviceFile>,
    pub(super) i2c_buses: Vec<DeviceFile>,
    /// ModemManager runs, and no rule keeps it from the ports of robots.
    pub(super) modem_manager: bool,
    /// The granted part of the [`SOCKET_BUFFER_BYTES`] that the mediator requests for a socket.
    pub(super) buffer_bytes: io::Result<usize>,
    /// Maximum number of open files per process. `None`: unlimited.
    pub(super) open_files: Option<u64>,
    pub(super) clock: Clock,
    pub(super) stale: Vec<Stale>,
    pub(super) programs: Vec<Program>,
    /// The version of the Python package, if there is one.
    pub(super) python: Option<String>,
    /// The state of the service in systemd, if it is installed.
    pub(super) service: Option<String>,
}

/// A configuration file.
pub(super) struct Configuration {
    pub(super) path: PathBuf,
    /// Its drivers, or the error and its hint.
    pub(super) drivers: Result<Vec<Driver>, (String, Option<String>)>,
}

/// A driver in a configuration.
#[derive(Clone, Debug, Default)]
pub(super) struct Driver {
    /// Its devices.
    pub(super) name: String,
    pub(super) program: String,
    pub(super) program_exists: bool,
    /// Files below `/dev` that its command names.
    pub(super) files: Vec<DeviceFile>,
    /// What its device says.
    pub(super) device: DeviceAnswer,
}

/// Whether the device of a driver was asked, and what it says.
#[derive(Clone, Debug, Default)]
pub(super) enum DeviceAnswer {
    /// There is no question for it, or its files cannot be opened.
    #[default]
    NotAsked,
    /// This program uses it, most often the driver itself.
    UsedBy(String),
    Asked(Asked),
}

/// A file below `/dev`.
#[derive(Clone, Debug)]
pub(super) struct DeviceFile {
    pub(super) path: PathBuf,
    pub(super) access: FileAccess,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum FileAccess {
    Granted,
    /// Not accessible to this user; the id of the group that has access.
    Denied(Option<String>),
    Missing,
}

/// The port of the mediator.
pub(super) struct Port {
    pub(super) number: u16,
    pub(super) state: PortState,
}

pub(super) enum PortState {
    Free,
    /// A mediator answers.
    Mediator {
        version: Option<String>,
        drivers: usize,
        /// Devices that do not work, or whose drivers are not up.
        down: Vec<String>,
        clients: Clients,
    },
    /// Another program uses it, which `/proc` may name.
    Taken(Option<String>),
    /// It cannot be opened for another reason.
    Unusable(String),
}

/// How full the tables of a mediator are. An older one does not tell.
#[derive(Clone, Debug, Default)]
pub(super) struct Clients {
    /// Known clients, and the most that there may be.
    pub(super) all: u32,
    pub(super) most: Option<u32>,
    /// The host with the most clients, their number, and the most that a host may have.
    pub(super) fullest_host: Option<String>,
    pub(super) of_host: u32,
    pub(super) most_of_host: Option<u32>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    /// Time since 1970.
    pub(super) now: Duration,
    /// `None`: unknown.
    pub(super) is_synchronized: Option<bool>,
}

/// A driver process whose mediator is gone.
#[derive(Clone, Debug)]
pub(super) struct Stale {
    pub(super) pid: u32,
    pub(super) name: String,
}

/// Another `amber` in the PATH.
#[derive(Clone, Debug)]
pub(super) struct Program {
    pub(super) path: PathBuf,
    /// Its answer to `--version`; `None` if it is a different program.
    pub(super) version: Option<String>,
}

impl Facts {
    /// Reads everything, which takes a few seconds at most. Changes nothing on the machine.
    pub(super) fn read(config: Option<PathBuf>) -> Self {
        let parsed = config.map(|path| (config_file::read_config(&path, &described), path));
        let listen = match &parsed {
            Some((Ok(config), _)) => config.listen.first().copied(),
            _ => None,
        };
        Self {
            user: user(),
            configuration: parsed.map(|(read, path)| Configuration {
                path,
                drivers: read
                    .map(|config| drivers(&config))
                    .map_err(|error| (error.to_string(), error.hint().map(|it| it.to_string()))),
            }),
            port: port(listen),
            serial_ports: device_files(&["ttyUSB", "ttyACM", "ttyAMA", "serial"]),
            i2c_buses: device_files(&["i2c-"]),
            modem_manager: modem_manager_interferes(),
            buffer_bytes: buffer_bytes(),
            open_files: getrlimit(Resource::Nofile).current,
            clock: clock(),
            stale: stale(),
            programs: programs(),
            python: python(),
            service: service(),
        }
    }
}

/// The name of this user, or the user id.
pub(in crate::cli) fn user() -> String {
    let number = getuid().as_raw();
    let file = fs::read_to_string("/etc/passwd").unwrap_or_default();
    name_of(&file, number).unwrap_or_else(|| number.to_string())
}

/// The name for a number in the format of /etc/passwd and /etc/group.
fn name_of(file: &str, number: u32) -> Option<String> {
    file.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(number)).then(|| name.to_owned())
    })
}

fn drivers(config: &Config) -> Vec<Driver> {
    let all = config.drivers.iter().map(|driver| {
        let names: Vec<_> = driver.devices.iter().map(ToString::to_string).collect();
        let program = driver.command.first().cloned().unwrap_or_default();
        let folder = driver.directory.as_deref().unwrap_or(Path::new("."));
        let files = device_paths(&driver.command).into_iter();
        let files = files.map(|path| device_file(folder.join(path)));
        let files: Vec<_> = files.collect();
        Driver {
            name: names.join(","),
            // `amber` is this program.
            program_exists: program == "amber" || exists(&program, folder),
            program,
            device: device_answer(&driver.command, folder, &files),
            files,
        }
    });
    all.collect()
}

/// Asks the device of a built-in driver, unless a program uses it.
fn device_answer(command: &[String], folder: &Path, files: &[DeviceFile]) -> DeviceAnswer {
    if files.iter().any(|file| file.access != FileAccess::Granted) {
        return DeviceAnswer::NotAsked;
    }
    if let Some(user) = files.iter().find_map(|file| holder(&file.path)) {
        return DeviceAnswer::UsedBy(user);
    }
    let Some(driver) = built_in(command) else {
        return DeviceAnswer::NotAsked;
    };
    // The paths in its options are relative to this folder.
    let here = env::current_dir();
    if env::set_current_dir(folder).is_err() {
        return DeviceAnswer::NotAsked;
    }
    let asked = driver.ask();
    if let Ok(here) = here {
        let _ = env::set_current_dir(here);
    }
    match asked {
        None => DeviceAnswer::NotAsked,
        Some(Asked {
            answer: Err(NoAnswer::Busy),
            ..
        }) => DeviceAnswer::UsedBy("another program".to_owned()),
        Some(asked) => DeviceAnswer::Asked(asked),
    }
}

/// The program that has a port open, as far as `/proc` shows it to this user. Not all programs lock
/// their ports, and even opening a port could disturb them.
pub(in crate::cli) fn holder(port: &Path) -> Option<String> {
    let port = fs::canonicalize(port).ok()?;
    // A program that simulates a device keeps its pseudo-terminal open.
    if port.starts_with("/dev/pts") {
        return None;
    }
    processes().find_map(|(pid, folder)| {
        let mut files = fs::read_dir(folder.join("fd")).ok()?.flatten();
        let holds = files.any(|file| fs::read_link(file.path()).is_ok_and(|it| it == port));
        holds.then(|| format!("'{}' (process {pid})", name_of_process(&folder)))
    })
}

/// The files of devices that the command of a driver names: all below `/dev`, and for a built-in
/// driver also other ports and buses.
fn device_paths(command: &[String]) -> Vec<&Path> {
    let is_built_in = matches!(command, [amber, verb, ..] if amber == "amber" && verb == "driver");
    let pairs = command.windows(2).filter_map(|pair| {
        let (before, word) = (pair[0].as_str(), pair[1].as_str());
        let (option, value) = match word.rsplit_once('=') {
            Some(split) if !word.starts_with('/') => split,
            _ => (before, word),
        };
        // A simulated bus.
        let value = value.strip_prefix("sim:").unwrap_or(value);
        let is_port = is_built_in && matches!(option, "--port" | "--bus") && value.contains('/');
        (is_port || value.starts_with("/dev/")).then(|| Path::new(value))
    });
    pairs.collect()
}

/// Whether the system would find a program.
fn exists(program: &str, folder: &Path) -> bool {
    let is_program = |path: &Path| path.is_file() && access(path, Access::EXEC_OK).is_ok();
    match program.contains('/') {
        true => is_program(&folder.join(program)),
        false => path_folders().any(|one| is_program(&one.join(program))),
    }
}

fn path_folders() -> impl Iterator<Item = PathBuf> {
    let folders = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&folders).collect::<Vec<_>>().into_iter()
}

fn device_files(prefixes: &[&str]) -> Vec<DeviceFile> {
    let names = fs::read_dir("/dev").into_iter().flatten().flatten();
    let paths: BTreeSet<_> = names
        .filter(|entry| {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            // `/dev/serial` is a folder of links to the others.
            name != "serial" && prefixes.iter().any(|prefix| name.starts_with(prefix))
        })
        .map(|entry| entry.path())
        .collect();
    paths.into_iter().map(device_file).collect()
}

fn device_file(path: PathBuf) -> DeviceFile {
    use std::os::unix::fs::MetadataExt;

    let access = match access(&path, Access::READ_OK | Access::WRITE_OK) {
        Ok(()) => FileAccess::Granted,
        Err(rustix::io::Errno::ACCESS | rustix::io::Errno::PERM | rustix::io::Errno::ROFS) => {
            let groups = fs::read_to_string("/etc/group").unwrap_or_default();
            let group = fs::metadata(&path).ok().map(|found| found.gid());
            FileAccess::Denied(group.and_then(|group| name_of(&groups, group)))
        }
        Err(_) => FileAccess::Missing,
    };
    DeviceFile { path, access }
}

/// Tries the port that the configuration names first.
fn port(listen: Option<SocketAddr>) -> Port {
    let any = SocketAddr::from((Ipv4Addr::UNSPECIFIED, DEFAULT_PORT));
    let listen = listen.unwrap_or(any);
    let state = match UdpSocket::bind(listen) {
        Ok(_) => PortState::Free,
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => mediator(listen),
        Err(error) => PortState::Unusable(error.to_string()),
    };
    Port {
        number: listen.port(),
        state,
    }
}

/// Finds the program that uses the port.
fn mediator(listen: SocketAddr) -> PortState {
    let host = match listen.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(std::net::Ipv6Addr::LOCALHOST),
        other => other,
    };
    let address = SocketAddr::new(host, listen.port());
    let asked = Client::connect(address.to_string()).and_then(|client| {
        let mediator = client.mediator().with_deadline(DEADLINE);
        Ok((mediator.statistics()?, mediator.drivers()?))
    });
    match asked {
        Ok((statistics, drivers)) => PortState::Mediator {
            clients: Clients {
                all: statistics.clients(),
                most: statistics.most_clients,
                fullest_host: statistics.fullest_host.clone(),
                of_host: statistics.fullest_host_clients(),
                most_of_host: statistics.most_clients_per_host,
            },
            version: statistics.version,
            drivers: drivers.len(),
            down: drivers
                .iter()
                .flat_map(out_of_order)
                .map(|device| Device::new(DeviceType(device.r#type), device.id).to_string())
                .collect(),
        },
        Err(_) => PortState::Taken(port_holder(listen.port())),
    }
}

/// The devices of a driver that do not work.
fn out_of_order(driver: &mediator::Driver) -> Vec<&mediator::Device> {
    match driver.state() {
        DriverState::Up => driver.troubles.iter().map(|it| &it.device).collect(),
        _ => driver.devices.iter().collect(),
    }
}

/// Whether ModemManager runs without the rules that keep it from the ports of robots.
fn modem_manager_interferes() -> bool {
    let rules = [
        "/etc/udev/rules.d",
        "/usr/lib/udev/rules.d",
        "/lib/udev/rules.d",
    ];
    let has_rules = rules
        .iter()
        .any(|folder| Path::new(folder).join("60-amber.rules").exists());
    !has_rules && processes().any(|(_, folder)| name_of_process(&folder) == "ModemManager")
}

/// The buffer that the system grants a socket. Linux doubles it for its own needs.
fn buffer_bytes() -> io::Result<usize> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    let socket = socket2::SockRef::from(&socket);
    socket.set_recv_buffer_size(SOCKET_BUFFER_BYTES)?;
    Ok(socket.recv_buffer_size()? / 2)
}

fn clock() -> Clock {
    let told = answer(
        "timedatectl",
        &["show", "--property=NTPSynchronized", "--value"],
    );
    Clock {
        now: SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default(),
        is_synchronized: match told.as_deref().map(str::trim) {
            Some("yes") => Some(true),
            Some("no") => Some(false),
            _ => None,
        },
    }
}

/// All processes: their ids and their folders in `/proc`.
pub(in crate::cli) fn processes() -> impl Iterator<Item = (u32, PathBuf)> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| {
        let pid = entry.file_name().to_string_lossy().parse().ok()?;
        Some((pid, entry.path()))
    })
}

pub(in crate::cli) fn name_of_process(folder: &Path) -> String {
    let name = fs::read_to_string(folder.join("comm")).unwrap_or_default();
    name.trim().to_owned()
}

/// Processes that a mediator has started, but that have no mediator among their ancestors. The
/// processes of other users are not visible.
fn stale() -> Vec<Stale> {
    let is_of_driver = |folder: &Path| {
        let variables = fs::read(folder.join("environ")).unwrap_or_default();
        let mut variables = variables.split(|byte| *byte == 0);
        variables.any(|one| one.starts_with(b"AMBER_STARTED_BY="))
    };
    let found = processes().filter(|(pid, folder)| {
        is_of_driver(folder) && {
            let mut above = ancestors(*pid);
            !above.any(|folder| is_mediator(&folder))
        }
    });
    found
        .map(|(pid, folder)| Stale {
            pid,
            name: name_of_process(&folder),
        })
        .collect()
}

/// The folders of the parent, its parent, and so on, without the first process of the system.
fn ancestors(pid: u32) -> impl Iterator<Item = PathBuf> {
    let mut pid = pid;
    std::iter::from_fn(move || {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name, in parentheses, may contain anything.
        let (_, fields) = stat.rsplit_once(')')?;
        pid = fields.split_whitespace().nth(1)?.parse().ok()?;
        (pid > 1).then(|| PathBuf::from(format!("/proc/{pid}")))
    })
}

/// Whether a process is an `amber` that starts drivers.
fn is_mediator(folder: &Path) -> bool {
    let words = fs::read(folder.join("cmdline")).unwrap_or_default();
    let mut words = words.split(|byte| *byte == 0);
    name_of_process(folder).starts_with("amber")
        && words.any(|word| matches!(word, b"mediator" | b"demo" | b"play"))
}

/// Other programs named `amber` in the PATH.
fn programs() -> Vec<Program> {
    let own = env::current_exe().and_then(fs::canonicalize).ok();
    let mut seen: BTreeSet<PathBuf> = own.into_iter().collect();
    let mut found = Vec::new();
    for folder in path_folders() {
        let path = folder.join("amber");
        let Ok(real) = fs::canonicalize(&path) else {
            continue;
        };
        if access(&path, Access::EXEC_OK).is_ok() && seen.insert(real) {
            let told = answer(&path.to_string_lossy(), &["--version"]);
            let version = told.and_then(|told| Some(told.strip_prefix("amber ")?.trim().into()));
            found.push(Program { path, version });
        }
    }
    found
}

fn python() -> Option<String> {
    let program = "import importlib.metadata as m; print(m.version('amber-robot'))";
    Some(answer("python3", &["-c", program])?.trim().to_owned())
}

/// Whether systemd has the unit of the service, in the folders below this root.
pub(in crate::cli) fn is_unit_installed(root: &Path) -> bool {
    let folders = [
        "etc/systemd/system",
        "usr/lib/systemd/system",
        "lib/systemd/system",
    ];
    folders
        .iter()
        .any(|folder| root.join(folder).join("amber.service").exists())
}

fn service() -> Option<String> {
    let show = ["show", "amber", "--property=ActiveState", "--value"];
    is_unit_installed(Path::new("/"))
        .then(|| answer("systemctl", &show).unwrap_or_default().trim().into())
}

/// The output of a program, if it succeeds in time.
fn answer(program: &str, arguments: &[&str]) -> Option<String> {
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let end = Instant::now() + PATIENCE;
    let status = loop {
        match child.try_wait() {
            Ok(None) if Instant::now() < end => thread::sleep(Duration::from_millis(5)),
            Ok(Some(status)) => break status,
            _ => {
                let _ = child.kill();
                let _ = child.wait();
                return None;
            }
        }
    };
    let printed = io::read_to_string(child.stdout.take()?).ok()?;
    status.success().then_some(printed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_by_their_numbers() {
        let file = "root:x:0:\ndialout:x:20:ada,bob\nbroken\n";
        assert_eq!(name_of(file, 20).as_deref(), Some("dialout"));
        assert_eq!(name_of(file, 21), None);
    }

    #[test]
    fn a_device_file_that_is_not_there_is_missing() {
        let file = device_file("/dev/amber-has-no-such-device".into());
        assert_eq!(file.access, FileAccess::Missing);
        assert_eq!(device_file("/dev/null".into()).access, FileAccess::Granted);
    }

    #[test]
    fn the_files_of_devices_are_found_in_commands() {
        let paths = |command: &str| {
            let words: Vec<_> = command.split(' ').map(str::to_owned).collect();
            let paths = device_paths(&words).into_iter();
            paths
                .map(|path| path.display().to_string())
                .collect::<Vec<_>>()
        };
        assert_eq!(
            paths("amber driver hokuyo --port /dev/ttyACM0"),
            ["/dev/ttyACM0"]
        );
        assert_eq!(paths("amber driver hokuyo --port=../a"), ["../a"]);
        assert_eq!(
            paths("amber driver ninedof --bus sim:/tmp/bus"),
            ["/tmp/bus"]
        );
        assert_eq!(
            paths("./lidar dev=/dev/lidar /dev/x"),
            ["/dev/lidar", "/dev/x"]
        );
        assert_eq!(paths("./lidar /dev/a=b"), ["/dev/a=b"]);
        assert!(paths("./server --port 8080 --map /tmp/x").is_empty());
        assert!(paths("amber driver location --map maps/x").is_empty());
    }

    #[test]
    fn programs_are_found_in_the_path_and_below_their_folder() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("data"), "").unwrap();
        assert!(exists("sh", folder.path()));
        assert!(exists("/bin/sh", folder.path()));
        assert!(!exists("./data", folder.path()), "it is not executable");
        assert!(!exists("no-such-program-anywhere", folder.path()));
    }

    #[test]
    fn a_program_that_takes_long_or_fails_gives_no_answer() {
        assert_eq!(answer("echo", &["yes"]).as_deref(), Some("yes\n"));
        assert_eq!(answer("false", &[]), None);
        assert_eq!(answer("no-such-program-anywhere", &[]), None);
    }
}
