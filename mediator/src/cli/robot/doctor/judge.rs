//! Judges the facts that `amber doctor` has read. PURE.

use std::time::Duration;

use amber_core::limits::SOCKET_BUFFER_BYTES;
use amber_drivers::presence::Asked;
use amber_drivers::probe::NoAnswer;

use super::Check;
use super::facts::{
    Clients, Clock, Configuration, DeviceAnswer, DeviceFile, Driver, Facts, FileAccess, Port,
    PortState, Program, Stale,
};

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The beginning of 2026: a clock that shows an earlier time is wrong.
const EARLIEST: Duration = Duration::from_secs(1_767_225_600);

/// Files that a mediator opens for itself, and for each driver: pipes, process, feeds.
const OWN_FILES: u64 = 64;
const FILES_PER_DRIVER: u64 = 8;

/// All checks, in the order in which a person would do them.
pub(super) fn all(facts: &Facts) -> Vec<Check> {
    let mut checks = versions(&facts.programs, facts.python.as_deref());
    let drivers = match &facts.configuration {
        None => 0,
        Some(configuration) => {
            checks.extend(configured(configuration, &facts.user));
            configuration.drivers.as_ref().map_or(0, Vec::len)
        }
    };
    checks.push(port(&facts.port));
    if let PortState::Mediator { clients: found, .. } = &facts.port.state {
        checks.extend(clients(found));
    }
    checks.extend(facts.service.as_deref().map(service));
    checks.push(files("serial ports", &facts.serial_ports, &facts.user));
    checks.push(files("i2c buses", &facts.i2c_buses, &facts.user));
    checks.push(modem_manager(facts.modem_manager));
    checks.push(match &facts.buffer_bytes {
        Ok(bytes) => buffers(*bytes),
        Err(error) => Check::problem("udp buffers", format!("cannot open a socket: {error}")),
    });
    checks.push(open_files(facts.open_files, drivers));
    checks.push(clock(facts.clock));
    checks.push(stale(&facts.stale));
    checks
}

fn versions(programs: &[Program], python: Option<&str>) -> Vec<Check> {
    let mut checks = vec![Check::ok("version", format!("this is amber {VERSION}"))];
    for Program { path, version } in programs {
        let path = path.display();
        checks.push(match version {
            Some(version) if version == VERSION => {
                Check::ok("version", format!("{path} is also {version}"))
            }
            Some(version) => Check::warning("version", format!("{path} is {version}"))
                .hint("remove it, or install the same version"),
            None => Check::warning("version", format!("{path} is another program"))
                .hint("call this one with its path, or change the PATH"),
        });
    }
    checks.extend(python.map(|version| {
        match version == VERSION {
            true => Check::ok("python", format!("the package amber-robot is {version}")),
            false => Check::warning("python", format!("the package amber-robot is {version}"))
                .hint("install the version that came with this amber"),
        }
    }));
    checks
}

fn configured(configuration: &Configuration, user: &str) -> Vec<Check> {
    let path = configuration.path.display();
    let drivers = match &configuration.drivers {
        Ok(drivers) => drivers,
        Err((error, hint)) => {
            let check = Check::problem("configuration", error);
            return vec![match hint {
                Some(hint) => check.hint(hint),
                None => check,
            }];
        }
    };
    let mut checks = match drivers.len() {
        0 => vec![
            Check::warning("configuration", format!("{path} has no drivers"))
                .hint("add [[driver]]; see docs/configuration.md"),
        ],
        many => vec![Check::ok(
            "configuration",
            format!("{path}: {many} drivers"),
        )],
    };
    checks.extend(drivers.iter().flat_map(|one| driver(one, user)));
    checks
}

fn driver(driver: &Driver, user: &str) -> Vec<Check> {
    let name = &driver.name;
    let mut checks = Vec::new();
    if !driver.program_exists {
        let found = format!("{name}: program {:?} does not exist", driver.program);
        checks.push(
            Check::problem("driver", found)
                .hint("give its path, or install it; paths are relative to `directory`"),
        );
    }
    for file in &driver.files {
        let path = file.path.display();
        match &file.access {
            FileAccess::Granted => {}
            FileAccess::Missing => checks.push(
                Check::warning("driver", format!("{name}: {path} does not exist"))
                    .hint("is it plugged in? `ls -l /dev/serial/by-id` lists connected devices"),
            ),
            FileAccess::Denied(group) => checks.push(
                Check::problem("driver", format!("{name}: {user} may not use {path}"))
                    .hint(join(group.as_deref(), user)),
            ),
        }
    }
    if checks.is_empty() {
        checks = device(driver);
    }
    checks
}

/// What is known of the device of a driver that can be started.
fn device(driver: &Driver) -> Vec<Check> {
    let name = &driver.name;
    let files: Vec<_> = driver
        .files
        .iter()
        .map(|it| it.path.to_string_lossy())
        .collect();
    let place = match files.is_empty() {
        true => name.clone(),
        false => format!("{name}: {} is there", files.join(", ")),
    };
    match &driver.device {
        DeviceAnswer::NotAsked => vec![Check::ok("driver", place)],
        DeviceAnswer::UsedBy(user) => vec![Check::ok(
            "driver",
            format!("{place}; {user} uses it, so the device was not asked"),
        )],
        DeviceAnswer::Asked(Asked {
            answer: Ok(presence),
            ..
        }) => {
            let told = Check::ok("driver", format!("{place}: {}", presence.text));
            let remarks = presence.remarks.iter().map(|remark| {
                Check::warning("driver", format!("{name}: {}", remark.text)).hint(&*remark.hint)
            });
            std::iter::once(told).chain(remarks).collect()
        }
        DeviceAnswer::Asked(Asked {
            answer: Err(NoAnswer::Silent),
            if_silent,
        }) => vec![
            Check::warning("driver", format!("{place}, but the device does not answer"))
                .hint(*if_silent),
        ],
        DeviceAnswer::Asked(Asked {
            answer: Err(error), ..
        }) => vec![Check::warning("driver", format!("{name}: {error}"))],
    }
}

/// How to get access to a file.
fn join(group: Option<&str>, user: &str) -> String {
    match group {
        Some("root") | None => "see the udev rules in docs/running-as-a-service.md".to_owned(),
        Some(group) => format!("sudo usermod --append --groups {group} {user}, then log in again"),
    }
}

fn port(port: &Port) -> Check {
    let number = port.number;
    match &port.state {
        PortState::Free => Check::ok(
            "port",
            format!("UDP port {number} is free: no mediator runs"),
        ),
        PortState::Mediator {
            version,
            drivers,
            down,
            ..
        } => {
            let version = version.as_deref().unwrap_or("of unknown version");
            let found = format!("a mediator {version} answers at UDP port {number}");
            if version != VERSION {
                return Check::warning("port", found)
                    .hint("restart it to get this version: sudo systemctl restart amber");
            }
            match down.first() {
                None => Check::ok(
                    "port",
                    format!("{found}; drivers up: {drivers} of {drivers}"),
                ),
                Some(first) => Check::warning(
                    "port",
                    format!("{found}; these devices do not work: {}", down.join(", ")),
                )
                .hint(format!("run `amber status {first}` to see the reason")),
            }
        }
        PortState::Taken(holder) => {
            let holder = holder.as_deref().unwrap_or("a program of another user");
            Check::problem("port", format!("UDP port {number} is in use by {holder}"))
                .hint("end that program, or choose another port with `listen`")
        }
        PortState::Unusable(error) => Check::problem(
            "port",
            format!("UDP port {number} cannot be opened: {error}"),
        )
        .hint("choose another address with `listen`"),
    }
}

/// Warns before clients are evicted.
fn clients(found: &Clients) -> Option<Check> {
    let (all, most) = (found.all, found.most?);
    let is_nearly_full = |clients: u32, most: u32| u64::from(clients) * 4 >= u64::from(most) * 3;
    let host = found.fullest_host.as_deref().zip(found.most_of_host);
    if let Some((host, most)) = host.filter(|(_, most)| is_nearly_full(found.of_host, *most)) {
        let clients = found.of_host;
        let text = format!("{clients} of at most {most} clients are from {host}");
        return Some(Check::warning("clients", text).hint(
            "`amber top` shows them: does a program open a port for each request? \
             `clients_per_host` under [limits] sets the limit",
        ));
    }
    let text = format!("the mediator knows {all} clients of at most {most}");
    Some(match is_nearly_full(all, most) {
        false => Check::ok("clients", text),
        true => Check::warning("clients", text)
            .hint("`amber top` shows them; `clients` under [limits] sets the limit"),
    })
}

fn service(state: &str) -> Check {
    match state {
        "active" => Check::ok("service", "the service amber runs"),
        "failed" => Check::problem("service", "the service amber has failed")
            .hint("journalctl -u amber -p warning"),
        "" => Check::warning(
            "service",
            "systemd does not report the state of the service amber",
        ),
        state => Check::warning("service", format!("the service amber is {state}"))
            .hint("sudo systemctl enable --now amber"),
    }
}

fn files(check: &'static str, files: &[DeviceFile], user: &str) -> Check {
    let denied = files.iter().find_map(|file| match &file.access {
        FileAccess::Denied(group) => Some((file, group)),
        _ => None,
    });
    match (files.len(), denied) {
        (0, _) => Check::ok(check, "none found"),
        (_, Some((file, group))) => {
            let path = file.path.display();
            Check::warning(check, format!("{user} may not use {path}"))
                .hint(join(group.as_deref(), user))
        }
        (_, None) => {
            let paths: Vec<_> = files.iter().map(|it| it.path.to_string_lossy()).collect();
            Check::ok(check, format!("{user} may use {}", paths.join(", ")))
        }
    }
}

fn modem_manager(interferes: bool) -> Check {
    match interferes {
        false => Check::ok("modem manager", "it does not interfere"),
        true => Check::warning(
            "modem manager",
            "ModemManager runs and may send bytes to serial ports of the robot",
        )
        .hint("install scripts/systemd/udev.rules as /etc/udev/rules.d/60-amber.rules"),
    }
}

fn buffers(bytes: usize) -> Check {
    let found = format!(
        "the kernel grants {} kB for a socket; the mediator asks for {} kB",
        bytes / 1024,
        SOCKET_BUFFER_BYTES / 1024
    );
    // The mediator logs a warning below half of the requested size.
    match bytes * 2 < SOCKET_BUFFER_BYTES {
        false => Check::ok("udp buffers", found),
        true => Check::warning("udp buffers", found).hint(format!(
            "bursts may be dropped; sudo sysctl -w net.core.rmem_max={SOCKET_BUFFER_BYTES} \
             net.core.wmem_max={SOCKET_BUFFER_BYTES}, and the same in /etc/sysctl.d"
        )),
    }
}

fn open_files(limit: Option<u64>, drivers: usize) -> Check {
    let needed = OWN_FILES + FILES_PER_DRIVER * drivers as u64;
    match limit {
        Some(limit) if limit < needed => Check::problem(
            "open files",
            format!("a program may have {limit} files open; {drivers} drivers need {needed}"),
        )
        .hint(format!("ulimit -n {}", needed.max(1024))),
        Some(limit) => Check::ok(
            "open files",
            format!("a program may have {limit} files open"),
        ),
        None => Check::ok("open files", "a program may have any number of files open"),
    }
}

fn clock(clock: Clock) -> Check {
    let hint = "sudo timedatectl set-ntp true; logs and recordings contain this time";
    if clock.now < EARLIEST {
        return Check::warning("clock", "the clock of this machine is years slow").hint(hint);
    }
    match clock.is_synchronized {
        Some(true) => Check::ok("clock", "it is synchronized"),
        Some(false) => Check::warning("clock", "it is not synchronized").hint(hint),
        None => Check::ok("clock", "it is unknown whether it is synchronized"),
    }
}

fn stale(stale: &[Stale]) -> Check {
    if stale.is_empty() {
        return Check::ok("old drivers", "none without a mediator");
    }
    let names: Vec<_> = stale
        .iter()
        .map(|it| format!("{} (process {})", it.name, it.pid))
        .collect();
    let pids: Vec<_> = stale.iter().map(|it| it.pid.to_string()).collect();
    Check::warning(
        "old drivers",
        format!("drivers without a mediator: {}", names.join(", ")),
    )
    .hint(format!("kill {}", pids.join(" ")))
}

#[cfg(test)]
mod tests {
    use amber_drivers::presence::{Presence, Remark};

    use super::super::Level;
    use super::*;

    fn level(check: &Check) -> Level {
        check.level
    }

    fn file(path: &str, access: FileAccess) -> DeviceFile {
        DeviceFile {
            path: path.into(),
            access,
        }
    }

    #[test]
    fn a_table_that_is_nearly_full_is_a_warning() {
        let check = |all, of_host| {
            clients(&Clients {
                all,
                most: Some(4096),
                fullest_host: Some("this machine".into()),
                of_host,
                most_of_host: Some(1024),
            })
            .unwrap()
        };
        assert_eq!(check(3071, 767).level, Level::Ok);
        let host = check(1000, 768);
        assert_eq!(host.level, Level::Warning);
        assert_eq!(
            host.found,
            "768 of at most 1024 clients are from this machine"
        );
        let table = check(3072, 700);
        assert_eq!(table.level, Level::Warning);
        assert_eq!(
            table.found,
            "the mediator knows 3072 clients of at most 4096"
        );
        assert!(clients(&Clients::default()).is_none(), "an older mediator");
    }

    #[test]
    fn another_version_is_a_warning() {
        let program = |version: Option<&str>| Program {
            path: "/usr/bin/amber".into(),
            version: version.map(Into::into),
        };
        let programs = [
            program(Some(VERSION)),
            program(Some("0.0.1")),
            program(None),
        ];
        let checks = versions(&programs, Some("0.0.1"));
        let levels: Vec<_> = checks.iter().map(level).collect();
        use Level::{Ok, Warning};
        assert_eq!(levels, [Ok, Ok, Warning, Warning, Warning]);
    }

    #[test]
    fn a_driver_needs_its_program_and_its_files() {
        let mut found = Driver {
            name: "hokuyo:0".into(),
            program: "lidar".into(),
            program_exists: true,
            files: vec![file("/dev/hokuyo", FileAccess::Granted)],
            device: DeviceAnswer::NotAsked,
        };
        let expected = Check::ok("driver", "hokuyo:0: /dev/hokuyo is there");
        assert_eq!(driver(&found, "ada"), [expected]);

        found.program_exists = false;
        let checks = driver(&found, "ada");
        assert_eq!(
            checks[0].found,
            "hokuyo:0: program \"lidar\" does not exist"
        );

        found.program_exists = true;
        found.files = vec![
            file("/dev/a", FileAccess::Missing),
            file("/dev/b", FileAccess::Denied(Some("dialout".into()))),
        ];
        let checks = driver(&found, "ada");
        assert_eq!(level(&checks[0]), Level::Warning);
        assert_eq!(level(&checks[1]), Level::Problem);
        let hint = checks[1].hint.as_deref().unwrap();
        assert_eq!(
            hint,
            "sudo usermod --append --groups dialout ada, then log in again"
        );
    }

    #[test]
    fn a_device_that_was_asked_says_what_it_is() {
        let of = |device| {
            let asked = Driver {
                name: "roboclaw:0".into(),
                program: "amber".into(),
                program_exists: true,
                files: vec![file("/dev/a", FileAccess::Granted)],
                device,
            };
            driver(&asked, "ada")
        };
        let asked = |answer| {
            of(DeviceAnswer::Asked(Asked {
                answer,
                if_silent: "switch it on",
            }))
        };
        assert_eq!(
            asked(Ok(Presence {
                text: "128 is v4".into(),
                remarks: vec![Remark {
                    text: "the battery is empty".into(),
                    hint: "charge it".into(),
                }],
            })),
            [
                Check::ok("driver", "roboclaw:0: /dev/a is there: 128 is v4"),
                Check::warning("driver", "roboclaw:0: the battery is empty").hint("charge it"),
            ]
        );
        assert_eq!(
            asked(Err(NoAnswer::Silent)),
            [Check::warning(
                "driver",
                "roboclaw:0: /dev/a is there, but the device does not answer"
            )
            .hint("switch it on")]
        );
        assert_eq!(
            asked(Err(NoAnswer::Failed("cannot open /dev/a: no".into()))),
            [Check::warning(
                "driver",
                "roboclaw:0: cannot open /dev/a: no"
            )]
        );
        assert_eq!(
            of(DeviceAnswer::UsedBy("'amber' (process 7)".into())),
            [Check::ok(
                "driver",
                "roboclaw:0: /dev/a is there; 'amber' (process 7) uses it, so the device was not asked"
            )]
        );
    }

    #[test]
    fn an_invalid_configuration_is_a_problem_with_its_hint() {
        let configuration = Configuration {
            path: "amber.toml".into(),
            drivers: Err(("amber.toml:3:1: unknown key".into(), Some("listen?".into()))),
        };
        let checks = configured(&configuration, "ada");
        assert_eq!(
            checks,
            [Check::problem("configuration", "amber.toml:3:1: unknown key").hint("listen?")]
        );
    }

    #[test]
    fn the_port_is_free_or_has_a_mediator_or_is_taken() {
        let mediator = |version: &str, down: &[&str]| PortState::Mediator {
            version: Some(version.into()),
            drivers: 2,
            down: down.iter().map(ToString::to_string).collect(),
            clients: Clients::default(),
        };
        for (state, expected) in [
            (PortState::Free, Level::Ok),
            (mediator(VERSION, &[]), Level::Ok),
            (mediator(VERSION, &["hokuyo:0"]), Level::Warning),
            (mediator("0.0.1", &[]), Level::Warning),
            (PortState::Taken(None), Level::Problem),
            (PortState::Unusable("no".into()), Level::Problem),
        ] {
            let check = port(&Port { number: 1, state });
            assert_eq!(level(&check), expected, "{check:?}");
            assert_eq!(check.hint.is_some(), expected != Level::Ok, "{check:?}");
        }
    }

    #[test]
    fn what_costs_speed_or_data_is_a_warning() {
        assert_eq!(level(&buffers(SOCKET_BUFFER_BYTES)), Level::Ok);
        assert_eq!(level(&buffers(212_992)), Level::Warning);
        assert_eq!(level(&modem_manager(true)), Level::Warning);
        assert_eq!(level(&open_files(Some(1024), 10)), Level::Ok);
        assert_eq!(level(&open_files(Some(100), 10)), Level::Problem);
        assert_eq!(level(&open_files(None, 10)), Level::Ok);
        let now = EARLIEST + Duration::from_secs(1);
        for (now, is_synchronized, expected) in [
            (now, Some(true), Level::Ok),
            (now, None, Level::Ok),
            (now, Some(false), Level::Warning),
            (Duration::ZERO, Some(true), Level::Warning),
        ] {
            let found = Clock {
                now,
                is_synchronized,
            };
            assert_eq!(level(&clock(found)), expected, "{found:?}");
        }
    }

    #[test]
    fn drivers_without_a_mediator_are_listed_with_how_to_end_them() {
        assert_eq!(level(&stale(&[])), Level::Ok);
        let process = |pid| Stale {
            pid,
            name: "python3".into(),
        };
        let check = stale(&[process(7), process(9)]);
        assert_eq!(check.hint.as_deref(), Some("kill 7 9"));
    }

    #[test]
    fn files_without_access_say_which_group_has_it() {
        let denied = file("/dev/ttyACM0", FileAccess::Denied(Some("dialout".into())));
        let check = files("serial ports", &[denied], "ada");
        assert_eq!(level(&check), Level::Warning);
        assert!(check.hint.unwrap().contains("--groups dialout ada"));
        assert_eq!(level(&files("serial ports", &[], "ada")), Level::Ok);
    }

    #[test]
    fn a_service_that_has_failed_is_a_problem() {
        assert_eq!(level(&service("active")), Level::Ok);
        assert_eq!(level(&service("inactive")), Level::Warning);
        assert_eq!(level(&service("failed")), Level::Problem);
    }
}
