//! `amber metrics`: exports the counters of a mediator for Prometheus and others. IO.

mod text;
#[cfg(feature = "web")]
mod web;

use amber_client::{Client, Error};
use amber_terminal::{Failure, print_text};

use self::text::{Help, text};
use super::overview::Overview;
use super::session::Session;

pub(super) const HELP: &str = "\
Examples:
  amber metrics
  amber metrics --listen 127.0.0.1:9464
  amber metrics > /var/lib/node_exporter/amber.prom";

/// Options of `amber metrics`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Serve the metrics over HTTP at this address, under /metrics, until Ctrl-C
    #[cfg(feature = "web")]
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<std::net::SocketAddr>,
}

pub(super) async fn run(
    session: &mut Session<'_>,
    options: &Options,
    json: bool,
) -> Result<(), Failure> {
    if json {
        let hint = "`amber status --json` has the counters as JSON";
        return Err(Failure::wrong("metrics are not available as JSON").hint(hint));
    }
    #[cfg(feature = "web")]
    if let Some(address) = options.listen {
        let client = session.client_when_network_is_there().await?;
        return web::serve(client, address).await;
    }
    let _ = options;
    print_text(&page(session.client().await?).await?)
}

async fn page(client: &Client) -> Result<String, Error> {
    let (overview, help) = tokio::try_join!(Overview::ask(client), help(client))?;
    Ok(text(&overview, &help))
}

/// The explanations of the counters; old mediators do not provide them.
async fn help(client: &Client) -> Result<Help, Error> {
    match client.mediator().explain_counters().await {
        Ok(counters) => Ok(counters.into_iter().map(|it| (it.name, it.help)).collect()),
        Err(Error::Refused { .. }) => Ok(Help::new()),
        Err(error) => Err(error),
    }
}
