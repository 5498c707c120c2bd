//! Requests and settings that ask for too much. IO.

use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use amber_harness::usage::footprint;
use amber_harness::within;
use amber_proto::mediator::{SetLogLevel, reply, request};
use amber_proto::{Device, DeviceType, MsgType};

use crate::peer::{Peer, Probe};
use crate::site::{Site, SiteOptions};
use crate::suite::{Attack, Context, Seen};
use crate::wire;

/// See the [module](self).
pub const ATTACKS: &[Attack] = &[
    Attack {
        name: "log-filter",
        expected: "log filters with a regular expression, and long ones, are refused: no answer \
                   to others takes longer than 250 ms, less than 50 MB more memory; `debug` works",
        run: log_filter,
    },
    Attack {
        name: "listen-addresses",
        expected: "of 300 listen addresses all answer, or the configuration is refused",
        run: listen_addresses,
    },
];

const ECHO: Device = Device::new(DeviceType(77), 0);

/// 125 bytes that make an automaton of a million states.
fn bomb() -> String {
    format!("a[{{x=(a|b)*a{}}}]=trace", "(a|b)".repeat(20))
}

fn log_filter(context: &Context) -> anyhow::Result<Seen> {
    const CONFIG: &str = r#"
        [mediator]
        listen = ["127.0.0.1:0"]
        [[driver]]
        device = "77:0"
        command = ["$attack", "driver", "echo"]
    "#;
    let site = Site::start(&context.programs, &SiteOptions::default(), CONFIG)?;
    let local = Peer::local(&site, None)?;
    local.wait_for_echo(ECHO)?;
    let memory = || footprint(site.pid()).map_or(0, |now| now.resident_kib / 1024);
    let before = memory();
    let probe = Probe::start(Peer::local(&site, None)?, ECHO, 100, 32);
    let set = |filter: &str| {
        let filter = filter.to_owned();
        let what = request::What::SetLogLevel(SetLogLevel { filter });
        local.ask_for(what, Duration::from_secs(15))
    };
    let many: Vec<String> = (0..3000).map(|i| format!("target{i}=trace")).collect();
    let long = "x".repeat(30_000) + "=debug";
    let filters = [bomb(), bomb(), long, many.join(",")[..30_000].to_owned()];
    let mut refused = 0;
    for filter in &filters {
        refused += usize::from(matches!(set(filter), Ok(reply::What::Refused(_))));
    }
    let plain = ["debug", "info"].map(|filter| matches!(set(filter), Ok(reply::What::Done(_))));
    // Filters that are refused take no time, and the innocent needs some.
    thread::sleep(Duration::from_secs(1));
    let measured = probe.stop();
    let more = memory().saturating_sub(before);
    let started = refused_at_start(context)?;
    let text = format!(
        "{refused} of {} refused, the slowest answer took {:.0} ms, {more} MB more; at the start: \
         {started}",
        filters.len(),
        1000.0 * measured.worst().as_secs_f64()
    );
    let holds = refused == filters.len()
        && plain == [true, true]
        && measured.worst() <= Duration::from_millis(250)
        && more < 50
        && !started.contains("taken");
    Ok(Seen::new(holds, text))
}

/// Whether a mediator starts with such a filter as an option, or in the environment.
fn refused_at_start(context: &Context) -> anyhow::Result<String> {
    let mut words = Vec::new();
    for option in ["--log", "AMBER_LOG"] {
        let mut command = Command::new(&context.programs.amber);
        command.args(["mediator", "--listen", "127.0.0.1:0"]);
        match option {
            "--log" => command.args(["--log", &bomb()]),
            _ => command.env("AMBER_LOG", bomb()),
        };
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let start = Instant::now();
        let status = within(Duration::from_secs(5), || Ok(child.try_wait()?))?;
        if status.is_none() {
            child.kill()?;
            child.wait()?;
        }
        let refused = status.is_some_and(|status| !status.success());
        let word = if refused { "refused" } else { "taken" };
        words.push(format!(
            "{option} {word} ({:.1} s)",
            start.elapsed().as_secs_f64()
        ));
    }
    Ok(words.join(", "))
}

fn listen_addresses(context: &Context) -> anyhow::Result<Seen> {
    const COUNT: usize = 300;
    let addresses: Vec<String> = (0..COUNT)
        .map(|i| format!("\"127.9.{}.{}:0\"", i / 250, i % 250 + 1))
        .collect();
    let config = format!("[mediator]\nlisten = [{}]\n", addresses.join(", "));
    let site = match Site::start(&context.programs, &SiteOptions::default(), &config) {
        Ok(site) => site,
        Err(error) => {
            let error = format!("{error:#}");
            let said = error.lines().find(|line| line.contains("error:"));
            return Ok(match said {
                Some(line) => Seen::new(line.contains("listen"), line.trim()),
                None => Seen::new(false, error),
            });
        }
    };
    let mut deaf = 0;
    let ping = wire::to(Device::MEDIATOR, &wire::kind(MsgType::Ping));
    for address in &site.addresses {
        let peer = Peer::at(None, [127, 0, 0, 1].into(), *address)?;
        let answered = within(Duration::from_millis(600), || {
            peer.send(&ping);
            Ok(peer.receive(Duration::from_millis(200)))
        })?;
        deaf += usize::from(answered.is_none());
    }
    let text = format!("{deaf} of {} do not answer", site.addresses.len());
    Ok(Seen::new(deaf == 0 && site.addresses.len() == COUNT, text))
}
