//! The dashboard: a web page that shows a robot and drives it.
//!
//! ```text
//!   page  -- WebSocket --  viewer  -->  hub (PURE)  -->  page clients: one client per page that drives
//!   page  -- WebSocket --  viewer  <--   |    ^     <--  feeds: one client for what all pages show
//!                          backlog        seat           panel: descriptions, and requests by them
//!   page  -- WebSocket --  picture clients: one for each page that shows a camera
//!   page  -- WebSocket --  robot clients, relay (PURE): pages that are clients of the mediator themselves
//! ```
//!
//! - **The map** and what is on it are requested once for all pages, and only while a page is open. A
//!   page gets the newest of each kind at most 25 times a second; a slow page gets fewer. Drops are
//!   counted.
//! - **Plots, panels and drivers**: the page is a client of the mediator itself, as programs in pages
//!   are, with the package of `client-sdk/js`. A page that nobody sees asks for nothing.
//! - **Pictures** come over a WebSocket of their own, as often and as wide as the page wants, and the
//!   next one only after the page has drawn the last one. Nobody asks a camera that no page shows.
//! - **Driving**: one page at a time holds the controls. A command of the stick is valid for 0.35 s
//!   in the dashboard, and the wheels stop immediately when the page is gone. Each page that drives
//!   is a separate client of the mediator: if the dashboard is killed, the drivers stop the robot.
//! - **Programs in pages** (`client-sdk/js`) send frames over a WebSocket of their own, as other clients
//!   do over UDP. Who moves what is decided by leases, as between all clients.
//! - **Access**: on the loopback address, every page of the dashboard may drive. On other addresses
//!   a page needs a token: one for driving, one for viewing.
//!
//! The first lines of each module contain PURE or IO. PURE code only computes: it uses no sockets,
//! files, clocks or tasks, and gets the time as an argument. IO code uses them.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use amber_terminal::{Failure, has_colours, print};
use amber_web::{Access, Origins, Own, Token, place};
use tokio::sync::mpsc;

pub mod assets;
pub mod backlog;
pub mod frames;
pub mod hub;
pub mod limits;
pub mod parts;
pub mod pictures;
pub mod relay;

mod app;
mod feeds;
mod input;
mod page_client;
mod panel;
mod picture_clients;
mod qr;
mod robot_clients;
mod server;
mod token_file;
mod viewer;

/// The usual address of the dashboard.
pub const DEFAULT_LISTEN: &str = "127.0.0.1:8026";

const HELP: &str = "\
Open the printed address in a browser. By default, only browsers on this machine can connect. For
others, use --listen: the printed addresses then contain tokens, one for driving and one for viewing,
and a phone can scan the first one from the terminal.
The connection is not encrypted, so use it only in a network that you trust.

Examples:
  amber dashboard
  amber dashboard --listen 0.0.0.0:8026
  amber dashboard --listen 0.0.0.0:8026 --tokens dashboard.tokens
  amber dashboard -m 192.168.1.7";

/// Options of `amber dashboard`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Options {
    /// Address to serve on; port 0 picks a free port
    #[arg(long, value_name = "ADDRESS:PORT", default_value = DEFAULT_LISTEN)]
    pub listen: SocketAddr,
    /// Maximum speed of the stick
    #[arg(
        long,
        value_name = "MM_S",
        default_value_t = 600,
        value_parser = clap::value_parser!(u32).range(50..=1200),
    )]
    pub max_speed: u32,
    /// Let pages of this site connect, e.g. `https://robots.example` (may be given several times);
    /// null means pages that are opened from disk
    #[arg(long, value_name = "ORIGIN")]
    pub origin: Vec<String>,
    /// File that keeps the tokens, so that the addresses stay the same after a restart; it is made if
    /// it does not exist
    #[arg(long, value_name = "FILE")]
    pub tokens: Option<PathBuf>,
    /// End when stdin ends
    #[arg(long, hide = true)]
    pub until_eof: bool,
}

/// Runs the dashboard for the mediator at this address until Ctrl-C.
///
/// # Errors
/// It cannot listen at its address.
pub fn run(options: &Options, mediator: String) -> Result<(), Failure> {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_all().build();
    let runtime = runtime.map_err(|error| Failure::new(format!("cannot start: {error}")))?;
    // Tasks of this set stay on this thread.
    let local = tokio::task::LocalSet::new();
    runtime.block_on(local.run_until(serve(options, mediator)))
}

async fn serve(options: &Options, mediator: String) -> Result<(), Failure> {
    let (listener, listen) = place::listen(options.listen, "amber dashboard").await?;
    let access = Access::new(listen, origins(&options.origin), || match &options.tokens {
        Some(file) => token_file::tokens(file),
        None => token_file::fresh(),
    })?;
    let introduction = introduction(&place::shown(listen), &access, has_colours());
    let (inputs, received) = mpsc::channel(limits::MAX_INPUTS);
    let server = server::Server::new(access, mediator.clone(), inputs.clone());
    let serving = tokio::spawn(server.run(listener));
    let app = app::App::new(mediator, options.max_speed, inputs, received);
    print(introduction.as_bytes())?;
    app.run(end(options.until_eof)).await;
    serving.abort();
    Ok(())
}

/// The pages of the dashboard itself, and those of these sites.
fn origins(listed: &[String]) -> Origins {
    Origins {
        listed: listed.to_vec(),
        of_this_machine: false,
        own: Own::ByAnyHost,
    }
}

/// The address for driving, and its QR code for terminals, of a dashboard that will listen here with the
/// tokens of this file. The file is made if it does not exist.
///
/// # Errors
/// The file cannot be read or made.
pub fn future_address(
    listen: SocketAddr,
    tokens: &Path,
) -> Result<(String, Option<String>), Failure> {
    let tokens = token_file::tokens(tokens)?;
    let host = place::shown(listen).first().copied().unwrap_or(listen);
    let address = address(host, &tokens.drive);
    let code = qr::code(&address);
    Ok((address, code))
}

/// The address that a user opens.
fn address(host: SocketAddr, token: &Token) -> String {
    // The page never sends what is behind the #.
    format!("http://{host}/#{}", token.text())
}

/// The addresses to open. `hosts` are those of this machine, the best one first.
fn introduction(hosts: &[SocketAddr], access: &Access, is_terminal: bool) -> String {
    let Some((host, others)) = hosts.split_first() else {
        return String::new();
    };
    let Some(tokens) = access.tokens() else {
        return format!("dashboard: http://{host}\n");
    };
    let drive = address(*host, &tokens.drive);
    let mut lines = format!("dashboard:            {drive}\n");
    if let Some(look) = &tokens.look {
        lines += &format!("dashboard, view only: {}\n", address(*host, look));
    }
    if !others.is_empty() {
        let others: Vec<_> = others.iter().map(SocketAddr::to_string).collect();
        lines += &format!("other addresses of this machine: {}\n", others.join(", "));
    }
    if let Some(code) = qr::code(&drive).filter(|_| is_terminal) {
        lines += &format!("\nFor a phone in the same network, to drive:\n\n{code}");
    }
    lines
}

/// Resolves when the dashboard must end. A parent that closes stdin handles Ctrl-C itself.
async fn end(until_eof: bool) {
    match until_eof {
        true => tokio::select! {
            () = place::terminated() => {}
            () = place::end_of_stdin() => {}
        },
        false => place::end().await,
    }
}

#[cfg(test)]
mod tests {
    use amber_web::Tokens;

    use super::*;

    #[test]
    fn others_get_real_addresses_with_tokens_and_a_code_in_a_terminal() {
        let listen = "0.0.0.0:8026".parse().unwrap();
        let token = |byte| amber_web::access::Token::new([byte; amber_web::access::TOKEN_BYTES]);
        let access = Access::new(listen, origins(&[]), || {
            Ok::<_, Failure>(Tokens {
                drive: token(1),
                look: Some(token(2)),
            })
        });
        let access = access.unwrap();
        let hosts = ["192.168.1.7:8026", "10.0.0.3:8026"].map(|host| host.parse().unwrap());
        let shown = introduction(&hosts, &access, false);
        let lines: Vec<_> = shown.lines().collect();
        let (drive, look) = (token(1), token(2));
        assert_eq!(
            lines,
            [
                &format!(
                    "dashboard:            http://192.168.1.7:8026/#{}",
                    drive.text()
                ),
                &format!(
                    "dashboard, view only: http://192.168.1.7:8026/#{}",
                    look.text()
                ),
                "other addresses of this machine: 10.0.0.3:8026",
            ]
        );
        let in_terminal = introduction(&hosts[..1], &access, true);
        let code = qr::code(&format!("http://192.168.1.7:8026/#{}", drive.text())).unwrap();
        assert!(in_terminal.ends_with(&code), "{in_terminal}");
    }

    #[test]
    fn on_this_machine_the_address_is_all() {
        let listen = "127.0.0.1:8026".parse().unwrap();
        let access = Access::new(listen, origins(&[]), || Err(())).unwrap();
        let shown = introduction(&[listen], &access, true);
        assert_eq!(shown, "dashboard: http://127.0.0.1:8026\n");
    }
}
