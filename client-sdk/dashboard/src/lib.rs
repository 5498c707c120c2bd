//! The dashboard: a web page that shows a robot and drives it.
//!
//! ```text
//!   page  -- WebSocket --  viewer  -->  hub (PURE)  -->  pilots: one client per page that drives
//!   page  -- WebSocket --  viewer  <--   |    ^     <--  feeds: one client for what all pages show
//!                          outbox        seat           panels: any device by its description
//! ```
//!
//! - **Measurements** are requested once for all pages, and only while a page is open. A page gets
//!   the newest of each kind at most 25 times a second; a slow page gets fewer. Drops are counted.
//! - **Driving**: one page at a time holds the controls. A command of the stick is valid for 0.35 s
//!   in the dashboard, and the wheels stop immediately when the page is gone. Each page that drives
//!   is a separate client of the mediator: if the dashboard is killed, the drivers stop the robot.
//! - **Access**: on the loopback address, every page of the dashboard may drive. On other addresses
//!   a page needs a token: one for driving, one for viewing.
//!
//! The first lines of each module contain PURE or IO. PURE code only computes: it uses no sockets,
//! files, clocks or tasks, and gets the time as an argument. IO code uses them.

use std::fmt::Write;
use std::net::SocketAddr;

use amber_terminal::{Failure, print};
use amber_web::{Access, Origins, Own, Tokens, place};
use tokio::sync::mpsc;

pub mod assets;
pub mod frames;
pub mod hub;
pub mod limits;
pub mod outbox;
pub mod parts;

mod app;
mod feeds;
mod input;
mod panel;
mod pilot;
mod server;
mod viewer;

/// The usual address of the dashboard.
pub const DEFAULT_LISTEN: &str = "127.0.0.1:8026";

const HELP: &str = "\
Open the printed address in a browser. By default, only browsers on this machine can connect. For
others, use --listen: the printed addresses then contain tokens, one for driving and one for viewing.
The connection is not encrypted, so use it only in a network that you trust.

Examples:
  amber dashboard
  amber dashboard --listen 0.0.0.0:8026
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
    // Pages of the dashboard itself.
    let origins = Origins {
        listed: options.origin.clone(),
        of_this_machine: false,
        own: Own::ByAnyHost,
    };
    let access = Access::new(listen, origins, || {
        Ok::<_, Failure>(Tokens {
            drive: place::token()?,
            look: Some(place::token()?),
        })
    })?;
    let introduction = introduction(listen, &access);
    let (inputs, received) = mpsc::channel(limits::MAX_INPUTS);
    let server = server::Server::new(access, inputs.clone());
    let serving = tokio::spawn(server.run(listener));
    let app = app::App::new(mediator, options.max_speed, inputs, received);
    print(introduction.as_bytes())?;
    app.run(end(options.until_eof)).await;
    serving.abort();
    Ok(())
}

/// The addresses to open.
fn introduction(listen: SocketAddr, access: &Access) -> String {
    let Some(tokens) = access.tokens() else {
        return format!("dashboard: http://{listen}\n");
    };
    let host = place::shown(listen);
    let mut lines = format!(
        "dashboard:            http://{host}/#{}\n",
        tokens.drive.text()
    );
    if let Some(look) = &tokens.look {
        let _ = writeln!(
            lines,
            "dashboard, view only: http://{host}/#{}",
            look.text()
        );
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
