//! Endless files and commands, and links to other files. IO.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use amber_harness::usage::footprint;
use amber_harness::{copy_program, within};
use amber_proto::mediator::{Reload, refusal::Reason, reply, request};
use amber_proto::{Device, DeviceType};
use anyhow::{Context as _, ensure};
use nix::sys::signal::{Signal, kill};
use nix::sys::stat::Mode;
use nix::unistd::{Pid, mkfifo};

use crate::peer::{Peer, Probe};
use crate::site::{Programs, Site, SiteOptions};
use crate::suite::{Attack, Context, Seen};

/// See the [module](self).
pub const ATTACKS: &[Attack] = &[
    Attack {
        name: "symlink",
        expected: "`amber sim` does not write through a link that another user has put into \
                   its folder in /tmp",
        run: symlink,
    },
    Attack {
        name: "other-user",
        expected: "another user's `amber record` and `amber trace` are refused, and 40 requests of \
                   ours for a socket that nobody opens keep no recorder out",
        run: other_user,
    },
    Attack {
        name: "endless-input",
        expected: "check, decode and --proto of endless input end with an error within 30 s; they \
                   and decode of 50 MB of zeros take at most 200 MB each",
        run: endless_input,
    },
    Attack {
        name: "fifo-config",
        expected: "a configuration that is a FIFO fails to reload within 5 s, and the next \
                   reload works",
        run: fifo_config,
    },
    Attack {
        name: "emptied-config",
        expected: "a reload of a configuration that was emptied is refused, and the driver answers \
                   on",
        run: emptied_config,
    },
    Attack {
        name: "big-reload",
        expected: "a reload with 1000 new drivers (400 in the short form): no answer to others \
                   takes longer than 250 ms",
        run: big_reload,
    },
];

const ECHO: Device = Device::new(DeviceType(77), 0);

fn symlink(context: &Context) -> anyhow::Result<Seen> {
    const PRECIOUS: &str = "precious";
    if fs::metadata("/proc/self")?.uid() != 0 {
        return Ok(Seen::skip("needs root, to act as two other users"));
    }
    // Two users that do not exist otherwise.
    let user = 1_000_000 + 2 * std::process::id();
    let attacker = user + 1;
    let folder = format!("/tmp/amber-sim-{user}");
    let home = tempfile::Builder::new().prefix("amber-attack-").tempdir()?;
    let victim = home.path().join("victim");
    fs::write(&victim, PRECIOUS)?;
    for path in [home.path(), &victim] {
        std::os::unix::fs::chown(path, Some(user), Some(user))?;
    }
    // The victim's program must be able to read the program.
    let amber = home.path().join("amber");
    copy_program(&context.programs.amber, &amber)?;
    let target = victim.display();
    let plant = format!(
        "umask 0; mkdir {folder} && ln -s {target} {folder}/markers.toml && ln -s {target} {folder}/lock"
    );
    let planted = Command::new("sh")
        .args(["-c", &plant])
        .uid(attacker)
        .gid(attacker)
        .status()?;
    ensure!(planted.success(), "cannot plant a link in {folder}");
    let mut command = Command::new(&amber);
    command
        .args(["sim", "--until-eof"])
        .env_remove("XDG_RUNTIME_DIR")
        .env_remove("AMBER_SIM_DIR")
        .uid(user)
        .gid(user);
    // It refuses the folder and ends, usually at once.
    let ran = run_for(&mut command, Duration::from_secs(10));
    let after = fs::read_to_string(&victim);
    // All of it belongs to the two users of this attack.
    fs::remove_dir_all(&folder)?;
    let ran = ran?;
    let unchanged = after.is_ok_and(|text| text == PRECIOUS);
    let what = if unchanged {
        "unchanged"
    } else {
        "overwritten"
    };
    let first = ran.errors.lines().next().unwrap_or_default();
    Ok(Seen::new(
        unchanged,
        format!("the file is {what}; amber sim: {} {first}", ran.end),
    ))
}

/// How a program ends that is ended by this suite.
const STILL_RAN: &str = "still ran";

/// How a program ended.
#[derive(Debug)]
struct Ran {
    /// In words.
    end: String,
    code: Option<i32>,
    errors: String,
    /// The most memory that was seen.
    peak_mb: u64,
}

/// Runs a program with an open stdin; what runs longer is ended.
fn run_for(command: &mut Command, time: Duration) -> anyhow::Result<Ran> {
    // A file takes what it says, so that no pipe fills up.
    let errors = tempfile::NamedTempFile::new()?;
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(errors.reopen()?)
        .process_group(0)
        .spawn()
        .with_context(|| format!("cannot run {:?}", command.get_program()))?;
    let stdin = child.stdin.take();
    let mut peak_mb = 0;
    let status = within(time, || {
        let resident = footprint(child.id()).map_or(0, |now| now.resident_kib / 1024);
        peak_mb = resident.max(peak_mb);
        Ok(child.try_wait()?)
    })?;
    drop(stdin);
    let status = match status {
        Some(status) => Some(status),
        None => {
            let group = Pid::from_raw(-child.id().cast_signed());
            let _ = kill(group, Signal::SIGTERM);
            if within(Duration::from_secs(3), || Ok(child.try_wait()?))?.is_none() {
                let _ = kill(group, Signal::SIGKILL);
                child.wait()?;
            }
            None
        }
    };
    Ok(Ran {
        end: status.map_or(STILL_RAN.to_owned(), |status| status.to_string()),
        code: status.and_then(|status| status.code()),
        errors: fs::read_to_string(errors.path())?,
        peak_mb,
    })
}

/// What a program may take to find out that a file is too long.
const ENOUGH_MB: u64 = 200;

fn endless_input(context: &Context) -> anyhow::Result<Seen> {
    let folder = tempfile::Builder::new().prefix("amber-attack-").tempdir()?;
    let zeros = folder.path().join("zeros");
    fs::File::create(&zeros)?.set_len(50_000_000)?;
    let zeros = zeros.display();
    let commands = [
        ("check -- cat /dev/zero".to_owned(), true),
        ("decode /dev/zero".to_owned(), true),
        (format!("decode {zeros}"), false),
        ("decode --proto /dev/zero --message 1001".to_owned(), true),
        ("check --proto /dev/zero -- true".to_owned(), true),
    ];
    let (mut words, mut holds) = (Vec::new(), true);
    for (arguments, is_endless) in commands {
        let amber = context.programs.amber.display();
        // In KiB.
        let script = format!("ulimit -v 1000000; exec {amber} {arguments}");
        let mut command = Command::new("sh");
        command.args(["-c", &script]).current_dir(folder.path());
        let time = if is_endless { 30 } else { 10 };
        let ran = run_for(&mut command, Duration::from_secs(time))?;
        let fine = match (is_endless, ran.code) {
            (true, code) => matches!(code, Some(1 | 2)),
            // It may find nothing wrong, and printing 12 million frames takes a while.
            (false, Some(code)) => code <= 2,
            (false, None) => ran.end == STILL_RAN,
        };
        // Reading until there is no memory left is no bound.
        holds &= fine && ran.peak_mb <= ENOUGH_MB;
        let arguments = arguments.replace(&zeros.to_string(), "50-MB-of-zeros");
        words.push(format!("'{arguments}': {}, {} MB", ran.end, ran.peak_mb));
    }
    Ok(Seen::new(holds, words.join("; ")))
}

fn other_user(context: &Context) -> anyhow::Result<Seen> {
    if fs::metadata("/proc/self")?.uid() != 0 {
        return Ok(Seen::skip("needs root, to act as another user"));
    }
    let user = 1_000_000 + 2 * std::process::id();
    let (site, local) = one_driver(&context.programs)?;
    let home = tempfile::Builder::new().prefix("amber-attack-").tempdir()?;
    std::os::unix::fs::chown(home.path(), Some(user), Some(user))?;
    // The other user must be able to read the program.
    let amber = home.path().join("amber");
    copy_program(&context.programs.amber, &amber)?;
    let address = site.address().to_string();
    let (mut words, mut holds) = (Vec::new(), true);
    for verb in [
        &["record", "--for", "1s", "-o", "a.mcap"][..],
        &["trace", "77:0", "-n", "1"],
    ] {
        let mut command = Command::new(&amber);
        command.args(["--mediator", &address]).args(verb);
        command.current_dir(home.path()).uid(user).gid(user);
        let ran = run_for(&mut command, Duration::from_secs(10))?;
        let is_refused = ran.code == Some(1) && ran.errors.contains("mediator's user");
        holds &= is_refused;
        words.push(format!(
            "amber {}: {}",
            verb[0],
            if is_refused { "refused" } else { &ran.end }
        ));
    }
    let wanted = || request::What::OpenFeed(amber_proto::mediator::OpenFeed::default());
    for _ in 0..40 {
        local.ask(wanted())?;
    }
    let mut command = Command::new(&amber);
    command.args([
        "--mediator",
        &address,
        "record",
        "--for",
        "1s",
        "-o",
        "ours.mcap",
    ]);
    let ran = run_for(command.current_dir(home.path()), Duration::from_secs(10))?;
    holds &= ran.code == Some(0);
    words.push(format!("a recorder after 40 sockets: {}", ran.end));
    Ok(Seen::new(holds, words.join("; ")))
}

const ONE_DRIVER: &str = r#"
    [mediator]
    listen = ["127.0.0.1:0"]
    [[driver]]
    device = "77:0"
    command = ["$attack", "driver", "echo"]
"#;

fn one_driver(programs: &Programs) -> anyhow::Result<(Site, Peer)> {
    let site = Site::start(programs, &SiteOptions::default(), ONE_DRIVER)?;
    let local = Peer::local(&site, None)?;
    local.wait_for_echo(ECHO)?;
    Ok((site, local))
}

fn fifo_config(context: &Context) -> anyhow::Result<Seen> {
    let (site, local) = one_driver(&context.programs)?;
    let path = site.folder().join("amber.toml");
    let reload = || local.ask_for(request::What::Reload(Reload {}), Duration::from_secs(5));
    fs::remove_file(&path)?;
    mkfifo(&path, Mode::from_bits_truncate(0o600))?;
    let with_fifo = reload();
    fs::remove_file(&path)?;
    site.configure(ONE_DRIVER)?;
    let then = reload();
    let word = |reply: &anyhow::Result<reply::What>| match reply {
        Ok(reply::What::Done(_)) => "done",
        Ok(reply::What::Refused(refusal)) if refusal.reason() == Reason::Failed => "refused",
        Ok(_) => "another reply",
        Err(_) => "no reply",
    };
    let text = format!(
        "FIFO: {}, the file afterwards: {}",
        word(&with_fifo),
        word(&then)
    );
    let holds = word(&with_fifo) == "refused" && word(&then) == "done";
    Ok(Seen::new(holds, text))
}

fn emptied_config(context: &Context) -> anyhow::Result<Seen> {
    let (site, local) = one_driver(&context.programs)?;
    let path = site.folder().join("amber.toml");
    fs::write(&path, "")?;
    let emptied = local.ask_for(request::What::Reload(Reload {}), Duration::from_secs(5));
    let refused = matches!(&emptied, Ok(reply::What::Refused(_)));
    let answers = local.wait_for_echo(ECHO).is_ok();
    let text = format!(
        "the reload is {}, the driver {}",
        if refused { "refused" } else { "carried out" },
        if answers { "answers" } else { "is gone" }
    );
    Ok(Seen::new(refused && answers, text))
}

fn big_reload(context: &Context) -> anyhow::Result<Seen> {
    let (site, local) = one_driver(&context.programs)?;
    let count = context.pick(400, 1000);
    if !can_open(3 * count + 100) {
        return Ok(Seen::skip(format!(
            "{count} drivers need more descriptors: see `ulimit -n`"
        )));
    }
    let mut config = ONE_DRIVER.to_owned();
    for id in 1..=count {
        config += &format!("[[driver]]\ndevice = \"77:{id}\"\ncommand = [\"sleep\", \"1000\"]\n");
    }
    site.configure(&config)?;
    let innocent = Peer::local(&site, None)?;
    let probe = Probe::start(innocent, ECHO, 200, 32);
    let reply = local.ask(request::What::Reload(Reload {}))?;
    ensure!(
        matches!(reply, reply::What::Done(_)),
        "the reload failed: {reply:?}"
    );
    let all = within(Duration::from_secs(30), || {
        Ok((site.drivers().len() > count).then_some(()))
    })?;
    let measured = probe.stop();
    let text = format!(
        "{}, the slowest answer took {:.0} ms, lost {:.1} %",
        all.map_or("not all started", |()| "all started"),
        1000.0 * measured.worst().as_secs_f64(),
        measured.lost_percent()
    );
    let holds = all.is_some() && measured.worst() <= Duration::from_millis(250);
    Ok(Seen::new(holds && measured.lost_percent() == 0.0, text))
}

/// Whether a program may have so many descriptors.
fn can_open(count: usize) -> bool {
    let limits = fs::read_to_string(Path::new("/proc/self/limits")).unwrap_or_default();
    let line = limits
        .lines()
        .find(|line| line.starts_with("Max open files"));
    let soft = line.and_then(|line| line.split_whitespace().nth(3));
    soft.is_none_or(|soft| soft.parse().map_or(true, |soft: usize| soft >= count))
}
