//! Serves the metrics over HTTP. IO.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use amber_client::Client;
use amber_terminal::{Failure, note};
use amber_web::{Answer, Limits, Reach, Request, Server, StatusCode, head, page, place, plain};

use tokio::sync::Mutex;
use tokio::time::Instant;

use super::text::{Format, prometheus};

const PATH: &str = "/metrics";

/// Maximum number of concurrent scrapers. A few are usual, and each answer costs the mediator some
/// requests.
const LIMITS: Limits = Limits {
    total: 32,
    per_ip: 16,
};

/// The age up to which all scrapers get the same answer: many requests must not keep the mediator
/// from answering.
const SHARED_FOR: Duration = Duration::from_millis(250);

/// The newest answer, and when it came.
type Newest = Arc<Mutex<Option<(Instant, String)>>>;

/// Serves until Ctrl-C.
pub(super) async fn serve(client: &Client, address: SocketAddr) -> Result<(), Failure> {
    let (listener, listen) = place::listen(address, "amber metrics").await?;
    for host in place::shown(listen) {
        note(format_args!("metrics are at http://{host}{PATH}"));
    }
    let (client, reach) = (client.clone(), Reach::of(listen));
    let newest = Newest::default();
    let service = move |request, _| answer(client.clone(), newest.clone(), reach, request);
    tokio::select! {
        () = Arc::new(Server::new(LIMITS)).run(listener, service) => {}
        () = place::end() => {}
    }
    Ok(())
}

async fn answer(client: Client, newest: Newest, reach: Reach, request: Request) -> Answer {
    if !reach.admits(head(&request, "host")) {
        let why = "these metrics are for this machine only: use http://localhost, or start \
                   `amber metrics` with --listen 0.0.0.0:9464 to serve other machines";
        return plain(StatusCode::FORBIDDEN, why);
    }
    if request.uri().path() != PATH {
        return plain(StatusCode::NOT_FOUND, "the metrics are at /metrics");
    }
    let format = Format::wanted(head(&request, "accept"));
    let shown = |text: &str| {
        let text = match format {
            Format::OpenMetrics => text.to_owned(),
            Format::Prometheus => prometheus(text),
        };
        page(text, &[("content-type", format.content_type())])
    };
    // Those who wait here get the answer for which the first one asks.
    let mut newest = newest.lock().await;
    if let Some((_, text)) = newest.as_ref().filter(|(at, _)| at.elapsed() < SHARED_FOR) {
        return shown(text);
    }
    match super::page(&client).await {
        Ok(text) => {
            let page = shown(&text);
            *newest = Some((Instant::now(), text));
            page
        }
        Err(error) => plain(StatusCode::SERVICE_UNAVAILABLE, error),
    }
}
