//! `amber foxglove`: shows a live robot in Foxglove or Lichtblick. IO.
//!
//! ```text
//!   viewer  -- WebSocket --  session  -->  hub (PURE)  -->  upstreams: one client of the mediator
//!                            mailbox  <--   |    ^     <--
//!                                         catalog, converter
//! ```
//!
//! - **Channels**: the messages of each device with a description, as in recordings, and those that
//!   Foxglove draws. A device gets requests only while a viewer subscribes to one of its channels.
//! - **A slow viewer** gets the newest message of each channel, never old ones. Drops are counted.
//! - **Access**: on the loopback address all programs and known pages; on other addresses everyone
//!   with the token. Viewers are read-only, unless `--calls` allows them to call the requests of
//!   devices.

mod app;
mod catalog;
mod hub;
mod input;
mod limits;
mod protocol;
mod server;
mod services;
mod session;
mod upstream;

use std::net::SocketAddr;
use std::time::{SystemTime, UNIX_EPOCH};

use amber_terminal::{Failure, print};
use amber_web::access::FROM_DISK;
use amber_web::{Access, Origins, Own, Tokens, place};
use tokio::sync::mpsc;

const HELP: &str = "\
In Foxglove or Lichtblick, choose Open connection, Foxglove WebSocket, and enter the printed
address. The 3D panel shows the topics /foxglove/...; switch them on with the eye icon next to each
topic. All messages of all devices are also available, e.g. for plots: /roboclaw/0/currentSpeed.

Viewers are read-only. With --calls, they can also call requests: panel Service call, e.g.
/maestro/0/set-angle with { \"servo-address\": 3, \"angle\": 45 }. Requests that set wheel speeds
are excluded, because the wheels would not stop when the viewer closes.

For viewers on other machines, use --listen; then the address contains a token. The connection is
not encrypted.

Examples:
  amber foxglove
  amber foxglove --listen 0.0.0.0:8765
  amber foxglove --origin https://viewer.example.org
  amber foxglove --calls";

/// Pages that run in the browser of this machine and connect to it. The desktop programs have a file;
/// pages of the network cannot have its origin.
const KNOWN: [&str; 3] = [
    "https://app.foxglove.dev",
    "https://studio.foxglove.dev",
    "file://",
];

/// Options of `amber foxglove`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Options {
    /// Address to serve on; port 0 picks a free port
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8765")]
    listen: SocketAddr,
    /// Web page that may connect, in addition to those of this machine and of Foxglove (may be
    /// given several times); null means pages that are opened from disk
    #[arg(long, value_name = "URL")]
    origin: Vec<String>,
    /// Let viewers call the requests of devices, such as calibrations and servos
    #[arg(long)]
    calls: bool,
}

/// Serves viewers for the mediator at this address until Ctrl-C.
///
/// # Errors
/// It cannot listen at its address.
pub fn run(options: &Options, mediator: String) -> Result<(), Failure> {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_all().build();
    let runtime = runtime.map_err(|error| Failure::new(format!("cannot start: {error}")))?;
    // The client of the devices stays on this thread.
    let local = tokio::task::LocalSet::new();
    runtime.block_on(local.run_until(serve(options, mediator)))
}

async fn serve(options: &Options, mediator: String) -> Result<(), Failure> {
    let origins: Result<Vec<_>, _> = options.origin.iter().map(|it| checked(it)).collect();
    let (listener, listen) = place::listen(options.listen, "amber foxglove").await?;
    let known = KNOWN.map(str::to_owned).into_iter();
    let origins = Origins {
        listed: known.chain(origins?).collect(),
        of_this_machine: true,
        own: Own::Never,
    };
    let access = Access::new(listen, origins, || {
        let (drive, look) = (place::token()?, None);
        Ok::<_, Failure>(Tokens { drive, look })
    })?;
    let token = access.tokens().map(|tokens| tokens.drive.text());
    let introduction = introduction(&place::shown(listen), token);
    let (inputs, received) = mpsc::channel(limits::MAX_INPUTS);
    let serving = tokio::spawn(server::run(listener, access, inputs.clone()));
    let app = app::App::new(mediator, session(), options.calls, inputs, received);
    print(introduction.as_bytes())?;
    app.run(place::end()).await;
    serving.abort();
    Ok(())
}

/// The addresses to open, the best one first.
fn introduction(hosts: &[SocketAddr], token: Option<&str>) -> String {
    let token = token.unwrap_or_default();
    let lines = hosts
        .iter()
        .map(|host| format!("foxglove: ws://{host}/{token}\n"));
    lines.collect()
}

/// The origin of a page: its scheme and host.
fn checked(page: &str) -> Result<String, Failure> {
    let is_host = |host: &str| !host.is_empty() && !host.contains('/');
    let origin = page.trim_end_matches('/');
    if origin == FROM_DISK {
        return Ok(origin.to_owned());
    }
    match origin.split_once("://") {
        Some(("http" | "https", host)) if is_host(host) => Ok(origin.to_owned()),
        _ => Err(
            Failure::wrong(format!("--origin {page}: not the origin of a page"))
                .hint("write scheme and host only, such as https://viewer.example.org"),
        ),
    }
}

/// Viewers use it to recognize this program after a reconnect.
fn session() -> String {
    now_ns().to_string()
}

/// Nanoseconds since 1970.
fn now_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_nanos() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_has_the_token_only_if_it_is_needed() {
        let host = |text: &str| text.parse().unwrap();
        let own = introduction(&[host("127.0.0.1:8765")], None);
        assert_eq!(own, "foxglove: ws://127.0.0.1:8765/\n");
        let hosts = [host("192.168.1.7:1"), host("[fd00::7]:1")];
        let others = introduction(&hosts, Some("abc"));
        let expected = "foxglove: ws://192.168.1.7:1/abc\nfoxglove: ws://[fd00::7]:1/abc\n";
        assert_eq!(others, expected);
    }

    #[test]
    fn an_origin_has_no_path() {
        assert_eq!(checked("https://a.example/").unwrap(), "https://a.example");
        assert_eq!(checked("http://a:8080").unwrap(), "http://a:8080");
        assert_eq!(checked("null").unwrap(), "null");
        for wrong in [
            "a.example",
            "https://a.example/page",
            "https://",
            "ftp://a",
            "",
        ] {
            assert!(checked(wrong).is_err(), "{wrong}");
        }
    }
}
